"""Which waiting call a result belongs to, and which of two lists belong together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agenteval.messages.pairing import WaitingCalls, match_pairs

STEPS = {
    "one": {0: ("a", "find"), 1: ("b", "cancel")},
    "two": {0: ("a", "find"), 2: ("", "cancel"), 3: ("a", "cancel")},
}


def waiting(steps: dict[str, Any] = STEPS) -> WaitingCalls[str]:
    made = WaitingCalls[str]()
    for step, calls in steps.items():
        made.add(step, calls)
    return made


@pytest.mark.parametrize(
    ("call_id", "name", "taken"),
    [
        ("a", "find", ("two", 0)),
        ("a", "cancel", ("two", 3)),  # of several with the id, the one with the name
        ("a", "other", ("two", 0)),
        ("b", "cancel", ("one", 1)),
        ("b", "other", ("one", 1)),  # the id goes before the name
        ("", "cancel", ("two", 2)),
        ("", None, ("two", 0)),
        ("unknown", "cancel", ("two", 2)),
        ("unknown", "other", ("two", 0)),
    ],
)
def test_the_call_of_a_result(call_id: str, name: Any, taken: tuple[str, int]) -> None:
    assert waiting().take(call_id, name) == taken


def test_an_empty_id_is_no_id() -> None:
    calls = waiting({"one": {0: ("", "find")}, "two": {0: ("x", "find")}})
    assert calls.take("", "find") == ("two", 0)


def test_each_call_is_taken_once() -> None:
    calls = waiting()
    found = [calls.take("a", None) for _ in range(6)]
    assert found == [("two", 0), ("two", 3), ("one", 0), ("two", 2), ("one", 1), None]


def test_a_step_without_calls_is_not_waited_for() -> None:
    calls = waiting({"one": {0: ("a", "find")}, "two": {}})
    assert calls.take("", None) == ("one", 0)
    assert calls.take("", None) is None
    assert waiting({}).take("a", "find") is None


def test_an_id_that_was_answered_is_sought_in_earlier_steps() -> None:
    calls = waiting({"one": {0: ("a", "x")}, "two": {0: ("a", "y"), 1: ("b", "z")}})
    assert [calls.take("a", "x") for _ in range(2)] == [("two", 0), ("one", 0)]
    assert calls.take("a", "x") == ("two", 1)


def is_equal(one: int, other: int) -> bool:
    return one == other


def is_near(one: int, other: int) -> bool:
    return abs(one - other) <= 1


@pytest.mark.parametrize(
    ("items", "candidates", "tests", "pairs"),
    [
        ([1, 2], [2, 1], [is_equal], {0: 1, 1: 0}),
        ([1, 1], [1], [is_equal], {0: 0}),  # each at most once
        ([1], [1, 1], [is_equal], {0: 0}),
        ([1, 2], [2], [is_near, is_equal], {0: 0}),
        ([1, 2], [2], [is_equal, is_near], {1: 0}),  # all of one test before the next
        ([1, 2, 9], [2, 0], [is_equal, is_near], {1: 0, 0: 1}),
        ([1], [1, 2], [is_equal, is_near], {0: 0}),  # nothing is paired twice
        ([1], [1], [], {}),
        ([], [1], [is_equal], {}),
        ([1], [], [is_equal], {}),
    ],
)
def test_pairs(
    items: list[int],
    candidates: list[int],
    tests: list[Callable[[int, int], bool]],
    pairs: dict[int, int],
) -> None:
    assert match_pairs(items, candidates, *tests) == pairs
