"""Values with their places: both stay together in whatever is selected, replaced and merged."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.files.located_value import LocatedValue, empty_mapping
from agenteval.files.yaml_source import Mark, parse_yaml

TEXT = """\
a: 1
b:
  c: 2
  d: [3, {e: 4}]
f: text
"""


def read(text: str, path: str = "s.yaml") -> LocatedValue:
    document = parse_yaml(text.encode(), path)
    return LocatedValue(document.value, document.mark)


def line(found: LocatedValue, *loc: str | int) -> tuple[str, int]:
    place = found.mark.find(loc).place
    return place.path, place.line


@pytest.mark.parametrize(
    ("loc", "value", "at"),
    [
        ((), read(TEXT).value, 1),
        (("a",), 1, 1),
        (("b", "c"), 2, 3),
        (("b", "d", 0), 3, 4),
        (("b", "d", 1, "e"), 4, 4),
    ],
)
def test_a_part(loc: tuple[str | int, ...], value: Any, at: int) -> None:
    found = read(TEXT).at(*loc)
    assert found.value == value
    assert found.mark.line == at


def test_a_part_that_is_not_there() -> None:
    for loc in (("x",), ("b", "x"), ("b", "d", 9)):
        with pytest.raises((KeyError, IndexError)):
            read(TEXT).at(*loc)


def test_a_part_without_a_place_has_that_of_its_parent() -> None:
    bare = LocatedValue({"a": {"b": 1}}, Mark("s.yaml", 7))
    assert bare.at("a", "b").mark.line == 7
    assert bare.items["a"].mark.line == 7


def test_the_items_of_a_mapping() -> None:
    found = read(TEXT).items
    assert {key: (item.value, item.mark.line) for key, item in found.items() if key != "b"} == {
        "a": (1, 1),
        "f": ("text", 5),
    }
    assert list(found) == ["a", "b", "f"]


def test_keys_are_selected_and_dropped_with_their_places() -> None:
    whole = read(TEXT)
    for found in (whole.select_keys(["f", "a", "x"]), whole.drop_keys("b", "x")):
        assert found.value == {"a": 1, "f": "text"}
        assert list(found.value) == ["a", "f"]
        assert set(found.mark.by_key) == {"a", "f"}
        assert line(found, "f") == ("s.yaml", 5)
        assert found.mark.place == whole.mark.place
    assert whole.select_keys([]).value == {}
    assert whole.drop_keys().value == whole.value
    assert set(whole.value) == {"a", "b", "f"}


OTHER = LocatedValue({"n": 9}, Mark("other.yaml", 3, children={"n": Mark("other.yaml", 4)}))


@pytest.mark.parametrize(
    ("loc", "value"),
    [
        ((), {"n": 9}),
        (("a",), {"a": {"n": 9}, "b": {"c": 2, "d": [3, {"e": 4}]}, "f": "text"}),
        (("new",), {**read(TEXT).value, "new": {"n": 9}}),
        (("b", "c"), {"a": 1, "b": {"c": {"n": 9}, "d": [3, {"e": 4}]}, "f": "text"}),
        (("b", "d", 0), {"a": 1, "b": {"c": 2, "d": [{"n": 9}, {"e": 4}]}, "f": "text"}),
        (("b", "d", 1, "e"), {"a": 1, "b": {"c": 2, "d": [3, {"e": {"n": 9}}]}, "f": "text"}),
    ],
)
def test_a_part_is_replaced_with_its_place(loc: tuple[str | int, ...], value: Any) -> None:
    whole = read(TEXT)
    found = whole.replace_at(loc, OTHER)
    assert found.value == value
    assert line(found, *loc) == ("other.yaml", 3)
    assert line(found, *loc, "n") == ("other.yaml", 4)
    assert whole.value == read(TEXT).value
    if loc:
        assert line(found, "f") == ("s.yaml", 5)
        assert found.mark.place == whole.mark.place
    if loc[:1] == ("b",):
        assert line(found, "b") == ("s.yaml", 2)


def test_the_other_items_of_a_list_keep_their_places() -> None:
    found = read("- a\n- b\n- c\n").replace_at([1], OTHER)
    assert found.value == ["a", {"n": 9}, "c"]
    assert [line(found, n) for n in range(3)] == [("s.yaml", 1), ("other.yaml", 3), ("s.yaml", 3)]


@pytest.mark.parametrize(
    ("low", "high", "value", "places"),
    [
        ("a: 1\n", "\nb: 2\n", {"a": 1, "b": 2}, {("a",): ("low", 1), ("b",): ("high", 2)}),
        ("a: 1\n", "\na: 2\n", {"a": 2}, {("a",): ("high", 2)}),
        (
            "a:\n  b: 1\n  c: 2\n",
            "\na:\n  c: 3\n  d: 4\n",
            {"a": {"b": 1, "c": 3, "d": 4}},
            {("a", "b"): ("low", 2), ("a", "c"): ("high", 3), ("a", "d"): ("high", 4)},
        ),
        ("a: [1, 2]\n", "\na: [3]\n", {"a": [3]}, {("a", 0): ("high", 2)}),
        ("a: {b: 1}\n", "\na: 2\n", {"a": 2}, {("a",): ("high", 2)}),
        ("a: 1\n", "\na: {b: 2}\n", {"a": {"b": 2}}, {("a", "b"): ("high", 2)}),
        ("a: {b: 1}\n", "\na:\n", {"a": None}, {("a",): ("high", 2)}),
        ("a: {b: 1}\n", "{}\n", {"a": {"b": 1}}, {("a", "b"): ("low", 1), (): ("high", 1)}),
        ("{}\n", "a: {b: 1}\n", {"a": {"b": 1}}, {("a", "b"): ("high", 1)}),
    ],
)
def test_one_value_over_another(low: str, high: str, value: Any, places: dict[Any, tuple[str, int]]) -> None:
    found = read(high, "high").merge_over(read(low, "low"))
    assert found.value == value
    assert {loc: line(found, *loc) for loc in places} == places


def test_values_are_put_together() -> None:
    items = [LocatedValue(n, Mark("s", n)) for n in (1, 2)]
    at = Mark("s", 9)
    listed = LocatedValue.from_list(items, at)
    assert (listed.value, listed.mark.line, listed.at(1).mark.line) == ([1, 2], 9, 2)
    mapped = LocatedValue.from_mapping({"x": items[0], "y": items[1]}, at)
    assert (mapped.value, mapped.mark.line, mapped.at("x").mark.line) == ({"x": 1, "y": 2}, 9, 1)
    assert at.children is None


def test_an_empty_mapping_is_nowhere() -> None:
    found = empty_mapping()
    assert (found.value, found.mark.place.path, found.mark.by_key) == ({}, "", {})
    assert found.replace_at(("a",), OTHER).value == {"a": {"n": 9}}
    assert empty_mapping().value == {}
