"""The rate of a suite, under one of two questions that have two answers.

*These scenarios*: how often does the agent succeed on exactly this set? Only the epochs are random; each
scenario is a stratum. *Users like these*: how often would it on further scenarios drawn alike? Then the
scenarios are random, and the epochs of one are a cluster: more of them tell less and less. Epochs are never
pooled into one binomial, which answers neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp, fsum, inf, log, log1p, sqrt
from random import Random
from typing import NamedTuple

from agenteval.verdict.statistics.distributions import root_of, student_t_quantile
from agenteval.verdict.statistics.estimates import Interval, Tally, score_reach

_BETS = tuple(step / 20 for step in range(1, 21))
_RESAMPLES, _FEWEST_RESAMPLES = 4000, 400
_MOST_PICKS = 4_000_000


class Estimate(NamedTuple):
    """``standard_error`` is ``None`` and the interval all of [0, 1] where nothing can be said of the spread.

    ``method`` and ``estimand`` say in words what was computed, and of what."""

    value: float
    low: float
    high: float
    standard_error: float | None
    estimand: str
    method: str


class MeanRate(NamedTuple):
    """The mean rate of a fixed set of scenarios with what its interval is made from.

    ``variance`` is the stratified one (Cochran 1977, "Sampling techniques", 5.3); scenarios with a single
    epoch are collapsed into one stratum (5A.12), which overstates it. ``epochs`` weigh like those that were
    run: fewer where scenarios have unequal numbers (Kish 1965, "Survey sampling"). ``degrees`` of freedom
    are those of the variance, so that few epochs pay for not knowing it (Student's t). The leans sum the skew
    of the scenarios on either side of one half: where some always pass and others never do, that of their
    mean rate is not a guide."""

    value: float
    variance: float
    epochs: float
    degrees: int
    lean_low: float
    lean_high: float

    def reach_low(self, t: float) -> float:
        return score_reach(self.variance, self.epochs, lean=self.lean_low, z=t)

    def reach_high(self, t: float) -> float:
        return score_reach(self.variance, self.epochs, lean=self.lean_high, z=t)

    def scaled(self, factor: float) -> MeanRate:
        """The same rates from ``factor`` times the epochs."""
        return self._replace(
            variance=self.variance / factor,
            epochs=self.epochs * factor,
            degrees=int(self.degrees * factor),
        )


def mean_rate(tallies: Sequence[Tally]) -> MeanRate:
    """The mean of the rates over scenarios, each with the same weight; decided epochs only. Raises
    ``ValueError`` without scenarios, or if one has no decided epoch."""
    if not tallies or not all(tally.decided for tally in tallies):
        raise ValueError("a mean rate needs a decided epoch of each scenario")
    rates, m = [tally.successes / tally.decided for tally in tallies], len(tallies)
    return MeanRate(
        value=fsum(rates) / m,
        variance=_stratified_variance(tallies),
        epochs=m**2 / fsum(1 / tally.decided for tally in tallies),
        degrees=_degrees(tallies),
        lean_low=fsum(max(0.0, 2 * rate - 1) for rate in rates) / m,
        lean_high=fsum(max(0.0, 1 - 2 * rate) for rate in rates) / m,
    )


def _stratified_variance(tallies: Sequence[Tally]) -> float:
    single = [float(t.successes) for t in tallies if t.decided == 1]
    several = [t for t in tallies if t.decided > 1]
    parts = [t.successes * (t.decided - t.successes) / t.decided**2 / (t.decided - 1) for t in several]
    return fsum([*parts, len(single) * _collapsed_variance(single)]) / len(tallies) ** 2


def _degrees(tallies: Sequence[Tally]) -> int:
    single = sum(tally.decided == 1 for tally in tallies)
    return max(1, sum(tally.decided - 1 for tally in tallies) + max(0, single - 1))


def _collapsed_variance(outcomes: Sequence[float]) -> float:
    if len(outcomes) == 1:
        return 0.25  # the most that one outcome can vary: nothing else is known of it
    return _spread(outcomes) if outcomes else 0.0


def these_scenarios(tallies: Sequence[Tally], confidence: float = 0.95) -> Estimate:
    """The mean rate of this fixed set of scenarios, with Wilson's interval around the stratified variance
    (``MeanRate``). Raises ``ValueError`` as ``mean_rate`` does.

    Miller, E. (2024), "Adding error bars to evals", arXiv 2411.00640, on why the repeats of a question
    must not be counted as questions."""
    mean = mean_rate(tallies)
    t = student_t_quantile((1 + confidence) / 2, mean.degrees)
    low, high = max(0.0, mean.value - mean.reach_low(t)), min(1.0, mean.value + mean.reach_high(t))
    return Estimate(
        mean.value, low, high, sqrt(mean.variance), "these scenarios", "stratified score interval"
    )


def users_like_these(rates: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The mean over the population that the scenarios stand for, from one rate (or mean score in [0, 1])
    per scenario: the t interval over clusters, as Miller (2024) has it for clustered questions.

    Where all scenarios agree their spread is not a guide; then the interval is the betting one. One scenario
    alone tells nothing of others."""
    value = fsum(rates) / len(rates)
    estimand = "users like these"
    if len(rates) < 2:
        return Estimate(value, 0.0, 1.0, None, estimand, "one scenario says nothing about others")
    error = sqrt(_spread(rates) / len(rates))
    if error < 1e-12:
        return Estimate(value, *betting_interval(rates, confidence), error, estimand, "betting interval")
    half = student_t_quantile((1 + confidence) / 2, len(rates) - 1) * error
    low, high = max(0.0, value - half), min(1.0, value + half)
    return Estimate(value, low, high, error, estimand, "t interval over scenarios")


def cluster_bootstrap(
    values: Sequence[float], confidence: float = 0.95, *, seed: int = 0, resamples: int = _RESAMPLES
) -> Interval:
    """The percentile interval of a mean over scenarios: whole scenarios are drawn again, never their
    epochs. The order of the values does not matter; the same seed gives the same interval. It is too
    narrow for few scenarios and closes where all agree: to be shown beside another, not to decide. Of
    thousands it is drawn less often, 400 times at least: their mean scatters little.

    Efron, B. & Tibshirani, R. (1993), "An introduction to the bootstrap"; Davison & Hinkley (1997), 3.8."""
    ordered = sorted(values)
    random = Random(seed)
    resamples = min(resamples, max(_FEWEST_RESAMPLES, _MOST_PICKS // len(ordered)))
    means = sorted(fsum(random.choices(ordered, k=len(ordered))) / len(ordered) for _ in range(resamples))
    cut = int((1 - confidence) / 2 * resamples)
    return Interval(means[cut], means[resamples - 1 - cut])


def betting_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """An interval of a mean of independent values in [0, 1] that holds for any number of them and any
    distribution, at the price of width.

    A gambler who bets that the mean is above m multiplies a stake by 1 + c (x / m - 1) at each value x; a
    fair game makes it 1/a with a chance of at most a. Waudby-Smith, I. & Ramdas, A. (2024), "Estimating
    means of bounded random variables by betting", JRSS B 86. The stakes c are a fixed mixture here, not
    learnt along the way, so that the order of the scenarios cannot matter."""
    fortune = log(2 / (1 - confidence))
    counts = Counter(values)
    low = root_of(lambda m: fortune - _log_capital(counts, m), 0.0, 1.0)
    mirrored = Counter(1 - value for value in values)
    high = 1 - root_of(lambda m: fortune - _log_capital(mirrored, m), 0.0, 1.0)
    mean = fsum(values) / len(values)
    return Interval(min(low, mean), max(high, mean))


def _log_capital(counts: Counter[float], mean: float) -> float:
    if mean <= 0:
        return inf if any(counts) else 0.0
    logs = [
        fsum(many * _log1p(stake * (value / mean - 1)) for value, many in counts.items()) for stake in _BETS
    ]
    largest = max(logs)
    if largest == -inf:
        return -inf
    return largest + log(fsum(exp(value - largest) for value in logs) / len(logs))


def _log1p(gain: float) -> float:
    return log1p(gain) if gain > -1 else -inf


def _spread(values: Sequence[float]) -> float:
    """The variance between values, without bias."""
    mean = fsum(values) / len(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
