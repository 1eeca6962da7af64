"""The values of tool results, and what marks them as errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.messages.results import (
    find_inline_outcome,
    has_failed,
    parse_outcome,
    result_value,
    unwrap_untyped_parts,
)


@pytest.mark.parametrize("key", ["is_error", "isError", "error", "tool_call_error"])
@pytest.mark.parametrize(
    ("flag", "failed"),
    [
        (True, True), (1, True), ("true", True), ("boom", True), (["x"], True), ({"message": "x"}, True),
        ({"code": 500}, True), ({"code": -1, "message": "x"}, True),
        (False, False), (0, False), (None, False), ([], False), ({}, False), ({"message": ""}, False),
        ({"code": 0, "message": "fine"}, False), ({"code": "0", "message": "fine"}, False),
        ({"code": 200, "message": "fine"}, False),
        ("", False), (" None ", False), ("null", False), ("No", False), ("false", False), ("0", False),
        ("ok", False), ("no error", False), ("N/A", False), ("success", False),
    ],
)  # fmt: skip
def test_flags_of_a_failure(key: str, flag: Any, failed: bool) -> None:
    assert has_failed({key: flag}) is failed
    assert has_failed({"additional_kwargs": {key: flag}}) is failed


@pytest.mark.parametrize(
    ("fields", "failed"),
    [
        ({"status": "error"}, True),
        ({"status": "Errored"}, True),
        ({"status": "failed"}, True),
        ({"status": "failure"}, True),
        ({"status": "success"}, False),
        ({"status": "completed"}, False),
        ({"status": 500}, False),
        ({"success": False}, True),
        ({"success": True}, False),
        ({"success": None}, False),
        ({"success": 0}, False),
        ({"additional_kwargs": {"success": False}}, True),
        ({"additional_kwargs": {}}, False),
        ({"additional_kwargs": "error"}, False),
        ({}, False),
    ],
)
def test_a_status_of_a_failure(fields: dict[str, Any], failed: bool) -> None:
    assert has_failed(fields) is failed


ROW = {"role": "tool", "tool_call_id": "1", "name": "find", "id": "m", "type": "tool"}


@pytest.mark.parametrize(
    ("fields", "content", "value", "failed"),
    [
        (ROW, "ok", "ok", False),
        (ROW, None, None, False),
        ({**ROW, "status": "error"}, "boom", "boom", True),
        ({**ROW, "is_error": False}, "ok", "ok", False),
        ({**ROW, "error": "boom"}, None, {"error": "boom"}, True),
        ({**ROW, "error": {"code": 5}}, None, {"error": {"code": 5}}, True),
        ({**ROW, "error": True}, None, None, True),
        ({**ROW, "error": "boom"}, "told", "told", True),
        ({**ROW, "error": "none"}, None, None, False),
        # Vercel's AI SDK
        (ROW, {"type": "text", "value": "ok"}, "ok", False),
        (ROW, {"type": "json", "value": {"a": 1}}, {"a": 1}, False),
        (ROW, {"type": "json", "value": None}, None, False),
        (ROW, {"type": "content", "value": [{"type": "text", "text": "ok"}]}, "ok", False),
        (ROW, {"type": "error-text", "value": "boom"}, "boom", True),
        (ROW, {"type": "error-json", "value": {"a": 1}, "providerOptions": {}}, {"a": 1}, True),
        (ROW, {"type": "execution-denied", "reason": "not now"}, {"error": "not now"}, True),
        (ROW, {"type": "execution-denied"}, {"error": "execution denied"}, True),
        (ROW, {"type": "execution-denied", "value": "x"}, {"error": "execution denied"}, True),
        # a value that only looks like it
        (ROW, {"type": "json", "value": 1, "unit": "kg"}, {"type": "json", "value": 1, "unit": "kg"}, False),
        (ROW, {"type": "circle", "value": 1}, {"type": "circle", "value": 1}, False),
        (ROW, {"type": "json"}, {"type": "json"}, False),
        (ROW, {"value": 1}, {"value": 1}, False),
        # Anthropic's own tools
        (
            ROW,
            {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
            {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
            True,
        ),
        (ROW, {"type": "my_error"}, {"type": "my_error"}, False),
        (ROW, {"error_code": 1}, {"error_code": 1}, False),
        # parts
        (ROW, [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb", False),
        ({**ROW, "isError": True}, [{"type": "text", "text": "a"}], "a", True),
    ],
)
def test_the_outcome_of_a_call(fields: Any, content: Any, value: Any, failed: bool) -> None:
    assert parse_outcome(fields, content) == (value, failed)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("[1]", "[1]"),
        (5, 5),
        (None, None),
        ([], []),
        ([1, "a"], [1, "a"]),
        ({"type": "text", "text": "a"}, "a"),
        ({"text": "a"}, {"text": "a"}),
        ([{"type": "text", "text": "a"}, {"type": "output_text", "text": "b"}], "a\nb"),
        ([{"type": "text", "text": "a"}, 1], [{"type": "text", "text": "a"}, 1]),
        ([{"json": {"a": 1}}], {"a": 1}),
        ([{"json": {"a": 1}}, {"json": {"b": 1}}], [{"a": 1}, {"b": 1}]),
        ([{"json": {"a": 1}}, {"text": "b"}], [{"a": 1}, "b"]),
        ([{"json": "a"}, {"text": "b"}], "a\nb"),
        ([{"json": 1, "more": 2}], [{"json": 1, "more": 2}]),
        ([{"json": 1}, {"other": 2}], [{"json": 1}, {"other": 2}]),
        ([{"text": "a"}], [{"text": "a"}]),  # rows of a tool
        (nested(99), nested(99)),
        (nested(100), json.dumps(nested(100))),
    ],
)  # fmt: skip
def test_the_value_of_a_content(content: Any, value: Any) -> None:
    assert result_value(content) == value


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ([{"text": "a"}, {"text": "b"}], "a\nb"),
        ([{"text": "a"}], "a"),
        ([{"text": 1}], [{"text": 1}]),
        ([{"text": "a", "type": "text"}], [{"text": "a", "type": "text"}]),
        ([{"json": 1}], 1),
        ([{"json": 1}, {"json": "a"}], [1, "a"]),
        (["a"], ["a"]),
        ([], []),
        ("a", "a"),
        ({"json": 1}, {"json": 1}),
    ],
)
def test_parts_without_a_type(content: Any, value: Any) -> None:
    assert unwrap_untyped_parts(content) == value


FUNCTION = {"name": "find", "arguments": "{}"}


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        ({"id": "1", "type": "function", "index": 0, "function": FUNCTION}, None),
        ({"id": "1", "function": {**FUNCTION, "output": "ok"}}, ("ok", False)),
        ({"function": FUNCTION, "result": "ok"}, ("ok", False)),
        ({"name": "find", "result": {"a": 1}}, ({"a": 1}, False)),
        ({"name": "find", "output": 0}, (0, False)),
        ({"name": "find", "tool_output": "ok"}, ("ok", False)),
        ({"name": "find", "toolOutput": "ok"}, ("ok", False)),
        ({"name": "find", "observation": "ok"}, ("ok", False)),
        ({"name": "find", "result": "first", "output": "second"}, ("first", False)),
        ({"name": "find", "result": None, "output": "second"}, ("second", False)),
        ({"name": "find"}, None),
        ({"name": "find", "result": None}, None),
        ({"name": "find", "error": None}, None),
        ({"name": "find", "error": "no error"}, None),
        ({"name": "find", "error": "boom"}, ({"error": "boom"}, True)),
        ({"name": "find", "errorText": "boom"}, ({"error": "boom"}, True)),
        ({"name": "find", "error": "boom", "result": "half"}, ("half", True)),
        ({"name": "find", "errorText": "boom", "result": "half"}, ("half", True)),
        ({"name": "find", "result": "half", "is_error": True}, ("half", True)),
        ({"name": "find", "state": "output-available"}, (None, False)),
        ({"name": "find", "state": "result"}, (None, False)),
        ({"name": "find", "state": "output-error"}, (None, True)),
        ({"name": "find", "state": "output-denied"}, (None, True)),
        ({"name": "find", "state": "output-error", "output": "x"}, ("x", True)),
        ({"name": "find", "state": "input-available"}, None),
        ({"type": "invalid_tool_call", "name": "find", "error": "no JSON"}, None),
        ({"type": "invalid_tool_call", "name": "find", "result": "x"}, None),
    ],
)
def test_a_result_next_to_its_call(call: dict[str, Any], outcome: Any) -> None:
    assert find_inline_outcome(call) == outcome
