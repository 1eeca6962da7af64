"""JSON Schemas of tools that refer to what is not there: refused in a scenario, checked for the rest else."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.conversation.tools import ToolState, resolve
from agenteval.core.json_schema import breaks
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
    told = breaks(schema(reference), args)
    assert says in told
    assert bool(told) is bool(says)


@pytest.mark.parametrize("args", [{"a": 1, "n": 1, "zzz": 1}, {"a": 1}])
def test_a_tool_refuses_what_it_can_tell(args: dict[str, Any]) -> None:
    tools = {"look": Tool(parameters=schema(NOWHERE), returns="ok")}
    _, result = resolve(tools, ToolState(), "look", args)
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
    assert breaks(schema(turning), {"a": {"x": 1}, "n": 1}) == ""


def test_a_schema_that_refers_to_itself_is_read_as_deep_as_the_arguments() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["n"]}
    assert breaks(node, {"n": 1, "next": {"n": 2, "next": {"n": 3}}}) == ""
    assert "next.next" in breaks(node, {"n": 1, "next": {"n": 2, "next": {}}})
    endless = {**node, "allOf": [{"$ref": "#"}, {"$ref": "#"}]}
    assert breaks(endless, {}) == "'n' is a required property"


def test_endless_arguments_of_such_a_schema_are_read_to_a_depth() -> None:
    args: dict[str, Any] = {}
    for _ in range(400):
        args = {"next": args, "n": 1}
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["n"]}
    assert breaks(node, args) == ""


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
    assert done.err.count("leads nowhere") == 3
    for place, reference in (
        ("11:17", "#/definitions/nope"),
        ("12:47", "https://shop.example/b.json"),
        ("18:23", "#/$defs/e"),
    ):
        assert f"{place}: parameters: the reference '{reference}' leads nowhere" in done.err
