"""What agents did in two conversations, compared."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.scenario import Scenario, Tool
from agenteval.core.trajectory import Step, ToolCall, ToolResult, Trajectory, Turn
from agenteval.core.world_state import RowChange, StateChanges
from agenteval.verdict.conduct import ConductDifference, compare_conduct, conduct_of

STATELESS = Scenario(id="s")
STATEFUL = Scenario(id="s", tools={"t": Tool(sql=("SELECT 1",))})


def call(name: str, **args: Any) -> ToolCall:
    return ToolCall(name=name, args=args)


def played(*calls: ToolCall, **turn: Any) -> Trajectory:
    return Trajectory(turns=(Turn(**{"user": "u", "steps": (Step(tool_calls=calls),), **turn}),))


def compared(one: Trajectory, other: Trajectory, scenario: Scenario = STATELESS) -> ConductDifference:
    return compare_conduct(conduct_of(one, scenario), conduct_of(other, scenario))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (call("a", x=1), call("a", x=1.0), True),
        (call("a", x=1), call("a", x=True), False),
        (call("a", x=1), call("a", x="1"), False),
        (call("a", x="Cafe\u0301"), call("a", x="café"), True),
        (call("a", x=["B", {"k": "ｖ"}]), call("a", x=["b", {"k": "V"}]), True),
        (call("a", x="A-1"), call("a", x="A-2"), False),
        (call("a"), call("b"), False),
        (call("a"), call("a").model_copy(update={"attempted": True}), False),
        (call("a"), call("a").model_copy(update={"result": ToolResult(value=1)}), True),
    ],
)
def test_calls_are_the_same_if_they_read_the_same(one: ToolCall, other: ToolCall, is_same: bool) -> None:
    assert (compared(played(one), played(other)).size == 0) is is_same


def test_the_order_of_calls_does_not_count_and_their_number_does() -> None:
    a, b = call("a"), call("b")
    assert compared(played(a, b), played(b, a)).size == 0
    found = compared(played(a, a, b), played(a, call("c")))
    assert (found.missing_calls, found.extra_calls) == (("c({})",), ("a({})", "b({})"))


def test_unread_arguments_leave_only_the_names_to_compare() -> None:
    unread = ToolCall(name="a", args=None, raw_args="{")
    assert compared(played(unread), played(call("a"))).open
    assert compared(played(unread), played(unread)).open
    different = compared(played(unread), played(call("a"), call("b")))
    assert not different.open
    assert "b({})" in different.missing_calls


def test_the_altered_message_in_an_argument_is_the_written_one() -> None:
    altered = played(call("a", q="Say: HELLO THERE!"), user="HELLO THERE 🙂", user_wrote="Hi there")
    assert compared(altered, played(call("a", q="Say: hello there!"), user="Hi there")).size == 0
    quoted = played(call("a", q="say: HELLO THERE 🙂!"), user="HELLO THERE 🙂", user_wrote="Hi there")
    assert compared(quoted, played(call("a", q="Say: Hi there!"), user="Hi there")).size == 0


def state(*rows: tuple[Any, Any], now: str = "2026-01-01 10:00:00.000", **more: Any) -> StateChanges:
    changes = tuple(
        RowChange(identity=(at,), before=before, after=after) for at, (before, after) in enumerate(rows)
    )
    return StateChanges(tables={"t": changes} if rows else {}, now=now, **more)


@pytest.mark.parametrize(
    ("one", "other", "size"),
    [
        (state((None, {"x": "A"})), state((None, {"x": "a"})), 0),
        (state((None, {"x": 1}), (None, {"x": 2})), state((None, {"x": 2}), (None, {"x": 1})), 0),
        (state((None, {"x": 1})), state((None, {"x": 2})), 2),
        (state(), state(({"x": 1}, None)), 1),
        (state(({"x": 1}, {"x": 2})), state(({"x": 3}, {"x": 2})), 2),
        (
            state((None, {"at": "2026-01-03 10:00:00"})),
            state((None, {"at": "2026-02-04 11:00:05"}), now="2026-02-02 11:00:05.000"),
            0,
        ),
        (
            state((None, {"at": "2026-01-03 10:00:00"})),
            state((None, {"at": "2026-02-05 11:00:05"}), now="2026-02-02 11:00:05.000"),
            2,
        ),
        (
            state((None, {"at": "2026-01-03"})),
            state((None, {"at": "2026-02-04"}), now="2026-02-02 10:00:00.000"),
            2,
        ),
    ],
)
def test_states_are_the_same_if_their_changed_rows_are(
    one: StateChanges, other: StateChanges, size: int
) -> None:
    assert compared(played(state=one), played(state=other), STATEFUL).size == size


def test_a_state_that_is_not_known_leaves_the_comparison_open() -> None:
    known, cut = state((None, {"x": 1})), state((None, {"x": 1}), is_complete=False)
    assert compared(played(state=known), played(state=cut), STATEFUL).open
    assert compared(played(state=known), played(), STATEFUL).open
    assert not compared(played(), played()).open
    assert compared(played(call("a"), state=known), played(state=cut), STATEFUL).size == 1
