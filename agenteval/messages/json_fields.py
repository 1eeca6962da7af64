"""What stands in JSON that others wrote: of the kind that is expected, or nothing. Pure.

Every reader asks the same few questions of a foreign object. They are answered here, so that a reader says
which keys it reads, and in which order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.core.json_text import parse_or


def is_json(text: str) -> bool:
    """Whether a text is JSON, of any kind."""
    return parse_or(text, _NOT_JSON) is not _NOT_JSON


_NOT_JSON = object()


def read_json(value: Any) -> Any:
    """The list or the object that a text is the JSON of; anything else as it is."""
    is_json = isinstance(value, str) and value.lstrip().startswith(("[", "{"))
    return parse_or(value, value) if is_json else value


def json_in(text: str) -> Any:
    """The list or the object that a text is the JSON of; ``None``: it is none."""
    found = read_json(text)
    return None if isinstance(found, str) else found


def object_of(value: Any) -> Mapping[str, Any]:
    """An object as it is; empty for anything else."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """A list as it is; empty for anything else."""
    return value if isinstance(value, list) else []


def objects_of(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; empty for anything else."""
    return [each for each in list_of(value) if isinstance(each, dict)]


def first_text(fields: Mapping[str, Any], *keys: str) -> str:
    """The first text below these keys that is not empty; empty: there is none."""
    for key in keys:
        found = fields.get(key)
        if found and isinstance(found, str):
            return found
    return ""


def object_at(fields: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The first object below these keys; empty: there is none."""
    for key in keys:
        found = fields.get(key)
        if isinstance(found, dict):
            return found
    return {}


def list_at(fields: Mapping[str, Any], *keys: str) -> list[Any]:
    """The first list below these keys; empty: there is none."""
    for key in keys:
        found = fields.get(key)
        if isinstance(found, list):
            return found
    return []


def first_nonempty(keys: Sequence[str], *places: Mapping[str, Any]) -> Any:
    """The first value below these keys that is not empty, place by place; ``None``: there is none."""
    return next((found for place in places for key in keys if (found := place.get(key))), None)


def first_present(keys: Sequence[str], *places: Mapping[str, Any]) -> Any:
    """The first value below these keys, place by place; ``None``: there is none."""
    return next((found for place in places for key in keys if (found := place.get(key)) is not None), None)


def drop_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}


def drop_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value which is not empty."""
    return {key: value for key, value in fields.items() if value}
