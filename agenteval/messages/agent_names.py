"""Finds the agent in a multi-agent system that wrote a message. Pure.

Only names stated in the message itself count; agent names are never guessed. The known fields are ``name`` in
OpenAI's assistant messages (where LangChain and LangGraph put the agent's name), ``agent``, as a string or an
object with a ``name`` (items of the Agents SDK), ``agent_name``, ``sender`` (Swarm), ``source`` (AutoGen) and
``author`` (Google's ADK). A graph node is a step of a program, not an agent, so ``langgraph_node`` is
ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from agenteval.core.trajectory import Step, ToolCall, sum_usage
from agenteval.messages.json_fields import object_of, read_json

_AGENT_NAME_KEYS = ("agent", "agent_name", "agentName")
_MESSAGE_NAME_KEYS = ("name", "sender", "source", "author")
AGENT_KEYS = frozenset((*_AGENT_NAME_KEYS, *_MESSAGE_NAME_KEYS))
"""The keys in a message that may contain the name of its agent."""
_ROLES = frozenset(
    ("user", "human", "customer", "assistant", "ai", "gpt", "bot", "model", "agent", "system", "developer")
)
"""Values of ``sender``, ``source`` and ``author`` that are roles, not names of agents."""
_MAX_NAME_LENGTH = 200


def agent_of(message: Mapping[str, Any]) -> str:
    """Return the name of the agent (in a multi-agent system) that wrote an assistant message, or an empty
    string if the message names no agent.

    A call that is a separate item is also accepted."""
    own_agents = (read_agent_name(message.get(key)) for key in _AGENT_NAME_KEYS)
    if (found := next(filter(None, own_agents), "")) or _is_call(message):  # a call's name is the tool's
        return found
    senders = (read_agent_name(message.get(key)) for key in _MESSAGE_NAME_KEYS[1:])
    agents = (each for each in senders if each and each.lower() not in _ROLES)
    return read_agent_name(message.get("name")) or next(agents, "")


def read_agent_name(value: Any) -> str:
    """Return the agent's name from a string, mapping or object, or an empty string if there is no name."""
    if isinstance(value, Mapping):
        value = value.get("name")
    elif value is not None and not isinstance(value, str | type):
        value = getattr(value, "name", None)
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text.encode("utf-8", "replace").decode()[:_MAX_NAME_LENGTH]


def _is_call(message: Mapping[str, Any]) -> bool:
    kind = message.get("type")
    is_item = isinstance(kind, str) and kind.endswith(("_call", "_call_invocation"))
    return is_item or "arguments" in message or isinstance(message.get("function"), Mapping)


def assign_agent(step: Step, agent: str) -> Step:
    """Return the step with the given agent as its author. Calls in the step that name no agent are also
    attributed to it."""
    if not agent:
        return step
    calls = tuple(
        call if call.agent else call.model_copy(update={"agent": agent}) for call in step.tool_calls
    )
    return step.model_copy(update={"agent": step.agent or agent, "tool_calls": calls})


# ── hand-offs ────────────────────────────────────────────────────────────────────────────────────


def apply_handoffs(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Apply multi-agent handoffs: in the steps of one turn, set the target of a handoff as the agent of each
    later step that names no agent.

    OpenAI's Agents SDK reports handoffs only in its ``transfer_to_…`` tools, which return ``{"assistant":
    NAME}`` (``Handoff.get_transfer_message``). The agent before the handoff remains unknown."""
    if not any(map(_handoff_target, _calls_of(steps))):
        return tuple(steps)
    assigned, agent = [], ""
    for step in steps:
        agent = "" if step.agent else agent
        assigned.append(assign_agent(step, agent))
        agent = next(filter(None, map(_handoff_target, step.tool_calls)), agent)
    return tuple(assigned)


def drop_silent_steps(steps: Sequence[Step]) -> list[Step]:
    """Return the steps, excluding the steps of agents that only performed a handoff.

    In such a step, a named agent produced neither text nor calls before another agent took over, so the step
    is not a reply. The step of the agent that took over lists the earlier agent in ``handed_by``."""
    kept: list[Step] = []
    silent: list[Step] = []
    for step, after in zip_longest(steps, steps[1:]):
        is_silent = bool(step.agent) and not (step.text or step.tool_calls)
        if is_silent and after is not None and after.agent not in ("", step.agent):
            silent.append(step)
            continue
        if silent:
            usage = sum_usage(each.usage for each in (*silent, step))
            names = tuple(each.agent for each in silent)
            step, silent = step.model_copy(update={"handed_by": names, "usage": usage}), []
        kept.append(step)
    return kept


def _calls_of(steps: Iterable[Step]) -> Iterable[ToolCall]:
    return (call for step in steps for call in step.tool_calls)


def _handoff_target(call: ToolCall) -> str:
    """Return the agent to which a call handed over the conversation, or an empty string if the call is not a
    handoff."""
    if not call.name.startswith("transfer_to_") or call.result is None or call.result.is_error:
        return ""
    value = object_of(read_json(call.result.value))
    return read_agent_name(value["assistant"]) if value.keys() == {"assistant"} else ""
