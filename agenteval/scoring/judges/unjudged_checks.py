"""``--no-judge``: everything that an LLM judge would have decided stays undecided and is reported as
undecided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from agenteval.core.scenario import Scenario
from agenteval.core.score import Check
from agenteval.core.trajectory import Trajectory
from agenteval.scoring.fault_excuses import is_excused_by_fault


class UnjudgedChecks:
    """Yields an undecided check for each criterion, and for a scenario that would be checked only by judges
    (``is_vacuous``).

    The sample is then inconclusive, never green. ``why`` is the reason why nothing was judged."""

    scope: Final = "conversation"

    def __init__(self, is_vacuous: Callable[[Scenario], bool], why: str = "--no-judge") -> None:
        self._is_vacuous = is_vacuous
        self._detail = f"not judged ({why})"

    async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Check]:
        if trajectory.stop and trajectory.stop.fault is not None:
            return ()
        is_excused = is_excused_by_fault(scenario, trajectory)
        checks = [
            Check(
                name="criteria",
                passed=None,
                detail=f"{self._detail}: {criterion}",
                where=scenario.where(f"{path}.criteria"),
            )
            for path, expect in scenario.expectations
            for criterion in (() if is_excused else expect.criteria)
        ]
        if not checks and not is_excused and self._is_vacuous(scenario):
            detail = f"{self._detail}, and nothing else checks this scenario"
            checks = [Check(name="judges", passed=None, detail=detail, where=scenario.source)]
        return checks
