"""Detects duplicate keys in a JSON object: JSON parsers keep the last value, so the first value is lost.
Pure.

Checking every key would double the reading time. Therefore, the check covers only records that contain their
messages twice. In such a record, a key occurs more often in the JSON text than in the parsed value."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

_RECORD_KEYS = ("messages", "conversation", "request", "response", "choices", "input", "output")
_NEEDLES = tuple((key, b'"%s"' % key.encode()) for key in _RECORD_KEYS)
_WATCHED = frozenset((*_RECORD_KEYS, "content", "role", "tool_calls", "tools", "error"))


def repeated_key(value: Any, data: bytes) -> str:
    """Return the first duplicate key in ``data``, or an empty string if there is none. Only the keys of
    messages, answers and their containers are checked. ``value`` is the parsed ``data``."""
    records = value if isinstance(value, list) else (value,)
    objects = [record for record in records if isinstance(record, dict)]
    objects += [inner for record in objects for inner in record.values() if isinstance(inner, dict)]
    for key, needle in _NEEDLES:
        count = 0
        for each in objects:  # sum() over booleans takes three times as long
            if key in each:
                count += 1
        if count and data.count(needle) > count:
            return _first_repeated_key(data)
    return ""


def _first_repeated_key(data: bytes) -> str:
    found: list[str] = []

    def collect_repeated(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for key, value in pairs:
            if key in fields and key in _WATCHED:
                found.append(key)
            fields[key] = value
        return fields

    try:
        json.loads(data, object_pairs_hook=collect_repeated)
    except (ValueError, RecursionError):
        return ""  # another parser accepted it; the error is reported elsewhere
    return found[0] if found else ""
