"""Determines the subject of a finding (the cited call, the tool's effect, the call's outcome) and rates the
finding's severity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agenteval.core.call_outcomes import CallOutcome, had_no_effect, outcome_of
from agenteval.core.reasoning import agent_texts
from agenteval.core.scenario import Tool
from agenteval.core.score import Finding, Severity
from agenteval.core.severity import FALSE_CLAIM, WRONG_ORDER, Act, severity_of
from agenteval.core.tool_effects import ToolEffect, effect_of
from agenteval.core.trajectory import ToolCall, Trajectory
from agenteval.scoring.judges.quotations import is_quoted
from agenteval.scoring.metrics import TOOL_CALL_BEHAVIOR


def rate_finding(
    finding: Finding,
    trajectory: Trajectory,
    tools: Mapping[str, Tool],
    overrides: Mapping[str, Severity] | None = None,
) -> Finding:
    """Return the finding with the severity of its effect.

    ``tools`` contains the declared tools, with their marks."""
    severity = severity_of(
        finding.label,
        overrides,
        act=find_cited_act(finding, trajectory, tools),
        kind=finding.rule_kind,
        in_words=finding.rule_kind is not None and _quotes_the_agent(finding, trajectory),
        carried_out=finding.carried_out,
    )
    return finding if severity is finding.severity else finding.model_copy(update={"severity": severity})


def _quotes_the_agent(finding: Finding, trajectory: Trajectory) -> bool:
    return any(is_quoted(finding.evidence, agent_texts(turn)) for turn in trajectory.all_turns)


def find_cited_act(finding: Finding, trajectory: Trajectory, tools: Mapping[str, Tool]) -> Act | None:
    """Return the act that a finding cites, or ``None`` if it cites only words.

    If the finding may refer to any of several calls, return the call with the most severe effect."""
    calls = find_cited_calls(finding, [turn.tool_calls for turn in trajectory.all_turns])
    acts = [build_act(call, tools) for call in calls]
    if acts:
        return max(acts, key=lambda each: (each.may_have_changed_something, each.tool is ToolEffect.WRITES))
    missing = [Act(_effect(name, tools)) for name in _not_called(finding, trajectory, tools)]
    return max(missing, key=lambda each: each.tool is ToolEffect.WRITES, default=None)


def list_possible_acts(
    trajectory: Trajectory, tools: Mapping[str, Tool], names: Iterable[str]
) -> list[Act | None]:
    """List every act that a finding about a conversation might cite.

    The acts are the calls in the conversation, potential calls to the tools in ``tools`` and ``names``, a
    call that may not have been observed, and words alone (``None``)."""
    unseen = [] if trajectory.all_calls_seen else [Act(ToolEffect.WRITES, CallOutcome.OPEN)]
    made = [build_act(call, tools) for call in trajectory.tool_calls]
    return [None, *made, *(Act(_effect(name, tools)) for name in {*tools, *names}), *unseen]


def build_act(call: ToolCall, tools: Mapping[str, Tool]) -> Act:
    """Return the act that a call performed, to the extent that it is known."""
    return Act(_effect(call.name, tools), outcome_of(call))


def _not_called(finding: Finding, trajectory: Trajectory, tools: Mapping[str, Tool]) -> Iterable[str]:
    """Return the tools for which a finding may state that they were not called.

    A scripted judge need not name the tool that would have carried out the claimed action: it may be any tool
    that was never called."""
    if finding.references.tool or finding.label != FALSE_CLAIM:
        return filter(None, [finding.references.tool])
    called = {call.name for call in trajectory.tool_calls}
    return (name for name in tools if name not in called)


def _effect(name: str, tools: Mapping[str, Tool]) -> ToolEffect:
    return effect_of(name, tools.get(name))


def get_cited_tool(finding: Finding, trajectory: Trajectory) -> str:
    """Return the name of the tool that a finding is about, or an empty string if the finding is not about a
    tool."""
    calls = find_cited_calls(finding, [turn.tool_calls for turn in trajectory.all_turns])
    return calls[0].name if calls else finding.references.tool


def find_cited_calls(finding: Finding, turns: Sequence[Sequence[ToolCall]]) -> Sequence[ToolCall]:
    """Return the calls that a finding is about. ``turns`` contains the calls in each turn.

    A scripted judge may name only a turn. The finding then refers to the turn's tool, provided that only one
    tool was called in that turn and the failure is not a missing call to another tool. If the failure is a
    false claim of success, the finding refers to the calls that failed."""
    number = _get_faulty_call(finding)
    if number is not None:
        calls = [call for turn in turns for call in turn]
        return calls[number : number + 1] if number >= 0 else ()
    called = turns[finding.turn] if finding.turn is not None and 0 <= finding.turn < len(turns) else ()
    if finding.label == FALSE_CLAIM:
        return () if finding.references.tool else [call for call in called if had_no_effect(call)]
    if finding.metric != TOOL_CALL_BEHAVIOR or finding.label == "missing tool call":
        return ()
    return called if len({call.name for call in called}) == 1 else ()


def _get_faulty_call(finding: Finding) -> int | None:
    """Return the number of the call that is at fault.

    Of two identical calls, the second is redundant. Of two calls in the wrong order, the first was made too
    early."""
    other = finding.references.other_call
    if finding.call is None or other is None or finding.label == WRONG_ORDER:
        return finding.call
    return max(finding.call, other)
