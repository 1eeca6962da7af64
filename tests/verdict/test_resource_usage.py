"""What an agent used in a conversation: the measured number, or the reason why it is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.config import Price
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, ToolVisibility, Turn, Usage
from agenteval.verdict.resource_usage import (
    MEASURES,
    UNITS,
    Measurement,
    describe_unknown,
    format_measure,
    known_measure,
)
from tests.support.plans import plan_for
from tests.support.trajectories import seen
from tests.support.verdict_runs import PASS, only_sample, report_of

SCENARIO = Scenario(id="a")
SAMPLE = only_sample(report_of({"a": [PASS]}))
CALL = ToolCall(name="pay", args={})
USED = Usage(calls=1, input_tokens=100, output_tokens=20)
PRICE = Price(input=1_000_000, output=2_000_000)


def turn(*usages: Usage, latency_ms: float = 5.0, **more: Any) -> Turn:
    return Turn(user="hi", steps=tuple(Step(usage=each) for each in usages), latency_ms=latency_ms, **more)


def measured(
    name: str,
    turns: Sequence[Turn],
    *,
    unfinished: Turn | None = None,
    visibility: ToolVisibility = ToolVisibility.ALL,
    price: Price | None = None,
) -> Measurement:
    trajectory = seen(turns, Stop(reason=StopReason.SCRIPT_DONE), unfinished)
    sample = replace(
        SAMPLE,
        key=SampleKey(scenario="a", agent="bot"),
        trajectory=trajectory.model_copy(update={"visibility": visibility}),
    )
    plan = plan_for().with_suite(prices={"bot": price} if price else {})
    found = MEASURES[name](sample, SCENARIO, plan)
    assert known_measure(name, sample, SCENARIO, plan) == (None if found.unknown_reason else found.value)
    return found


def test_the_measures_and_their_units() -> None:
    assert list(MEASURES) == ["latency_ms", "tokens", "steps", "tool_calls", "cost"]
    assert set(UNITS) == {"latency_ms", "cost"}


@pytest.mark.parametrize(
    ("turns", "unfinished", "value", "known"),
    [
        ([turn(USED)], None, 5, True),
        ([turn(USED), turn(USED, latency_ms=7)], None, 12, True),
        ([turn(USED)], turn(USED, latency_ms=2), 7, True),
        ([turn(USED), turn(USED, latency_ms=0)], None, 5, False),
        ([], None, 0, False),
        # A turn without a step is no answer, which nothing is asked of.
        ([turn(USED), turn(latency_ms=0)], None, 5, True),
        ([turn(latency_ms=9)], None, 9, False),
    ],
)
def test_latency(turns: list[Turn], unfinished: Turn | None, value: float, known: bool) -> None:
    found = measured("latency_ms", turns, unfinished=unfinished)
    assert (found.value, not found.unknown_reason, found.is_estimated) == (value, known, False)


ESTIMATED = USED.model_copy(update={"estimated": True})
UNREAD = Turn(user="hi", steps=(Step(usage=USED), Step(usage=USED, unread_usage="odd")))


@pytest.mark.parametrize(
    ("turns", "value", "reason", "estimated"),
    [
        ([turn(USED)], 120, "", False),
        ([turn(USED, USED), turn(USED)], 360, "", False),
        ([turn(USED, ESTIMATED)], 240, "", True),
        ([turn(USED, Usage(calls=1))], 120, "", False),
        ([turn(USED), turn(Usage(calls=1))], 120, "no usage", False),
        ([turn(USED), turn()], 120, "", False),
        ([turn()], 0, "no usage", False),
        ([], 0, "no usage", False),
        ([UNREAD], 240, "unreadable", False),
        ([UNREAD, turn(Usage(calls=1))], 240, "no usage", False),
    ],
)
def test_tokens(turns: list[Turn], value: int, reason: str, estimated: bool) -> None:
    found = measured("tokens", turns)
    assert (found.value, found.is_estimated) == (value, estimated)
    assert (reason in found.unknown_reason) is True
    assert bool(reason) is bool(found.unknown_reason)


def costing(cost: float | None, tokens: int = 0) -> Usage:
    return Usage(calls=1, input_tokens=tokens, cost=cost)


SUM_ALONE = Usage(calls=1, output_tokens=9, unsplit=True)


@pytest.mark.parametrize(
    ("turns", "price", "value", "reason", "estimated"),
    [
        pytest.param([turn(USED)], PRICE, 140, "", False, id="by the price"),
        pytest.param([turn(ESTIMATED)], PRICE, 140, "", True, id="by the price of an estimate"),
        pytest.param([turn(USED)], None, 0, "prices", False, id="no price"),
        pytest.param([turn(costing(0.5, 9))], None, 0.5, "", False, id="reported"),
        pytest.param([turn(costing(0.5, 9))], PRICE, 0.5, "", False, id="reported goes first"),
        pytest.param([turn(costing(0.5))], None, 0.5, "", False, id="reported without tokens"),
        pytest.param([turn(costing(0.0))], None, 0, "", False, id="reported to be free"),
        pytest.param([turn(costing(0.5)), turn(costing(0.25))], None, 0.75, "", False, id="each turn"),
        pytest.param([turn(SUM_ALONE)], PRICE, 0, "total", False, id="a sum alone"),
        pytest.param([turn(SUM_ALONE)], None, 0, "total", False, id="a sum alone, no price"),
        pytest.param([turn(Usage(calls=1))], PRICE, 0, "no usage", False, id="no usage"),
        pytest.param([], PRICE, 0, "no usage", False, id="no turn"),
        pytest.param([UNREAD], PRICE, 280, "unreadable", False, id="unreadable"),
    ],
)
def test_cost(turns: list[Turn], price: Price | None, value: float, reason: str, estimated: bool) -> None:
    found = measured("cost", turns, price=price)
    assert found.value == pytest.approx(value)
    assert found.is_estimated is estimated
    assert reason in found.unknown_reason
    assert bool(reason) is bool(found.unknown_reason)


def test_a_cost_that_one_turn_did_not_report_is_not_known() -> None:
    found = measured("cost", [turn(costing(0.5, 9)), turn(Usage(calls=1))])
    assert "no usage" in found.unknown_reason


CALLING = Turn(user="hi", steps=(Step(tool_calls=(CALL, CALL)), Step(text="done")))


@pytest.mark.parametrize(
    ("turns", "unfinished", "steps", "calls"),
    [
        ([], None, 0, 0),
        ([turn(USED)], None, 1, 0),
        ([CALLING], None, 2, 2),
        ([CALLING, turn(USED)], CALLING, 5, 4),
    ],
)
@pytest.mark.parametrize("visibility", list(ToolVisibility))
def test_steps_and_calls(
    turns: list[Turn], unfinished: Turn | None, steps: int, calls: int, visibility: ToolVisibility
) -> None:
    for name, value in (("steps", steps), ("tool_calls", calls)):
        found = measured(name, turns, unfinished=unfinished, visibility=visibility)
        assert (found.value, found.is_estimated) == (value, False)
        assert (not found.unknown_reason) is (visibility is ToolVisibility.ALL)


def test_calls_are_not_known_where_a_part_of_the_record_is_not() -> None:
    odd = CALLING.model_copy(update={"unplaced": ("a block of kind x",)})
    assert measured("steps", [odd]).unknown_reason
    assert measured("tool_calls", [odd]).unknown_reason


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("latency_ms", 1500.0, "1,500 ms"),
        ("latency_ms", 99.96, "100 ms"),
        ("latency_ms", 100, "100 ms"),
        ("latency_ms", 12.345, "12.3 ms"),
        ("tokens", 0, "0"),
        ("tokens", 1234567, "1,234,567"),
        ("steps", 2.5, "2.5"),
        ("tool_calls", 3, "3"),
        ("cost", 0.001234, "0.00123 USD"),
        ("cost", 0.5, "0.5 USD"),
        ("tokens", -1500, "-1,500"),
    ],
)
def test_a_number_is_readable(name: str, value: float, text: str) -> None:
    assert format_measure(name, value) == text


def test_why_numbers_are_not_known() -> None:
    assert describe_unknown({}, 3) == ""
    text = describe_unknown({"no usage": 1200, "no price": 1}, 1201)
    assert text.split("; ") == [
        "1,200 of 1,201 conversations: no usage",
        "1 of 1,201 conversations: no price",
    ]
    assert "1 of 1 conversation:" in describe_unknown({"no usage": 1}, 1)
