"""Whether an amount of an answer follows from others: as a sum, a share, a multiple, in another currency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from agenteval.detectors.arithmetic import (
    combined,
    mean_of,
    near,
    one_step,
    operands_of,
    product_of,
    rarely_shared,
    scaled,
    share_of,
    two_steps,
)
from agenteval.detectors.dates import Day
from agenteval.detectors.evidence import Evidence
from agenteval.detectors.mentions import mentions_in
from agenteval.detectors.phrases import Phrase
from agenteval.expressions import expression

SMALL = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
FEW = 8
"""Of more operands or values some fit by chance."""


class Beside(NamedTuple):
    """What the agent itself named: amounts in the answer ``here`` and in those ``before`` (which ``said``
    looks up), latest first; the plain numbers of the answer, the nearest first, and those of
    the answer before; its dates so far; what the columns of its tables add up to."""

    here: Sequence[float]
    said: Callable[[], Sequence[float]]
    counts: Sequence[float]
    earlier: Sequence[float]
    days: Sequence[Day]
    totals: Callable[[], Sequence[float]]

    @property
    def before(self) -> Sequence[float]:
        return self.said()


def amount_follows(number: float, phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    return _is_total(number, phrase, evidence, beside) or _is_priced(number, phrase, evidence, beside)


def _is_total(number: float, phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    """Whether an amount is a sum, a difference or a multiple, as far as the words speak of such."""
    if _is_exact_total(number, phrase, beside):
        return True
    if not (phrase.calculated or phrase.compared):
        near_by = operands_of(
            [beside.here[:6], evidence.computed[-2:], beside.before[:3], evidence.asked], 12
        )
        counts = {count for count in beside.counts[:2] if 1 < count <= 60}
        return one_step(number, near_by, counts) or number in evidence.leaves.amounts().sums
    counts = {*SMALL, *(count for count in beside.counts if 1 < count <= 20)}
    if _PER_TIME.search(phrase.clause):
        counts |= {12.0, 52.0, 7.0, 30.0, 365.0}
    if two_steps(number, operands_of([beside.here, evidence.computed[-2:], beside.before], 8), counts):
        return True
    if _is_of_thing(number, phrase, evidence, beside):
        return True
    few = evidence.few(8)
    if combined(number, beside.here) or any(one_step(number, group, counts) for group in few):
        return True
    near_by = operands_of([beside.here[:4], beside.counts[:5], evidence.asked, *few], 16)
    if len(near_by) < 16 and (product_of(number, near_by, 2) or product_of(100 * number, near_by, 0)):
        return True
    operands = operands_of([beside.here, beside.before, evidence.amounts_told, evidence.asked], 20)
    spread = ((one, by) for one in beside.before[:4] for by in beside.counts[:3] if by > 1)
    if any(near(number, one / by, phrase.mention.decimals) for one, by in spread):
        return True
    shared = beside.here[:4] if phrase.averaged or phrase.foreign else ()
    if any(near(number, one / by, phrase.mention.decimals) for one in shared for by in SMALL):
        return True
    if any(near(number, sum(values), 2) for values in evidence.leaves.series() if len(values) <= FEW):
        return True
    if any(near(number, a * b * c, 2) for a in beside.here[:4] for b in counts for c in beside.counts[:4]):
        return True
    few_times = [1, 2, 3, 4, 5, *counts]
    if one_step(number, operands, counts) or evidence.paired(number, few_times, compared=phrase.compared):
        return True
    if evidence.paired(100 * number, few_times, compared=phrase.compared):  # fields in cents
        return True
    return share_of(number, operands, evidence.percents(), phrase.mention.decimals)


def _is_exact_total(number: float, phrase: Phrase, beside: Beside) -> bool:
    """Whether an amount is to the cent what others of the answers add up to: by chance that is rare, whatever
    the words. About so much may be a rounded difference."""
    if phrase.hedged and any(
        near(number, a - b, phrase.mention.decimals) for a in beside.here[:6] for b in beside.here[:6]
    ):
        return True
    if phrase.mention.decimals < 2 and not phrase.calculated:
        return False
    return combined(number, beside.here, digits=5) or combined(
        number, [*beside.here[:3], *beside.before[:4]], digits=5
    )


def _is_of_thing(number: float, phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    """Whether an amount comes from those that results have of the thing in its sentence: by the difference of
    two, or by adding one that was told, once or for each of several: (31 and a fee of 45) for two."""
    if phrase.compared:
        named = {name.lower() for name in _CAPITALS.findall(phrase.clause)}
        own = _amounts_of(named, evidence)
        if len(own) < FEW and any(near(number, a - b, 2) for a in own for b in own):
            return True
    things = {other.text.lower() for other in mentions_in(phrase.clause) if other.kind == "identifier"}
    own = _amounts_of(things, evidence)
    told = operands_of([beside.here, evidence.amounts_told], FEW)
    times = {1.0, *(float(count) for count in evidence.leaves.counts if 1 < count < 10)}
    return any(near(number, by * (one + fee), 2) for one in own for fee in told for by in times)


def _amounts_of(names: set[str], evidence: Evidence) -> list[float]:
    leaves = evidence.leaves.of(names, "money") if names else ()
    return operands_of([[leaf.mention.numbers[0] for leaf in leaves if leaf.mention.numbers]], FEW)


_CAPITALS = expression(r"[A-ZÄÖÜ][\w&'-]*(?: [A-ZÄÖÜ][\w&'-]*)*")


def _is_priced(number: float, phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    """Whether an amount is a mean, a share by a percentage of its clause (tax, fee, discount; before or
    after it), or another currency at a rate that was told."""
    decimals = phrase.mention.decimals
    if (phrase.calculated or phrase.averaged) and decimals and _is_rate(number, evidence, decimals):
        return True
    amounts = [beside.here, beside.before[:6], evidence.computed[-2:], sorted(evidence.amounts_told)]
    if phrase.averaged and any(mean_of(number, values, decimals) for values in evidence.leaves.series()):
        return True
    shares = [number, *(number - one for one in beside.here[:4] if one < number)]
    if phrase.percents and any(share_of(one, beside.here[:4], phrase.percents, decimals) for one in shares):
        return True  # $500 and 20 % of $1,300
    if phrase.percents and share_of(
        number, operands_of([*amounts, *evidence.few(12, 1), evidence.asked], 24), phrase.percents, decimals
    ):
        return True
    wholes = operands_of([beside.here[:6], *evidence.leaves.amounts().fields], 60)
    if rarely_shared(number, wholes, operands_of([sorted(evidence.percents())], 12), decimals):
        return True
    rates = evidence.rates()
    if not rates:
        return False
    operands = operands_of([*amounts, evidence.asked, beside.counts, *evidence.few(8)], 24)
    return scaled(number, operands, rates, decimals)


def _is_rate(number: float, evidence: Evidence, decimals: int) -> bool:
    """Whether it is what the sum of one field is by the sum of another: the mean order of all months."""
    sums = [sum(values) for values in evidence.leaves.series()][-FEW:]
    return any(near(number, one / other, decimals) for one in sums for other in sums if other)


_PER_TIME = expression(
    r"(?i)year|annual|month|week|dai|day|night|jahr|monat|woche|tag|nacht|\ban\b|mois|jour|nuit|semaine|"
    r"año|mes\b|d[ií]a|seman|noche|\bano\b|mês|noite|[年月周天日週泊]"
)
