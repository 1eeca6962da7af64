"""The success rate of a suite, which depends on the question that is asked.

For *these scenarios*, the question is: how often does the agent succeed on exactly this set? Only the epochs
are random, and each scenario is a stratum. For *users like these*, the question is: how often would the agent
succeed on other scenarios from the same population? The scenarios are then random, and the epochs of a
scenario are a cluster, so each additional epoch adds less information. Epochs are never pooled into one
binomial distribution, which would answer neither question."""

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
    """An estimate with its confidence interval."""

    value: float
    low: float
    """The lower bound; 0 if nothing is known about the spread."""
    high: float
    """The upper bound; 1 if nothing is known about the spread."""
    standard_error: float | None
    """The standard error; ``None`` if nothing is known about the spread."""
    estimand: str
    """A description of the estimated quantity."""
    method: str
    """A description of the method."""


class MeanRate(NamedTuple):
    """The mean rate of a fixed set of scenarios, and the values from which its interval is computed."""

    value: float
    variance: float
    """The stratified variance (Cochran 1977, "Sampling techniques", 5.3). Scenarios with a single epoch are
    collapsed into one stratum (5A.12), which overestimates the variance."""
    epochs: float
    """The effective number of epochs. This is smaller than the number of epochs run if scenarios have
    different numbers of epochs (Kish 1965, "Survey sampling")."""
    degrees: int
    """The degrees of freedom of the variance (Student's t). They account for a variance that is estimated
    from few epochs."""
    lean_low: float
    """The total skew of the scenarios whose rate is above one half. If some scenarios always pass and others
    never pass, the skew of their mean rate is uninformative."""
    lean_high: float
    """The total skew of the scenarios whose rate is below one half."""

    def reach_low(self, t: float) -> float:
        return score_reach(self.variance, self.epochs, lean=self.lean_low, z=t)

    def reach_high(self, t: float) -> float:
        return score_reach(self.variance, self.epochs, lean=self.lean_high, z=t)

    def scaled(self, factor: float) -> MeanRate:
        """Return the same rates, based on ``factor`` times the number of epochs."""
        return self._replace(
            variance=self.variance / factor,
            epochs=self.epochs * factor,
            degrees=int(self.degrees * factor),
        )


def mean_rate(tallies: Sequence[Tally]) -> MeanRate:
    """Return the mean of the rates across scenarios, using only decided epochs. Each scenario has the same
    weight. Raise ``ValueError`` if there are no scenarios or if a scenario has no decided epoch."""
    if not tallies or not all(tally.decided for tally in tallies):
        raise ValueError("a mean rate requires at least one decided epoch for each scenario")
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
        return 0.25  # the maximum variance of one outcome, because nothing else is known about it
    return _spread(outcomes) if outcomes else 0.0


def these_scenarios(tallies: Sequence[Tally], confidence: float = 0.95) -> Estimate:
    """Return the mean rate of this fixed set of scenarios, with Wilson's interval based on the stratified
    variance (``MeanRate``). Raise ``ValueError`` under the same conditions as ``mean_rate``.

    Miller, E. (2024), "Adding error bars to evals", arXiv 2411.00640, explains why repetitions of a question
    must not be counted as separate questions."""
    mean = mean_rate(tallies)
    t = student_t_quantile((1 + confidence) / 2, mean.degrees)
    low, high = max(0.0, mean.value - mean.reach_low(t)), min(1.0, mean.value + mean.reach_high(t))
    return Estimate(
        mean.value, low, high, sqrt(mean.variance), "these scenarios", "stratified score interval"
    )


def users_like_these(rates: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Estimate the mean over the population that the scenarios represent, from one rate (or mean score in [0,
    1]) per scenario, with the clustered t interval of Miller (2024).

    If all scenarios agree, their spread is uninformative, and the betting interval is used instead. A single
    scenario provides no information about other scenarios."""
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
    """Return the percentile interval of a mean across scenarios (cluster bootstrap). Whole scenarios are
    resampled, never their epochs.

    The order of the values does not matter, and the same seed gives the same interval. The interval is too
    narrow for few scenarios and collapses if all scenarios agree, so show it next to another interval and do
    not use it for decisions. For thousands of scenarios, fewer samples are drawn, but at least 400, because
    the means vary little.

    Efron, B. & Tibshirani, R. (1993), "An introduction to the bootstrap"; Davison & Hinkley (1997), 3.8."""
    ordered = sorted(values)
    random = Random(seed)
    resamples = min(resamples, max(_FEWEST_RESAMPLES, _MOST_PICKS // len(ordered)))
    means = sorted(fsum(random.choices(ordered, k=len(ordered))) / len(ordered) for _ in range(resamples))
    cut = int((1 - confidence) / 2 * resamples)
    return Interval(means[cut], means[resamples - 1 - cut])


def betting_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return a confidence interval for the mean of independent values in [0, 1]. The interval is valid for
    any sample size and any distribution, but it is wide.

    A gambler who bets that the mean is above m multiplies the stake by 1 + c (x / m - 1) for each value x. In
    a fair game, the probability that the stake grows to 1/a is at most a. Waudby-Smith, I. & Ramdas, A.
    (2024), "Estimating means of bounded random variables by betting", JRSS B 86. Here, the stakes c are a
    fixed mixture and are not learned along the way, so the order of the scenarios does not matter."""
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
    """Return the unbiased variance of the values."""
    mean = fsum(values) / len(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
