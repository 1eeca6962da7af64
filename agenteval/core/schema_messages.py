"""Describes violations of a JSON Schema in agenteval's own words. Agents read these messages and reports
quote them, so the messages must not change when the library is upgraded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

_MOST = 3
_LENGTH = 200

Words: TypeAlias = Callable[[Any, Any, Mapping[str, Any]], Iterable[str]]
"""A function that yields descriptions of a violation. The arguments are a value, the value of the keyword,
and the schema that contains the keyword."""


def describe_schema_errors(errors: Iterable[Any]) -> str:
    """Describe the first of the library's errors, sorted by location."""
    found = [(list(map(str, error.absolute_path)), text) for error in errors for text in _describe(error)]
    found.sort()
    lines = [f"{'.'.join(path)}: {text}" if path else text for path, text in found]
    return "; ".join(list(dict.fromkeys(lines))[:_MOST])


def describe_schema_error(error: Any) -> str:
    """Describe an error without its location."""
    return "; ".join(list(_describe(error))[:_MOST])


def _describe(error: Any) -> Iterator[str]:
    keyword, wanted, value = error.validator, error.validator_value, error.instance
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    words = _DESCRIPTIONS.get(keyword)
    texts = [*words(value, wanted, schema)] if words else []
    if not texts:
        rule = json.dumps(wanted, ensure_ascii=False, default=str)
        texts = [
            f"{_show(value)} does not satisfy {keyword}: {rule}"
            if keyword
            else f"{_show(value)} is not allowed"
        ]
    yield from (text[:_LENGTH] for text in texts)


def _show(value: Any) -> str:
    """Format a string in quotes and any other value as JSON."""
    return repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)


def _template(words: str) -> Words:
    """Return a function that fills in a message template containing ``{value}`` and ``{wanted}``."""
    return lambda value, wanted, _schema: [words.format(value=_show(value), wanted=_show(wanted))]


def _type(value: Any, wanted: Any, _schema: Mapping[str, Any]) -> Iterable[str]:
    names = wanted if isinstance(wanted, list) else [wanted]
    yield f"{_show(value)} is not of type {', '.join(map(repr, names))}"


def _required(value: Any, wanted: Any, _schema: Mapping[str, Any]) -> Iterable[str]:
    return (f"{name!r} is a required property" for name in wanted if name not in value)


def _dependent_required(value: Any, wanted: Any, _schema: Mapping[str, Any]) -> Iterable[str]:
    for name, needed in wanted.items():
        if name in value:
            yield from (f"{name!r} requires {each!r}" for each in needed if each not in value)


def _additional_properties(value: Any, wanted: Any, schema: Mapping[str, Any]) -> Iterable[str]:
    if wanted is False and "patternProperties" not in schema:
        extra = sorted(str(name) for name in value if name not in schema.get("properties", {}))
        yield f"additional properties are not allowed: {', '.join(map(repr, extra))}"


_DESCRIPTIONS: Mapping[str, Words] = {
    "type": _type,
    "required": _required,
    "dependentRequired": _dependent_required,
    "additionalProperties": _additional_properties,
    "enum": _template("{value} is not one of {wanted}"),
    "const": _template("{wanted} was expected"),
    "pattern": _template("{value} does not match {wanted}"),
    "minimum": _template("{value} is less than the minimum of {wanted}"),
    "maximum": _template("{value} is greater than the maximum of {wanted}"),
    "exclusiveMinimum": _template("{value} is not greater than {wanted}"),
    "exclusiveMaximum": _template("{value} is not less than {wanted}"),
    "multipleOf": _template("{value} is not a multiple of {wanted}"),
    "minLength": _template("{value} is shorter than {wanted}"),
    "maxLength": _template("{value} is longer than {wanted}"),
    "minItems": _template("{value} has fewer than {wanted} items"),
    "maxItems": _template("{value} has more than {wanted} items"),
    "minProperties": _template("{value} has fewer than {wanted} properties"),
    "maxProperties": _template("{value} has more than {wanted} properties"),
    "uniqueItems": _template("{value} has duplicate items"),
    "anyOf": _template("{value} is not valid under any of the given schemas"),
    "oneOf": _template("{value} is not valid under exactly one of the given schemas"),
    "not": _template("{value} is valid under a schema that `not` excludes"),
}
