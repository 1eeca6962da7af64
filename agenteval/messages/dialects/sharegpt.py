"""Sets of training data as ShareGPT began them: ``from`` and ``value``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell, listed
from agenteval.messages.dialects.message_lists import MessageList, unread_of

_ROLES = {"human": "user", "gpt": "assistant", "observation": "tool"}


def _is_message(message: Mapping[str, Any]) -> bool:
    return isinstance(message.get("from"), str) and "value" in message


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        role, value = message["from"].lower(), message["value"]
        unread = unread_of(message, ("value",))
        if role == "function_call":
            yield {**unread, "role": "assistant", "content": None, "tool_calls": listed(value)}
        else:
            yield {**unread, "role": _ROLES.get(role, message["from"]), "content": value}


importer = MessageList("sharegpt", _is_message, _in_openai)
