"""Turns of spans: those of the messages around or within them, or else of the messages near in time."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.importers.span_tree import SpanTree
from agenteval.importers.span_turns import SpanTurns


def turns(
    known: dict[str, int], *spans: tuple[str, str, int | None], last: int = 1, **traces: str
) -> SpanTurns:
    """Turns of spans: each has a name, a parent and a start, and a trace if it is not ``t``."""
    raw: list[dict[str, Any]] = [
        {
            "trace_id": traces.get(name, "t"),
            "span_id": name,
            "parent_id": parent,
            "name": name,
            "attributes": {},
            **({} if start is None else {"start_time": start}),
        }
        for name, parent, start in spans
    ]
    tree = SpanTree(raw)
    return SpanTurns(tree, {span: known[span.name] for span in tree.ordered if span.name in known}, last)


def found(known: dict[str, int], *spans: tuple[str, str, int | None], **more: Any) -> dict[str, list[int]]:
    all_turns = turns(known, *spans, **more)
    return {span.name: all_turns.turns_of(span) for span in all_turns._tree.ordered}


def test_a_span_with_messages_is_of_its_turn_and_so_is_what_it_encloses() -> None:
    spans = [("m1", "", 1), ("x1", "m1", 2), ("y1", "x1", 3), ("m2", "", 4), ("x2", "m2", 5)]
    assert found({"m1": 1, "m2": 2}, *spans) == {"m1": [1], "x1": [1], "y1": [1], "m2": [2], "x2": [2]}


def test_what_encloses_messages_is_of_their_turns() -> None:
    spans = [
        ("all", "", 1),
        ("a", "all", 2),
        ("m1", "a", 3),
        ("x", "a", 4),
        ("m3", "all", 5),
        ("m2", "all", 6),
    ]
    found_turns = found({"m1": 1, "m2": 2, "m3": 3}, *spans)
    assert found_turns["all"] == [1, 2, 3]
    assert (found_turns["a"], found_turns["x"]) == ([1], [1])


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (5, [1]),
        (10, [1, 2]),
        (15, [1, 2]),
        (20, [2, 4]),
        (30, [2, 4]),
        (40, [4]),
        (99, [4]),
        (None, [1, 2, 3, 4]),
    ],
)
def test_otherwise_the_turns_near_in_time(start: int | None, expected: list[int]) -> None:
    known = {"m1": 1, "m2": 2, "m4": 4}
    spans = [("m1", "", 10), ("m2", "", 20), ("m4", "", 40), ("x", "", start)]
    near = [*range(expected[0], expected[-1] + 1)]
    assert found(known, *spans)["x"] == near


def test_in_a_span_of_several_turns_time_decides() -> None:
    spans = [("all", "", 1), ("m1", "all", 10), ("m2", "all", 20), ("x", "all", 12), ("y", "all", 25)]
    found_turns = found({"m1": 1, "m2": 2}, *spans)
    assert (found_turns["x"], found_turns["y"]) == ([1, 2], [2])


def test_a_span_around_several_turns_says_nothing_of_time() -> None:
    known = {"all": 2, "m1": 1, "m2": 2}
    spans = [("all", "", 5), ("m1", "all", 10), ("m2", "all", 20), ("x", "", 7), ("y", "", 30)]
    found_turns = found(known, *spans)
    assert (found_turns["x"], found_turns["y"]) == ([1], [2])


def test_without_all_times_every_turn_of_the_trace_is_possible() -> None:
    known = {"m1": 1, "m2": 2, "m3": 3}
    spans = [("m1", "", 10), ("m2", "", None), ("x", "", 12), ("m3", "", 40)]
    assert found(known, *spans, m3="u")["x"] == [1, 2]


def test_a_trace_of_one_turn_needs_no_times() -> None:
    known = {"m1": 1, "m2": 2}
    spans = [("m1", "", None), ("x", "", None), ("m2", "", None), ("y", "", None), ("z", "", None)]
    found_turns = found(known, *spans, m2="u", y="u", z="v")
    assert (found_turns["x"], found_turns["y"], found_turns["z"]) == ([1], [2], [1, 2])


def test_a_trace_without_messages_is_near_those_of_others() -> None:
    known = {"m1": 1, "m2": 2, "m3": 3}
    spans = [("m1", "", 10), ("m2", "", 20), ("z", "", 25), ("m3", "", 30)]
    assert found(known, *spans, z="v")["z"] == [2, 3]


@pytest.mark.parametrize("last", [0, 1, 3])
def test_without_any_messages_the_last_turn_is_the_only_one(last: int) -> None:
    none = turns({}, ("x", "", 1), last=last)
    assert none.first == last
    assert found({}, ("x", "", 1), last=last)["x"] == [last]


def test_the_first_turn_of_all() -> None:
    assert turns({"a": 3, "b": 2}, ("a", "", 1), ("b", "", 2)).first == 2
