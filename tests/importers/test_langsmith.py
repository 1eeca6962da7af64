"""Runs of LangSmith as spans: ids, threads, messages, calls, and runs that are missing."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.importers.langsmith import is_langsmith_run, outermost_in, parse_langsmith_spans

HI, HELLO = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
IN, OUT = "gen_ai.input.messages", "gen_ai.output.messages"


def run(id: str = "r", kind: str = "chain", **more: Any) -> dict[str, Any]:
    return {"id": id, "run_type": kind, "name": "step", "trace_id": "t", **more}


def inner(kind: str, **more: Any) -> dict[str, Any]:
    """A run within another."""
    return run("i", kind, parent_run_id="r", **more)


def span(value: Any) -> dict[str, Any]:
    (found,) = parse_langsmith_spans(value)
    return found


def missing(value: Any) -> list[Any]:
    return [each["unless"] for each in span(value).get("unseen", ())]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (run(), True),
        ([run(), run()], True),
        ([], False),
        ([run(), HI], False),
        (7, False),
        ({"id": "r", "run_type": "llm"}, False),  # a row of a data set
        *[
            ({"id": "r", "run_type": "llm", key: "x"}, True)
            for key in ("trace_id", "dotted_order", "parent_run_id", "parent_run_ids", "child_runs")
        ],
        ({"id": "r", "run_type": "llm", "child_runs": []}, False),
        ({"id": "r", "run_type": "llm", "trace_id": ""}, False),
        ({"id": "", "run_type": "llm", "trace_id": "t"}, False),
        ({"id": "r", "run_type": "", "trace_id": "t"}, False),
        ({"id": 7, "run_type": "llm", "trace_id": "t"}, False),
        ({"id": "r", "trace_id": "t"}, False),
    ],
)
def test_what_is_a_run(value: Any, found: bool) -> None:
    assert is_langsmith_run(value) is found


ORDER = "20260101T000000000000Ztop.20260101T000001000000Zmid.20260101T000002000000Zr"


@pytest.mark.parametrize(
    ("fields", "trace", "parent"),
    [
        ({"trace_id": "t"}, "t", ""),
        ({"trace_id": "t", "dotted_order": ORDER, "parent_run_id": "p"}, "t", "p"),
        ({"dotted_order": ORDER}, "top", "mid"),
        ({"dotted_order": ORDER.partition(".")[0]}, "top", ""),
        ({"parent_run_id": "p"}, "p", "p"),
        ({"parent_run_ids": ["top", "mid"]}, "top", "mid"),
        ({"parent_run_ids": ["top", "mid"], "parent_run_id": "p"}, "top", "p"),
        ({"child_runs": [{}]}, "r", ""),
    ],
)
def test_the_trace_and_the_parent_of_a_run(fields: dict[str, Any], trace: str, parent: str) -> None:
    found = parse_langsmith_spans({"id": "r", "run_type": "chain", **fields})[0]
    assert (found["trace_id"], found["span_id"], found["parent_id"]) == (trace, "r", parent)


def test_a_span_has_the_fields_of_its_run() -> None:
    found = span(run("r", "LLM", start_time="a", end_time="b", name="ask"))
    assert (found["name"], found["start_time"], found["end_time"]) == ("ask", "a", "b")
    assert found["attributes"]["langsmith.span.kind"] == "llm"
    assert found.keys().isdisjoint({"status", "events", "whole"})


def test_runs_in_one_another_and_in_lists() -> None:
    deep = {"run_type": "tool", "name": "find"}
    nested = run("a", child_runs=[{"id": "b", "run_type": "chain", "child_runs": [deep, deep]}, 7, deep])
    found = parse_langsmith_spans([nested, run("z")])
    assert [(each["span_id"], each["parent_id"]) for each in found] == [
        ("a", ""),
        ("b", "a"),
        ("b.0", "b"),
        ("b.1", "b"),
        ("a.2", "a"),
        ("z", ""),
    ]
    assert {each["trace_id"] for each in found} == {"t"}


def test_the_outermost_runs_of_traces() -> None:
    top, other = run("a"), run("b", trace_id="u", dotted_order=ORDER.partition(".")[0])
    within = [run("c", parent_run_id="a"), run("d", dotted_order=ORDER), run("e", parent_run_ids=["a"])]
    assert outermost_in([top, *within, other]) == {"t": top, "u": other}
    assert outermost_in(top) == {"t": top}
    assert outermost_in(within) == {}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (None, None),
        ("", None),
        ("late", "late"),
        ("late\nTraceback (most recent call last):\n  x", "late"),
        ("Traceback (most recent call last):\n  x", "error"),
        ({"code": 1}, "error"),
    ],
)
def test_the_error_of_a_run(error: Any, message: str | None) -> None:
    assert span(inner("chain", error=error)).get("status", {}).get("message") == message


@pytest.mark.parametrize(
    ("fields", "thread"),
    [
        ({}, None),
        ({"extra": {"metadata": {"thread_id": "a", "session_id": "b"}}}, "a"),
        ({"extra": {"metadata": {"session_id": "b", "conversation_id": "c"}}}, "b"),
        ({"extra": {"metadata": {"conversation_id": "c"}}}, "c"),
        ({"extra": {"metadata": {"thread_id": 7}}}, "7"),
        ({"extra": {"metadata": {"thread_id": "", "session_id": "b"}}}, "b"),
        ({"extra": {"metadata": {"thread_id": ["a"]}}}, None),
        ({"session_id": "project", "extra": {"session_id": "project"}}, None),
    ],
)
def test_the_thread_of_a_run(fields: dict[str, Any], thread: str | None) -> None:
    assert span(run(**fields))["attributes"].get("session.id") == thread


def test_events_that_say_more_than_that_a_run_goes_on() -> None:
    events = [*({"name": name} for name in ("start", "new_token", "end", "error")), {"name": "called"}, "odd"]
    assert span(run(events=events))["events"] == [{"name": "called"}, "odd"]


def test_what_else_a_run_holds_may_be_calls() -> None:
    more = {"steps": [1], "note": "x", "tags": ["a"], "serialized": {"a": 1}, "feedback_stats": {"a": 1}}
    attributes = span(inner("chain", inputs={"a": 1}, outputs={"b": 2}, **more))["attributes"]
    assert {key: value for key, value in attributes.items() if key != "langsmith.span.kind"} == {
        "langsmith.steps": [1],
        "langsmith.inputs": {"a": 1},
        "langsmith.outputs": {"b": 2},
    }


# ── messages ─────────────────────────────────────────────────────────────────────────────────────


STATES: dict[str, Any] = {"inputs": {"messages": [HI]}, "outputs": {"messages": [HI, HELLO]}}


def messages(value: Any) -> tuple[Any, Any, Any]:
    found = span(value)
    return found["attributes"].get(IN), found["attributes"].get(OUT), found.get("whole")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (run(inputs={"input": "Hi"}, outputs={"output": "Hello"}), ([HI], [HELLO], "said")),
        (run("r", "tool", inputs={"input": "Hi"}, outputs={"output": "Hello"}), (None, None, None)),
        (run("r", "parser", **STATES), ([HI], [HELLO], "said")),
        (run(inputs={"input": "Hi"}), ([HI], None, None)),
        (run(inputs={"a": 1}, outputs={"output": "Hello"}), (None, None, None)),
        (inner("chain", inputs={"input": "Hi"}, outputs={"output": "Hello"}), (None, None, None)),
        (inner("llm", inputs={"messages": [HI]}, outputs=HELLO), ([HI], [HELLO], None)),
        (run("r", "llm", inputs={"messages": [HI]}, outputs=HELLO), ([HI], [HELLO], None)),
        (inner("llm", inputs={"messages": [HI]}, outputs={"a": 1, "b": 2}), ([HI], None, None)),
        (inner("llm", inputs={"a": 1}, outputs=HELLO), (None, [HELLO], None)),
    ],
)  # fmt: skip
def test_messages_of_models_and_of_the_outermost_run(value: Any, found: Any) -> None:
    assert messages(value) == found


def test_a_state_as_the_answer_of_the_outermost_run() -> None:
    assert span(run(inputs={"input": "Hi"}, outputs={"a": 1, "b": 2}))["whole"] == "object"


def test_the_request_of_a_model() -> None:
    extra = {"invocation_params": {"tools": [{"name": "find"}]}}
    asked = {"messages": [HI], "system": "x"}
    attributes = span(inner("llm", inputs=asked, outputs=HELLO, extra=extra))["attributes"]
    assert attributes["gen_ai.tool.definitions"] == [{"name": "find"}]
    assert attributes["gen_ai.system_instructions"] == "x"


@pytest.mark.parametrize(
    ("inputs", "outputs", "is_lost"),
    [
        ({"messages": [HI]}, HELLO, False),
        ({"messages": [HI]}, None, False),
        (None, HELLO, False),
        ({}, {}, False),
        ({"a": 1}, HELLO, True),
        ({"messages": [HI]}, {"a": 1, "b": 2}, True),
    ],
)
def test_messages_of_a_model_in_an_unknown_form(inputs: Any, outputs: Any, is_lost: bool) -> None:
    assert missing(inner("llm", inputs=inputs, outputs=outputs)) == [["r"], *([[""]] if is_lost else [])]


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


RESULT = {"type": "tool", "content": "7", "tool_call_id": "c"}


@pytest.mark.parametrize(
    ("fields", "id", "arguments", "result"),
    [
        ({"inputs": {"city": "Bonn"}, "outputs": {"output": "7"}}, None, {"city": "Bonn"}, "7"),
        ({"inputs": {"input": "{'a': 'b'}"}, "outputs": {"output": {"a": 1}}}, None, {"a": "b"}, {"a": 1}),
        ({"inputs": {"input": "Bonn"}, "outputs": {"a": 1}}, None, {"input": "Bonn"}, {"a": 1}),
        ({"inputs": {}, "outputs": {}}, None, {}, None),
        ({"inputs": {}, "outputs": "7"}, None, {}, "7"),
        ({"inputs": {}, "outputs": {"output": "7", "b": 1}}, None, {}, {"output": "7", "b": 1}),
        ({"inputs": {}, "outputs": {"output": RESULT}}, "c", {}, "7"),
        ({"inputs": {}, "outputs": {"output": RESULT}, "extra": {"tool_call_id": "d"}}, "d", {}, "7"),
        ({"inputs": {}, "outputs": {"output": "7"}, "extra": {"tool_call_id": "d"}}, "d", {}, "7"),
    ],
)  # fmt: skip
def test_a_call_with_its_result(fields: Any, id: Any, arguments: Any, result: Any) -> None:
    attributes = span(inner("tool", **fields))["attributes"]
    assert attributes["gen_ai.tool.name"] == "step"
    assert attributes.get("gen_ai.tool.call.id") == id
    assert attributes.get("gen_ai.tool.call.arguments") == arguments
    assert attributes.get("gen_ai.tool.call.result") == result


@pytest.mark.parametrize(("error", "message"), [(None, "bad"), ("late", "late")])
def test_a_call_that_failed(error: Any, message: str) -> None:
    output = {"type": "tool", "content": "bad", "tool_call_id": "c", "status": "error"}
    assert span(inner("tool", outputs={"output": output}, error=error))["status"]["message"] == message


# ── runs that are missing ────────────────────────────────────────────────────────────────────────

CALLED = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "find", "args": {}}]}
ASKED: dict[str, Any] = {"inputs": {"messages": [HI]}}


@pytest.mark.parametrize(
    ("value", "unless"),
    [
        (run(), [None]),
        (run(child_run_ids=[]), []),
        (run(direct_child_run_ids=[]), []),
        (run(child_run_ids=["a", 7]), [["a", "7"], None]),
        (run(child_run_ids=["a"], direct_child_run_ids=["b"]), [["a", "b"], None]),
        (inner("chain"), [["r"]]),
        (inner("chain", child_run_ids=["a"]), [["r"], ["a"]]),
        (run(**ASKED, outputs={"messages": [HI, HELLO]}), [None]),
        (run(**ASKED, outputs={"messages": [HI, CALLED, HELLO]}), []),
        (run(**ASKED, outputs={"messages": [HI, {"role": "tool", "content": "7"}, HELLO]}), []),
    ],
)
def test_runs_to_which_a_run_refers(value: Any, unless: list[Any]) -> None:
    assert missing(value) == unless


@pytest.mark.parametrize("value", [run(name="n" * 50, child_run_ids=["a"]), inner("llm", name="n" * 50)])
def test_the_beginning_of_a_runs_name_is_told(value: Any) -> None:
    whats = [each["what"] for each in span({**value, "inputs": {"a": 1}})["unseen"]]
    assert len(whats) == 2
    assert all(f"'{'n' * 40}'" in what for what in whats)
