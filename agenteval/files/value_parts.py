"""The parts of a value as an author wrote it. What has not the shape that is looked for holds nothing:
whether it should have is for the models to say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Loc: TypeAlias = tuple[str | int, ...]
_CONTAINERS = (Mapping, list)


def iter_items(value: Any) -> Iterable[tuple[str | int, Any]]:
    """The items of a mapping, or those of a list with their positions; of anything else, none."""
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def leaves(value: Any, at: Loc = ()) -> Iterator[tuple[Loc, Any]]:
    """All that is neither a mapping nor a list, with what leads to it. ``at`` leads to ``value``."""
    if not isinstance(value, _CONTAINERS):
        yield at, value
        return
    for key, item in iter_items(value):
        yield from leaves(item, (*at, key))


def value_at(value: Any, keys: Iterable[str]) -> Any:
    """What stands below these keys; ``None``: nothing."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def mapping_at(value: Any, *keys: str) -> Mapping[str, Any]:
    """The mapping that stands there, or an empty one."""
    found = value_at(value, keys)
    return found if isinstance(found, Mapping) else {}


def list_at(value: Any, *keys: str) -> Sequence[Any]:
    """The list that stands there, or an empty one."""
    found = value_at(value, keys)
    return found if isinstance(found, list) else ()
