"""A request of OpenTelemetry's protocol as spans: JSON or protobuf, which most exporters send. Pure.

Of protobuf only what spans are made of is read, field by field (opentelemetry/proto/trace/v1/trace.proto);
what is not known is skipped, as protobuf demands. Spans come out as they stand in the protocol's JSON.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

from agenteval.messages.traces import spans_in

_DEEPEST = 50


class NotOtlpError(ValueError):
    """The body is no export of spans."""


def spans_of_json(data: bytes) -> list[dict[str, Any]]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotOtlpError("it is not JSON") from error
    return spans_in(value) or []


def spans_of_protobuf(data: bytes) -> list[dict[str, Any]]:
    try:
        return [
            _span(span)
            for resource in _all(data, 1)
            for scope in _all(resource, 2)
            for span in _all(scope, 2)
        ]
    except (IndexError, struct.error, RecursionError) as error:
        raise NotOtlpError("it is not a protobuf message") from error


# ── messages ─────────────────────────────────────────────────────────────────────────────────────


def _span(data: bytes) -> dict[str, Any]:
    span: dict[str, Any] = {"attributes": {}, "events": []}
    for field, value in _fields(data):
        if field in _IDS and isinstance(value, bytes):
            span[_IDS[field]] = value.hex()
        elif field in _TIMES and isinstance(value, bytes):
            span[_TIMES[field]] = struct.unpack("<Q", value)[0]
        elif field == 5 and isinstance(value, bytes):
            span["name"] = _text(value)
        elif field == 6:
            span["kind"] = value
        elif field == 9 and isinstance(value, bytes):
            _put(span["attributes"], value)
        elif field == 11 and isinstance(value, bytes):
            span["events"].append(_event(value))
        elif field == 15 and isinstance(value, bytes):
            span["status"] = _status(value)
    return span


_IDS = {1: "traceId", 2: "spanId", 4: "parentSpanId"}
_TIMES = {7: "startTimeUnixNano", 8: "endTimeUnixNano"}


def _event(data: bytes) -> dict[str, Any]:
    event: dict[str, Any] = {"attributes": {}}
    for field, value in _fields(data):
        if field == 2 and isinstance(value, bytes):
            event["name"] = _text(value)
        elif field == 3 and isinstance(value, bytes):
            _put(event["attributes"], value)
    return event


def _status(data: bytes) -> dict[str, Any]:
    status: dict[str, Any] = {}
    for field, value in _fields(data):
        if field == 2 and isinstance(value, bytes):
            status["message"] = _text(value)
        elif field == 3:
            status["code"] = value
    return status


def _put(attributes: dict[str, Any], data: bytes, depth: int = 0) -> None:
    key, value = "", None
    for field, part in _fields(data):
        if field == 1 and isinstance(part, bytes):
            key = _text(part)
        elif field == 2 and isinstance(part, bytes):
            value = _any(part, depth)
    attributes[key] = value


def _any(data: bytes, depth: int) -> Any:
    if depth > _DEEPEST:
        raise RecursionError
    found: Any = None
    for field, value in _fields(data):
        if isinstance(value, int):
            found = bool(value) if field == 2 else value - (1 << 64) if value >> 63 else value
        elif field == 1:
            found = _text(value)
        elif field == 4:
            found = struct.unpack("<d", value)[0]
        elif field == 5:
            found = [_any(each, depth + 1) for each in _all(value, 1)]
        elif field == 6:
            found = {}
            for each in _all(value, 1):
                _put(found, each, depth + 1)
        elif field == 7:
            found = value.hex()
    return found


# ── the wire ─────────────────────────────────────────────────────────────────────────────────────


def _all(data: bytes, wanted: int) -> Iterator[bytes]:
    return (value for field, value in _fields(data) if field == wanted and isinstance(value, bytes))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers of fields with what they hold: integers, and bytes of what has a length."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise IndexError
        if at + length > len(data):
            raise IndexError
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise IndexError


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
