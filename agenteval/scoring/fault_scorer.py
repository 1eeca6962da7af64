"""The scorer of conversations in which a tool had a fault (``run --faults``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from agenteval.core.scenario import Scenario
from agenteval.core.score import Check, Finding, ScoreFailure
from agenteval.core.tool_faults import FaultOutcome
from agenteval.core.trajectory import Trajectory
from agenteval.files.prompts import FAULT_RESPONSE
from agenteval.scoring.checks.fault_outcomes import FaultCase, decide_fault, fault_check

AskFaultJudge: TypeAlias = Callable[
    [FaultCase, Scenario, Trajectory], Awaitable[Sequence[Check | ScoreFailure | Finding]]
]


class FaultScorer:
    """Says what the agent made of the fault: code decides what it can, and ``ask_judge`` the rest. Without a
    judge, the rest is undecided, which makes the sample inconclusive: ``why`` nobody was asked."""

    scope: Final = "conversation"
    metric: Final = FAULT_RESPONSE

    def __init__(self, timeout_s: float, ask_judge: AskFaultJudge | None, why: str = "--no-judge") -> None:
        self._timeout_s = timeout_s
        self._ask_judge = ask_judge
        self._why = why

    async def __call__(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> Sequence[Check | ScoreFailure | Finding]:
        found = await decide_fault(scenario, trajectory, self._timeout_s)
        if not isinstance(found, FaultCase):
            return found
        if self._ask_judge is not None:
            return await self._ask_judge(found, scenario, trajectory)
        options = ", ".join(sorted(found.possible))
        remark = f"{found.remark}; " if found.remark else ""
        detail = f"{remark}not judged ({self._why}): {options}?"
        return (fault_check(found, FaultOutcome.UNDECIDED, detail),)
