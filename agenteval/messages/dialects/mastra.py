"""The messages that Mastra stores: a content with a ``format`` and ``parts``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList, unread_of


def _is_message(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, dict) and "format" in content and isinstance(content.get("parts"), list)


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        content = message["content"]
        yield {**unread_of(content, ("format", "parts", "content")), **message, "content": content["parts"]}


importer = MessageList("mastra", _is_message, _in_openai, names_role=True)
