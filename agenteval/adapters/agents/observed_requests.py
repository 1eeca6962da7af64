"""Combine all information about a Python agent's turn into one reply: the agent's own reply, its tool calls,
and its model requests.

The agent may run in this interpreter or in another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agenteval.core.protocols import AgentTool, ReadReply
from agenteval.core.trajectory import CallEvidence
from agenteval.messages.model_calls import KnownCalls, merge_model_calls, parse_model_turn


def parse_agent_tools(described: Mapping[str, Any]) -> tuple[AgentTool, ...] | None:
    """Return an agent's tools, or ``None`` if the tools are unknown. ``described`` is a target summary that
    ``to_summary`` returned."""
    tools = described["tools"]
    return None if tools is None else tuple(AgentTool(**each) for each in tools)


class ObservedRequests:
    """The model requests observed in the conversations of one agent. ``warn`` is called for unreadable
    requests."""

    def __init__(self, name: str, warn: Callable[[str], None]) -> None:
        self._name = name
        self._warn = warn

    def enrich_reply(
        self, reply: ReadReply | None, exchanges: Sequence[Mapping[str, Any]], known: KnownCalls
    ) -> ReadReply | None:
        """Add the observed requests and the intercepted calls of a turn to the turn's complete or partial
        reply.

        Return ``None`` if there is neither a reply nor anything to add."""
        if reply is None and not exchanges and not known.all_scenario_calls:
            return None
        reply = reply or ReadReply()
        shown = (
            CallEvidence.RECORDED if known.has_intercepted_tools and not known.is_framework_object else None
        )
        reply = replace(reply, made=tuple(known.all_scenario_calls), evidence=reply.evidence or shown)
        if not exchanges:
            return reply
        turn = parse_model_turn(exchanges)
        for unread in () if known.is_framework_object else (*turn.unreadable, *turn.forked):
            self._warn(f"agent '{self._name}': {unread}; its calls are not observed")
        return merge_model_calls(reply, turn, known)
