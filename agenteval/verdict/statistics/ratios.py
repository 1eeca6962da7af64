"""Estimate the ratio of a number (such as cost or latency) between two runs of the same scenarios.

Two ratios are estimated, and a statement must hold for both. The ratio *of the means* compares the totals, in
which large scenarios have the greatest weight. The ratio *of a scenario* is the geometric mean of the
scenarios' own ratios, in which each scenario has the same weight. Each ratio alone can mislead in cases in
which the other does not: a few large scenarios determine the first, and a rare doubling hardly affects the
second. The unit is the scenario, not the epoch: Miller, E. (2024), arXiv 2411.00640.

Intervals are Student's t intervals on logarithms. Each end is a separate test: Schuirmann, D. J. (1987), "A
comparison of the two one-sided tests procedure and the power approach", J. Pharmacokinet. Biopharm. 15. The
geometric mean follows Fleming, P. J. & Wallace, J. J. (1986), "How not to lie with statistics", CACM 29. The
variance of a ratio of means is linearized: Cochran (1977), "Sampling techniques", 6.3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp, fsum, inf, log, log1p, sqrt
from typing import NamedTuple

from agenteval.verdict.statistics.distributions import student_t_quantile
from agenteval.verdict.statistics.rate_test import StatisticalOutcome

_NOT_NOTHING = 0.5
"""The amount added to both sides if either side is zero (Gart 1966), because a ratio to zero is undefined."""
_MOST_SCENARIOS = 2000


class Side(NamedTuple):
    """The values for one scenario in one run, one value for each conversation."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fsum(self.values) / len(self.values)


class RatioPair(NamedTuple):
    """The values for one scenario in both runs. Neither side is empty, and no value is negative."""

    scenario: str
    before: Side
    after: Side


class Ratio(NamedTuple):
    """The ratio of a number between two runs."""

    value: float
    """The ratio of the means."""
    of_a_scenario: float
    """The geometric mean of the scenarios' own ratios."""
    low: float
    """A lower bound on both true ratios, at the requested confidence. A single scenario provides no
    information."""
    high: float
    """An upper bound on both true ratios, at the requested confidence."""
    spread: float
    """The standard deviation of the scenarios' contributions, on a logarithmic scale."""
    scenarios: int

    def against(self, bound: float) -> StatisticalOutcome:
        """Determine whether the ratio is certainly below ``bound``, certainly above it, or neither."""
        if self.high < bound:
            return StatisticalOutcome.ACCEPT
        return StatisticalOutcome.REJECT if self.low > bound else StatisticalOutcome.UNDECIDED


def ratio_of(pairs: Sequence[RatioPair], confidence: float = 0.95) -> Ratio:
    """Estimate the ratio between two runs. Raise ``ValueError`` if there are no scenarios."""
    if not pairs:
        raise ValueError("a ratio requires at least one scenario")
    means = sorted((pair.before.mean, pair.after.mean) for pair in pairs)
    logs, of_means, parts = [_log_ratio(*pair) for pair in means], *_of_means(means)
    n, typical = len(means), fsum(logs) / len(means)
    spread = max(_deviation([each - typical for each in logs]), _deviation(parts))
    if n < 2:
        return Ratio(exp(of_means), exp(typical), 0.0, inf, spread, n)
    ends = [(typical, _deviation([each - typical for each in logs])), (of_means, _deviation(parts))]
    leaps = _unseen_leaps(logs, pairs, confidence)
    reaches = [(centre, max(leaps, _reach(scatter, n, confidence))) for centre, scatter in ends]
    low, high = min(at - reach for at, reach in reaches), max(at + reach for at, reach in reaches)
    return Ratio(exp(of_means), exp(typical), exp(low), exp(high), spread, n)


def _log_ratio(before: float, after: float) -> float:
    if bool(before) != bool(after):
        before, after = before + _NOT_NOTHING, after + _NOT_NOTHING
    return log(after / before) if before else 0.0


def _of_means(means: Sequence[tuple[float, float]]) -> tuple[float, list[float]]:
    """Return the logarithm of the ratio of the means, and the influence of each scenario on the ratio."""
    before, after = (fsum(side) / len(means) for side in zip(*means, strict=True))
    if not before and not after:
        return 0.0, [0.0] * len(means)
    more = 0.0 if before and after else _NOT_NOTHING
    first, second = before + more, after + more
    return log(second / first), [(new - after) / second - (old - before) / first for old, new in means]


def _deviation(parts: Sequence[float]) -> float:
    """Return the standard deviation of contributions whose mean is zero."""
    return sqrt(fsum(part**2 for part in parts) / (len(parts) - 1)) if len(parts) > 1 else 0.0


def _reach(spread: float, n: int, confidence: float) -> float:
    return student_t_quantile(confidence, n - 1) * spread / sqrt(n)


def _unseen_leaps(logs: Sequence[float], pairs: Sequence[RatioPair], confidence: float) -> float:
    """Return the additional interval width for jumps that were not observed.

    If half of the ratios are equal, the numbers are integers or constants, and their spread is uninformative,
    because they remain the same until they jump. The share of jumps to twice the value, which did not occur
    in any of these conversations, is at most the bound of Clopper & Pearson (1934)."""
    if 2 * max(Counter(round(each, 12) for each in logs).values()) < max(len(logs), 3):
        return 0.0
    conversations = min(sum(len(p.before.values) for p in pairs), sum(len(p.after.values) for p in pairs))
    return log1p(1 - (1 - confidence) ** (1 / conversations))


class Quotient(NamedTuple):
    """The contribution of one scenario to the numerator and the denominator of a quotient, such as cost per
    success."""

    top: float
    bottom: float


class QuotientRatio(NamedTuple):
    """The quotients of two runs and the ratio between them. There are no bounds if there is only one scenario
    or if one quotient is zero."""

    before: float
    after: float
    ratio: float | None
    low: float | None
    high: float | None


def ratio_of_quotients(pairs: Sequence[tuple[Quotient, Quotient]], confidence: float = 0.95) -> QuotientRatio:
    """Compare quotients of sums, linearized like the ratio of means. Raise ``ValueError`` if a denominator
    sums to zero."""
    tops = [fsum(each) for each in zip(*((old.top, new.top) for old, new in pairs), strict=True)]
    bottoms = [fsum(each) for each in zip(*((old.bottom, new.bottom) for old, new in pairs), strict=True)]
    if not all(bottoms):
        raise ValueError("the denominators of a quotient must not sum to zero")
    n, (before, after) = len(pairs), (top / bottom for top, bottom in zip(tops, bottoms, strict=True))
    if n < 2 or not before or not after:
        return QuotientRatio(before, after, after / before if before else None, None, None)
    parts = [
        n * (new.top / tops[1] - new.bottom / bottoms[1] - old.top / tops[0] + old.bottom / bottoms[0])
        for old, new in pairs
    ]
    reach, ratio = _reach(_deviation(parts), n, confidence), after / before
    return QuotientRatio(before, after, ratio, ratio * exp(-reach), ratio * exp(reach))


def scenarios_to_decide(found: Ratio, bound: float, confidence: float = 0.95) -> int | None:
    """Return the approximate number of scenarios with this spread that would separate the bound from the
    ratio. Return ``None`` if no realistic number would be enough."""
    gaps = [log(bound) - log(each) for each in (found.value, found.of_a_scenario)]
    if gaps[0] * gaps[1] <= 0:
        return None  # one is above the bound, the other below
    n = max(2, found.scenarios)
    while n <= _MOST_SCENARIOS:
        n += max(1, n // 20)
        if _reach(found.spread, n, confidence) < min(map(abs, gaps)):
            return n
    return None


def scatter_decided(scenarios: int, bound: float, confidence: float = 0.95) -> float | None:
    """Return the largest scatter (standard deviation of the log ratios) at which an unchanged agent meets the
    bound in half of all runs. Return ``None`` for a single scenario, which provides no information."""
    if scenarios < 2:
        return None
    return max(0.0, log(bound)) * sqrt(scenarios) / student_t_quantile(confidence, scenarios - 1)
