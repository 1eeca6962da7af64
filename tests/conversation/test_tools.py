"""The tool world: one call and a state in, a result and the next state out."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.conversation.tools import (
    FunctionCall,
    ToolState,
    error_result,
    fill_mock_template,
    is_unknown_tool,
    refused_result,
    resolve_tool_call,
    schemas_of,
)
from agenteval.core.errors import AuthorError
from agenteval.core.scenario import Tool
from agenteval.core.trajectory import ToolResult

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = {
    "weather": Tool.model_validate({"parameters": CITY, "returns": {"in": "${args.city}"}}),
    "broken": Tool.model_validate({"error": "no order ${args.id}"}),
    "steps": Tool.model_validate({"sequence": [{"returns": 1}, {"error": "busy"}, {"returns": 3}]}),
    "python": Tool.model_validate({"python": "mocks.py:f", "base": "here"}),
    "declared": Tool.model_validate({"description": "Looks it up.", "parameters": CITY}),
    "nothing": Tool.model_validate({"returns": None}),
}


def resolve(name: str, args: dict[str, Any] | None, **more: Any) -> ToolResult | FunctionCall:
    return resolve_tool_call(TOOLS, ToolState(), name, args, **more)[1]


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("weather", {"city": "Rome"}, ToolResult(value={"in": "Rome"})),
        ("nothing", {}, ToolResult(value=None)),
        ("broken", {"id": 7}, error_result("no order 7")),
        ("steps", {}, ToolResult(value=1)),
        ("python", {"x": 1}, FunctionCall("python", "mocks.py:f", "here", {"x": 1}, 0)),
    ],
)
def test_an_answer(name: str, args: dict[str, Any], result: ToolResult | FunctionCall) -> None:
    assert resolve(name, args) == result


@pytest.mark.parametrize(
    ("name", "args", "fact"),
    [
        ("weather", None, "JSON object"),
        ("weather", {}, "city"),
        ("weather", {"city": 7}, "city"),
        ("weather", {"city": None}, "city"),
        ("broken", {}, "id"),
        ("wether", {"city": "Rome"}, "weather"),
    ],
)
def test_a_refused_call_is_an_error_and_takes_no_step(name: str, args: Any, fact: str) -> None:
    before = ToolState({"weather": 2})
    after, result = resolve_tool_call(TOOLS, before, name, args)
    assert after == before
    assert isinstance(result, ToolResult)
    assert (result.is_error, result.refused) == (True, True)
    assert fact in result.value["error"]


def test_a_sequence_moves_by_one_for_each_call_and_its_last_result_repeats() -> None:
    state, results = ToolState(), []
    for _ in range(5):
        state, result = resolve_tool_call(TOOLS, state, "steps", {})
        assert isinstance(result, ToolResult)
        results.append((result.value, result.is_error, result.refused))
    busy = ({"error": "busy"}, True, False)
    assert results == [(1, False, False), busy, *[(3, False, False)] * 3]
    assert state.calls == {"steps": 5}
    state, _ = resolve_tool_call(TOOLS, state, "python", {})
    _, again = resolve_tool_call(TOOLS, state, "python", {})
    assert isinstance(again, FunctionCall)
    assert again.call_index == 1


def test_a_tool_without_a_mock() -> None:
    with pytest.raises(AuthorError):
        resolve("declared", {"city": "Rome"})
    with pytest.raises(AuthorError):
        resolve("of_the_agent", {}, known=True)
    with pytest.raises(AuthorError):
        resolve_tool_call({}, ToolState(), "any", {})
    empty = {"unmocked_tools": "empty"}
    assert resolve("declared", {"city": "Rome"}, **empty) == ToolResult(value={})
    assert resolve("of_the_agent", {}, **empty) == ToolResult(value={})
    refused = resolve("declared", {}, **empty)  # its schema counts all the same
    assert isinstance(refused, ToolResult)
    assert refused.refused


@pytest.mark.parametrize(
    ("tools", "name", "unmocked", "is_unknown"),
    [
        (TOOLS, "other", "error", True),
        (TOOLS, "weather", "error", False),
        (TOOLS, "declared", "error", False),
        (TOOLS, "other", "empty", False),
        (TOOLS, "other", "passthrough", False),
        ({}, "other", "error", False),
    ],
)
def test_a_tool_is_unknown_only_in_a_world_that_declares_others(
    tools: dict[str, Tool], name: str, unmocked: str, is_unknown: bool
) -> None:
    assert is_unknown_tool(tools, name, unmocked) is is_unknown


def test_error_and_refusal_differ_in_whether_the_call_was_carried_out() -> None:
    assert (error_result("x").is_error, error_result("x").refused) == (True, False)
    assert (refused_result("x").is_error, refused_result("x").refused) == (True, True)
    assert error_result("x").value == refused_result("x").value == {"error": "x"}


def test_the_agent_is_shown_tools_with_parameters() -> None:
    shown = schemas_of(TOOLS)
    assert [each["function"]["name"] for each in shown] == ["weather", "declared"]
    assert "description" not in shown[0]["function"]
    assert shown[1]["function"] == {"name": "declared", "description": "Looks it up.", "parameters": CITY}


ARGS = {"n": 7, "list": [{"id": "A"}], "text": "${args.n}", "none": None}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("${args.n}", 7),
        ("no ${args.n}!", "no 7!"),
        ("${args.list}", [{"id": "A"}]),
        ("${args.list.0.id}", "A"),
        ("${ args.n }", 7),
        ("$${args.n}", "${args.n}"),
        ("${args.text}", "${args.n}"),  # what was inserted is not filled in again
        ("${args.none}", None),
        ({"a": ["${args.n}", 1], "b": True}, {"a": [7, 1], "b": True}),
        (("${args.n}",), [7]),
        ("plain $n", "plain $n"),
        (3, 3),
    ],
)
def test_a_template_is_filled_in(template: Any, filled: Any) -> None:
    assert fill_mock_template(template, ARGS) == filled


@pytest.mark.parametrize(
    ("template", "missing"),
    [
        ("${args.x}", "x"),
        ("${args.list.1}", "list.1"),
        ("${args.n.x}", "n.x"),
        ("${args.list.id}", "list.id"),
        ("${args.list.²}", "list.²"),
        (f"${{args.list.{'1' * 5000}}}", f"list.{'1' * 5000}"),
    ],
)
def test_an_argument_that_the_call_does_not_have(template: str, missing: str) -> None:
    with pytest.raises(KeyError) as error:
        fill_mock_template(template, ARGS)
    assert error.value.args == (missing,)
