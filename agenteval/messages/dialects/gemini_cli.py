"""The sessions of Gemini CLI: messages of the type ``user`` or ``gemini``, calls with their results. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList, unread_of

_NOTICES = ("info", "error", "warning")
_OF_MESSAGES = frozenset(("content", "displayContent", "toolCalls", "thoughts", "tokens"))
_SHOWN = "resultDisplay"
"""The result of a call, as the terminal shows it."""


def _is_message(message: Mapping[str, Any]) -> bool:
    return message.get("type") in ("user", "gemini", *_NOTICES)


def _in_openai(messages: Sequence[Any], tell: Tell) -> Iterator[Any]:
    for message in messages:
        if message["type"] in _NOTICES:
            tell("notices of the program were left out")
        elif message["type"] == "user":
            yield {**unread_of(message, _OF_MESSAGES), "role": "user", "content": message.get("content")}
        else:
            calls = message.get("toolCalls")
            if isinstance(calls, list):
                calls = [_without_display(each) for each in calls]
            said = {"role": "assistant", "content": message.get("content"), "tool_calls": calls}
            yield {**unread_of(message, _OF_MESSAGES), **said}


def _without_display(call: Any) -> Any:
    return {key: call[key] for key in call if key != _SHOWN} if isinstance(call, dict) else call


importer = MessageList("gemini-cli", _is_message, _in_openai)
