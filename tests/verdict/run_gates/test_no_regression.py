"""``gates.no_regression``: no worse than the baseline run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from agenteval.core.decision import GateRow
from agenteval.core.event import Baseline
from agenteval.core.scenario import EpochRange
from agenteval.core.score import Verdict
from agenteval.verdict.epochs import EpochOutcomes
from agenteval.verdict.run_gates.gate import BASELINE, PlannedRun
from agenteval.verdict.run_gates.no_regression import (
    NO_REGRESSION,
    SCENARIO_MARGIN,
    NoRegressionGate,
    pairs_of,
)
from agenteval.verdict.statistics import Tally
from tests.support.verdict_runs import FAIL, LOST, PASS, UNSURE, Played, gate_rows, report_of

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("written", "valid"),
    [
        ({"margin": 0.05}, True),
        ({"margin": 0}, False),
        ({"margin": 1}, False),
        ({"margin": 0.1, "scenario_margin": 1}, True),
        ({"margin": 0.1, "scenario_margin": 0}, False),
        ({}, False),
    ],
)
def test_which_settings_are_valid(written: Any, valid: bool) -> None:
    if valid:
        found = NoRegressionGate.model_validate(written)
        assert found.scenario_margin == written.get("scenario_margin", SCENARIO_MARGIN)
    else:
        with pytest.raises(ValidationError):
            NoRegressionGate.model_validate(written)


def baseline(outcomes: Mapping[str, Mapping[str, Sequence[bool | None]]], **more: Any) -> Baseline:
    made = {agent: {id: tuple(each) for id, each in known.items()} for agent, known in outcomes.items()}
    return Baseline(run_id="r0", outcomes=made, **more)


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────

TWO = EpochOutcomes((True, False), 2, 2)


@pytest.mark.parametrize(
    ("before", "pairings", "paired"),
    [
        ({"x": {"a": [True]}}, [("a", "x")], [("a", "x")]),
        ({"x": {"a": [True]}}, [("a", "y")], [("a", "y")]),  # each run has one agent
        ({"x": {"a": [True]}}, [("b", "x")], []),
        ({"x": {"a": [True]}}, [("a", "x"), ("a", "y")], [("a", "x")]),
        ({"x": {"a": [True]}, "y": {}}, [("a", "z")], []),
        (
            {"x": {"a": [True]}, "y": {"b": [True]}},
            [("a", "x"), ("a", "y"), ("b", "y")],
            [("a", "x"), ("b", "y")],
        ),
        ({}, [("a", "x")], []),
    ],
)
def test_scenarios_that_both_runs_have(before: Any, pairings: Any, paired: Any) -> None:
    found = pairs_of(baseline(before), dict.fromkeys(pairings, TWO))
    assert [pairing for pairing, _ in found.values()] == paired


def test_only_epochs_fixed_beforehand_are_compared() -> None:
    outcomes = EpochOutcomes((True, False, True), 2, 9)
    ((_, pair),) = pairs_of(baseline({"x": {"a": [True, None]}}), {("a", "x"): outcomes}).values()
    assert (pair.before, pair.after) == (Tally(1, 1, 2), Tally(1, 2, 2))


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────


def rows(
    before: Mapping[str, Sequence[bool | None]],
    epochs: Mapping[str, Sequence[Played | None]],
    *,
    gate: Any = None,
    gates: Any = None,
    agents: Sequence[str] = ("bot",),
    changed: Any = None,
    gone: Sequence[str] = (),
) -> list[GateRow]:
    made = baseline({"bot": before}, changed={"bot": changed or {}}, gone=tuple(gone))
    config = {"no_regression": gate or {"margin": 0.2}, **(gates or {})}
    found = gate_rows(report_of(epochs, gates=config, run={"baseline": made}, agents=agents))
    return [row for row in found if row.name == "no_regression"]


def by_scenario(found: list[GateRow]) -> dict[str, Verdict]:
    return {row.scenario: row.verdict for row in found}


def test_nothing_to_compare_with() -> None:
    (row,) = gate_rows(report_of({"a": [PASS]}, gates={"no_regression": {"margin": 0.2}}))
    assert (row.verdict, row.value, row.scenario, row.resolution) == (OPEN, None, "", BASELINE)
    (row,) = rows({"b": [True]}, {"a": [PASS]})
    assert (row.verdict, row.value, row.resolution) == (OPEN, None, BASELINE)


@pytest.mark.parametrize(
    ("before", "epochs", "verdict", "value"),
    [
        ([True] * 30, [PASS] * 30, PASSED, 0.0),
        ([True] * 20, [FAIL] * 20, FAILED, 1.0),
        ([False] * 30, [PASS] * 30, PASSED, -1.0),
        ([True] * 4, [PASS, PASS, PASS, FAIL], OPEN, 0.25),
        ([True], [PASS], OPEN, 0.0),
        ([True] * 30, [LOST] * 30, OPEN, None),
    ],
)
def test_the_row_of_the_suite(before: Any, epochs: Any, verdict: Verdict, value: float | None) -> None:
    found = rows({"a": before}, {"a": epochs})[0]
    assert (found.verdict, found.scenario, found.bound) == (verdict, "", "below 0.2")
    assert found.value == (None if value is None else pytest.approx(value))
    assert bool(found.resolution) is (verdict is OPEN)


def test_a_scenario_that_surely_dropped_has_a_row() -> None:
    found = rows({"a": [True] * 20, "b": [True] * 20}, {"a": [FAIL] * 20, "b": [PASS] * 20})
    assert by_scenario(found) == {"": FAILED, "a": FAILED}
    dropped = found[1]
    assert (dropped.value, dropped.agent) == (1.0, "bot")
    assert "0 of 20" in dropped.basis
    assert "20 of 20" in dropped.basis


def test_errored_epochs_of_a_drop_are_counted() -> None:
    before = {"a": [True] * 20, "b": [True] * 20}
    lost = rows(before, {"a": [FAIL] * 18 + [LOST, LOST], "b": [PASS] * 20})
    none = rows(before, {"a": [FAIL] * 20, "b": [PASS] * 20})
    assert ["2 errored" in found[1].basis for found in (lost, none)] == [True, False]
    assert "0 of 18" in lost[1].basis


def test_a_scenario_that_perhaps_dropped_has_an_open_row() -> None:
    before = {f"s{n}": [True] * 5 for n in range(40)}
    epochs: dict[str, list[Played | None]] = {id: [PASS] * 5 for id in before}
    epochs["s0"] = [FAIL] * 5
    found = rows(before, epochs)
    assert by_scenario(found) == {"": OPEN, "s0": OPEN}
    assert found[1].bound == "no drop above 0.3"
    wide = rows(before, epochs, gate={"margin": 0.2, "scenario_margin": 1})
    assert by_scenario(wide) == {"": PASSED}


SAME: dict[str, list[Any]] = {"same": [PASS] * 30}
BEFORE = {"same": [True] * 30}


@pytest.mark.parametrize(
    ("epochs", "verdict", "value"),
    [
        ([PASS, PASS], PASSED, "2 of 2"),
        ([PASS, FAIL], FAILED, "1 of 2"),
        ([LOST], OPEN, "0 of 1"),
        ([PASS, LOST], PASSED, "1 of 2"),
        ([PASS, UNSURE], PASSED, "1 of 2"),
        ([FAIL, LOST], FAILED, "0 of 2"),
        ([None], OPEN, "0 of 1"),
        ([PASS, None], PASSED, "1 of 2"),
    ],
)
def test_a_scenario_that_the_baseline_does_not_have_stands_on_its_own_checks(
    epochs: list[Any], verdict: Verdict, value: str
) -> None:
    found = rows(BEFORE, {**SAME, "new": epochs})
    assert by_scenario(found) == {"": PASSED, "new": verdict}
    assert (found[1].value, found[1].agent) == (value, "bot")
    assert "new" in found[1].basis
    assert "new" in found[0].basis


@pytest.mark.parametrize(
    ("gates", "verdict"),
    [
        ({}, FAILED),
        ({"pass_rate": {"at_least": 0.9, "reject_below": 0.2}}, PASSED),
        ({"pass_hat_k": {"k": 1, "at_least": 0.1}}, PASSED),
        ({"pass_hat_k": {"k": 1, "at_least": 0.1, "over": "suite"}}, FAILED),
        ({"robustness": 0.9}, FAILED),
    ],
)
def test_unless_another_gate_examines_it(gates: Any, verdict: Verdict) -> None:
    found = rows(BEFORE, {**SAME, "new": [PASS, FAIL]}, gates=gates)
    assert by_scenario(found)["new"] is verdict


def test_what_is_named_of_changed_and_removed_scenarios() -> None:
    found = rows(BEFORE, {**SAME, "edited": [PASS]}, changed={"edited": "turns differ"}, gone=["old"])
    assert "turns differ" in found[1].basis
    assert "edited" in found[0].basis
    assert "old" in found[0].basis
    many = rows(BEFORE, {**SAME, **{f"n{n}": [PASS] for n in range(9)}})
    assert [f"n{n}" in many[0].basis for n in range(9)] == [True] * 8 + [False]


def test_what_would_decide() -> None:
    (row,) = rows({"a": [True] * 4}, {"a": [PASS, PASS, PASS, PASS]})
    assert row.resolution.startswith("epochs: ")
    assert int(row.resolution.split()[1]) > 4
    assert row.resolution.split()[1] in row.basis
    assert "None" not in row.basis


def test_scenarios_that_failed_in_every_epoch_are_counted() -> None:
    before = {"a": [True] * 20, "b": [True] * 20}
    now = rows(before, {"a": [FAIL] * 20, "b": [PASS] * 20})[0]
    fine = rows(before, {"a": [PASS] * 20, "b": [PASS] * 20})[0]
    assert ["1 of 2 " in found.basis for found in (now, fine)] == [True, False]
    always = rows({"a": [False] * 20, "b": [True] * 20}, {"a": [FAIL] * 20, "b": [PASS] * 20})[0]
    assert "as before" in always.basis
    assert "as before" not in now.basis


def test_what_the_gate_is() -> None:
    gate = NoRegressionGate(margin=0.1)
    assert (NO_REGRESSION.name, NO_REGRESSION.replaces_every_sample) == ("no_regression", True)
    assert (NO_REGRESSION.reads_baseline(gate), NO_REGRESSION.decides_each(gate)) == (True, False)
    assert bool(NO_REGRESSION.unapplied(gate, repeats=True)) is True
    assert bool(NO_REGRESSION.unapplied(gate, repeats=False)) is True


@pytest.mark.parametrize(
    ("margin", "good", "bad"), [(0.05, 0.95, 0.85), (0.2, 0.95, 0.55), (0.49, 0.98, 0.0)]
)
def test_the_error_rates_of_the_gate(margin: float, good: float, bad: float) -> None:
    planned = PlannedRun([EpochRange(min=30, max=50), EpochRange(min=20, max=20)], "w")
    found = NO_REGRESSION.estimate_error_rates(NoRegressionGate(margin=margin), planned)
    assert (found.good, found.bad) == (pytest.approx(good), pytest.approx(bad, abs=1e-9))
    assert (found.gate, found.where, found.bad_where) == ("no_regression", "w", "everywhere")
    assert found.false_red is not None
    assert found.green is not None
    assert found.false_green is not None
    assert found.false_red <= 0.1
    assert found.false_green <= 0.1
    assert bool(found.advice) is found.is_uninformative


def test_the_fewest_epochs_of_any_scenario_are_assumed() -> None:
    gate = NoRegressionGate(margin=0.2)

    def green(*epochs: int) -> Any:
        planned = PlannedRun([EpochRange(min=n, max=n) for n in epochs], "w")
        return NO_REGRESSION.estimate_error_rates(gate, planned).green

    assert green(5, 40) == green(5, 5)
    assert green(40, 40) > green(5, 5)
