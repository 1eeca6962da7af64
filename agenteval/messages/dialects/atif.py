"""The steps of the Agent Trajectory Interchange Format. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList


def _is_step(message: Mapping[str, Any]) -> bool:
    return "step_id" in message and message.get("source") in ("user", "agent", "system")


def _in_openai(steps: Sequence[Any], _: Tell) -> Iterator[Any]:
    for step in steps:
        calls = [{**each, "id": each.get("tool_call_id")} for each in step.get("tool_calls") or ()]
        content = step.get("message")
        yield {"role": step["source"], "content": content, **({"tool_calls": calls} if calls else {})}
        for result in (step.get("observation") or {}).get("results") or ():
            if calls and result.get("content") is not None:
                identity = result.get("source_call_id")
                yield {"role": "tool", "tool_call_id": identity, "content": result["content"]}


importer = MessageList("atif", _is_step, _in_openai)
