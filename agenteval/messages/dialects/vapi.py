"""The messages of Vapi's calls: what was said below ``message``, roles of its own for calls. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList, unread_of

_OF_RECORDS = frozenset(
    (
        *("artifact", "messagesOpenAIFormatted", "analysis", "costs", "costBreakdown", "assistant", "squad"),
        *("monitor", "transport", "phoneNumber", "customer", "assistantOverrides", "metadata"),
    )
)
_OF_MESSAGES = frozenset(("toolCalls", "result"))
_ROLES = {"user": "user", "bot": "assistant", "system": "system"}
_CALLS, _RESULT = "tool_calls", "tool_call_result"


def _is_message(message: Mapping[str, Any]) -> bool:
    role = message.get("role")
    return role == _RESULT or (role in (*_ROLES, _CALLS) and isinstance(message.get("message"), str))


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        unread = unread_of(message, _OF_MESSAGES)
        if message["role"] == _RESULT:
            named = {"tool_call_id": message.get("toolCallId"), "name": message.get("name")}
            yield {**unread, "role": "tool", **named, "content": message.get("result")}
        elif message["role"] == _CALLS:
            said = {"content": message.get("message"), "tool_calls": message.get("toolCalls")}
            yield {**unread, "role": "assistant", **said}
        else:
            yield {**unread, "role": _ROLES[message["role"]], "content": message["message"]}


importer = MessageList("vapi", _is_message, _in_openai, names_role=True, of_records=_OF_RECORDS)
