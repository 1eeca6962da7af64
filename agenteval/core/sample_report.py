"""The results of one conversation, and aggregates across several conversations. The module contains only
values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, fsum
from typing import TypeAlias

from agenteval.core.plan import ScenarioRules
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import OUTCOME, VARIANT, Check, Finding, Score, ScoreFailure, UserReview
from agenteval.core.trajectory import Stop, StopReason, Trajectory, Turn


@dataclass(frozen=True, slots=True)
class TurnReport:
    """A turn and its results. Findings belong to the sample and specify their turn."""

    turn: Turn
    checks: tuple[Check, ...] = ()
    scores: tuple[Score, ...] = ()
    score_failures: tuple[ScoreFailure, ...] = ()


ReadAgain: TypeAlias = "Callable[[], SampleReport | None]"
"""Returns a sample with all its texts, or ``None`` if they are gone."""


@dataclass(frozen=True, slots=True)
class SampleReport:
    """A sample: its turns (the last of which may be unfinished) and the results for the entire
    conversation."""

    key: SampleKey
    turns: tuple[TurnReport, ...]
    stop: Stop | None
    checks: tuple[Check, ...]
    scores: tuple[Score, ...]
    score_failures: tuple[ScoreFailure, ...]
    findings: tuple[Finding, ...]
    trajectory: Trajectory
    tool_accuracy: float | None = None
    """The share of the expected tools that were called at least once. ``None`` if the share could not be
    decided or does not apply: the scenario is not a test case, nothing is expected, no calls are visible, or
    a failure occurred that is not the agent's fault."""
    output_correct: bool | None = None
    """True if the final answer contains all expected keywords. If no keywords are expected, any answer that
    is not empty is correct. ``None`` if this does not apply or could not be decided."""
    robustness_pass: bool | None = None
    """``all_checks_held`` for a robustness test. ``None`` if this does not apply or could not be decided."""
    review: UserReview | None = None
    """The review of the simulated user in this sample."""
    set_aside: tuple[Score | ScoreFailure | Check, ...] = ()
    """Results that a decisive review made obsolete: those for the entire conversation, and those for all
    turns from the user's fault onward. They are no longer considered, but their cost still counts."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The fingerprints before masking (see ``SampleFinished``)."""
    lost_attempts: tuple[SampleReport, ...] = ()
    """The lost conversations that this sample repeats. They do not count as results, but their cost does."""
    read_again: ReadAgain | None = field(default=None, compare=False, repr=False)
    """Reads the sample with all its texts. ``None`` if this report contains them."""

    @property
    def in_full(self) -> SampleReport:
        """The report with the texts of the conversation: messages, arguments and results of calls, and the
        details of checks that passed. Verdicts and figures do not need them, so a report of many samples
        reads them from the journal each time that they are printed."""
        if self.read_again is None:
            return self
        whole = self.read_again()
        if whole is None:
            return self
        compared = (check for check in self.checks if check.name == VARIANT)  # needs the other samples
        checks = (*whole.checks, *compared)
        return replace(self, turns=whole.turns, trajectory=whole.trajectory, checks=checks, read_again=None)

    @property
    def record(self) -> str:
        """The file and line of the log record, or an empty string for a conversation that was not
        recorded."""
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
        """All results that may have incurred judge costs."""
        review = (self.review,) if self.review else ()
        return (*self.all_scores, *self.all_failures, *self.all_checks, *self.set_aside, *review)

    @property
    def scripted(self) -> bool:
        """True if any part of the sample is based on the scripted model."""
        return (
            any(turn.turn.user_model.startswith("scripted/") for turn in self.turns)
            or any(score.scripted for score in self.all_scores)
            or any(check.scripted for check in self.all_checks)
            or any(finding.scripted for finding in self.findings)
            or (self.review is not None and self.review.scripted)
        )

    @property
    def all_checks_held(self) -> bool | None:
        """True if the agent did not fail and every check passed. ``None`` if this could not be decided. An
        outcome that was not recorded does not count as a check."""
        outcomes = (c.passed for c in self.all_checks if not (c.name == OUTCOME and c.passed is None))
        return combine_outcomes([self.stop is not None and self.stop.fault is None, *outcomes])

    @property
    def calls_correct(self) -> float | None:
        """True if all expectations about tool calls hold, including those for single turns. If some expected
        tools of a test case were not called, the value is the share of its expected tools that were called.
        """
        if self.tool_accuracy is not None and self.tool_accuracy < 1:
            return self.tool_accuracy
        checks = [check.passed for check in self.all_checks if check.name == "tool_calls"]
        return combine_outcomes(checks) if checks else self.tool_accuracy

    @property
    def answers_correct(self) -> bool | None:
        """True if all expectations about answers hold, including those for single turns."""
        if self.output_correct is False:
            return False
        checks = [check.passed for check in self.all_checks if check.name.startswith("output.")]
        return combine_outcomes(checks) if checks else self.output_correct

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """The checks of each turn, followed by those of the entire conversation."""
        return tuple(check for turn in self.turns for check in turn.checks) + self.checks


def combine_outcomes(each: Iterable[bool | None]) -> bool | None:
    """Combine outcomes (three-valued logic): false if any outcome is false, otherwise ``None`` (undecided) if
    any outcome is unknown, otherwise true."""
    known = list(each)
    return False if False in known else None if None in known else True


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A mean, and the number ``n`` of values that it is based on."""

    value: float | None
    n: int
    missing: int = 0
    """The number of values that could not be determined."""
    of_samples: float | None = None
    """The mean of the conversations' means, so that long conversations do not count more than short ones.
    ``None`` if each conversation has only one value."""
    undecided: Mapping[str, int] = field(default_factory=dict)
    """The number of judgments that count neither for nor against the agent, keyed by label."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean, median and 95th percentile (nearest rank) of ``n`` values."""

    mean: float
    p50: float
    p95: float
    n: int


def mean_of(values: Sequence[float | bool | None]) -> Aggregate:
    """Return the mean of the values. ``None`` is ignored, and is not counted as missing."""
    known = [float(value) for value in values if value is not None]
    return Aggregate(sum(known) / len(known) if known else None, len(known))


def means_of_samples(samples: Iterable[SampleReport]) -> dict[str, tuple[float, ...]]:
    """Return the mean of each conversation that has a score for the metric, keyed by metric."""
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
    """Return the mean across all turns of all samples, keyed by metric. For label metrics, the mean is the
    share of ``no failure``. As in thresholds, samples that were lost to a failure that is not the agent's
    fault do not count."""
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
    """Return a score as a number: its value or, for a label, 1 if the label is not a failure."""
    if score.value is not None:
        return score.value
    return 1.0 if score.ok or (score.ok is None and score.label == "no failure") else 0.0


_LEAST_FOR_P95 = 20
"""The number of values below which the nearest-rank 95th percentile is the maximum."""


def p95_is_highest(n: int) -> bool:
    """Check whether the 95th percentile (p95) of ``n`` values is merely their maximum."""
    return n < _LEAST_FOR_P95


def spread_of(values: Sequence[float]) -> Spread:
    """Return the mean, the median and the 95th percentile (nearest rank). ``values`` must not be empty."""
    ordered = sorted(values)

    def rank(share: float) -> float:
        return ordered[max(0, ceil(share * len(ordered)) - 1)]

    return Spread(sum(ordered) / len(ordered), rank(0.5), rank(0.95), len(ordered))


@dataclass(frozen=True, slots=True)
class ScenarioReport:
    """One scenario × agent, and the rules that apply to it."""

    scenario: Scenario
    agent: str
    rules: ScenarioRules
    samples: tuple[SampleReport, ...]
    """The samples, ordered by epoch."""
    missing: tuple[SampleKey, ...] = ()
    """Planned samples that were never run."""
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)
