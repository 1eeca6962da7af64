"""The epochs (repeated trials) of a scenario and their outcomes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.score import OUTCOME, Verdict
from agenteval.scoring.goals import GOAL
from agenteval.verdict.statistics import Tally, in_epoch_order


def sample_success(sample: SampleReport, verdict: Verdict) -> bool | None:
    """Return whether a sample counts as a success: it passed, and its goal was completed or was not judged.

    Return ``None`` if success is unknown: the sample is inconclusive, its goal was ruled out or is unclear,
    or the judge of the goal failed. For a recorded conversation that did not fail, the known outcome decides.
    """
    if verdict is Verdict.FAILED:
        return False
    for check in sample.checks:
        if check.name == OUTCOME:
            return check.passed
    if verdict is Verdict.INCONCLUSIVE:
        return None
    goals = [score for score in sample.scores if score.metric == GOAL]
    if any(not goal.is_open and not goal.value for goal in goals):
        return False
    unknown = any(goal.is_open for goal in goals)
    unknown |= any(failure.metric == GOAL for failure in sample.score_failures)
    return None if unknown else True


@dataclass(frozen=True)
class EpochOutcomes:
    """The epochs of one scenario × agent."""

    outcomes: tuple[bool | None, ...]
    """The outcomes in epoch order. The outcome of a replacement takes the position of the errored epoch."""
    planned_min: int
    """The minimum number of epochs that were planned."""
    planned_max: int
    """The maximum number of epochs that were planned."""
    replaced: frozenset[int] = frozenset()
    """The epochs that were replaced."""

    @property
    def tally(self) -> Tally:
        """The counts of all epochs, for display only. If the number of epochs depended on their success, no
        estimate may be based on these counts."""
        unfinished = max(0, self.planned_min - len(self.outcomes))
        return Tally.of([*self.outcomes, *[None] * unfinished])

    @property
    def fixed(self) -> tuple[bool | None, ...]:
        """The outcomes of the epochs up to the number that was fixed in advance. Estimates are based on these
        outcomes only."""
        known = self.outcomes[: self.planned_min]
        return (*known, *[None] * (self.planned_min - len(known)))


def epoch_outcomes(scenario: ScenarioReport, outcomes: Sequence[bool | None]) -> EpochOutcomes:
    """Arrange the outcomes of a scenario by epoch. ``outcomes`` contains one entry for each sample in
    ``scenario.samples``."""
    epoch_range = scenario.rules.range
    if epoch_range is None:
        planned = len(outcomes) + len(scenario.missing)
        return EpochOutcomes((*outcomes, *(None for _ in scenario.missing)), planned, planned)
    finished = {
        sample.key.epoch: outcome
        for sample, outcome in zip(scenario.samples, outcomes, strict=True)
        if sample.stop is not None
    }
    ordered = in_epoch_order(finished, epoch_range.max)
    replaced = frozenset(
        epoch for epoch, outcome in enumerate(ordered) if outcome is not None and finished[epoch] is None
    )
    return EpochOutcomes(ordered, epoch_range.min, epoch_range.max, replaced)
