"""The messages of Letta's agents, known by their ``message_type``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell, word
from agenteval.messages.dialects.message_lists import MessageList

_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "tool_call": "assistant",
             "approval_request": "assistant", "tool_return": "tool"}  # fmt: skip


def _is_message(message: Mapping[str, Any]) -> bool:
    return word(message, "message_type").endswith("_message")


def _in_openai(messages: Sequence[Any], tell: Tell) -> Iterator[Any]:
    for message in messages:
        kind = message["message_type"].removesuffix("_message")
        if kind == "tool_return":
            named = {key: message.get(key) for key in ("tool_call_id", "name")}
            failed = message.get("status") == "error"
            yield {"role": "tool", "content": message.get("tool_return"), "is_error": failed, **named}
        elif kind in _ROLES:
            own = {key: message[key] for key in ("content", "tool_call") if key in message}
            yield {"role": _ROLES[kind], **own}
        elif kind not in ("reasoning", "hidden_reasoning"):
            tell(f"a message of the unknown type '{kind[:40]}' was skipped")


importer = MessageList("letta", _is_message, _in_openai)
