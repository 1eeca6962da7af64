"""A call of a tool that does not exist, in a scenario that declares tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agenteval.config import Config
from agenteval.scenario import Scenario
from agenteval.score import Check, Finding
from agenteval.severity import LABEL_OF_DETECTOR, of_detector
from agenteval.tools import is_unknown
from agenteval.trajectory import Trajectory


class UnknownTool:
    """A finding for each such call, and a check that fails the sample. Calls that the agent ran itself
    are not asked about: its tools need no declaration."""

    scope: Final = "conversation"

    def __init__(self, config: Config) -> None:
        self._unmocked = config.unmocked_tools
        self._finds = config.detectors is None or "unknown_tool" in config.detectors
        self._severity = of_detector("unknown_tool", config.severities)

    async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Check | Finding]:
        if trajectory.stop and trajectory.stop.fault not in (None, "agent"):
            return ()
        findings = []
        position = 0
        for index, turn in enumerate(trajectory.all_turns):
            for call in turn.tool_calls:
                if not call.observed and is_unknown(scenario.tools, call.name, self._unmocked):
                    findings.append(self._finding(scenario, call.name, index, position))
                position += 1
        if not findings:
            return ()
        check = Check(
            name="unknown_tool",
            passed=False,
            detail="; ".join(dict.fromkeys(finding.explanation for finding in findings)),
            where=scenario.where("tools"),
        )
        return (check, *(findings if self._finds else ()))

    def _finding(self, scenario: Scenario, name: str, turn: int, call: int) -> Finding:
        return Finding(
            detector="unknown_tool",
            metric="tool_call_behavior_failure",
            label=LABEL_OF_DETECTOR["unknown_tool"],
            severity=self._severity,
            turn=turn,
            call=call,
            evidence=name,
            explanation=f"called '{name}', which is not among the tools: {', '.join(scenario.tools)}",
        )
