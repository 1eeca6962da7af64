"""The ``pass_rate`` gate of one scenario: a sequential test whose error rates are exact.

Wald, A. (1945), "Sequential tests of statistical hypotheses", Annals of Mathematical Statistics 16: the
ratio of the likelihoods of the outcomes at ``at_least`` and at ``reject_below`` is followed epoch by epoch;
by Ville's inequality it ever rises above 1/a with a chance of at most ``a`` at the lower rate, however
often one looks. Epochs are bounded, so the last one decides by exact arithmetic over all paths: it may use
up whatever chance of an error the earlier looks have left. With ``min_epochs == max_epochs`` there are no
earlier looks, and what is left is the exact binomial test.

Both error rates hold for every true rate on their side, not only at the bounds: a path with more
successes is accepted no later and rejected no earlier, so the chance to accept rises with the rate.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import inf, log
from typing import NamedTuple


class StatisticalOutcome(StrEnum):
    """What a test says. ``UNDECIDED`` is final: no further epoch within its plan can change it."""

    ACCEPT = "accept"
    REJECT = "reject"
    CONTINUE = "continue"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class PassRateRule:
    """What is promised of each of ``scenarios`` scenarios.

    At a true rate of ``reject_below`` or less, accepting has a chance of at most ``1 - confidence`` (no
    correction: a run is green only if all scenarios accept). At ``at_least`` or more, a *run* of all
    scenarios rejects one with at most that chance (Bonferroni: each scenario gets its share). Raises
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
        """The chance, per scenario, that must not be exceeded at ``reject_below``."""
        # 1 - 0.95 is a little more than 0.05 in binary.
        return round(1 - self.confidence, 12)

    @property
    def false_reject(self) -> float:
        """The chance, per scenario, that must not be exceeded at ``at_least``."""
        return self.false_accept / self.scenarios

    def evidence(self, successes: int, n: int) -> float:
        """The logarithm of the likelihood ratio of ``at_least`` to ``reject_below``."""
        failures = n - successes
        gain = successes * log(self.at_least / self.reject_below)
        if not failures:
            return gain
        if self.at_least == 1:
            return -inf
        return gain + failures * log((1 - self.at_least) / (1 - self.reject_below))


class InterimLook(NamedTuple):
    """What the test says after ``n`` epochs: accept from ``accept_from`` successes, reject to
    ``reject_to``, give up between ``hopeless_from`` and ``hopeless_to``; else continue."""

    accept_from: int
    reject_to: int
    hopeless_from: int = 1
    hopeless_to: int = 0

    def outcome_at(self, successes: int) -> StatisticalOutcome:
        if successes >= self.accept_from:
            return StatisticalOutcome.ACCEPT
        if successes <= self.reject_to:
            return StatisticalOutcome.REJECT
        hopeless = self.hopeless_from <= successes <= self.hopeless_to
        return StatisticalOutcome.UNDECIDED if hopeless else StatisticalOutcome.CONTINUE


class SurvivingPaths(NamedTuple):
    """The paths that go on: the weight of those with ``least``, ``least + 1``, … successes. Few numbers of
    successes are open at a time, so a plan of thousands of epochs stays quick."""

    least: int
    weights: list[float]

    def after(self, look: InterimLook, ended: dict[StatisticalOutcome, float]) -> SurvivingPaths:
        """What is left when ``look`` has been read; the rest is added to ``ended``."""
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
    """``epochs``: how many, in epoch order, it is based on; later ones did not count. ``missing`` of these
    were lost: the outcome is the same whether they would have succeeded or failed."""

    outcome: StatisticalOutcome
    epochs: int
    successes: int
    missing: int


class OutcomeProbabilities(NamedTuple):
    """What a gate says of one scenario at a given true rate, and the epochs it takes in the mean."""

    accept: float
    reject: float
    undecided: float
    epochs: float


@dataclass(frozen=True)
class RateTest:
    """The plan of a test, made before the first epoch. ``looks[n]`` is read after ``n`` epochs."""

    rule: PassRateRule
    min_epochs: int
    max_epochs: int
    looks: tuple[InterimLook, ...]

    def decide(self, outcomes: Sequence[bool | None]) -> SequentialDecision:
        """Decide on finished epochs, given *in epoch order* without a gap (``in_epoch_order``): taken as
        they complete, slow failures arrive late and the error rates do not hold. ``None``: the epoch was
        lost, and so was its replacement; it counts as failed in the worst and as passed in the best case,
        and both must agree."""
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
        """How many further epochs no decision can do without: so many may run at the same time, and none
        of them is in vain. 0 once decided."""
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
        """What the test says at a true ``rate``, over all paths: exact, nothing is simulated."""
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
    """The outcome of both paths, if they can still come to the same."""
    if worst is best:
        return worst
    if worst is StatisticalOutcome.CONTINUE and best is StatisticalOutcome.ACCEPT:
        return StatisticalOutcome.CONTINUE
    if worst is StatisticalOutcome.REJECT and best is StatisticalOutcome.CONTINUE:
        return StatisticalOutcome.CONTINUE
    return StatisticalOutcome.UNDECIDED


@lru_cache(maxsize=64)
def rate_test(rule: PassRateRule, min_epochs: int, max_epochs: int) -> RateTest:
    """The test of ``rule`` with at least ``min_epochs`` and at most ``max_epochs`` epochs; with both
    equal, the exact binomial test of that many. Raises ``ValueError`` unless 1 <= min <= max."""
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
    """The widest bounds whose total chance of an error, over all looks, stays within the rule."""
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
        # Many epochs, a rate between the bounds: either would be allowed. The likelier side is taken.
        likelier = sum(rule.evidence(successes, n) < 0 for successes in range(n + 1))
        accept_from = min(max(likelier, accept_from), reject_to + 1)
        reject_to = accept_from - 1
    return InterimLook(accept_from, reject_to, hopeless_from=reject_to + 1, hopeless_to=accept_from - 1)


def _spent_and_alive(
    looks: Sequence[InterimLook], rate: float, error: StatisticalOutcome
) -> tuple[float, list[float]]:
    """The chance that an earlier look has made the error, and by successes the weights of what is left to
    the last."""
    ended, alive = dict.fromkeys(StatisticalOutcome, 0.0), SurvivingPaths(0, [1.0])
    for look in looks[1:]:
        alive = _one_more_epoch(alive, rate).after(look, ended)
    least, weights = _one_more_epoch(alive, rate)
    above = len(looks) + 1 - least - len(weights)
    return ended[error], [0.0] * least + weights + [0.0] * above


def _one_more_epoch(alive: SurvivingPaths, rate: float) -> SurvivingPaths:
    """Numbers of successes that no path has any more are left out at both ends."""
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
    """Say now what is said after one more epoch whether it succeeds or fails. Changes no error rate."""
    accept_from = min(now.accept_from, later.accept_from)
    reject_to = max(now.reject_to, later.reject_to - 1)
    return InterimLook(
        accept_from,
        reject_to,
        hopeless_from=max(later.hopeless_from, reject_to + 1),
        hopeless_to=min(later.hopeless_to - 1, accept_from - 1),
    )


def in_epoch_order(finished: Mapping[int, bool | None], planned: int) -> tuple[bool | None, ...]:
    """The outcomes of epochs 0, 1, … up to the first that has not finished, of ``planned`` ones.

    ``None`` marks a lost epoch. Each is replaced once: the first lost one in epoch order by epoch
    ``planned``, the second by ``planned + 1``, and so on; one whose replacement is lost too stays ``None``.
    """
    ordered: list[bool | None] = []
    for _, taken in _with_replacements(finished, planned, planned):
        if taken not in finished:
            break
        ordered.append(finished[taken])
    return tuple(ordered)


def epochs_to_start(finished: Mapping[int, bool | None], first: int, planned: int) -> tuple[int, ...]:
    """The epochs that have to be run so that the ``first`` ones in epoch order are known: themselves and the
    replacements of those that are lost so far, as ``in_epoch_order`` takes them."""
    pairs = _with_replacements(finished, min(first, planned), planned)
    return tuple(sorted({epoch for pair in pairs for epoch in pair}))


def _with_replacements(
    finished: Mapping[int, bool | None], first: int, planned: int
) -> Iterator[tuple[int, int]]:
    """Each of the ``first`` epochs and the one that counts in its place: itself, unless it was lost."""
    replacement = planned
    for epoch in range(first):
        taken = epoch
        if epoch in finished and finished[epoch] is None:
            taken, replacement = replacement, replacement + 1
        yield epoch, taken
