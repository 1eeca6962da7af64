"""The messages of Goose's sessions: calls and results are parts of their content. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList, unread_of

_CALLS, _RESULT = ("toolRequest", "frontendToolRequest"), "toolResponse"
_PLACED = frozenset(
    (
        *("toolConfirmationRequest", "contextLengthExceeded", "summarizationRequested", "redactedThinking"),
        "systemNotification",
    )
)
"""Parts without a call; the first asks whether one may be made."""
_OF_PARTS = frozenset(("toolCall", "toolResult"))


def _is_message(message: Mapping[str, Any]) -> bool:
    return isinstance(message.get("content"), list)


def _is_any_of_goose(messages: Sequence[Mapping[str, Any]]) -> bool:
    return any(_kind(part) in (*_CALLS, _RESULT) for message in messages for part in message["content"])


def _kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, dict) else None


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        yield {
            **message,
            "content": [_part(each) for each in message["content"] if _kind(each) not in _PLACED],
        }


def _part(part: Any) -> Any:
    kind = _kind(part)
    unread = unread_of(part, _OF_PARTS) if isinstance(part, dict) else {}
    if kind in _CALLS:
        given = _object(_object(part.get("toolCall")).get("value"))
        named = {"id": part.get("id"), "name": given.get("name")}
        return {**unread, "type": "tool_use", **named, "input": given.get("arguments")}
    if kind == _RESULT:
        outcome = _object(part.get("toolResult"))
        named = {"tool_use_id": part.get("id"), "status": outcome.get("status")}
        return {
            **unread,
            "type": "tool_result",
            **named,
            "content": outcome.get("value", outcome.get("error")),
        }
    return part


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


importer = MessageList("goose", _is_message, _in_openai, names_role=True, is_any=_is_any_of_goose)
