"""The ``no_regression`` gate (a non-inferiority test) and the comparison of two runs.

Both concern *these* scenarios: a change in their mean is compared with the noise of their epochs. The mean of
each run is estimated separately (``suite.MeanRate``), and the two estimates are combined by the
square-and-add rule: Newcombe, R. G. (1998), "Interval estimation for the difference between independent
proportions", Statist. Med. 17; Zou, G. Y. & Donner, A. (2008), "Construction of confidence limits about
effect measures", ibid. 27.

Sign flips and resampled scenarios cannot be used for the decision. Between two reliable runs, all differences
are zero, and both methods then report a change of exactly zero, regardless of how few epochs there were.
Their results are shown for information only."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt
from typing import NamedTuple

from agenteval.verdict.statistics.distributions import student_t_quantile
from agenteval.verdict.statistics.estimates import Interval, Tally
from agenteval.verdict.statistics.paired_tests import (
    Alternative,
    Pair,
    PValue,
    fisher_exact,
    holm,
    mcnemar_of,
    sign_flip_test,
)
from agenteval.verdict.statistics.rate_test import StatisticalOutcome
from agenteval.verdict.statistics.suite import MeanRate, cluster_bootstrap, mean_rate

_MOST_EPOCHS = 10_000
_GROWTH = 1.05
_MOST_FOR_FISHER = 200
"""The number of epochs above which the interval gives almost the same result at a fraction of the cost."""


class Change(StrEnum):
    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    UNDECIDED = "not decided"


class Margins(NamedTuple):
    """The largest drops that do not count as a regression."""

    mean: float
    """The largest drop in the mean that does not count as a regression."""
    scenario: float
    """The largest drop in a single scenario that does not count as a regression."""


class NonInferiority(NamedTuple):
    """The result of ``non_inferiority``, with bounds for the worst and the best outcome of missing epochs."""

    outcome: StatisticalOutcome
    drop: float | None
    """The drop in the mean rate. A negative value is a rise."""
    surely_above: float
    """A lower bound on the true drop, with an error rate of its own (see ``non_inferiority``)."""
    surely_below: float
    """An upper bound on the true drop, with an error rate of its own."""
    dropped: tuple[str, ...]
    """The scenarios that certainly dropped."""
    perhaps: tuple[str, ...]
    """The scenarios with a large observed drop that is not certain."""
    epochs_to_decide: int | None
    """The approximate number of epochs per scenario in each run that would decide the test at the observed
    rates; ``None`` if no number of epochs would decide the test."""


def non_inferiority(pairs: Sequence[Pair], margins: Margins, confidence: float = 0.95) -> NonInferiority:
    """Test for a regression. Accept if the mean drop is certainly below ``margins.mean``, no scenario
    certainly dropped, and no scenario has a large uncertain drop. Reject if the mean drop certainly exceeds
    the margin or any scenario certainly dropped. Otherwise, the result is undecided.

    If the true mean drop is the margin or more, the probability of acceptance is about ``1 - confidence``. If
    nothing dropped, the two grounds for rejection share that probability: half for the mean and half for all
    scenarios together (Fisher's exact tests with Holm's correction). The correction reduces the power of the
    test: among 20 scenarios, a scenario that falls from 5 of 5 to 0 of 5 is not certainly worse. The third
    condition for acceptance is therefore uncorrected; it cannot fail a run (see ``is_large``). Raise
    ``ValueError`` if there are no scenarios or if a scenario has no planned epoch."""
    result = _non_inferiority(pairs, margins, 1 - confidence)
    if result.outcome is not StatisticalOutcome.UNDECIDED or result.drop is None:
        return result
    return result._replace(epochs_to_decide=_epochs_to_decide(pairs, result.perhaps, margins, 1 - confidence))


def regression_outcome(
    pairs: Sequence[Pair], margins: Margins, confidence: float = 0.95
) -> StatisticalOutcome:
    """Return only the outcome of ``non_inferiority``, without searching for the number of epochs that would
    decide the test."""
    return _non_inferiority(pairs, margins, 1 - confidence).outcome


def _non_inferiority(pairs: Sequence[Pair], margins: Margins, alpha: float) -> NonInferiority:
    _check_names(pairs)
    kind, harsh = [pair.kindest() for pair in pairs], [pair.harshest() for pair in pairs]
    above = _drop_interval(kind, alpha / 2, alpha).low
    below = _drop_interval(harsh, alpha / 2, alpha).high
    dropped = _surely_dropped(kind, alpha / 2)
    unsure = {*_surely_dropped(harsh, alpha / 2), *(p.scenario for p in harsh if is_large(p, margins))}
    perhaps = tuple(pair.scenario for pair in pairs if pair.scenario in unsure.difference(dropped))
    if dropped or above > margins.mean:
        outcome = StatisticalOutcome.REJECT
    elif below < margins.mean and not perhaps:
        outcome = StatisticalOutcome.ACCEPT
    else:
        outcome = StatisticalOutcome.UNDECIDED
    drop = _means(pairs).drop if all(pair.difference is not None for pair in pairs) else None
    return NonInferiority(outcome, drop, above, below, dropped, perhaps, None)


def is_large(pair: Pair, margins: Margins) -> bool:
    """Check whether the observed rate fell by more than ``margins.scenario``. The 90% interval contains the
    observed drop, so the interval also extends beyond the margin. A single failure is never a large drop."""
    fall = -(pair.difference or 0)
    return fall > Fraction(str(margins.scenario)) and not is_one_failure(pair)


def drop_interval(pair: Pair) -> Interval:
    """Return the uncorrected 90% interval for the drop in one scenario, assuming the worst and the best
    outcome for missing epochs."""
    tail = 0.05
    low = _drop_interval([pair.kindest()], tail, tail).low
    return Interval(low, _drop_interval([pair.harshest()], tail, tail).high)


def is_one_failure(pair: Pair) -> bool:
    """Check whether nothing would have dropped if one more epoch had succeeded. If both runs have the same
    number of epochs, this means that the second run has at most one more failure."""
    before, after = pair.before, pair.after
    return before.successes * after.decided <= (after.successes + 1) * before.decided


def _check_names(pairs: Sequence[Pair]) -> None:
    if len({pair.scenario for pair in pairs}) < len(pairs):
        raise ValueError("a scenario is paired twice")


class _Means(NamedTuple):
    before: MeanRate
    after: MeanRate
    correlation: float

    @property
    def drop(self) -> float:
        return self.before.value - self.after.value

    def scaled(self, factor: float) -> _Means:
        return _Means(self.before.scaled(factor), self.after.scaled(factor), self.correlation)

    def low(self, level: float) -> float:
        t = self._quantile(level)
        return self.drop - self._join(self.before.reach_low(t), self.after.reach_high(t))

    def high(self, level: float) -> float:
        t = self._quantile(level)
        return self.drop + self._join(self.before.reach_high(t), self.after.reach_low(t))

    def _quantile(self, level: float) -> float:
        return student_t_quantile(1 - level, self.before.degrees + self.after.degrees)

    def _join(self, a: float, b: float) -> float:
        return sqrt(max(0.0, a * a + b * b - 2 * self.correlation * a * b))


def _means(pairs: Sequence[Pair]) -> _Means:
    before, after = mean_rate([p.before for p in pairs]), mean_rate([p.after for p in pairs])
    return _Means(before, after, _correlation(pairs) if all(p.single for p in pairs) else 0.0)


def _correlation(pairs: Sequence[Pair]) -> float:
    """Return the correlation of single outcomes across scenarios, corrected for continuity.

    Newcombe, R. G. (1998), "Improved confidence intervals for the difference between binomial proportions
    based on paired data", Statist. Med. 17, method 10. With several epochs, the noise within each scenario is
    observed and is not shared between the runs."""
    n = len(pairs)
    both = sum(p.before.successes and p.after.successes for p in pairs)
    before, after = sum(p.before.successes for p in pairs), sum(p.after.successes for p in pairs)
    spread = sqrt(before * (n - before) * after * (n - after))
    excess = n * both - before * after
    if not spread or excess <= 0:
        return excess / spread if spread else 0.0
    return max(0.0, excess - n / 2) / spread


def _drop_interval(pairs: Sequence[Pair], level_low: float, level_high: float) -> Interval:
    means = _means(pairs)
    return Interval(max(-1.0, means.low(level_low)), min(1.0, means.high(level_high)))


def _surely_dropped(pairs: Sequence[Pair], level: float) -> tuple[str, ...]:
    """Return the scenarios that dropped, at a joint ``level`` for all scenarios. A single failed epoch is not
    evidence of a drop, even if it is improbable given a baseline of hundreds of epochs."""
    p_values = holm(
        {p.scenario: 1.0 if is_one_failure(p) else fisher_exact(p.before, p.after) for p in pairs}
    )
    return tuple(scenario for scenario, p in p_values.items() if p <= level)


def _epochs_to_decide(
    pairs: Sequence[Pair], perhaps: Sequence[str], margins: Margins, alpha: float
) -> int | None:
    """Return the number of epochs that would decide the test. If the drop in some scenarios is uncertain,
    this number would make one of the drops certain; otherwise, it would decide the comparison of the means.
    """
    if not perhaps:
        return _epochs_for_mean(pairs, margins.mean, alpha)
    levels = Levels(alpha, 0.0, len(pairs))
    found = [_epochs_for_scenario(pair, levels) for pair in pairs if pair.scenario in perhaps]
    return min((n for n in found if n is not None), default=None)


def _epochs_for_mean(pairs: Sequence[Pair], margin: float, alpha: float) -> int | None:
    means, factor = _means(pairs), 1.0
    per_scenario = max(sum(p.before.decided for p in pairs), sum(p.after.decided for p in pairs)) / len(pairs)
    while factor * per_scenario <= _MOST_EPOCHS:
        factor *= _GROWTH
        more = means.scaled(factor)
        if more.high(alpha) < margin or more.low(alpha / 2) > margin:
            return ceil(factor * per_scenario)
    return None


class ScenarioComparison(NamedTuple):
    """The comparison of one scenario between two runs. The p-values are from Fisher's exact test with Holm's
    correction across scenarios, with missing epochs counted against the change."""

    pair: Pair
    change: Change
    low: float
    """The lower bound of the change (after minus before)."""
    high: float
    """The upper bound of the change."""
    p_drop: float
    p_rise: float
    epochs_to_decide: int | None


class Comparison(NamedTuple):
    """The comparison of two runs. ``change``, the bootstrap and the tests are based on the scenarios with a
    decided epoch in both runs. They are ``None`` if there are no such scenarios."""

    change: float | None
    """The change in the mean rate."""
    these_scenarios: Interval
    """The bounds of the change for this set of scenarios."""
    users_like_these: Interval | None
    """The bounds of the change for other scenarios from the same population, by the cluster bootstrap."""
    sign_flip: PValue | None
    """The sign-flip test for any change."""
    mcnemar: float | None
    """McNemar's test for any change, or ``None`` if any scenario does not have exactly one epoch in each
    run."""
    scenarios: tuple[ScenarioComparison, ...]


def compare(
    pairs: Sequence[Pair], confidence: float = 0.95, *, unchanged_within: float = 0.1, seed: int = 0
) -> Comparison:
    """Compare two runs overall and scenario by scenario.

    A scenario is unchanged if a change larger than ``unchanged_within`` can be excluded. A scenario is
    undecided if neither a change nor its absence is shown. Raise ``ValueError`` if there are no scenarios or
    if a scenario has no planned epoch."""
    _check_names(pairs)
    alpha = 1 - confidence
    low = -_drop_interval([pair.harshest() for pair in pairs], alpha / 2, alpha / 2).high
    high = -_drop_interval([pair.kindest() for pair in pairs], alpha / 2, alpha / 2).low
    known = [pair for pair in pairs if pair.difference is not None]
    differences = [pair.difference for pair in known if pair.difference is not None]
    return Comparison(
        change=-_means(known).drop if known else None,
        these_scenarios=Interval(low, high),
        users_like_these=cluster_bootstrap(list(map(float, differences)), confidence, seed=seed)
        if known
        else None,
        sign_flip=sign_flip_test(differences, seed=seed) if known else None,
        mcnemar=mcnemar_of(known),
        scenarios=_compare_scenarios(pairs, alpha, unchanged_within),
    )


def _compare_scenarios(pairs: Sequence[Pair], alpha: float, within: float) -> tuple[ScenarioComparison, ...]:
    drops = holm({p.scenario: fisher_exact(p.kindest().before, p.kindest().after) for p in pairs})
    rises = holm({p.scenario: fisher_exact(p.harshest().before, p.harshest().after, "rise") for p in pairs})
    return tuple(
        _compare_scenario(pair, Levels(alpha, within, len(pairs)), drops[pair.scenario], rises[pair.scenario])
        for pair in pairs
    )


class Levels(NamedTuple):
    alpha: float
    within: float
    scenarios: int


def _compare_scenario(pair: Pair, levels: Levels, p_drop: float, p_rise: float) -> ScenarioComparison:
    half = levels.alpha / 2
    low = -_drop_high(pair.harshest().before, pair.harshest().after, half)
    high = _drop_high(pair.kindest().after, pair.kindest().before, half)
    if p_drop <= half:
        change = Change.REGRESSED
    elif p_rise <= half:
        change = Change.IMPROVED
    elif -levels.within < low and high < levels.within:
        change = Change.UNCHANGED
    else:
        change = Change.UNDECIDED
    needed = _epochs_for_scenario(pair, levels) if change is Change.UNDECIDED else None
    return ScenarioComparison(pair, change, low, high, p_drop, p_rise, needed)


@lru_cache(maxsize=4096)
def _drop_high(before: Tally, after: Tally, level: float) -> float:
    """Return the upper bound of the drop in one scenario. The result is cached because, among thousands of
    scenarios, most have the same counts as another scenario."""
    return _drop_interval([Pair("", before, after)], level, level).high


def _epochs_for_scenario(pair: Pair, levels: Levels) -> int | None:
    """Return the number of epochs in each run that would separate the observed rates or show that they are
    alike."""
    return _epochs_for_counts(pair.before, pair.after, levels)


@lru_cache(maxsize=4096)
def _epochs_for_counts(before: Tally, after: Tally, levels: Levels) -> int | None:
    if before.rate is None or after.rate is None:
        return None
    n, old, new = max(before.decided, after.decided), float(before.rate), float(after.rate)
    while n <= _MOST_EPOCHS:
        n = ceil(n * _GROWTH + 0.5)
        then = Pair("", _at_rate(old, n), _at_rate(new, n))
        interval = _drop_interval([then], levels.alpha / 2, levels.alpha / 2)
        if -levels.within < interval.low and interval.high < levels.within:
            return n
        if _is_distinguishable(then, levels.alpha / 2 / levels.scenarios):
            return n
    return None


def _is_distinguishable(pair: Pair, level: float) -> bool:
    if pair.before.decided <= _MOST_FOR_FISHER:
        alternative: Alternative = "drop" if pair.before.successes > pair.after.successes else "rise"
        return fisher_exact(pair.before, pair.after, alternative) <= level
    interval = _drop_interval([pair], level, level)
    return interval.low > 0 or interval.high < 0


def _at_rate(rate: float, n: int) -> Tally:
    return Tally(round(rate * n), n, n)
