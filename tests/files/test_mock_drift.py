"""The differences between a mock's answer and a real one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.files.mock_drift import ABSENT, IgnoredFields, find_drift, find_error_drift


def drifts(mock: Any, real: Any, *ignored: str) -> list[tuple[Any, ...]]:
    found = find_drift(mock, real, IgnoredFields(ignored))
    return [(each.kind.value, each.path) for each in found]


@pytest.mark.parametrize(
    ("mock", "real", "expected"),
    [
        (1, 1.0, []),
        (1, True, [("types", "")]),
        (0, None, [("types", "")]),
        ("é", "e\u0301", []),
        ("a", "A", [("values", "")]),
        ({"a": 1}, {"a": 1, "b": None}, [("fields", "b")]),
        ({"a": {"b": 1}}, {"a": {}}, [("fields", "a.b")]),
        ({"a": {"b": 1}}, {"a": [1]}, [("types", "a")]),
        ([1, 2], [1], [("values", "[1]")]),
        ([{"a": 1}], [{"a": "1"}], [("types", "[0].a")]),
        ({"x y": 1}, {"x y": 2}, [("values", '["x y"]')]),
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, [("fields", "a"), ("values", "b"), ("fields", "c")]),
        # Agents get results as text.
        ({"a": 1}, '{"a": 1}', []),
        ('{"a": 1}', {"a": 2}, [("values", "a")]),
        ('{"a": 1}', '{"a":1}', []),
        ('[{"a": 1}]', '[{"a": "1"}]', [("types", "[0].a")]),
        ("[1]", "[1", [("values", "")]),
        ({"a": 1}, "a", [("types", "")]),
        ("1", 1, [("types", "")]),
        ('{"a"', {"a": 1}, [("types", "")]),
        # Where a secret was masked, anything may stand, but nothing else.
        ("key ***!", "key abc!", []),
        ("key ***!", "kay abc!", [("values", "")]),
        ({"a": "***"}, {"a": 5}, [("types", "a")]),
    ],
)
def test_differences(mock: Any, real: Any, expected: list[tuple[str, str]]) -> None:
    assert drifts(mock, real) == expected


json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=5).filter(lambda text: "***" not in text)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_values, json_values)
def test_only_equal_values_have_no_difference(one: Any, other: Any) -> None:
    assert drifts(one, one) == []
    if not drifts(one, other):
        assert one == other or isinstance(one, str) != isinstance(other, str) or _nfc(one) == _nfc(other)


def _nfc(value: Any) -> str:
    from unicodedata import normalize

    return normalize("NFC", repr(value))


@pytest.mark.parametrize(
    ("ignored", "expected"),
    [
        ((), ["at", "items[0].at", "items[0].n"]),
        (("at",), ["items[0].n"]),
        (("items.at",), ["at", "items[0].n"]),
        (("items",), ["at"]),
        (("items.n", "at"), []),
        (("n.items",), ["at", "items[0].at", "items[0].n"]),
    ],
)
def test_ignored_fields(ignored: tuple[str, ...], expected: list[str]) -> None:
    mock = {"at": 1, "items": [{"at": 1, "n": 1}]}
    real = {"at": 2, "items": [{"at": 2, "n": "1"}]}
    assert [path for _, path in drifts(mock, real, *ignored)] == expected


def test_a_new_field_may_be_ignored_and_an_unused_name_is_known() -> None:
    ignored = IgnoredFields(("b", "c"))
    assert list(find_drift({"a": 1}, {"a": 1, "b": 2}, ignored)) == []
    assert ignored.unused == ["c"]


def test_errors_are_compared_by_their_text() -> None:
    nothing = IgnoredFields(())
    assert list(find_error_drift("no order", "no order ", nothing)) == []
    assert list(find_error_drift("no order", "closed", IgnoredFields(("error",)))) == []
    (found,) = find_error_drift("no order", "closed", nothing)
    assert (found.kind.value, found.path, found.mock, found.real) == ("values", "error", "no order", "closed")


def test_a_missing_side_is_marked() -> None:
    (found,) = find_drift({}, {"a": None}, IgnoredFields(()))
    assert (found.mock is ABSENT, found.real) == (True, None)
