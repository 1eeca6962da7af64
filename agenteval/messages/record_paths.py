"""Looks up dotted paths in records, such as ``labels.task_id`` and ``trials.0.reward``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from agenteval.core.errors import did_you_mean

MISSING: Any = object()
"""The result of ``find_value`` for a path that does not exist. ``None`` is not used for this purpose, because
``None`` is a valid value."""

_MAX_PATHS = 300
_MAX_DEPTH = 4


def find_value(record: Any, path: str) -> Any:
    """Return the value at a dotted path, or ``MISSING``.

    Numbers are positions in a list (``-1`` is the last). A key that itself contains dots is also found."""
    if isinstance(record, Mapping):
        return _find_key(record, path)
    return _find_index(record, path) if isinstance(record, list) else MISSING


def _find_key(record: Mapping[str, Any], path: str) -> Any:
    if path in record:
        return record[path]
    for head, rest in _split_path(path):
        if head in record and (found := find_value(record[head], rest)) is not MISSING:
            return found
    return MISSING


@lru_cache(maxsize=256)
def _split_path(path: str) -> tuple[tuple[str, str], ...]:
    """Return every way to split a path at a dot, each as a key and the remaining path."""
    dots = [at for at, letter in enumerate(path) if letter == "."]
    return tuple((path[:at], path[at + 1 :]) for at in dots)


def _find_index(record: list[Any], path: str) -> Any:
    head, dot, rest = path.partition(".")
    is_place = head.removeprefix("-").isdecimal() and len(head) < 10
    if not is_place or not -len(record) <= int(head) < len(record):
        return MISSING
    return find_value(record[int(head)], rest) if dot else record[int(head)]


def suggest_path(record: Any, path: str) -> str:
    """Suggest a similar path for a path that does not exist, or list the paths that exist."""
    paths = [each for each, _ in zip(_iter_paths(record), range(_MAX_PATHS), strict=False)]
    near = did_you_mean(path, paths)
    if near.startswith("did you mean"):
        return near
    last = path.rpartition(".")[2]
    for each in paths:
        if each.rpartition(".")[2].casefold() == last.casefold():
            return f"did you mean '{each}'?"
    more = f", and {len(paths) - 20} more" if len(paths) > 20 else ""
    return f"available: {', '.join(paths[:20])}{more}" if paths else ""


def _iter_paths(value: Any, before: str = "", depth: int = 0) -> Iterator[str]:
    """Yield every path to a plain value. Only the first item of each list is used, and conversations are
    omitted."""
    if isinstance(value, Mapping) and depth < _MAX_DEPTH:
        for key, item in value.items():
            if depth or key not in ("messages", "tools"):
                yield from _iter_paths(item, f"{before}{key}.", depth + 1)
    elif isinstance(value, list) and value and depth < _MAX_DEPTH:
        yield from _iter_paths(value[0], f"{before}0.", depth + 1)
    elif before and not isinstance(value, Mapping | list):
        yield before.removesuffix(".")


def is_success(value: Any) -> bool:
    """Check whether a known outcome is a success: true, 1 or 1.0, or one of these written as a string."""
    if isinstance(value, str):
        return value.strip().lower() in ("true", "1", "1.0")
    return isinstance(value, bool | int | float) and value == 1
