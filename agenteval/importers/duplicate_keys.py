"""Detects duplicate keys in a JSON object: JSON parsers keep the last value, so the first value is lost.
Pure.

Checking every key would double the reading time. Therefore, the check covers only records that contain their
messages twice. In such a record, a key occurs more often in the JSON text than in the parsed value."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

_RECORD_KEYS = ("messages", "conversation", "request", "response", "choices", "input", "output")
_NEEDLES = tuple((key, b'"%s"' % key.encode()) for key in _RECORD_KEYS)
_WATCHED = frozenset((*_RECORD_KEYS, "content", "role", "tool_calls", "tools", "error"))


def repeated_key(value: Any, data: bytes) -> str:
    """Return the first duplicate key in ``data``, or an empty string if there is none. Only the keys of
    messages, answers and their containers are checked. ``value`` is the parsed ``data``."""
    may_repeat = any(count and data.count(needle) > count for needle, count in _counted_keys(value))
    return first_repeated_key(data) if may_repeat else ""


class KeyCounts:
    """The number of keys in the items of a list, and in their JSON text."""

    def __init__(self) -> None:
        self._in_values: Counter[bytes] = Counter()
        self._in_text: Counter[bytes] = Counter()

    def add(self, item: Any, data: bytes) -> None:
        for needle, count in _counted_keys([item]):
            self._in_values[needle] += count
            self._in_text[needle] += data.count(needle)

    @property
    def may_repeat(self) -> bool:
        """True if a key may be duplicated in one of the items, as ``first_repeated_key`` finds out."""
        return any(count and self._in_text[needle] > count for needle, count in self._in_values.items())


def _counted_keys(value: Any) -> Iterator[tuple[bytes, int]]:
    """Yield the text of each key of a record, with the number of objects in ``value`` that have the key."""
    records = value if isinstance(value, list) else (value,)
    objects = [record for record in records if isinstance(record, dict)]
    objects += [inner for record in objects for inner in record.values() if isinstance(inner, dict)]
    for key, needle in _NEEDLES:
        count = 0
        for each in objects:  # sum() over booleans takes three times as long
            if key in each:
                count += 1
        yield needle, count


def first_repeated_key(data: bytes) -> str:
    """Return the first duplicate key in ``data``. Takes several times as long as parsing the data."""
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
