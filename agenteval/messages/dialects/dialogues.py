"""The dialogues of sets of data: a ``speaker``, USER or SYSTEM, and an ``utterance``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell, word
from agenteval.messages.dialects.message_lists import MessageList, unread_of


def _is_message(message: Mapping[str, Any]) -> bool:
    is_known = word(message, "speaker").lower() in ("user", "system")
    return is_known and isinstance(message.get("utterance"), str)


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    """In such sets of data the system is who answers."""
    for message in messages:
        role = "user" if message["speaker"].lower() == "user" else "assistant"
        yield {**unread_of(message, ()), "role": role, "content": message["utterance"]}


importer = MessageList("dialogues", _is_message, _in_openai)
