"""The agents of one run against the first of them: who succeeds more often or costs less, if it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.config import Config
from agenteval.core.event import Event, RunFinished, TurnFinished
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.trajectory import ToolCall
from agenteval.verdict.gates import decide
from agenteval.verdict.reference_comparison import (
    COST_PER_SUCCESS,
    ComparedAgent,
    ComparedNumber,
    ReferenceComparison,
    ReferenceVerdict,
    compare_with_reference,
)
from agenteval.verdict.report import build_report
from agenteval.verdict.statistics import Pair, Tally, compare
from agenteval.verdict.statistics.ratios import Quotient, RatioPair, Side, ratio_of, ratio_of_quotients
from tests.support.report_samples import started
from tests.support.verdict_runs import FAIL, LOST, PASS, UNSURE, Played

MORE, LESS, SAME = ReferenceVerdict.MORE, ReferenceVerdict.LESS, ReferenceVerdict.INDISTINGUISHABLE
NUMBERS = ["latency_ms", "tokens", "steps", "tool_calls"]
ALL_NUMBERS = [COST_PER_SUCCESS, "cost", *NUMBERS]
Epochs = Mapping[str, Sequence[Played | None]]


def compared(
    agents: Mapping[str, Epochs],
    *,
    prices: Mapping[str, Mapping[str, float]] | None = None,
    latency_ms: Mapping[str, float] | None = None,
) -> ReferenceComparison | None:
    """``agents``: what each played in each scenario. ``latency_ms``: how long each took for a turn."""
    ids = dict.fromkeys(id for epochs in agents.values() for id in epochs)
    scenarios = tuple(Scenario(id=id, name=id, source=f"s/{id}.yaml:1") for id in ids)
    played = {
        SampleKey(scenario=id, agent=agent, epoch=n): each
        for agent, epochs in agents.items()
        for id, conversations in epochs.items()
        for n, each in enumerate(conversations)
    }
    config = Config.model_validate({
        "agents": {agent: {"name": agent, "target": "a:b", "calls": "all"} for agent in agents},
        "prices": prices or {},
        "fault_tolerance": 1,
    })  # fmt: skip
    events: list[Event] = [started(scenarios, tuple(played), config=config)]
    for key, each in played.items():
        for event in each.events(key) if each else []:
            if latency_ms and isinstance(event, TurnFinished):
                slower = event.turn.model_copy(update={"latency_ms": latency_ms[key.agent]})
                event = event.model_copy(update={"turn": slower})
            events.append(event)
    report = build_report([*events, RunFinished(finished_at="")])
    return compare_with_reference(report, decide(report))


def only(found: ReferenceComparison | None) -> ComparedAgent:
    assert found is not None
    (agent,) = found.agents
    return agent


def number(agent: ComparedAgent, name: str) -> ComparedNumber:
    (found,) = [each for each in agent.numbers if each.name == name]
    return found


def names(agent: ComparedAgent) -> list[str]:
    return [each.name for each in agent.numbers]


# ── the verdicts of values ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.1, 0.5, MORE),
        (0.0, 0.5, SAME),
        (-0.5, -0.1, LESS),
        (-0.5, 0.0, SAME),
        (-0.1, 0.1, SAME),
    ],
)
def test_who_succeeds_more_often(low: float, high: float, verdict: ReferenceVerdict) -> None:
    agent = ComparedAgent(
        agent="y", scenarios=1, epochs=1, success=1, reference=1, change=0, low=low, high=high
    )
    assert agent.reference_verdict is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.1, 2.0, MORE),
        (1.0, 2.0, SAME),
        (0.5, 0.9, LESS),
        (0.5, 1.0, SAME),
        (0.9, 1.1, SAME),
        (None, None, SAME),
        (None, 0.5, SAME),
        (2.0, None, SAME),
    ],
)
def test_who_needs_more(low: float | None, high: float | None, verdict: ReferenceVerdict) -> None:
    found = ComparedNumber(name="cost", value=1, reference=1, low=low, high=high)
    assert found.reference_verdict is verdict


# ── who is compared ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "agents",
    [{}, {"x": {"a": [PASS]}}, {"x": {"a": [PASS]}, "y": {"b": [PASS]}}],
    ids=["nobody", "one", "nothing in common"],
)
def test_there_is_nobody_to_compare_with(agents: dict[str, Epochs]) -> None:
    assert compared(agents) is None


def test_all_others_with_the_first() -> None:
    found = compared({
        "x": {"a": [PASS], "b": [PASS]},
        "apart": {"c": [PASS]},
        "y": {"a": [PASS], "b": [PASS]},
        "b": {"b": [FAIL, FAIL], "c": [PASS]},
    })  # fmt: skip
    assert found is not None
    assert (found.reference, found.confidence) == ("x", 0.95)
    assert [(each.agent, each.scenarios, each.epochs) for each in found.agents] == [("y", 2, 2), ("b", 1, 2)]
    # One interval for the successes of each, and one for each number.
    assert found.comparisons == 2 * (1 + len(NUMBERS))
    assert found.agents[1].success == 0


# ── successes ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("before", "after", "verdict", "change", "better", "worse"),
    [
        pytest.param([PASS] * 12, [FAIL] * 12, LESS, -1.0, (), ("a",), id="worse"),
        pytest.param([FAIL] * 12, [PASS] * 12, MORE, 1.0, ("a",), (), id="better"),
        pytest.param([PASS] * 12, [PASS] * 12, SAME, 0.0, (), (), id="same"),
        pytest.param([PASS, FAIL], [PASS, PASS], SAME, 0.5, (), (), id="too few"),
        pytest.param([LOST], [PASS], SAME, None, (), (), id="nothing known"),
        pytest.param([PASS], [LOST], SAME, None, (), (), id="nothing known of the other"),
    ],
)
def test_successes(
    before: list[Played],
    after: list[Played],
    verdict: ReferenceVerdict,
    change: float | None,
    better: tuple[str, ...],
    worse: tuple[str, ...],
) -> None:
    agent = only(compared({"x": {"a": before}, "y": {"a": after}}))
    assert (agent.reference_verdict, agent.change) == (verdict, change)
    assert (agent.better_in, agent.worse_in) == (better, worse)
    assert -1 <= agent.low <= (0.0 if change is None else change) <= agent.high <= 1


def test_rates_are_means_over_scenarios() -> None:
    x = {"a": [PASS, FAIL], "b": [PASS], "c": [PASS, LOST]}
    y = {"a": [PASS, FAIL, FAIL, FAIL], "b": [FAIL], "c": [LOST, PASS]}
    agent = only(compared({"x": x, "y": y}))
    assert agent.reference == pytest.approx((0.5 + 1 + 1) / 3)
    assert agent.success == pytest.approx((0.25 + 0 + 1) / 3)
    assert agent.change == pytest.approx((0.25 + 0 + 1) / 3 - 2.5 / 3)
    assert agent.epochs == 7


def test_one_scenario_without_a_decided_epoch_leaves_the_rate_unknown() -> None:
    agent = only(compared({"x": {"a": [PASS], "b": [LOST]}, "y": {"a": [PASS], "b": [PASS]}}))
    assert (agent.reference, agent.success, agent.change) == (None, 1.0, None)


def test_missing_epochs_count_both_ways() -> None:
    known = only(compared({"x": {"a": [PASS] * 6}, "y": {"a": [PASS] * 6}}))
    lost = only(compared({"x": {"a": [PASS] * 6}, "y": {"a": [PASS] * 3 + [LOST] * 3}}))
    assert lost.low < known.low
    assert lost.epochs == 6


# ── how many epochs would decide ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("before", "after", "needed"),
    [
        pytest.param([PASS] * 12, [FAIL] * 12, False, id="decided"),
        pytest.param([PASS] * 3, [PASS] * 3, False, id="no change"),
        pytest.param([PASS, PASS], [FAIL, PASS], True, id="undecided drop"),
        pytest.param([FAIL, PASS], [PASS, PASS], True, id="undecided rise"),
        pytest.param([LOST], [PASS], False, id="no change known"),
    ],
)
def test_how_many_epochs_would_decide(before: list[Played], after: list[Played], needed: bool) -> None:
    found = only(compared({"x": {"a": before}, "y": {"a": after}}))
    assert (found.epochs_to_decide is not None) is needed
    if found.epochs_to_decide and found.change:
        # An interval shrinks with the square root of the number of epochs.
        reach = found.change - found.low if found.change > 0 else found.high - found.change
        exact = 2 * (reach / found.change) ** 2
        assert exact <= found.epochs_to_decide < exact + 1
        assert found.epochs_to_decide > 2


def test_the_longest_scenario_of_either_is_what_epochs_are_counted_from() -> None:
    few, many = [PASS, FAIL], [PASS, FAIL, PASS, FAIL, PASS, PASS]
    found = only(compared({"x": {"a": few, "b": few}, "y": {"a": many, "b": few}}))
    assert found.change
    assert found.epochs_to_decide
    exact = 6 * ((found.change - found.low) / found.change) ** 2
    assert exact <= found.epochs_to_decide < exact + 1


def test_no_realistic_number_of_epochs_decides_a_tiny_change() -> None:
    before, after = [PASS] * 100 + [FAIL] * 101, [PASS] * 101 + [FAIL] * 101
    found = only(compared({"x": {"a": before}, "y": {"a": after}}))
    assert found.change
    assert found.epochs_to_decide is None


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────

CHEAP, DEAR = {"input": 1.0, "output": 1.0}, {"input": 3.0, "output": 3.0}
CALLING = replace(PASS, calls=(ToolCall(name="pay", args={}),))
MANY = {f"s{n}": [PASS] for n in range(12)}


@pytest.mark.parametrize(
    ("x", "y", "prices", "known"),
    [
        pytest.param([PASS], [PASS], {"x": CHEAP, "y": DEAR}, ALL_NUMBERS, id="all"),
        pytest.param([PASS], [PASS], {"x": CHEAP}, NUMBERS, id="one price"),
        pytest.param(
            [FAIL], [PASS], {"x": CHEAP, "y": DEAR}, ["cost", *NUMBERS], id="the first never succeeded"
        ),
        pytest.param([PASS], [FAIL], {"x": CHEAP, "y": DEAR}, ["cost", *NUMBERS], id="the other never did"),
        pytest.param([LOST], [PASS], {"x": CHEAP, "y": DEAR}, [], id="nothing known"),
    ],
)
def test_numbers_that_are_known_of_both(
    x: list[Played], y: list[Played], prices: dict[str, Any], known: list[str]
) -> None:
    found = compared({"x": {"a": x}, "y": {"a": y}}, prices=prices)
    assert names(only(found)) == known
    assert found is not None
    assert found.comparisons == 1 + len(known)


def test_a_number_is_known_in_every_scenario_or_not_at_all() -> None:
    x, y = {"a": [PASS], "b": [PASS]}, {"a": [PASS], "b": [LOST]}
    assert names(only(compared({"x": x, "y": y}))) == []


@pytest.mark.parametrize("unknown", ["x", "y"])
def test_a_success_has_no_cost_where_successes_of_a_scenario_are_not_known(unknown: str) -> None:
    played: dict[str, Epochs] = {agent: {"a": [PASS], "b": [PASS]} for agent in "xy"}
    played[unknown] = {"a": [PASS], "b": [UNSURE]}
    assert names(only(compared(played, prices={"x": CHEAP, "y": DEAR}))) == ["cost", *NUMBERS]


def test_all_intervals_share_one_error_probability() -> None:
    prices = {"x": CHEAP, "y": DEAR}
    x, y = {"a": [PASS], "b": [PASS]}, {"a": [PASS, PASS], "b": [CALLING]}
    found = compared({"x": x, "y": y}, prices=prices)
    assert found is not None
    alpha = 0.05 / found.comparisons
    pairs = [Pair("a", Tally(1, 1, 1), Tally(2, 2, 2)), Pair("b", Tally(1, 1, 1), Tally(1, 1, 1))]
    agent = only(found)
    assert (agent.low, agent.high) == pytest.approx(compare(pairs, 1 - alpha).these_scenarios)
    sides = [
        RatioPair("a", Side((150.0,)), Side((150.0, 150.0))),
        RatioPair("b", Side((150.0,)), Side((300.0,))),
    ]
    tokens, expected = number(agent, "tokens"), ratio_of(sides, 1 - alpha / 2)
    assert (tokens.low, tokens.high) == pytest.approx((expected.low, expected.high))
    costs = [(Quotient(150e-6, 1), Quotient(450e-6, 1)), (Quotient(150e-6, 1), Quotient(900e-6, 1))]
    cost, of_costs = number(agent, COST_PER_SUCCESS), ratio_of_quotients(costs, 1 - alpha / 2)
    assert (cost.low, cost.high) == pytest.approx((of_costs.low, of_costs.high))


def test_a_number_of_one_scenario_has_no_interval() -> None:
    agent = only(compared({"x": {"a": [PASS]}, "y": {"a": [PASS]}}, prices={"x": CHEAP, "y": DEAR}))
    for name in ("cost", COST_PER_SUCCESS):
        cost = number(agent, name)
        assert cost.value == pytest.approx(3 * cost.reference)
        assert cost.ratio == pytest.approx(3)
        assert (cost.low, cost.high, cost.reference_verdict) == (None, None, SAME)


@pytest.mark.parametrize(
    ("prices", "ratio", "verdict"),
    [
        ({"x": CHEAP, "y": DEAR}, 3, MORE),
        ({"x": DEAR, "y": CHEAP}, 1 / 3, LESS),
        ({"x": DEAR, "y": DEAR}, 1, SAME),
    ],
)
def test_what_conversations_cost(prices: dict[str, Any], ratio: float, verdict: ReferenceVerdict) -> None:
    cost = number(only(compared({"x": MANY, "y": MANY}, prices=prices)), "cost")
    assert cost.ratio == pytest.approx(ratio)
    assert cost.reference_verdict is verdict
    assert cost.low is not None
    assert cost.high is not None
    assert cost.low <= ratio <= cost.high


def test_a_success_costs_what_the_failures_did_too() -> None:
    x = {"a": [PASS, PASS], "b": [PASS, PASS]}
    y = {"a": [PASS, FAIL], "b": [FAIL, PASS, LOST]}
    agent = only(compared({"x": x, "y": y}, prices={"x": CHEAP, "y": CHEAP}))
    each = 150e-6  # the tokens of a conversation, at a dollar a million
    found = number(agent, COST_PER_SUCCESS)
    assert found.reference == pytest.approx(each)
    assert found.value == pytest.approx(2 * each)
    assert found.ratio == pytest.approx(2)
    assert number(agent, "cost").ratio == pytest.approx(1)


def test_averages_are_of_conversations_and_then_of_scenarios() -> None:
    x = {"a": [PASS, PASS], "b": [CALLING]}
    y = {"a": [CALLING], "b": [PASS, CALLING, CALLING]}
    agent = only(compared({"x": x, "y": y}))
    steps, calls = number(agent, "steps"), number(agent, "tool_calls")
    assert [steps.reference, steps.value] == pytest.approx([(1 + 2) / 2, (2 + 5 / 3) / 2])
    assert [calls.reference, calls.value] == pytest.approx([1 / 2, (1 + 2 / 3) / 2])
    assert steps.ratio == pytest.approx((2 + 5 / 3) / 3)


def test_a_number_that_comes_from_nothing_has_no_ratio() -> None:
    agent = only(compared({"x": {"a": [PASS]}, "y": {"a": [CALLING]}}))
    calls = number(agent, "tool_calls")
    assert (calls.reference, calls.value, calls.ratio) == (0, 1, None)


def test_a_slower_agent_is_slower() -> None:
    agent = only(compared({"x": MANY, "y": MANY}, latency_ms={"x": 100, "y": 500}))
    latency = number(agent, "latency_ms")
    assert (latency.reference, latency.value, latency.reference_verdict) == (100, 500, MORE)
    assert number(agent, "tokens").reference_verdict is SAME


def test_more_comparisons_widen_each_interval() -> None:
    two = compared({"x": MANY, "y": MANY}, prices={"x": CHEAP, "y": DEAR})
    three = compared({"x": MANY, "y": MANY, "z": MANY}, prices={"x": CHEAP, "y": DEAR, "z": DEAR})
    assert two is not None
    assert three is not None
    assert three.comparisons == 2 * two.comparisons
    assert three.agents[0].low < two.agents[0].low
    assert (number(three.agents[0], "cost").low or 0) < (number(two.agents[0], "cost").low or 0)
