"""Messages in JSON that lost their end: a tracer keeps but so many characters of a value. Pure.

What is left is no answer in words, and the calls that stood in it are not known.
"""

from __future__ import annotations

import re
from typing import Any

from agenteval.messages.json_fields import read_json

_MESSAGES_START = re.compile(
    r'\s*(?:\[\s*)*\{(?:\s*"(?:role|content|message|messages|parts|tool_calls|text|type|toolUse|toolResult|'
    r'choices|candidates|generations|lc)"\s*:|[\s\S]*"(?:role|tool_calls|function_call|functionCall)"\s*:)'
)
"""How messages in JSON begin, a part of one, and a response that holds some."""

_KIND = "messages cut off"


def is_truncated_json(value: Any) -> bool:
    """Whether a text begins as messages in JSON, and is none."""
    return is_broken_json(value, _MESSAGES_START)


def is_broken_json(value: Any, begins: re.Pattern[str]) -> bool:
    """Whether a text begins so, and is no JSON."""
    return isinstance(value, str) and isinstance(read_json(value), str) and bool(begins.match(value))


def make_truncated_message(where: str, text: Any) -> dict[str, Any]:
    """What stands in their place among messages, and nobody can place."""
    return {"type": _KIND, where: text}


def is_truncated_message(message: Any) -> bool:
    return isinstance(message, dict) and message.get("type") == _KIND
