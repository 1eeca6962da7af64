"""The epochs of a scenario, and which of them succeeded. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.score import OUTCOME, Verdict
from agenteval.scoring.goals import GOAL
from agenteval.verdict.statistics import Tally, in_epoch_order


def sample_success(sample: SampleReport, verdict: Verdict) -> bool | None:
    """Whether a sample counts as a success: it passed and its goal, where judged, was completed. ``None``
    where that is not known: it is inconclusive, its goal was ruled out or is not clear, or the judge of it
    broke. Of a recorded conversation that did not fail, the known outcome decides."""
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
    """The epochs of one scenario × agent. ``outcomes``: in epoch order, a lost one replaced where it was;
    ``replaced``: which were. ``wanted``: how many there were to be at least; ``most``: at most."""

    outcomes: tuple[bool | None, ...]
    wanted: int
    most: int
    replaced: frozenset[int] = frozenset()

    @property
    def tally(self) -> Tally:
        """All of them, for display: where success decided how many there are, no estimate may rest on it."""
        unfinished = max(0, self.wanted - len(self.outcomes))
        return Tally.of([*self.outcomes, *[None] * unfinished])

    @property
    def fixed(self) -> tuple[bool | None, ...]:
        """The first ones, whose number was settled beforehand: what estimates are based on."""
        known = self.outcomes[: self.wanted]
        return (*known, *[None] * (self.wanted - len(known)))


def epoch_outcomes(scenario: ScenarioReport, outcomes: Sequence[bool | None]) -> EpochOutcomes:
    """``outcomes``: of ``scenario.samples``, one each."""
    ranged = scenario.rules.range
    if ranged is None:
        wanted = len(outcomes) + len(scenario.missing)
        return EpochOutcomes((*outcomes, *(None for _ in scenario.missing)), wanted, wanted)
    finished = {
        sample.key.epoch: outcome
        for sample, outcome in zip(scenario.samples, outcomes, strict=True)
        if sample.stop is not None
    }
    ordered = in_epoch_order(finished, ranged.max)
    replaced = frozenset(
        epoch for epoch, outcome in enumerate(ordered) if outcome is not None and finished[epoch] is None
    )
    return EpochOutcomes(ordered, ranged.min, ranged.max, replaced)
