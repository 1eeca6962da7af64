"""Parses an OpenTelemetry export request (OTLP over HTTP) into spans. The request may be JSON or protobuf,
which most exporters send. Pure.

In protobuf, only the fields of spans are read (opentelemetry/proto/trace/v1/trace.proto). Unknown fields are
skipped, as protobuf requires. The resulting spans have the form of OTLP's JSON encoding."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from agenteval.importers.traces import find_spans

_DEEPEST = 50


class NotOtlpError(ValueError):
    """Raised when a request body is not an OTLP export of spans."""


def spans_of_json(data: bytes) -> list[dict[str, Any]]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotOtlpError("it is not JSON") from error
    return find_spans(value) or []


def spans_of_protobuf(data: bytes) -> list[dict[str, Any]]:
    try:
        return [
            _parse_span(span)
            for resource in _submessages(data, 1)
            for scope in _submessages(resource, 2)
            for span in _submessages(scope, 2)
        ]
    except (IndexError, struct.error, RecursionError) as error:
        raise NotOtlpError("it is not a protobuf message") from error


# ── messages ─────────────────────────────────────────────────────────────────────────────────────


def _parse_span(data: bytes) -> dict[str, Any]:
    span: dict[str, Any] = {"attributes": {}, "events": [], **_read_fields(data, _SPAN_FIELDS)}
    for pair in _submessages(data, 9):
        _put_attribute(span["attributes"], pair)
    span["events"] += map(_parse_event, _submessages(data, 11))
    return span


def _parse_event(data: bytes) -> dict[str, Any]:
    event: dict[str, Any] = {"attributes": {}, **_read_fields(data, {2: ("name", _parse_text)})}
    for pair in _submessages(data, 3):
        _put_attribute(event["attributes"], pair)
    return event


def _parse_status(data: bytes) -> dict[str, Any]:
    return _read_fields(data, {2: ("message", _parse_text), 3: ("code", int)})


def _parse_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _parse_time(data: bytes) -> int:
    return int(struct.unpack("<Q", data)[0])


_Reader: TypeAlias = tuple[str, Callable[[Any], Any]]
_SPAN_FIELDS: Mapping[int, _Reader] = {
    1: ("traceId", bytes.hex),
    2: ("spanId", bytes.hex),
    4: ("parentSpanId", bytes.hex),
    5: ("name", _parse_text),
    6: ("kind", int),
    7: ("startTimeUnixNano", _parse_time),
    8: ("endTimeUnixNano", _parse_time),
    15: ("status", _parse_status),
}


def _read_fields(data: bytes, known: Mapping[int, _Reader]) -> dict[str, Any]:
    """Return the ``known`` fields of a protobuf message, keyed by name. Each field is parsed by its own
    reader. A value is skipped if its wire type differs from the type that the reader expects."""
    found = {}
    for field, value in _fields(data):
        name, read = known.get(field, ("", int))
        if name and isinstance(value, int) == (read is int):
            found[name] = read(value)
    return found


def _put_attribute(attributes: dict[str, Any], data: bytes, depth: int = 0) -> None:
    key, value = "", None
    for field, part in _fields(data):
        if field == 1 and isinstance(part, bytes):
            key = _parse_text(part)
        elif field == 2 and isinstance(part, bytes):
            value = _parse_any_value(part, depth)
    attributes[key] = value


def _parse_any_value(data: bytes, depth: int) -> Any:
    if depth > _DEEPEST:
        raise RecursionError
    found: Any = None
    for field, value in _fields(data):
        if isinstance(value, int):
            found = bool(value) if field == 2 else value - (1 << 64) if value >> 63 else value
        elif read := _VALUE_READERS.get(field):
            found = read(value, depth + 1)
    return found


def _parse_list(data: bytes, depth: int) -> list[Any]:
    return [_parse_any_value(each, depth) for each in _submessages(data, 1)]


def _parse_object(data: bytes, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in _submessages(data, 1):
        _put_attribute(found, each, depth)
    return found


_VALUE_READERS: Mapping[int, Callable[[bytes, int], Any]] = {
    1: lambda data, _: _parse_text(data),
    4: lambda data, _: struct.unpack("<d", data)[0],
    5: _parse_list,
    6: _parse_object,
    7: lambda data, _: data.hex(),
}
"""The readers for values that are not numbers, keyed by field number."""


# ── the wire ─────────────────────────────────────────────────────────────────────────────────────


def _submessages(data: bytes, wanted: int) -> Iterator[bytes]:
    return (value for field, value in _fields(data) if field == wanted and isinstance(value, bytes))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the field numbers and values in a protobuf message. Values are integers, or bytes for
    length-delimited fields."""
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
