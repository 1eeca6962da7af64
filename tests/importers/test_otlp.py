"""Exports of spans over OTLP, in JSON and in protobuf, of which unknown fields are passed over."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from agenteval.importers.otlp import NotOtlpError, spans_of_json, spans_of_protobuf


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def field(number: int, value: int | bytes | str) -> bytes:
    """A field of a message: a number, or a text or a message with its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fixed(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<Q", value)


def pair(key: str, value: bytes) -> bytes:
    return field(1, key) + field(2, value)


def export(*spans: bytes) -> bytes:
    return field(1, field(1, b"") + field(2, field(1, b"") + b"".join(field(2, span) for span in spans)))


def read(span: bytes) -> dict[str, Any]:
    (found,) = spans_of_protobuf(export(span))
    return found


def value_of(value: bytes) -> Any:
    return read(field(9, pair("k", value)))["attributes"]["k"]


def test_every_field_of_a_span() -> None:
    span = (
        field(1, bytes(range(16)))
        + field(2, b"\x0a\x0b")
        + field(3, "state")
        + field(4, b"\xff")
        + field(5, "chat é")
        + field(6, 2)
        + fixed(7, 1_700_000_000_000_000_001)
        + fixed(8, 1_700_000_000_000_000_002)
        + field(9, pair("a", field(1, "x")))
        + field(9, pair("b", field(1, "y")))
        + field(10, 3)
        + field(11, fixed(1, 5) + field(2, "choice") + field(3, pair("c", field(1, "z"))) + field(4, 1))
        + field(11, field(2, "other"))
        + field(15, field(2, "late") + field(3, 2))
        + field(99, "new")
    )
    assert read(span) == {
        "traceId": "000102030405060708090a0b0c0d0e0f",
        "spanId": "0a0b",
        "parentSpanId": "ff",
        "name": "chat é",
        "kind": 2,
        "startTimeUnixNano": 1_700_000_000_000_000_001,
        "endTimeUnixNano": 1_700_000_000_000_000_002,
        "attributes": {"a": "x", "b": "y"},
        "events": [{"name": "choice", "attributes": {"c": "z"}}, {"name": "other", "attributes": {}}],
        "status": {"message": "late", "code": 2},
    }


def test_a_span_without_fields() -> None:
    assert read(b"") == {"attributes": {}, "events": []}
    assert spans_of_protobuf(b"") == []
    assert spans_of_protobuf(field(1, b"")) == []


def test_spans_of_all_services_and_libraries_in_order() -> None:
    spans = [field(5, name) for name in "abcd"]
    scopes = [field(2, field(2, span)) for span in spans]
    data = field(1, scopes[0] + scopes[1]) + field(2, "unknown") + field(1, scopes[2]) + export(spans[3])
    assert [span["name"] for span in spans_of_protobuf(data)] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b"", None),
        (field(1, "text"), "text"),
        (field(1, ""), ""),
        (field(1, b"\xff"), "\ufffd"),
        (field(2, 1), True),
        (field(2, 0), False),
        (field(3, 0), 0),
        (field(3, 127), 127),
        (field(3, 128), 128),
        (field(3, 2**63 - 1), 2**63 - 1),
        (field(3, 2**64 - 1), -1),
        (field(3, 2**63), -(2**63)),
        (varint(4 << 3 | 1) + struct.pack("<d", 1.5), 1.5),
        (field(5, field(1, field(3, 1)) + field(1, field(1, "x"))), [1, "x"]),
        (field(5, b""), []),
        (field(6, field(1, pair("a", field(3, 1))) + field(1, pair("b", b""))), {"a": 1, "b": None}),
        (field(6, b""), {}),
        (field(7, b"\x01\xff"), "01ff"),
        (field(8, "unknown"), None),
    ],
)
def test_values_of_every_type(value: bytes, found: Any) -> None:
    read_value = value_of(value)
    assert read_value == found
    assert type(read_value) is type(found)


def test_an_attribute_without_a_key_or_a_value() -> None:
    assert read(field(9, field(1, "a")))["attributes"] == {"a": None}
    assert read(field(9, field(2, field(3, 1))))["attributes"] == {"": 1}


@pytest.mark.parametrize(
    "span",
    [field(5, 7), field(1, 7), field(6, "server"), field(15, 7), field(9, 7), field(11, 7), fixed(6, 7)],
)
def test_a_value_of_another_type_is_passed_over(span: bytes) -> None:
    assert read(span) == {"attributes": {}, "events": []}


def test_values_of_four_bytes_are_passed_over() -> None:
    assert read(varint(90 << 3 | 5) + b"abcd" + field(5, "x"))["name"] == "x"


def nested(depth: int) -> bytes:
    value = field(3, 7)
    for _ in range(depth):
        value = field(5, field(1, value))
    return value


def test_a_value_that_is_nested_too_deeply() -> None:
    assert value_of(nested(50))
    with pytest.raises(NotOtlpError):
        value_of(nested(51))


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"\xff" * 11,
        b"\x0a\x05ab",
        b"\x0a",
        b"\x09abc",
        b"\x0b",
        b"\x0c",
        b"\x80",
        export(varint(7 << 3 | 2) + b"\x03abc"),  # a time of three bytes
        export(field(9, pair("k", field(4, b"abc")))),
    ],
)
def test_what_is_no_protobuf(data: bytes) -> None:
    with pytest.raises(NotOtlpError):
        spans_of_protobuf(data)


SPAN = {"traceId": "t", "spanId": "s", "name": "x", "startTimeUnixNano": "1"}


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN, {**SPAN, "name": "y"}]}]}]}, ["x", "y"]),
        ({"resourceSpans": []}, []),
        ({}, []),
        ([], []),
        (7, []),
    ],
)
def test_spans_in_json(value: Any, names: list[str]) -> None:
    assert [span["name"] for span in spans_of_json(json.dumps(value).encode())] == names


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 200_000])
def test_what_is_no_json(data: bytes) -> None:
    with pytest.raises(NotOtlpError):
        spans_of_json(data)
