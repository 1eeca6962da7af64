"""The rows about all samples, errored samples and the end of a run: value, bound, verdict and next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import (
    EVERY_SAMPLE,
    RERUN_AFTER_FIX,
    RERUN_FAILED,
    RESUME,
    TOLERANCE,
    GateRow,
    SampleDecision,
    Violation,
)
from agenteval.core.event import Event, RunFinished, SampleFinished, SampleStarted
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Severity, Verdict
from agenteval.core.trajectory import Stop, StopReason
from agenteval.verdict.recorded_logs import SEVERE
from agenteval.verdict.report import Report, build_report
from agenteval.verdict.run_rows import (
    command_of,
    end_rows,
    is_tolerated,
    mostly_errored_scenarios,
    resolve_with_next_steps,
    run_rows,
    tolerance_rows,
)
from agenteval.verdict.sample_decisions import decide_samples
from tests.support.report_samples import started
from tests.support.verdict_runs import (
    CUT,
    FAIL,
    LOST,
    PASS,
    UNSURE,
    Played,
    finding,
    judge_failed,
    lost,
    report_of,
    whole,
)

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
PASS_RATE = {"gates": {"pass_rate": {"at_least": 0.9, "reject_below": 0.6}}}
KEY = SampleKey(scenario="a", agent="bot")


def of_run(report: Report, tolerance: Sequence[GateRow] = (), counted: Any = frozenset()) -> list[GateRow]:
    return list(run_rows(report, decide_samples(report), tolerance, counted))


def tolerances(report: Report, *, replaced: int = 0, unreadable_apart: bool = False) -> list[GateRow]:
    samples = decide_samples(report)
    gone = mostly_errored_scenarios(report, samples)
    return list(tolerance_rows(report, samples, gone, replaced=replaced, unreadable_apart=unreadable_apart))


def row(verdict: Verdict = PASSED, **more: Any) -> GateRow:
    fields: dict[str, Any] = {"name": TOLERANCE, "value": 0.0, "bound": 0.0, "basis": "", "where": ""}
    return GateRow(**{**fields, **more}, verdict=verdict)


def log(stops: Mapping[str, Stop], *, lines: bool = False, epochs: int = 1) -> Report:
    """Recorded conversations, each its own scenario, as ``agenteval score`` reads them."""
    events: list[Event] = [started((), (), command=("score", "my log.jsonl"))]
    for id, stop in stops.items():
        scenario = Scenario(id=id, lines={"expect": 3} if lines else {})
        for epoch in range(epochs):
            key = SampleKey(scenario=id, agent="bot", epoch=epoch)
            events += [SampleStarted(key=key, scenario=scenario), SampleFinished(key=key, stop=stop)]
    return build_report([*events, RunFinished(finished_at="")])


def stop(reason: StopReason, detail: str = "", **more: Any) -> Stop:
    return Stop(reason=reason, detail=detail, **more)


UNREADABLE = stop(StopReason.UNREADABLE, "log.jsonl:3: no messages")
RECORDED = stop(StopReason.RECORDED, "log.jsonl:1")


# ── which rows ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({}, [EVERY_SAMPLE, TOLERANCE, SEVERE]),
        ({"fail_on_severity": "none"}, [EVERY_SAMPLE, TOLERANCE]),
        (PASS_RATE, [TOLERANCE, SEVERE]),
        ({"budget": {"max_calls": 9}}, [EVERY_SAMPLE, TOLERANCE, SEVERE, "budget.max_calls"]),
        (
            {"budget": {"max_calls": 9}, "deadlines": {"run_s": 9}, "outcome": None},
            [EVERY_SAMPLE, TOLERANCE, SEVERE, "budget.max_calls", "deadlines.run_s", "complete run"],
        ),
    ],
)
def test_the_rows_of_a_run_in_their_order(config: dict[str, Any], names: list[str]) -> None:
    assert [each.name for each in of_run(report_of({"a": [PASS]}, **config), [row()])] == names


# ── every sample passes ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epochs", "tolerated", "value", "verdict"),
    [
        ([PASS], True, 1.0, PASSED),
        ([PASS, FAIL], True, 0.5, FAILED),
        ([PASS, FAIL, LOST], False, 1 / 3, FAILED),
        ([PASS, LOST], True, 0.5, PASSED),
        ([PASS, LOST], False, 0.5, OPEN),
        ([LOST], False, 0.0, OPEN),
        ([PASS, None], False, 0.5, OPEN),
        ([], True, None, PASSED),
    ],
)
def test_every_sample_passes(
    epochs: list[Played | None], tolerated: bool, value: float | None, verdict: Verdict
) -> None:
    found = of_run(report_of({"a": epochs}), [row(PASSED), row(PASSED if tolerated else OPEN)])[0]
    assert (found.name, found.value, found.bound, found.verdict) == (EVERY_SAMPLE, value, 1.0, verdict)
    assert (found.scenario, found.agent, found.where) == ("", "", "default")


def test_the_basis_of_every_sample() -> None:
    report = report_of({"a": [PASS, FAIL, LOST], "b": [PASS]})
    counted = frozenset({KEY.model_copy(update={"epoch": 1})})
    plain, left = (of_run(report, [row()], keys)[0] for keys in (frozenset(), counted))
    assert [part in plain.basis for part in ("4 samples", "2 scenarios", "1 inconclusive")] == [True] * 3
    assert "share gates" not in plain.basis
    assert "1 failed" in left.basis
    assert (plain.value, plain.verdict) == (0.5, FAILED)
    assert (left.value, left.verdict) == (0.75, PASSED)
    assert "inconclusive" not in of_run(report_of({"a": [PASS]}), [row()])[0].basis


# ── severity ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("played", "config", "value", "bound", "verdict"),
    [
        (PASS, {}, "no finding", "critical", PASSED),
        (whole(finding(Severity.HIGH)), {}, "high", "critical", PASSED),
        (whole(finding(Severity.CRITICAL)), {}, "critical", "critical", FAILED),
        (
            whole(finding(Severity.LOW), finding(Severity.HIGH, explanation="x")),
            {"fail_on_severity": "high"},
            "high",
            "high",
            FAILED,
        ),
        (whole(finding(Severity.MEDIUM)), {"fail_on_severity": "high"}, "medium", "high", PASSED),
        # A gate that tolerates failures does so below `critical` alone.
        (
            whole(finding(Severity.HIGH)),
            {"fail_on_severity": "high", **PASS_RATE},
            "high",
            "critical",
            PASSED,
        ),
        (
            whole(finding(Severity.CRITICAL)),
            {"fail_on_severity": "high", **PASS_RATE},
            "critical",
            "critical",
            FAILED,
        ),
        # Little is known of a conversation that was lost, but what had failed before has failed.
        (lost(finding(Severity.HIGH)), {}, "no finding", "critical", PASSED),
        (lost(finding(Severity.CRITICAL)), {}, "critical", "critical", FAILED),
    ],
)
def test_the_worst_finding(
    played: Played, config: dict[str, Any], value: str, bound: str, verdict: Verdict
) -> None:
    (found,) = [each for each in of_run(report_of({"a": [played]}, **config)) if each.name == SEVERE]
    assert (found.value, found.bound, found.verdict) == (value, f"below {bound}", verdict)


def test_findings_are_counted_in_the_samples_that_are_known() -> None:
    report = report_of({"a": [whole(finding()), PASS, lost(finding(Severity.HIGH))]})
    (found,) = [each for each in of_run(report) if each.name == SEVERE]
    assert found.basis == "1 finding in 2 samples"


# ── errored samples ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("lost", "begun", "bound", "tolerated"),
    [
        (0, 1, 0.0, True),
        (0, 0, 1.0, False),
        (1, 1, 1.0, False),
        (1, 2, 0.5, True),
        (1, 2, 0.49, False),
        (1, 10, 0.1, True),
        (2, 10, 0.1, False),
        (9, 10, 1.0, True),
        (10, 10, 1.0, False),
    ],
)
def test_how_many_errored_samples_are_tolerated(lost: int, begun: int, bound: float, tolerated: bool) -> None:
    assert is_tolerated(lost, begun, bound) is tolerated


@pytest.mark.parametrize(
    ("epochs", "bound", "value", "verdict", "resolution"),
    [
        ({"a": [PASS, PASS]}, 0.0, 0.0, PASSED, ""),
        ({"a": [PASS, FAIL, LOST, PASS]}, 0.25, 0.25, PASSED, ""),
        ({"a": [PASS, FAIL, LOST, PASS]}, 0.2, 0.25, OPEN, RERUN_FAILED),
        ({"a": [PASS, None]}, 1.0, 0.0, OPEN, RESUME),
        ({"a": [None]}, 1.0, None, OPEN, RESUME),
        ({"a": [LOST, None]}, 1.0, 1.0, OPEN, RESUME),
        ({"a": [LOST]}, 1.0, 1.0, OPEN, RERUN_FAILED),
        ({"a": [CUT, PASS]}, 0.0, 0.5, OPEN, RERUN_FAILED),
    ],
)
def test_the_share_of_errored_samples(
    epochs: dict[str, list[Played | None]],
    bound: float,
    value: float | None,
    verdict: Verdict,
    resolution: str,
) -> None:
    found = tolerances(report_of(epochs, fault_tolerance=bound))[0]
    assert (found.name, found.value, found.bound, found.verdict) == (TOLERANCE, value, bound, verdict)
    assert (found.scenario, found.agent, found.resolution) == ("", "", resolution)


def test_the_basis_of_the_share() -> None:
    report = report_of({"a": [PASS, LOST, None, None]})
    assert "1 inconclusive of 2 samples" in tolerances(report)[0].basis
    assert "2 more never started" in tolerances(report)[0].basis
    assert "1 of them replaced" in tolerances(report, replaced=1)[0].basis
    whole_run = tolerances(report_of({"a": [PASS]}))[0].basis
    assert "0 inconclusive of 1 sample" in whole_run
    assert "replaced" not in whole_run
    assert "never" not in whole_run


def test_a_scenario_that_lost_more_than_half_has_a_row_of_its_own() -> None:
    epochs: dict[str, list[Played | None]] = {
        "half": [PASS, LOST],
        "most": [PASS, LOST, LOST],
        "none": [PASS] * 5,
    }
    report = report_of(epochs, fault_tolerance=0.3)
    of_all, of_most = tolerances(report)
    assert of_all.verdict is PASSED
    assert (of_most.scenario, of_most.agent, of_most.verdict) == ("most", "bot", OPEN)
    assert of_most.value == pytest.approx(2 / 3)
    assert of_most.resolution == RERUN_FAILED
    assert (of_most.name, "2 of 3 samples" in of_most.basis) == (TOLERANCE, True)
    assert len(tolerances(report_of(epochs, fault_tolerance=0.29))) == 1  # the samples explain it


@pytest.mark.parametrize(
    ("epochs", "errored"),
    [
        ([], False),
        ([PASS], False),
        ([LOST], True),
        ([PASS, LOST], False),
        ([PASS, LOST, LOST], True),
        ([FAIL, FAIL, LOST, LOST], False),
        ([UNSURE], True),
        ([None, None, PASS], False),
    ],
)
def test_most_of_a_scenario_errored(epochs: list[Played | None], errored: bool) -> None:
    report = report_of({"a": epochs})
    found = mostly_errored_scenarios(report, decide_samples(report))
    assert found == ({("a", "bot")} if errored else set())


@pytest.mark.parametrize(
    ("lines", "epochs", "errored"), [(False, 1, False), (True, 1, True), (False, 2, True)]
)
def test_a_record_alone_is_no_scenario_that_errored(lines: bool, epochs: int, errored: bool) -> None:
    report = log({"a": UNREADABLE}, lines=lines, epochs=epochs)
    assert bool(mostly_errored_scenarios(report, decide_samples(report))) is errored


def test_unreadable_records_may_have_a_row_of_their_own() -> None:
    report = log({"a": UNREADABLE, "b": RECORDED, "c": RECORDED, "d": RECORDED})
    shares = [tolerances(report, unreadable_apart=apart)[0].value for apart in (False, True)]
    assert shares == [0.25, 0.0]
    (alone,) = tolerances(log({"a": UNREADABLE}), unreadable_apart=True)
    assert alone.value is None


# ── how it ended ─────────────────────────────────────────────────────────────────────────────────


def test_a_complete_run_has_no_row_of_its_end() -> None:
    assert list(end_rows(report_of({"a": [PASS]}))) == []
    assert list(end_rows(report_of({"a": [PASS]}, outcome="interrupted"))) == []


def test_a_run_that_was_killed() -> None:
    (found,) = end_rows(report_of({"a": [PASS, CUT, None], "b": [None]}, outcome=None))
    assert (found.name, found.verdict, found.resolution) == ("complete run", OPEN, RESUME)
    assert "2 of 4 samples" in found.basis


@pytest.mark.parametrize(("count", "named"), [(1, 1), (5, 5), (7, 5)])
def test_scenarios_that_no_conversation_met(count: int, named: int) -> None:
    unmet = {f"<{n}>": f"s.yaml:{n}" for n in range(count)}
    report = report_of({"a": [PASS]})
    report = replace(report, finished=RunFinished(finished_at="", unmet=unmet))
    (found,) = end_rows(report)
    assert (found.name, found.verdict, found.where) == ("every scenario met", OPEN, "s.yaml:0")
    assert sum(name in found.basis for name in unmet) == named
    assert str(found.value).split()[0] == str(count)
    assert ("2 more" in found.basis) is (count == 7)


# ── what would decide it ─────────────────────────────────────────────────────────────────────────

FINAL = {"is_final": True}


@pytest.mark.parametrize(
    ("decided", "stops", "resolution"),
    [
        pytest.param(["infrastructure"], [{}], RERUN_FAILED, id="may pass when repeated"),
        pytest.param(["infrastructure"], [FINAL], RERUN_AFTER_FIX, id="would fail again"),
        pytest.param(["infrastructure"] * 2, [FINAL, {}], RERUN_FAILED, id="one of two may pass"),
        pytest.param(["infrastructure"] * 2, [FINAL, FINAL], RERUN_AFTER_FIX, id="both would fail again"),
        pytest.param(["judge"], [None], RERUN_AFTER_FIX, id="a judge"),
        pytest.param(["judge", "infrastructure"], [None, FINAL], RERUN_AFTER_FIX, id="a judge and a host"),
        pytest.param(
            ["judge", "infrastructure"], [None, {}], RERUN_FAILED, id="a judge and a fleeting fault"
        ),
        pytest.param(["simulator"], [None], RERUN_FAILED, id="the user"),
        pytest.param(["simulator", "infrastructure"], [None, FINAL], RERUN_FAILED, id="the user and a host"),
        pytest.param(["undecided", "infrastructure"], [None, FINAL], RERUN_AFTER_FIX, id="faults go first"),
        pytest.param(["undecided"], [None], "supply it", id="what the first lacks"),
    ],
)
def test_the_next_step_for_errored_samples(
    decided: list[str], stops: list[dict[str, Any] | None], resolution: str
) -> None:
    played = [
        whole() if each is None else Played((), ((),), stop=StopReason.INFRASTRUCTURE) for each in stops
    ]
    report = report_of({"a": played}, fault_tolerance=0)
    (scenario,) = report.scenarios
    samples = tuple(
        sample if each is None else replace(sample, stop=stop(StopReason.INFRASTRUCTURE, **each))
        for sample, each in zip(scenario.samples, stops, strict=True)
    )
    report = replace(report, scenarios=(replace(scenario, samples=samples),))
    violations = (
        Violation("python", "broken", "", FAILED),
        Violation("python", "not decided: supply it", "", OPEN),
        Violation("python", "not decided: nor this", "", OPEN),
    )
    decisions = {
        sample.key: SampleDecision(OPEN, fault, violations)
        for sample, fault in zip(samples, decided, strict=True)
    }
    (found,) = tolerance_rows(report, decisions, frozenset(), replaced=0, unreadable_apart=False)
    assert found.resolution == resolution


def test_a_failed_judge_is_no_fleeting_fault() -> None:
    report = report_of({"a": [whole(judge_failed("goal_completion"))]}, fault_tolerance=0)
    assert tolerances(report)[0].resolution == RERUN_AFTER_FIX


def test_the_same_command_again() -> None:
    report = report_of({"a": [PASS]}, run={"command": ("run", "my suite", "--epochs", "3")})
    assert command_of(report) == "agenteval run 'my suite' --epochs 3"


@pytest.mark.parametrize("outcome", ["complete", "budget", "interrupted", None])
def test_the_next_steps_of_a_run_are_those_of_its_rows(outcome: str | None) -> None:
    report = report_of({"a": [PASS]}, outcome=outcome)
    rows = (row(OPEN, resolution=RESUME), row(OPEN, resolution=RERUN_FAILED), row())
    assert resolve_with_next_steps(rows, report, {}) == rows


def test_a_run_that_failed_fast_cannot_be_resumed() -> None:
    report = report_of({"a": [PASS]}, outcome="fail_fast")
    rows = (row(OPEN, resolution=f"first, then {RESUME}"), row(OPEN, resolution=RERUN_FAILED), row())
    first, second, third = resolve_with_next_steps(rows, report, {})
    assert RESUME not in first.resolution
    assert "--fail-fast" in first.resolution
    assert first.resolution.startswith("first, then ")
    assert (second.resolution, third.resolution) == (RERUN_FAILED, "")


AGAIN = "agenteval score 'my log.jsonl'"
RECORDS = {
    "good": RECORDED,
    "bad": UNREADABLE,
    "worse": stop(StopReason.UNREADABLE, "log.jsonl:5: cut: here"),
}


@pytest.mark.parametrize(
    ("records", "resolution", "scenario", "then", "absent"),
    [
        pytest.param(["good"], RERUN_FAILED, "", [AGAIN], ["replace"], id="all readable"),
        pytest.param(["good"], RERUN_AFTER_FIX, "", [AGAIN], ["doctor"], id="after a fix"),
        pytest.param(
            ["good", "bad"], RERUN_FAILED, "", ["replace log.jsonl:3 "], [AGAIN, "more"], id="one unreadable"
        ),
        pytest.param(
            ["bad", "worse"], RERUN_AFTER_FIX, "", ["log.jsonl:3 and 1 more"], ["cut"], id="two unreadable"
        ),
        pytest.param(
            ["bad", "worse"],
            RERUN_FAILED,
            "worse",
            ["log.jsonl:5 "],
            ["more", "log.jsonl:3"],
            id="of a scenario",
        ),
        pytest.param(
            ["good", "bad"], RERUN_FAILED, "good", [AGAIN], ["replace"], id="of a readable scenario"
        ),
        pytest.param(["good"], "epochs: 12", "", ["12 recorded"], ["epochs: "], id="epochs"),
        pytest.param(
            ["good"], f"raise it, then {RESUME}", "", [f"raise it, then {AGAIN}"], [RESUME], id="resume"
        ),
        pytest.param(["bad"], "", "", [""], ["replace", AGAIN], id="decided"),
    ],
)
def test_recorded_conversations_cannot_be_repeated(
    records: list[str], resolution: str, scenario: str, then: list[str], absent: list[str]
) -> None:
    report = log({id: RECORDS[id] for id in records})
    samples = decide_samples(report)
    (found,) = resolve_with_next_steps([row(OPEN, resolution=resolution, scenario=scenario)], report, samples)
    assert all(part in found.resolution for part in then), found.resolution
    assert not any(part in found.resolution for part in absent), found.resolution
