"""Messages of the plain shapes, and what could not be placed."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.messages.parsed_message import (
    ParsedMessage,
    mark_unplaced,
    plain_message,
    result_message,
    unplaced_in,
    unplaced_message,
)
from agenteval.messages.unplaced_entries import Unplaced


def result(value: Any, id: str = "", name: str = "", is_error: bool = False) -> ParsedMessage:
    return ParsedMessage("tool", value=value, id=id, name=name, is_error=is_error)


@pytest.mark.parametrize(
    ("message", "parsed"),
    [
        ({"role": "user", "content": "Hi"}, ParsedMessage("user", "Hi")),
        ({"role": "assistant", "content": "Hi"}, ParsedMessage("assistant", "Hi")),
        ({"role": "system", "content": "Hi"}, ParsedMessage("system", "Hi")),
        ({"role": "tool", "content": "ok"}, result("ok")),
        ({"role": "tool", "content": "[1]", "tool_call_id": "1"}, result("[1]", "1")),
        ({"role": "tool", "content": "ok", "tool_call_id": "1", "name": "f"}, result("ok", "1", "f")),
        ({"role": "tool", "content": "ok", "id": "m"}, result("ok")),
    ],
)
def test_a_plain_message(message: dict[str, Any], parsed: ParsedMessage) -> None:
    assert plain_message(message) == parsed


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": ""},
        {"role": "user", "content": None},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "user"},
        {"role": "user", "content": "Hi", "name": "Bo"},
        {"role": "user", "content": "Hi", "type": "message"},
        {"role": "assistant", "content": "Hi", "tool_calls": []},
        {"role": "critic", "content": "Hi"},
        {"content": "Hi"},
        {"content": "Hi", "name": "x"},
        {"role": "tool", "content": "ok", "type": "tool"},
        {"role": "tool", "content": "ok", "status": "error"},
        {"role": "tool", "content": "ok", "tool_call_id": 1},
        {"role": "tool", "content": "ok", "name": None},
        {"role": "tool", "content": "ok", "name": ' {"tool": "x"}'},
        {"role": "tool", "content": "ok", "id": "[]"},
    ],
)
def test_a_message_that_is_not_plain(message: dict[str, Any]) -> None:
    assert plain_message(message) is None


@pytest.mark.parametrize(
    ("message", "content", "parsed"),
    [
        ({"tool_call_id": 1, "name": "f"}, "ok", result("ok", "1", "f")),
        ({"tool_call_id": None, "name": None}, "ok", result("ok")),
        ({"role": "tool", "id": "m"}, "ok", result("ok")),
        ({"tool_use_id": "1", "is_error": True}, "boom", result("boom", "1", is_error=True)),
        ({"call_id": "1"}, "ok", result("ok", "1")),
        ({"callId": "1"}, "ok", result("ok", "1")),
        ({"toolUseId": 7, "status": "error"}, "ok", result("ok", "7", is_error=True)),
        ({"toolCallId": "1", "toolName": "f"}, {"type": "json", "value": [1]}, result([1], "1", "f")),
        ({"tool_call_id": "", "call_id": "2", "tool_name": "f"}, {"a": 1}, result({"a": 1}, "2", "f")),
        ({"tool_call_id": "1", "call_id": "2"}, None, result(None, "1")),
        ({"name": "a", "toolName": "b"}, None, result(None, name="a")),
        ({"error": "boom"}, None, result({"error": "boom"}, is_error=True)),
    ],
)
def test_the_result_of_a_tool(message: dict[str, Any], content: Any, parsed: ParsedMessage) -> None:
    assert result_message(message, content) == parsed


@pytest.mark.parametrize(
    ("role", "text", "has_text", "is_user_text"),
    [
        ("user", "Hi", True, True),
        ("user", " \n", False, False),
        ("user", "", False, False),
        ("user", None, False, False),
        ("assistant", "Hi", True, False),
        ("assistant", None, False, False),
    ],
)
def test_whether_there_is_text(role: Any, text: str | None, has_text: bool, is_user_text: bool) -> None:
    message = ParsedMessage(role, text)
    assert (message.has_text, message.is_user_text) == (has_text, is_user_text)


def test_what_could_not_be_placed_is_handed_on() -> None:
    unplaced = Unplaced("'x' in a message", ("x",), {"a": 1})
    entry = mark_unplaced(unplaced)
    assert entry["role"] == "unplaced"
    assert unplaced_in(entry) is unplaced
    for whole in (False, True):
        found = unplaced_message(unplaced, is_whole_message=whole)
        assert (found.role, found.value, found.is_unread) == ("unplaced", unplaced, whole)
    assert not unplaced_message(unplaced).is_unread


@pytest.mark.parametrize(
    "message",
    [
        {"role": "unplaced", "entry": {"a": 1}},
        {"role": "unplaced"},
        {"role": "user", "entry": Unplaced("x")},
        ["entry"],
        None,
    ],
)
def test_another_message_marks_nothing(message: Any) -> None:
    assert unplaced_in(message) is None
