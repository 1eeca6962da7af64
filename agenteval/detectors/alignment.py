"""Which value of a thing a sentence gives wrongly: it speaks of the thing, and one of its values is missing.

A sentence that names an entry of a result, or gives others of its values, is about that entry. If it then
gives a value that nothing supports, and the entry has one of the same kind that the answer does not give,
one stands for the other: ``Ridge tent: $498`` where the tool had ``{"name": "Ridge tent", "price": 249}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from agenteval.detectors.arithmetic import near
from agenteval.detectors.evidence import NOW, Evidence
from agenteval.detectors.fields import text_stems
from agenteval.detectors.leaves import Entry, Leaf
from agenteval.detectors.mentions import Mention
from agenteval.detectors.opposition import bare, is_slip, may_be_one
from agenteval.detectors.phrases import Answer, Phrase
from agenteval.detectors.values import stands_in

_SURE = 2
"""What a rare name counts, or two values."""
_FEW = 3
"""A text that more entries have says little of which one is meant."""


class Missing(NamedTuple):
    """A value that an answer should have given. ``told``: how much of its entry the sentence gives or
    names; ``named``: whether the sentence calls the value as the entry does; ``slip``: whether the
    phrase has a slip of it."""

    leaf: Leaf
    told: float
    named: bool
    slip: bool

    @property
    def sure(self) -> bool:
        """Whether the entry is spoken of, and no other value of it can be meant."""
        is_moment = self.leaf.mention.kind in {"date", "time"}
        return self.told >= (_SURE if self.named or self.slip else _SURE + 1 if is_moment else 2 * _SURE)


def missing(phrase: Phrase, answer: Answer, evidence: Evidence, *, sure: bool) -> Missing | None:
    """The value of an entry of the evidence in whose place the phrase has another one, if there is one that
    fits better than all others. ``sure``: only if nothing else can be meant."""
    kind, leaves = phrase.mention.kind, evidence.leaves
    if sure and (phrase.asked or phrase.hedged):
        return None
    wanted = leaves.identities(kind)
    # An amount may also stand under a key that does not say that it is one.
    numbers = leaves.identities("number") if kind in {"number", "money"} else frozenset()
    if not wanted and not numbers:
        return None
    others = [other for other in answer.mentions if other.start != phrase.mention.start]
    sentence = _Sentence(phrase, others, leaves.names())
    if sure and sentence.most < _SURE:
        return None
    found: list[tuple[float, Missing]] = []
    for entry in leaves.entries():
        told = sentence.tells(entry)
        for leaf in entry.leaves:
            alike = id(leaf) in wanted
            if not alike and id(leaf) not in numbers:
                continue
            if id(leaf) in numbers and not may_be_one(phrase.mention, leaf):
                continue
            slip = _is_slip(phrase.mention, leaf.mention)
            if (told or slip) and not any(_gives(kind, other, leaf) for other in others):
                this = Missing(leaf, told, not phrase.label.isdisjoint(leaf.own), slip)
                found.append((told + this.named + 2 * slip + alike, this))
    found = [one for one in found if evidence.sources[one[1].leaf.source].name != NOW]
    most = max((score for score, _ in found), default=0)
    best = [this for score, this in found if score == most]
    if len({this.leaf.mention[4:9] for this in best}) != 1 or (sure and not best[-1].sure):
        return None
    return best[-1]


def elsewhere(phrase: Phrase, answer: Answer, evidence: Evidence) -> Leaf | None:
    """What the entry that the phrase speaks of has in the field from which the value comes: that of another
    entry of the same result, which the sentence does not speak of."""
    mention, leaves = phrase.mention, evidence.leaves
    alike = leaves.identities(mention.kind)
    if mention.kind == "money":
        alike |= leaves.identities("decimal")
    entries = [entry for entry in leaves.entries() if not entry.sentence]
    fields = {
        (leaf.label, leaf.source): entry
        for entry in entries
        for leaf in entry.leaves
        if id(leaf) in alike and _gives(mention.kind, mention, leaf)
    }
    others = [other for other in answer.mentions if other.start != mention.start]
    sentence = _Sentence(phrase, others, leaves.names()) if fields else None
    if not sentence or sentence.most < 2 * _SURE:
        return None
    told = [(sentence.tells(entry), entry) for entry in entries]
    most = max(tells for tells, _ in told)
    if most < 2 * _SURE or any(sentence.tells(holder) > most / 2 for holder in fields.values()):
        return None
    found = [
        leaf
        for tells, entry in told
        if tells == most
        for leaf in entry.leaves
        if (leaf.label, leaf.source) in fields and id(leaf) in alike
    ]
    if any(_gives(mention.kind, other, leaf) for leaf in found for other in (mention, *others)):
        return None
    return found[-1] if len({leaf.mention[4:9] for leaf in found}) == 1 else None


class _Sentence:
    """The sentence of a phrase, but for its value. ``names``: of all entries, and how many have each."""

    def __init__(self, phrase: Phrase, others: Iterable[Mention], names: Mapping[str, int]) -> None:
        first, last = phrase.at, phrase.at + len(phrase.clause)
        self._text = phrase.clause.lower()
        self._words = text_stems(phrase.clause)
        self._names = {name: told for name in names if (told := self._tells_name(name, names[name] <= _FEW))}
        self._values: dict[object, float] = {}
        for other in others:
            if first <= other.start < last:
                for value in _values_of(other):
                    self._values[value] = 1 if len(other.text) > 2 else 0.5

    @property
    def most(self) -> float:
        """What it tells of all entries together, but for what their sentences share with it."""
        return sum(self._names.values()) + sum(self._values.values())

    def tells(self, entry: Entry) -> float:
        """How much of the entry it gives: what few entries have counts more, and so do long values."""
        told = sum(self._names[name] for name in entry.names if name in self._names)
        if entry.sentence and len(shared := _stems(entry.sentence) & self._words) > 1:
            told += 0.5 * len(shared)
        if self._values:
            said = {
                value for leaf in entry.leaves for value in _values_of(leaf.mention) if value in self._values
            }
            told += sum(self._values[value] for value in said)
        return told

    def _tells_name(self, name: str, rare: bool) -> float:
        if name in self._text and stands_in(name, self._text):
            return 2 if rare else 0.5
        stems = _stems(name) if rare else ()
        return 1 if stems and 2 * len(self._words.intersection(stems)) >= len(stems) else 0


def _values_of(mention: Mention) -> Iterator[object]:
    """What it says, comparable across kinds."""
    yield from mention.numbers[:1]
    yield from ((clock,) for clock in mention.clocks)
    yield from (day[1:] for day in mention.days)
    if mention.kind == "identifier":
        yield mention.text.lower()


@lru_cache(maxsize=1 << 12)
def _stems(text: str) -> frozenset[str]:
    return text_stems(text)


def _gives(kind: str, other: Mention, leaf: Leaf) -> bool:
    """Whether ``other`` gives what the leaf has of this kind: of a timestamp, the day or the time."""
    mine = leaf.mention
    if kind == "date":
        return any(one[1:] == day[1:] for one in mine.days for day in other.days)
    if kind == "time":
        step = 720 if other.vague else 1440
        return any((one - clock) % step == 0 for one in mine.clocks for clock in other.clocks)
    return any(near(one, two, other.decimals) for one in other.numbers for two in mine.numbers)


def _is_slip(mention: Mention, other: Mention) -> bool:
    """Whether a character was changed, lost or added, or the decimal point moved."""
    if is_slip(bare(mention.text), bare(other.text)):
        return True
    if not mention.numbers or not other.numbers or other.numbers[0] < 100:
        return False
    return mention.numbers[0] == 10 * other.numbers[0]
