"""Which value of a thing a sentence gives wrongly: it speaks of the thing, and one of its values is missing.

A sentence that names an entry of a result, or gives others of its values, is about that entry. If it then
gives a value that nothing supports, and the entry has one of the same kind that the answer does not give,
one stands for the other: ``Ridge tent: $498`` where the tool had ``{"name": "Ridge tent", "price": 249}``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from agenteval.detectors.arithmetic import near
from agenteval.detectors.entries import Entries, Leaf, values_of
from agenteval.detectors.evidence import NOW, Evidence
from agenteval.detectors.fields import text_stems
from agenteval.detectors.mentions import Mention
from agenteval.detectors.opposition import GENERIC, bare, is_slip, may_be_one
from agenteval.detectors.phrases import Answer, Phrase
from agenteval.detectors.values import stands_in

SURE = 2
"""What a rare name counts, or two values."""
_FEW = 3
"""A text that more entries have says little of which one is meant."""

_MOST = 3_000
"""Of more values some fit by chance."""
_ANY = GENERIC | {"total", "price"}
"""Stems that say only what kind of value it is."""
_OF_TIME = frozenset({"day", "days", "hour", "week", "mont", "year", "minu", "busi", "work"})
"""How the units of lengths of time begin: things rarely have them as fields, policies are full of them."""


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
        if self.slip:
            return self.told >= SURE / 2
        is_moment = self.leaf.mention.kind in {"date", "time"}
        return self.told >= (SURE if self.named else SURE + 1 if is_moment else 2 * SURE)


def missing(phrase: Phrase, answer: Answer, evidence: Evidence, *, sure: bool) -> Missing | None:
    """The value of an entry of the evidence in whose place the phrase has another one, if there is one that
    fits better than all others. ``sure``: only if nothing else can be meant."""
    if sure and (phrase.asked or phrase.hedged or phrase.mention.unit[:4] in _OF_TIME):
        return None
    candidates = _candidates(phrase, evidence)
    others = _others(phrase, answer)
    told = _told(phrase, others, evidence.leaves.entries()) if candidates else {}
    if not candidates or (sure and max(told.values(), default=0) < SURE):
        return None
    found: list[tuple[float, Missing]] = []
    for leaf in candidates:
        tells = told.get(evidence.leaves.entries().place(leaf), 0)
        slip = _is_slip(phrase.mention, leaf.mention)
        if (tells or slip) and _may_stand_for(phrase, leaf, others, evidence):
            this = Missing(leaf, tells, not phrase.label.isdisjoint(leaf.own), slip)
            is_alike = phrase.mention.kind != "money" or leaf.is_amount
            found.append((tells + this.named + 2 * slip + is_alike, this))
    most = max((score for score, _ in found), default=0)
    best = [this for score, this in found if score == most]
    if len({this.leaf.mention[4:9] for this in best}) != 1 or (sure and not best[-1].sure):
        return None
    return best[-1]


def slipped(phrase: Phrase, answer: Answer, evidence: Evidence) -> Leaf | None:
    """The value of the entry that the phrase speaks of, if the phrase has a slip of it."""
    slips = [leaf for leaf in _candidates(phrase, evidence) if _is_slip(phrase.mention, leaf.mention)]
    if not slips or phrase.asked or phrase.hedged:
        return None
    entries, others = evidence.leaves.entries(), _others(phrase, answer)
    told = _told(phrase, others, entries)
    found = [
        leaf for leaf in slips if told.get(entries.place(leaf), 0) >= SURE or phrase.label & leaf.own - _ANY
    ]
    found = [leaf for leaf in found if _may_stand_for(phrase, leaf, others, evidence)]
    return found[-1] if len({leaf.mention[4:9] for leaf in found}) == 1 else None


def _candidates(phrase: Phrase, evidence: Evidence) -> list[Leaf]:
    leaves, kind = evidence.leaves, phrase.mention.kind
    if len(leaves) > _MOST:
        return []
    if kind != "money":
        return leaves.comparable(kind)
    # An amount may also stand under a key that does not say that it is one.
    return leaves.comparable("money") + leaves.comparable("plain")


def _others(phrase: Phrase, answer: Answer) -> list[Mention]:
    return [other for other in answer.mentions if other.start != phrase.mention.start]


def _may_stand_for(phrase: Phrase, leaf: Leaf, others: Iterable[Mention], evidence: Evidence) -> bool:
    """Whether the leaf may be meant: the answer gives it nowhere else, and it is of the same order."""
    kind = phrase.mention.kind
    if any(_gives(kind, other, leaf) for other in others) or evidence.sources[leaf.source].name == NOW:
        return False
    return kind not in {"number", "money"} or may_be_one(phrase.mention, leaf)


def elsewhere(phrase: Phrase, answer: Answer, evidence: Evidence) -> Leaf | None:
    """What the entry that the phrase speaks of has in the field from which the value comes: that of another
    entry of the same result, which the sentence does not speak of."""
    mention, leaves = phrase.mention, evidence.leaves
    kinds = ("money", "decimal") if mention.kind == "money" else (mention.kind,)
    if len(leaves) > _MOST:
        return None
    alike = [leaf for kind in kinds for leaf in leaves.comparable(kind)]
    holders = [leaf for leaf in alike if _gives(mention.kind, mention, leaf)]
    if not holders:
        return None
    entries = leaves.entries()
    others = _others(phrase, answer)
    told = _told(phrase, others, entries)
    most = max(told.values(), default=0)
    of_holders = max(told.get(entries.place(leaf), 0) for leaf in holders)
    if most < SURE + 1 or of_holders > (most / 2 if most >= 2 * SURE else 0.5):
        return None  # nothing is surely spoken of, or what has the value may be
    fields = {(leaf.label, leaf.source) for leaf in holders if entries.is_field(leaf)}
    found = [
        leaf
        for leaf in alike
        if told.get(entries.place(leaf)) == most and (leaf.label, leaf.source) in fields
    ]
    if any(_gives(mention.kind, other, leaf) for leaf in found for other in (mention, *others)):
        return None
    return found[-1] if len({leaf.mention[4:9] for leaf in found}) == 1 else None


def _told(phrase: Phrase, others: Iterable[Mention], entries: Entries) -> dict[int, float]:
    """How much of each entry the sentence of the phrase gives or names, but for the value itself: what few
    entries have counts more, and so do long values."""
    if phrase.clause not in entries.named_in:
        entries.named_in[phrase.clause] = _named(phrase.clause, entries)
    told = entries.named_in[phrase.clause].copy()
    for other in others:
        if phrase.at <= other.start < phrase.at + len(phrase.clause):
            for value in values_of(other):
                for place in set(entries.by_value.get(value, ())):
                    told[place] = told.get(place, 0) + (1 if len(other.text) > 2 else 0.5)
    return told


def _named(clause: str, entries: Entries) -> dict[int, float]:
    told: defaultdict[int, float] = defaultdict(float)
    low, words = clause.lower(), text_stems(clause)
    for name, places in entries.by_name.items():
        if tells := _tells_name(name, low, words, rare=len(places) <= _FEW):
            for place in places:
                told[place] += tells
    for place, entry in enumerate(entries.all):
        if entry.sentence and len(shared := _stems(entry.sentence) & words) > 1:
            told[place] += 0.5 * len(shared)
    return dict(told)


def _tells_name(name: str, low: str, words: frozenset[str], *, rare: bool) -> float:
    if name in low:
        return (2 if rare else 0.5) if stands_in(name, low) else 0
    stems = _stems(name) if rare else frozenset()
    return 1 if stems and 2 * len(words & stems) >= len(stems) else 0


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
    """Whether a character was changed, lost or added, digits changed places, or the decimal point moved."""
    by = 1.0
    if mention.numbers and other.numbers and other.numbers[0]:
        by = mention.numbers[0] / other.numbers[0]
        if mention.kind == "percent" and other.kind == "number" and other.numbers[0] < 1:
            return is_slip(f"{mention.numbers[0]:g}", f"{100 * other.numbers[0]:.10g}")
        if not 0.1 <= by <= 10:
            return False
    text, told = bare(mention.text), bare(other.text)
    if is_slip(text, told) or (len(told) == 3 and text != told and sorted(text) == sorted(told)):
        return True
    return by == 10 and other.numbers[0] >= 100
