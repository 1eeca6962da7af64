"""Combine what is known of a Python agent's turn into one reply: its own reply, its tool calls, its model
requests.

The agent may run here or in another interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agenteval.core.protocols import AgentTool, ReadReply
from agenteval.core.trajectory import CallEvidence
from agenteval.messages.model_calls import KnownCalls, merge_model_calls, parse_model_turn


def parse_agent_tools(described: Mapping[str, Any]) -> tuple[AgentTool, ...] | None:
    """Return the tools of an agent; ``None`` if they are unknown. ``described``: a target's summary
    (``to_summary``)."""
    tools = described["tools"]
    return None if tools is None else tuple(AgentTool(**each) for each in tools)


class ObservedRequests:
    """The model requests observed in the conversations of one agent. ``warn`` reports unreadable ones."""

    def __init__(self, name: str, warn: Callable[[str], None]) -> None:
        self._name = name
        self._warn = warn

    def enrich_reply(
        self, reply: ReadReply | None, exchanges: Sequence[Mapping[str, Any]], known: KnownCalls
    ) -> ReadReply | None:
        """Add the observed requests and the intercepted calls of a turn to its reply, or to what there is of
        one.

        Returns ``None`` if there is nothing."""
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
