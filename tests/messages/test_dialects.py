"""Conversations as frameworks write them in ways of their own: each is read as the common one is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.recorded import read

ASKED, ANSWER, GIVEN = "Weather in Rome?", "It is 21 C in Rome.", '{"city": "Rome"}'
ROME = {"city": "Rome"}
CALL = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": GIVEN}}


def said(record: Any) -> list[Any]:
    """What was asked, called, given back and answered, in order."""
    found: list[Any] = []
    conversation = read(record)
    assert not conversation.talk.orphans
    for turn in conversation.talk.trajectory.turns:
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
COHERE = [
    {"role": "USER", "message": ASKED},
    {"role": "CHATBOT", "message": "", "tool_calls": [{"name": "weather", "parameters": ROME}]},
    {"role": "TOOL", "tool_results": [{"call": {"name": "weather"}, "outputs": "21 C"}]},
]


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
    (called,) = found.talk.trajectory.tool_calls
    assert called.result is not None
    assert called.result.is_error
    assert found.talk.policy == "Be brief."
    assert found.notes == ("what the framework asked the agent to do again was left out",)


@pytest.mark.parametrize(
    "record",
    [
        {"chat_history": COHERE[:1], "message": "And in Bonn?", "text": "12 C."},
        {"chat_history": COHERE[:1], "question": "And in Bonn?", "answer": "12 C."},
        {
            "request": {"chat_history": COHERE[:1], "message": "And in Bonn?", "model": "m"},
            "response": {"text": "12 C.", "finish_reason": "COMPLETE"},
        },
        {"chat_history": [["human", ASKED]], "query": "And in Bonn?", "response": "12 C."},
    ],
)
def test_a_question_beside_its_history(record: Any) -> None:
    assert said(record) == [f"{ASKED}\nAnd in Bonn?", "12 C."]


def test_a_history_of_pairs() -> None:
    record = {"chat_history": [["Hello", "Hi!"]], "question": ASKED, "answer": ANSWER}
    assert said(record) == ["Hello", "Hi!", ASKED, ANSWER]


def test_what_an_agent_saw_between_a_question_and_its_answer() -> None:
    step = [{"tool": "weather", "tool_input": ROME, "log": "I look it up."}, "21 C"]
    record = {"chat_history": [], "input": ASKED, "intermediate_steps": [step], "output": ANSWER}
    assert said(record) == [ASKED, ("weather", ROME, "21 C"), ANSWER]
    (turn,) = read({**record, "intermediate_steps": ["a step in words"]}).talk.trajectory.turns
    assert turn.unplaced == ('an entry of no known kind: {"intermediate_steps": "a step in words"}',)
    pages = {"chat_history": [], "question": ASKED, "source_documents": ["Rome: 21 C"], "answer": ANSWER}
    (fact,) = read(pages).talk.orphans
    assert "Rome: 21 C" in fact


def test_an_answer_that_ends_the_history_is_said_once() -> None:
    record = {"text": ANSWER, "chat_history": [COHERE[0], {"role": "CHATBOT", "message": ANSWER}]}
    assert said(record) == [ASKED, ANSWER]


@pytest.mark.parametrize("is_wrapped", [True, False])
def test_a_thread_is_read_in_the_order_of_time(is_wrapped: bool) -> None:
    thread = [
        {"object": "thread.message", "created_at": at, "role": role, "content": text}
        for at, role, text in ((2, "assistant", ANSWER), (1, "user", ASKED))
    ]
    assert said({"object": "list", "data": thread} if is_wrapped else thread) == [ASKED, ANSWER]
    assert said(thread[::-1]) == [ASKED, ANSWER]


def test_the_system_of_a_set_of_dialogues_is_the_agent() -> None:
    turns = [{"speaker": "USER", "utterance": ASKED}, {"speaker": "SYSTEM", "utterance": ANSWER}]
    assert said({"dialogue_id": "1", "turns": turns}) == [ASKED, ANSWER]


def test_usual_messages_beside_events_stay_as_they_are() -> None:
    usual = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWER}]
    assert said({"messages": usual, "events": ADK[:2]}) == [ASKED, ANSWER]


def test_a_flag_of_a_failed_call() -> None:
    tool = {"role": "tool", "tool_call_id": "c", "content": "city not found", "tool_call_error": True}
    called = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    found = read([{"role": "user", "content": ASKED}, called, tool, {"role": "assistant", "content": "No."}])
    (call,) = found.talk.trajectory.tool_calls
    assert call.result is not None
    assert call.result.is_error


def test_results_beside_an_answer_that_are_told_again_count_once() -> None:
    result = {"tool_call_id": "c", "content": "21 C"}
    called = {"role": "assistant", "content": "A moment.", "tool_calls": [CALL], "tool_results": [result]}
    asked, answer = {"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWER}
    expected = [ASKED, ("weather", ROME, "21 C"), "A moment.", ANSWER]
    assert said([asked, called, answer]) == expected
    assert said([asked, called, {"role": "tool", **result}, answer]) == expected


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


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ('[weather(city="Rome")]', {"role": "tool", "content": "21 C"}),
        (
            "I look.\n<get_weather>\n<city>Rome</city>\n</get_weather>",
            {"role": "user", "content": "[get_weather for 'Rome'] Result:\n21 C"},
        ),
    ],
)
def test_calls_in_a_text_that_are_not_read_are_told(call: str, result: Any) -> None:
    told = "what looks like tool calls in a text of the agent was not read"
    asked, answer = {"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWER}
    assert told in read([asked, {"role": "assistant", "content": call}, result, answer]).notes
    thanks = {"role": "user", "content": "Thanks"}
    assert told not in read([asked, {"role": "assistant", "content": call}, thanks, answer]).notes


# ── sessions in envelopes ────────────────────────────────────────────────────────────────────────


def line(kind: str, **payload: Any) -> str:
    return json.dumps({"timestamp": "t", "type": kind, "payload": payload}) + "\n"


def session(name: str, answer: str) -> str:
    text = [{"type": "output_text", "text": answer}]
    return (
        line("session_meta", id=name, instructions="You are a coding agent.")
        + line("turn_context", model="gpt-5-codex")
        + line("event_msg", type="user_message", message="How many files?")
        + line(
            "response_item", type="message", role="user", content=[{"type": "input_text", "text": "Files?"}]
        )
        + line("response_item", type="reasoning", summary=[])
        + line("response_item", type="function_call", name="exec", arguments='{"cmd": "ls"}', call_id="c")
        + line("response_item", type="function_call_output", call_id="c", output="a.txt\nb.txt")
        + line("response_item", type="ghost_snapshot", ghost_commit={})
        + line("event_msg", type="agent_message", message=answer)
        + line("response_item", type="message", role="assistant", content=text)
    )


def test_a_session_in_envelopes_is_one_conversation(project: Project) -> None:
    later = line("a_kind_to_come", more=1)
    project.write("rollout.jsonl", session("s-1", "There are two.") + later + session("s-2", ""))
    project.call("score", "rollout.jsonl", "--report", "json=results.json")
    found = {s["id"]: s["samples"][0] for s in project.results()["scenarios"]}
    assert {name: sample["verdict"] for name, sample in found.items()} == {"s-1": "passed", "s-2": "failed"}
    (turn,) = found["s-1"]["turns"]
    (call,) = turn["tool_calls"]
    assert (call["name"], call["result"]) == ("exec", "a.txt\nb.txt")
    assert turn["agent"] == "There are two."


def test_a_session_that_goes_on_from_another_keeps_its_name(project: Project) -> None:
    fork = line("session_meta", id="s-2", forked_from_id="s-1") + session("s-1", "There are two.")
    project.write("rollout.jsonl", fork)
    project.call("score", "rollout.jsonl", "--report", "json=results.json")
    assert [s["id"] for s in project.results()["scenarios"]] == ["s-2"]
