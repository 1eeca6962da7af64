"""Where an answer tells how things stand: "Booked: …", "your table is held", "the price is now $13.90"."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from agenteval.expressions import expression

# What is told as it stands now: less than a claim, but beside an order or a failed call as good as one.
_HERE = r"(?:[^\s.!?:;]|[.,:](?=\d)){1,40} "
_THING = r"(?:order|booking|reservation|appointment|subscription|ticket|flight|trip|meeting|card)s?"
_CODE = r"(?=[\w-]*\d)[\w-]+"
_TO_NUMBER = r"(?=[*_]{0,2}[$€£]?\d)"
_BOOKED = "booked rebooked scheduled registered enrolled"
_STANDING = "reserved rescheduled cancelled canceled refunded submitted renewed"
_TERSE = (
    "set added changed removed deleted logged posted published activated paused moved forwarded emailed"
    " frozen blocked locked unlocked enabled disabled"
)
TERSE = frozenset(_TERSE.split())
"""What is told so by one word ("Set: …") only to who ordered just that; else it is the name of a field."""
_STATES = tuple(
    (
        frozenset(words.split()),
        leads,
        expression(pattern.replace("WORDS", words.replace(" ", "|")), re.IGNORECASE),
    )
    for words, leads, pattern in (
        (
            f"{_BOOKED} {_STANDING} sent ordered transferred updated",
            ("",),
            r"(?:^|[.!?\n])[^\w.!?\n]{0,6}(?:(?:done|great|perfect|ok|okay|all set|thanks?(?: you)?)\b"
            r"[^\w\n]{1,4})?(?P<opening>WORDS)\b(?=\W{0,3}[:!.,–—]|(?: \w+)? (?:to|for|with|under)\b| at \d)",
        ),
        (
            _TERSE,
            ("",),
            r"(?:^|[.!?\n])[^\w.!?\n]{0,6}(?:(?:done|great|perfect|ok|okay|all set|thanks?(?: you)?)\b"
            r"[^\w\n]{1,4})?(?P<terse>WORDS)\b(?=\W{0,3}[:!.,–—])",
        ),
        (
            f"{_BOOKED} subscribed unsubscribed upgraded signed",
            ("you",),
            r"\byou(?:['’]re| are|['’]ve been| have been) (?:(?:now|all|both|successfully) )*"
            r"(?P<you>signed up|(?!signed)(?:WORDS))\b",
        ),
        (
            f"booked rebooked scheduled {_STANDING} held confirmed activated frozen blocked ordered published"
            " way",
            ("is ", "are "),
            rf"(?:\b(?:your|the) (?:{_HERE}){{1,9}}?|(?:^|[.!?\n])[^\w.!?\n]{{0,6}}{_THING} (?:#?{_CODE} )?)"
            r"(?:is|are) (?:(?:now|all|already) )?"
            r"(?P<it>on (?:its|the|their) way|(?!held un?til|way)(?:WORDS))\b",
        ),
        (
            "placed ordered purchased booked reserved scheduled cancelled canceled submitted sent",
            ("was ", "were "),
            rf"\b(?:your|the|an?|all|both) (?:{_HERE}){{1,9}}?(?:was|were) (?P<was>WORDS)\b",
        ),
        (
            "ordered",
            ("is ", "are "),
            rf"(?:^|[.!?\n])[^\w.!?\n]{{0,6}}(?:an?|one|two|three|four|[1-9]) (?:{_HERE}){{1,4}}?"
            r"(?:is|are) (?:now )?(?P<some>WORDS)\b",
        ),
        (
            "now been",
            ("is now", "are now", " been "),
            rf"\b(?:your|the) (?:{_HERE}){{1,7}}?(?P<now>(?:is|are) now(?: set to)?|(?:has|have) been (?:"
            rf"raised|increased|lowered|reduced|changed|updated|set) to) {_TO_NUMBER}",
        ),
        (
            "refunded credited transferred reimbursed",
            ("",),
            r"(?:^|\n)[ \t]*[-*•][ \t]+[^\w\n]{0,4}\d[\d.,]*\W{1,4}(?P<item>WORDS)\b",
        ),
        (
            "sent emailed forwarded",
            ("i ", "i'", "i’"),
            r"\bI(?:['’]ve| have|) (?:(?:also|now|just) )*(?P<sent>WORDS) (?:it|them|this|that|everything)\b",
        ),
        (
            "updated changed raised increased lowered set switched",
            ("i ", "i'", "i’"),
            rf"\bI(?:['’]ve| have) (?:(?:also|now|just) )*(?P<set>WORDS) (?:your|the) (?:{_HERE}){{1,5}}?"
            rf"to {_TO_NUMBER}",
        ),
    )
)
"""Ways to tell a state, each with the words of which it takes one, and what else it takes one of; the group
says which way it is."""
VERB_OF_STATE = {
    "held": "reserve", "signed up": "register", "raised": "update", "now": "update", "increased": "update",
    "lowered": "update",
}  # fmt: skip
STATE_WORDS = frozenset[str]().union(*(words for words, _, _ in _STATES))


def states_in(answer: str, words: Collection[str]) -> list[re.Match[str]]:
    """Where one of the ways is found, from left to right. Only those are looked for that take one of
    ``words``, in the sentences that have one."""
    found = [
        match
        for (start, end), named in (_sentences_with(words, answer) if words else {}).items()
        for of_way, leads, pattern in _STATES
        if not of_way.isdisjoint(named) and any(map(answer[start:end].lower().__contains__, leads))
        for match in pattern.finditer(answer, start, end)
    ]
    apart: list[re.Match[str]] = []
    for match in sorted(found, key=re.Match.start):
        if not apart or match.start() >= apart[-1].end():
            apart.append(match)
    return apart


def _sentences_with(words: Collection[str], answer: str) -> Mapping[tuple[int, int], Collection[str]]:
    """Where the sentences with some of ``words`` are, each with the end of the one before and a little of
    what follows; and which words."""
    small = answer.lower()
    if len(small) != len(answer):  # a letter that becomes two when it is made small
        return {(0, len(answer)): words}
    found: dict[tuple[int, int], set[str]] = {}
    for word in words:
        place = small.find(word)
        while place >= 0:
            start = max(0, *(small.rfind(end, 0, place) for end in _ENDS))
            end = min((at for mark in _ENDS if (at := small.find(mark, place)) >= 0), default=len(small))
            found.setdefault((start, end + _MORE), set()).add(word)
            place = small.find(word, end)
    return found


_ENDS = ("\n", ". ", "! ", "? ")
_MORE = 8
"""Characters behind the end of a sentence that what closes it may take."""
