"""Validates values against a JSON Schema with the ``jsonschema`` package. References (``$ref``) are never
fetched, and neither a regular expression nor a recursive schema can cause a check to run forever."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from threading import local
from typing import Any

from agenteval.core.patterns import SearchTimeoutError, pattern_matches
from agenteval.core.schema_messages import describe_schema_error, describe_schema_errors


def schema_violations(
    parameters: Mapping[str, Any], args: Mapping[str, Any], *, nullable: bool = True
) -> str:
    """Validate arguments (``args``) against a JSON Schema and return the first violations. The result is
    empty if there are no violations or if the schema is not a valid JSON Schema. A reference that cannot be
    resolved accepts every value, and the rest of the schema still applies. ``nullable`` makes the keyword
    ``nullable`` (OpenAPI) accept ``null``."""
    try:
        return _lenient_checker(json.dumps(parameters, sort_keys=True), nullable)(args)
    except (TypeError, ValueError, RecursionError):
        return ""  # not JSON, or an endless schema: there is no rule to apply


@lru_cache(maxsize=1024)
def _lenient_checker(schema_text: str, nullable: bool) -> Callable[[Any], str]:
    """Return a checker that is cached by the content of the schema. Serializing a schema takes only
    microseconds, whereas creating a validator takes milliseconds."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    schema = json.loads(schema_text)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return lambda _: ""
    return _make_checker(_lenient_validator(nullable), schema)


@lru_cache(maxsize=1024)
def build_schema_checker(schema_text: str) -> Callable[[Any], str]:
    """Return a function that finds the first violations of an author's JSON Schema in a value. The function
    returns an empty result if there are none. An undecidable value never passes: the function raises
    ``SearchTimeoutError`` or ``RecursionError``."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend, validator_for

    schema = json.loads(schema_text)
    draft = validator_for(schema, default=Draft202012Validator)
    return _make_checker(extend(draft, _bound_rules(draft.VALIDATORS)), schema)  # type: ignore[no-untyped-call]


def _make_checker(rules: Any, schema: Any) -> Callable[[Any], str]:
    from referencing import Registry

    registry: Registry[Any] = Registry()  # without it, the library would fetch references
    validator = rules(schema, registry=registry)

    def read(value: Any) -> str:
        _READING.begin(value)
        return describe_schema_errors(validator.iter_errors(value))

    return read


_Rule = Callable[[Any, Any, Any, Any], Iterable[Any] | None]
"""The function that implements a keyword. The library calls it with the validator, the keyword's value, the
value to be checked, and the schema."""


# ── what could be endless ────────────────────────────────────────────────────────────────────────


_REFERENCES, _REFERENCES_OF_A_VALUE = 10_000, 100
"""The number of references that may be followed for a whole value, plus the same number for each value in it.
This takes seconds for the values that agents write. If a schema refers to itself twice, the number of
references doubles with each level."""
_DEEPEST = 60
"""The maximum depth of nested references. Beyond this depth, the library fails, as it does for an infinitely
recursive schema."""


class _EndlessReferenceError(RecursionError):
    """Raised when a reference is circular, or when references are nested more deeply than any value."""


class _ValidationState(local):
    """The state of validating one value. ``unknown`` counts the rules that could not be applied. ``left`` is
    the number of references that may still be followed. ``within`` contains the references that are being
    followed, each with its value."""

    def begin(self, value: Any) -> None:
        self.unknown = 0
        self.left = _REFERENCES + _REFERENCES_OF_A_VALUE * _values_in(value)
        self.within: list[tuple[int, int]] = []


_READING = _ValidationState()


def _values_in(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_values_in, inner))


def _bound_rules(rules: Mapping[str, _Rule]) -> dict[str, _Rule]:
    """Return the library's rules, with replacements for rules that could run forever or fail."""
    references = {
        name: _bound_reference(rule) for name, rule in rules.items() if name.endswith(("$ref", "Ref"))
    }
    return {
        **rules,
        **references,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties(rules["additionalProperties"]),
        "multipleOf": _multiple_of(rules["multipleOf"]),
    }


def _bound_reference(rule: _Rule) -> _Rule:
    def apply(validator: Any, wanted: Any, value: Any, schema: Any) -> list[Any]:
        here = (id(schema), id(value))
        _READING.left -= 1
        if _READING.left < 0:
            raise RecursionError
        if here in _READING.within or len(_READING.within) >= _DEEPEST:
            raise _EndlessReferenceError
        _READING.within.append(here)
        try:
            return list(rule(validator, wanted, value, schema) or ())
        finally:
            _READING.within.pop()

    return apply


def _pattern(_validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(value, str) and not pattern_matches(wanted, value):
        yield ValidationError("")


def _pattern_properties(validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[Any]:
    for key, item in value.items() if isinstance(value, dict) else ():
        for pattern in wanted:
            if pattern_matches(pattern, key):
                yield from validator.descend(item, wanted[pattern], path=key, schema_path=pattern)


def _additional_properties(rule: _Rule) -> _Rule:
    """Return the library's rule for ``additionalProperties``, excluding keys that match a pattern."""

    def apply(validator: Any, wanted: Any, value: Any, schema: Any) -> Any:
        patterns = schema.get("patternProperties", ())
        if patterns and isinstance(value, dict):
            value = {
                key: value[key] for key in value if not any(pattern_matches(each, key) for each in patterns)
            }
            schema = {"properties": schema.get("properties", {})}
        return rule(validator, wanted, value, schema)

    return apply


def _multiple_of(rule: _Rule) -> _Rule:
    """Return the library's rule for ``multipleOf``, extended to integers that are too large for a float."""

    def apply(validator: Any, wanted: Any, value: Any, schema: Any) -> list[Any]:
        try:
            return list(rule(validator, wanted, value, schema) or ())
        except OverflowError:
            return list(rule(validator, Fraction(wanted), value, schema) or ())

    return apply


# ── what cannot be decided ───────────────────────────────────────────────────────────────────────


# If something within these is undecidable, the rest within decides nothing for the whole.
_INVERTING_KEYWORDS = frozenset(
    {"not", "oneOf", "if", "contains", "unevaluatedItems", "unevaluatedProperties"}
)


@lru_cache(maxsize=1)
def _undecidable() -> tuple[type[Exception], ...]:
    """Return the exceptions that make a value undecidable. The library raises them for a dangling reference,
    a reference to something other than a schema, or an invalid pattern; agenteval raises them for an endless
    reference or pattern."""
    from referencing.exceptions import Unresolvable

    faults = (re.error, ValueError, TypeError, AttributeError)
    return (Unresolvable, SearchTimeoutError, _EndlessReferenceError, *faults)


@lru_cache(maxsize=2)
def _lenient_validator(nullable: bool) -> Any:
    """Return the library's validator, modified so that a rule that cannot be applied accepts everything."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    rules = _bound_rules(Draft202012Validator.VALIDATORS)
    lenient = {name: _make_lenient(name, rule, nullable) for name, rule in rules.items()}
    return extend(Draft202012Validator, lenient)  # type: ignore[no-untyped-call]


def _make_lenient(name: str, rule: _Rule, nullable: bool) -> _Rule:
    def apply(validator: Any, wanted: Any, value: Any, schema: Any) -> list[Any]:
        if nullable and value is None and schema.get("nullable") is True:
            return []
        before = _READING.unknown
        found: list[Any] = []
        try:
            found.extend(rule(validator, wanted, value, schema) or ())
        except _undecidable():
            _READING.unknown += 1
        return found if name not in _INVERTING_KEYWORDS or _READING.unknown == before else []

    return apply


# ── mistakes in a schema ─────────────────────────────────────────────────────────────────────────


def schema_mistakes(schema: Mapping[str, Any]) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
    """Return descriptions of the mistakes in an author's JSON Schema, and their locations."""
    return _mistakes(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=4096)
def _mistakes(text: str) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
    """Return the mistakes in a schema, cached by its content: thousands of scenarios may share a schema, and
    checking it takes milliseconds."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    schema = json.loads(text)
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return ((f"not a valid JSON Schema: {describe_schema_error(error)}", tuple(error.absolute_path)),)
    nowhere = "cannot be resolved: only parts of the schema itself can be referenced"
    return tuple((f"the reference '{to}' {nowhere}", path) for to, path in dangling_references(schema))


def dangling_references(schema: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Yield the references in a JSON Schema that do not lead to a schema within it, with their paths."""
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
    except _undecidable():
        return False


_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    *("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"),
    *("unevaluatedItems", "unevaluatedProperties"),
)


def _parts(schema: Any, path: tuple[str | int, ...], resolver: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the schema and all schemas nested in it, each with its path and the resolver for its
    references."""
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
