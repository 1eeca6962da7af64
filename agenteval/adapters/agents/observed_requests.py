"""What is known of a Python agent, here or in an interpreter of its own: the tools that it has, and what its
models were asked for: with what the agent itself shows, one reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agenteval.core.protocols import AgentTool, ReadReply
from agenteval.core.trajectory import CallEvidence
from agenteval.messages.model_calls import KnownCalls, merge_model_calls, parse_model_turn


def parse_agent_tools(described: Mapping[str, Any]) -> tuple[AgentTool, ...] | None:
    """The tools of an agent, where they are known. ``described``: see ``deciding.Agent.described``."""
    tools = described["tools"]
    return None if tools is None else tuple(AgentTool(**each) for each in tools)


class ObservedRequests:
    """What was heard of the conversations of one agent. ``warn`` hears of requests that could not be read."""

    def __init__(self, name: str, warn: Callable[[str], None]) -> None:
        self._name = name
        self._warn = warn

    def enrich_reply(
        self, reply: ReadReply | None, exchanges: Sequence[Mapping[str, Any]], known: KnownCalls
    ) -> ReadReply | None:
        """Return the reply, or what there is of one, with what was heard of its turn and the calls that were
        met in it; ``None`` where there is nothing."""
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
