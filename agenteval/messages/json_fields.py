"""Reads fields from JSON objects of unknown origin. If a value is missing or has an unexpected type, an empty
value is returned. Pure.

With these lookups, a parser needs only to list the keys in order of preference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.core.json_text import parse_or


def is_json(text: str) -> bool:
    """Check whether a string is valid JSON of any type."""
    return parse_or(text, _NOT_JSON) is not _NOT_JSON


_NOT_JSON = object()


def read_json(value: Any) -> Any:
    """Return the list or object encoded in a JSON string, or any other value unchanged."""
    is_json = isinstance(value, str) and value.lstrip().startswith(("[", "{"))
    return parse_or(value, value) if is_json else value


def parse_json_container(text: str) -> Any:
    """Return the list or object encoded in a JSON string, or ``None`` if the string encodes neither."""
    found = read_json(text)
    return None if isinstance(found, str) else found


def object_of(value: Any) -> Mapping[str, Any]:
    """Return an object unchanged. For any other value, return an empty object."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """Return a list unchanged. For any other value, return an empty list."""
    return value if isinstance(value, list) else []


def objects_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list. For any other value, return an empty list."""
    return [each for each in list_of(value) if isinstance(each, dict)]


def first_text(fields: Mapping[str, Any], *keys: str) -> str:
    """Return the first non-empty string under the given keys, or an empty string if there is none."""
    for key in keys:
        found = fields.get(key)
        if found and isinstance(found, str):
            return found
    return ""


def object_at(fields: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return the first object under the given keys, or an empty object if there is none."""
    for key in keys:
        found = fields.get(key)
        if isinstance(found, dict):
            return found
    return {}


def list_at(fields: Mapping[str, Any], *keys: str) -> list[Any]:
    """Return the first list under the given keys, or an empty list if there is none."""
    for key in keys:
        found = fields.get(key)
        if isinstance(found, list):
            return found
    return []


def first_nonempty(keys: Sequence[str], *places: Mapping[str, Any]) -> Any:
    """Return the first non-empty value under the given keys, searching one object after another, or ``None``
    if there is none."""
    return next((found for place in places for key in keys if (found := place.get(key))), None)


def first_present(keys: Sequence[str], *places: Mapping[str, Any]) -> Any:
    """Return the first value under the given keys that is not ``None``, searching one object after another,
    or ``None`` if there is none."""
    return next((found for place in places for key in keys if (found := place.get(key)) is not None), None)


def drop_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields whose values are not ``None``."""
    return {key: value for key, value in fields.items() if value is not None}


def drop_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields whose values are not empty."""
    return {key: value for key, value in fields.items() if value}
