"""One conversation and what was said of it; and the means of several. Pure values."""

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
    """A turn and what was said of it. Findings are with the sample: they name their turn."""

    turn: Turn
    checks: tuple[Check, ...] = ()
    scores: tuple[Score, ...] = ()
    score_failures: tuple[ScoreFailure, ...] = ()


@dataclass(frozen=True)
class SampleReport:
    """A sample: its turns (last the one that broke, if any) and the scores of the whole.

    ``tool_accuracy`` (share of the expected tools that were called at least once),
    ``output_correct`` (all keywords in the final answer; none expected: not empty) and
    ``robustness_pass`` (``held``) are ``None`` where they do not apply: not a test case, nothing expected (of
    tools: or no call could be seen), or a fault that is not the agent's; and where they could not be decided.

    ``review``: of its simulated user. Where that decides, ``set_aside`` is what had been said of the whole
    and of the turns from the fault on: it holds no longer, and was paid for. ``names``: see
    ``SampleFinished``.

    ``lost``: the conversation that was lost before, and played once more as this one (of a run that went on,
    those). It does not count, and was paid for.
    """

    key: SampleKey
    turns: tuple[TurnReport, ...]
    stop: Stop | None
    checks: tuple[Check, ...]
    scores: tuple[Score, ...]
    score_failures: tuple[ScoreFailure, ...]
    findings: tuple[Finding, ...]
    trajectory: Trajectory
    tool_accuracy: float | None = None
    output_correct: bool | None = None
    robustness_pass: bool | None = None
    review: UserReview | None = None
    set_aside: tuple[Score | ScoreFailure | Check, ...] = ()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lost_attempts: tuple[SampleReport, ...] = ()

    @property
    def record(self) -> str:
        """The file and line of the log that it was read from; empty for a conversation that was held here."""
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
        """All that a judge may have been paid for."""
        review = (self.review,) if self.review else ()
        return (*self.all_scores, *self.all_failures, *self.all_checks, *self.set_aside, *review)

    @property
    def scripted(self) -> bool:
        """Whether any part of it is based on the scripted model."""
        return (
            any(turn.turn.user_model.startswith("scripted/") for turn in self.turns)
            or any(score.scripted for score in self.all_scores)
            or any(check.scripted for check in self.all_checks)
            or any(finding.scripted for finding in self.findings)
            or (self.review is not None and self.review.scripted)
        )

    @property
    def all_checks_held(self) -> bool | None:
        """Whether the agent did not break and every check held; ``None``: that could not be decided. An
        outcome that nobody recorded is not a check."""
        outcomes = (c.passed for c in self.all_checks if not (c.name == OUTCOME and c.passed is None))
        return combine_outcomes([self.stop is not None and self.stop.fault is None, *outcomes])

    @property
    def right_calls(self) -> float | None:
        """Whether all that was expected of its calls holds, at its turns too; of a test case that lacks
        tools, their share."""
        if self.tool_accuracy is not None and self.tool_accuracy < 1:
            return self.tool_accuracy
        checks = [check.passed for check in self.all_checks if check.name == "tool_calls"]
        return combine_outcomes(checks) if checks else self.tool_accuracy

    @property
    def right_output(self) -> bool | None:
        """Whether all that was expected of its answers holds, at its turns too."""
        if self.output_correct is False:
            return False
        checks = [check.passed for check in self.all_checks if check.name.startswith("output.")]
        return combine_outcomes(checks) if checks else self.output_correct

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """Those of each turn, then those of the whole."""
        return tuple(check for turn in self.turns for check in turn.checks) + self.checks


def combine_outcomes(each: Iterable[bool | None]) -> bool | None:
    """Of what held, did not, or could not be decided (``None``): one that did not hold decides, else one that
    is not known leaves all of it open."""
    known = list(each)
    return False if False in known else None if None in known else True


@dataclass(frozen=True)
class Aggregate:
    """A mean, and what it rests on: ``n`` values; ``missing`` could not be had. ``of_samples``: the mean of
    the means of each conversation, so that a long one counts no more than a short one; ``None`` where each
    gives one value. ``open``: by label, how many judgements count neither way."""

    value: float | None
    n: int
    missing: int = 0
    of_samples: float | None = None
    undecided: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Spread:
    """Mean, median and 95th percentile (nearest rank) of ``n`` values."""

    mean: float
    p50: float
    p95: float
    n: int


def mean_of(values: Sequence[float | bool | None]) -> Aggregate:
    """The mean of what is there; what is ``None`` is not counted, neither as a value nor as missing."""
    known = [float(value) for value in values if value is not None]
    return Aggregate(sum(known) / len(known) if known else None, len(known))


def means_of_samples(samples: Iterable[SampleReport]) -> dict[str, tuple[float, ...]]:
    """By metric, the mean of each conversation that has a score of it."""
    means: dict[str, list[float]] = {}
    for sample in samples:
        values: dict[str, list[float]] = {}
        for score in sample.all_scores:
            if not score.is_open:
                values.setdefault(score.metric, []).append(numeric(score))
        for metric, scores in values.items():
            means.setdefault(metric, []).append(fsum(scores) / len(scores))
    return {metric: tuple(means[metric]) for metric in sorted(means)}


def aggregates_of(samples: Sequence[SampleReport]) -> dict[str, Aggregate]:
    """Means over all turns of all samples by metric; label metrics: the share of ``no failure``. Samples
    that were lost to a fault which is not the agent's do not count, as they do not in thresholds."""
    samples = [s for s in samples if s.stop is not None and s.stop.fault in (None, "agent")]
    values: dict[str, list[float]] = {}
    missing: dict[str, int] = {}
    open_: dict[str, Counter[str]] = {}
    for sample in samples:
        for score in sample.all_scores:
            if score.is_open:
                open_.setdefault(score.metric, Counter())[score.label or ""] += 1
            else:
                values.setdefault(score.metric, []).append(numeric(score))
        for failure in sample.all_failures:
            missing[failure.metric] = missing.get(failure.metric, 0) + 1
    aggregates = {}
    of_samples = means_of_samples(samples)
    for metric in sorted(values.keys() | missing.keys() | open_.keys()):
        known, means = values.get(metric, []), of_samples.get(metric, ())
        aggregates[metric] = Aggregate(
            sum(known) / len(known) if known else None,
            len(known),
            missing.get(metric, 0),
            fsum(means) / len(means) if means else None,
            dict(sorted(open_.get(metric, {}).items())),
        )
    for name in ("tool_accuracy", "output_correct", "robustness_pass"):
        aggregate = mean_of([getattr(sample, name) for sample in samples])
        if aggregate.n:
            aggregates[name] = aggregate
    return aggregates


def numeric(score: Score) -> float:
    """A score that counts as a number: its value, or for a label whether it is not a failure."""
    if score.value is not None:
        return score.value
    return 1.0 if score.ok or (score.ok is None and score.label == "no failure") else 0.0


_LEAST_FOR_P95 = 20
"""Of fewer values the 95th percentile by nearest rank is the highest of all."""


def p95_is_highest(n: int) -> bool:
    """Whether the 95th percentile of so many values is their maximum, and says no more."""
    return n < _LEAST_FOR_P95


def spread_of(values: Sequence[float]) -> Spread:
    """Mean and nearest-rank percentiles. ``values`` must not be empty."""
    ordered = sorted(values)

    def rank(share: float) -> float:
        return ordered[max(0, ceil(share * len(ordered)) - 1)]

    return Spread(sum(ordered) / len(ordered), rank(0.5), rank(0.95), len(ordered))


@dataclass(frozen=True)
class ScenarioReport:
    """One scenario × agent, and what applies to it. ``samples`` in the order of epochs; planned ones that
    never ran are in ``missing``."""

    scenario: Scenario
    agent: str
    rules: ScenarioRules
    samples: tuple[SampleReport, ...]
    missing: tuple[SampleKey, ...] = ()
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)
