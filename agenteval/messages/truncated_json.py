"""Recognizes messages in truncated JSON. Pure.

Some tracers store only a limited number of characters of a value. Such a text is not an answer in prose, and
the calls in it are unknown."""

from __future__ import annotations

import re
from typing import Any

from agenteval.messages.json_fields import read_json

_MESSAGES_START = re.compile(
    r'\s*(?:\[\s*)*\{(?:\s*"(?:role|content|message|messages|parts|tool_calls|text|type|toolUse|toolResult|'
    r'choices|candidates|generations|lc)"\s*:|[\s\S]*"(?:role|tool_calls|function_call|functionCall)"\s*:)'
)
"""Matches the beginning of JSON messages, of message parts, and of responses that contain messages."""

_KIND = "messages cut off"


def is_truncated_json(value: Any) -> bool:
    """Check whether a string starts out as JSON messages but is not valid JSON because it was truncated."""
    return is_broken_json(value, _MESSAGES_START)


def is_broken_json(value: Any, begins: re.Pattern[str]) -> bool:
    """Check whether a string begins with the given pattern but is not valid JSON."""
    return isinstance(value, str) and isinstance(read_json(value), str) and bool(begins.match(value))


def make_truncated_message(key: str, text: Any) -> dict[str, Any]:
    """Return a message that replaces truncated messages and is marked as unplaced."""
    return {"type": _KIND, key: text}


def is_truncated_message(message: Any) -> bool:
    return isinstance(message, dict) and message.get("type") == _KIND
