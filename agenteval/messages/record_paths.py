"""Dotted paths into records: ``labels.task_id``, ``trials.0.reward``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from agenteval.core.errors import did_you_mean

MISSING: Any = object()
"""What ``find`` gives for a path that is not there. ``None`` is a value of its own."""

_MAX_PATHS = 300
_MAX_DEPTH = 4


def find_value(record: Any, path: str) -> Any:
    """The value at a path, or ``MISSING``. Digits (``-1``: the last) are places in a list, and a key that
    itself has dots in it is found as well."""
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
    """A path as a key and what follows below it, split at each of its dots."""
    dots = [at for at, letter in enumerate(path) if letter == "."]
    return tuple((path[:at], path[at + 1 :]) for at in dots)


def _find_index(record: list[Any], path: str) -> Any:
    head, dot, rest = path.partition(".")
    is_place = head.removeprefix("-").isdecimal() and len(head) < 10
    if not is_place or not -len(record) <= int(head) < len(record):
        return MISSING
    return find_value(record[int(head)], rest) if dot else record[int(head)]


def suggest_path(record: Any, path: str) -> str:
    """What may have been meant by a path that is nowhere, or what there is."""
    paths = [each for each, _ in zip(_iter_paths(record), range(_MAX_PATHS), strict=False)]
    near = did_you_mean(path, paths)
    if near.startswith("did you mean"):
        return near
    last = path.rpartition(".")[2]
    for each in paths:
        if each.rpartition(".")[2].casefold() == last.casefold():
            return f"did you mean '{each}'?"
    known = [each for each in paths if not each.startswith(("messages", "tools"))]
    more = f", and {len(known) - 20} more" if len(known) > 20 else ""
    return f"there is {', '.join(known[:20])}{more}" if known else ""


def _iter_paths(value: Any, before: str = "", depth: int = 0) -> Iterator[str]:
    """Every path to a plain value; of lists only the first item, and no conversation."""
    if isinstance(value, Mapping) and depth < _MAX_DEPTH:
        for key, item in value.items():
            if depth or key not in ("messages", "tools"):
                yield from _iter_paths(item, f"{before}{key}.", depth + 1)
    elif isinstance(value, list) and value and depth < _MAX_DEPTH:
        yield from _iter_paths(value[0], f"{before}0.", depth + 1)
    elif before and not isinstance(value, Mapping | list):
        yield before.removesuffix(".")


def is_success(value: Any) -> bool:
    """Whether a known outcome is a success: true, 1 or 1.0, also where a log wrote them as text."""
    if isinstance(value, str):
        return value.strip().lower() in ("true", "1", "1.0")
    return isinstance(value, bool | int | float) and value == 1
