"""One span, whichever tracer wrote it: ids, times, attributes, events and errors."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.importers.spans import (
    CHOICE,
    ROLES_OF_EVENTS,
    Span,
    id_of,
    is_message_event,
    is_span,
    parent_of,
    trace_of,
)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, False),
        ([], False),
        ({}, False),
        ({"attributes": {}}, False),
        ({"attributes": {}, "name": "x"}, False),
        ({"attributes": {}, "span_id": "a"}, True),
        ({"attributes": [], "traceId": "a"}, True),
        ({"attributes": {}, "context": {}}, True),
        ({"attributes": {}, "parentSpanId": "a"}, True),
        ({"attributes": {}, "startTimeUnixNano": "1"}, True),
        ({"attributes": "x", "span_id": "a"}, False),
        ({"attributes": None, "span_id": "a"}, False),
        ({"name": "x", "spanId": "a", "traceId": "t", "startTimeUnixNano": "1"}, True),
        ({"name": "x", "span_id": "a", "trace_id": "t", "start_time": 1}, True),
        ({"spanId": "a", "traceId": "t", "startTimeUnixNano": "1"}, False),
        ({"name": "x", "traceId": "t", "startTimeUnixNano": "1"}, False),
        ({"name": "x", "spanId": "a", "startTimeUnixNano": "1"}, False),
        ({"name": "x", "spanId": "a", "traceId": "t"}, False),
    ],
)
def test_what_is_a_span(value: Any, found: bool) -> None:
    assert is_span(value) is found


@pytest.mark.parametrize(
    ("raw", "trace", "identity", "parent"),
    [
        ({}, "", "", ""),
        ({"trace_id": "t", "span_id": "s", "parent_id": "p"}, "t", "s", "p"),
        ({"traceId": "t", "spanId": "s", "parentSpanId": "p"}, "t", "s", "p"),
        ({"context": {"trace_id": "t", "span_id": "s"}, "parent_span_id": "p"}, "t", "s", "p"),
        ({"trace_id": "t", "context": {"trace_id": "u"}}, "t", "", ""),
        ({"trace_id": "", "context": {"trace_id": "u"}}, "u", "", ""),
        ({"trace_id": 7, "span_id": 8, "parentId": 9}, "7", "8", "9"),
        ({"parent": {"span_id": "p"}, "parent_id": "q"}, "", "", "p"),
        ({"parent": None, "parent_id": None}, "", "", ""),
        ({"parent": "x", "parent_id": "q"}, "", "", "q"),
    ],
)
def test_ids(raw: dict[str, Any], trace: str, identity: str, parent: str) -> None:
    assert (trace_of(raw), id_of(raw), parent_of(raw)) == (trace, identity, parent)
    span = Span(raw)
    assert (span.trace, span.id, span.parent) == (trace, identity, parent)


@pytest.mark.parametrize(
    ("raw", "start", "end"),
    [
        ({}, None, None),
        ({"start_time": 1, "end_time": 2}, 1, 2),
        ({"startTimeUnixNano": "1", "endTimeUnixNano": "2"}, 1, 2),
        ({"start_time_unix_nano": 1, "end_time_unix_nano": 2}, 1, 2),
        ({"startTime": 1, "endTime": 2}, 1, 2),
        ({"start_time": "1970-01-01T00:00:01Z", "end_time": "1970-01-01T01:00:01.5+01:00"}, 1e9, 1.5e9),
        ({"start_time": "soon", "end_time": {}}, None, None),
        ({"start_time": 0, "end_time": 2}, 0, 2),
        ({"startTime": 0.0}, 0, None),
        ({"start_time": 0, "startTime": 5}, 5, None),
        ({"startTimeUnixNano": 0, "endTimeUnixNano": 0}, None, None),  # not set
        ({"start_time": 1.25, "end_time": "1.75"}, 1.25, 1.75),
        ({"start_time": 2.0, "end_time": "1e3"}, 2, 1000),
        (
            {"start_time": 1700000000000000001, "end_time": "1700000000000000003"},
            17 * 10**17 + 1,
            17 * 10**17 + 3,
        ),
        ({"start_time": "9" * 400, "end_time": 2}, None, 2),
        ({"start_time": "nan", "end_time": "-inf"}, None, None),
        ({"start_time": float("inf"), "end_time": float("nan")}, None, None),
        ({"start_time": None, "startTime": 5}, 5, None),
    ],
)
def test_times(raw: dict[str, Any], start: Any, end: Any) -> None:
    span = Span(raw)
    assert (span.start, span.end) == (start, end)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ({"a": 1, "b": {"stringValue": "x"}}, {"a": 1, "b": {"stringValue": "x"}}),
        ([{"key": "a", "value": {"stringValue": "x"}}], {"a": "x"}),
        ([{"key": "a", "value": {"intValue": "7"}}], {"a": "7"}),
        ([{"key": "a", "value": {"boolValue": False}}], {"a": False}),
        ([{"key": "a", "value": {"doubleValue": 1.5}}], {"a": 1.5}),
        ([{"key": "a", "value": {"arrayValue": {"values": [{"intValue": 1}, {"stringValue": "x"}]}}}],
         {"a": [1, "x"]}),
        ([{"key": "a", "value": {"arrayValue": {}}}], {"a": []}),
        ([{"key": "a", "value": {"kvlistValue": {"values": [{"key": "b", "value": {"intValue": 1}}]}}}],
         {"a": {"b": 1}}),
        ([{"key": "a", "value": {"kvlistValue": {}}}], {"a": {}}),
        ([{"key": "a", "value": "plain"}], {"a": "plain"}),
        ([{"key": "a", "value": {"odd": 1}}], {"a": {"odd": 1}}),
        ([{"key": "a", "value": {"intValue": 1, "boolValue": 2}}], {"a": {"intValue": 1, "boolValue": 2}}),
        ([{"key": "a", "value": {}}], {"a": {}}),
        ([{"key": "a"}], {"a": None}),
        ([{"key": 7, "value": 1}], {"7": 1}),
        ([{"value": 1}, "key", None], {}),
        ("x", {}),
        (None, {}),
    ],
)  # fmt: skip
def test_attributes_in_every_form(written: Any, found: Any) -> None:
    assert Span({"attributes": written}).own == found


@pytest.mark.parametrize(
    ("raw", "events"),
    [
        ({}, []),
        ({"events": [{"name": "a", "attributes": {"x": 1}}]}, [("a", {"x": 1})]),
        ({"span_events": [{"event_name": "a"}], "events": [{"name": "b"}]}, [("b", {}), ("a", {})]),
        ({"events": [{"name": "a", "body": {"stringValue": "x"}}]}, [("a", {"body": "x"})]),
        ({"events": [{"name": "a", "body": ""}]}, [("a", {})]),
        ({"events": ["a", None]}, []),
        (
            {"attributes": {"events": '[{"event.name": "a", "x": 1}, {"x": 2}, {"event.name": 7}]'}},
            [("a", {"x": 1})],
        ),
        ({"attributes": {"events": [{"event.name": "a", "content": "y"}]}}, [("a", {"content": "y"})]),
        ({"attributes": {"events": "none"}}, []),
    ],
)
def test_events_wherever_they_are(raw: dict[str, Any], events: Any) -> None:
    assert Span(raw).events == events


def test_attributes_of_events_are_the_spans_unless_they_are_a_message() -> None:
    events = [
        {"name": "detail", "attributes": {"x": "event", "y": 1}},
        {"name": "detail", "attributes": {"y": 2}},
        {"name": CHOICE, "attributes": {"content": "Hi", "finish_reason": "stop"}},
    ]
    span = Span({"attributes": {"x": "own"}, "events": events})
    assert span.attributes == {"x": "own", "y": 1, "finish_reason": "stop"}
    assert span.own == {"x": "own"}


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("gen_ai.system.message", "system"),
        ("gen_ai.user.message", "user"),
        ("gen_ai.assistant.message", "assistant"),
        ("gen_ai.tool.message", "tool"),
        ("gen_ai.choice", "assistant"),
        ("exception", None),
        ("", None),
    ],
)
def test_which_events_are_messages(name: str, role: str | None) -> None:
    assert is_message_event(name) is (role is not None)
    assert ROLES_OF_EVENTS.get(name) == role


def test_kind_and_tool_come_from_the_attributes_and_those_of_events() -> None:
    called = {"attributes": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find"}}
    assert [(s.kind, s.tool) for s in (Span(called), Span({"events": [called]}))] == [
        ("execute_tool", "find")
    ] * 2
    assert Span({"name": "execute_tool find"}).tool == "find"
    assert (Span({}).kind, Span({}).tool, Span({}).name) == ("", "", "")
    assert Span({"name": None}).name == ""


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ({}, ""),
        ({"status": {}}, ""),
        ({"status": {"code": "OK", "message": "fine"}}, ""),
        ({"status": {"code": 1}}, ""),
        ({"status": {"code": 2, "message": "no route"}}, "no route"),
        ({"status": {"code": "STATUS_CODE_ERROR", "message": "no  route\n to"}}, "no route to"),
        ({"status": {"status_code": "ERROR", "description": "late", "message": "m"}}, "late"),
        ({"status": {"status_code": "OK", "code": 2}}, ""),
        ({"status": "Error", "status_message": "late"}, "late"),
        ({"status_code": "STATUS_CODE_ERROR", "status_message": "late"}, "late"),
        ({"status_code": "OK", "status": "ERROR"}, ""),
        ({"status": {"code": 2}, "attributes": {"exception.message": "boom"}}, "boom"),
        ({"status": {"code": 2}, "attributes": {"error.type": "timeout"}}, "timeout"),
        ({"status": {"code": 2}, "events": [{"name": "x", "attributes": {"error.type": "e"}}]}, "e"),
        ({"status": {"code": 2, "message": "x" * 201}}, "x" * 200),
        ({"status": {"code": "22", "message": "m"}}, ""),
    ],
)  # fmt: skip
def test_the_error_of_a_span(raw: dict[str, Any], error: str) -> None:
    assert Span(raw).error == error


def test_an_error_without_a_reason_is_one() -> None:
    assert Span({"status": {"code": 2}}).error


def test_the_first_attribute_that_is_there() -> None:
    span = Span({"attributes": {"a": None, "b": 0, "c": 1}})
    assert span.first_attribute(("a", "b", "c")) == 0
    assert span.first_attribute(("a", "d")) is None


def test_the_attributes_of_services_and_libraries_around_a_span() -> None:
    raw = {
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
        "scope": [{"attributes": {"x": 1}}, "odd"],
        "instrumentationScope": {"name": "lib"},
        "instrumentation_scope": "lib",
    }
    assert list(Span(raw).attributes_around()) == [{"service.name": "shop"}, {"x": 1}, {}]
    assert list(Span({}).attributes_around()) == []


def at(start: int | None, end: int | None) -> Span:
    return Span({key: value for key, value in (("start_time", start), ("end_time", end)) if value})


@pytest.mark.parametrize(
    ("one", "other", "before", "during"),
    [
        ((1, 2), (3, 4), True, False),
        ((1, 3), (3, 4), True, False),
        ((1, 4), (3, 5), False, False),
        ((3, 4), (3, 5), False, False),
        ((3, 3), (3, 5), False, False),
        ((1, None), (3, 4), True, False),
        ((None, 2), (3, 4), False, False),
        ((1, 2), (None, 4), False, False),
        ((4, 5), (3, 6), False, True),
        ((4, 6), (3, 6), False, False),
        ((4, 7), (3, 6), False, False),
        ((4, 5), (3, None), False, False),
        ((4, None), (3, 6), False, False),
        ((4, 5), (None, 6), False, False),
    ],
)
def test_what_is_known_of_two_times(one: Any, other: Any, before: bool, during: bool) -> None:
    assert at(*one).is_before(at(*other)) is before
    assert at(*one).is_during(at(*other)) is during
