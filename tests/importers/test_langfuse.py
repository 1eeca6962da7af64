"""Langfuse's traces and observations as spans, and what the observations show of one another."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.importers.langfuse import (
    complete_spans,
    fields_of,
    is_langfuse_record,
    is_trace,
    parse_langfuse_spans,
)

HI, HELLO = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
IN, OUT = "gen_ai.input.messages", "gen_ai.output.messages"
KIND = "langfuse.observation.type"
CALLS = [{"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}}]
CALLED = {"role": "assistant", "content": None, "tool_calls": CALLS}


def seen(id: str = "o", kind: str = "SPAN", parent: str = "", **more: Any) -> dict[str, Any]:
    """An observation."""
    outer = {"parentObservationId": parent} if parent else {}
    return {"id": id, "traceId": "t", "type": kind, "name": id, **outer, **more}


def trace(*observations: Any, **more: Any) -> dict[str, Any]:
    return {"id": "t", "observations": [*observations], **more}


def spans(value: Any) -> dict[str, dict[str, Any]]:
    """The spans of a record, completed, by their ids."""
    return {each["span_id"]: each for each in complete_spans(parse_langfuse_spans(value))}


def kinds(value: Any) -> dict[str, str]:
    return {id: each["attributes"][KIND] for id, each in spans(value).items()}


LISTED = {"id": "t", "input": "Hi", "output": "Hello", "htmlPath": "/x"}


@pytest.mark.parametrize(
    ("value", "record", "is_whole"),
    [
        (7, False, False),
        ([], False, False),
        ({}, False, False),
        (trace(seen()), True, True),
        (trace({"odd": 1}), False, False),
        (trace({"odd": 1}, seen()), False, False),
        (trace(), False, False),
        (trace("o"), False, False),
        (trace(seen(), "o"), False, False),
        (LISTED, True, True),
        ({**LISTED, "observations": ["o1", "o2"]}, True, True),
        ({**LISTED, "observations": [], "bookmarked": False}, True, True),
        ({**LISTED, "observations": "o1"}, False, False),
        ({**LISTED, "observations": [1]}, False, False),
        ({**LISTED, "messages": []}, False, False),
        ({"id": "t", "input": "Hi", "output": "Hello"}, False, False),
        ({"id": "t", "input": "Hi", "htmlPath": "/x"}, False, False),
        (seen(), True, False),
        ([seen(), seen()], True, False),
        ([seen(), 7], False, False),
        ({"trace_id": "t", "type": "generation"}, True, False),
        ({"trace_id": "t", "type": "odd"}, False, False),
        ({"trace_id": "", "type": "SPAN"}, False, False),
        ({"type": "SPAN"}, False, False),
        *[
            (seen(kind=kind), True, False)
            for kind in (
                "EVENT",
                "TOOL",
                "AGENT",
                "CHAIN",
                "RETRIEVER",
                "EMBEDDING",
                "EVALUATOR",
                "GUARDRAIL",
            )
        ],
    ],
)
def test_what_is_a_record_of_langfuse(value: Any, record: bool, is_whole: bool) -> None:
    assert (is_langfuse_record(value), is_trace(value)) == (record, is_whole)


def test_the_fields_of_a_trace_itself() -> None:
    assert fields_of(
        {**trace(seen(), input=1, output=2, scores=[], metadata={}, tags=[]), "name": "x", "sessionId": "s"}
    ) == {"id": "t", "name": "x", "sessionId": "s"}


# ── a trace ──────────────────────────────────────────────────────────────────────────────────────


def test_a_trace_encloses_its_observations() -> None:
    value = trace(
        seen("a", startTime="2026-01-02"),
        seen("b", parent="a", startTime="2026-01-01"),
        seen("c", parent="gone"),
        name="chat",
        sessionId="s",
        input="Hi",
        output="Hello",
        timestamp="2026-01-03",
        metadata={"a": 1},
    )
    found = spans(value)
    root = found.pop("trace t")
    assert {id: each["parent_id"] for id, each in found.items()} == {"a": "trace t", "b": "a", "c": "trace t"}
    assert all("unseen" not in each for each in found.values())
    assert {each["trace_id"] for each in (root, *found.values())} == {"t"}
    assert (root["parent_id"], root["name"], root["start_time"], root["whole"]) == (
        "",
        "chat",
        "2026-01-01",
        "said",
    )
    attributes = root["attributes"]
    assert (attributes[IN], attributes[OUT], attributes[KIND]) == ([HI], [HELLO], "chain")
    assert attributes["session.id"] == "s"
    assert attributes["langfuse.trace.metadata"] == {"a": 1}
    assert (attributes["langfuse.observation.input"], attributes["langfuse.observation.output"]) == (
        "Hi",
        "Hello",
    )
    assert "unseen" not in root


def test_a_trace_without_an_id_or_times() -> None:
    found = spans({"observations": [seen("a", traceId="u"), seen("b", traceId="u")]})
    assert list(found) == ["trace u", "a", "b"]
    assert found["trace u"]["start_time"] is None
    assert IN not in found["trace u"]["attributes"]
    assert spans(trace({"id": "a", "type": "SPAN"}))["a"]["trace_id"] == "t"


def test_an_answer_without_a_request_is_nobodys() -> None:
    attributes = spans(trace(seen(), output="Hello"))["trace t"]["attributes"]
    assert (IN in attributes, OUT in attributes) == (False, False)


@pytest.mark.parametrize(("more", "unless"), [({}, None), ({"observations": ["a", "b"]}, ["a", "b"])])
def test_a_trace_without_its_observations(more: dict[str, Any], unless: Any) -> None:
    (found,) = spans({**LISTED, **more}).values()
    assert [each["unless"] for each in found["unseen"]] == [unless]
    assert found["whole"] == "said"


# ── observations ─────────────────────────────────────────────────────────────────────────────────


def test_an_observation_has_its_fields_in_either_spelling() -> None:
    fields = {"startTime": "a", "endTime": "b", "sessionId": "s", "level": "ERROR", "statusMessage": "late"}
    snake = {
        "start_time": "a",
        "end_time": "b",
        "session_id": "s",
        "level": "error",
        "status_message": "late",
    }
    for more in (fields, snake):
        (found,) = parse_langfuse_spans(seen(kind="CHAIN", **more))
        assert (found["start_time"], found["end_time"]) == ("a", "b")
        assert (found["attributes"]["session.id"], found["status"]["message"]) == ("s", "late")
    other = {"id": "o", "trace_id": "t", "type": "chain", "parent_observation_id": "p"}
    assert parse_langfuse_spans(other)[0]["parent_id"] == "p"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, None),
        ({"statusMessage": "fine"}, None),
        ({"level": "WARNING", "statusMessage": "odd"}, None),
        ({"level": "ERROR"}, "error"),
    ],
)
def test_the_error_of_an_observation(fields: dict[str, Any], message: Any) -> None:
    assert parse_langfuse_spans(seen(**fields))[0].get("status", {}).get("message") == message


def test_observations_by_themselves_belong_to_their_trace() -> None:
    a, b, c = parse_langfuse_spans([seen("a"), seen("b", parent="a"), seen("", startTime="s", name="n")])
    assert [each["parent_id"] for each in (a, b, c)] == ["trace t", "a", "trace t"]
    assert c["span_id"] == "t.s.n"
    assert "unseen" not in a
    assert [each["unless"] for each in b["unseen"]] == [["a"]]


def test_what_else_an_observation_holds() -> None:
    value = seen(
        kind="CHAIN", input='{"a": 1}', output="x", usage={"a": 1}, tags=["a"], metadata={"b": 1}, note="n"
    )
    attributes = parse_langfuse_spans(value)[0]["attributes"]
    assert attributes == {
        KIND: "chain",
        "langfuse.metadata": {"b": 1},
        "langfuse.observation.input": {"a": 1},
        "langfuse.observation.output": "x",
    }


@pytest.mark.parametrize(
    ("output", "id", "result", "error"),
    [
        ("7", None, "7", None),
        ('{"a": 1}', None, {"a": 1}, None),
        ({"type": "tool", "content": "7", "tool_call_id": "c"}, "c", "7", None),
        ({"type": "tool", "content": "7", "tool_call_id": "c", "status": "error"}, "c", "7", "7"),
        (None, None, None, None),
    ],
)
def test_a_tool_is_a_call_with_its_result(output: Any, id: Any, result: Any, error: Any) -> None:
    (found,) = parse_langfuse_spans(seen("find", "TOOL", input='{"city": "Bonn"}', output=output))
    attributes = found["attributes"]
    assert attributes["gen_ai.tool.name"] == "find"
    assert attributes["gen_ai.tool.call.arguments"] == {"city": "Bonn"}
    assert attributes.get("gen_ai.tool.call.id") == id
    assert attributes.get("gen_ai.tool.call.result") == result
    assert found.get("status", {}).get("message") == error


FINE: dict[str, Any] = {"type": "tool", "content": "7", "tool_call_id": "c"}


@pytest.mark.parametrize(
    ("fields", "output", "error"),
    [
        ({"level": "ERROR", "statusMessage": "card declined"}, FINE, "card declined"),
        ({"level": "error", "status_message": "card declined"}, "7", "card declined"),
        ({"level": "ERROR"}, {"a": 1}, "error"),
        ({"level": "ERROR"}, None, "error"),
        ({"level": "ERROR", "statusMessage": "declined"}, {**FINE, "status": "error"}, "declined"),
        ({"level": "WARNING", "statusMessage": "slow"}, {**FINE, "status": "error"}, "7"),
        ({"level": "WARNING", "statusMessage": "slow"}, FINE, None),
        ({"level": "DEFAULT", "statusMessage": "fine"}, "7", None),
        ({"statusMessage": "fine"}, {"a": 1}, None),
    ],
)
def test_a_tool_failed_by_its_level_or_its_result(fields: dict[str, Any], output: Any, error: Any) -> None:
    for value in (
        seen("find", "TOOL", output=output, **fields),
        trace(seen("find", "TOOL", output=output, **fields)),
    ):
        assert spans(value)["find"].get("status", {}).get("message") == error


@pytest.mark.parametrize("key", ["model", "provided_model_name", "providedModelName"])
def test_a_generation_is_a_models_answer(key: str) -> None:
    asked = json.dumps({"messages": [HI], "tools": [{"name": "find"}]})
    attributes = parse_langfuse_spans(seen(kind="GENERATION", input=asked, output=HELLO, **{key: "m"}))[0][
        "attributes"
    ]
    assert (attributes[IN], attributes[OUT]) == ([HI], [HELLO])
    assert attributes["gen_ai.request.model"] == "m"
    assert attributes["gen_ai.tool.definitions"] == [{"name": "find"}]
    assert "gen_ai.tool.name" not in attributes


@pytest.mark.parametrize("kind", ["SPAN", "AGENT", "RETRIEVER", "EVALUATOR"])
def test_other_observations_have_no_messages_of_their_own(kind: str) -> None:
    attributes = parse_langfuse_spans(seen(kind=kind, input="Hi", output="Hello"))[0]["attributes"]
    assert (IN in attributes, OUT in attributes) == (False, False)


# ── what observations show of one another ────────────────────────────────────────────────────────

ASKS: dict[str, Any] = {"input": [HI], "output": CALLED}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (trace(seen("x")), {"x": "span"}),
        (trace(seen("x"), seen("y", parent="x")), {"x": "chain", "y": "span"}),
        (trace(seen("x", "EVENT"), seen("y", "EVENT", parent="x")), {"x": "chain", "y": "event"}),
        (trace(seen("find"), seen("g", "GENERATION", **ASKS)), {"find": "tool", "g": "generation"}),
        (trace(seen("find", "EVENT"), seen("g", "GENERATION", **ASKS)), {"find": "tool", "g": "generation"}),
        (trace(seen("other"), seen("g", "GENERATION", **ASKS)), {"other": "span", "g": "generation"}),
        (
            trace(seen("find"), seen("y", parent="find"), seen("g", "GENERATION", **ASKS)),
            {"find": "chain", "y": "span", "g": "generation"},
        ),
        (trace(seen("find", "AGENT"), seen("g", "GENERATION", **ASKS)), {"find": "agent", "g": "generation"}),
        ([seen("find"), seen("g", "GENERATION", **ASKS)], {"find": "tool", "g": "generation"}),
        ([seen("find"), seen("g", "GENERATION", **ASKS, traceId="u")], {"find": "span", "g": "generation"}),
    ],
)  # fmt: skip
def test_untyped_observations_get_a_kind(value: Any, found: dict[str, str]) -> None:
    assert {id: kind for id, kind in kinds(value).items() if not id.startswith("trace")} == found


def whole(value: Any) -> list[str]:
    """The spans that are the user's request with its answer."""
    return [id for id, each in spans(value).items() if each.get("whole")]


TALK: dict[str, Any] = {"input": "Hi", "output": "Hello"}
INNER = seen("m", "GENERATION", "x", **TALK)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (trace(seen("x", "AGENT", **TALK), INNER), ["x"]),
        (trace(seen("x", "CHAIN", **TALK), INNER), ["x"]),
        (trace(seen("x", "SPAN", **TALK), INNER), ["x"]),
        (trace(seen("x", "TOOL", **TALK), INNER), []),
        (trace(seen("x", "AGENT", **TALK)), []),
        (trace(seen("x", "AGENT", input="Hi"), INNER), []),
        (trace(seen("x", "AGENT", **TALK), INNER, seen("y")), []),
        (trace(seen("x", "AGENT", **TALK), INNER, **TALK), ["trace t"]),
        ([seen("x", "AGENT", **TALK), INNER], ["x"]),
        ([seen("x", "AGENT", "gone", **TALK), INNER], ["x"]),
    ],
)
def test_the_observation_around_all_others_is_what_was_said(value: Any, found: list[str]) -> None:
    assert whole(value) == found
    for id in found:
        attributes = spans(value)[id]["attributes"]
        assert (attributes[IN], attributes[OUT]) == ([HI], [HELLO])


def test_spans_of_others_stay_as_they_are() -> None:
    others: list[Any] = [
        {"trace_id": "t", "span_id": "a", "attributes": {"x": 1}},
        {"traceId": "t", "spanId": "b", "attributes": {KIND: "span"}},
        {"trace_id": "t", "span_id": "c", "attributes": []},
    ]
    assert all(one is other for one, other in zip(complete_spans(others), others, strict=True))
