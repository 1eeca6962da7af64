"""Violations of a JSON Schema in words that stay the same from release to release."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agenteval.core.schema_messages import describe_schema_error, describe_schema_errors


def broken(keyword: Any, wanted: Any, value: Any, *path: Any, schema: Any = None) -> Any:
    return SimpleNamespace(
        validator=keyword,
        validator_value=wanted,
        instance=value,
        schema={keyword: wanted} if schema is None else schema,
        absolute_path=path,
    )


@pytest.mark.parametrize(
    ("keyword", "wanted", "value", "text"),
    [
        ("type", "string", 5, "5 is not of type 'string'"),
        ("type", ["string", "null"], {"é": 1}, "{\"é\": 1} is not of type 'string', 'null'"),
        ("required", ["a", "b", "c"], {"b": 1}, "'a' is a required property; 'c' is a required property"),
        ("dependentRequired", {"a": ["b", "c"], "x": ["y"]}, {"a": 1, "c": 2}, "'a' requires 'b'"),
        ("additionalProperties", False, {"b": 1, "a": 2}, "additional properties are not allowed: 'a', 'b'"),
        ("enum", ["a", "b"], "c", "'c' is not one of [\"a\", \"b\"]"),
        ("const", 5, 6, "5 was expected"),
        ("pattern", "^a", "b", "'b' does not match '^a'"),
        ("minimum", 1, 0, "0 is less than the minimum of 1"),
        ("maximum", 1, 2, "2 is greater than the maximum of 1"),
        ("exclusiveMinimum", 1, 1, "1 is not greater than 1"),
        ("exclusiveMaximum", 1, 1, "1 is not less than 1"),
        ("multipleOf", 2, 3, "3 is not a multiple of 2"),
        ("minLength", 2, "a", "'a' is shorter than 2"),
        ("maxLength", 2, "abc", "'abc' is longer than 2"),
        ("minItems", 1, [], "[] has fewer than 1 items"),
        ("maxItems", 1, [1, 2], "[1, 2] has more than 1 items"),
        ("minProperties", 1, {}, "{} has fewer than 1 properties"),
        ("maxProperties", 0, {"a": 1}, '{"a": 1} has more than 0 properties'),
        ("uniqueItems", True, [1, 1], "[1, 1] has duplicate items"),
        ("anyOf", [{}], 5, "5 is not valid under any of the given schemas"),
        ("oneOf", [{}], 5, "5 is not valid under exactly one of the given schemas"),
        ("not", {}, 5, "5 is valid under a schema that `not` excludes"),
        ("contains", {"const": 5}, [1], '[1] does not satisfy contains: {"const": 5}'),
        ("additionalProperties", {"type": "string"}, {"a": 1},
         '{"a": 1} does not satisfy additionalProperties: {"type": "string"}'),
        (None, None, 5, "5 is not allowed"),
        ("required", [], {}, "{} does not satisfy required: []"),
    ],
)  # fmt: skip
def test_the_words_of_a_violation(keyword: Any, wanted: Any, value: Any, text: str) -> None:
    assert describe_schema_error(broken(keyword, wanted, value)) == text
    assert describe_schema_errors([broken(keyword, wanted, value)]) == text


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"additionalProperties": False, "properties": {"a": {}}}, "'b'"),
        ({"additionalProperties": False}, "'a', 'b'"),
        (False, "'a', 'b'"),
    ],
)
def test_properties_that_are_not_allowed(schema: Any, names: str) -> None:
    error = broken("additionalProperties", False, {"b": 1, "a": 2}, schema=schema)
    assert describe_schema_error(error).endswith(f": {names}")
    patterned = {"additionalProperties": False, "patternProperties": {"^x": {}}}
    assert "does not satisfy" in describe_schema_error(
        broken("additionalProperties", False, {"a": 1}, schema=patterned)
    )


def test_violations_are_told_by_their_place() -> None:
    errors = [
        broken("const", 2, 1, "b"),
        broken("const", 3, 1, "a", 0, "c"),
        broken("const", 1, 5),
        broken("const", 2, 1, "b"),
        broken("const", 4, 1, "z"),
    ]
    assert describe_schema_errors(iter(errors)) == "; ".join(
        ("1 was expected", "a.0.c: 3 was expected", "b: 2 was expected")
    )
    assert describe_schema_errors([]) == ""


def test_what_is_told_is_bounded() -> None:
    required = broken("required", list("abcde"), {})
    assert describe_schema_error(required).count("required") == 3
    assert describe_schema_errors([required]).count("required") == 3
    long = broken("const", "x" * 300, 1, "a")
    assert len(describe_schema_error(long)) == 200
    assert len(describe_schema_errors([long])) == len("a: ") + 200
