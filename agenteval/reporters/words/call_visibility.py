"""Describe the extent to which an agent's tool calls are visible to agenteval."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.safe_text import one_line
from agenteval.core.tool_visibility import KnownVisibility, VisibilitySource
from agenteval.core.trajectory import ToolVisibility
from agenteval.verdict.report import Report

_IN_RESULTS = {ToolVisibility.DECLARED_UNSEEN: ToolVisibility.UNSEEN}


def describe_known_visibility(known: KnownVisibility | None, *, lists_tools: bool = False) -> str:
    """Describe what is known before a run about the visibility of tool calls, and suggest the configuration
    line that would change the visibility. ``lists_tools`` is true if the agent is a framework object that
    lists all of its tools."""
    if known is None and lists_tools:
        return "all calls are visible"
    if known is None:
        return "call visibility is determined in the run (set `calls: all` or `calls: unseen` to override)"
    match known.calls, known.source:
        case ToolVisibility.ALL, VisibilitySource.AUTHOR:
            return "calls: all, as configured"
        case ToolVisibility.ALL, _:
            return "all calls are visible"
        case ToolVisibility.DECLARED_UNSEEN, _:
            return "calls: unseen, as configured (what the agent says it did is taken as done)"
        case _:
            return known.why or (
                "its calls are not visible (set `calls: all` if it reaches its tools only through agenteval)"
            )


def calls_seen(report: Report) -> dict[str, str]:
    """Return the visibility of each agent's tool calls: ``all``, ``partly`` or ``unseen``."""
    found = {agent: report.visibility_of(agent) for agent in _agents(report)}
    return {agent: _IN_RESULTS.get(each, each).value for agent, each in found.items()}


def unseen_lines(report: Report) -> Iterator[str]:
    """Yield a line for each agent with tool calls that are not visible to agenteval, along with the setting
    that would make them visible. Agents that have no scenario about tools are omitted."""
    for agent in _agents(report):
        visibility = report.visibility_of(agent)
        if visibility is ToolVisibility.ALL or not _has_tools(report, agent):
            continue
        known = report.plan.known_visibility(agent)
        seen = "not all calls" if visibility is ToolVisibility.PARTLY else "no calls"
        remedy = "set `agent: {calls: all}` if it reaches its tools only through agenteval"
        why = known.why if known and known.why else remedy
        yield f"{seen} of '{one_line(agent, 40)}' are visible: {why}"


def _has_tools(report: Report, agent: str) -> bool:
    """Check whether any of the agent's scenarios is about tools."""
    return any(each.scenario.tools_named for each in report.scenarios if each.agent == agent)


def _agents(report: Report) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.agent for each in report.scenarios))
