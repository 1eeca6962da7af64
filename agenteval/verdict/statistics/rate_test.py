"""The ``pass_rate`` gate of one scenario: a sequential test whose error rates are exact.

Wald, A. (1945), "Sequential tests of statistical hypotheses", Annals of Mathematical Statistics 16: the ratio
of the likelihoods of the outcomes at ``at_least`` and at ``reject_below`` is followed epoch by epoch. By
Ville's inequality it ever rises above 1/a with a probability of at most ``a`` at the lower rate, however
often one looks. Epochs are bounded, so the last look decides by exact arithmetic over all paths: it may use
up the probability of an error that the earlier looks have left. With ``min_epochs == max_epochs`` there are
no earlier looks, and what is left is the exact binomial test.

Both error rates hold for every true rate on their side, not only at the bounds: a path with more successes is
accepted no later and rejected no earlier, so the probability of accepting rises with the rate."""

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
    """Final: no further epoch within the plan can change it."""


@dataclass(frozen=True)
class PassRateRule:
    """What the test guarantees for each of ``scenarios`` scenarios.

    At a true rate of ``reject_below`` or less, the probability of accepting is at most ``1 - confidence`` (no
    correction: a run is green only if all scenarios accept). At ``at_least`` or more, a *run* of all
    scenarios rejects one with at most that probability (Bonferroni: each scenario gets its share). Raise
    ``ValueError`` unless 0 < reject_below < at_least <= 1 and 0 < confidence < 1."""

    at_least: float
    reject_below: float
    confidence: float = 0.95
    scenarios: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.reject_below < self.at_least <= 1:
            raise ValueError("a pass rate needs 0 < reject_below < at_least <= 1")
        if not 0 < self.confidence < 1:
            raise ValueError("confidence lies between 0 and 1")
        if self.scenarios < 1:
            raise ValueError("a pass rate needs at least one scenario")

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
    """The decision after a number of epochs. Between all bounds the test continues."""

    accept_from: int
    """Accept from this number of successes on."""
    reject_to: int
    """Reject up to this number of successes."""
    hopeless_from: int = 1
    """Give up from this number of successes on."""
    hopeless_to: int = 0
    """Give up to this number of successes."""

    def outcome_at(self, successes: int) -> StatisticalOutcome:
        if successes >= self.accept_from:
            return StatisticalOutcome.ACCEPT
        if successes <= self.reject_to:
            return StatisticalOutcome.REJECT
        hopeless = self.hopeless_from <= successes <= self.hopeless_to
        return StatisticalOutcome.UNDECIDED if hopeless else StatisticalOutcome.CONTINUE


class SurvivingPaths(NamedTuple):
    """The paths that continue. Few numbers of successes are open at a time, so a plan of thousands of epochs
    stays fast."""

    least: int
    """The smallest number of successes of a path."""
    weights: list[float]
    """The weights of the paths with ``least``, ``least + 1``, … successes."""

    def after(self, look: InterimLook, ended: dict[StatisticalOutcome, float]) -> SurvivingPaths:
        """Return what is left after ``look``; the rest is added to ``ended``."""
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
    """The number of epochs, in epoch order, that it is based on; later ones did not count."""
    successes: int
    missing: int
    """How many of these errored; the outcome is the same whether they would have succeeded or failed."""


class OutcomeProbabilities(NamedTuple):
    """The outcomes of a gate for one scenario at a given true rate."""

    accept: float
    reject: float
    undecided: float
    epochs: float
    """The mean number of epochs that it takes."""


@dataclass(frozen=True)
class RateTest:
    """The plan of a test, made before the first epoch."""

    rule: PassRateRule
    min_epochs: int
    max_epochs: int
    looks: tuple[InterimLook, ...]
    """The decision after ``n`` epochs, by ``n``."""

    def decide(self, outcomes: Sequence[bool | None]) -> SequentialDecision:
        """Decide on finished epochs, given *in epoch order* without a gap (``in_epoch_order``). If they were
        taken as they complete, slow failures would arrive late and the error rates would not hold.

        ``None`` means that the epoch and its replacement errored. It counts as failed in the worst and as
        passed in the best case, and both must agree."""
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
        """Return the number of further epochs that every decision needs; 0 once decided. This many may run at
        the same time, and none of them is wasted."""
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
        """Return the probabilities of the outcomes at a true ``rate``, over all paths: exact, nothing is
        simulated."""
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
    """Return the outcome of both paths, if they can still agree."""
    if worst is best:
        return worst
    if worst is StatisticalOutcome.CONTINUE and best is StatisticalOutcome.ACCEPT:
        return StatisticalOutcome.CONTINUE
    if worst is StatisticalOutcome.REJECT and best is StatisticalOutcome.CONTINUE:
        return StatisticalOutcome.CONTINUE
    return StatisticalOutcome.UNDECIDED


@lru_cache(maxsize=64)
def rate_test(rule: PassRateRule, min_epochs: int, max_epochs: int) -> RateTest:
    """Return the test of ``rule`` with at least ``min_epochs`` and at most ``max_epochs`` epochs. If both are
    equal, it is the exact binomial test of that many. Raise ``ValueError`` unless 1 <= min <= max."""
    if not 1 <= min_epochs <= max_epochs:
        raise ValueError("epochs need 1 <= min <= max")
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
    """Return the widest bounds whose total probability of an error, over all looks, stays within the rule."""
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
    """Return the probability that an earlier look has made the error, and, by successes, the weights that are
    left to the last look."""
    ended, alive = dict.fromkeys(StatisticalOutcome, 0.0), SurvivingPaths(0, [1.0])
    for look in looks[1:]:
        alive = _one_more_epoch(alive, rate).after(look, ended)
    least, weights = _one_more_epoch(alive, rate)
    above = len(looks) + 1 - least - len(weights)
    return ended[error], [0.0] * least + weights + [0.0] * above


def _one_more_epoch(alive: SurvivingPaths, rate: float) -> SurvivingPaths:
    """Advance the paths by one epoch, and drop numbers of successes at both ends that no path has."""
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
    """Decide now what would be decided after one more epoch whether it succeeds or fails. No error rate
    changes."""
    accept_from = min(now.accept_from, later.accept_from)
    reject_to = max(now.reject_to, later.reject_to - 1)
    return InterimLook(
        accept_from,
        reject_to,
        hopeless_from=max(later.hopeless_from, reject_to + 1),
        hopeless_to=min(later.hopeless_to - 1, accept_from - 1),
    )


def in_epoch_order(finished: Mapping[int, bool | None], planned: int) -> tuple[bool | None, ...]:
    """Return the outcomes of epochs 0, 1, … up to the first of the ``planned`` ones that has not finished.

    ``None`` marks an errored epoch. Each is replaced once: the first errored one in epoch order by epoch
    ``planned``, the second by ``planned + 1``, and so on; one whose replacement errored too stays ``None``.
    """
    ordered: list[bool | None] = []
    for _, taken in _with_replacements(finished, planned, planned):
        if taken not in finished:
            break
        ordered.append(finished[taken])
    return tuple(ordered)


def epochs_to_start(finished: Mapping[int, bool | None], first: int, planned: int) -> tuple[int, ...]:
    """Return the epochs that have to be run so that the ``first`` ones in epoch order are known: themselves,
    and the replacements of those that have errored so far, as in ``in_epoch_order``."""
    pairs = _with_replacements(finished, min(first, planned), planned)
    return tuple(sorted({epoch for pair in pairs for epoch in pair}))


def _with_replacements(
    finished: Mapping[int, bool | None], first: int, planned: int
) -> Iterator[tuple[int, int]]:
    """Yield each of the ``first`` epochs and the one that counts in its place: itself, unless it errored."""
    replacement = planned
    for epoch in range(first):
        taken = epoch
        if epoch in finished and finished[epoch] is None:
            taken, replacement = replacement, replacement + 1
        yield epoch, taken
