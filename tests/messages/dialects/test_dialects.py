"""Conversations as frameworks write them in ways of their own: each is read as the common one is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.recorded import read

ASKED, ANSWER, GIVEN = "Weather in Rome?", "It is 21 C in Rome.", '{"city": "Rome"}'
ROME = {"city": "Rome"}
CALL = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": GIVEN}}


def said(record: Any) -> list[Any]:
    """What was asked, called, given back and answered, in order."""
    found: list[Any] = []
    conversation = read(record)
    assert not conversation.parsed.orphans
    for turn in conversation.parsed.trajectory.turns:
        found.append(turn.user)
        for step in turn.steps:
            calls = [(call.name, call.args, call.result and call.result.value) for call in step.tool_calls]
            found += [*calls, *([step.text] if step.text else [])]
    return found


def pydantic(*messages: tuple[str, list[Any]], **more: Any) -> list[Any]:
    return [
        {"kind": kind, "parts": [{"part_kind": part, **fields} for part, fields in parts], **more}
        for kind, parts in messages
    ]


def adk(author: str, role: str, part: Any, **more: Any) -> Any:
    return {"author": author, "invocationId": "i", "content": {"role": role, "parts": [part]}, **more}


PYDANTIC = pydantic(
    ("request", [("user-prompt", {"content": ASKED})]),
    (
        "response",
        [
            ("thinking", {"content": "I look it up."}),
            ("tool-call", {"tool_name": "weather", "args": GIVEN, "tool_call_id": "c"}),
        ],
    ),
    ("request", [("tool-return", {"tool_name": "weather", "content": "21 C", "tool_call_id": "c"})]),
    ("response", [("text", {"content": ANSWER})]),
)
ADK = [
    adk("user", "user", {"text": ASKED}),
    adk("weather_agent", "model", {"functionCall": {"id": "c", "name": "weather", "args": ROME}}),
    adk("weather_agent", "user", {"functionResponse": {"id": "c", "name": "weather", "response": "21 C"}}),
    adk("weather_agent", "model", {"text": "It is"}, partial=True),
    adk("weather_agent", "model", {"text": ANSWER}),
]
INVOCATION = {
    "user_content": {"parts": [{"text": ASKED}], "role": "user"},
    "final_response": {"parts": [{"text": ANSWER}], "role": "model"},
    "intermediate_data": {
        "tool_uses": [{"name": "weather", "args": ROME}],
        "tool_responses": [{"name": "weather", "response": "21 C"}],
    },
}


def test_what_an_agent_told_on_the_way_is_said() -> None:
    between = {**INVOCATION["intermediate_data"], "intermediate_responses": [["a", [{"text": "I look."}]]]}
    record = {"conversation": [{**INVOCATION, "intermediate_data": between}]}
    assert said(record) == [ASKED, ("weather", ROME, "21 C"), "I look.", ANSWER]


# ── what is special in one ───────────────────────────────────────────────────────────────────────


def test_a_retry_is_an_error_of_its_call() -> None:
    call = ("tool-call", {"tool_name": "weather", "args": {}, "tool_call_id": "c"})
    retry = ("retry-prompt", {"tool_name": "weather", "content": "city: required", "tool_call_id": "c"})
    asked = ("request", [("user-prompt", {"content": ASKED})])
    anew = ("request", [("retry-prompt", {"content": "Answer in JSON."})])
    messages = pydantic(asked, ("response", [call]), ("request", [retry]), anew, instructions="Be brief.")
    found = read([*messages, *PYDANTIC[-1:]])
    (called,) = found.parsed.trajectory.tool_calls
    assert called.result is not None
    assert called.result.is_error
    assert found.parsed.policy == "Be brief."
    assert found.notes == ("the framework's retry prompts were omitted",)


def test_usual_messages_beside_events_stay_as_they_are() -> None:
    usual = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWER}]
    assert said({"messages": usual, "events": ADK[:2]}) == [ASKED, ANSWER]


def test_a_flag_of_a_failed_call() -> None:
    tool = {"role": "tool", "tool_call_id": "c", "content": "city not found", "tool_call_error": True}
    called = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    found = read([{"role": "user", "content": ASKED}, called, tool, {"role": "assistant", "content": "No."}])
    (call,) = found.parsed.trajectory.tool_calls
    assert call.result is not None
    assert call.result.is_error


@pytest.mark.parametrize(
    "given", [{"answer": ANSWER}, {"final_answer": ANSWER, "return_type": "give_answer"}]
)
def test_an_answer_that_is_handed_over_as_a_call(given: Any) -> None:
    name = "final_answer" if "answer" in given else "Finish"
    last = {"id": "d", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
    called = {"role": "assistant", "content": None, "tool_calls": [last]}
    assert said([{"role": "user", "content": ASKED}, called]) == [ASKED, (name, given, None), ANSWER]


def test_inputs_with_one_output() -> None:
    messages = [{"role": "user", "content": ASKED}]
    record = {"inputs": {"messages": messages}, "output": {"role": "assistant", "content": ANSWER}}
    assert said(record) == [ASKED, ANSWER]
