"""Accesses the parts of a value as an author wrote it. A value of an unexpected shape is treated as empty,
because the models report wrong shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Loc: TypeAlias = tuple[str | int, ...]
_CONTAINERS = (Mapping, list)


def iter_items(value: Any) -> Iterable[tuple[str | int, Any]]:
    """Return the items of a mapping, or the items of a list with their positions. Return nothing for any
    other value."""
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def leaves(value: Any, at: Loc = ()) -> Iterator[tuple[Loc, Any]]:
    """Yield every value that is neither a mapping nor a list, with its location. ``at`` is the location of
    ``value``."""
    if not isinstance(value, _CONTAINERS):
        yield at, value
        return
    for key, item in iter_items(value):
        yield from leaves(item, (*at, key))


def value_at(value: Any, keys: Iterable[str]) -> Any:
    """Return the value below the given keys, or ``None`` if there is no such value."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def mapping_at(value: Any, *keys: str) -> Mapping[str, Any]:
    """Return the mapping below the given keys, or an empty mapping if there is none."""
    found = value_at(value, keys)
    return found if isinstance(found, Mapping) else {}


def list_at(value: Any, *keys: str) -> Sequence[Any]:
    """Return the list below the given keys, or an empty list if there is none."""
    found = value_at(value, keys)
    return found if isinstance(found, list) else ()
