"""The messages of a thread of OpenAI's assistants, as their interface lists them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList


def _is_message(message: Mapping[str, Any]) -> bool:
    return message.get("object") == "thread.message" and isinstance(message.get("created_at"), int | float)


def _in_openai(messages: Sequence[Any], _: Tell) -> list[Any]:
    """In the order of time: the interface gives the latest first."""
    times = [message["created_at"] for message in messages]
    latest_first = times == sorted(times, reverse=True) and times[0] != times[-1]
    return list(reversed(messages)) if latest_first else list(messages)


importer = MessageList("openai-threads", _is_message, _in_openai, names_role=True)
