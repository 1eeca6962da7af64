"""What stood in a conversation before a moment: the facts of users, policy and results, to ask of a value
whether somebody gave it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

from agenteval.core.expressions import expression
from agenteval.core.json_text import json_of, text_of
from agenteval.scoring.detectors.facts import SHORTEST_NUMBER, Fact, Kind, facts_in, plain

_NUMBERS = (Kind.AMOUNT, Kind.NUMBER, Kind.PERCENT)
_SHORTEST_WORD = 5
_SHORTEST_CODE = 5
_WORD = expression(r"\w+")
_MOST_WORDS = 8
_WHOLE = Decimal(1)
_MOST_NUMBERS = 400
"""Numbers of a result among which two are looked for that give a third."""
_FACTORS = range(2, 10)
_LEAST_MULTIPLE = 10
"""What is less is a count, of which anything is a multiple."""


class Given:
    """Grows with the conversation. ``add`` takes a text or a result, ``say`` an answer of the agent: what it
    said itself gives no identifier away twice, and its amounts may be parts of its next sum."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._read: list[str] = []
        self._unread: list[str] = []
        self._words: set[str] = set()
        self._numbers: set[Decimal] = set()
        self._families: list[frozenset[Decimal]] = []
        self._counted: set[Decimal] = set()
        self._fees: frozenset[Decimal] = frozenset()
        self._years: dict[tuple[int, int], set[int]] = {}
        self._days: set[tuple[int, int]] = set()
        self._times: set[int] = set()
        self._addresses: set[str] = set()
        self._cores: set[str] = set()
        self._shapes: set[str] = set()
        self.said: set[Decimal] = set()
        self._rounded: set[Decimal] = set()
        self.is_blind = False

    def add(self, value: Any) -> None:
        """A message, a result or arguments: text, or any JSON value."""
        reading = _reading_of(value if isinstance(value, str) else text_of(value))
        self._texts.append(reading.plain)
        self._read.append(reading.text)
        self._unread.append(reading.text)
        self._shapes |= reading.shapes
        numbers: set[Decimal] = set()
        for fact in reading.facts:
            self._take(fact, numbers)
        self._fees |= reading.fees
        for family in reading.families:
            self._families.append(family)
            self._counted |= family
            numbers |= family
        self._numbers |= numbers
        self._rounded |= {number.quantize(_WHOLE) for number in numbers}

    def say(self, facts: Iterable[Fact], text: str) -> None:
        """The agent's own words: nothing is made up twice."""
        self._texts.append(plain(text))
        for fact in facts:
            self._take(fact, self.said)

    def _take(self, fact: Fact, numbers: set[Decimal]) -> None:
        value = fact.value
        if value is None:
            return
        if fact.kind in _NUMBERS:
            numbers.add(value)
        elif fact.kind is Kind.DATE:
            for day in (value[1:], *_next_to(*value[1:])):
                self._days.add(day)
                if value[0] is not None:
                    self._years.setdefault(day, set()).add(value[0])
        elif fact.kind is Kind.TIME:
            self._times.add(value)
        elif fact.kind is Kind.ADDRESS:
            self._addresses.add(value)
        else:
            self._cores.add(value)

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    def has_name(self, core: str) -> bool:
        """Whether an identifier stands anywhere, or a part of it does that is one by itself. A short number
        is one that was given, or the end of one that was: any long text holds it by chance."""
        if core.isdigit() and len(core) < SHORTEST_NUMBER:
            return self.has_number(Decimal(core)) or any(other.endswith(core) for other in self._cores)
        return core in self._cores or any(core in text for text in self._texts)

    def is_of_a_kind(self, text: str) -> bool:
        """Whether identifiers of this shape (``ORD-99``) were given."""
        return shape_of(text) in self._shapes

    def is_telling(self, fact: Fact) -> bool:
        """Whether an identifier is one for sure: a long number or the end of one, of a shape that was given,
        or with three digits and letters between or around them; not one that counts up or repeats, as
        examples do (``#W0000000``)."""
        digits = re.sub(r"\D", "", fact.text)
        if len(digits) >= 3 and (len(set(digits)) == 1 or digits in "0123456789012345"):
            return False
        if fact.text.isdigit() or self.is_of_a_kind(fact.text):
            return True
        return len(digits) >= 3 and len(fact.value) >= 6

    def near(self, core: str) -> str:
        """An identifier that was given and is one edit away (a character put in, left out, exchanged, or two
        neighbours that changed places); empty if there is none, or more than one."""
        found = {other for other in self._cores if is_one_edit(core, other)}
        return found.pop() if len(found) == 1 else ""

    def near_text(self, value: str) -> str:
        """What was given and is one edit away from a word, name or line that was not; empty if nothing is.
        Another ending is not a mistake: ``laptops`` for ``laptop``."""
        small = value.lower()
        if len(small) < _SHORTEST_WORD or any(plain(small) in text for text in self._texts):
            return ""
        near = (other for other in self._like(_WORD.findall(small)) if is_one_edit(small, other))
        return next((other for other in near if not _ends_otherwise(small, other)), "")

    def _like(self, words: Sequence[str]) -> Iterator[str]:
        """The words that were given; for a line of several, what was given but for one word."""
        while self._unread:
            self._words.update(_WORD.findall(self._unread.pop()))
        if len(words) == 1:
            yield from self._words
            return
        for at in range(len(words)) if len(words) <= _MOST_WORDS else ():
            if words[at] in self._words:
                continue  # put together of what was given: "299 * 12" after "99 * 12" and a price of 299
            line = [*map(re.escape, words)]
            line[at] = r"\w+"
            same = re.compile(r"(?<!\w)" + r"\W{1,3}".join(line) + r"(?!\w)")
            yield from (found[0] for text in self._read for found in same.finditer(text))

    def has_date(self, date: tuple[int | None, int, int]) -> bool:
        """Also the day before or after one that was given: flights arrive the next day. A year that is told
        is one that was given with this day, or any where that had none."""
        year, month, day = date
        if (month, day) not in self._days:
            return False
        return year is None or not self._years.get((month, day), ()) or year in self._years[month, day]

    def has_day(self, date: tuple[int | None, int, int]) -> bool:
        """The day, of whatever year."""
        return date[1:] in self._days

    def has_time(self, minutes: int) -> bool:
        """In either half of the day: "10:30" may be in the evening."""
        return minutes in self._times or (minutes + 720) % 1440 in self._times

    def has_address(self, address: str) -> bool:
        return address in self._addresses or any(address in text for text in self._read)

    def has_number(self, value: Decimal) -> bool:
        return value in self._numbers or value in self.said

    def gives(self, value: Decimal, beside: Iterable[Decimal] = ()) -> bool:
        """Whether a number is given, or comes of given ones by a step: a sum, difference or product of two of
        one result; of one that was said (``beside``: in the same answer) and another; a multiple; the sum of
        those that were said."""
        if self.has_number(value) or (value == int(value) and value in self._rounded):
            return True
        said = {*self.said, *beside} - {value}
        every = self._counted | said
        if any(value / factor in every for factor in _FACTORS if value >= _LEAST_MULTIPLE * factor):
            return True
        if any(follows(value, family) for family in self._families):
            return True
        return follows(value, every, some=said | self._fees) or _is_sum_of_some(
            value, sorted(set(beside) - {value})
        )


def follows(value: Decimal, numbers: Iterable[Decimal], *, some: Iterable[Decimal] | None = None) -> bool:
    """Whether ``value`` is the sum, difference or product of two of ``numbers`` (one of them of ``some``)."""
    known = numbers if isinstance(numbers, (set, frozenset)) else set(numbers)
    for one in known if some is None else some:
        if not one:
            continue
        if value - one in known or value + one in known or one - value in known:
            return True
        if one > 1 and value / one in known:
            return True
    return False


_MOST_SUMMED = 14
_MOST_IN_THREES = 60


def _is_sum_of_some(value: Decimal, parts: Sequence[Decimal]) -> bool:
    """Whether some of the parts add up to it, or are taken off another of them; of many parts, three, or
    all."""
    if len(parts) > _MOST_IN_THREES:
        return sum(parts) == value
    if len(parts) > _MOST_SUMMED:
        known = set(parts)
        pairs = [one + other for one, other in combinations(parts, 2)]
        return sum(parts) == value or any(value - two in known or value + two in known for two in pairs)
    sums = {Decimal(0)}
    for part in parts:
        sums |= {one + part for one in sums}
    return value in sums or any(part - value in sums for part in parts)


class _Reading(NamedTuple):
    """What a text or result holds; ``families`` are numbers of one kind, which may be added up, ``fees`` the
    amounts of a text, which may be added to anything."""

    text: str
    plain: str
    facts: tuple[Fact, ...]
    shapes: frozenset[str]
    families: tuple[frozenset[Decimal], ...]
    fees: frozenset[Decimal]


@lru_cache(maxsize=512)
def _reading_of(text: str) -> _Reading:
    """A result is asked for by every detector, and stands in the arguments or the answer of none."""
    data = json_of(text)
    found: dict[str, set[Decimal]] = {}
    if data is None:
        facts = tuple(facts_in(text))
    else:
        facts = tuple(fact for leaf in _texts_in(data) for fact in _facts_of(leaf))
        found = _families_in(data)
    found[""] = {f.value for f in facts if f.kind is Kind.AMOUNT and f.value is not None}
    families = tuple(frozenset(each) for each in found.values() if 0 < len(each) <= _MOST_NUMBERS)
    shapes = frozenset(shape_of(fact.text) for fact in facts if fact.kind is Kind.IDENTIFIER)
    fees = frozenset(found[""]) if data is None else frozenset()
    return _Reading(text.lower(), plain(text), facts, shapes, families, fees)


@lru_cache(maxsize=16_384)
def _facts_of(text: str) -> tuple[Fact, ...]:
    return tuple(facts_in(text))


def _texts_in(data: Any) -> Iterator[str]:
    """The texts of a result, and its keys, which may be names."""
    pending = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            yield from value
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
        elif isinstance(value, str):
            yield value
        elif isinstance(value, int) and not isinstance(value, bool):
            yield str(value)  # an order number may be a number


def _families_in(data: Any) -> dict[str, set[Decimal]]:
    """The numbers of a result by what they are: those under one key, and those of one object under its key
    (``prices: {economy: 90, business: 240}``). Prices are not added to seats. To each belong the sums of a
    key over the objects of a list: the price of all flights of a booking."""
    found: dict[str, set[Decimal]] = {}
    pending: list[tuple[str, Any]] = [("", data)]
    while pending:
        key, value = pending.pop()
        if isinstance(value, Mapping):
            is_table = bool(key) and len(value) > 1 and all(map(_is_number, value.values()))
            pending.extend((key if is_table else name, item) for name, item in value.items())
        elif isinstance(value, list):
            pending.extend((key, item) for item in value)
            for name, total in _totals_of(value).items():
                found.setdefault(name, set()).add(abs(total))
        elif _is_amount(value):
            found.setdefault(key, set()).add(abs(Decimal(repr(value))))
    return found


def _totals_of(rows: list[Any]) -> dict[str, Decimal]:
    """Of each key of the objects in a list that is a number in all of them, the sum."""
    if len(rows) < 2 or not all(isinstance(row, Mapping) for row in rows):
        return {}
    keys = (key for key in rows[0] if all(_is_amount(row.get(key)) for row in rows))
    return {key: sum((Decimal(repr(row[key])) for row in rows), Decimal()) for key in keys}


def _is_amount(value: Any) -> bool:
    return _is_number(value) and abs(value) < _TOO_LARGE


_TOO_LARGE = 1e15


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _next_to(month: int, day: int) -> tuple[tuple[int, int], tuple[int, int]]:
    after = (month, day + 1) if day < 28 else (month % 12 + 1, 1) if day >= 30 else (month, day + 1)
    before = (month, day - 1) if day > 1 else ((month - 2) % 12 + 1, 31)
    return before, after


def shape_of(text: str) -> str:
    """The form of an identifier: letters and digits, without case (``#W123`` is ``#a999``); of one in
    capitals alone its length (``H9ZU1C`` and ``FQ8APE`` are codes of six)."""
    if len(text) >= _SHORTEST_CODE and text.isupper() and text.isalnum():
        return "X" * len(text)
    return re.sub(r"[a-z]", "a", re.sub(r"\d", "9", text.lower()))


def _ends_otherwise(one: str, other: str) -> bool:
    if len(one) == len(other):
        return one[:-1] == other[:-1]
    return one.startswith(other) or other.startswith(one)


def is_one_edit(one: str, other: str) -> bool:
    """Whether two texts differ by one character put in, left out or exchanged, or by two neighbours that
    changed places (Damerau 1964)."""
    if one == other or abs(len(one) - len(other)) > 1 or min(len(one), len(other)) < 4:
        return False
    start = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    a, b = one[start:], other[start:]
    if len(a) == len(b):
        return a[1:] == b[1:] or (a[:2] == b[:2][::-1] and a[2:] == b[2:])
    return a[1:] == b or a == b[1:]
