"""Do arguments fit a JSON Schema. Nearly all do, which a few lines can tell without a library."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from agenteval.detectors.calls import key_of

_NOTES = frozenset(
    [
        "description",
        "title",
        "default",
        "examples",
        "example",
        "format",
        "$schema",
        "$id",
        "$comment",
        "deprecated",
        "readOnly",
        "writeOnly",
        "strict",
        "nullable",
        "contentEncoding",
        "contentMediaType",
    ]
)
_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def breaks(parameters: Mapping[str, Any], args: Mapping[str, Any]) -> str:
    """What in ``args`` the schema forbids; empty if nothing, or if the schema is no JSON Schema. ``null``
    is allowed where the schema says ``nullable`` (OpenAPI)."""
    return "" if _fits(parameters, args, 0) else _asked(parameters, args)


def _fits(schema: Any, value: Any, depth: int) -> bool:
    """Whether ``value`` surely fits. ``False`` also means: who knows."""
    if not isinstance(schema, Mapping) or depth > 30:
        return schema is True
    if value is None and schema.get("nullable") is True:
        return True
    for keyword, wanted in schema.items():
        rule = _RULES.get(keyword)
        if rule is None:
            if keyword not in _NOTES:
                return False
        elif not rule(wanted, value, schema, depth):
            return False
    return True


def _type(wanted: Any, value: Any, _schema: Mapping[str, Any], _depth: int) -> bool:
    if isinstance(wanted, str):
        return wanted in _TYPES and _TYPES[wanted](value)
    return isinstance(wanted, list) and any(
        isinstance(name, str) and name in _TYPES and _TYPES[name](value) for name in wanted
    )


def _enum(wanted: Any, value: Any, _schema: Mapping[str, Any], _depth: int) -> bool:
    if isinstance(value, str):
        return isinstance(wanted, list) and value in wanted
    return isinstance(wanted, list) and key_of(value) in [key_of(item) for item in wanted]


def _required(wanted: Any, value: Any, _schema: Mapping[str, Any], _depth: int) -> bool:
    return not isinstance(value, dict) or (
        isinstance(wanted, list) and all(isinstance(name, str) and name in value for name in wanted)
    )


def _properties(wanted: Any, value: Any, _schema: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(value, dict):
        return True
    if not isinstance(wanted, Mapping):
        return False
    return all(_fits(wanted[name], item, depth + 1) for name, item in value.items() if name in wanted)


def _further(wanted: Any, value: Any, schema: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(value, dict) or wanted is True:
        return True
    known = schema.get("properties", {})
    if not isinstance(known, Mapping) or "patternProperties" in schema:
        return False
    return all(name in known or _fits(wanted, item, depth + 1) for name, item in value.items())


def _items(wanted: Any, value: Any, _schema: Mapping[str, Any], depth: int) -> bool:
    return not isinstance(value, list) or all(_fits(wanted, item, depth + 1) for item in value)


def _any_of(wanted: Any, value: Any, _schema: Mapping[str, Any], depth: int) -> bool:
    return isinstance(wanted, list) and any(_fits(option, value, depth + 1) for option in wanted)


def _bound(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any, Mapping[str, Any], int], bool]:
    def rule(wanted: Any, value: Any, _schema: Mapping[str, Any], _depth: int) -> bool:
        is_number = _TYPES["number"]
        return not is_number(value) or (is_number(wanted) and holds(value, wanted))

    return rule


def _size(
    kind: type[str] | type[list[Any]], holds: Callable[[int, int], bool]
) -> Callable[[Any, Any, Mapping[str, Any], int], bool]:
    def rule(wanted: Any, value: Any, _schema: Mapping[str, Any], _depth: int) -> bool:
        return not isinstance(value, kind) or (type(wanted) is int and holds(len(value), wanted))

    return rule


_RULES: Mapping[str, Callable[[Any, Any, Mapping[str, Any], int], bool]] = {
    "type": _type,
    "enum": _enum,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _further,
    "items": _items,
    "anyOf": _any_of,
    "minimum": _bound(lambda value, bound: value >= bound),
    "maximum": _bound(lambda value, bound: value <= bound),
    "exclusiveMinimum": _bound(lambda value, bound: value > bound),
    "exclusiveMaximum": _bound(lambda value, bound: value < bound),
    "minLength": _size(str, lambda size, bound: size >= bound),
    "maxLength": _size(str, lambda size, bound: size <= bound),
    "minItems": _size(list, lambda size, bound: size >= bound),
    "maxItems": _size(list, lambda size, bound: size <= bound),
}


def _asked(parameters: Mapping[str, Any], args: Mapping[str, Any]) -> str:
    """What the library says, where these lines could not tell."""
    try:
        return checker(json.dumps(parameters, sort_keys=True), nullable=True)(args)
    except (TypeError, ValueError, RecursionError):
        return ""  # nothing that can be written as JSON, or an endless schema: no rule to go by


@lru_cache(maxsize=1024)
def checker(schema_text: str, *, nullable: bool) -> Callable[[Mapping[str, Any]], str]:
    """What tells the first things in arguments that a JSON Schema forbids; empty if nothing, or if the
    schema is none or refers to what is not in it: no reference is ever fetched. ``nullable``: ``null`` is
    allowed where the schema says ``nullable``."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    schema = json.loads(schema_text)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return lambda _: ""
    registry: Registry[Any] = Registry()  # without one, the library would fetch references
    validator = Draft202012Validator(schema, registry=registry)

    def check(args: Mapping[str, Any]) -> str:
        try:
            found = [error for error in validator.iter_errors(args) if not (nullable and _may_be_null(error))]
        except (Unresolvable, re.error):
            return ""
        found.sort(key=lambda error: (list(map(str, error.absolute_path)), error.message))
        return "; ".join(map(_say, found[:3]))

    return check


def _may_be_null(error: Any) -> bool:
    allowed = isinstance(error.schema, Mapping) and error.schema.get("nullable") is True
    return error.instance is None and allowed


def _say(error: Any) -> str:
    path = ".".join(str(part) for part in error.absolute_path)
    message = str(error.message)[:200]
    return f"{path}: {message}" if path else message
