"""What came back to logged requests: errors, streams, cut replies, answers beside the messages."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.core.errors import AuthorError
from agenteval.core.trajectory import StopReason
from agenteval.importers.identity import Naming
from agenteval.importers.records import ImportedConversation
from tests.support.kit import Project
from tests.support.recorded import read

ASKED = {"role": "user", "content": "Where is order ORD-42?"}
ANSWER = {"role": "assistant", "content": "It has been shipped."}
HISTORY = [ASKED, ANSWER, {"role": "user", "content": "And ORD-43?"}]
KEY = "sk-proj-aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA2b4"


def answered(response: Any, messages: Any = HISTORY) -> ImportedConversation:
    return read({"id": "q", "request": {"messages": messages}, "response": response})


def last_of(found: ImportedConversation) -> tuple[str, list[tuple[str, Any]]]:
    turn = found.parsed.trajectory.all_turns[-1]
    return "".join(step.text or "" for step in turn.steps), [
        (call.name, call.args) for call in turn.tool_calls
    ]


# ── errors ───────────────────────────────────────────────────────────────────────────────────────

ERRORS = {
    "object": ({"error": {"message": "boom", "code": 500}}, "the response is an error: boom (500)"),
    "text": ('{"error": {"message": "boom"}}', "the response is an error: boom"),
    "status": ({"status": 500, "body": "Internal"}, "the response is an error: status 500"),
    "status and body": (
        {"status_code": "502", "body": {"error": {"message": "boom"}}},
        "the response is an error: status 502, boom",
    ),
    "body alone": ({"body": '{"error": "boom"}'}, "the response is an error: boom"),
    "items": ({"status": "failed", "error": None, "output": []}, "the response is an error: it failed"),
    "choice": (
        {"choices": [{"error": {"message": "boom"}, "message": {"role": "assistant", "content": ""}}]},
        "the response is an error: boom",
    ),
    "stream": ('data: {"error": {"message": "boom"}}\n\n', "the response is an error: boom"),
    "nothing": (None, "the request got no response"),
    "empty": ("", "the request got no response"),
    "empty object": ({}, "the request got no response"),
}


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("messages", [HISTORY, HISTORY[-1:]])
def test_a_request_that_was_not_answered_is_lost(name: str, messages: Any) -> None:
    response, why = ERRORS[name]
    found = answered(response, messages)
    assert found.lost == why
    assert len(found.parsed.trajectory.turns) == len(messages) // 2
    unfinished = found.parsed.trajectory.unfinished
    assert unfinished is not None
    assert (unfinished.user, unfinished.error) == ("And ORD-43?", why)
    stop = Naming().name_conversation(found, "log.jsonl:3").trajectory.stop
    assert stop is not None
    assert (stop.reason, stop.detail) == (StopReason.INFRASTRUCTURE, f"log.jsonl:3: {why}")


def test_an_answer_that_the_request_already_has_is_not_lost() -> None:
    found = answered(None, [*HISTORY, ANSWER])
    assert (found.lost, found.parsed.trajectory.unfinished) == ("", None)


@pytest.mark.parametrize(
    ("beside", "why"),
    [
        ({"error": {"message": "boom"}}, "the record reports an error: boom"),
        ({"error": "boom"}, "the record reports an error: boom"),
        ({"error": None}, ""),
    ],
)
def test_an_error_beside_messages_that_have_no_answer(beside: Any, why: str) -> None:
    assert read({"messages": HISTORY, **beside}).lost == why
    assert read({"messages": [*HISTORY, ANSWER], **beside}).lost == ""


def test_a_status_beside_the_response_counts_where_it_holds_no_message() -> None:
    record = {"request": {"messages": HISTORY}, "status_code": 503}
    assert (
        read({**record, "response": "Service Unavailable"}).lost == "the record reports an error: status 503"
    )
    assert read(record).lost == "the record reports an error: status 503"
    assert read({**record, "response": {"choices": [{"message": ANSWER}]}}).lost == ""


def test_a_request_alone_is_told_and_not_lost() -> None:
    found = read({"request": {"messages": HISTORY}})
    assert found.notes == ("a request has no response, so the conversation ends with it",)
    assert found.lost == ""


def test_a_response_of_an_unknown_kind_is_no_answer() -> None:
    with pytest.raises(AuthorError, match="contains no known message"):
        answered({"choices": []})


def test_a_hundred_errors_are_inconclusive(project: Project) -> None:
    pair = {"request": {"messages": HISTORY}, "response": {"error": {"message": "boom", "code": 500}}}
    project.write("log.jsonl", "".join(json.dumps({"id": f"q{n}", **pair}) + "\n" for n in range(100)))

    done = project.call("score", "log.jsonl", "--report", "json=results.json")

    assert done.code == 3, done.all
    samples = [scenario["samples"][0] for scenario in project.results()["scenarios"]]
    assert {(sample["verdict"], sample["fault"]) for sample in samples} == {
        ("inconclusive", "infrastructure")
    }
    assert "log.jsonl:1: the response is an error: boom (500)" in " ".join(done.out.split())
    assert "to decide:   use records in which the agent answers" in done.out


def test_an_error_is_tolerated_as_other_losses_are(project: Project) -> None:
    lost = {"id": "lost", "request": {"messages": HISTORY}, "response": {"error": "boom"}}
    project.write("log.jsonl", f"{json.dumps(lost)}\n{json.dumps({'messages': [ASKED, ANSWER]})}\n")
    assert project.call("score", "log.jsonl").code == 0  # reported, with 1 conversation not decided
    project.write("agenteval.yaml", "fail_on_severity: critical\n")
    assert project.call("score", "log.jsonl").code == 3
    project.write("agenteval.yaml", "fail_on_severity: critical\nfault_tolerance: 0.5\n")
    assert project.call("score", "log.jsonl").code == 0


def test_a_fault_of_a_run_is_repeated_by_a_run(project: Project) -> None:
    project.config("agent: {name: bot, endpoint: 'http://127.0.0.1:9/v1'}\nmetrics: []\n", target="")
    project.scenarios("{id: s, turns: [Hi], checks: none}\n")
    done = project.run("-v")
    assert done.code == 3, done.all
    assert "repeat: agenteval run scenarios/suite.yaml -s s" in done.out
    again = project.call("score", "latest", "-v")
    assert again.code == 3, again.all
    assert "repeat: agenteval run scenarios/suite.yaml -s s" in again.out


# ── streams ──────────────────────────────────────────────────────────────────────────────────────


def events(*payloads: Any, done: bool = False) -> str:
    texts = [*map(json.dumps, payloads), *(["[DONE]"] if done else [])]
    return "".join(f"data: {text}\n\n" for text in texts)


def delta(**fields: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": fields}]}


END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
CALL = {"index": 0, "id": "a", "function": {"name": "get_order", "arguments": '{"id": '}}
REST = {"index": 0, "function": {"arguments": '"ORD-43"}'}}
CHUNKS = [delta(role="assistant", content="I will "), delta(content="look."), delta(tool_calls=[CALL])]
MESSAGE_EVENTS = [
    {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I will "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "look."}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "a", "name": "get_order", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"id":'},
    },
    {"type": "content_block_delta", "index": 1, "delta": {"partial_json": ' "ORD-43"}'}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]
ITEMS = [
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I will look."}]},
    {"type": "function_call", "call_id": "a", "name": "get_order", "arguments": '{"id": "ORD-43"}'},
]
PARTS = [
    {"text": "I wi"},
    {"text": "ll look."},
    {"functionCall": {"name": "get_order", "args": {"id": "ORD-43"}}},
]
PIECES = [{"candidates": [{"content": {"parts": [part]}}]} for part in PARTS]
STREAMS = {
    "chat": events(*CHUNKS, delta(tool_calls=[REST]), done=True),
    "chat without blank lines": events(*CHUNKS, delta(tool_calls=[REST]), END).replace("\n\n", "\n"),
    "chat in a body": {"status": 200, "body": events(*CHUNKS, delta(tool_calls=[REST]), END)},
    "chunks": [*CHUNKS, delta(tool_calls=[REST]), END],
    "anthropic": "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in MESSAGE_EVENTS),
    "anthropic events": MESSAGE_EVENTS,
    "items": "event: response.created\n"
    + events(
        {"type": "response.created", "response": {"output": []}},
        {"type": "response.completed", "response": {"status": "completed", "output": ITEMS}},
    ),
    "google": [*PIECES, {"candidates": [{"finishReason": "STOP"}]}],
    "google events": events(*PIECES, {"candidates": [{"finishReason": "STOP"}]}),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_put_together(name: str) -> None:
    found = answered(STREAMS[name])
    assert last_of(found) == ("I will look.", [("get_order", {"id": "ORD-43"})])
    assert (found.notes, found.lost) == ((), "")


@pytest.mark.parametrize(
    "response",
    [
        events(*CHUNKS),
        CHUNKS,
        events(*MESSAGE_EVENTS[:-1]),
        events({"type": "response.created", "response": {"output": []}}),
        PIECES,
        events({"what": "is this"}, done=True),
        events(delta(content=5), END),
        events(delta(tool_calls=[7]), END),
        'data: {"choices": [\n\ndata: [DONE]\n\n',
        events({"choices": [{"text": "an old interface"}]}, done=True),
    ],
)
def test_a_stream_that_is_not_whole_is_no_answer(response: Any) -> None:
    with pytest.raises(AuthorError, match="the response"):
        answered(response)
    assert answered(response, [*HISTORY, ANSWER]).lost == ""


@pytest.mark.parametrize(
    "text", ["data: it was shipped", "id: 7\nstatus: shipped", '{"a": 1}\nand so on', ": )"]
)
def test_an_answer_that_resembles_a_stream_is_an_answer(text: str) -> None:
    assert last_of(answered(text))[0] == text


KEYS = (
    *("choices", "delta", "message", "content", "role", "type", "index", "tool_calls", "function", "id"),
    *("name", "arguments", "error", "status", "output", "candidates", "parts", "text", "done", "response"),
    *("content_block", "finish_reason", "body", "code", "action", "item", "result"),
)
KINDS = (
    *("message_start", "content_block_start", "content_block_delta", "message_stop", "response.completed"),
    *("mcp_call", "web_search_call", "custom", "assistant", "user", "failed", "stop"),
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 600) | st.sampled_from(KINDS) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=15,
)
LISTS = st.lists(st.dictionaries(st.sampled_from(KEYS), ODD, max_size=4), max_size=4)


@settings(max_examples=400)
@given(response=ODD | LISTS, streamed=st.booleans())
def test_whatever_came_back_is_read_or_refused(response: Any, streamed: bool) -> None:
    given_ = events(*response) if streamed and isinstance(response, list) else response
    for messages in (HISTORY, [*HISTORY, ANSWER]):
        for record in (
            {"request": {"messages": messages}, "response": given_},
            {"input": messages, "output": given_},
        ):
            with suppress(AuthorError):
                assert read(record).parsed.trajectory.all_turns


# ── cut replies, several choices ─────────────────────────────────────────────────────────────────

CUT = "a reply was cut off at its token limit, so the rest of it is unknown"


@pytest.mark.parametrize(
    "response",
    [
        {"choices": [{"message": ANSWER, "finish_reason": "length"}]},
        {"status": "incomplete", "output": [ANSWER]},
        {**ANSWER, "stop_reason": "max_tokens"},
        {"candidates": [{"content": {"parts": [{"text": "It"}]}, "finishReason": "MAX_TOKENS"}]},
        events(delta(content="It"), {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}),
    ],
)
def test_a_reply_that_was_cut_off_is_told(response: Any) -> None:
    assert answered(response).notes == (CUT,)


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (
            {"choices": [{"message": ANSWER, "finish_reason": "content_filter"}]},
            "by the provider's content filter",
        ),
        ({"candidates": [{"content": {"parts": [{"text": "It"}]}, "finishReason": "SAFETY"}]}, "filter"),
        ({"choices": [{"message": ANSWER, "finish_reason": "error"}]}, "ended with an error"),
    ],
)
def test_a_reply_that_a_filter_or_an_error_ended_is_reported(end: Any, why: str) -> None:
    (note,) = answered(end).notes
    assert why in note


def test_cut_replies_are_counted(project: Project) -> None:
    cut = {
        "request": {"messages": HISTORY},
        "response": {"choices": [{"message": ANSWER, "finish_reason": "length"}]},
    }
    project.write("log.jsonl", "".join(json.dumps({"id": f"q{n}", **cut}) + "\n" for n in range(3)))
    done = project.call("score", "log.jsonl")
    assert f"{CUT} (log.jsonl:1, and in 2 more)" in " ".join(done.all.split())


def test_further_choices_are_told() -> None:
    found = answered({"choices": [{"message": ANSWER}, {"message": {"role": "assistant", "content": KEY}}]})
    assert last_of(found)[0] == ANSWER["content"]
    assert found.notes == ("a response has several choices, and only the first was used",)


# ── an answer beside the messages ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["output", "completion", "answer", "response"])
@pytest.mark.parametrize(
    "value", [KEY, {"role": "assistant", "content": KEY}, [{"role": "assistant", "content": KEY}]]
)
def test_an_answer_beside_messages_that_have_none(name: str, value: Any) -> None:
    found = read({"messages": HISTORY, name: value})
    assert last_of(found)[0] == KEY
    assert (found.notes, found.lost) == ((), "")


@pytest.mark.parametrize("name", ["output", "completion", "answer", "response"])
def test_one_beside_messages_that_have_it_is_told_if_it_is_another(name: str) -> None:
    messages = [*HISTORY, ANSWER]
    other = read({"messages": messages, name: "Something else."})
    assert last_of(other)[0] == ANSWER["content"]
    assert other.notes == (f"'{name}' next to the messages is not an answer to them and was ignored",)
    for same in (ANSWER["content"], None, ""):
        assert read({"messages": messages, name: same}).notes == ()


def test_what_is_no_answer_is_told() -> None:
    found = read({"messages": HISTORY, "output": {"score": 3}})
    assert found.notes == ("'output' next to the messages is not an answer to them and was ignored",)


def test_a_key_in_an_answer_beside_the_messages_is_found(project: Project) -> None:
    record = {"id": "io", "messages": HISTORY, "completion": f"Sure, the key is {KEY} enjoy"}
    project.write("log.jsonl", json.dumps(record) + "\n")
    project.write("agenteval.yaml", f"agent: {{target: 'agent.py:agent', secrets: [{KEY}]}}\n")
    done = project.call("score", "log.jsonl", "--max-rate", "critical=0", "--report", "json=results.json")
    assert done.code == 1, done.all
    (sample,) = project.results()["scenarios"][0]["samples"]
    assert [(f["detector"], f["turn"]) for f in sample["findings"]] == [("leak", 1)]
