"""The messages of Goose's sessions: calls and results are parts of their content. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList

_CALL, _RESULT = "toolRequest", "toolResponse"


def _is_message(message: Mapping[str, Any]) -> bool:
    return isinstance(message.get("content"), list)


def _is_any_of_goose(messages: Sequence[Mapping[str, Any]]) -> bool:
    return any(_kind(part) in (_CALL, _RESULT) for message in messages for part in message["content"])


def _kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, dict) else None


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        yield {**message, "content": list(map(_part, message["content"]))}


def _part(part: Any) -> Any:
    kind = _kind(part)
    if kind == _CALL:
        given = _object(_object(part.get("toolCall")).get("value"))
        named = {"id": part.get("id"), "name": given.get("name")}
        return {"type": "tool_use", **named, "input": given.get("arguments")}
    if kind == _RESULT:
        outcome = _object(part.get("toolResult"))
        named = {"tool_use_id": part.get("id"), "status": outcome.get("status")}
        return {"type": "tool_result", **named, "content": outcome.get("value", outcome.get("error"))}
    return part


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


importer = MessageList("goose", _is_message, _in_openai, names_role=True, is_any=_is_any_of_goose)
