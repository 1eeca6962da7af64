"""Calls of an agent's own tools as mocks: every recorded call gets its own answer from the written file."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.conversation.tools import ToolState, resolve_tool_call
from agenteval.core.call_outcomes import json_key
from agenteval.core.scenario import Tool
from agenteval.core.trajectory import ToolCall, ToolResult
from agenteval.files.scenario_checks import tool_problems
from agenteval.files.tool_recording import (
    MAX_RESULT,
    KnownTool,
    KnownTools,
    ToolRecording,
    format_recording,
    is_unedited_recording,
    record_tools,
)
from agenteval.files.yaml_source import parse_yaml


def keep(text: str) -> str:
    return text


def call(name: str, args: dict[str, Any] | None, value: Any, *, error: bool = False, **more: Any) -> ToolCall:
    result = ToolResult(value=value, is_error=error)
    return ToolCall(**{"name": name, "args": args, "observed": True, "result": result, **more})


def recording(*conversations: list[ToolCall], **known: KnownTool) -> ToolRecording:
    return record_tools(conversations, KnownTools(known), keep)


def tools_of(made: ToolRecording) -> dict[str, Tool]:
    """The tools as a scenario file gets them: read, and without a mistake."""
    document = parse_yaml(format_recording(made).encode(), "mocks.yaml")
    mark = document.mark.find(("defaults", "tools"))
    raw = document.value["defaults"]["tools"]
    problems = [each for name, tool in raw.items() for each in tool_problems(tool, mark.find((name,)))]
    assert not problems
    return {name: Tool.model_validate(tool) for name, tool in raw.items()}


def answers(tools: dict[str, Tool], calls: list[ToolCall]) -> list[Any]:
    state, found = ToolState(), []
    for each in calls:
        state, answer = resolve_tool_call(tools, state, each.name, each.args)
        found.append(getattr(answer, "value", answer))
    return found


texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "no",
            "1e5",
            "0o7",
            "${args.x}",
            "$${",
            "${",
            "<<",
            "~",
            "12:30",
            "- a",
            "# x",
            " a ",
            "'",
            "***x",
            "\x85",
        ]
    ),
)
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
argument_maps = st.dictionaries(st.sampled_from(["a", "b", "no", "x y"]), values, max_size=3)


@example([("on", {"a": [False]}, None), ("on", {"a": [0]}, [])])
@given(st.lists(st.tuples(st.sampled_from(["get_x", "on"]), argument_maps, values), max_size=6))
def test_each_recorded_call_gets_its_own_answer(made: list[tuple[str, dict[str, Any], Any]]) -> None:
    """Whatever the order: a rule with fewer arguments takes no call of one with more. Calls that are left out
    are counted."""
    calls = [call(name, args, value) for name, args, value in made]
    found = recording(calls)
    assert found.calls + found.left_out.total() == len(calls)
    tools = tools_of(found)
    recorded = {(tool.name, id(rule)): rule for tool in found.tools for rule in tool.rules}
    for rule in recorded.values():
        name = next(tool.name for tool in found.tools if any(each is rule for each in tool.rules))
        key = json_key(rule.args)  # Python takes 0 for False
        same = [each for each in calls if each.name == name and json_key(each.args) == key]
        same = same[: len(rule.answers)]
        if len(same) == len(rule.answers):
            assert answers(tools, same) == [answer.value for answer in rule.answers]
    assert is_unedited_recording(format_recording(found))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (call("x", None, 1, raw_args="{"), "arguments are not known"),
        (call("x", {"a": {"$in": [1]}}, 1), "begins with $"),
        (call("x", {"$a": 1}, 1), "begins with $"),
        (call("x", {"a": "***"}, 1), "masked secret"),
        (call("x", {"a": 10**1200}, 1), "arguments cannot be written"),
        (call("x", {"a": 1}, 1, result=None), "result is not known"),
        (call("x", {"a": 1}, 1, result=None, given_up=True), "result is not known"),
        (call("x", {"a": 1}, "x" * MAX_RESULT), "longer"),
        (call("x", {"a": 1}, {"error": "e", "code": 5}, error=True), "form that no mock can give"),
        (call("x", {"a": 1}, {"error": "unknown tool 'x'"}, error=True), "no such tool"),
        (call("x", {"a": 1}, {"b": ["Connection that is not JSON"]}), "not JSON"),
        (call("x", {"a": 1}, math.inf), "result cannot be written"),
        (call("x", {}, 1), "parameters are not known"),
        (call("x\n", {"a": 1}, 1), "printable name"),
    ],
)
def test_a_call_that_is_left_out_is_counted_with_its_reason(made: ToolCall, reason: str) -> None:
    found = recording([made])
    assert found.tools == []
    ((text, count),) = found.left_out.items()
    assert (reason in text, count) == (True, 1)
    assert f"# Left out: 1 call: {text}." in format_recording(found)


def test_calls_that_agenteval_answered_or_nobody_ran_are_no_answers_of_the_real_tool() -> None:
    mocked = call("x", {"a": 1}, 1, observed=False)
    refused = call("x", {"a": 2}, 1, result=ToolResult(value={}, is_error=True, refused=True))
    attempted = call("x", {"a": 3}, 1, attempted=True)
    found = recording([mocked, refused, attempted])
    assert (found.tools, found.left_out.total()) == ([], 0)


def test_an_answer_after_a_hole_is_left_out() -> None:
    """Its number would be wrong."""
    hole = call("x", {"a": 1}, 0, result=None)
    found = recording([call("x", {"a": 1}, 1), hole, call("x", {"a": 1}, 3), call("x", {"a": 2}, 4)])
    assert [[answer.value for answer in rule.answers] for rule in found.rules] == [[1], [4]]
    assert sorted(found.left_out.values()) == [1, 1]


@pytest.mark.parametrize(
    ("second", "kept", "others"),
    [
        ([1], [1, 2], 0),
        ([1, 2, 3], [1, 2, 3], 0),
        ([1, 3], [1, 2], 1),
        ([True, 2], [1, 2], 1),
        ([1.0, 2], [1, 2], 0),
    ],
)
def test_another_conversation_agrees_if_one_is_the_beginning_of_the_other(
    second: list[Any], kept: list[Any], others: int
) -> None:
    found = recording(*([call("x", {"a": 1}, value) for value in each] for each in ([1, 2], second)))
    (rule,) = found.rules
    assert ([answer.value for answer in rule.answers], rule.others) == (kept, others)


def test_a_sequence_ends_where_its_answers_repeat() -> None:
    made = [call("x", {"a": 1}, value) for value in (1, 2, 2, 2)]
    (tool,) = tools_of(recording(made)).values()
    assert tool.rules is not None
    assert [step.returns for step in tool.rules[0].sequence or ()] == [1, 2]
    same = [call("x", {"a": 1}, 1)] * 3
    (tool,) = tools_of(recording(same)).values()
    assert tool.rules is not None
    assert (tool.rules[0].sequence, tool.rules[0].returns) == (None, 1)


def test_arguments_that_no_rule_tells_apart_are_the_same() -> None:
    made = [
        call("x", {"a": 1, "b": "é"}, 1),
        call("x", {"a": 1.0, "b": "e\u0301"}, 2),
        call("x", {"a": True}, 3),
    ]
    assert [len(rule.answers) for rule in recording(made).rules] == [2, 1]


SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def test_what_is_known_of_a_tool_goes_along() -> None:
    known = KnownTool("Finds it.", SCHEMA, {"reads": True})
    (tool,) = tools_of(recording([call("x", {"id": "a"}, 1)], x=known)).values()
    assert (tool.description, tool.parameters, tool.reads) == ("Finds it.", SCHEMA, True)


@pytest.mark.parametrize(
    ("schema", "args"),
    [
        (SCHEMA, {"id": 1}),  # the real tool answered what the schema forbids
        (SCHEMA, {"id": "a", "b": 1}),
        ({"properties": {"id": {}}}, {"id": 1}),
        ({"type": "object", "properties": {"id": {"$ref": "http://x/y"}}}, {"id": 1}),
    ],
)
def test_a_schema_that_would_refuse_the_call_or_the_file_is_left_out(
    schema: dict[str, Any], args: dict[str, Any]
) -> None:
    made = [call("x", args, 1)]
    tools = tools_of(recording(made, x=KnownTool(parameters=schema)))
    assert tools["x"].parameters is None
    assert answers(tools, made) == [1]


def test_a_call_without_arguments_does_not_answer_those_with_some() -> None:
    both = KnownTool(argument_names=frozenset({"a", "b"}))
    tools = tools_of(recording([call("x", {}, "all")], x=both))
    assert answers(tools, [call("x", {}, 0), call("x", {"a": None}, 0)]) == ["all", "all"]
    _, unmatched = resolve_tool_call(tools, ToolState(), "x", {"b": 1})
    assert not isinstance(unmatched, ToolResult)
    none = KnownTool(argument_names=frozenset())
    tools = tools_of(recording([call("x", {}, "all")], x=none))
    assert answers(tools, [call("x", {}, 0)]) == ["all"]
    _, refused = resolve_tool_call(tools, ToolState(), "x", {"b": 1})
    assert isinstance(refused, ToolResult)
    assert refused.refused


def test_a_tool_that_no_scenario_can_answer_is_left_out() -> None:
    found = recording([call("x", {"a": 1}, 1)], x=KnownTool(excluded="it runs at the provider"))
    assert (found.tools, found.left_out) == ([], {"it runs at the provider": 1})


def test_a_name_that_is_none_of_the_agents_tools_is_left_out() -> None:
    """It may be a handoff."""
    calls = [call("x", {"a": 1}, 1), call("transfer_to_y", {"a": 1}, 1)]
    found = record_tools([calls], KnownTools({"x": KnownTool()}, are_all=True), keep)
    assert ([tool.name for tool in found.tools], found.left_out.total()) == (["x"], 1)
    assert [tool.name for tool in recording(calls).tools] == ["transfer_to_y", "x"]


def test_an_error_that_is_a_mere_text_is_an_error() -> None:
    """As servers of MCP and frameworks give it."""
    (tool,) = tools_of(recording([call("x", {"a": 1}, "no such order", error=True)])).values()
    assert tool.rules is not None
    assert tool.rules[0].error == "no such order"


def test_a_file_has_a_bound_and_equal_answers_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval.files.tool_recording.MAX_TOTAL", 25)
    same = [[call("x", {"a": 1}, "y" * 10)]] * 9
    assert recording(*same).left_out.total() == 0
    found = recording(*same, [call("x", {"a": 2}, "y" * 10)], [call("x", {"a": 3}, "y" * 10)])
    assert (len(found.rules), found.left_out) == (2, {"the file would be too large": 1})


def test_the_origin_of_an_error_is_left_out() -> None:
    text = "ValueError: no (a.py:1) order (shop.py:12, in get_order)"
    found = recording([call("x", {"a": 1}, {"error": text}, error=True)])
    assert [answer.value for answer in found.rules[0].answers] == ["ValueError: no (a.py:1) order"]


@pytest.mark.parametrize("change", [("get_x", "get_y"), ("\n", "\n\n"), ("unchanged: ", "unchanged: 0")])
def test_an_edited_file_is_known(change: tuple[str, str]) -> None:
    text = format_recording(recording([call("get_x", {"a": 1}, 1)]))
    assert is_unedited_recording(text)
    assert not is_unedited_recording(text.replace(*change))
    assert not is_unedited_recording(text + "scenarios: []\n")
    assert not is_unedited_recording("")
