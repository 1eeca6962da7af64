"""The sessions of Gemini CLI: messages of the type ``user`` or ``gemini``, calls with their results. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList

_NOTICES = ("info", "error")


def _is_message(message: Mapping[str, Any]) -> bool:
    return message.get("type") in ("user", "gemini", *_NOTICES)


def _in_openai(messages: Sequence[Any], tell: Tell) -> Iterator[Any]:
    for message in messages:
        if message["type"] in _NOTICES:
            tell("notices of the program were left out")
        elif message["type"] == "user":
            yield {"role": "user", "content": message.get("content")}
        else:
            calls = message.get("toolCalls")
            yield {"role": "assistant", "content": message.get("content"), "tool_calls": calls}


importer = MessageList("gemini-cli", _is_message, _in_openai)
