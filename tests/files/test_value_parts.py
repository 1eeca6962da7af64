"""Parts of a value as an author wrote it: what has an unexpected shape is empty."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.files.value_parts import iter_items, leaves, list_at, mapping_at, value_at

NESTED = {"a": {"b": {"c": 1}}, "l": [1, {"x": 2}], "n": None}


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ({"a": 1, "b": 2}, [("a", 1), ("b", 2)]),
        ([7, 8], [(0, 7), (1, 8)]),
        ({}, []),
        ([], []),
        ("text", []),
        (None, []),
        (3, []),
    ],
)
def test_the_items_of_a_value(value: Any, items: list[Any]) -> None:
    assert list(iter_items(value)) == items


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1, [((), 1)]),
        (None, [((), None)]),
        ("ab", [((), "ab")]),
        ({}, []),
        ([], []),
        ({"a": []}, []),
        (NESTED, [(("a", "b", "c"), 1), (("l", 0), 1), (("l", 1, "x"), 2), (("n",), None)]),
    ],
)
def test_the_leaves_of_a_value(value: Any, found: list[Any]) -> None:
    assert list(leaves(value)) == found
    assert list(leaves(value, ("top", 0))) == [(("top", 0, *at), leaf) for at, leaf in found]


@pytest.mark.parametrize(
    ("keys", "value", "mapping", "listed"),
    [
        ((), NESTED, NESTED, ()),
        (("a",), {"b": {"c": 1}}, {"b": {"c": 1}}, ()),
        (("a", "b", "c"), 1, {}, ()),
        (("a", "b", "c", "d"), None, {}, ()),
        (("l",), [1, {"x": 2}], {}, [1, {"x": 2}]),
        (("l", "x"), None, {}, ()),
        (("n",), None, {}, ()),
        (("absent",), None, {}, ()),
    ],
)
def test_what_is_below_keys(keys: tuple[str, ...], value: Any, mapping: Any, listed: Any) -> None:
    assert value_at(NESTED, keys) == value
    assert mapping_at(NESTED, *keys) == mapping
    assert list_at(NESTED, *keys) == listed


@pytest.mark.parametrize("value", [None, 3, "text", [1]])
def test_a_value_of_another_shape_has_nothing_below(value: Any) -> None:
    assert value_at(value, ["a"]) is None
    assert mapping_at(value, "a") == {}
    assert list_at(value, "a") == ()
