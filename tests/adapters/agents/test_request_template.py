"""Requests of the author's form: what stands at each name, and what is left out where a name has no value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agenteval.adapters.agents.request_template import (
    ABSENT,
    RESULT_NAMES,
    fill_request_template,
    fill_request_text,
    latest_user_content,
    names_in,
    template_values,
)
from agenteval.core.trajectory import Message

USER: Message = {"role": "user", "content": "Hi"}
CALLS: Message = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "1", "function": {"name": "find", "arguments": "{}"}},
        {"id": "2", "function": None},
        {"id": "3"},
    ],
}


def result(call_id: Any = "1", content: Any = "found") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


# ── names ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("template", "names"),
    [
        ("", []),
        ("plain", []),
        ("${message}", ["message"]),
        ("${a} and ${b2_C} and ${a}", ["a", "b2_C", "a"]),
        ("$${a}", []),
        ("$$${a}", []),
        ("$a", []),
        ("${}", []),
        ("${2a}", []),
        ("${a b}", []),
        ("${a", []),
        ({"${key}": "${value}"}, ["value"]),
        ({"a": ["${x}", {"b": ("${y}",)}], "c": 7, "d": None, "e": True}, ["x", "y"]),
        (7, []),
        (None, []),
    ],
)
def test_the_names_in_a_template(template: Any, names: list[str]) -> None:
    assert list(names_in(template)) == names


def test_results_arrive_by_two_names() -> None:
    assert sorted(RESULT_NAMES) == ["messages", "tool_results"]


# ── the values of a request ──────────────────────────────────────────────────────────────────────


def values(messages: Sequence[Message] = (USER,), *names: str, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"session": None, "tools": (), "turn": 0, **more}
    found = template_values(frozenset(names), messages, **given)
    return {name: value for name, value in found.items() if value is not ABSENT}


def test_the_values_of_a_first_turn() -> None:
    assert values() == {"message": "Hi", "messages": [USER], "turn": 0}


def test_all_values() -> None:
    tool = {"type": "function"}
    found = values([USER, CALLS, result()], session="s", tools=[tool], turn=2, mcp_url="http://m")
    assert found == {
        "message": "Hi",
        "messages": [USER, CALLS, result()],
        "session": "s",
        "tools": [tool],
        "turn": 2,
        "tool_results": [{"tool_call_id": "1", "name": "find", "content": "found"}],
        "mcp_url": "http://m",
    }


@pytest.mark.parametrize(
    ("messages", "names", "has_message"),
    [
        ([USER], ["tool_results"], True),
        ([USER, CALLS, result()], ["tool_results"], False),
        ([USER, CALLS, result()], ["message", "messages"], True),
        ([USER, CALLS, result(), USER], ["tool_results"], True),
        ([], [], False),
        ([CALLS], [], False),
    ],
)
def test_with_results_there_is_no_message(
    messages: list[Message], names: list[str], has_message: bool
) -> None:
    assert ("message" in values(messages, *names)) is has_message


def test_an_empty_session_is_a_session() -> None:
    assert values(session="")["session"] == ""


def found(call_id: Any, name: str | None, content: Any = "found") -> dict[str, Any]:
    return {"tool_call_id": call_id, "name": name, "content": content}


@pytest.mark.parametrize(
    ("messages", "results"),
    [
        ([], None),
        ([USER], None),
        ([USER, CALLS], None),
        ([CALLS, result(), USER], None),
        ([CALLS, result("2"), result("1", "x")], [found("2", None), found("1", "find", "x")]),
        ([CALLS, result("3"), result("4")], [found("3", None), found("4", None)]),
        ([USER, result()], [found("1", None)]),
        ([result()], [found("1", None)]),
        ([CALLS, result(), USER, CALLS, result("1", "new")], [found("1", "find", "new")]),
        ([{"role": "assistant", "tool_calls": None}, {"role": "tool"}], [found(None, None, None)]),
    ],
)
def test_the_results_that_were_not_sent_yet(messages: list[Message], results: Any) -> None:
    assert values(messages).get("tool_results") == results


@pytest.mark.parametrize(
    ("messages", "content"),
    [
        ([], "none"),
        ([CALLS], "none"),
        ([USER, {"role": "user", "content": "Bye"}, CALLS], "Bye"),
        ([{"role": "user"}], None),
        ([{"role": "user", "content": [{"type": "text"}]}], [{"type": "text"}]),
    ],
)
def test_what_the_user_said_last(messages: list[Message], content: Any) -> None:
    assert latest_user_content(messages, "none") == content


# ── filling in ───────────────────────────────────────────────────────────────────────────────────

VALUES: Mapping[str, Any] = {
    "message": "Hi",
    "turn": 3,
    "tools": [{"a": "é"}],
    "none": None,
    "empty": "",
    "nothing": [],
    "session": ABSENT,
    "tool_results": ABSENT,
}

FILLED: dict[str, tuple[Any, Any]] = {
    "a text": ("plain", "plain"),
    "a number": (7, 7),
    "null": (None, None),
    "only a name": ("${message}", "Hi"),
    "its type is kept": ("${turn}", 3),
    "a list": ("${tools}", [{"a": "é"}]),
    "a value that is null": ("${none}", None),
    "an empty value": ("${empty}", ""),
    "an empty list": ("${nothing}", []),
    "in a longer text": ("${message}! ${turn}", "Hi! 3"),
    "beside a blank": ("${turn} ", "3 "),
    "twice": ("${message}${message}", "HiHi"),
    "JSON in a text": ("t=${tools}", 't=[{"a": "é"}]'),
    "null in a text": ("n=${none}", "n=null"),
    "escaped": ("$${message}", "${message}"),
    "escaped beside a name": ("$${a} ${turn}", "${a} 3"),
    "an empty mapping": ({}, {}),
    "an empty list of the author": ([], []),
    "nested": ({"a": [{"b": "${message}"}]}, {"a": [{"b": "Hi"}]}),
    "keys stay": ({"${message}": 1}, {"${message}": 1}),
    "a tuple": (("${turn}", 1), [3, 1]),
    # without a value
    "no value": ("${session}", ABSENT),
    "no value in a text": ("s=${session}", ABSENT),
    "one of two": ("${message} ${session}", ABSENT),
    "an unknown name": ("${other}", ABSENT),
    "all of a mapping": ({"a": "${session}", "b": "${session}"}, ABSENT),
    "all of a list": (["${session}"], ABSENT),
    "around an empty mapping": ({"a": {}}, {"a": {}}),
    "beside a constant": ({"a": "${session}", "b": 1}, {"b": 1}),
    "an item of a list": (["${session}", "x"], ["x"]),
    "the message, beside a constant": ({"role": "tool", "r": "${tool_results}"}, ABSENT),
    "the message, beside a value": ({"turn": "${turn}", "r": "${tool_results}"}, {"turn": 3}),
    "in a text, beside a constant": ({"role": "tool", "r": "r: ${tool_results}"}, ABSENT),
    "in a text with another": ({"role": "tool", "r": "${session} ${tool_results}"}, ABSENT),
    "an item with a constant": ([{"role": "tool", "r": "${tool_results}"}, "x"], ABSENT),
    "an item beside a value": ([{"role": "tool", "r": "${tool_results}"}, "${turn}"], [3]),
}


@pytest.mark.parametrize(("template", "value"), FILLED.values(), ids=FILLED)
def test_a_template_filled_in(template: Any, value: Any) -> None:
    filled = fill_request_template({"it": template}, VALUES)
    assert filled == ({} if value is ABSENT else {"it": value})
    if value is not ABSENT:
        assert type(filled["it"]) is type(value)


def test_the_whole_request_may_be_constants() -> None:
    assert fill_request_template({"a": 1, "r": "${tool_results}"}, VALUES) == {"a": 1}
    assert fill_request_template({}, VALUES) == {}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("${message}", "Hi"),
        ("${turn}", "3"),
        ("${tools}", '[{"a": "é"}]'),
        ("${none}", "null"),
        ("a ${turn}", "a 3"),
        ("$${a}", "${a}"),
        ("${session}", None),
        ("a ${session}", None),
    ],
)
def test_a_text_filled_in(template: str, text: str | None) -> None:
    assert fill_request_text(template, VALUES) == text
