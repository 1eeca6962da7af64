"""``expect.limits``: what counts toward each bound, what is unknown, and which failures last."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.trajectory import Step, ToolCall, ToolResult, Turn, Usage
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome
from agenteval.scoring.checks.limits import (
    LIMITS,
    check_latency_limit,
    check_step_limit,
    check_token_limit,
    check_tool_call_limit,
)

CALL = ToolCall(name="look", args={})
REFUSED = CALL.model_copy(update={"result": ToolResult(refused=True)})
ATTEMPTED = CALL.model_copy(update={"attempted": True})


def turn(*tokens: int, calls: tuple[ToolCall, ...] = (), ms: float = 0.0, unread: str = "") -> Turn:
    steps = tuple(
        Step(text="x", usage=Usage(input_tokens=each), unread_usage=unread, tool_calls=calls)
        for each in tokens
    )
    return Turn(user="u", steps=steps, latency_ms=ms)


def seen(*turns: Turn, **more: Any) -> CheckInput:
    return CheckInput(turns, **more)


def facts(found: CheckOutcome) -> tuple[bool | None, bool, bool]:
    return found.passed, found.is_lasting, found.is_by_absence


HELD, HELD_BY_ABSENCE, BROKEN, OPEN = (
    (True, False, False),
    (True, False, True),
    (False, True, False),
    (None, False, False),
)


@pytest.mark.parametrize(
    ("bound", "expected"), [(2, BROKEN), (3, HELD_BY_ABSENCE), (4, HELD_BY_ABSENCE), (0, BROKEN)]
)
def test_steps(bound: int, expected: Any) -> None:
    assert facts(check_step_limit(bound, seen(turn(1, 1), turn(1)))) == expected
    assert facts(check_step_limit(bound, seen(turn(1), unfinished=turn(1, 1)))) == expected


@pytest.mark.parametrize(
    ("calls", "count"),
    [((CALL, CALL), 2), ((CALL, ATTEMPTED), 1), ((REFUSED,), 1), ((ATTEMPTED,), 0), ((), 0)],
)
def test_tool_calls(calls: tuple[ToolCall, ...], count: int) -> None:
    made = turn(1, calls=calls)
    assert facts(check_tool_call_limit(count, seen(made))) == HELD_BY_ABSENCE
    assert facts(check_tool_call_limit(count, seen(unfinished=made))) == HELD_BY_ABSENCE
    if count:
        assert facts(check_tool_call_limit(count - 1, seen(made))) == BROKEN
        assert facts(check_tool_call_limit(count - 1, seen(unfinished=made))) == BROKEN


@pytest.mark.parametrize(
    ("turns", "bound", "expected"),
    [
        ((turn(10, 5),), 15, HELD),
        ((turn(10, 5),), 14, BROKEN),
        ((turn(10), turn(5)), 15, HELD),
        ((turn(10), turn(0)), 15, OPEN),  # a turn without usage
        ((turn(10), turn(0)), 9, BROKEN),
        ((turn(10), turn()), 10, HELD),  # without a step there is no usage
        ((turn(10, 0),), 10, HELD),
        ((turn(10, unread="?"),), 10, OPEN),
        ((turn(10, unread="?"),), 9, BROKEN),
        ((), 0, HELD),
    ],
)
def test_tokens(turns: tuple[Turn, ...], bound: int, expected: Any) -> None:
    assert facts(check_token_limit(bound, seen(*turns))) == expected
    if turns:
        assert facts(check_token_limit(bound, seen(*turns[:-1], unfinished=turns[-1]))) == expected


def test_output_tokens_count_and_an_estimate_is_marked() -> None:
    step = Step(text="x", usage=Usage(input_tokens=3, output_tokens=4))
    guess = step.model_copy(update={"usage": Usage(input_tokens=3, output_tokens=4, estimated=True)})
    exact, guessed = (check_token_limit(7, seen(Turn(user="u", steps=(each,)))) for each in (step, guess))
    assert exact.passed is guessed.passed is True
    assert ["estimated" in found.detail for found in (exact, guessed)] == [False, True]
    assert check_token_limit(6, seen(Turn(user="u", steps=(step,)))).passed is False


def test_turns_without_usage_are_counted() -> None:
    detail = check_token_limit(50, seen(turn(40), turn(0), turn(0), turn(2, unread="?"))).detail
    assert "2 of 4 " in detail
    assert "1 of 4 " in detail


@pytest.mark.parametrize(
    ("turns", "bound", "expected"),
    [
        ((turn(1, ms=100), turn(1, ms=50)), 150, HELD),
        ((turn(1, ms=100), turn(1, ms=50)), 149.9, BROKEN),
        ((turn(1, ms=0.5),), 0.5, HELD),
        ((turn(1),), 1000, OPEN),  # no times were recorded
        ((turn(1),), 0, OPEN),
        ((turn(1), turn(1, ms=5)), 5, HELD),
        ((turn(),), 0, HELD),
        ((), 0, HELD),
    ],
)
def test_latency(turns: tuple[Turn, ...], bound: float, expected: Any) -> None:
    assert facts(check_latency_limit(bound, seen(*turns))) == expected
    if turns:
        assert facts(check_latency_limit(bound, seen(*turns[:-1], unfinished=turns[-1]))) == expected


def test_the_rules() -> None:
    rules = {rule.name: rule.decide for rule in LIMITS}
    assert rules == {
        "limits.steps": check_step_limit,
        "limits.tool_calls": check_tool_call_limit,
        "limits.tokens": check_token_limit,
        "limits.latency_ms": check_latency_limit,
    }
    assert not any(rule.needs_answers for rule in LIMITS)
