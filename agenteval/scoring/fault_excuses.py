"""What a fault of a tool excuses besides the checks in code (``run --faults``)."""

from __future__ import annotations

from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import Trajectory


def is_excused_by_fault(scenario: Scenario, trajectory: Trajectory) -> bool:
    """Check whether the criteria do not count, because a call had a fault that stays."""
    variant = scenario.variant
    if variant is None or variant.fault is None or not variant.fault.stays:
        return False
    results = (call.result for call in trajectory.tool_calls if call.name == variant.tool)
    return any(result is not None and result.fault is not None for result in results)
