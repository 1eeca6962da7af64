"""The steps of the Agent Trajectory Interchange Format. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList, unread_of

_OF_STEPS = frozenset(("step_id", "source", "message", "tool_calls", "observation", "metrics"))
_OF_RESULTS = frozenset(("source_call_id", "content"))


def _is_step(message: Mapping[str, Any]) -> bool:
    return "step_id" in message and message.get("source") in ("user", "agent", "system")


def _in_openai(steps: Sequence[Any], _: Tell) -> Iterator[Any]:
    for step in steps:
        calls = [{**each, "id": each.get("tool_call_id")} for each in step.get("tool_calls") or ()]
        called = {"tool_calls": calls} if calls else {}
        observed = step.get("observation") or {}
        unread = {**unread_of(step, _OF_STEPS), **unread_of(observed, ("results",))}
        yield {**unread, "role": step["source"], "content": step.get("message"), **called}
        for result in observed.get("results") or ():
            unread = unread_of(result, _OF_RESULTS)
            if result.get("content") is not None or unread:
                identity = result.get("source_call_id")
                yield {**unread, "role": "tool", "tool_call_id": identity, "content": result.get("content")}


importer = MessageList("atif", _is_step, _in_openai)
