"""The messages of Letta's agents, known by their ``message_type``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell, word
from agenteval.messages.dialects.message_lists import MessageList, unread_of

_SILENT = ("reasoning", "hidden_reasoning", "event", "summary")
_OF_MESSAGES = frozenset(("content", "tool_call", "tool_calls", "tool_returns"))
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "tool_call": "assistant",
             "approval_request": "assistant", "tool_return": "tool"}  # fmt: skip


def _is_message(message: Mapping[str, Any]) -> bool:
    return word(message, "message_type").endswith("_message")


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        unread = unread_of(message, _OF_MESSAGES)
        kind = message["message_type"].removesuffix("_message")
        if kind == "tool_return":
            named = {key: message.get(key) for key in ("tool_call_id", "name")}
            failed = message.get("status") == "error"
            returned = {"content": message.get("tool_return"), "is_error": failed}
            yield {**unread, "role": "tool", **returned, **named}
        elif kind in _ROLES:
            own = {key: message[key] for key in ("content", "tool_call", "tool_calls") if key in message}
            yield {**unread, "role": _ROLES[kind], **own}
        elif kind not in _SILENT:
            yield {**message, "role": message["message_type"]}


importer = MessageList("letta", _is_message, _in_openai)
