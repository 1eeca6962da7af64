"""How often the gates of a planned run will be wrong: which have a row, and by which numbers of epochs."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.config import Config
from agenteval.core.decision import EVERY_SAMPLE
from agenteval.core.plan import Plan
from agenteval.core.scenario import EpochRange, SampleKey, Scenario, ThresholdRule
from agenteval.scoring import metrics
from agenteval.verdict.gate_error_rates import (
    configured_gate_error_rates,
    describe_error_rates,
    every_sample_error_rates,
    gate_error_rates,
)
from agenteval.verdict.run_gates.error_rates import BAD, GOOD
from agenteval.verdict.statistics import CountRule, error_rates
from tests.support.plans import plan_for

PASS_RATE = {"pass_rate": {"at_least": 0.9, "reject_below": 0.6}}
SHARE = {"output_accuracy": 0.9}
GOALS = "thresholds.goal_completion"


def planned(
    epochs: int = 3,
    scenarios: int = 1,
    *,
    scenario: dict[str, Any] | None = None,
    ranges: dict[str, EpochRange] | None = None,
    lines: dict[str, int] | None = None,
    **config: Any,
) -> Plan:
    settings = {"agent": {"name": "bot", "target": "a:b"}, "metrics": ["goal_completion"], **config}
    chosen = Config.model_validate(settings).model_copy(update={"source": "c.yaml", "lines": lines or {}})
    suite = [Scenario(id=f"s{n}", goal="g", **(scenario or {})) for n in range(scenarios)]
    keys = [SampleKey(scenario=each.id, agent="bot", epoch=n) for each in suite for n in range(epochs)]
    built_in = metrics.built_in_metrics()
    return plan_for(chosen, suite, keys, metrics=built_in, judged=("goal_completion",), epochs=ranges)


@pytest.mark.parametrize(
    ("config", "gates", "configured"),
    [
        ({}, [EVERY_SAMPLE], []),
        ({"gates": PASS_RATE}, ["pass_rate"], ["pass_rate"]),
        ({"gates": SHARE}, [EVERY_SAMPLE, "output_accuracy"], ["output_accuracy"]),
        ({"thresholds": {"goal_completion": 0.8}}, [EVERY_SAMPLE, GOALS], []),
        (
            {"gates": PASS_RATE, "thresholds": {"goal_completion": 0.8}},
            ["pass_rate", GOALS],
            ["pass_rate"],
        ),
        ({"thresholds": {"helpfulness": 3}}, [EVERY_SAMPLE], []),
    ],
)
def test_which_gates_have_a_row(config: dict[str, Any], gates: list[str], configured: list[str]) -> None:
    plan = planned(**config)
    assert [row.gate for row in gate_error_rates(plan)] == gates
    assert [row.gate for row in configured_gate_error_rates(plan)] == configured


def test_every_sample_is_as_often_red_as_one_of_them_fails() -> None:
    found = every_sample_error_rates([3, 2])
    assert found.false_red == pytest.approx(1 - GOOD**5)
    assert found.green == pytest.approx(GOOD**5)
    assert found.false_green == pytest.approx(BAD**2)
    assert (found.gate, found.where) == (EVERY_SAMPLE, "default")
    assert gate_error_rates(planned(3))[0] == every_sample_error_rates([3])
    assert gate_error_rates(planned(2, 3))[0] == every_sample_error_rates([2, 2, 2])


def test_advice_is_given_where_chance_decides() -> None:
    assert "pass_rate" in every_sample_error_rates([10]).advice
    assert every_sample_error_rates([1]).is_uninformative


def test_epochs_that_a_gate_may_add_do_not_count_for_every_sample() -> None:
    ranged = planned(2, gates=SHARE, ranges={"s0": EpochRange(min=2, max=8)})
    assert gate_error_rates(ranged)[0] == every_sample_error_rates([2])


@pytest.mark.parametrize(
    ("at_least", "epochs", "needed"), [(0.8, 3, 3), (0.5, 4, 2), (0.75, 4, 3), (0.76, 4, 4), (1.0, 2, 2)]
)
def test_a_share_of_goals_is_a_count(at_least: float, epochs: int, needed: int) -> None:
    found = gate_error_rates(planned(epochs, thresholds={"goal_completion": at_least}))[1]
    rates = error_rates([CountRule(needed, epochs)], good=GOOD, bad=BAD)
    assert (found.false_red, found.false_green, found.green) == (
        rates.false_red,
        rates.false_green,
        rates.green_when_good,
    )


def test_a_threshold_that_nothing_may_miss_has_no_row() -> None:
    plan = planned(thresholds={"goal_completion": 0})
    assert [row.gate for row in gate_error_rates(plan)] == [EVERY_SAMPLE]


def test_where_the_threshold_on_goals_stands() -> None:
    found = gate_error_rates(
        planned(thresholds={"goal_completion": 0.8}, lines={"thresholds.goal_completion": 7})
    )[1]
    assert found.where == "c.yaml:7"
    assert found.is_uninformative is bool(found.advice)


def test_a_threshold_of_a_scenario_alone() -> None:
    own = {"thresholds": {"goal_completion": ThresholdRule(at_least=0.8)}}
    row = gate_error_rates(planned(scenario=own))[1]
    assert (row.gate, row.where) == (GOALS, "default")


def test_a_plan_without_scenarios() -> None:
    assert configured_gate_error_rates(planned(scenarios=0)) == ()


def test_each_row_is_a_sentence() -> None:
    rows = [every_sample_error_rates([3]), every_sample_error_rates([9])]
    assert describe_error_rates(rows) == tuple(row.sentence for row in rows)
    assert describe_error_rates([]) == ()
