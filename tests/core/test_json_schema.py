"""JSON Schemas of tools that refer to what is not there: refused in a scenario, checked for the rest else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.conversation.tools import ToolState, resolve_tool_call
from agenteval.core import json_schema
from agenteval.core.json_schema import build_schema_checker, schema_violations
from agenteval.core.scenario import Tool
from agenteval.core.trajectory import ToolResult
from tests.support.kit import Project

NOWHERE = {"$ref": "#/definitions/nope"}


def schema(of_a: Any, **more: Any) -> dict[str, Any]:
    properties = {"a": of_a, "n": {"type": "integer"}}
    return {
        "type": "object",
        "properties": properties,
        "required": ["n", "a"],
        "additionalProperties": False,
        **more,
    }


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"a": 1, "n": 1}, ""),
        ({"a": {"x": [1]}, "n": 1}, ""),
        ({"a": 1, "n": 1, "zzz": 1}, "zzz"),
        ({"a": 1}, "'n' is a required property"),
        ({"a": 1, "n": "one"}, "n: 'one'"),
    ],
)
@pytest.mark.parametrize(
    "reference",
    [
        NOWHERE,
        {"$ref": "https://shop.example/a.json"},
        {"$ref": "#nope"},
        {"$ref": "#/type"},
        {"$ref": "#/required/x"},
        {"$ref": "#/properties/a"},
        {"allOf": [NOWHERE, {"$dynamicRef": "#nope"}]},
    ],
)
def test_what_a_schema_says_beside_a_reference_to_nothing(
    reference: Any, args: dict[str, Any], says: str
) -> None:
    told = schema_violations(schema(reference), args)
    assert says in told
    assert bool(told) is bool(says)


@pytest.mark.parametrize("args", [{"a": 1, "n": 1, "zzz": 1}, {"a": 1}])
def test_a_tool_refuses_what_it_can_tell(args: dict[str, Any]) -> None:
    tools = {"look": Tool(parameters=schema(NOWHERE), returns="ok")}
    _, result = resolve_tool_call(tools, ToolState(), "look", args)
    assert isinstance(result, ToolResult)
    assert result.is_error


@pytest.mark.parametrize(
    "turning",
    [
        {"not": NOWHERE},
        {"not": {"properties": {"x": NOWHERE}}},
        {"oneOf": [NOWHERE, {"type": "object"}]},
        {"oneOf": [NOWHERE, NOWHERE]},
        {"if": NOWHERE, "then": {"type": "string"}},
        {"anyOf": [NOWHERE, {"type": "string"}]},
        {**NOWHERE, "unevaluatedProperties": False},
    ],
)
def test_where_the_rest_turns_on_what_is_not_known_nothing_is_told(turning: Any) -> None:
    assert schema_violations(schema(turning), {"a": {"x": 1}, "n": 1}) == ""


def test_a_schema_that_refers_to_itself_is_read_as_deep_as_the_arguments() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["n"]}
    assert schema_violations(node, {"n": 1, "next": {"n": 2, "next": {"n": 3}}}) == ""
    assert "next.next" in schema_violations(node, {"n": 1, "next": {"n": 2, "next": {}}})
    endless = {**node, "allOf": [{"$ref": "#"}, {"$ref": "#"}]}
    assert schema_violations(endless, {}) == "'n' is a required property"


def test_endless_arguments_of_such_a_schema_are_read_to_a_depth() -> None:
    args: dict[str, Any] = {}
    for _ in range(400):
        args = {"next": args, "n": 1}
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["n"]}
    assert schema_violations(node, args) == ""


def test_null_is_allowed_where_the_schema_says_so_and_it_is_asked_for() -> None:
    text = {"type": "string", "nullable": True}
    checked = {
        "properties": {"a": text, "b": {"oneOf": [text, {"type": "integer"}]}, "c": {"type": "string"}}
    }
    assert schema_violations(checked, {"a": None, "b": None}) == ""
    assert schema_violations(checked, {"c": None}) == "c: null is not of type 'string'"
    assert schema_violations(checked, {"a": None}, nullable=False) == "a: null is not of type 'string'"


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"next": value}
    return value


TWICE = [{"$ref": "#"}, {"$ref": "#"}]
DOUBLING = {
    "all of": {"properties": {"next": {"allOf": TWICE}}},
    "any of": {"properties": {"next": {"anyOf": TWICE}}, "required": ["n"]},
    "dynamic": {"$dynamicAnchor": "n", "properties": {"next": {"allOf": [{"$dynamicRef": "#n"}] * 2}}},
    "a billion laughs": {
        "$defs": {"0": False, **{f"{n + 1}": {"allOf": [{"$ref": f"#/$defs/{n}"}] * 2} for n in range(40)}},
        "$ref": "#/$defs/40",
    },
}


@pytest.mark.parametrize("schema", DOUBLING.values(), ids=DOUBLING)
def test_references_that_double_with_each_level_end(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_schema, "_REFERENCES", 1_000)
    monkeypatch.setattr(json_schema, "_REFERENCES_OF_A_VALUE", 10)
    assert schema_violations(schema, nested(40)) == ""
    with pytest.raises(RecursionError):
        build_schema_checker(json.dumps(schema))(nested(40))


def test_a_long_list_may_follow_a_reference_for_each_value() -> None:
    schema = {"properties": {"a": {"items": {"$ref": "#/$defs/n"}}}, "$defs": {"n": {"type": "integer"}}}
    assert schema_violations(schema, {"a": [*range(12_000), "x"]}) == "a.12000: 'x' is not of type 'integer'"


def test_an_integer_that_is_too_large_for_a_float_is_a_number() -> None:
    schema = {"properties": {"a": {"multipleOf": 2.5}}}
    assert (
        schema_violations(schema, {"a": 10**400})
        == build_schema_checker(json.dumps(schema))({"a": 10**400})
        == ""
    )
    assert schema_violations(schema, {"a": 10**400 + 1})


# ── words ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rule", "value", "says"),
    [
        ({"type": "string"}, 7, "a: 7 is not of type 'string'"),
        ({"type": ["string", "null"]}, 7, "a: 7 is not of type 'string', 'null'"),
        ({"required": ["x", "y"]}, {}, "a: 'x' is a required property; a: 'y' is a required property"),
        ({"dependentRequired": {"x": ["y"]}}, {"x": 1}, "a: 'x' requires 'y'"),
        (
            {"properties": {"x": {}}, "additionalProperties": False},
            {"x": 1, "z": 1, "y": 1},
            "a: additional properties are not allowed: 'y', 'z'",
        ),
        ({"enum": ["x", 2]}, "z", "a: 'z' is not one of [\"x\", 2]"),
        ({"const": "x"}, "z", "a: 'x' was expected"),
        ({"pattern": "^x"}, "z", "a: 'z' does not match '^x'"),
        ({"minimum": 3}, 2, "a: 2 is less than the minimum of 3"),
        ({"maximum": 3}, 4, "a: 4 is greater than the maximum of 3"),
        ({"exclusiveMinimum": 3}, 3, "a: 3 is not greater than 3"),
        ({"exclusiveMaximum": 3}, 3, "a: 3 is not less than 3"),
        ({"multipleOf": 3}, 4, "a: 4 is not a multiple of 3"),
        ({"minLength": 1}, "", "a: '' is shorter than 1"),
        ({"maxLength": 1}, "xy", "a: 'xy' is longer than 1"),
        ({"minItems": 1}, [], "a: [] has fewer than 1 items"),
        ({"maxItems": 1}, [1, 2], "a: [1, 2] has more than 1 items"),
        ({"minProperties": 1}, {}, "a: {} has fewer than 1 properties"),
        ({"maxProperties": 0}, {"x": 1}, 'a: {"x": 1} has more than 0 properties'),
        ({"uniqueItems": True}, [1, 1], "a: [1, 1] has duplicate items"),
        ({"anyOf": [{"type": "string"}]}, 7, "a: 7 is not valid under any of the given schemas"),
        ({"oneOf": [True, True]}, 7, "a: 7 is not valid under exactly one of the given schemas"),
        ({"not": {}}, 7, "a: 7 is valid under a schema that `not` excludes"),
        ({"items": {"type": "string"}}, ["x", 7], "a.1: 7 is not of type 'string'"),
        ({"contains": {"type": "string"}}, [7], 'a: [7] does not satisfy contains: {"type": "string"}'),
        ({"type": "string"}, "x", ""),
    ],
)
def test_what_a_schema_forbids_is_said_in_words_of_our_own(rule: Any, value: Any, says: str) -> None:
    checked = {"properties": {"a": rule}}
    assert schema_violations(checked, {"a": value}) == says
    assert build_schema_checker(json.dumps(checked))({"a": value}) == says


def test_the_words_are_few_whatever_is_wrong() -> None:
    many = schema_violations({"properties": {"a": {"items": {"enum": ["x" * 400]}}}}, {"a": list(range(50))})
    assert many.count("; ") == 2
    assert len(many) < 700


PARAMETERS = """
scenarios:
  - id: refund
    turns: [hello]
    checks: none
    tools:
      look:
        returns: ok
        parameters:
          type: object
          properties:
            a: {$ref: '#/definitions/nope'}
            b: {anyOf: [{$ref: '#/$defs/b'}, {$ref: 'https://shop.example/b.json'}]}
            $ref: {type: string, default: {$ref: '#/no-reference'}}
            c: {$ref: '#inner'}
          $defs:
            b: {type: integer}
            c: {$anchor: inner, items: {$ref: '#/$defs/b'}}
            d: {not: {$ref: '#/$defs/e'}}
"""


def test_a_reference_to_nothing_is_refused_at_its_place(project: Project) -> None:
    project.config()
    project.agent("def agent(m): return 'hi'")
    project.scenarios(PARAMETERS)
    done = project.run()
    assert done.code == 2
    assert done.err.count("cannot be resolved") == 3
    for place, reference in (
        ("11:17", "#/definitions/nope"),
        ("12:47", "https://shop.example/b.json"),
        ("18:23", "#/$defs/e"),
    ):
        assert f"{place}: `parameters`: the reference '{reference}' cannot be resolved" in done.err
