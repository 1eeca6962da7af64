"""The evidence that an unsupported value stands against."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from agenteval.detectors.arithmetic import near
from agenteval.detectors.clocks import other_zone
from agenteval.detectors.dates import Day
from agenteval.detectors.elapsed import relative_days
from agenteval.detectors.entries import Leaf, kinds_of
from agenteval.detectors.evidence import Evidence
from agenteval.detectors.fields import is_rate
from agenteval.detectors.leaves import Leaves
from agenteval.detectors.mentioned import mentions_of
from agenteval.detectors.mentions import Mention
from agenteval.detectors.phrases import Phrase
from agenteval.detectors.sources import NOW
from agenteval.detectors.units import are_other_units
from agenteval.expressions import expression


def opposing(phrase: Phrase, named: Collection[str], evidence: Evidence) -> Leaf | None:
    """The value of the evidence that the phrase is about and gives otherwise, or ``None``. ``named``: the
    things that are spoken of around it."""
    if phrase.mention.kind == "identifier":
        return _misspelt(phrase, evidence)
    if phrase.mention.kind == "number" and not evidence.leaves.may_have_number(
        lambda own, above: _names_number(phrase.label, own, above)
    ):
        return None
    about = {id(leaf) for leaf in evidence.leaves.of(named)}
    relative = phrase.mention.kind == "date" and relative_days(evidence)
    best: Leaf | None = None
    best_score = (0, False, False, -99)
    others = [
        other for other in mentions_of(phrase.clause) if other.start != phrase.mention.start - phrase.at
    ]
    kind, label = phrase.mention.kind, phrase.label
    for leaf in evidence.leaves.comparable(kind):
        if label.isdisjoint(leaf.own) and label.isdisjoint(leaf.above) and id(leaf) not in about:
            if kind != "percent":
                continue  # the quick look, since most are not what is spoken of
        elif kind == "number" and not may_be_one(phrase.mention, leaf):
            continue
        score = _score(phrase, leaf, id(leaf) in about)
        if not score or (phrase.asked and score < 3):
            continue  # a question may propose any amount
        if kind == "percent" and is_share(phrase.mention, leaf):
            return None
        if evidence.sources[leaf.source].name == NOW or any(is_given(leaf, other) for other in others):
            continue  # no fact that answers are about, or one that the sentence gives rightly
        if relative and id(leaf) not in about and phrase.label.isdisjoint(leaf.own - GENERIC):
            continue  # a calendar may have given it
        # Of equals the one that it is a slip of, that is named, whose name says least; then the latest.
        slip = is_slip(bare(phrase.mention.text), bare(leaf.mention.text))
        rank = (score, slip, id(leaf) in about, -len(leaf.own - phrase.label))
        if rank >= best_score:
            best, best_score = leaf, rank
    if best is None or id(best) in about or best_score[1]:
        return best
    return best if _is_alone(phrase, best, evidence) else None


def is_share(mention: Mention, leaf: Leaf) -> bool:
    """Whether a percentage is the leaf, which is a fraction: 21 % are 0.21."""
    return leaf.mention.kind == "number" and any(
        near(mention.numbers[0], 100 * number, mention.decimals)
        for number in leaf.mention.numbers[:1]
        if number <= 1
    )


def _is_alone(phrase: Phrase, leaf: Leaf, evidence: Evidence) -> bool:
    """Whether the name that the phrase shares with ``leaf`` says which value is meant: no other one was given
    under it, and in a sentence it is more than one word."""
    shared = phrase.label & (leaf.own | leaf.above)
    if (
        " " in leaf.label
        and len(shared) < 2
        and not (
            (phrase.mention.kind == "number" or (phrase.mention.kind == "percent" and not phrase.compared))
            and leaf.mention.unit
            and leaf.mention.unit == phrase.mention.unit
        )
    ):
        return False
    named = shared - GENERIC
    rivals = [
        other
        for other in comparable(phrase.mention, evidence.leaves)
        if named <= other.own | other.above and other.mention[4:9] != leaf.mention[4:9]
    ]
    return bool(named) and (not rivals or (_is_plain(phrase) and _are_few(rivals, leaf)))


_FEW = 6


def _is_plain(phrase: Phrase) -> bool:
    """Whether nothing in the words says that the value is more than looked up."""
    return not (phrase.hedged or phrase.compared or phrase.hypothetical or phrase.calculated)


def _are_few(rivals: Collection[Leaf], leaf: Leaf) -> bool:
    """Whether it is only a few values, written as the leaf is, that may be meant in its place."""
    return len({other.mention.numbers for other in rivals}) <= _FEW and all(
        other.mention[5:9] == leaf.mention[5:9] for other in rivals
    )


def is_sure(phrase: Phrase, leaf: Leaf, named: Collection[str], evidence: Evidence) -> bool:
    """Whether no arithmetic that code does not follow can be behind the other value: it is a slip of the one
    that was given, or it is stated, without a word of calculation, for a field that one thing has."""
    if is_slip(bare(phrase.mention.text), bare(leaf.mention.text)):
        return True
    if are_other_units(phrase.mention.unit, phrase.right, leaf.mention.unit, leaf.label):
        return False
    shared = (phrase.label & (leaf.own | leaf.above)) - GENERIC
    if not shared or phrase.inherited or phrase.compared or phrase.hypothetical:
        return False
    if phrase.calculated and not phrase.is_unit_price:
        return False
    if phrase.mention.kind == "money" and _WILL_BE.search(phrase.left):
        return False  # an amount that is promised need not be the one that there is
    if " " in leaf.label and len(shared) < 2 and phrase.mention.kind == "percent":
        return False  # one word of a sentence says little
    about = {id(other) for other in evidence.leaves.of(named)}
    rivals = [
        other
        for other in comparable(phrase.mention, evidence.leaves)
        if shared <= other.own | other.above and (id(leaf) not in about or id(other) in about)
    ]
    return len(rivals) == len({other.source for other in rivals})


_WILL_BE = expression(r"\b(?:will|['’]ll|going to)\b", re.IGNORECASE)


def is_given(leaf: Leaf, other: Mention) -> bool:
    mine = leaf.mention
    return (
        not {*mine.numbers}.isdisjoint(other.numbers)
        or not {*mine.clocks}.isdisjoint(other.clocks)
        or any(one[1:] == day[1:] for one in mine.days for day in other.days)
    )


def _score(phrase: Phrase, leaf: Leaf, about: bool) -> int:
    """How surely ``leaf``, of the same kind, is what the phrase is about; 0: it is not."""
    own = _shared(phrase.label, leaf.own)
    above = len(phrase.label & leaf.above)
    score = own + above + 2 * about
    match phrase.mention.kind:
        case "date":
            near_by = about and (own > 0 or _close(phrase.mention.days, leaf.mention.days))
            return score + 1 if own > 2 or near_by else 0
        case "money":
            return score if own > 2 or above or about else 0
        case "percent":
            return score + 1 if own or leaf.mention.kind == "percent" else 0
        case "number":
            return score if _names_number(phrase.label, leaf.own, leaf.above) else 0
        case _:
            return score if own > 2 or above or about else 0


def _shared(label: frozenset[str], own: frozenset[str]) -> int:
    """How much of the name of a field is in the label."""
    shared = label & own
    return 3 * len(shared - GENERIC) + len(shared & GENERIC) if shared else 0


def _names_number(label: frozenset[str], own: frozenset[str], above: frozenset[str]) -> bool:
    """Whether a label names the field of a number surely enough: any number may stand in its place."""
    return _shared(label, own) > 2 or len(label & above) > 1


def _close(days: Iterable[Day], others: Iterable[Day]) -> bool:
    """Whether two of the dates differ in one part only, or by a month at most."""
    for one in days:
        for other in others:
            if sum(a != b for a, b in zip(one, other, strict=True) if a) <= 1:
                return True
            if one[0] in {0, other[0]} and abs((one[1] - other[1]) * 30 + one[2] - other[2]) <= 31:
                return True
    return False


def same_kind(mention: Mention, leaf: Leaf) -> bool:
    """Whether the value may stand against the leaf."""
    return mention.kind in kinds_of(leaf) and (mention.kind != "number" or may_be_one(mention, leaf))


def comparable(mention: Mention, leaves: Leaves) -> Iterable[Leaf]:
    """The leaves that the value may stand against; of identifiers, too many are alike."""
    if mention.kind == "identifier":
        return ()
    found = leaves.comparable(mention.kind)
    return [leaf for leaf in found if may_be_one(mention, leaf)] if mention.kind == "number" else found


_UNIT_WORDS = (
    "kg g mg lb oz km m cm mm mi mile miles ft l dl ml kb mb gb tb hz mhz ghz w kw kwh v kcal cal mmol bpm "
    "min hour hours minutes sec seconds ms days nights weeks months percent pct"
)
_UNITS = frozenset(_UNIT_WORDS.split())


def may_be_one(mention: Mention, leaf: Leaf) -> bool:
    """Whether the two may be values of one field: in the same unit, of the same order, and no factor."""
    units = units_in(leaf.label)
    if is_rate(leaf.label) or (units and mention.unit in _UNITS and mention.unit not in units):
        return False
    if not mention.numbers:
        return False
    one, other = mention.numbers[0], leaf.mention.numbers[0]
    return min(one, other) == 0 or max(one, other) / min(one, other) <= _OTHER_ORDER


_OTHER_ORDER = 20


@lru_cache(maxsize=1 << 12)
def units_in(label: str) -> frozenset[str]:
    """The units in the name of a field."""
    return _UNITS.intersection(re.split(r"[^a-z]+", label.lower())) if len(label) <= 40 else frozenset()


PLACED = frozenset({"time", "money", "number", "date"})
"""Kinds of values that ``misplaced`` can tell of."""


def misplaced(phrase: Phrase, named: Collection[str], evidence: Evidence) -> Leaf | None:
    """What the things ``named`` around the phrase have in the field that it speaks of, if they have that
    field and none of their values is the one in the phrase, which was told of something else.

    Calculated amounts are let be, and so are values that the user or the agent's own calls gave.
    """
    mention = phrase.mention
    if not phrase.stated or (mention.numbers and (phrase.calculated or phrase.compared or is_whole(phrase))):
        return None
    if mention.kind == "time" and (
        evidence.given(mention) or other_zone(phrase, evidence) or len(evidence.offsets()) > 1
    ):
        return None
    leaves = [leaf for leaf in evidence.leaves.of(named, mention.kind) if same_kind(mention, leaf)]
    most = 0
    equal_elsewhere = False
    best = None
    for leaf in leaves:
        overlap = _overlap(phrase, leaf)
        if _equal(mention, leaf):
            if overlap or phrase.inherited:
                return None
            equal_elsewhere = True
        elif overlap >= max(most, 1):
            best, most = leaf, overlap
    # The value of another field of the thing: the two were mixed up, if the name is surely this one's.
    if not best or (equal_elsewhere and most < 3):
        return None
    if any(
        _is_rightly_called(phrase, leaf, most, newer=leaf.source > best.source)
        for leaf in comparable(mention, evidence.leaves)
        if _equal(mention, leaf)
    ):
        return None
    return best


def is_whole(phrase: Phrase) -> bool:
    """Whether it is what another number is a part of: the 900 of "858 of 900 kg"."""
    return bool(_PART_OF.search(phrase.left[-24:]))


_PART_OF = expression(
    r"(?i)[0-9]\W{0,3}(?:[^\W\d_]+ ){0,2}(?:of|out of|von|de(?: los| las| un total de)?|sur|di|su|em|/)"
    r"(?: the| den| max\.?)?\s?\W{0,3}$"
)


def _is_rightly_called(phrase: Phrase, leaf: Leaf, most: int, *, newer: bool) -> bool:
    """Whether the value is of another thing, or has been changed since the other was told. ``most``: how much
    the name of that one says."""
    overlap = _overlap(phrase, leaf)
    return overlap > most or (newer and (overlap == most or phrase.mention.kind in {"date", "time"}))


_GENERIC_WORDS = (
    "date day time number quantity hour minute week month year night percen percent pct h hr sec second ms "
    "kg g mg lb oz t km m cm mm mi mile ft l dl ml kb mb gb tb hz mhz ghz w kw kwh v usd eur gbp dollar euro "
    "cent"
)
GENERIC = frozenset(_GENERIC_WORDS.split())
"""Stems that fields of all sorts have in their names: units, and what any number is."""


def _overlap(phrase: Phrase, leaf: Leaf) -> int:
    """How much of the leaf's name is in the phrase: its own words count more than those of the key above
    and than words that any field may have."""
    own = _shared(phrase.label, leaf.own)
    if phrase.mention.kind == "date" and leaf.own <= GENERIC:
        return own + 1
    above = len(phrase.label & leaf.above)
    if not own and (phrase.mention.kind == "date" or (phrase.mention.kind == "number" and above < 2)):
        return 0
    return own + above


def _equal(mention: Mention, leaf: Leaf) -> bool:
    """Whether the leaf is the value, also rounded, a few times it, or half a day off (a time whose half
    of the day is not said)."""
    if mention.kind == "date":
        return any(
            one[1:] == other[1:] and (one[0] == other[0] or not one[0] or not other[0])
            for one in mention.days
            for other in leaf.mention.days
        )
    if mention.kind == "time":
        step = 720 if mention.vague else 1440
        return any((one - other) % step == 0 for one in mention.clocks for other in leaf.mention.clocks)
    if mention.numbers[0] in leaf.mention.numbers:
        return True
    most = 10 if mention.kind == "money" else 2
    return any(
        near(one, other * count, mention.decimals)
        for one in mention.numbers
        for other in leaf.mention.numbers
        for count in range(1, most)
    )


def _misspelt(phrase: Phrase, evidence: Evidence) -> Leaf | None:
    """The identifier of the evidence that the value is a slip of, or that is in the field it names."""
    low = bare(phrase.mention.text)
    beside = {bare(other.text) for other in mentions_of(phrase.clause) if other.kind == "identifier"}
    slips, called = [], None
    for leaf in reversed(evidence.leaves.all()):
        other = leaf.mention
        if other.kind in {"identifier", "number"}:
            text = bare(other.text)
            if text in beside:
                continue  # which the sentence gives rightly
            if is_slip(low, text):
                slips.append(leaf)
            if called is None and shape_of(low) == shape_of(text) and (phrase.label & leaf.own) - GENERIC:
                called = leaf
    return min(slips, key=lambda leaf: _differing(low, bare(leaf.mention.text)), default=called)


_MARKS = expression(r"(?<=[0-9])[,' .)-]+(?=[0-9])|^\W+|\W+$")


@lru_cache(maxsize=1 << 13)
def bare(text: str) -> str:
    """In lower case, without what only groups digits."""
    return _MARKS.sub("", text.lower())


def _differing(text: str, other: str) -> int:
    return sum(a != b for a, b in zip(text, other, strict=False)) + abs(len(text) - len(other))


def shape_of(text: str) -> str:
    """Digits as 0 and letters as a: what two identifiers of one kind share."""
    return re.sub("[^\\W\\d_]", "a", re.sub("[0-9]", "0", text))


def is_slip(text: str, other: str) -> bool:
    """Whether two identifiers differ as a slip makes them: one or two characters changed, two swapped,
    one lost or added; the same shape otherwise."""
    if text == other or min(len(text), len(other)) < 4 or abs(len(text) - len(other)) > 1:
        return False
    if len(text) == len(other):
        differing = [index for index in range(len(text)) if text[index] != other[index]]
        allowed = 2 if len(text) >= 6 else 1
        swapped = sorted(text) == sorted(other) and len(differing) == 2
        return swapped or len(differing) <= allowed
    longer, shorter = (text, other) if len(text) > len(other) else (other, text)
    return any(longer[:index] + longer[index + 1 :] == shorter for index in range(len(longer)))
