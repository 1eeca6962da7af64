"""``gates.pass_hat_k``: the probability that k epochs in a row succeed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from agenteval.core.decision import RERUN_FAILED, GateRow
from agenteval.core.scenario import EpochRange
from agenteval.core.score import Verdict
from agenteval.verdict.run_gates.gate import PlannedRun
from agenteval.verdict.run_gates.pass_hat_k import PASS_HAT_K, PassHatKGate
from tests.support.verdict_runs import FAIL, LOST, PASS, Played, gate_rows, report_of

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("written", "valid"),
    [
        ({"k": 1, "at_least": 1}, True),
        ({"k": 0, "at_least": 1}, False),
        ({"k": 2, "at_least": 0}, False),
        ({"k": 2, "at_least": 1.1}, False),
        ({"k": 2, "at_least": 0.5, "over": "suite"}, True),
        ({"k": 2, "at_least": 0.5, "over": "agent"}, False),
    ],
)
def test_which_settings_are_valid(written: Any, valid: bool) -> None:
    if valid:
        assert PassHatKGate.model_validate(written).over == written.get("over", "scenario")
    else:
        with pytest.raises(ValidationError):
            PassHatKGate.model_validate(written)


def rows(
    epochs: Mapping[str, Sequence[Played | None]],
    k: int,
    at_least: float,
    over: str = "scenario",
    **more: Any,
) -> list[GateRow]:
    gates = {"pass_hat_k": {"k": k, "at_least": at_least, "over": over}}
    return gate_rows(report_of(epochs, gates=gates, **more))


HALF = [PASS, PASS, FAIL, FAIL]


@pytest.mark.parametrize(
    ("epochs", "k", "at_least", "verdict", "value"),
    [
        (HALF, 1, 0.5, PASSED, 0.5),
        (HALF, 1, 0.51, FAILED, 0.5),
        (HALF, 2, 1 / 6, PASSED, 1 / 6),  # one pair of six
        (HALF, 2, 0.17, FAILED, 1 / 6),
        (HALF, 3, 0.01, FAILED, 0.0),
        (HALF, 4, 0.01, FAILED, 0.0),
        ([PASS] * 4, 4, 1.0, PASSED, 1.0),
        ([PASS], 1, 1.0, PASSED, 1.0),
        # Missing epochs count at their worst and at their best.
        ([PASS, PASS, PASS, LOST], 1, 0.75, PASSED, 1.0),
        ([PASS, PASS, PASS, LOST], 1, 0.76, OPEN, 1.0),
        ([PASS, PASS, PASS, None], 1, 0.76, OPEN, 1.0),
        ([FAIL, FAIL, PASS, LOST], 1, 0.51, FAILED, 1 / 3),
        ([FAIL, FAIL, PASS, LOST], 1, 0.5, OPEN, 1 / 3),
    ],
)
def test_the_row_of_a_scenario(
    epochs: list[Played | None], k: int, at_least: float, verdict: Verdict, value: float
) -> None:
    (row,) = rows({"a": epochs}, k, at_least)
    assert (row.verdict, row.bound) == (verdict, at_least)
    assert row.value == pytest.approx(value)
    assert (row.name, row.scenario, row.agent) == ("pass_hat_k", "a", "bot")
    assert row.resolution == (RERUN_FAILED if verdict is OPEN else "")


@pytest.mark.parametrize("over", ["scenario", "suite"])
def test_too_few_epochs(over: str) -> None:
    (row,) = rows({"a": [PASS, PASS]}, 3, 0.5, over)
    assert (row.verdict, row.value, row.resolution) == (OPEN, None, "epochs: 3")
    assert " 2 epochs" in row.basis


def test_the_suite_has_the_mean_of_its_scenarios() -> None:
    epochs = {"a": [PASS] * 4, "b": HALF}
    for at_least, verdict in {0.75: PASSED, 0.76: FAILED}.items():
        (row,) = rows(epochs, 1, at_least, "suite")
        assert (row.value, row.verdict, row.scenario, row.agent) == (0.75, verdict, "", "")
    (row,) = rows({**epochs, "c": [PASS, PASS, PASS, LOST]}, 1, 0.8, "suite")
    assert (row.verdict, row.resolution) == (OPEN, RERUN_FAILED)
    assert [each.scenario for each in rows(epochs, 1, 0.5)] == ["a", "b"]


def test_the_scenario_with_the_fewest_epochs_limits_the_suite() -> None:
    (row,) = rows({"a": [PASS] * 4, "b": [PASS] * 2}, 3, 0.5, "suite")
    assert (row.verdict, row.value) == (OPEN, None)
    assert " 2 epochs" in row.basis


@pytest.mark.parametrize("over", ["scenario", "suite"])
def test_only_epochs_fixed_beforehand_count(over: str) -> None:
    run = {"epochs": {"a": EpochRange(min=2, max=9)}}
    (row,) = rows({"a": HALF}, 2, 0.9, over, run=run)
    assert (row.verdict, row.value) == (PASSED, 1.0)


def test_what_the_gate_is() -> None:
    each, mean = PassHatKGate(k=1, at_least=1), PassHatKGate(k=1, at_least=1, over="suite")
    assert (PASS_HAT_K.name, PASS_HAT_K.replaces_every_sample) == ("pass_hat_k", True)
    assert [PASS_HAT_K.decides_each(each), PASS_HAT_K.decides_each(mean)] == [True, False]


@pytest.mark.parametrize(
    ("k", "repeats", "applies"), [(1, False, True), (2, False, False), (2, True, True), (1, True, True)]
)
def test_recorded_conversations_that_are_no_epochs(k: int, repeats: bool, applies: bool) -> None:
    assert (PASS_HAT_K.unapplied(PassHatKGate(k=k, at_least=1), repeats=repeats) == "") is applies


def estimated(k: int, at_least: float, *epochs: int, over: Any = "scenario") -> Any:
    planned = PlannedRun([EpochRange(min=n, max=n + 5) for n in epochs], "w")
    return PASS_HAT_K.estimate_error_rates(PassHatKGate(k=k, at_least=at_least, over=over), planned)


@pytest.mark.parametrize("over", ["scenario", "suite"])
def test_error_rates_of_too_few_epochs_are_unknown(over: Any) -> None:
    found = estimated(3, 0.5, 5, 2, over=over)
    assert (found.false_red, found.false_green, found.green) == (None, None, None)
    assert re.findall(r"`epochs`.*?(\d)", found.advice) == ["3"]
    assert estimated(3, 0.5, 5, 3, over=over).green is not None


def test_the_error_rates_of_one_epoch_that_must_succeed() -> None:
    found = estimated(1, 1.0, 1)
    assert found.green == pytest.approx(0.95)
    assert found.false_red == pytest.approx(0.05)
    assert found.false_green == pytest.approx(0.7)
    assert (found.good, found.bad, found.where, bool(found.advice)) == (0.95, 0.7, "w", True)
    suite = estimated(1, 1.0, 1, over="suite")
    assert (suite.green, suite.false_red, suite.false_green) == (
        pytest.approx(0.95),
        pytest.approx(0.05),
        pytest.approx(0.7),
    )
    assert estimated(1, 0.8, 60, over="suite").advice == ""
    assert bool(suite.advice) is True


def test_the_mean_has_other_error_rates_than_each_scenario() -> None:
    each, mean = estimated(1, 0.8, 5, 5), estimated(1, 0.8, 5, 5, over="suite")
    assert mean.green > each.green
    assert "suite" in mean.gate
    assert "scenario" in each.gate
    assert estimated(2, 1.0, 2, over="suite").false_green == pytest.approx(0.49)


def test_missing_epochs_are_counted() -> None:
    (some,) = rows({"a": [PASS, PASS, LOST, LOST]}, 1, 0.5)
    (none,) = rows({"a": [PASS, PASS]}, 1, 0.5)
    assert "2 missing" in some.basis
    assert "missing" not in none.basis
