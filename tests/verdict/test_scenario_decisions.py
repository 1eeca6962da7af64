"""What a scenario comes to: by its samples, its own gate rows, and the run around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import GateRow, ScenarioDecision
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Severity, Verdict
from agenteval.core.trajectory import StopReason
from agenteval.verdict.sample_decisions import decide_samples
from agenteval.verdict.scenario_decisions import RunEvidence, decide_scenario
from tests.support.verdict_runs import (
    CUT,
    FAIL,
    LOST,
    PASS,
    UNSURE,
    Played,
    finding,
    lost,
    only_scenario,
    report_of,
    whole,
)

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
PAIR = ("a", "bot")
RATE = {"pass_rate": {"at_least": 0.9, "reject_below": 0.2}}


def row(verdict: Verdict, *, metric: str = "", **more: Any) -> GateRow:
    fields = {"value": 0.5, "bound": 0.9, "basis": "b", "where": "w", **more}
    return GateRow("pass_rate", verdict=verdict, metric=metric, scenario="a", agent="bot", **fields)


def decided(
    epochs: Sequence[Played | None],
    *rows: GateRow,
    tolerates: bool = False,
    is_lost: bool = False,
    counted: Sequence[int] = (),
    is_open: bool = False,
    **config: Any,
) -> ScenarioDecision:
    report = report_of({"a": epochs}, **config)
    run = RunEvidence(
        report=report,
        samples=decide_samples(report),
        rows={PAIR: rows} if rows else {},
        counted={SampleKey(scenario="a", agent="bot", epoch=n) for n in counted},
        lost={PAIR} if is_lost else set(),
        tolerates_losses=tolerates,
        is_open_for_all=is_open,
    )
    return decide_scenario(only_scenario(report), run)


@pytest.mark.parametrize(
    ("epochs", "more", "verdict"),
    [
        ([PASS, PASS], {}, PASSED),
        ([PASS, FAIL], {}, FAILED),
        ([PASS, UNSURE], {}, OPEN),
        ([FAIL, UNSURE], {}, FAILED),
        ([PASS, None], {}, OPEN),
        ([PASS, LOST], {}, OPEN),
        # Losses that are tolerated.
        ([PASS, LOST], {"tolerates": True}, PASSED),
        ([FAIL, LOST], {"tolerates": True}, FAILED),
        ([LOST, LOST], {"tolerates": True}, OPEN),
        ([PASS, LOST], {"tolerates": True, "is_lost": True}, OPEN),
        ([PASS, PASS], {"tolerates": True, "is_lost": True}, PASSED),
        # Failures that a share counts.
        ([FAIL, PASS], {"counted": [0]}, PASSED),
        ([FAIL, FAIL], {"counted": [0]}, FAILED),
        ([FAIL, FAIL], {"counted": [0, 1]}, PASSED),
    ],
)
def test_a_scenario_by_its_samples(epochs: list[Played | None], more: Any, verdict: Verdict) -> None:
    assert decided(epochs, **more).verdict is verdict


@pytest.mark.parametrize(
    ("epochs", "rows", "verdict"),
    [
        ([PASS], [row(PASSED)], PASSED),
        ([PASS], [row(FAILED)], FAILED),
        ([PASS], [row(OPEN)], OPEN),
        ([PASS], [row(PASSED), row(OPEN)], OPEN),
        ([PASS], [row(OPEN), row(FAILED)], FAILED),
        ([FAIL], [row(PASSED)], FAILED),
        ([UNSURE], [row(FAILED)], FAILED),
    ],
)
def test_a_scenario_and_its_rows(epochs: list[Played], rows: list[GateRow], verdict: Verdict) -> None:
    assert decided(epochs, *rows).verdict is verdict


@pytest.mark.parametrize(
    ("epochs", "rows", "more", "verdict"),
    [
        # With gates over repeated runs, samples may fail.
        ([PASS, FAIL], [], {}, PASSED),
        ([FAIL, FAIL], [], {}, PASSED),
        ([PASS, FAIL], [row(FAILED)], {}, FAILED),
        ([PASS, FAIL], [row(OPEN)], {}, OPEN),
        ([PASS, UNSURE], [], {}, PASSED),
        ([UNSURE, UNSURE], [], {}, OPEN),
        ([PASS, LOST], [], {}, PASSED),
        ([LOST], [], {}, OPEN),
        ([PASS, LOST], [], {"is_lost": True}, OPEN),
        # What was planned has to be run.
        ([PASS, None], [], {}, OPEN),
        ([PASS, CUT], [], {}, OPEN),
        ([PASS, lost(stop=StopReason.BUDGET)], [], {}, OPEN),
        ([PASS, lost(stop=StopReason.INTERRUPTED)], [], {}, OPEN),
        # Nothing tolerates what is critical.
        ([PASS, whole(finding(Severity.CRITICAL))], [], {}, FAILED),
        ([whole(finding(Severity.CRITICAL)), None], [], {}, FAILED),
        ([PASS, whole(finding(Severity.HIGH))], [], {"fail_on_severity": "high"}, PASSED),
        ([PASS, whole(finding(Severity.CRITICAL))], [], {"fail_on_severity": "none"}, PASSED),
        # A gate over all scenarios that is open leaves failures open, unless the scenario has its own.
        ([PASS, FAIL], [], {"is_open": True}, OPEN),
        ([PASS, PASS], [], {"is_open": True}, PASSED),
        ([PASS, FAIL], [row(PASSED)], {"is_open": True}, PASSED),
        ([PASS, FAIL], [row(PASSED, metric="stars")], {"is_open": True}, OPEN),
        ([PASS, FAIL], [row(OPEN), row(PASSED)], {"is_open": True}, OPEN),
    ],
)
def test_a_scenario_that_is_repeated(
    epochs: list[Played | None], rows: list[GateRow], more: Any, verdict: Verdict
) -> None:
    assert decided(epochs, *rows, gates=RATE, **more).verdict is verdict


def test_violations_of_samples_and_then_of_rows() -> None:
    rows = [row(PASSED), row(FAILED, metric="stars"), row(OPEN, value=None), row(FAILED, value="2 of 3")]
    found = decided([FAIL, PASS, None], *rows)
    assert [(each.name, each.verdict, each.metric) for each in found.violations] == [
        ("output.contains", FAILED, ""),
        ("interrupted", OPEN, ""),
        ("pass_rate", FAILED, "stars"),
        ("pass_rate", OPEN, ""),
        ("pass_rate", FAILED, ""),
    ]
    number, none, text = (each.detail for each in found.violations[2:])
    assert number.startswith("0.5")
    assert "0.9" in number
    assert not none.startswith("None")
    assert text.startswith("2 of 3")
    assert "at most 1" in decided([PASS], row(FAILED, bound="at most 1")).violations[0].detail
    assert decided([PASS], row(PASSED)).violations == ()


def test_a_scenario_without_samples_is_open() -> None:
    report = report_of({"a": [PASS]})
    scenario = only_scenario(report)
    empty = replace(scenario, samples=(), missing=())
    run = RunEvidence(report, {}, {}, set(), set(), tolerates_losses=True, is_open_for_all=False)
    assert decide_scenario(empty, run).verdict is OPEN
