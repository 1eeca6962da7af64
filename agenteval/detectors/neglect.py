"""Orders that an answer tells as done by the user's own verb, be it one of which nothing else is known, and
whose tool was never called."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agenteval.detectors.claims import is_told_otherwise, sentence_around, stems
from agenteval.detectors.consent import refuses
from agenteval.detectors.conversation import Conversation
from agenteval.detectors.deeds import World, nouns_of
from agenteval.detectors.states import orders_it
from agenteval.detectors.verbs import KINDS_OF, words_of


class Neglect:
    """``world``: that of the conversation."""

    def __init__(self, conversation: Conversation, world: World) -> None:
        self._conversation = conversation
        verbs = ((name, verb) for name in world.names for verb in words_of(name)[:1])
        # What the other verbs mean, another tool may do, too.
        self._verbs = [(name, verb) for name, verb in verbs if verb not in KINDS_OF and len(verb) > 3]

    def found_in(self, turn: int) -> Iterator[tuple[str, tuple[int, int]]]:
        """Tools that were never called, although the user ordered by their very verb ("skip that box"); and
        where the answer of that turn tells it as done of their thing."""
        talk = self._conversation
        user = talk.turns[turn].user
        small = user.lower() if self._verbs else ""
        named = [(name, verb) for name, verb in self._verbs if verb in small and orders_it(user, verb)]
        if not named or refuses(user) or user.rstrip().endswith("?"):
            return
        answer = talk.turns[turn].answer
        called = " ".join(each.text for each in talk.calls if each.turn <= turn)
        for name, verb in named:
            span = None if verb in called else _told_as_done(answer, verb)
            if span and not nouns_of(name).isdisjoint(stems(_WORD.findall(answer[slice(*span)].lower()))):
                yield name, span


def _told_as_done(answer: str, verb: str) -> tuple[int, int] | None:
    """Where ``answer`` says that something was done, in the passive or with the participle alone ("Next box:
    skipped")."""
    small = answer.lower()
    done = next((form for form in _participles_of(verb) if form in small), None)
    if done is None:
        return None
    for found in re.finditer(_TOLD.replace("DONE", done), answer, re.IGNORECASE):
        at = found.start("done")
        start, end = sentence_around(answer, at, found.end())
        if not is_told_otherwise(answer, (start, at), (found.end(), end)):
            return start, end
    return None


def _participles_of(verb: str) -> tuple[str, ...]:
    """``skip``: ``skipped``; of verbs that do as most do."""
    if verb.endswith("e"):
        return (f"{verb}d",)
    if verb.endswith("y") and verb[-2] not in "aeou":
        return (f"{verb[:-1]}ied",)
    return f"{verb}ed", f"{verb}{verb[-1]}ed"


_TOLD = (
    r"(?:(?:^|[.!\n])[^\w.!?\n]{0,6}|: ?[*_]{0,2}"
    r"|\b(?:is|are|been|I['’]ve|I have) (?:(?:now|all|both|also|just) )?)(?P<done>DONE)\b"
)
_WORD = re.compile(r"[a-z]+")
