"""The verb in the name of a tool, and where an answer tells it as done: "I've restarted nginx", of
``restart_service``. Whatever the verb is: no list says what a tool may be for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from agenteval.detectors.claims import is_told_otherwise, sentence_around
from agenteval.detectors.verbs import word_set
from agenteval.expressions import expression


@lru_cache(maxsize=4096)
def participles_of(verb: str) -> tuple[str, ...]:
    """``skip``: ``skipped``; of verbs that do as most do, and of the commonest others."""
    if verb in _IRREGULAR:
        return (_IRREGULAR[verb],)
    if verb.endswith("e"):
        return (f"{verb}d",)
    if verb.endswith("y") and verb[-2:-1] not in tuple("aeou"):
        return (f"{verb[:-1]}ied",)
    return (f"{verb}ed", f"{verb}{verb[-1:]}ed") if _MAY_DOUBLE.search(verb) else (f"{verb}ed",)


_MAY_DOUBLE = expression(r"(?:\A|[^aeiou])[aeiou][^aeiouwxy]\Z")


_IRREGULAR = {
    "send": "sent", "set": "set", "put": "put", "write": "written", "build": "built", "buy": "bought",
    "withdraw": "withdrawn", "pay": "paid", "sell": "sold", "freeze": "frozen", "unfreeze": "unfrozen",
    "reset": "reset", "rebuild": "rebuilt", "lend": "lent", "shut": "shut", "overwrite": "overwritten",
    "split": "split", "give": "given", "hold": "held", "bid": "bid", "resend": "resent",
}  # fmt: skip

OF_WORDS = word_set(
    """
    write draft compose prepare plan outline propose suggest offer provide present include format structure
    organize organise arrange sort group rank rate score grade weigh count list highlight simplify shorten
    rewrite rephrase edit review analyze analyse assess diagnose examine research consult consider study
    identify determine answer respond reply ask tell say speak mention note clarify confirm understand
    remember recall think reason solve choose pick decide match divide split design build generate make
    create draw sketch imagine simulate model discuss test try attempt use apply follow work complete finish
    continue proceed start begin go gather collect compile assemble fill expand refine improve optimize
    adapt adjust tailor customize pull run execute call take put bring do perform get give keep look handle
    process mark flag link attach share add label tag classify categorize name title set update change modify
    correct replace remove move convert print show display open browse navigate click type press select read
    search query check verify view fetch translate summarize explain describe calculate compute estimate
    recommend compare find see load render visualize plot explore trace visit walk step guess play record
    save store end finalize submit report inform greet welcome hear listen address resolve simplify brief
    combine separate extract parse process number round convert double verify validate
    """
)
"""What an answer may do by its own words, or what an agent may say of any look-up."""


class Told(NamedTuple):
    """Where something is told as done. ``mine``: as done by the agent itself; ``bare``: by the participle
    alone, after its thing. ``about``: the sentence but for what stands before it, where the agent did it."""

    span: tuple[int, int]
    mine: bool
    bare: bool
    about: str


def told_as_done(answer: str, done: str) -> Iterator[Told]:
    """Where ``answer`` says so by the participle ``done``: in the first person, in the passive, or with the
    participle alone ("Restarted nginx.", "Next box: skipped")."""
    for at in _places_of(done, answer):
        found = _LEADS_TO_IT.search(answer, max(0, at - _BEFORE), at)
        told = _told(answer, found, (at, at + len(done))) if found else None
        if told:
            yield told


def _places_of(word: str, text: str) -> Iterator[int]:
    small = text.lower()
    at = small.find(word) if len(small) == len(text) else -1
    while at >= 0:
        after = small[at + len(word) : at + len(word) + 1]
        if not after.isalnum() and _may_lead(small[max(0, at - _LONGEST_WORD) : at]):
            yield at
        at = small.find(word, at + 1)


def _may_lead(before: str) -> bool:
    """The quick look: whether the word before a participle may tell it as done."""
    word = before.rstrip(" ").rpartition(" ")[2]
    return not word[-1:].isalnum() or word.rpartition("\n")[2] in _LAST_WORDS


_LONGEST_WORD = 14
_LAST_WORDS = word_set(
    "i i've i’ve have is are been now all both also just already successfully and then ok okay done sure"
)


def _told(answer: str, found: re.Match[str], done: tuple[int, int]) -> Told | None:
    """What is told with what leads to a participle; ``None`` if that stands in a condition, a question or
    the like."""
    start, end = sentence_around(answer, *done)
    before, after = answer[start : done[0]], answer[done[1] : end]
    if found["and"] and not _MINE.search(before):
        return None
    begins = max(start, found.start()) if found["me"] else done[0]
    # "the services I restarted"
    if found["me"] and " " not in found["me"].strip() and _RELATIVE.search(answer[start:begins]):
        return None
    if is_told_otherwise(answer, (start, begins), (done[1], end)):
        return None
    if _OF_BEFORE.search(answer, start, end) or _NOT_DONE.match(after):
        return None
    mine = bool(found["me"] or found["and"]) or found["opens"] is not None
    return Told((start, end), mine, bool(found["state"]), after if mine else f"{before}{after}")


_BEFORE = 45
_ADVERBS = r"(?:(?:now|all|both|also|just|already|successfully|gone ahead and|went ahead and|then) ){0,3}"
_LEADS_TO_IT = expression(
    r"(?:(?P<opens>(?:^|[.!\n])[^\w.!?\n]{0,6}(?:(?:ok|okay|done|sure|great|got it)\b\W{1,3})?)"
    r"|(?P<state>: ?[*_]{0,2})"
    rf"|\b(?P<passive>(?:is|are|been) {_ADVERBS})"
    rf"|\b(?P<me>I(?:['’]ve| have)? {_ADVERBS})"
    r"|(?P<and>(?:,| and|, and| then) (?:(?:also|then|successfully) )?))\Z",
    re.IGNORECASE,
)
"""What stands right before a participle that is told as done."""
_MINE = expression(r"\bI(?:['’]ve| have)? [a-z]+", re.IGNORECASE)
_RELATIVE = expression(
    r"\w\s+$(?<!\band )(?<!\bso )(?<!\bthen )(?<!\bbut )(?<!\bok )(?<!\bokay )(?<!\bsure )", re.IGNORECASE
)
_OF_BEFORE = expression(
    r"\b(?:yesterday|ago|last (?:night|week|month|year|time)|earlier|previously|before|already|this morning|"
    r"in the past)\b",
    re.IGNORECASE,
)
_NOT_DONE = expression(
    r"\s*(?:nothing|none|no|by (?:the|your|our|a|an|another|default|you|someone)|to)\b", re.IGNORECASE
)
