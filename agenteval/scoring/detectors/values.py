"""What an answer tells and nobody gave: values of named fields of named things, and values from nowhere."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from agenteval.core.call_outcomes import key_of
from agenteval.core.expressions import expression
from agenteval.core.json_text import json_of
from agenteval.core.score import Severity
from agenteval.core.tool_effects import words_of
from agenteval.scoring.detectors.conversation import Conversation, PlacedCall, Proof
from agenteval.scoring.detectors.decoded_answer import decoded_answer
from agenteval.scoring.detectors.entities import (
    Leaf,
    Thing,
    compares,
    plain_words,
    things_in,
    words_of_label,
)
from agenteval.scoring.detectors.facts import Fact, Kind, core_of, facts_in
from agenteval.scoring.detectors.given_facts import Given, follows
from agenteval.scoring.detectors.verbs import may_change

MOST_FACTS = 400
"""Of an answer that are looked at: more than that is a list, and costs more than it proves."""


def contradicts_evidence(conversation: Conversation) -> Iterator[Proof]:
    """A field of a thing that results gave, told with another value, the label of the field or the thing's
    own name right before it, though nobody gave that value and nothing that was given makes it; a status
    other than the latest; an identifier or address one edit away from the only one like it."""
    return (found.proof for found in conversation.once(_values) if found.against)


def ungrounded_value(conversation: Conversation) -> Iterator[Proof]:
    """An amount, date, time, identifier or address that nobody gave and that follows from none that was."""
    return (found.proof for found in conversation.once(_values) if not found.against)


class _Found(NamedTuple):
    proof: Proof
    against: bool


def _values(conversation: Conversation) -> tuple[_Found, ...]:
    return tuple(_found(conversation))


class _Known:
    """The things that results have described so far: of each field all values, and of each thing the latest
    status that each look-up gave, and the call (a flight has one for every day)."""

    def __init__(self) -> None:
        self.leaves: dict[str, list[Leaf]] = {}
        self.statuses: dict[str, dict[object, tuple[str, PlacedCall]]] = {}
        self.status_words: set[str] = set()
        self._names: re.Pattern[str] | None = None

    def add(self, placed: PlacedCall) -> None:
        value = placed.call.result.value if placed.call.result else None
        data = (json_of(value) or _of_status_call(value, placed)) if isinstance(value, str) else value
        if placed.error is None and data is not None:
            for thing in things_in(data, _asked_for(placed)):
                self._take(thing, placed)
            self._names = None

    def _take(self, thing: Thing, placed: PlacedCall) -> None:
        self.leaves.setdefault(thing.name, []).extend(thing.leaves)
        for leaf in thing.leaves:
            if leaf.status:
                self.status_words.add(leaf.status)
                looked_up = placed.call.name, key_of(placed.call.args)
                self.statuses.setdefault(thing.name, {})[looked_up] = leaf.status, placed

    def forget_statuses(self, placed: PlacedCall) -> None:
        """After a call that may have changed the things that it names."""
        for name in [name for name in self.statuses if name in placed.text]:
            del self.statuses[name]

    def named_in(self, line: str) -> tuple[str, ...]:
        """The things that a line names, each once, in their order."""
        if not self.leaves:
            return ()
        if self._names is None:
            names = sorted(self.leaves, key=len, reverse=True)[:_MOST_NAMES]
            self._names = re.compile(r"(?<![\w#])(?:" + "|".join(map(re.escape, names)) + r")(?!\w)")
        return tuple(dict.fromkeys(found[0] for found in self._names.finditer(line.lower())))


_MOST_NAMES = 2_000


def _found(conversation: Conversation) -> Iterator[_Found]:
    given, known = Given(), _Known()
    for text in (conversation.policy, conversation.now, *conversation.truths, *conversation.beliefs):
        given.add(text)
    for number, turn in enumerate(conversation.turns):
        given.add(turn.user)
        for placed in conversation.calls:
            if placed.turn == number:
                _take(placed, given, known, conversation)
        told = decoded_answer(turn.answer)
        facts = list(facts_in(told))[:MOST_FACTS]
        if not given.is_blind:
            yield from _Answer(conversation, number, told, facts, given, known).found()
        given.say(facts, told)


def _take(placed: PlacedCall, given: Given, known: _Known, conversation: Conversation) -> None:
    call = placed.call
    given.add(call.args if call.args is not None else call.raw_args or "")
    if call.result is None:
        given.is_blind = True  # what it gave is not in the record
        return
    given.add(call.result.value)
    if placed.error is None and may_change(call.name, conversation.tools.get(call.name)):
        known.forget_statuses(placed)
    known.add(placed)


def _asked_for(placed: PlacedCall) -> str:
    """What names a result that names nothing itself: the first text that was asked with."""
    args = placed.call.args or {}
    return next((value for value in args.values() if isinstance(value, str)), "")


def _of_status_call(text: str, placed: PlacedCall) -> Mapping[str, Any] | None:
    """A word that is the whole result of ``get_flight_status`` is the status of what was asked for."""
    is_status = words_of(placed.call.name)[-1:] == ("status",)
    if not is_status or not re.fullmatch(r"[A-Za-z][A-Za-z _-]{3,29}", text):
        return None
    return {**(placed.call.args or {}), "status": text}


class _Line(NamedTuple):
    """A line of an answer, the things that it names, and those that it is about."""

    text: str
    start: int
    named: tuple[str, ...]
    about: tuple[str, ...]


class _Answer:
    """One answer, held against what was given before it."""

    def __init__(
        self,
        conversation: Conversation,
        turn: int,
        text: str,
        facts: Sequence[Fact],
        given: Given,
        known: _Known,
    ) -> None:
        self._conversation = conversation
        self._turn = turn
        self._text = text
        self._facts = facts
        self._given = given
        self._known = known
        money = (Kind.AMOUNT,) if text is conversation.turns[turn].answer else (Kind.AMOUNT, Kind.NUMBER)
        self._amounts = [f.value for f in facts if f.kind in money and f.value is not None]
        self._numbers = {f.value for f in facts if f.kind in (Kind.AMOUNT, Kind.NUMBER) and f.value}

    def found(self) -> Iterator[_Found]:
        facts = iter(self._facts)
        fact = next(facts, None)
        told: set[object] = set()
        for line in self._lines():
            end = line.start + len(line.text)
            while fact is not None and fact.start < end:
                found = self._of_fact(fact, line) if fact.value is not None else None
                if found and (fact.kind, fact.value) not in told:
                    told.add((fact.kind, fact.value))
                    yield found
                fact = next(facts, None)
            yield from self._of_status(line)

    def _lines(self) -> Iterator[_Line]:
        """A line that names nothing is about what the line before was about, until one is left blank."""
        about: tuple[str, ...] = ()
        at = 0
        for text in self._text.split("\n"):
            named = self._known.named_in(text)
            about = named or (about if text.strip() else ())
            yield _Line(text, at, named, about)
            at += len(text) + 1

    # ── values ───────────────────────────────────────────────────────────────────────────────────

    def _of_fact(self, fact: Fact, line: _Line) -> _Found | None:
        if self._is_given(fact):
            return None
        if fact.kind in (Kind.IDENTIFIER, Kind.ADDRESS):
            return self._from_nowhere(fact)
        field = self._field_before(fact, line)
        if field:
            label, leaves = field
            shown = ", ".join(dict.fromkeys(leaf.text for leaf in leaves[:3]))
            thing = line.about[0]
            what = thing if label in line.about else f"{label} of {thing}"
            why = f"states {fact.text} for {what}, but results give {shown}"
            return self._proof(fact, why, against=True)
        if fact.kind is Kind.DATE and self._is_told_as_known(fact.value, line):
            return self._proof(fact, f"nobody gave {fact.text}, or a day next to it")
        if fact.kind is Kind.AMOUNT and self._is_from_nowhere(fact.value):
            return self._proof(fact, f"nobody gave {fact.text}, and no two given values make it")
        return None

    def _is_given(self, fact: Fact) -> bool:
        given = self._given
        if fact.kind is Kind.IDENTIFIER:
            return given.has_name(fact.value)
        if fact.kind is Kind.ADDRESS:
            return given.has_address(fact.value)
        if fact.kind is Kind.DATE:
            return given.has_date(fact.value)
        if fact.kind is Kind.TIME:
            return given.has_time(fact.value)
        return given.has_number(fact.value)

    def _is_told_as_known(self, date: tuple[int | None, int, int], line: _Line) -> bool:
        """Whether a date is one that somebody must have given: not one that the agent proposes, and not
        today's, which stands in a policy that is not in the record. It is a given day of another year, or
        it is told in the very line that has the identifier of the one thing with dates."""
        if self._conversation.policy or self._conversation.now or self._given.has_day(date):
            return True
        named = [name for name in line.named if core_of(name)]
        leaves = self._known.leaves[named[0]] if len(named) == 1 else ()
        return any(own.kind is Kind.DATE for leaf in leaves for own in leaf.facts)

    def _is_from_nowhere(self, amount: Decimal) -> bool:
        """A round amount may be a fee of a policy that is not in the record."""
        if not self._conversation.policy and amount % 5 == 0:
            return False
        return not self._given.gives(amount, self._amounts)

    def _from_nowhere(self, fact: Fact) -> _Found | None:
        near = self._given.near(fact.value)
        if near:
            return self._proof(
                fact, f"nobody gave {fact.text}: it is one character away from {near}", against=True
            )
        if fact.kind is Kind.IDENTIFIER and not self._given.is_telling(fact):
            return None
        return self._proof(fact, f"nobody gave {fact.text}")

    def _field_before(self, fact: Fact, line: _Line) -> tuple[str, Sequence[Leaf]] | None:
        """The label that stands right before a value, and the fields of the one thing that the line is about
        which it names; none of them with this value, nor with ones that make it."""
        known = self._known.leaves
        leaves = [leaf for name in line.about[:_MOST_ABOUT] for leaf in known[name] if _compares(leaf, fact)]
        if not leaves:
            return None
        before = line.text[: fact.start - line.start]
        label = self._label(before)
        named = words_of_label(label) - words_of_label(" ".join(line.about)) - _LITTLE_WORDS
        if label.strip().lower() in line.about:
            meant: Sequence[Leaf] = leaves
        else:
            meant = [leaf for leaf in leaves if named and named <= leaf.words]
        if not meant:
            return None
        if fact.kind in (Kind.AMOUNT, Kind.NUMBER):
            own = {own.value for leaf in leaves for own in leaf.facts if own.value is not None}
            said = {*self._numbers, *self._given.said} - {fact.value}
            if follows(fact.value, own) or follows(fact.value, said) or _is_multiple(fact.value, own):
                return None
        return label.strip(" *_`").lower(), meant

    def _label(self, before: str) -> str:
        found = _LABEL.search(before[-80:])
        return found["label"] if found else ""

    # ── statuses ─────────────────────────────────────────────────────────────────────────────────

    def _of_status(self, line: _Line) -> Iterator[_Found]:
        name = self._one_with_a_status(line.about) or self._only_one
        if not name:
            return
        given = self._known.statuses[name].values()
        others = {
            _folded(other) for status, _ in given for other in _others_of(status, self._known.status_words)
        }
        for found in _STATUS.finditer(line.text):
            if found["name"] and not _is_plainly(found, name):
                continue
            told = plain_words(found["label"] or found["said"])
            is_other = any(f"{_folded(told)} ".startswith(f"{other} ") for other in others)
            if is_other and not any(_same_status(told, status) for status, _ in given):
                at = line.start + found.start(), line.start + found.end()
                status, placed = list(given)[-1]
                gave = f"{placed.call.name} (call {placed.index + 1}) gave '{status}'"
                why = f"states the status of {name} as '{told}', but {gave}"
                yield _Found(self._placed(self._text[slice(*at)].strip(), why), against=True)
                return

    def _one_with_a_status(self, names: Iterable[str]) -> str:
        having = [name for name in names if name in self._known.statuses]
        return having[0] if len(having) == 1 else ""

    @cached_property
    def _only_one(self) -> str:
        """The thing with a status, if the answer names but one."""
        return self._one_with_a_status(self._known.named_in(self._text))

    # ── proofs ───────────────────────────────────────────────────────────────────────────────────

    def _proof(self, fact: Fact, why: str, *, against: bool = False) -> _Found:
        severity = None if against else Severity.MEDIUM
        return _Found(self._placed(fact.text, why, severity), against)

    def _placed(self, text: str, why: str, severity: Severity | None = None) -> Proof:
        answer = self._conversation.turns[self._turn].answer
        at = answer.find(text)
        span = (at, at + len(text)) if at >= 0 else None
        return Proof(self._turn, None, text, why, span, severity)


_LABEL = expression(
    r"(?:^|[-•*\n(;,|:.]|\b(?:the|its|your|a|with|and|is|at)\s)[\s*_`]*(?P<label>[^\W\d][^\n:;,|()•*$€£]{0,58}?)"
    r"[\s*_`]*(?:\s(?:is|was|are|of|at|costs?|=)|[:=(–—-])?[\s*_`(]*\Z",
    re.IGNORECASE,
)
# What one thing may be one after the other: a status is held against those of its own row.
_STATUS_ROWS = tuple(
    frozenset(row.split(", "))
    for row in (
        "pending, processing, processed, shipped, in transit, delivered, cancelled, returned, on hold, "
        "put on hold, reinstated, return requested, exchange requested, refund requested",
        "confirmed, pending, cancelled, waitlisted, expired, on hold, put on hold, reinstated",
        "open, closed, resolved, in progress, reopened",
        "active, inactive, suspended, locked, closed, expired",
        "paid, unpaid, overdue, refunded",
        "on time, available, delayed, cancelled, boarding, departed, flying, landed, arrived",
        "open, in progress, complete, completed, done, overdue",
        "approved, rejected, denied, under review, pending",
    )
)


def _others_of(status: str, seen: Collection[str]) -> Iterator[str]:
    """The statuses that a thing with this one does not have: of its rows, and those of other things."""
    head = _folded(status)
    for row in _STATUS_ROWS:
        if any(_folded(each) == head or head.startswith(f"{_folded(each)} ") for each in row):
            yield from row
    yield from seen


_STATUS = expression(
    r"\bstatus\b(?: of (?:the |your )?[\w#-]{1,40})?[\s*_`\"']*(?:[:=–—-]|is|was|now)?[\s*_`\"']*(?:now )?"
    r"(?P<label>[A-Za-z][A-Za-z _-]{2,30})"
    r"|(?P<before>[^.;:!?\n]{0,40}?)(?P<name>[\w#-]*\d[\w#-]*)[*_`\"')]*\s+(?:is|has been)\s+"
    r"(?:(?:currently|now|already|still|successfully|marked as) ){0,2}[*_`\"']*(?P<said>[a-z][a-z _-]{2,30})",
    re.IGNORECASE,
)
_MOST_WORDS_BEFORE = 5
_CONDITIONS = frozenset(
    ("if", "once", "when", "until", "unless", "after", "before", "whether", "while", "not", "since")
)


def _is_plainly(found: re.Match[str], name: str) -> bool:
    """Whether a sentence begins with the thing ("Your order #W1 is …") and states what it is."""
    words = re.findall(r"[a-z]+", found["before"].lower())
    return (
        found["name"].lower() == name and len(words) <= _MOST_WORDS_BEFORE and _CONDITIONS.isdisjoint(words)
    )


_MOST_ABOUT = 8


def _compares(leaf: Leaf, fact: Fact) -> bool:
    return any(compares(own, fact) for own in leaf.facts)


_LITTLE_WORDS = frozenset(("the", "of", "in", "for", "at", "your", "its", "current", "currently", "now"))


def _is_multiple(value: Decimal, numbers: Collection[Decimal]) -> bool:
    return any(value / factor in numbers for factor in range(2, 13))


def _same_status(told: str, status: str) -> bool:
    """``canceled`` is ``cancelled``; "delivered today" is ``delivered``."""
    one, other = _folded(told), _folded(status)
    return one.startswith(other) or other.startswith(one) or one.split()[0] in other.split()


def _folded(status: str) -> str:
    return status.replace("ll", "l")
