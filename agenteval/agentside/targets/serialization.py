"""Convert an agent's return value to JSON. Library objects are serialized by their own methods or field by
field."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

_MAX_DEPTH = 100


def to_reply_line(value: Any) -> dict[str, Any]:
    """Return an answer as a line in the worker's protocol."""
    if type(value).__name__ == "AgentReply" and hasattr(value, "tool_calls"):
        names = ("text", "tool_calls", "messages", "usage", "latency_ms", "agent")
        return {"agent_reply": {name: to_plain_json(getattr(value, name, None)) for name in names}}
    is_list = isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray))
    if value is None or isinstance(value, (str, Mapping)) or is_list or hasattr(value, "model_dump"):
        return {"value": to_plain_json(value)}
    return {"returned": type(value).__name__}


def to_plain_json(value: Any, depth: int = 0) -> Any:
    """Return a value as plain JSON data. Raise ``ValueError`` if the value is nested too deeply. Exceptions
    raised by objects in the value propagate."""
    if depth > _MAX_DEPTH:
        raise ValueError("the agent's return value is nested too deeply or contains itself")
    if isinstance(value, Enum):
        return to_plain_json(value.value, depth + 1)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {_key(key): to_plain_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)) or _is_sequence(value):
        return [to_plain_json(item, depth + 1) for item in value]
    if hasattr(value, "model_dump"):
        return to_plain_json(value.model_dump(exclude_none=True), depth + 1)
    fields = _fields(value)
    return to_plain_json(fields, depth + 1) if fields else describe_unserializable(value)


def describe_unserializable(value: Any) -> str:
    """Return the text that takes the place of a value that cannot be represented as JSON."""
    return f"{type(value).__name__} that is not JSON"


def is_unserializable_text(value: Any) -> bool:
    """Return whether a value is such a text, or contains one."""
    if isinstance(value, Mapping):
        return any(map(is_unserializable_text, value.values()))
    if isinstance(value, list):
        return any(map(is_unserializable_text, value))
    name, end, rest = value.partition(" that is not JSON") if isinstance(value, str) else ("", "", "")
    return bool(end) and not rest and name.isidentifier()


def _key(key: Any) -> str:
    return str(key.value) if isinstance(key, Enum) else str(key)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray))


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, type):
        return {}
    if dataclasses.is_dataclass(value):
        found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        found = dict(getattr(value, "__dict__", {}))
    more = (
        "role",
        "type",
        "content",
        "tool_calls",
        "tool_call_id",
        "name",
        "parts",
    )  # even if they are properties
    found.update({name: getattr(value, name) for name in more if name not in found and hasattr(value, name)})
    return {key: item for key, item in found.items() if not key.startswith("_") and item is not None}
