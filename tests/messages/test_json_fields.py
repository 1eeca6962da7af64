"""Lookups in JSON objects of unknown origin: what is missing or of another type is empty."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.messages.json_fields import (
    drop_empty,
    drop_none,
    first_nonempty,
    first_present,
    first_text,
    is_json,
    list_at,
    list_of,
    object_at,
    object_of,
    objects_of,
    parse_json_container,
    read_json,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", True), ("[]", True), ("null", True), ("1", True), ('"a"', True), (" true ", True),
        ("", False), ("a", False), ("{", False), ("{'a': 1}", False),
    ],
)  # fmt: skip
def test_is_json_of_any_type(text: str, expected: bool) -> None:
    assert is_json(text) is expected


@pytest.mark.parametrize(
    ("value", "read", "container"),
    [
        ('{"a": 1}', {"a": 1}, {"a": 1}),
        (" \n[1]", [1], [1]),
        ("[]", [], []),
        ("{}", {}, {}),
        ("12", "12", None),
        ("null", "null", None),
        ('"a"', '"a"', None),
        ("{broken", "{broken", None),
        ("[1] and more", "[1] and more", None),
        ("", "", None),
    ],
)
def test_only_lists_and_objects_are_decoded(value: str, read: Any, container: Any) -> None:
    assert read_json(value) == read
    assert parse_json_container(value) == container


@pytest.mark.parametrize("value", [None, 0, 1.5, True, {"a": "[1]"}, ["[1]"]])
def test_what_is_no_string_stays(value: Any) -> None:
    assert read_json(value) is value


@pytest.mark.parametrize("value", [None, "", "text", 0, 1, True, (), ({"a": 1},)])
def test_another_type_is_empty(value: Any) -> None:
    assert object_of(value) == {}
    assert list_of(value) == []
    assert objects_of(value) == []
    assert object_at({"a": value}, "a") == {}
    assert list_at({"a": value}, "a") == []


def test_objects_and_lists_stay() -> None:
    value: Any = {"a": 1}
    listed: Any = [{"a": 1}, None, "b", {}, [{}]]
    assert object_of(value) is value
    assert list_of(listed) is listed
    assert objects_of(listed) == [{"a": 1}, {}]
    assert (list_of(value), object_of(listed), objects_of(value)) == ([], {}, [])


@pytest.mark.parametrize(
    ("fields", "keys", "expected"),
    [
        ({"a": "x", "b": "y"}, ("a", "b"), "x"),
        ({"a": "x", "b": "y"}, ("b", "a"), "y"),
        ({"a": "", "b": "y"}, ("a", "b"), "y"),
        ({"a": 5, "b": "y"}, ("a", "b"), "y"),
        ({"a": ["x"], "b": None}, ("a", "b"), ""),
        ({"a": " "}, ("a",), " "),
        ({"a": "x"}, (), ""),
        ({}, ("a",), ""),
    ],
)
def test_the_first_text(fields: dict[str, Any], keys: tuple[str, ...], expected: str) -> None:
    assert first_text(fields, *keys) == expected


FIELDS: dict[str, Any] = {"none": None, "text": "x", "object": {}, "full": {"a": 1}, "list": [], "more": [1]}


@pytest.mark.parametrize(
    ("keys", "found_object", "found_list"),
    [
        ((), {}, []),
        (("none", "text"), {}, []),
        (("missing", "full", "object"), {"a": 1}, []),
        (("object", "full"), {}, []),  # an empty object is one
        (("text", "list", "more"), {}, []),
        (("object", "more", "list"), {}, [1]),
    ],
)
def test_the_first_object_and_the_first_list(
    keys: tuple[str, ...], found_object: Any, found_list: Any
) -> None:
    assert object_at(FIELDS, *keys) == found_object
    assert list_at(FIELDS, *keys) == found_list


@pytest.mark.parametrize(
    ("places", "nonempty", "present"),
    [
        ([{"a": 1, "b": 2}], 1, 1),
        ([{"b": 2}], 2, 2),
        ([{"a": 0, "b": 2}], 2, 0),
        ([{"a": None, "b": ""}, {"a": 3}], 3, ""),
        ([{"b": 2}, {"a": 3}], 2, 2),  # one object after another
        ([{"a": False}], None, False),
        ([{"c": 1}], None, None),
        ([], None, None),
    ],
)
def test_the_first_value(places: list[dict[str, Any]], nonempty: Any, present: Any) -> None:
    assert first_nonempty(("a", "b"), *places) == nonempty
    found = first_present(("a", "b"), *places)
    assert (found, type(found)) == (present, type(present))


def test_what_is_dropped() -> None:
    fields: dict[str, Any] = {"a": None, "b": 0, "c": "", "d": False, "e": [], "f": 1}
    assert drop_none(fields) == {"b": 0, "c": "", "d": False, "e": [], "f": 1}
    assert drop_empty(fields) == {"f": 1}
    assert list(drop_none({"z": 1, "a": 2})) == ["z", "a"]
