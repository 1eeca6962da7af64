"""Do arguments fit a JSON Schema. Nearly all do, which a few lines can tell without a library."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from threading import local
from typing import Any

from agenteval.core.call_outcomes import key_of
from agenteval.core.patterns import EndlessSearchError, is_in
from agenteval.core.schema_words import describe, describe_one

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
    """What in ``args`` the schema forbids; empty if nothing, or if the schema is not JSON Schema. ``null``
    is allowed where the schema says ``nullable`` (OpenAPI)."""
    return "" if fits(parameters, args, 0) else _asked(parameters, args)


def fits(schema: Any, value: Any, depth: int) -> bool:
    """Whether ``value`` surely fits. ``False`` also means: who knows."""
    if not isinstance(schema, (dict, Mapping)) or depth > 30:
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
    if not isinstance(wanted, (dict, Mapping)):
        return False
    for name, item in value.items():
        if name in wanted and not fits(wanted[name], item, depth + 1):
            return False
    return True


def _further(wanted: Any, value: Any, schema: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(value, dict) or wanted is True:
        return True
    known = schema.get("properties", {})
    if not isinstance(known, Mapping) or "patternProperties" in schema:
        return False
    return all(name in known or fits(wanted, item, depth + 1) for name, item in value.items())


def _items(wanted: Any, value: Any, _schema: Mapping[str, Any], depth: int) -> bool:
    return not isinstance(value, list) or all(fits(wanted, item, depth + 1) for item in value)


def _any_of(wanted: Any, value: Any, _schema: Mapping[str, Any], depth: int) -> bool:
    return isinstance(wanted, list) and any(fits(option, value, depth + 1) for option in wanted)


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
    schema is none. What it refers to and does not hold forbids nothing, and the rest does: no reference is
    ever fetched. ``nullable``: ``null`` is allowed where the schema says ``nullable``."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry

    schema = json.loads(schema_text)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return lambda _: ""
    registry: Registry[Any] = Registry()  # without one, the library would fetch references
    validator = _lenient()(schema, registry=registry)

    def check(args: Mapping[str, Any]) -> str:
        found = [error for error in validator.iter_errors(args) if not (nullable and _may_be_null(error))]
        return describe(found)

    return check


def schema_mistakes(schema: Mapping[str, Any]) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
    """What is wrong with a JSON Schema that an author wrote, and where in it."""
    return _mistakes(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=4096)
def _mistakes(text: str) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
    """By content: thousands of scenarios may share one schema, and checking takes milliseconds."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    schema = json.loads(text)
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return ((f"not a JSON Schema: {describe_one(error)}", tuple(error.absolute_path)),)
    nowhere = "leads nowhere: only parts of the schema can be referenced"
    return tuple((f"the reference '{to}' {nowhere}", path) for to, path in dangling(schema))


@lru_cache(maxsize=1024)
def misfit_of(schema_text: str) -> Callable[[Any], str]:
    """What tells the first things in a value that an author's JSON Schema forbids; empty if nothing. Nothing
    is let pass that cannot be told: raises ``EndlessSearchError`` or ``RecursionError``."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    schema = json.loads(schema_text)
    registry: Registry[Any] = Registry()  # without one, the library would fetch references
    draft = validator_for(schema, default=Draft202012Validator)
    rules = extend(draft, {"pattern": _pattern})  # type: ignore[no-untyped-call]
    return partial(_first_errors, rules(schema, registry=registry))


def _first_errors(validator: Any, value: Any) -> str:
    return describe(validator.iter_errors(value))


# Of these, what is within tells nothing of the whole where something within cannot be told.
_TURNING = frozenset({"not", "oneOf", "if", "contains", "unevaluatedItems", "unevaluatedProperties"})
_DEEPEST = 100
"""Rules within rules. The library itself breaks in deeper ones, as those of an endless schema are."""


@lru_cache(maxsize=1)
def _cannot_be_told() -> tuple[type[Exception], ...]:
    """What the library raises at a reference to nothing, or to what is not a schema, and at no pattern; and a
    pattern that takes for ever."""
    from referencing.exceptions import Unresolvable

    return (Unresolvable, EndlessSearchError, re.error, ValueError, TypeError, AttributeError)


@lru_cache(maxsize=1)
def _lenient() -> Any:
    """The library's validator, to which a rule that it cannot apply forbids nothing."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    rules, known = _Rules(), {**Draft202012Validator.VALIDATORS, "pattern": _pattern}
    lenient = {name: rules.lenient(name, rule) for name, rule in known.items()}
    return extend(Draft202012Validator, lenient)  # type: ignore[no-untyped-call]


def _pattern(_validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[Any]:
    """As the library has it, but not for ever."""
    from jsonschema import ValidationError

    if isinstance(value, str) and not is_in(wanted, value):
        yield ValidationError("")


class _Rules(local):
    """Counts the rules that could not be applied: their reference leads nowhere or in a circle, or their
    pattern is none."""

    def __init__(self) -> None:
        self._unknown = 0
        self._within: list[tuple[str, int, int]] = []

    def lenient(self, name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        def apply(validator: Any, wanted: Any, value: Any, schema: Any) -> list[Any]:
            before, here = self._unknown, (name, id(schema), id(value))
            found = self._found(here, lambda: rule(validator, wanted, value, schema))
            return found if name not in _TURNING or self._unknown == before else []

        return apply

    def _found(self, here: tuple[str, int, int], errors: Callable[[], Any]) -> list[Any]:
        if here in self._within or len(self._within) > _DEEPEST:
            self._unknown += 1
            return []
        self._within.append(here)
        found: list[Any] = []
        try:
            found.extend(errors() or ())
        except _cannot_be_told():
            self._unknown += 1
        finally:
            self._within.pop()
        return found


def dangling(schema: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """The references of a JSON Schema that lead to no schema in it, and where each one stands."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    registry: Registry[Any] = Registry()
    root = registry.resolver_with_root(DRAFT202012.create_resource(schema))
    for part, path, resolver in _parts(schema, (), root):
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(to := part.get(keyword), str) and not _leads_to_a_schema(resolver, to):
                yield to, (*path, keyword)


def _leads_to_a_schema(resolver: Any, reference: str) -> bool:
    try:
        return isinstance(resolver.lookup(reference).contents, Mapping | bool)
    except _cannot_be_told():
        return False


_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    *("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"),
    *("unevaluatedItems", "unevaluatedProperties"),
)


def _parts(schema: Any, path: tuple[str | int, ...], resolver: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The schema and all schemas in it, each with its path and what resolves its references."""
    from referencing.jsonschema import DRAFT202012

    if not isinstance(schema, Mapping):
        return
    if path and "$id" in schema:
        resolver = resolver.in_subresource(DRAFT202012.create_resource(schema))
    yield schema, path, resolver
    for keyword in _NAMED:
        named = schema.get(keyword)
        for name, part in named.items() if isinstance(named, Mapping) else ():
            yield from _parts(part, (*path, keyword, name), resolver)
    for keyword in _LISTED:
        for index, part in enumerate(schema.get(keyword, ())):
            yield from _parts(part, (*path, keyword, index), resolver)
    for keyword in _SINGLE:
        yield from _parts(schema.get(keyword), (*path, keyword), resolver)


def _may_be_null(error: Any) -> bool:
    allowed = isinstance(error.schema, Mapping) and error.schema.get("nullable") is True
    return error.instance is None and allowed
