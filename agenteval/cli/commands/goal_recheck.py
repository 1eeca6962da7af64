"""Once all conversations are over: what only all of them together tell is asked of the judges again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import anyio

from agenteval.conversation.pipeline import RunControl
from agenteval.core.event import Event, Reconsidered
from agenteval.core.protocols import Emit, Scorer
from agenteval.scoring.judges.excused_goals import ExcusedGoalReviewer, is_goal_excused
from agenteval.scoring.judges.goal import GoalJudge
from agenteval.verdict import report


class GoalRecheck:
    """A sink that notes whether a goal was ruled out or withdrawn, and who then asks again."""

    def __init__(self, goals: ExcusedGoalReviewer) -> None:
        self._goals = goals
        self._is_needed = False

    def __call__(self, event: Event) -> None:
        self._is_needed = self._is_needed or is_goal_excused(event)

    async def recheck(self, events: Iterable[Event], emit: Emit, control: RunControl) -> bool:
        """Whether anything was asked. A run that is to end asks nothing more, and what was not asked then is
        left for the run that goes on with it."""
        if control.is_stopping or not self._is_needed:
            return False

        def emit_what_is_settled(event: Event) -> None:
            if not (control.is_stopping and isinstance(event, Reconsidered) and not event.is_over):
                emit(event)

        asked = 0
        with anyio.CancelScope() as scope:
            control.attach(scope)
            asked = await self._goals(report.build_report(events).scenarios, emit_what_is_settled)
        return asked > 0


def goal_judges(judges: Mapping[str, Sequence[Scorer]]) -> dict[str, GoalJudge]:
    """By agent, who judges its goals, where anybody does."""
    return {agent: judge for agent, own in judges.items() for judge in own if isinstance(judge, GoalJudge)}
