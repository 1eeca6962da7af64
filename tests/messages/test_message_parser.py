"""Shapes of answers, calls, results and errors beyond the common ones: each beside one that looks like it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from tests.support.kit import Project
from tests.support.recorded import read

ASKED = {"role": "user", "content": "Cancel rehearsal 7, please"}
DONE = {"role": "assistant", "content": "It is cancelled."}
ARGS = {"id": 7}
CALL = {"id": "a", "type": "function", "function": {"name": "cancel", "arguments": '{"id": 7}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}


def agent(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", **fields}


def results(*messages: Any) -> list[tuple[str, Any, Any]]:
    """Name and arguments of each call, and its result: the value, and whether it is an error."""
    found = read([*messages])
    assert not found.parsed.orphans
    return [
        (call.name, call.args, (call.result.value, call.result.is_error) if call.result else None)
        for call in found.parsed.trajectory.tool_calls
    ]


def scored(project: Project, *records: Any) -> dict[str, tuple[str, str | None]]:
    project.write("log.jsonl", "".join(f"{json.dumps(record)}\n" for record in records))
    project.call("score", "log.jsonl", "--report", "json=results.json")
    samples = {s["id"]: s["samples"][0] for s in project.results()["scenarios"]}
    return {name: (sample["verdict"], sample["fault"]) for name, sample in samples.items()}


# ── responses ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("response", "why"),
    [
        ({"status": {"code": 503, "message": "Unavailable"}, "body": {"string": "x"}}, "Unavailable (503)"),
        ({"status": {"code": 429}, "body": {"string": ""}}, "status 429"),
        ({"status": {"code": "429"}, "body": {"error": {}}}, "status 429"),
        ({"statusCode": {"code": 502}, "body": "text"}, "status 502"),
        ({"status": {"status_code": 502}, "body": "text"}, "status 502"),
        ({"status": "503 Service Unavailable", "body": "text"}, "status 503"),
        ({"status": "HTTP/1.1 500 Internal Server Error", "body": "text"}, "status 500"),
        ({"status": [503, "Unavailable"], "body": "text"}, "status 503"),
        ({"ResponseMetadata": {"HTTPStatusCode": 500}, "body": "text"}, "status 500"),
    ],
)
def test_a_status_in_any_form_is_an_error(response: Any, why: str) -> None:
    assert read({"request": {"messages": [ASKED]}, "response": response}).lost == (
        f"the response is an error: {why}"
    )


@pytest.mark.parametrize(
    "status",
    [{"code": 200, "message": "OK"}, {"code": 0}, "completed", "200 OK", {"type": "complete"}, [200], 200.0],
)
def test_a_status_that_tells_of_no_error(status: Any) -> None:
    found = read({"request": {"messages": [ASKED]}, "response": {"status": status, "body": "Hello"}})
    assert (found.lost, found.parsed.trajectory.turns[0].answer) == ("", "Hello")


def test_an_error_page_is_no_answer(project: Project) -> None:
    response = {"status": {"code": 503}, "body": {"string": "upstream connect error"}}
    record = {"id": "r", "request": {"messages": [ASKED]}, "response": response}
    assert scored(project, record) == {"r": ("inconclusive", "infrastructure")}


# ── what outputs repeat ──────────────────────────────────────────────────────────────────────────

HISTORY = [ASKED, CALLED, {"role": "tool", "tool_call_id": "a", "content": "ok"}, DONE, ASKED]
NEW = [
    {**CALLED, "tool_calls": [{**CALL, "id": "b"}]},
    {"role": "tool", "tool_call_id": "b", "content": "ok"},
]


def with_ids(messages: list[Any]) -> list[Any]:
    return [{**message, "id": f"m{n}"} for n, message in enumerate(messages)]


@pytest.mark.parametrize(("asked", "answered"), [("inputs", "outputs"), ("input", "output")])
@pytest.mark.parametrize("beside", [{}, {"remaining_steps": 3}])
@pytest.mark.parametrize("policy", [[], [{"role": "system", "content": "Be brief."}]])
@pytest.mark.parametrize("history", [HISTORY, [ASKED]])
def test_outputs_that_begin_with_the_inputs(
    asked: str, answered: str, beside: Any, policy: Any, history: Any
) -> None:
    outputs = {"messages": with_ids([*history, *NEW, DONE]), **beside}
    found = read({asked: {"messages": [*policy, *history]}, answered: outputs})
    turns = found.parsed.trajectory.all_turns
    assert [turn.user for turn in turns] == [ASKED["content"]] * (1 + len(history) // 4)
    assert [len(turn.tool_calls) for turn in turns] == [1] * len(turns)


@pytest.mark.parametrize("added", [[*NEW, DONE], [DONE], [*NEW, DONE, ASKED, DONE]])
def test_outputs_of_new_messages_are_all_read(added: Any) -> None:
    found = read({"inputs": {"messages": HISTORY}, "outputs": {"messages": added}})
    steps = [step for turn in found.parsed.trajectory.all_turns for step in turn.steps]
    assert len(steps) == 2 + sum(message["role"] == "assistant" for message in added)


def test_messages_are_the_same_in_whatever_form() -> None:
    human = {"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": "Hi"}}
    answer = {"lc": 1, "id": ["langchain", "AIMessage"], "kwargs": {"content": "Hello"}}
    inputs = {"messages": [{"type": "human", "content": "Hi"}]}
    found = read({"inputs": inputs, "outputs": {"messages": [human, answer]}})
    assert [(turn.user, turn.answer) for turn in found.parsed.trajectory.turns] == [("Hi", "Hello")]


# ── answers ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (agent(parts=[{"type": "text", "content": "Hello"}]), "Hello"),
        (agent(content=[{"type": "answer_block", "content": "Hello"}]), "Hello"),
        (agent(content=[{"type": "answer_block", "value": "Hello"}]), "Hello"),
        (agent(content=[{"type": "block", "content": [{"type": "text", "text": "Hello"}]}]), "Hello"),
        (
            agent(parts=[{"type": "reasoning", "content": "Hm"}, {"type": "text", "content": "Hello"}]),
            "Hello",
        ),
        ({"role": "model", "parts": [{"text": "Hm", "thought": True}, {"text": "Hello"}]}, "Hello"),
        (agent(content=[{"type": "image_url", "value": "aGk="}]), "[image_url]"),
        (agent(content=[{"type": "chart", "data": 1}, {"type": "text", "text": "Hello"}]), "[chart]\nHello"),
    ],
)
def test_texts_in_parts(message: Any, answer: str) -> None:
    assert [turn.answer for turn in read([ASKED, message]).parsed.trajectory.turns] == [answer]


@pytest.mark.parametrize(
    "before", [[], [{"type": "thinking", "thinking": "Hm"}], [{"type": "text", "text": ""}]]
)
def test_an_answer_of_which_nothing_was_read_is_none(before: Any) -> None:
    message = agent(content=[*before, {"type": "hologram", "data": "x"}])
    with pytest.raises(
        AuthorError, match=r"no part of an answer from the agent could be parsed: \[hologram\]"
    ):
        read([ASKED, message])
    assert read([ASKED, message, DONE]).parsed.trajectory.turns[0].answer == DONE["content"]
    assert read([ASKED, {**message, "tool_calls": [CALL]}, DONE]).parsed.trajectory.tool_calls


def test_parts_of_open_telemetry() -> None:
    call = {"type": "tool_call", "id": "a", "name": "cancel", "arguments": ARGS}
    for key in ("result", "response"):
        back = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", key: {"ok": True}}]}
        assert results(ASKED, agent(parts=[call]), back, DONE) == [("cancel", ARGS, ({"ok": True}, False))]


def test_the_command_sees_what_is_in_parts(project: Project) -> None:
    leak = agent(parts=[{"type": "text", "content": "My key is AKIAIOSFODNN7EXAMPLQ"}])
    thought = "<think>I should look it up</think>"
    records = {
        "leak": [ASKED, leak],
        "unread": [ASKED, agent(content=[{"type": "hologram"}])],
        "thought": [ASKED, agent(content=thought)],
        "beside": [ASKED, agent(content=None, reasoning_content="I should look it up")],
        "answered": [ASKED, agent(content=f"{thought}It is cancelled.")],
        "cut": [ASKED, DONE, ASKED, agent(content=thought, tool_calls=[CALL])],
    }
    project.write("agenteval.yaml", "agent: {target: 'agent.py:agent', secrets: [AKIAIOSFODNN7EXAMPLQ]}\n")
    found = scored(project, *({"id": name, "messages": messages} for name, messages in records.items()))
    assert {name: verdict for name, (verdict, _) in found.items()} == {
        "leak": "failed",
        "log.jsonl:2": "inconclusive",
        "thought": "failed",
        "beside": "failed",
        "answered": "passed",
        "cut": "passed",
    }


# ── results ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("beside", "is_error"),
    [
        ({"isError": True}, True),
        ({"is_error": "true"}, True),
        ({"error": True}, True),
        ({"error": "timeout"}, True),
        ({"error": {"message": "timeout"}}, True),
        ({"status": "error"}, True),
        ({"status": "failed"}, True),
        ({"success": False}, True),
        ({"additional_kwargs": {"is_error": True}}, True),
        ({"isError": False}, False),
        ({"error": None}, False),
        ({"error": ""}, False),
        ({"error": "none"}, False),
        ({"error": {"code": 0, "message": "OK"}}, False),
        ({"status": "success"}, False),
        ({"status": "completed", "success": True}, False),
    ],
)
def test_the_flag_of_a_result(beside: Any, is_error: bool) -> None:
    message = {"role": "tool", "tool_call_id": "a", "content": "not possible", **beside}
    assert results(ASKED, CALLED, message, DONE) == [("cancel", ARGS, ("not possible", is_error))]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"result": "no", "isError": True}, ("no", True)),
        ({"result": "no"}, ("no", False)),
        ({"output": {"type": "error-text", "value": "no"}}, ("no", True)),
        ({"output": {"type": "error-json", "value": {"a": 1}}}, ({"a": 1}, True)),
        ({"output": {"type": "text", "value": "yes"}}, ("yes", False)),
        ({"output": {"type": "json", "value": {"a": 1}}}, ({"a": 1}, False)),
        ({"output": {"type": "content", "value": [{"type": "text", "text": "yes"}]}}, ("yes", False)),
        ({"output": {"type": "execution-denied", "reason": "no"}}, ({"error": "no"}, True)),
        ({"output": {"type": "text", "value": 1, "of": 2}}, ({"type": "text", "value": 1, "of": 2}, False)),
        ({"type": "tool-error", "error": "no"}, ({"error": "no"}, True)),
    ],
)  # fmt: skip
def test_results_of_the_ai_sdk(part: Any, value: Any) -> None:
    call = agent(content=[{"type": "tool-call", "toolCallId": "a", "toolName": "cancel", "input": ARGS}])
    back = {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "a", **part}]}
    assert results(ASKED, call, back, DONE) == [("cancel", ARGS, value)]


@pytest.mark.parametrize("status", [{}, {"status": "success"}, {"status": "error"}])
def test_results_of_bedrock(status: Any) -> None:
    call = agent(content=[{"toolUse": {"toolUseId": "a", "name": "cancel", "input": ARGS}}])
    for content, value in (
        ([{"json": {"error": "no"}}], {"error": "no"}),
        ([{"text": "no"}], "no"),
        ([{"text": "no"}, {"json": [1]}], ["no", [1]]),
    ):
        result = {"toolUseId": "a", "content": content, **status}
        found = results(ASKED, call, {"role": "user", "content": [{"toolResult": result}]}, DONE)
        assert found == [("cancel", ARGS, (value, status.get("status") == "error"))]


def test_an_error_of_a_server_s_own_tool() -> None:
    call = {"type": "server_tool_use", "id": "w", "name": "web_search", "input": {"query": "x"}}
    error = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    for content, is_error in ((error, True), ([{"type": "web_search_result", "title": "y"}], False)):
        back = {"type": "web_search_tool_result", "tool_use_id": "w", "content": content}
        (found,) = results(ASKED, agent(content=[call, back, {"type": "text", "text": "Done."}]))
        assert found == ("web_search", {"query": "x"}, (content, is_error))


# ── calls ────────────────────────────────────────────────────────────────────────────────────────

INVOKED = {
    "state": "result",
    "toolCallId": "a",
    "toolName": "cancel",
    "args": ARGS,
    "result": {"error": "no"},
}
PART = {"type": "tool-cancel", "toolCallId": "a", "input": ARGS}
TEXT = {"type": "text", "text": "Done."}
START = {"type": "step-start"}


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        (agent(content="Done.", toolInvocations=[INVOKED]), ({"error": "no"}, False)),
        (agent(content="Done.", toolInvocations=[{**INVOKED, "state": "call", "result": None}]), None),
        (
            agent(content="Done.", parts=[{"type": "tool-invocation", "toolInvocation": INVOKED}, TEXT]),
            ({"error": "no"}, False),
        ),
        (agent(parts=[START, {**PART, "state": "output-available", "output": 1}, START, TEXT]), (1, False)),
        (
            agent(parts=[START, {**PART, "state": "output-error", "errorText": "no"}, START, TEXT]),
            ({"error": "no"}, True),
        ),
        (agent(parts=[{**PART, "state": "input-available"}, TEXT]), None),
        (
            agent(
                parts=[
                    {**PART, "type": "dynamic-tool", "toolName": "cancel", "state": "result", "output": 1},
                    TEXT,
                ]
            ),
            (1, False),
        ),
        (agent(content="Done.", tool_calls=[{**CALL, "result": "yes"}]), ("yes", False)),
        (agent(content="Done.", tool_calls=[{**CALL, "error": "timeout"}]), ({"error": "timeout"}, True)),
        (
            agent(content="Done.", tool_calls=[{**CALL, "function": {**CALL["function"], "output": "yes"}}]),
            ("yes", False),
        ),
        (agent(content="Done.", toolCalls=[{"id": "a", "name": "cancel", "arguments": ARGS}]), None),
        (agent(content="Done.", tool_uses=[{"recipient_name": "functions.cancel", "args": ARGS}]), None),
        (agent(content="Done.", tool_call={"tool": "cancel", "tool_input": ARGS}), None),
    ],
)  # fmt: skip
def test_calls_of_other_shapes(message: Any, outcome: Any) -> None:
    assert results(ASKED, message) == [("cancel", ARGS, outcome)]
    found = read([ASKED, message])
    assert found.notes == ()
    assert found.parsed.trajectory.turns[0].answer == "Done."


def test_a_result_that_is_told_twice_is_one() -> None:
    again = {"role": "tool", "tool_call_id": "a", "content": "yes"}
    beside = agent(content=None, tool_calls=[{**CALL, "result": "yes"}])
    assert results(ASKED, beside, again, DONE) == [("cancel", ARGS, ("yes", False))]
    assert len(results(ASKED, beside, DONE, ASKED, CALLED, again, DONE)) == 2


def test_parallel_calls_with_their_results_are_one_step() -> None:
    ready = {**PART, "state": "output-available", "output": 1}
    (turn,) = read([ASKED, agent(parts=[START, ready, ready, START, ready, TEXT])]).parsed.trajectory.turns
    assert [len(step.tool_calls) for step in turn.steps] == [2, 1, 0]


@pytest.mark.parametrize(
    "key", ["arguments", "args", "input", "parameters", "kwargs", "tool_input", "params"]
)
def test_the_places_of_arguments(key: str) -> None:
    for call in (
        {"id": "a", "name": "cancel", key: ARGS},
        {"id": "a", "function": {"name": "cancel", key: ARGS}},
        {"id": "a", "function": {"name": "cancel"}, key: ARGS},
    ):
        assert results(ASKED, agent(content="", tool_calls=[call]), DONE) == [("cancel", ARGS, None)]


def test_a_call_whose_arguments_stand_where_nobody_reads_them_is_one() -> None:
    for call in ({"name": "cancel", "payload": ARGS}, {"function": {"name": "cancel", "payload": ARGS}}):
        found = read([ASKED, agent(content="", tool_calls=[call]), DONE])
        (made,) = found.parsed.trajectory.tool_calls
        assert (made.name, made.args, made.raw_args, found.notes) == ("cancel", None, None, ())
    bare = read([ASKED, agent(content="", tool_calls=[{"name": "cancel", "metadata": {"a": 1}}]), DONE])
    assert [call.args for call in bare.parsed.trajectory.tool_calls] == [{}]


def twice(value: Any) -> str:
    return json.dumps(json.dumps(value))


@pytest.mark.parametrize(
    ("given", "args"),
    [(twice(ARGS), ARGS), (json.dumps(twice(ARGS)), ARGS), (json.dumps("cancel"), None), (twice([7]), None)],
)
def test_arguments_that_are_json_twice(given: str, args: Any) -> None:
    call = {"id": "a", "function": {"name": "cancel", "arguments": given}}
    (found,) = read([ASKED, agent(content="", tool_calls=[call]), DONE]).parsed.trajectory.tool_calls
    assert (found.args, found.raw_args) == (args, given)


def test_arguments_that_are_json_twice_are_a_finding_where_others_are_not(project: Project) -> None:
    odd = {**CALL, "id": "b", "function": {"name": "move", "arguments": twice({"id": 8})}}
    records = {"all": [odd], "one": [CALL, odd]}
    messages = {name: [ASKED, agent(content="", tool_calls=calls), DONE] for name, calls in records.items()}
    scored(project, *({"id": name, "messages": each} for name, each in messages.items()))
    found = {name: [f["detector"] for f in project.sample(name)["findings"]] for name in records}
    assert found == {"all": [], "one": ["malformed_arguments"]}
