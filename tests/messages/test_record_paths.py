"""Dotted paths in records, and what is suggested in place of one that does not exist."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.messages.record_paths import MISSING, find_value, is_success, suggest_path

RECORD: dict[str, Any] = {
    "id": "a",
    "none": None,
    "labels": {"task": {"id": 7}, "task.id": 8},
    "a.b": {"c": 1},
    "a": {"b": {"d": 2}, "x": 3},
    "trials": [{"reward": 0}, {"reward": 1}, [5, 6]],
    "0": "zero",
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("id", "a"),
        ("none", None),
        ("labels.task", {"id": 7}),
        ("labels.task.id", 8),  # the whole key first
        ("a.b", {"c": 1}),
        ("a.b.c", 1),
        ("a.b.d", 2),
        ("a.x", 3),
        ("trials.0.reward", 0),
        ("trials.-1", [5, 6]),
        ("trials.-1.0", 5),
        ("trials.-3.reward", 0),
        ("trials.2.1", 6),
        ("0", "zero"),
        ("missing", MISSING),
        ("id.x", MISSING),
        ("none.x", MISSING),
        ("labels.other", MISSING),
        ("trials.3", MISSING),
        ("trials.-4", MISSING),
        ("trials.2.2", MISSING),
        ("trials.first", MISSING),
        ("trials.", MISSING),
        ("trials.--1", MISSING),
        ("trials.0.", MISSING),
        ("trials.1234567890", MISSING),
        ("", MISSING),
        (".", MISSING),
    ],
)
def test_the_value_at_a_path(path: str, expected: Any) -> None:
    found = find_value(RECORD, path)
    assert found is MISSING if expected is MISSING else found == expected


@pytest.mark.parametrize("record", ["text", None, 5])
def test_a_plain_record_has_no_paths(record: Any) -> None:
    assert find_value(record, "0") is MISSING


def test_a_list_is_a_record() -> None:
    assert find_value([{"a": 1}], "0.a") == 1
    assert find_value([], "0") is MISSING


@pytest.mark.parametrize(
    ("record", "path", "suggested"),
    [
        ({"task_id": 1, "reward": 2}, "task_di", "task_id"),
        ({"labels": {"task_id": 1}}, "task_id", "labels.task_id"),
        ({"labels": {"Reward": 1}}, "result.some.reward", "labels.Reward"),  # its last name
        ({"trials": [{"reward": 1}, {"score": 2}]}, "reward", "trials.0.reward"),
    ],
)
def test_a_similar_path_is_suggested(record: Any, path: str, suggested: str) -> None:
    assert suggest_path(record, path) == f"did you mean '{suggested}'?"


@pytest.mark.parametrize(
    ("record", "named"),
    [
        ({"aa": 1, "bb": {"cc": [2, 3]}, "ee": [], "ff": {}, "gg": None}, ["aa", "bb.cc.0", "gg"]),
        ({"aa": 1, "messages": [{"role": "user"}], "tools": [{"name": "x"}]}, ["aa"]),
        ({"messages_total": 3, "toolset": {"aa": 1}}, ["messages_total", "toolset.aa"]),
        ({"aa": {"messages": [{"role": "user"}]}}, ["aa.messages.0.role"]),
        ({"aa": {"bb": {"cc": {"dd": 1}}}}, ["aa.bb.cc.dd"]),
        ([{"aa": 1}, {"bb": 2}], ["0.aa"]),
    ],
)
def test_the_paths_that_exist_are_listed(record: Any, named: list[str]) -> None:
    assert suggest_path(record, "zzzzzzzz").removeprefix("available: ").split(", ") == named


@pytest.mark.parametrize("record", [{}, [], "text", None, {"aa": {"bb": {"cc": {"dd": {"ee": 1}}}}}])
def test_nothing_is_suggested_without_paths(record: Any) -> None:
    assert suggest_path(record, "zzzzzzzz") == ""


@pytest.mark.parametrize(("count", "more"), [(20, ""), (21, "and 1 more"), (25, "and 5 more")])
def test_at_most_20_paths_are_listed(count: int, more: str) -> None:
    found = suggest_path({f"k{n}": n for n in range(count)}, "zzzzzzzz")
    assert [f"k{n}" for n in range(count) if f"k{n}" in found.replace(",", " ").split()] == [
        f"k{n}" for n in range(20)
    ]
    assert found.endswith(more or "k19")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True), (1, True), (1.0, True), ("true", True), (" True ", True), ("1", True), ("1.0", True),
        (False, False), (0, False), (0.99, False), (2, False), (-1, False), ("yes", False), ("", False),
        ("false", False), (None, False), ([1], False), ({"success": True}, False),
    ],
)  # fmt: skip
def test_what_is_a_success(value: Any, expected: bool) -> None:
    assert is_success(value) is expected
