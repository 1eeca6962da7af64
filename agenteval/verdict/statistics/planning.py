"""Estimate before a run how often its gates will be wrong and how many epochs would improve them (power
analysis)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, comb, floor, log, prod
from random import Random
from typing import NamedTuple, Protocol

from agenteval.verdict.statistics.distributions import binomial_at_least, binomial_at_most, binomial_weights
from agenteval.verdict.statistics.estimates import Tally, pass_hat_k
from agenteval.verdict.statistics.paired_tests import Pair
from agenteval.verdict.statistics.rate_test import (
    OutcomeProbabilities,
    PassRateRule,
    StatisticalOutcome,
    rate_test,
)
from agenteval.verdict.statistics.regression import Margins, regression_outcome

_MOST_EPOCHS = 10_000
_LONGEST_TEST = 1_000
_DRAWS = 300


class Design(Protocol):
    """The rule by which a gate decides one scenario: a ``RateTest`` or a ``CountRule``."""

    def chances(self, rate: float) -> OutcomeProbabilities: ...


@dataclass(frozen=True)
class CountRule:
    """A rule that accepts if at least ``accept_from`` of ``epochs`` epochs succeed, and rejects otherwise.
    Examples are a threshold on a share and "every sample passes". A rule of this type is never undecided, and
    its error rates are not bounded in advance; they follow from the two numbers."""

    accept_from: int
    epochs: int

    def chances(self, rate: float) -> OutcomeProbabilities:
        accept = binomial_at_least(self.accept_from, self.epochs, rate)
        return OutcomeProbabilities(accept, 1 - accept, 0.0, float(self.epochs))


def share_rule(at_least: float, epochs: int) -> CountRule:
    """Return the rule for a threshold on the share of successful epochs. For example, ``goal_completion:
    0.8`` with 3 epochs requires all three to succeed."""
    return CountRule(ceil(Fraction(str(at_least)) * epochs), epochs)


def pass_hat_k_rule(k: int, at_least: float, epochs: int) -> CountRule | None:
    """Return the rule for a lower bound on pass^k in each scenario. Return ``None`` (not estimable) if epochs
    < k."""
    if epochs < k:
        return None
    reached = [c for c in range(epochs + 1) if (pass_hat_k(epochs, c, k) or 0.0) >= at_least]
    return CountRule(min(reached, default=epochs + 1), epochs)


def mean_pass_hat_k_chance(counts: Sequence[int], k: int, at_least: float, rate: float) -> float | None:
    """Return the probability that the mean of pass^k across scenarios reaches ``at_least`` if each scenario
    has the true ``rate``. Return ``None`` if pass^k is not estimable.

    ``counts`` contains the number of epochs for each scenario. The computation is exact: the distributions of
    the scenarios' estimates are convolved, with a resolution of one millionth if the epoch counts differ."""
    if not counts or min(counts) < k:
        return None
    unit = comb(counts[0], k) if len(set(counts)) == 1 else 1_000_000
    totals: dict[int, float] = {0: 1.0}
    for n in counts:
        weights = binomial_weights(n, rate)
        steps = [round(unit * comb(c, k) / comb(n, k)) for c in range(n + 1)]
        merged: dict[int, float] = {}
        for total, weight in totals.items():
            for step, chance in zip(steps, weights, strict=True):
                merged[total + step] = merged.get(total + step, 0.0) + weight * chance
        totals = {total: weight for total, weight in merged.items() if weight > 1e-12}
    least = at_least * unit * len(counts) - 1e-6
    return sum(weight for total, weight in totals.items() if total >= least)


class ErrorRates(NamedTuple):
    """Error probabilities for an entire run."""

    false_red: float
    false_green: float
    green_when_good: float


def error_rates(designs: Sequence[Design], *, good: float, bad: float) -> ErrorRates:
    """Compute the probabilities that a run is wrong. ``designs`` contains one design for each scenario.

    ``good`` is the success rate of an agent that should pass. A false red is a failed run in which every
    scenario has this rate. ``bad`` is the success rate of an agent that should not pass. A false green is a
    passed run in which one scenario has this rate and all others never fail, which is the case that is
    hardest to detect. The bad scenario is assumed to be the one in which a bad rate is missed most often. The
    computation uses binomial arithmetic and no simulation. Raise ``ValueError`` if there is no design."""
    if not designs:
        raise ValueError("error rates require at least one scenario")
    kinds = Counter(designs)
    at_good = {kind: kind.chances(good) for kind in kinds}
    perfect = {kind: kind.chances(1.0) for kind in kinds}
    all_accept = prod(perfect[kind].accept ** n for kind, n in kinds.items())

    def green_with_one_bad(kind: Design) -> float:
        accept = perfect[kind].accept
        return kind.chances(bad).accept * all_accept / accept if accept else 0.0

    return ErrorRates(
        false_red=1 - prod((1 - at_good[kind].reject) ** n for kind, n in kinds.items()),
        false_green=max(map(green_with_one_bad, kinds)),
        green_when_good=prod(at_good[kind].accept ** n for kind, n in kinds.items()),
    )


def least_epochs(rule: PassRateRule) -> int:
    """Return the smallest number of epochs after which a scenario that never failed can be accepted. With
    fewer epochs, no run can pass, because a lucky streak is too likely at a rate of ``reject_below``."""
    return max(1, ceil(log(rule.false_accept) / log(rule.reject_below) - 1e-9))


def epochs_for_green(
    rule: PassRateRule, good: float, *, chance: float = 0.8, min_epochs: int | None = None
) -> int | None:
    """Return the approximate maximum number of epochs that a test must allow so that a run in which all
    scenarios have the rate ``good`` passes with a probability of at least ``chance``. Return ``None`` if
    1,000 epochs are not enough. Without ``min_epochs``, the test has a fixed number of epochs."""
    n = max(least_epochs(rule), min_epochs or 1)
    while n <= _LONGEST_TEST:
        # The exact test of n epochs has nearly the highest power of all tests that end by n, and is cheap.
        if _power(rule, good, n) ** rule.scenarios >= 0.9 * chance:
            test = rate_test(rule, n if min_epochs is None else min_epochs, n)
            if test.chances(good).accept ** rule.scenarios >= chance:
                return n
        n = ceil(n * 1.03)
    return None


def _power(rule: PassRateRule, good: float, n: int) -> float:
    """Return the power of the exact test with ``n`` epochs: the probability that it accepts at the rate
    ``good``."""
    accept_from = bisect_left(
        range(n + 1), True, key=lambda c: binomial_at_least(c, n, rule.reject_below) <= rule.false_accept
    )
    return binomial_at_least(accept_from, n, good)


def epochs_to_decide(successes: int, n: int, rule: PassRateRule) -> int | None:
    """Return the approximate number of *additional* epochs that would decide a scenario if it continued to
    succeed at its observed rate. Return 0 if ``n`` epochs are enough for an exact test to decide. Return
    ``None`` if a total of 10,000 epochs would not be enough or if no rate was observed."""
    if not n:
        return None
    rate, total = Fraction(successes, n), n
    while total <= _MOST_EPOCHS:
        if _decides(rate, total, rule):
            return total - n
        total += max(1, total // 50)
    return None


def _decides(rate: Fraction, n: int, rule: PassRateRule) -> bool:
    accepted = binomial_at_least(floor(rate * n), n, rule.reject_below) <= rule.false_accept
    return accepted or binomial_at_most(ceil(rate * n), n, rule.at_least) <= rule.false_reject


def no_regression_chances(
    before: Sequence[float],
    after: Sequence[float],
    epochs: int,
    margins: Margins,
    *,
    confidence: float = 0.95,
    draws: int = _DRAWS,
    seed: int = 0,
) -> OutcomeProbabilities:
    """Estimate the probabilities of the outcomes of ``non_inferiority`` for two runs with ``epochs`` epochs
    each. ``before`` and ``after`` contain the true rate of each scenario.

    Because this gate, unlike the others, has too many paths to count, the estimate uses seeded random draws
    (Monte Carlo simulation). With 300 draws, the estimate is accurate to about 0.05."""
    random = Random(seed)
    names = [str(index) for index in range(len(before))]
    outcomes = Counter(
        regression_outcome(
            [
                Pair(name, _draw(random, old, epochs), _draw(random, new, epochs))
                for name, old, new in zip(names, before, after, strict=True)
            ],
            margins,
            confidence,
        )
        for _ in range(draws)
    )
    accept, reject = outcomes[StatisticalOutcome.ACCEPT] / draws, outcomes[StatisticalOutcome.REJECT] / draws
    return OutcomeProbabilities(accept, reject, outcomes[StatisticalOutcome.UNDECIDED] / draws, float(epochs))


def _draw(random: Random, rate: float, epochs: int) -> Tally:
    return Tally(sum(random.random() < rate for _ in range(epochs)), epochs, epochs)
