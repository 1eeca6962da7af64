"""Values as JSON text, and JSON in text."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from agenteval.core.json_text import (
    STRICT_AS_WRITTEN,
    STRICT_DECODER,
    DuplicateKeyError,
    WrittenNumber,
    as_text,
    extract_json,
    finite_number,
    iter_leaves,
    parse_object_literal,
    parse_or,
    to_json,
    to_json_or_repr,
)

LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": "é"}, '{"a": "é"}'),
        ("a", '"a"'),
        (datetime.date(2026, 1, 2), '"2026-01-02"'),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        (LOOP, "[[...]]"),
    ],
)
def test_json_or_what_python_writes(value: Any, text: str) -> None:
    assert to_json_or_repr(value) == text


def test_json_text() -> None:
    assert to_json({"a": ["é", None]}) == '{"a": ["é", null]}'
    assert [as_text(each) for each in ("a", "é", 5, None, ["é"])] == ["a", "é", "5", "null", '["é"]']
    with pytest.raises(TypeError):
        to_json(datetime.date(2026, 1, 2))


@pytest.mark.parametrize(
    ("value", "leaves"),
    [
        (5, [("", 5)]),
        (None, [("", None)]),
        ({"a": 1, "b": {"c": 2, "d": 3}}, [("a", 1), ("b.c", 2), ("b.d", 3)]),
        ([1, [2, {"a": 3}]], [("", 1), ("", 2), ("a", 3)]),
        ({"a": [1, {"b": 2}], 7: 3}, [("a", 1), ("a.b", 2), ("7", 3)]),
        ({}, []),
        ([{}, []], []),
    ],
)
def test_leaves_in_order(value: Any, leaves: list[Any]) -> None:
    assert list(iter_leaves(value)) == leaves


@pytest.mark.parametrize("decoder", [STRICT_DECODER, STRICT_AS_WRITTEN])
@pytest.mark.parametrize(
    "text",
    [
        *("NaN", "[Infinity]", "-Infinity", "1e999", "[-1e999]", "{'a': 1}", ""),
        *('{"a": 1, "a": 1}', '[{"a": 1, "a": 2}]'),
    ],
)
def test_what_is_not_strict(decoder: json.JSONDecoder, text: str) -> None:
    with pytest.raises(ValueError):
        decoder.decode(text)


def test_a_key_that_is_there_twice_is_named() -> None:
    with pytest.raises(DuplicateKeyError) as error:
        STRICT_DECODER.decode('{"b": 1, "é": 2, "a": 3, "a": 4, "é": 5}')
    assert '"é"' in str(error.value)
    assert '"a"' not in str(error.value)
    assert STRICT_DECODER.decode('{"a": {"a": 1}, "b": 1.5}') == {"a": {"a": 1}, "b": 1.5}


def test_a_number_as_it_was_written() -> None:
    found = STRICT_AS_WRITTEN.decode('{"a": 1.50, "b": 2e1, "c": 3}')
    assert found == {"a": 1.5, "b": 20.0, "c": 3}
    assert [type(each) for each in found.values()] == [WrittenNumber, WrittenNumber, int]
    assert [found[key].text for key in "ab"] == ["1.50", "2e1"]


def test_a_number_that_is_out_of_range() -> None:
    assert finite_number("1e308") == 1e308
    for digits in ("1e309", "-1e309"):
        with pytest.raises(ValueError, match=digits):
            finite_number(digits)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("5", 5),
        ("null", None),
        ("", "no"),
        ("{oops", "no"),
        ("[" * 100_000, "no"),
        (b"[1]", [1]),
    ],
)
def test_json_or_something_else(text: str | bytes, value: Any) -> None:
    assert parse_or(text, "no") == value
    assert parse_or("oops") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (' {"a": 1}\n', {"a": 1}),
        ("[1]", [1]),
        ('{"a": 1}\n\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
        ("[1]\n2", [[1], 2]),
        ('{"a":\n1}', {"a": 1}),
        ('{"a": 1}\noops', None),
        ("{oops", None),
        ("5", None),
        ('"a"', None),
        ('Here: {"a": 1}', None),
        ("", None),
        ("[" * 100_000, None),
    ],
)
def test_json_in_a_text(text: str, value: Any) -> None:
    assert extract_json(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"error": null}', {"error": None}),
        ("{'error': None}", {"error": None}),
        ("{'a': (1, True)}\n", {"a": (1, True)}),
        ('{"a": None}', {"a": None}),
        ("[1]", {}),
        ("['a']", {}),
        (" {'a': 1}", {}),
        ("{1: 2}", {}),
        ("{'a'}", {}),
        ("{'a': f()}", {}),
        ("{'a': 1", {}),
        (r"{'a': '\n\'\\\x41'}", {"a": "\n'\\A"}),
        (r"{'a': '\d'}", {}),
        (r"{'a': '\\d'}", {"a": r"\d"}),
        ("text", {}),
        ("", {}),
    ],
)
def test_an_object_in_json_or_in_python(text: str, value: Any) -> None:
    assert parse_object_literal(text) == value


@pytest.mark.parametrize(("length", "is_read"), [(20_000, True), (20_001, False)])
def test_a_long_python_object_is_not_read(length: int, is_read: bool) -> None:
    assert bool(parse_object_literal("{'a': '" + "x" * (length - 9) + "'}")) is is_read
