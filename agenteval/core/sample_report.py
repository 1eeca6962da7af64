"""The results of one conversation, and the means of several. Pure values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, fsum

from agenteval.core.plan import ScenarioRules
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import OUTCOME, Check, Finding, Score, ScoreFailure, UserReview
from agenteval.core.trajectory import Stop, StopReason, Trajectory, Turn


@dataclass(frozen=True)
class TurnReport:
    """A turn and its results. Findings are part of the sample and name their turn."""

    turn: Turn
    checks: tuple[Check, ...] = ()
    scores: tuple[Score, ...] = ()
    score_failures: tuple[ScoreFailure, ...] = ()


@dataclass(frozen=True)
class SampleReport:
    """A sample: its turns (the last may be one that broke) and the results of the whole conversation."""

    key: SampleKey
    turns: tuple[TurnReport, ...]
    stop: Stop | None
    checks: tuple[Check, ...]
    scores: tuple[Score, ...]
    score_failures: tuple[ScoreFailure, ...]
    findings: tuple[Finding, ...]
    trajectory: Trajectory
    tool_accuracy: float | None = None
    """The share of the expected tools that were called at least once. ``None`` if it does not apply (not a
    test case, nothing expected, no call could be seen, or a fault that is not the agent's) or could not be
    decided."""
    output_correct: bool | None = None
    """True if the final answer contains all keywords or, if none are expected, is not empty. ``None`` if it
    does not apply or could not be decided."""
    robustness_pass: bool | None = None
    """``all_checks_held`` of a robustness test, or ``None`` if it does not apply or could not be decided."""
    review: UserReview | None = None
    """The review of its simulated user."""
    set_aside: tuple[Score | ScoreFailure | Check, ...] = ()
    """If the review decides, the results of the whole conversation and of the turns from the fault on. They
    no longer apply, but they were paid for."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """See ``SampleFinished``."""
    lost_attempts: tuple[SampleReport, ...] = ()
    """The lost conversations that this one repeats. They do not count, but they were paid for."""

    @property
    def record(self) -> str:
        """The file and line of the log that it was read from; empty for a conversation that was played."""
        if self.stop is None or self.stop.reason not in (StopReason.RECORDED, StopReason.UNREADABLE):
            return ""
        return self.stop.detail.partition(": ")[0]

    @property
    def all_scores(self) -> tuple[Score, ...]:
        return tuple(score for turn in self.turns for score in turn.scores) + self.scores

    @property
    def all_failures(self) -> tuple[ScoreFailure, ...]:
        return tuple(f for turn in self.turns for f in turn.score_failures) + self.score_failures

    @property
    def judgements(self) -> tuple[Score | ScoreFailure | Check | UserReview, ...]:
        """All results that a judge may have been paid for."""
        review = (self.review,) if self.review else ()
        return (*self.all_scores, *self.all_failures, *self.all_checks, *self.set_aside, *review)

    @property
    def scripted(self) -> bool:
        """True if any part of it is based on the scripted model."""
        return (
            any(turn.turn.user_model.startswith("scripted/") for turn in self.turns)
            or any(score.scripted for score in self.all_scores)
            or any(check.scripted for check in self.all_checks)
            or any(finding.scripted for finding in self.findings)
            or (self.review is not None and self.review.scripted)
        )

    @property
    def all_checks_held(self) -> bool | None:
        """True if the agent did not break and every check held, or ``None`` if that could not be decided. An
        outcome that was not recorded is not a check."""
        outcomes = (c.passed for c in self.all_checks if not (c.name == OUTCOME and c.passed is None))
        return combine_outcomes([self.stop is not None and self.stop.fault is None, *outcomes])

    @property
    def calls_correct(self) -> float | None:
        """Whether all expectations of its calls hold, including those of turns; if a test case misses tools,
        the share of the others."""
        if self.tool_accuracy is not None and self.tool_accuracy < 1:
            return self.tool_accuracy
        checks = [check.passed for check in self.all_checks if check.name == "tool_calls"]
        return combine_outcomes(checks) if checks else self.tool_accuracy

    @property
    def answers_correct(self) -> bool | None:
        """Whether all expectations of its answers hold, including those of turns."""
        if self.output_correct is False:
            return False
        checks = [check.passed for check in self.all_checks if check.name.startswith("output.")]
        return combine_outcomes(checks) if checks else self.output_correct

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """The checks of each turn, then those of the whole conversation."""
        return tuple(check for turn in self.turns for check in turn.checks) + self.checks


def combine_outcomes(each: Iterable[bool | None]) -> bool | None:
    """Combine outcomes: false if any is false, otherwise ``None`` (undecided) if any is unknown, otherwise
    true."""
    known = list(each)
    return False if False in known else None if None in known else True


@dataclass(frozen=True)
class Aggregate:
    """A mean and its basis: ``n`` values."""

    value: float | None
    n: int
    missing: int = 0
    """The number of values that could not be determined."""
    of_samples: float | None = None
    """The mean of the means of each conversation, so that a long one counts no more than a short one, or
    ``None`` if each gives one value."""
    undecided: Mapping[str, int] = field(default_factory=dict)
    """By label, how many judgements count neither way."""


@dataclass(frozen=True)
class Spread:
    """Mean, median and 95th percentile (nearest rank) of ``n`` values."""

    mean: float
    p50: float
    p95: float
    n: int


def mean_of(values: Sequence[float | bool | None]) -> Aggregate:
    """Return the mean of the values; ``None`` counts neither as a value nor as missing."""
    known = [float(value) for value in values if value is not None]
    return Aggregate(sum(known) / len(known) if known else None, len(known))


def means_of_samples(samples: Iterable[SampleReport]) -> dict[str, tuple[float, ...]]:
    """Return by metric the mean of each conversation that has a score for it."""
    means: dict[str, list[float]] = {}
    for sample in samples:
        values: dict[str, list[float]] = {}
        for score in sample.all_scores:
            if not score.is_open:
                values.setdefault(score.metric, []).append(numeric_value(score))
        for metric, scores in values.items():
            means.setdefault(metric, []).append(fsum(scores) / len(scores))
    return {metric: tuple(means[metric]) for metric in sorted(means)}


def aggregates_of(samples: Sequence[SampleReport]) -> dict[str, Aggregate]:
    """Return by metric the mean over all turns of all samples; for label metrics, the share of ``no
    failure``. Samples that were lost to a fault that is not the agent's do not count, as in thresholds."""
    samples = [s for s in samples if s.stop is not None and s.stop.fault in (None, "agent")]
    values: dict[str, list[float]] = {}
    missing: dict[str, int] = {}
    undecided: dict[str, Counter[str]] = {}
    for sample in samples:
        for score in sample.all_scores:
            if score.is_open:
                undecided.setdefault(score.metric, Counter())[score.label or ""] += 1
            else:
                values.setdefault(score.metric, []).append(numeric_value(score))
        for failure in sample.all_failures:
            missing[failure.metric] = missing.get(failure.metric, 0) + 1
    aggregates = {}
    of_samples = means_of_samples(samples)
    for metric in sorted(values.keys() | missing.keys() | undecided.keys()):
        known, means = values.get(metric, []), of_samples.get(metric, ())
        aggregates[metric] = Aggregate(
            sum(known) / len(known) if known else None,
            len(known),
            missing.get(metric, 0),
            fsum(means) / len(means) if means else None,
            dict(sorted(undecided.get(metric, {}).items())),
        )
    for name in ("tool_accuracy", "output_correct", "robustness_pass"):
        aggregate = mean_of([getattr(sample, name) for sample in samples])
        if aggregate.n:
            aggregates[name] = aggregate
    return aggregates


def numeric_value(score: Score) -> float:
    """Return the number of a score: its value, or for a label whether it is not a failure."""
    if score.value is not None:
        return score.value
    return 1.0 if score.ok or (score.ok is None and score.label == "no failure") else 0.0


_LEAST_FOR_P95 = 20
"""With fewer values, the nearest-rank 95th percentile is the maximum."""


def p95_is_highest(n: int) -> bool:
    """Check whether the 95th percentile of ``n`` values is merely their maximum."""
    return n < _LEAST_FOR_P95


def spread_of(values: Sequence[float]) -> Spread:
    """Return the mean and nearest-rank percentiles. ``values`` must not be empty."""
    ordered = sorted(values)

    def rank(share: float) -> float:
        return ordered[max(0, ceil(share * len(ordered)) - 1)]

    return Spread(sum(ordered) / len(ordered), rank(0.5), rank(0.95), len(ordered))


@dataclass(frozen=True)
class ScenarioReport:
    """One scenario × agent, and its rules."""

    scenario: Scenario
    agent: str
    rules: ScenarioRules
    samples: tuple[SampleReport, ...]
    """The samples in the order of epochs."""
    missing: tuple[SampleKey, ...] = ()
    """Planned samples that never ran."""
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)
