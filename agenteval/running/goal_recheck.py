"""Asks the goal judge follow-up questions after all conversations are over. The answers depend on all
conversations together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import anyio

from agenteval.conversation.pipeline import RunControl
from agenteval.core.event import Event, Reconsidered
from agenteval.core.protocols import Emit, Scorer
from agenteval.scoring.judges.excused_goals import ExcusedGoalReviewer, is_goal_excused
from agenteval.scoring.judges.goal import GoalJudge
from agenteval.verdict.report import Report


class GoalRecheck:
    """A sink that records whether the judge excused a goal as ruled out or withdrawn. If a goal was excused,
    the judge is asked again after the run."""

    def __init__(self, goals: ExcusedGoalReviewer) -> None:
        self._goals = goals
        self._is_needed = False

    def __call__(self, event: Event) -> None:
        self._is_needed = self._is_needed or is_goal_excused(event)

    async def recheck(self, report: Callable[[], Report], emit: Emit, control: RunControl) -> bool:
        """Ask the judge again, and return True if any question was asked. ``report`` returns the report of
        the run so far. If the run is stopping, no other questions are asked; the remaining questions are
        asked when the run is resumed."""
        if control.is_stopping or not self._is_needed:
            return False

        def emit_what_is_settled(event: Event) -> None:
            if not (control.is_stopping and isinstance(event, Reconsidered) and not event.is_over):
                emit(event)

        asked = 0
        with anyio.CancelScope() as scope:
            control.attach(scope)
            asked = await self._goals(report().scenarios, emit_what_is_settled)
        return asked > 0


def goal_judges(judges: Mapping[str, Sequence[Scorer]]) -> dict[str, GoalJudge]:
    """Return the goal judge of each agent that has one."""
    return {agent: judge for agent, own in judges.items() for judge in own if isinstance(judge, GoalJudge)}
