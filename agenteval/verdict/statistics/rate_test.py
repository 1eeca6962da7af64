"""The ``pass_rate`` gate for one scenario: a sequential test (SPRT) whose error rates are exact.

Wald, A. (1945), "Sequential tests of statistical hypotheses", Annals of Mathematical Statistics 16: after
each epoch, the test updates the likelihood ratio of the outcomes at ``at_least`` to the outcomes at
``reject_below``. By Ville's inequality, the probability at the lower rate that this ratio ever rises above
1/a is at most ``a``, regardless of how often the test looks at the outcomes. The number of epochs is limited,
so the last look decides by exact arithmetic over all paths; it may use up the error probability that the
earlier looks have left. With ``min_epochs == max_epochs``, there are no earlier looks, and the test is the
exact binomial test.

Both error rates hold for every true rate on their side, not only at the bounds: a path with more successes is
accepted no later and rejected no earlier, so the probability of acceptance increases with the rate."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import inf, log
from typing import NamedTuple


class StatisticalOutcome(StrEnum):
    """The outcome of a test."""

    ACCEPT = "accept"
    REJECT = "reject"
    CONTINUE = "continue"
    UNDECIDED = "undecided"
    """Undecided for good: no additional epoch within the plan can change this outcome."""


@dataclass(frozen=True)
class PassRateRule:
    """The guarantees of the test for each of ``scenarios`` scenarios.

    At a true rate of ``reject_below`` or less, the probability of acceptance is at most ``1 - confidence``
    (without a correction, because a run passes only if all scenarios are accepted). At a true rate of
    ``at_least`` or more, the probability that a *run* of all scenarios rejects any scenario is at most ``1 -
    confidence`` (Bonferroni: each scenario gets an equal share). Raise ``ValueError`` unless 0 < reject_below
    < at_least <= 1 and 0 < confidence < 1."""

    at_least: float
    reject_below: float
    confidence: float = 0.95
    scenarios: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.reject_below < self.at_least <= 1:
            raise ValueError("a pass rate requires 0 < reject_below < at_least <= 1")
        if not 0 < self.confidence < 1:
            raise ValueError("confidence must be between 0 and 1")
        if self.scenarios < 1:
            raise ValueError("a pass rate requires at least one scenario")

    @property
    def false_accept(self) -> float:
        """The maximum error probability per scenario at ``reject_below``."""
        # 1 - 0.95 is slightly more than 0.05 in binary.
        return round(1 - self.confidence, 12)

    @property
    def false_reject(self) -> float:
        """The maximum error probability per scenario at ``at_least``."""
        return self.false_accept / self.scenarios

    def evidence(self, successes: int, n: int) -> float:
        """Return the logarithm of the likelihood ratio of ``at_least`` to ``reject_below``."""
        failures = n - successes
        gain = successes * log(self.at_least / self.reject_below)
        if not failures:
            return gain
        if self.at_least == 1:
            return -inf
        return gain + failures * log((1 - self.at_least) / (1 - self.reject_below))


class InterimLook(NamedTuple):
    """The decision bounds after a given number of epochs. If the success count lies between the bounds, the
    test continues."""

    accept_from: int
    """The smallest number of successes at which the test accepts."""
    reject_to: int
    """The largest number of successes at which the test rejects."""
    hopeless_from: int = 1
    """The smallest number of successes at which the test stops as undecidable."""
    hopeless_to: int = 0
    """The largest number of successes at which the test stops as undecidable."""

    def outcome_at(self, successes: int) -> StatisticalOutcome:
        if successes >= self.accept_from:
            return StatisticalOutcome.ACCEPT
        if successes <= self.reject_to:
            return StatisticalOutcome.REJECT
        hopeless = self.hopeless_from <= successes <= self.hopeless_to
        return StatisticalOutcome.UNDECIDED if hopeless else StatisticalOutcome.CONTINUE


class SurvivingPaths(NamedTuple):
    """The paths on which the test continues. Only a few success counts are still undecided at any point, so
    even a plan with thousands of epochs can be computed quickly."""

    least: int
    """The smallest number of successes on any path."""
    weights: list[float]
    """The weights of the paths with ``least``, ``least + 1``, … successes."""

    def after(self, look: InterimLook, ended: dict[StatisticalOutcome, float]) -> SurvivingPaths:
        """Return the paths that remain after ``look``. Add the weights of all other paths to ``ended``."""
        accept = min(max(look.accept_from - self.least, 0), len(self.weights))
        reject = min(max(look.reject_to + 1 - self.least, 0), accept)
        for weight in self.weights[accept:]:
            ended[StatisticalOutcome.ACCEPT] += weight
        for weight in self.weights[:reject]:
            ended[StatisticalOutcome.REJECT] += weight
        left, least = self.weights[reject:accept], self.least + reject
        first, last = max(look.hopeless_from - least, 0), min(look.hopeless_to - least, len(left) - 1)
        for index in range(first, last + 1):
            ended[StatisticalOutcome.UNDECIDED] += left[index]
            left[index] = 0.0
        return SurvivingPaths(least, left)


class SequentialDecision(NamedTuple):
    """The decision of a test."""

    outcome: StatisticalOutcome
    epochs: int
    """The number of epochs, in epoch order, on which the decision is based. Later epochs are ignored."""
    successes: int
    missing: int
    """The number of these epochs that errored. The outcome is the same whether they would have succeeded or
    failed."""


class OutcomeProbabilities(NamedTuple):
    """The probabilities of a gate's outcomes for one scenario at a given true rate."""

    accept: float
    reject: float
    undecided: float
    epochs: float
    """The mean number of epochs that the test requires."""


@dataclass(frozen=True)
class RateTest:
    """The plan of a test, made before the first epoch."""

    rule: PassRateRule
    min_epochs: int
    max_epochs: int
    looks: tuple[InterimLook, ...]
    """The decision bounds after ``n`` epochs, keyed by ``n``."""

    def decide(self, outcomes: Sequence[bool | None]) -> SequentialDecision:
        """Decide on the basis of finished epochs, which must be given *in epoch order* without gaps
        (``in_epoch_order``). If epochs were used in the order in which they finish, slow failures would
        arrive late, and the error rates would not hold.

        ``None`` means that the epoch and its replacement errored. Such an epoch counts as failed in the worst
        case and as passed in the best case, and both cases must agree."""
        worst = best = StatisticalOutcome.CONTINUE
        low = high = epochs = 0
        for epochs, outcome in enumerate(outcomes[: self.max_epochs], 1):
            low, high = low + (outcome is True), high + (outcome is not False)
            worst = self.looks[epochs].outcome_at(low) if worst is StatisticalOutcome.CONTINUE else worst
            best = self.looks[epochs].outcome_at(high) if best is StatisticalOutcome.CONTINUE else best
            joint = _agree(worst, best)
            if joint is not StatisticalOutcome.CONTINUE:
                return SequentialDecision(joint, epochs, low, high - low)
        return SequentialDecision(StatisticalOutcome.CONTINUE, epochs, low, high - low)

    def min_further_epochs(self, outcomes: Sequence[bool | None]) -> int:
        """Return the number of additional epochs that are needed for every possible decision, or 0 once the
        test is decided. This number of epochs may run concurrently without wasting any."""
        so_far = self.decide(outcomes)
        if so_far.outcome is not StatisticalOutcome.CONTINUE:
            return 0
        low, high, n = so_far.successes, so_far.successes + so_far.missing, so_far.epochs
        for more, look in enumerate(self.looks[n + 1 :], 1):
            high += 1
            hopeless = max(low, look.hopeless_from) <= min(high, look.hopeless_to)
            if high >= look.accept_from or low <= look.reject_to or hopeless:
                return more
        return 0

    def chances(self, rate: float) -> OutcomeProbabilities:
        """Return the exact probabilities of the outcomes at a true ``rate``, computed over all paths without
        simulation."""
        ended = dict.fromkeys(StatisticalOutcome, 0.0)
        epochs, alive = 0.0, SurvivingPaths(0, [1.0])
        for look in self.looks[1:]:
            epochs += sum(alive.weights)
            alive = _one_more_epoch(alive, rate).after(look, ended)
        return OutcomeProbabilities(
            ended[StatisticalOutcome.ACCEPT],
            ended[StatisticalOutcome.REJECT],
            ended[StatisticalOutcome.UNDECIDED],
            epochs,
        )


def _agree(worst: StatisticalOutcome, best: StatisticalOutcome) -> StatisticalOutcome:
    """Return the outcome that both cases share. If they differ but may still agree, the test continues;
    otherwise, it is undecided."""
    if worst is best:
        return worst
    if worst is StatisticalOutcome.CONTINUE and best is StatisticalOutcome.ACCEPT:
        return StatisticalOutcome.CONTINUE
    if worst is StatisticalOutcome.REJECT and best is StatisticalOutcome.CONTINUE:
        return StatisticalOutcome.CONTINUE
    return StatisticalOutcome.UNDECIDED


@lru_cache(maxsize=64)
def rate_test(rule: PassRateRule, min_epochs: int, max_epochs: int) -> RateTest:
    """Return the test for ``rule`` with at least ``min_epochs`` and at most ``max_epochs`` epochs. If both
    numbers are equal, the test is the exact binomial test for that number. Raise ``ValueError`` unless 1 <=
    min <= max."""
    if not 1 <= min_epochs <= max_epochs:
        raise ValueError("epochs require 1 <= min <= max")
    silent = InterimLook(accept_from=max_epochs + 1, reject_to=-1)
    looks = [silent] * min_epochs + [_wald_look(rule, n) for n in range(min_epochs, max_epochs)]
    looks.append(_last_look(rule, looks))
    for n in range(max_epochs - 1, min_epochs - 1, -1):
        looks[n] = _sure_already(looks[n], looks[n + 1])
    return RateTest(rule, min_epochs, max_epochs, tuple(looks))


def _wald_look(rule: PassRateRule, n: int) -> InterimLook:
    def evidence(successes: int) -> float:
        return rule.evidence(successes, n)

    accept, reject = -log(rule.false_accept), log(rule.false_reject)
    counts = range(n + 1)  # the evidence rises with the successes
    return InterimLook(
        accept_from=bisect_left(counts, accept, key=evidence),
        reject_to=bisect_right(counts, reject, key=evidence) - 1,
    )


def _last_look(rule: PassRateRule, looks: Sequence[InterimLook]) -> InterimLook:
    """Return the widest bounds whose total error probability, over all looks, stays within the limits of the
    rule."""
    n = len(looks)
    spent, weights = _spent_and_alive(looks, rule.reject_below, StatisticalOutcome.ACCEPT)
    accept_from = n + 1
    while accept_from > 0 and spent + weights[accept_from - 1] <= rule.false_accept:
        accept_from -= 1
        spent += weights[accept_from]
    spent, weights = _spent_and_alive(looks, rule.at_least, StatisticalOutcome.REJECT)
    reject_to = -1
    while reject_to < n and spent + weights[reject_to + 1] <= rule.false_reject:
        reject_to += 1
        spent += weights[reject_to]
    if accept_from <= reject_to:
        # With many epochs and a rate between the bounds, both are allowed. Take the more likely side.
        likelier = sum(rule.evidence(successes, n) < 0 for successes in range(n + 1))
        accept_from = min(max(likelier, accept_from), reject_to + 1)
        reject_to = accept_from - 1
    return InterimLook(accept_from, reject_to, hopeless_from=reject_to + 1, hopeless_to=accept_from - 1)


def _spent_and_alive(
    looks: Sequence[InterimLook], rate: float, error: StatisticalOutcome
) -> tuple[float, list[float]]:
    """Return the probability that an earlier look made the error, and the weights that remain for the last
    look, indexed by the number of successes."""
    ended, alive = dict.fromkeys(StatisticalOutcome, 0.0), SurvivingPaths(0, [1.0])
    for look in looks[1:]:
        alive = _one_more_epoch(alive, rate).after(look, ended)
    least, weights = _one_more_epoch(alive, rate)
    above = len(looks) + 1 - least - len(weights)
    return ended[error], [0.0] * least + weights + [0.0] * above


def _one_more_epoch(alive: SurvivingPaths, rate: float) -> SurvivingPaths:
    """Advance the paths by one epoch. Drop the success counts at both ends that no path has reached."""
    failed = [weight * (1 - rate) for weight in alive.weights]
    passed = [weight * rate for weight in alive.weights]
    weights = [a + b for a, b in zip([*failed, 0.0], [0.0, *passed], strict=True)]
    first, last = 0, len(weights)
    while last > 1 and not weights[last - 1]:
        last -= 1
    while first < last - 1 and not weights[first]:
        first += 1
    return SurvivingPaths(alive.least + first, weights[first:last])


def _sure_already(now: InterimLook, later: InterimLook) -> InterimLook:
    """Decide early if one more epoch would lead to the same decision whether it succeeds or fails. This does
    not affect the error rates."""
    accept_from = min(now.accept_from, later.accept_from)
    reject_to = max(now.reject_to, later.reject_to - 1)
    return InterimLook(
        accept_from,
        reject_to,
        hopeless_from=max(later.hopeless_from, reject_to + 1),
        hopeless_to=min(later.hopeless_to - 1, accept_from - 1),
    )


def in_epoch_order(finished: Mapping[int, bool | None], planned: int) -> tuple[bool | None, ...]:
    """Return the outcomes of epochs 0, 1, … up to, but excluding, the first of the ``planned`` epochs that
    has not finished.

    ``None`` stands for an errored epoch. Each errored epoch is replaced once: the first errored epoch in
    epoch order by epoch ``planned``, the second by ``planned + 1``, and so on. An epoch whose replacement
    also errored remains ``None``."""
    ordered: list[bool | None] = []
    for _, taken in _with_replacements(finished, planned, planned):
        if taken not in finished:
            break
        ordered.append(finished[taken])
    return tuple(ordered)


def epochs_to_start(finished: Mapping[int, bool | None], first: int, planned: int) -> tuple[int, ...]:
    """Return the epochs that have to be run so that the ``first`` epochs in epoch order are known: these
    epochs themselves and the replacements for those that have errored so far, as in ``in_epoch_order``."""
    pairs = _with_replacements(finished, min(first, planned), planned)
    return tuple(sorted({epoch for pair in pairs for epoch in pair}))


def _with_replacements(
    finished: Mapping[int, bool | None], first: int, planned: int
) -> Iterator[tuple[int, int]]:
    """Yield each of the ``first`` epochs, paired with the epoch that counts for it: the epoch itself or, if
    it errored, its replacement."""
    replacement = planned
    for epoch in range(first):
        taken = epoch
        if epoch in finished and finished[epoch] is None:
            taken, replacement = replacement, replacement + 1
        yield epoch, taken
