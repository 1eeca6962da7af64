"""Marks tools according to the hints that an agent's tools declare (MCP tool annotations such as
``readOnlyHint``), unless the author marked the tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agenteval.core.protocols import AgentTool
from agenteval.core.scenario import Sample, Scenario, Tool
from agenteval.core.tool_effects import marks_from_hints
from agenteval.planning.preflight import agents_by_scenario


def apply_tool_hints(
    samples: Sequence[Sample], agents_have: Mapping[str, Sequence[AgentTool]]
) -> tuple[Sample, ...]:
    """Return the samples, marking the tools of their scenarios according to the hints from the agents' tools.
    If two agents declare conflicting hints for a tool, the tool remains unmarked."""
    marked = {
        scenario.id: _with_hints(scenario, [agents_have[name] for name in agents if name in agents_have])
        for scenario, agents in agents_by_scenario(samples)
    }
    return tuple(
        sample
        if marked[sample.key.scenario] is sample.scenario
        else replace(sample, scenario=marked[sample.key.scenario])
        for sample in samples
    )


def _with_hints(scenario: Scenario, agents: Iterable[Sequence[AgentTool]]) -> Scenario:
    marks_by_tool: dict[str, list[dict[str, bool]]] = {}
    for agent_tools in agents:
        for tool in agent_tools:
            if tool.hints and (marks := marks_from_hints(tool.hints)):
                marks_by_tool.setdefault(tool.name, []).append(marks)
    hinted = {
        name: each[0] for name, each in marks_by_tool.items() if all(marks == each[0] for marks in each)
    }
    tools = {name: _with_mark(tool, hinted.get(name)) for name, tool in scenario.tools.items()}
    if all(tools[name] is tool for name, tool in scenario.tools.items()):
        return scenario
    return scenario.model_copy(update={"tools": tools})


def _with_mark(tool: Tool, marks: Mapping[str, bool] | None) -> Tool:
    return tool.model_copy(update=dict(marks)) if marks and not tool.is_marked else tool
