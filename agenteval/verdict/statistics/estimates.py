"""Statistics of the epochs of one scenario: counts, confidence intervals, pass@k and pass^k, stability or
flakiness."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import comb, sqrt
from typing import NamedTuple

from agenteval.verdict.statistics.distributions import (
    binomial_at_least,
    binomial_at_most,
    normal_quantile,
    root_of,
)
from agenteval.verdict.statistics.rate_test import StatisticalOutcome


@dataclass(frozen=True)
class Tally:
    """The counts for ``planned`` epochs. Of these, ``decided`` have an outcome and ``successes`` succeeded;
    all other planned epochs are missing.

    Raise ``ValueError`` unless 0 <= successes <= decided <= planned."""

    successes: int
    decided: int
    planned: int

    def __post_init__(self) -> None:
        if not 0 <= self.successes <= self.decided <= self.planned:
            raise ValueError("a tally requires 0 <= successes <= decided <= planned")

    @classmethod
    def of(cls, outcomes: Iterable[bool | None]) -> Tally:
        """Count outcomes. ``None`` stands for a missing outcome."""
        known = list(outcomes)
        return cls(known.count(True), len(known) - known.count(None), len(known))

    @property
    def missing(self) -> int:
        return self.planned - self.decided

    @property
    def rate(self) -> Fraction | None:
        """The exact success rate of the decided epochs, or ``None`` if no epoch was decided."""
        return Fraction(self.successes, self.decided) if self.decided else None

    def worst(self) -> Tally:
        """Return the counts as if all missing epochs had failed."""
        return Tally(self.successes, self.planned, self.planned)

    def best(self) -> Tally:
        """Return the counts as if all missing epochs had succeeded."""
        return Tally(self.successes + self.missing, self.planned, self.planned)


class Interval(NamedTuple):
    low: float
    high: float


def wilson(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """Return the Wilson score interval (confidence interval) of a rate; if there are no samples, return [0,
    1]. The interval is for display, not for a gate, because an interval that is read after the fact does not
    guarantee an error rate.

    Wilson, E. B. (1927), "Probable inference, the law of succession, and statistical inference", JASA 22."""
    if not n:
        return Interval(0.0, 1.0)
    rate = successes / n
    z = normal_quantile((1 + confidence) / 2)
    variance = rate * (1 - rate) / n
    return Interval(
        max(0.0, rate - score_reach(variance, n, lean=2 * rate - 1, z=z)),
        min(1.0, rate + score_reach(variance, n, lean=1 - 2 * rate, z=z)),
    )


def score_reach(variance: float, n: float, *, lean: float, z: float) -> float:
    """Return the distance between Wilson's bound and an estimate with this variance, based on ``n`` epochs.

    ``lean`` in [-1, 1] is the side to which the outcomes are skewed; at 1, they may spread more widely on the
    side of the bound. The terms of order 1/n keep the interval from collapsing if no variance was observed
    (all passed or all failed)."""
    half_term = z * z / (2 * n)
    return max(0.0, (lean * half_term + sqrt(z * z * variance + half_term * half_term)) / (1 + z * z / n))


def clopper_pearson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return the exact confidence interval of a rate. For every rate and every n, the interval contains the
    true rate with at least the stated probability.

    Clopper, C. J. & Pearson, E. S. (1934), "The use of confidence or fiducial limits illustrated in the case
    of the binomial", Biometrika 26."""
    tail = (1 - confidence) / 2
    low = high = 0.0
    if successes > 0:
        low = root_of(lambda p: binomial_at_least(successes, n, p) - tail, 0.0, 1.0)
    if successes < n:
        high = root_of(lambda p: tail - binomial_at_most(successes, n, p), 0.0, 1.0)
    return Interval(low, high if successes < n else 1.0)


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Estimate pass@k without bias: the probability that at least one of ``k`` epochs succeeds, given ``c``
    successes in ``n`` epochs. Return ``None`` (not estimable) if n < k. ``n`` must have been fixed in
    advance.

    Chen, M. et al. (2021), "Evaluating large language models trained on code", arXiv 2107.03374: the share of
    the subsets of size k that contain a success."""
    return None if n < k else float(1 - _share_of_subsets(n, n - c, k))


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Estimate pass^k without bias: the probability that all of ``k`` epochs succeed, given ``c`` successes
    in ``n`` epochs. Return ``None`` (not estimable) if n < k. ``n`` must have been fixed in advance.

    Yao, S. et al. (2024), "tau-bench", arXiv 2406.12045: the share of the subsets of size k that contain only
    successes."""
    return None if n < k else float(_share_of_subsets(n, c, k))


def _share_of_subsets(n: int, c: int, k: int) -> Fraction:
    if k < 1 or not 0 <= c <= n:
        raise ValueError("k counts from 1, and 0 <= c <= n")
    return Fraction(comb(c, k), comb(n, k))


class Bounds(NamedTuple):
    """An estimate, and its values in the worst and the best case for missing epochs."""

    estimate: float | None
    """The estimate based on the decided epochs, or ``None`` if they do not allow an estimate."""
    low: float
    """The value if all missing epochs had failed."""
    high: float
    """The value if all missing epochs had succeeded."""

    def compare(self, at_least: float) -> StatisticalOutcome:
        """Check whether the estimate reaches ``at_least``. The result is undecided if the missing epochs
        could change it."""
        if self.low >= at_least:
            return StatisticalOutcome.ACCEPT
        return StatisticalOutcome.REJECT if self.high < at_least else StatisticalOutcome.UNDECIDED


def pass_hat_k_bounds(tally: Tally, k: int) -> Bounds | None:
    """Return pass^k for one scenario, with bounds that assume the worst and the best outcome for missing
    epochs. Return ``None`` if fewer than ``k`` epochs were planned."""
    if tally.planned < k:
        return None
    worst, best = tally.worst(), tally.best()
    return Bounds(
        estimate=pass_hat_k(tally.decided, tally.successes, k),
        low=float(_share_of_subsets(worst.planned, worst.successes, k)),
        high=float(_share_of_subsets(best.planned, best.successes, k)),
    )


def mean_pass_hat_k(tallies: Sequence[Tally], k: int) -> Bounds | None:
    """Return the mean of pass^k across scenarios. Return ``None`` if any scenario has fewer than ``k``
    planned epochs or if there are no scenarios."""
    if not tallies or any(tally.planned < k for tally in tallies):
        return None
    known = all(tally.decided >= k for tally in tallies)
    return Bounds(
        estimate=_mean_share([(t.decided, t.successes) for t in tallies], k) if known else None,
        low=_mean_share([(t.planned, t.worst().successes) for t in tallies], k),
        high=_mean_share([(t.planned, t.best().successes) for t in tallies], k),
    )


def _mean_share(counts: Sequence[tuple[int, int]], k: int) -> float:
    return float(sum(_share_of_subsets(n, c, k) for n, c in counts) / len(counts))


class Stability(StrEnum):
    """The stability of a scenario: whether all epochs had the same outcome."""

    STABLE_PASS = "stable pass"
    FLAKY = "flaky"
    STABLE_FAIL = "stable fail"
    UNKNOWN = "not known"
    """Fewer than two epochs were decided and their outcomes do not differ, or the result depends on a missing
    epoch."""


def stability(tally: Tally) -> Stability:
    """Classify a scenario as stable or flaky by whether all of its epochs had the same outcome. A single
    epoch cannot show stability, and a missing epoch may hide a difference."""
    if 0 < tally.successes < tally.decided:
        return Stability.FLAKY
    if tally.missing or tally.decided < 2:
        return Stability.UNKNOWN
    return Stability.STABLE_PASS if tally.successes else Stability.STABLE_FAIL
