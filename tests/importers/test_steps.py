"""Steps of other tracers as spans: their messages, requests, calls and results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.importers.steps import (
    StepMessages,
    StepResult,
    TracerStep,
    call_arguments,
    call_attributes,
    objects_in,
    parse_step_messages,
    request_in,
    result_in,
    to_span,
    unseen_steps,
)
from agenteval.messages.truncated_json import is_truncated_message

HI, HELLO = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
SYSTEM = {"role": "system", "content": "Be brief."}
HO = {"role": "user", "content": "Ho"}
CUT = '[{"role": "user", "content": "H'
LANGCHAIN = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "HumanMessage"],
    "kwargs": {"content": "Hi"},
}


def serialized(name: str, **fields: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", name], "kwargs": fields}


def said(messages: Any) -> Any:
    return messages and [(each.get("role"), each.get("content")) for each in messages]


@pytest.mark.parametrize(("steps", "unless"), [((), []), (("a", "b"), ["a", "b"]), (None, None)])
def test_steps_that_may_be_missing(steps: Any, unless: Any) -> None:
    assert unseen_steps("x", steps) == {"what": "x", "unless": unless}


# ── spans ────────────────────────────────────────────────────────────────────────────────────────

STEP = TracerStep("t", "s", "p", "find", "tool", "kind", 1, 2)


def test_a_step_with_nothing_in_it() -> None:
    assert to_span(STEP) == {
        "trace_id": "t",
        "span_id": "s",
        "parent_id": "p",
        "name": "find",
        "start_time": 1,
        "end_time": 2,
        "attributes": {"kind": "tool"},
    }


def test_a_step_with_everything_in_it() -> None:
    span = to_span(
        STEP._replace(
            error="late",
            session="c",
            input_messages=[HI],
            output_messages=(HELLO,),
            request={"model": "m", "none": None},
            call={"result": 0},
            unread={"more": {"a": 1}},
            events=("e",),
            unseen=(unseen_steps("x"),),
            whole_request="said",
        )
    )
    assert span["attributes"] == {
        "kind": "tool",
        "session.id": "c",
        "gen_ai.input.messages": [HI],
        "gen_ai.output.messages": [HELLO],
        "gen_ai.tool.name": "find",
        "model": "m",
        "result": 0,
        "more": {"a": 1},
    }
    assert span["status"] == {"code": "ERROR", "message": "late"}
    assert (span["events"], span["unseen"], span["whole"]) == (["e"], [{"what": "x", "unless": []}], "said")


def test_an_input_that_is_empty_is_one() -> None:
    attributes = to_span(STEP._replace(input_messages=[]))["attributes"]
    assert attributes["gen_ai.input.messages"] == []
    assert "gen_ai.output.messages" not in attributes


# ── messages ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("inputs", "messages"),
    [
        ("Hi", [("user", "Hi")]),
        (" ", None),
        (None, None),
        (7, None),
        ([HI], [("user", "Hi")]),
        ([[HI]], [("user", "Hi")]),
        ([], []),
        (["Hi", "Ho"], [("user", "Hi"), ("user", "Ho")]),
        ([["user", "Hi"]], [("user", "Hi")]),
        ([["human", "Hi"], ["ai", "Hello"]], [("user", "Hi"), ("assistant", "Hello")]),
        ([HI, 7], None),
        ([{"odd": 1}], None),
        (HI, [("user", "Hi")]),
        ([LANGCHAIN], [("user", "Hi")]),
        (LANGCHAIN, [("user", "Hi")]),
        (serialized("HumanMessage", content="Hi"), [("user", "Hi")]),
        (serialized("Unknown", content="Hi", type="human"), [("user", "Hi")]),
        (serialized("ChatPromptValue", messages=[HI]), [("user", "Hi")]),
        (serialized("StringPromptValue", text="Hi"), [("user", "Hi")]),
        (serialized("Unknown", n=3), None),
        ({"type": "human", "data": {"content": "Hi"}}, [("user", "Hi")]),
        ({"type": "system", "content": "a page", "question": "Hi"}, [("user", "Hi")]),
        (json.dumps([HI]), [("user", "Hi")]),
        ({"messages": [HI]}, [("user", "Hi")]),
        ({"messages": [[LANGCHAIN]]}, [("user", "Hi")]),
        ({"question": "Hi", "k": 3}, [("user", "Hi")]),
        ({"topic": "Hi"}, [("user", "Hi")]),
        ({"topic": "Hi", "other": "Ho"}, None),
        ({"prompts": ["Hi"]}, [("user", "Hi")]),
        ({"prompts": ["Hi", "Ho"]}, None),
        (
            {"chat_history": [HI, HELLO], "input": "Ho"},
            [("user", "Hi"), ("assistant", "Hello"), ("user", "Ho")],
        ),
        ({"history": [HI, HELLO], "input": "Ho"}, [("user", "Hi"), ("assistant", "Hello"), ("user", "Ho")]),
        ({"chat_history": [], "input": "Ho"}, [("user", "Ho")]),
        ({"chat_history": "none", "input": "Ho"}, [("user", "Ho")]),
        # a function that was traced
        ({"args": ["Hi"], "kwargs": {}}, [("user", "Hi")]),
        ({"args": [], "kwargs": {"question": "Hi"}}, [("user", "Hi")]),
        ({"args": ["x"], "kwargs": {"question": "Hi"}}, [("user", "Hi")]),
        ({"args": ["x", "y"], "kwargs": {}}, None),
        ({"args": "Hi", "kwargs": {}}, [("user", "Hi")]),
    ],
)
def test_what_was_asked(inputs: Any, messages: Any) -> None:
    assert said(parse_step_messages(inputs, None).input_messages) == messages


@pytest.mark.parametrize(
    ("outputs", "texts", "is_known"),
    [
        (None, [], True),
        ("", [], True),
        ({}, [], True),
        ("Hello", ["Hello"], True),
        ([HELLO], ["Hello"], True),
        (HELLO, ["Hello"], True),
        (json.dumps(HELLO), ["Hello"], True),
        (serialized("AIMessage", content="Hello"), ["Hello"], True),
        ({"type": "ai", "data": {"content": "Hello"}}, ["Hello"], True),
        ({"messages": [HI, HELLO]}, ["Hello"], True),
        ({"messages": [HELLO]}, ["Hello"], True),
        ({"output": HELLO}, ["Hello"], True),
        ({"output": [HELLO]}, ["Hello"], True),
        ({"output": "Hello"}, ["Hello"], True),
        ({"output": {"message": HELLO}}, ["Hello"], True),
        ({"answer": "Hello", "k": 3}, ["Hello"], True),
        ({"choices": [{"message": HELLO}]}, ["Hello"], True),
        ({"generations": [[{"text": "Hello", "message": HELLO}]]}, ["Hello"], True),
        ({"generations": [[{"text": "Hello"}]]}, ["Hello"], True),
        ({"generations": [{"text": "Hello"}]}, ["Hello"], True),
        ({"a": 1, "b": 2}, ['{"a": 1, "b": 2}'], False),
        ({"state": {"a": 1}}, ['{"a": 1}'], False),
        ([1, 2], ["[1, 2]"], False),
    ],
)
def test_what_was_answered(outputs: Any, texts: list[str], is_known: bool) -> None:
    found = parse_step_messages("Hi", outputs)
    assert [each["content"] for each in found.output_messages] == texts
    assert found.is_known is is_known


def test_a_state_begins_with_the_messages_before_and_may_leave_the_instructions_out() -> None:
    found = parse_step_messages([SYSTEM, HI], {"messages": [HI, HELLO]})
    assert (found.input_messages, found.output_messages) == ([SYSTEM, HI], [HELLO])
    found = parse_step_messages([SYSTEM, HI], {"messages": [SYSTEM, HI, HELLO]})
    assert (found.input_messages, found.output_messages) == ([SYSTEM, HI], [HELLO])
    found = parse_step_messages([HI], {"messages": [HO, HELLO, HI, HELLO]})
    assert (found.input_messages, found.output_messages) == ([HO, HELLO, HI], [HELLO])
    found = parse_step_messages([HI], {"messages": [HI, HELLO, HI, HELLO]})
    assert (found.input_messages, found.output_messages) == ([HI, HELLO, HI], [HELLO])


def test_messages_that_were_cut_off() -> None:
    found = parse_step_messages(CUT, CUT)
    assert found.input_messages
    assert is_truncated_message(found.input_messages[0])
    assert is_truncated_message(found.output_messages[0])
    assert ("input" in found.input_messages[0], "output" in found.output_messages[0]) == (True, True)
    assert found.is_known


def test_an_answer_that_is_asked_for_again_is_known() -> None:
    assert parse_step_messages([HI, HELLO], {"a": 1, "b": 2}).is_known


def test_a_stream_that_cannot_be_put_together_is_not_known() -> None:
    found = parse_step_messages("Hi", 'data: {"choices": [{"index": 0, "delta": {"content": "H"}}]}')
    assert (said(found.input_messages), found.output_messages, found.is_known) == (
        [("user", "Hi")],
        [],
        False,
    )


@pytest.mark.parametrize(
    ("messages", "whole", "of_model", "of_request"),
    [
        (StepMessages([HI], [HELLO], True), "said", [HELLO], ([HI], [HELLO])),
        (StepMessages([HI], [HELLO], False), "object", [], ([HI], [HELLO])),
        (StepMessages([HI], [], True), "", [], ([HI], [])),
        (StepMessages([], [HELLO], True), "", [HELLO], (None, [])),
        (StepMessages(None, [HELLO], True), "", [HELLO], (None, [])),
        (StepMessages(None, [HELLO], False), "", [], (None, [])),
    ],
)
def test_what_models_and_requests_take_of_it(
    messages: StepMessages, whole: str, of_model: list[Any], of_request: Any
) -> None:
    assert messages.whole_request == whole
    assert messages.for_model().output_messages == of_model
    assert messages.for_model().input_messages == messages.input_messages
    request = messages.for_request()
    assert (request.input_messages, request.output_messages) == of_request


@pytest.mark.parametrize(
    ("places", "tools", "system"),
    [
        ((None,), None, None),
        (({"tools": [1], "system": "x"},), [1], "x"),
        (({"functions": [2], "instructions": "y"},), [2], "y"),
        (('{"tools": [1]}',), [1], None),
        (({"tools": "auto", "functions": [2]},), [2], None),
        (({}, {"tools": [3]}), [3], None),
        (({"tools": [1]}, {"tools": [3], "system": "z"}), [1], "z"),
        (({"system": ""}, None, {"instructions": "y"}), None, "y"),
        (({"tools": []}, {"tools": [3]}), [], None),
    ],
)
def test_tools_and_instructions_of_a_request(places: Any, tools: Any, system: Any) -> None:
    assert request_in(*places) == {"gen_ai.tool.definitions": tools, "gen_ai.system_instructions": system}


# ── tools ────────────────────────────────────────────────────────────────────────────────────────

TOOL_MESSAGE = {"type": "tool", "content": "7", "tool_call_id": "c"}


@pytest.mark.parametrize(
    ("output", "result"),
    [
        (None, StepResult(None)),
        ("7", StepResult("7")),
        ({"a": 1}, StepResult({"a": 1})),
        ({"role": "tool", "content": "7"}, StepResult({"role": "tool", "content": "7"})),
        (TOOL_MESSAGE, StepResult("7", "c")),
        ({**TOOL_MESSAGE, "status": "error"}, StepResult("7", "c", "7")),
        ({**TOOL_MESSAGE, "status": "success"}, StepResult("7", "c")),
        ({"id": ["x", "ToolMessage"], "type": "constructor", "kwargs": {"content": "7", "tool_call_id": "c"}},
         StepResult("7", "c")),
        ({"tool_call_id": "c", "odd": 1}, StepResult({"tool_call_id": "c", "odd": 1})),
        ({"type": "ai", "content": "7", "tool_call_id": "c"},
         StepResult({"type": "ai", "content": "7", "tool_call_id": "c"})),
    ],
)  # fmt: skip
def test_a_result_may_be_wrapped_in_a_message(output: Any, result: StepResult) -> None:
    assert result_in(output) == result


@pytest.mark.parametrize(
    ("call_id", "of_result", "found"), [("", "", None), ("a", "", "a"), ("", "b", "b"), ("a", "b", "a")]
)
def test_a_call_as_attributes(call_id: str, of_result: str, found: str | None) -> None:
    assert call_attributes({"x": 1}, StepResult("7", of_result), call_id) == {
        "gen_ai.tool.call.id": found,
        "gen_ai.tool.call.arguments": {"x": 1},
        "gen_ai.tool.call.result": "7",
    }


@pytest.mark.parametrize(
    ("inputs", "arguments"),
    [
        ({"city": "Bonn"}, {"city": "Bonn"}),
        ({"input": '{"city": "Bonn"}'}, {"city": "Bonn"}),
        ({"input": "{'city': 'Bonn'}"}, {"city": "Bonn"}),
        ({"input": "Bonn"}, {"input": "Bonn"}),
        ({"input": {"city": "Bonn"}}, {"input": {"city": "Bonn"}}),
        ({"input": '{"a": 1}', "k": 3}, {"input": '{"a": 1}', "k": 3}),
        ("Bonn", "Bonn"),
        (None, None),
    ],
)
def test_arguments_that_are_one_text(inputs: Any, arguments: Any) -> None:
    assert call_arguments(inputs) == arguments


def test_only_objects_and_lists_that_are_not_read_may_hold_calls() -> None:
    fields = {"a": {"x": 1}, "b": [1], "c": "text", "d": 7, "e": {}, "f": [], "g": {"y": 1}}
    assert objects_in(fields, frozenset("g"), "of") == {"of.a": {"x": 1}, "of.b": [1]}
