"""The events of sessions of Google's Agent Development Kit, and the cases of its evaluations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList


def _is_event(event: Mapping[str, Any]) -> bool:
    content = event.get("content")
    is_content = isinstance(content, dict) and isinstance(content.get("parts"), list)
    is_event = "invocationId" in event or "invocation_id" in event
    return isinstance(event.get("author"), str) and (is_content or (is_event and content is None))


def _of_events(events: Sequence[Any]) -> Iterator[Any]:
    """Without what is the beginning of an event that follows."""
    for event in events:
        if isinstance(content := event.get("content"), dict) and not event.get("partial"):
            speaker = "user" if event["author"] == "user" else "model"
            yield {"role": content.get("role") or speaker, "parts": content.get("parts") or []}


def _is_invocation(message: Mapping[str, Any]) -> bool:
    return isinstance(message.get("user_content", message.get("userContent")), dict)


def _of_invocations(invocations: Sequence[Any]) -> Iterator[Any]:
    for each in invocations:
        between = _either(each, "intermediate_data", "intermediateData")
        yield {**_either(each, "user_content", "userContent"), "role": "user"}
        for call in _either(between, "tool_uses", "toolUses", []):
            yield {"role": "model", "parts": [{"function_call": call}]}
        for result in _either(between, "tool_responses", "toolResponses", []):
            yield {"role": "user", "parts": [{"function_response": result}]}
        for event in _either(between, "invocation_events", "invocationEvents", []):
            yield {"role": "model", **(event.get("content") or {})}
        for told in _either(between, "intermediate_responses", "intermediateResponses", []):
            yield {"role": "model", "parts": told[-1]}  # behind the name of the agent that told it
        answer = _either(each, "final_response", "finalResponse")
        if any(isinstance(part, dict) and part.get("text") for part in answer.get("parts") or ()):
            yield {**answer, "role": "model"}


def _either(fields: Mapping[str, Any], key: str, other: str, default: Any = None) -> Any:
    return fields.get(key) or fields.get(other) or ({} if default is None else default)


def _is_one(each: Mapping[str, Any]) -> bool:
    return _is_event(each) or _is_invocation(each)


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    return _of_events(messages) if _is_event(messages[0]) else _of_invocations(messages)


importer = MessageList("google-adk", _is_one, _in_openai)
