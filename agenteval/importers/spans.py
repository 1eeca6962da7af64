"""Reads one span of a trace, regardless of the tracer that wrote it. Pure.

Exports differ in the names of ids and times, in the form of values, and in the location of events. Only this
module knows these forms. For the messages in a span, see ``span_contents``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, TypeAlias

from agenteval.importers.span_kinds import EVENT_LISTS, kind_of, name_of_event, tool_in
from agenteval.messages.json_fields import first_nonempty, first_present, object_at, objects_of, read_json

CHOICE = "gen_ai.choice"
ROLES_OF_EVENTS = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool", CHOICE: "assistant",
}  # fmt: skip
"""The roles of events that are messages (an older convention of OpenTelemetry), keyed by the name of the
event."""
EVENTS = "events"
_NAME = "event.name"
_STARTS = ("start_time", "startTimeUnixNano", "start_time_unix_nano", "startTime")
_UNIX_STARTS = ("startTimeUnixNano", "start_time_unix_nano")
_ENDS = ("end_time", "endTimeUnixNano", "end_time_unix_nano", "endTime")
_TRACES = ("trace_id", "traceId")
_PARENTS = ("parent_id", "parentSpanId", "parent_span_id", "parentId")
_IDS = ("span_id", "spanId")
_SPAN_KEYS = (*_STARTS, *_TRACES, *_PARENTS, *_IDS, "context")
_CONTEXT_KEYS = ("resource", "scope", "instrumentationScope", "instrumentation_scope")
RawSpan: TypeAlias = Mapping[str, Any]


def is_span(value: Any) -> bool:
    """Check whether a value is a span. OpenTelemetry omits ``attributes`` if there are none."""
    if not isinstance(value, dict) or value.keys().isdisjoint(_SPAN_KEYS):
        return False
    if "attributes" not in value:
        return not any(value.keys().isdisjoint(keys) for keys in (_STARTS, _TRACES, _IDS, ("name",)))
    return isinstance(value["attributes"], dict | list)


def trace_of(span: RawSpan) -> str:
    return str(first_nonempty(_TRACES, span, object_at(span, "context")) or "")


def id_of(span: RawSpan) -> str:
    return str(first_nonempty(_IDS, span, object_at(span, "context")) or "")


def parent_of(span: RawSpan) -> str:
    """Return the id of the parent span, or an empty string if the span has none."""
    return str(object_at(span, "parent").get("span_id") or first_nonempty(_PARENTS, span) or "")


class Span:
    """A parsed span.

    ``start`` and ``end`` are in nanoseconds or in the time unit of the trace, or ``None`` if unknown.
    ``events`` contains name–field pairs. ``own`` contains the attributes of the span, excluding those of its
    events."""

    def __init__(self, raw: RawSpan) -> None:
        self.raw = raw
        self.trace, self.id, self.parent = trace_of(raw), id_of(raw), parent_of(raw)
        self.name = str(raw.get("name") or "")
        self.start, self.end = _parse_time(_start_in(raw)), _parse_time(first_nonempty(_ENDS, raw))
        self.own = dict(_pairs(raw.get("attributes")))
        self.events = [*_events_of(raw, self.own)]

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes of the span and its events. Messages may be stored in either."""
        found = dict(self.own)
        for name, fields in self.events:
            for key, value in fields.items():
                if not is_message_event(name) or key == "finish_reason":  # the rest is read as a message
                    found.setdefault(key, value)
        return found

    @cached_property
    def kind(self) -> str:
        return kind_of(self.attributes)

    @cached_property
    def tool(self) -> str:
        """The name of the tool that the span calls, or an empty string if the span is not a tool call."""
        return tool_in(self.name, self.attributes)

    @cached_property
    def error(self) -> str:
        """The reason why the span failed, or an empty string if it did not fail."""
        status = self.raw.get("status")
        fields = status if isinstance(status, dict) else {"code": self.raw.get("status_code", status)}
        code = str(fields.get("status_code", fields.get("code", "")))
        if not code.casefold().endswith("error") and code != "2":
            return ""
        reason = first_nonempty(("description", "message"), fields) or self.raw.get("status_message")
        reason = reason or first_nonempty(("exception.message", "error.type"), self.attributes) or "it failed"
        return " ".join(str(reason).split())[:200]

    def first_attribute(self, names: tuple[str, ...]) -> Any:
        """Return the first of these attributes that is present."""
        return first_present(names, self.attributes)

    def attributes_around(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of each resource and each scope (service, library) of this span."""
        for value in (self.raw.get(key) for key in _CONTEXT_KEYS):
            for each in objects_of(value if isinstance(value, list) else [value]):
                yield dict(_pairs(each.get("attributes")))

    def is_before(self, other: Span) -> bool:
        """Check whether the span is known to have ended before the other span began."""
        if other.start is None or self.start is None:
            return False
        return self.start < other.start and (self.end is None or self.end <= other.start)

    def is_during(self, other: Span) -> bool:
        """Check whether the span is known to have begun and ended while the other span was running."""
        if None in (other.start, self.start, self.end, other.end):
            return False
        return other.start < self.start and self.end < other.end  # type: ignore[operator]


def _start_in(raw: RawSpan) -> Any:
    """Return the start time of a span as written. A time that is relative to the start of a trace may be 0;
    a time since 1970 that is 0 was not set."""
    is_zero = any(raw.get(key) == 0 for key in _STARTS if key not in _UNIX_STARTS)
    return first_nonempty(_STARTS, raw) or (0 if is_zero else None)


def _parse_time(value: Any) -> float | None:
    """Parse a number, which may be written as text, or a date. Whole numbers stay exact, because nanoseconds
    since 1970 are too large for a float."""
    if isinstance(value, int):
        return value
    text = str(value) if isinstance(value, float) else value
    for read in (int, float, _parse_date):
        try:
            if math.isfinite(number := read(text)):
                return number
        except (TypeError, ValueError, OverflowError):
            continue
    return None


def _parse_date(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() * 1e9


def _events_of(span: RawSpan, attributes: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the attributes of each event, including the body of a log record. Some libraries
    store the events in an attribute of the span, and the name of each event in the event's attributes."""
    for event in (event for key in EVENT_LISTS for event in objects_of(span.get(key))):
        body = {"body": _parse_value(event["body"])} if event.get("body") else {}
        yield name_of_event(event), {**dict(_pairs(event.get("attributes"))), **body}
    for event in objects_of(read_json(attributes.get(EVENTS))):
        if isinstance(event.get(_NAME), str):
            yield event[_NAME], {key: value for key, value in event.items() if key != _NAME}


def is_message_event(name: str) -> bool:
    return name in ROLES_OF_EVENTS


def _pairs(attributes: Any) -> list[tuple[str, Any]]:
    if isinstance(attributes, dict):
        return list(attributes.items())
    listed = attributes if isinstance(attributes, list) else []
    return [(str(each["key"]), _parse_value(each.get("value"))) for each in listed if _has_key(each)]


def _has_key(value: Any) -> bool:
    return isinstance(value, dict) and "key" in value


def _parse_value(written: Any) -> Any:
    """Parse an attribute value in OTLP JSON, such as ``{"stringValue": …}``."""
    if not isinstance(written, dict) or len(written) != 1:
        return written
    ((kind, value),) = written.items()
    inner = value.get("values") if isinstance(value, dict) else None
    if kind == "arrayValue":
        return [_parse_value(each) for each in inner or ()]
    if kind == "kvlistValue":
        return dict(_pairs(inner))
    return value if kind.endswith("Value") else written
