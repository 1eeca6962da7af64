"""Messages of other libraries, as an agent returns them, in OpenAI's format."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from agenteval.core.errors import AgentError
from agenteval.core.trajectory import ToolCall
from agenteval.messages.chat import parse_steps
from agenteval.messages.message_adapters import (
    as_call,
    as_entry,
    as_message,
    describe_unread_list,
    drop_repeats,
    is_like_message,
    message_remedy,
    parse_entries,
    parse_reply_message,
    to_openai_messages,
    to_openai_messages_lenient,
    unplaced_phrases,
)
from tests.support.message_shapes import (
    ARGS,
    CANCELLED,
    DONE,
    SHAPES,
    TOOL_USE,
    asks,
    call,
    calls_in,
    result,
    says,
    user,
)

NOTE = {"anything": "x"}


class Role(Enum):
    AI = "ai"


class Slots:
    __slots__ = ("content", "role")


class Model(BaseModel):
    role: str = "assistant"
    content: str | None = None


@dataclass
class Data:
    content: Any
    type: str = "ai"
    usage: Any = None


@dataclass
class Event:
    author: str
    content: Any = None


class WithProperty:
    def __init__(self) -> None:
        self.content = "a"

    @property
    def role(self) -> str:
        return "user"


# ── one message ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (says("a"), says("a")),
        (Model(content="a"), says("a")),
        (Model(), {"role": "assistant"}),
        (Data("a"), {"content": "a", "type": "ai", "role": "assistant"}),
        (WithProperty(), user("a")),
        ({**says("a"), "when": date(2026, 1, 2)}, {**says("a"), "when": "2026-01-02"}),
        (SimpleNamespace(content="a", _hidden=1, agent=None), says("a")),
        ({"role": Role.AI, "content": "a"}, says("a")),
        ({"role": "model", "content": "a"}, says("a")),
        ({"role": "human", "content": "a"}, user("a")),
        ({"role": "function", "content": "a"}, {"role": "tool", "content": "a"}),
        ({"role": "critic", "content": "a"}, {"role": "critic", "content": "a"}),
        ({"type": "HumanMessageChunk", "content": "a"}, {"type": "HumanMessageChunk", **user("a")}),
        ({"type": "system", "content": "a"}, {"type": "system", "role": "system", "content": "a"}),
        ({"type": "note", "content": "a"}, {"type": "note", "content": "a"}),
        ({"type": "function_call", "name": "f"}, {"type": "function_call", "name": "f"}),
        ({"content": "a"}, says("a")),
        ({"tool_calls": []}, {"role": "assistant", "tool_calls": []}),
        ({"answer": "a"}, {"answer": "a"}),
        ({}, {}),
        ({"type": "ai", "data": {"content": "a"}}, {"type": "ai", **says("a")}),
        ({"role": "user", "data": {"content": "a"}}, {"role": "user", "data": {"content": "a"}}),
        ({**says("a"), "agent": SimpleNamespace(name="helper")}, {**says("a"), "agent": "helper"}),
        ({**says("a"), "agent": {"name": "helper"}}, {**says("a"), "agent": "helper"}),
        ({**says("a"), "more": (Event("b"),)}, {**says("a"), "more": [{"author": "b", "content": None}]}),
        (
            {"role": "assistant", "content": (Model(content="a"), "b", None)},
            {"role": "assistant", "content": [says("a"), "b", None]},
        ),
        (
            {"role": "assistant", "parts": [SimpleNamespace(a=SimpleNamespace(b=[1]))]},
            {"role": "assistant", "parts": [{"a": {"b": [1]}}]},
        ),
    ],
)
def test_a_message_is_a_mapping(value: Any, message: Any) -> None:
    assert as_message(value) == message


def test_the_value_that_a_tool_returned_stays() -> None:
    content = [Data("a")]
    assert as_message({"role": "tool", "content": content})["content"] is content


@pytest.mark.parametrize("value", ["Hello.", 5, None, ["a"], Slots(), object()])
def test_what_is_no_message(value: Any) -> None:
    with pytest.raises(AgentError) as error:
        as_message(value)
    assert type(value).__name__ in str(error.value)
    assert error.value.kind == "protocol"


@pytest.mark.parametrize("part", [object(), Slots(), SimpleNamespace(a=SimpleNamespace(b=Slots()))])
def test_a_part_that_is_no_mapping(part: Any) -> None:
    with pytest.raises(AgentError):
        as_message({"role": "assistant", "content": [part]})


def test_whether_an_object_is_like_a_message() -> None:
    slots = Slots()
    assert not is_like_message(slots)
    setattr(slots, "content", "a")  # noqa: B010
    assert is_like_message(slots)
    assert is_like_message(SimpleNamespace(tool_calls=[]))
    assert not is_like_message({"role": "user"})
    assert not is_like_message("a")
    assert "m.role" in message_remedy(slots)
    assert "m.role" not in message_remedy(5)
    assert ["string" in message_remedy(value) for value in ("a", 5)] == [True, False]


@pytest.mark.parametrize(
    ("value", "entry"),
    [
        ({"content": "a", "id": 1, "timestamp": 2}, {**says("a"), "id": 1, "timestamp": 2}),
        ({"content": "a", "tool": "cancel"}, {**says("a"), "other fields": {"tool": "cancel"}}),
        ({"role": "assistant", "content": "a", "tool": "x"}, {**says("a"), "tool": "x"}),
        ({"type": "ai", "content": "a", "tool": "x"}, {"type": "ai", **says("a"), "tool": "x"}),
        ({"tool": "cancel"}, {"tool": "cancel"}),
        (SimpleNamespace(content="a", tool="x"), {**says("a"), "tool": "x"}),
    ],
)
def test_unknown_fields_beside_no_role_are_gathered(value: Any, entry: Any) -> None:
    assert as_entry(value) == entry


# ── lists ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_turn_in_many_shapes(name: str) -> None:
    for read in (to_openai_messages, to_openai_messages_lenient):
        messages = read(SHAPES[name])
        steps = parse_steps(messages)
        assert calls_in(steps) == [CANCELLED]
        assert steps[-1].text == "done"
        assert unplaced_phrases(messages) == ()
        assert {each["role"] for each in messages} <= {"assistant", "tool"}


def test_openais_own_messages_stay() -> None:
    messages = [user("Hi"), asks(text="a"), result(), {**says("b"), "refusal": None, "reasoning": "Hm."}]
    assert to_openai_messages(messages) == messages
    assert to_openai_messages([]) == []


def test_a_log_of_a_framework_is_read_as_one() -> None:
    parts = [{"part_kind": "tool-call", "tool_name": "cancel", "args": ARGS, "tool_call_id": "c"}]
    logged = [{"kind": "response", "parts": parts}]
    (message,) = parse_entries(logged)
    assert message["role"] == "assistant"
    assert message["content"][0]["type"] == "tool_call"
    event = Event("bot", {"role": "model", "parts": [{"text": "a"}]})
    (message,) = parse_entries([event])
    assert (message["role"], message["agent"], message["parts"]) == ("model", "bot", [{"text": "a"}])
    assert parse_entries([says("a"), SimpleNamespace(content="b")]) == [says("a"), says("b")]


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        ({"role": "assistant", "content": [TOOL_USE]}, [("cancel", ARGS, None)]),
        ({"role": "assistant", "content": "", "toolCalls": [{"name": "f"}]}, [("f", {}, None)]),
        ({"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}, [("f", {}, None)]),
        ({"role": "assistant", "content": None, "function_call": {"name": "f"}}, [("f", {}, None)]),
    ],
)
def test_calls_in_other_forms(message: Any, calls: list[Any]) -> None:
    assert calls_in(parse_steps(to_openai_messages([message]))) == calls


def test_a_failed_call_of_another_library() -> None:
    content = [{"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True}]
    messages = to_openai_messages(
        [{"role": "assistant", "content": [TOOL_USE]}, {"role": "user", "content": content}]
    )
    assert messages[-1] == {
        "role": "tool",
        "tool_call_id": "t",
        "name": "",
        "content": "no",
        "status": "error",
    }


def test_one_foreign_part_makes_a_result_foreign() -> None:
    foreign = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    (found,) = to_openai_messages([{"role": "tool", "content": [foreign]}])
    assert (found["tool_call_id"], found["content"]) == ("t", "ok")
    mixed = to_openai_messages([{"role": "tool", "content": [{"type": "text", "text": "a"}, foreign]}])
    assert [each.get("tool_call_id") for each in mixed if each.get("tool_call_id")] == ["t"]


def test_cited_passages_are_results_without_a_call() -> None:
    cited = {"type": "text", "text": "a", "citations": [{"cited_text": "p"}]}
    passages, said = to_openai_messages([{"role": "assistant", "content": [cited]}])
    assert (passages["role"], passages["type"], passages["content"]) == (
        "tool",
        "passages",
        [{"cited_text": "p"}],
    )
    assert "status" not in passages
    assert (said["role"], said["content"]) == ("assistant", "a")


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        ({**TOOL_USE, "state": "approval-requested"}, {"attempted": True}),
        ({**TOOL_USE, "approval": {"approved": True}}, {"approved": True}),
        ({"type": "tool_use", "id": "t", "name": "cancel", "where": {"id": 1}}, {"arguments_unknown": True}),
        (TOOL_USE, {}),
    ],
)
def test_marks_of_a_call(call: Any, fields: dict[str, Any]) -> None:
    message = to_openai_messages([{"role": "assistant", "content": [call]}])[0]
    (made,) = message["tool_calls"]
    assert {key: made[key] for key in made if key not in ("id", "type", "function")} == fields


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "a", "other": NOTE},
        {"role": "assistant", "content": "a", "other": [NOTE]},
        {"role": "assistant", "content": [{"type": "hologram", "data": "x"}]},
        {"role": "tool", "tool_call_id": "c", "content": "ok", "other": NOTE},
        {"content": "a", "tool": "cancel"},
        {"type": "note", "text": "a"},
        {"role": "assistant", "content": "a", "other": {"deep": float("nan")}},
    ],
)
def test_what_could_not_be_placed_is_marked(message: Any) -> None:
    for read in (to_openai_messages, to_openai_messages_lenient):
        found = read([message])
        assert len(unplaced_phrases(found)) == 1
        assert [each["role"] for each in found].count("unplaced") == 1


def test_what_was_placed_elsewhere_is_dropped() -> None:
    other = {"id": "c1", "name": "cancel", "arguments": ARGS}
    for messages in ([asks(), {**says("a"), "other": other}], [{**says("a"), "other": other}, asks()]):
        assert unplaced_phrases(to_openai_messages(messages)) == ()
    assert len(unplaced_phrases(to_openai_messages([{**says("a"), "other": other}]))) == 1


def unplaced(*calls: Any) -> dict[str, Any]:
    return {"role": "unplaced", "content": "x", "calls": calls}


OTHER = {"name": "find", "arguments": {}}


@pytest.mark.parametrize(
    ("messages", "known", "kept"),
    [
        ([asks(), unplaced(call())], [], 1),
        ([unplaced(call()), asks()], [], 1),
        ([asks(), unplaced(call(), OTHER)], [], 2),
        ([asks(), unplaced(OTHER)], [], 2),
        ([asks(), unplaced()], [], 2),
        ([asks(), unplaced(OTHER)], [ToolCall(name="find", args={})], 1),
        ([unplaced(call(), OTHER), asks()], [ToolCall(name="find", args={})], 1),
        ([user("Hi") | {"tool_calls": [call()]}, unplaced(call())], [], 2),
        ([{"role": "tool", "id": "x"}, unplaced({"id": "x"})], [], 1),
        ([], [], 0),
    ],
)
def test_repetitions(messages: list[Any], known: list[ToolCall], kept: int) -> None:
    assert len(drop_repeats(messages, known)) == kept
    assert drop_repeats(messages, known) == [
        each for each in messages if kept == len(messages) or "calls" not in each
    ]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]},
        {"role": "assistant", "content": None, "tool_calls": ["cancel"]},
        {"type": "function_call", "arguments": "{}"},
    ],
)
def test_a_call_that_cannot_be_read_is_the_agents_failure(message: Any) -> None:
    with pytest.raises(AgentError) as error:
        to_openai_messages([says("a"), message])
    assert error.value.kind == "protocol"
    kept = to_openai_messages_lenient([says("a"), message])
    assert kept[0] == says("a")
    assert len(unplaced_phrases(kept)) == 1


def test_the_call_that_is_broken_is_told() -> None:
    unnamed = {"id": "c2", "type": "function", "function": {"arguments": "{}"}}
    with pytest.raises(AgentError) as error:
        to_openai_messages([asks(call(), unnamed)])
    assert "c2" in str(error.value)
    assert "c1" not in str(error.value)


def test_usage_that_is_told_again_is_counted_once() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    twice = [{**says("a"), "usage": usage, "id": "m"}, {**says("b"), "usage": usage, "id": "m"}]
    steps = parse_steps(to_openai_messages(twice))
    assert [step.usage.input_tokens for step in steps] == [5, 0]


@pytest.mark.parametrize(
    ("messages", "is_told"),
    [
        ([], False),
        ([{"type": "note", "text": "a"}], True),
        ([{"type": "note", "text": "a"}, {"type": "memo"}], True),
        ([{"type": "note", "text": "a"}, says("b")], False),
        ([{"type": "message", "role": "ai", "content": "a"}], False),
    ],
)
def test_a_list_of_which_nothing_is_recognized(messages: list[Any], is_told: bool) -> None:
    assert bool(describe_unread_list(messages)) is is_told
    assert ("note" in describe_unread_list(messages)) is is_told


# ── the only message of a reply ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "role", "is_plain", "count"),
    [
        (says("a"), "assistant", True, 0),
        (asks(), "assistant", True, 0),
        ({**says("a"), "other": NOTE}, "assistant", True, 1),
        ({"content": "a"}, "assistant", True, 0),
        ({"role": "critic", "content": "a"}, "assistant", True, 0),
        ({"type": "note", "content": "a"}, "assistant", True, 0),
        (user("a"), "user", False, 0),
        ({"role": "assistant", "content": [TOOL_USE]}, "assistant", False, 0),
        ({"role": "assistant", "parts": [{"text": "a"}]}, "assistant", False, 0),
        ({"role": "assistant", "content": [{"type": "text", "text": "a"}]}, "assistant", True, 0),
        ({"role": "assistant", "content": "", "toolCalls": [{"name": "f"}]}, "assistant", False, 0),
    ],
)
def test_a_reply_of_one_message(value: Any, role: str, is_plain: bool, count: int) -> None:
    found = parse_reply_message(value)
    assert (found.message["role"], found.is_plain, len(found.unplaced)) == (role, is_plain, count)


@pytest.mark.parametrize("content", [NOTE, {"type": "hologram", "data": "x"}])
def test_a_content_that_is_an_unknown_object(content: Any) -> None:
    with pytest.raises(AgentError):
        parse_reply_message({"role": "assistant", "content": content})
    with pytest.raises(AgentError):
        parse_reply_message({"role": "assistant", "content": content, "other": {"more": "y"}})


# ── a call that is about to be executed ──────────────────────────────────────────────────────────

CALL = call(arguments=ARGS)


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (call(), call()),
        ({"name": "cancel", "args": ARGS}, {"name": "cancel", "args": ARGS}),
        ({"name": "cancel"}, {"name": "cancel"}),
        ({"id": "c1", "name": "cancel", "parameters": ARGS}, CALL),
        ({"id": "c1", "toolName": "cancel", "input": ARGS}, CALL),
        ({"callId": "c1", "function": {"name": "cancel", "params": "{oops"}}, call(arguments="{oops")),
        ("no mapping", "no mapping"),
        ({"arguments": "{}"}, {"arguments": "{}"}),  # a mistake that its parser reports
    ],
)
def test_a_call_in_openais_form(raw: Any, found: Any) -> None:
    assert as_call(raw) == found


def test_a_call_whose_arguments_are_unknown_cannot_be_executed() -> None:
    with pytest.raises(AgentError) as error:
        as_call({"name": "cancel", "where": {"id": 1}})
    assert "cancel" in str(error.value)


def test_done_is_plain() -> None:
    assert parse_reply_message(DONE).message == DONE
