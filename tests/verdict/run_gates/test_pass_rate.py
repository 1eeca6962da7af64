"""``gates.pass_rate``: the true success rate of each scenario, by a test planned beforehand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from agenteval.core.decision import RERUN_FAILED, RESUME, GateRow
from agenteval.core.scenario import EpochRange
from agenteval.core.score import Verdict
from agenteval.verdict.epochs import EpochOutcomes
from agenteval.verdict.run_gates.gate import PlannedRun
from agenteval.verdict.run_gates.pass_rate import PASS_RATE, PassRateGate, planned_test, rule_of
from agenteval.verdict.statistics import least_epochs
from tests.support.verdict_runs import (
    CUT,
    FAIL,
    GOAL,
    LOST,
    PASS,
    Played,
    gate_rows,
    report_of,
    unclear,
    whole,
)

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
WIDE = {"at_least": 0.9, "reject_below": 0.2}


@pytest.mark.parametrize(
    ("written", "valid"),
    [
        (WIDE, True),
        ({"at_least": 1, "reject_below": 0.9}, True),
        ({"at_least": 0.9, "reject_below": 0.9}, False),
        ({"at_least": 0.8, "reject_below": 0.9}, False),
        ({"at_least": 0, "reject_below": 0.1}, False),
        ({"at_least": 1.1, "reject_below": 0.1}, False),
        ({"at_least": 1, "reject_below": 0}, False),
        ({"at_least": 1, "reject_below": 1}, False),
        ({**WIDE, "confidence": 0.5}, True),
        ({**WIDE, "confidence": 0.49}, False),
        ({**WIDE, "confidence": 1}, False),
        ({"at_least": 0.9}, False),
    ],
)
def test_which_settings_are_valid(written: Any, valid: bool) -> None:
    if valid:
        assert PassRateGate.model_validate(written).at_least == written["at_least"]
    else:
        with pytest.raises(ValidationError):
            PassRateGate.model_validate(written)


def test_the_default_confidence() -> None:
    assert PassRateGate(**WIDE).confidence == 0.95
    rule = rule_of(PassRateGate(**WIDE, confidence=0.9), 4)
    assert (rule.at_least, rule.reject_below, rule.confidence, rule.scenarios) == (0.9, 0.2, 0.9, 4)


@pytest.mark.parametrize(("least", "most", "planned"), [(3, 20, (3, 20)), (0, 0, (1, 1)), (5, 5, (5, 5))])
def test_the_planned_test(least: int, most: int, planned: tuple[int, int]) -> None:
    test = planned_test(PassRateGate(**WIDE), EpochOutcomes((), least, most), 7)
    assert (test.min_epochs, test.max_epochs) == planned
    assert test.rule.scenarios == 7


def row(epochs: Sequence[Played | None], most: int | None = None, gate: Any = WIDE) -> GateRow:
    run = {"epochs": {"a": EpochRange(min=2, max=most)}} if most else {}
    (found,) = gate_rows(report_of({"a": epochs}, gates={"pass_rate": gate}, run=run))
    return found


@pytest.mark.parametrize(
    ("epochs", "most", "verdict", "value", "resolution"),
    [
        ([PASS] * 4, None, PASSED, 1.0, None),
        ([FAIL] * 3, None, FAILED, 0.0, None),
        ([PASS] * 9 + [FAIL], None, PASSED, 0.9, None),
        # Too few epochs to pass even without a failure.
        ([PASS], None, OPEN, 1.0, "epochs: 2"),
        ([LOST], None, OPEN, None, "epochs: 2"),
        # The run ended early.
        ([PASS, FAIL], 20, OPEN, 0.5, RESUME),
        # Epochs that are missing could decide.
        ([PASS, PASS, LOST, LOST], None, OPEN, 1.0, RERUN_FAILED),
        ([PASS, PASS, None, None], None, OPEN, 1.0, RERUN_FAILED),
        ([LOST] * 4, None, OPEN, None, RERUN_FAILED),
        ([CUT] * 4, None, OPEN, None, RERUN_FAILED),
    ],
)
def test_the_row_of_a_scenario(
    epochs: list[Played | None], most: int | None, verdict: Verdict, value: Any, resolution: str | None
) -> None:
    found = row(epochs, most)
    assert (found.verdict, found.value, found.bound) == (verdict, value, 0.9)
    assert (found.name, found.scenario, found.agent) == ("pass_rate", "a", "bot")
    if resolution is not None:
        assert found.resolution == resolution


def test_more_epochs_would_decide_at_this_rate() -> None:
    found = row([PASS, FAIL])
    assert found.verdict is OPEN
    assert found.resolution.startswith("epochs: ")
    assert int(found.resolution.removeprefix("epochs: ")) > 2


def test_a_rate_between_both_bounds_may_stay_open() -> None:
    near = {"at_least": 0.55, "reject_below": 0.45}
    found = row([PASS, FAIL] * 30, gate=near)
    assert found.verdict is OPEN
    assert not found.resolution.startswith("agenteval")


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", text)


def test_the_numbers_of_an_open_row() -> None:
    more = row([PASS, FAIL])
    total = int(more.resolution.removeprefix("epochs: "))
    assert numbers(more.basis) == ["1", "2", str(total - 2)]
    assert numbers(row([PASS, FAIL], 20).basis) == ["1", "2"]
    assert numbers(row([PASS, PASS, LOST, LOST]).basis) == ["2", "2", "2"]
    assert numbers(row([LOST] * 4).basis) == ["0", "0", "4"]
    assert numbers(row([PASS]).basis) == ["1", "1", "2", "1"]
    near = row([PASS, FAIL] * 30, gate={"at_least": 0.55, "reject_below": 0.45})
    assert "None" not in near.basis


def test_a_decided_row_needs_no_further_run() -> None:
    for epochs in ([PASS] * 4, [FAIL] * 3):
        found = row(epochs, 20)
        assert found.verdict is not OPEN
        assert found.resolution != RESUME


def test_epochs_are_counted() -> None:
    assert row([PASS] * 4).basis.startswith("4 of 4 ")
    assert row([PASS, PASS, FAIL, LOST]).basis.startswith("2 of 3 ")
    replaced = row([LOST, PASS, PASS, PASS], 3)
    assert replaced.value == 1.0


def test_a_goal_that_was_ruled_out_is_a_missing_epoch() -> None:
    found = row([PASS, PASS, whole(unclear(GOAL)), whole(unclear(GOAL))])
    assert (found.verdict, found.value) == (OPEN, 1.0)


def test_each_scenario_has_a_row_by_the_number_of_scenarios() -> None:
    """With more scenarios, each must be rejected with more certainty."""
    gates = {"pass_rate": {"at_least": 0.9, "reject_below": 0.5}}
    alone = gate_rows(report_of({"a": [FAIL] * 3 + [PASS] * 3}, gates=gates))
    many = gate_rows(report_of({f"s{n}": [FAIL] * 3 + [PASS] * 3 for n in range(40)}, gates=gates))
    assert [each.verdict for each in alone] == [FAILED]
    assert {each.verdict for each in many} == {OPEN}
    assert len({each.scenario for each in many}) == 40


def test_what_the_gate_is() -> None:
    assert (PASS_RATE.name, PASS_RATE.replaces_every_sample) == ("pass_rate", True)
    assert PASS_RATE.decides_each(PassRateGate(**WIDE)) is True
    assert PASS_RATE.reads_baseline(PassRateGate(**WIDE)) is False


@pytest.mark.parametrize(
    ("gate", "repeats", "applies"),
    [
        (WIDE, True, True),
        (WIDE, False, False),
        ({"at_least": 0.9, "reject_below": 0.04}, False, True),  # one epoch is enough
        ({"at_least": 0.9, "reject_below": 0.06}, False, False),
    ],
)
def test_recorded_conversations_that_are_no_epochs(gate: Any, repeats: bool, applies: bool) -> None:
    settings = PassRateGate.model_validate(gate)
    assert (least_epochs(rule_of(settings, 1)) > 1) is not applies or repeats
    assert (PASS_RATE.unapplied(settings, repeats=repeats) == "") is applies


def estimated(*epochs: tuple[int, int], gate: Any = WIDE) -> Any:
    planned = PlannedRun([EpochRange(min=least, max=most) for least, most in epochs], "w")
    return PASS_RATE.estimate_error_rates(PassRateGate.model_validate(gate), planned)


def test_the_error_rates_of_the_gate() -> None:
    found = estimated((20, 20))
    assert (found.gate, found.where, found.bad) == ("pass_rate", "w", 0.2)
    assert found.good == pytest.approx(0.95)
    assert found.false_green <= 0.05
    assert found.false_red <= 0.05
    assert found.green > 0.9
    assert (found.is_uninformative, found.advice) == (False, "")


def test_what_would_help_a_gate_that_cannot_pass() -> None:
    assert estimated((1, 1)).green == 0
    assert " 2 epochs" in estimated((1, 1)).advice
    hard = {"at_least": 0.9, "reject_below": 0.7}
    fixed, ranged = estimated((9, 9), gate=hard), estimated((3, 9), gate=hard)
    assert "epochs: " in fixed.advice
    assert "{min: 3, max: " in ranged.advice
    assert "{min: " not in fixed.advice
    assert "{min: 2, max: " in estimated((3, 9), (2, 9), gate=hard).advice
