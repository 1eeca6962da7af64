"""The messages of Spring AI, known by their ``messageType``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell, word
from agenteval.messages.dialects.message_lists import MessageList, unread_of
from agenteval.messages.speakers import ROLES

_OF_MESSAGES = frozenset(("text", "content", "toolCalls", "responses", "media"))


def _is_message(message: Mapping[str, Any]) -> bool:
    return word(message, "messageType").lower() in ROLES


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        listed = message.get("responses")
        results = [{**each, "content": each.get("responseData")} for each in listed or () if _is_dict(each)]
        unread = unread_of(message, _OF_MESSAGES)
        own = {key: message[key] for key in ("text", "content", "toolCalls") if message.get(key)}
        given = {"tool_responses": results} if results else {}
        yield {**unread, "role": message["messageType"], **own, **given}


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


importer = MessageList("spring-ai", _is_message, _in_openai)
