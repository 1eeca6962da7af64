"""JUnit XML: suites, cases, their outcomes and properties, and the counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from agenteval.core.decision import GateRow
from agenteval.core.score import ScoreFailure, Severity, Verdict
from agenteval.core.trajectory import StopReason
from agenteval.reporters.junit import render
from agenteval.reporters.options import ReportOptions
from agenteval.scoring.detectors.table import DETECTORS
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.score_samples import judged_run
from tests.support.verdict_runs import (
    BEHAVIOR,
    BROKEN,
    CUT,
    FAIL,
    LOST,
    PASS,
    UNSURE,
    Played,
    finding,
    judge_failed,
    report_of,
    score,
    whole,
    with_suite,
)

LENIENT = {"gates": {"pass_rate": {"at_least": 0.3, "reject_below": 0.01}}, "fault_tolerance": 0.5}


def xml(report: Report, **decision: Any) -> Element:
    text = render(report, replace(decide(report), **decision), ReportOptions())
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n')
    return ElementTree.fromstring(text)


def ran(told: Mapping[str, Sequence[Played | None]], **more: Any) -> Element:
    return xml(report_of(told, **more))


def properties(element: Element) -> dict[str, str]:
    return {each.get("name", ""): each.get("value", "") for each in element.findall("./properties/property")}


def suite_properties(root: Element, place: int = 0) -> dict[str, str]:
    return properties(root.findall("testsuite")[place])


def case_of(root: Element, name: str) -> Element:
    (case,) = [case for case in root.iter("testcase") if case.get("name") == name]
    return case


def outcomes(root: Element) -> dict[str, list[str]]:
    return {
        case.get("name", ""): [child.tag for child in case if child.tag != "properties"]
        for case in root.iter("testcase")
    }


def counts(element: Element) -> tuple[str | None, ...]:
    return tuple(element.get(name) for name in ("tests", "failures", "errors", "skipped"))


# ── suites ───────────────────────────────────────────────────────────────────────────────────────


def test_a_suite_for_each_file_and_agent() -> None:
    scenarios = {"a": {"source": "s/x.yaml:1"}, "b": {"source": "s/x.yaml:9"}, "c": {"source": ""}}
    told = {"a": [PASS], "b": [PASS], "c": [PASS]}
    assert [suite.get("name") for suite in ran(told, scenarios=scenarios)] == ["s/x.yaml", "scenarios"]
    both = ran(told, scenarios=scenarios, agents=("bot", "new"))
    assert [suite.get("name") for suite in both] == [
        "s/x.yaml [bot]",
        "s/x.yaml [new]",
        "scenarios [bot]",
        "scenarios [new]",
    ]


def test_a_suite_names_run_verdict_and_what_would_decide() -> None:
    report = report_of({"a": [PASS]})
    rows = tuple(
        GateRow(f"g{n}", 0.5, 0.9, "b", "w", Verdict.INCONCLUSIVE, resolution=f"epochs: {n}") for n in (1, 2)
    )
    found = suite_properties(xml(report, gates=rows))
    assert found == {
        "run": report.run.run_id,
        "verdict": "passed",
        "to_decide.1": "epochs: 1 (g1)",
        "to_decide.2": "epochs: 2 (g2)",
    }


def test_a_suite_has_caveats_prompts_and_scripted_replies() -> None:
    high = whole(finding(Severity.HIGH, None))
    found = suite_properties(
        xml(with_suite(report_of({"a": [high]}), prompts={"judges/goal.md": "my/goal.md"}))
    )
    assert "1 finding" in found["with"]
    assert "my/goal.md" in found["prompts"]
    assert "scripted" not in found
    scripted = whole(score("stars", 4, scripted=True))
    root = ran({"a": [scripted], "b": [PASS]})
    assert "1 judgment" in suite_properties(root, 0)["scripted"]
    assert "scripted" not in suite_properties(root, 1)


def test_issues_are_properties_of_their_suite_worst_first() -> None:
    report, decision = judged_run()
    root = ElementTree.fromstring(render(report, decision, ReportOptions()))
    booking, refund, *_ = [properties(suite) for suite in root]
    assert [name for name in booking if name.startswith("issue.")] == ["issue.I1", "issue.I2"]
    assert [name for name in refund if name.startswith("issue.")] == ["issue.I3"]
    assert booking["issue.I1"].startswith("[high] ")


def test_the_start_is_in_utc_without_a_zone() -> None:
    report = report_of({"a": [PASS]})
    for started_at, shown in (
        ("2026-11-21T10:15:00.123Z", "2026-11-21T10:15:00"),
        ("", "1970-01-01T00:00:00"),
        ("today", "1970-01-01T00:00:00"),
    ):
        run = report.run.model_copy(update={"started_at": started_at})
        assert [suite.get("timestamp") for suite in xml(replace(report, run=run))] == [shown]


# ── cases ────────────────────────────────────────────────────────────────────────────────────────


def test_what_each_sample_is() -> None:
    root = ran(
        {"pass": [PASS], "fail": [FAIL], "lost": [LOST], "cut": [CUT], "unsure": [UNSURE], "none": [None]}
    )
    assert outcomes(root) == {
        "pass": [],
        "fail": ["failure"],
        "lost": ["error"],
        "cut": ["error"],
        "unsure": ["error"],
        "none": ["error"],
    }
    assert counts(root) == ("6", "1", "4", "0")
    assert [counts(suite) for suite in root] == [
        ("1", "0", "0", "0"),
        ("1", "1", "0", "0"),
        *[("1", "0", "1", "0")] * 4,
    ]


def test_what_a_gate_tolerates_is_no_failure() -> None:
    root = ran({"a": [PASS] * 18 + [FAIL, LOST]}, **LENIENT)
    found = outcomes(root)
    assert found["a · epoch 1"] == []
    assert found["a · epoch 19"] == ["system-out"]
    assert found["a · epoch 20"] == ["skipped"]
    assert counts(root) == ("20", "0", "0", "1")
    (text,) = [each.text or "" for each in root.iter("system-out")]
    assert text.startswith("failed, ")
    assert "output.contains" in text
    (skipped,) = root.iter("skipped")
    assert skipped.get("message")
    assert skipped.text


def test_a_rule_over_all_samples_is_a_case_of_its_own() -> None:
    root = ran({"a": [FAIL] * 20}, **LENIENT)
    case = case_of(root, "a · all samples")
    assert (case.get("file"), case.get("line"), case.get("time")) == ("s/a.yaml", "1", "0.000")
    (failure,) = case.iter("failure")
    assert failure.get("type") == "pass_rate"


def test_the_path_of_a_case_keeps_its_blanks() -> None:
    case = case_of(ran({"a": [PASS]}, scenarios={"a": {"source": "s/x  y.yaml:7"}}), "a")
    assert (case.get("file"), case.get("line")) == ("s/x  y.yaml", "7")


def test_a_case_has_place_class_and_time() -> None:
    case = case_of(ran({"a": [PASS]}, scenarios={"a": {"source": "my/deep/x.y.yaml:7"}}), "a")
    assert (case.get("classname"), case.get("file"), case.get("line"), case.get("time")) == (
        "my.deep.x.y",
        "my/deep/x.y.yaml",
        "7",
        "1.500",
    )


@pytest.mark.parametrize(
    ("source", "classname"),
    [("x.yaml:1", "x"), ("../s/x.yaml:1", "s.x"), ("", "run"), ("a//b.yml:2", "a.b"), ("a/b:2", "a.b")],
)
def test_the_class_is_the_file_by_its_parts(source: str, classname: str) -> None:
    (case,) = ran({"a": [PASS]}, scenarios={"a": {"source": source}}).iter("testcase")
    assert case.get("classname") == classname
    assert ("line" in case.keys()) is bool(source)  # noqa: SIM118


def test_a_case_of_a_log_is_at_its_record() -> None:
    recorded = Played((), stop=StopReason.RECORDED, detail="logs/l.jsonl:3: x")
    (case,) = ran({"a": [recorded]}).iter("testcase")
    assert (case.get("file"), case.get("line"), case.get("classname")) == ("logs/l.jsonl", "3", "logs.l")


@pytest.mark.parametrize(
    ("latency_ms", "time"), [(float("nan"), "0.000"), (float("inf"), "0.000"), (2.4, "0.002")]
)
def test_a_time_that_is_no_number_is_zero(latency_ms: float, time: str) -> None:
    report = report_of({"a": [PASS]})
    ((scenario,), ((sample,),)) = (report.scenarios, [each.samples for each in report.scenarios])
    (turn,) = sample.trajectory.turns
    turn = turn.model_copy(update={"latency_ms": latency_ms, "steps": ()})
    sample = replace(sample, trajectory=sample.trajectory.model_copy(update={"turns": (turn,)}))
    root = xml(replace(report, scenarios=(replace(scenario, samples=(sample,)),)))
    assert [case.get("time") for case in root.iter("testcase")] == [time]


def test_times_are_summed() -> None:
    root = ran({"a": [PASS, PASS], "b": [PASS, None]})
    assert [suite.get("time") for suite in root] == ["3.000", "1.500"]
    assert root.get("time") == "4.500"


def test_equal_names_get_numbers() -> None:
    scenarios = {name: {"source": "s/x.yaml:1"} for name in ("a  b", "a b", "a\tb")}
    root = ran({name: [PASS] for name in scenarios}, scenarios=scenarios)
    assert [case.get("name") for case in root.iter("testcase")] == ["a b", "a b (2)", "a b (3)"]


# ── the body of a failure ────────────────────────────────────────────────────────────────────────


def test_a_failure_says_why_how_to_run_it_again_and_what_was_said() -> None:
    (failure,) = ran({"a": [whole(BROKEN)]}).iter("failure")
    assert failure.get("type") == "output.contains"
    assert failure.get("message") == "output.contains: not there"
    lines = (failure.text or "").splitlines()
    assert lines[0] == "output.contains: not there"
    assert any(line.startswith("re-run: agenteval run ") for line in lines)
    assert any(line.startswith("agent:") for line in lines)


@pytest.mark.parametrize(
    ("row", "first"), [("rows.csv:4", "row: rows.csv:4"), ("", "output.contains: not there")]
)
def test_a_data_row_is_named_first(row: str, first: str) -> None:
    (failure,) = ran({"a": [FAIL]}, scenarios={"a": {"row": row}}).iter("failure")
    assert (failure.text or "").splitlines()[0] == first


def test_what_never_ran_has_nothing_that_was_said() -> None:
    (error,) = ran({"a": [None]}).iter("error")
    assert "agent:" not in (error.text or "")


# ── properties of a sample ───────────────────────────────────────────────────────────────────────


def case_properties(
    *items: Any, stop: StopReason | None = StopReason.SCRIPT_DONE, **more: Any
) -> dict[str, str]:
    (case,) = ran({"a": [Played(items, turns=((),), stop=stop)]}, **more).iter("testcase")
    return properties(case)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ((), {}),
        ((score("stars", 4),), {"score.stars": "4", "scores": "uncalibrated"}),
        (
            (score("stars", 4), score("stars", 5), score("stars", 1)),
            {"score.stars": "3.333", "scores": "uncalibrated"},
        ),
        ((score(BEHAVIOR, label="x", ok=False),), {f"score.{BEHAVIOR}": "x", "scores": "uncalibrated"}),
        (
            tuple(score(BEHAVIOR, label=each, ok=each != "x") for each in ("x", "no failure", "x")),
            {f"score.{BEHAVIOR}": "x, no failure", "scores": "uncalibrated"},
        ),
        (
            (judge_failed("stars"), judge_failed("stars", raw="other")),
            {"judge_broke.stars": "no answer"},
        ),
        ((judge_failed("stars", unclear=True),), {"not_clear.stars": "no answer"}),
        (
            (ScoreFailure(metric=next(iter(DETECTORS)), message="boom"),),
            {f"detector_broke.{next(iter(DETECTORS))}": "boom"},
        ),
    ],
    ids=["none", "number", "mean", "label", "labels", "judge", "unclear", "detector"],
)
def test_scores_and_what_is_missing_are_properties(items: tuple[Any, ...], expected: dict[str, str]) -> None:
    assert case_properties(*items) == {"stop": "script_done", **expected}


def test_scripted_scores_say_so() -> None:
    found = case_properties(score("stars", 4, scripted=True))
    assert found["scores"].startswith("uncalibrated, scripted")


def test_scores_of_turns_count_too_and_a_cut_sample_never_finished() -> None:
    played = Played((score("stars", 2),), turns=((score("stars", 4),), (score("stars", 5),)))
    (case,) = ran({"a": [played]}).iter("testcase")
    assert properties(case)["score.stars"] == "3.667"
    assert case_properties(stop=None) == {"stop": "never finished"}


# ── the run ──────────────────────────────────────────────────────────────────────────────────────


def run_cases(root: Element) -> list[tuple[str | None, str, str | None]]:
    suites = [suite for suite in root if suite.get("name") == "run"]
    return [(case.get("name"), case[0].tag, case[0].get("type")) for suite in suites for case in suite]


def gate(name: str, verdict: Verdict, **more: Any) -> GateRow:
    return GateRow(name, 0.4, 0.5, "4 samples", "agenteval.yaml:9", verdict, **more)


@pytest.mark.parametrize(
    ("decision", "cases"),
    [
        ({}, []),
        ({"gates": (gate("g", Verdict.PASSED), gate("h", Verdict.FAILED, scenario="a", agent="bot"))}, []),
        ({"gates": (gate("g", Verdict.FAILED),)}, [("g", "failure", "g")]),
        ({"gates": (gate("g", Verdict.INCONCLUSIVE),)}, [("g", "error", "g")]),
        (
            {"author_errors": ("x", "y")},
            [("author error", "error", "author error"), ("author error (2)", "error", "author error")],
        ),
        ({"verdict": Verdict.FAILED, "exit_code": 1}, [("verdict", "failure", "verdict")]),
        ({"verdict": Verdict.INCONCLUSIVE, "exit_code": 3}, [("verdict", "error", "verdict")]),
        (
            {"verdict": Verdict.FAILED, "gates": (gate("g", Verdict.FAILED),)},
            [("g", "failure", "g")],
        ),
    ],
    ids=[
        "passed",
        "no gate of the run",
        "failed",
        "undecided",
        "mistakes",
        "unexplained",
        "undecided too",
        "explained",
    ],
)
def test_what_belongs_to_the_whole_run(decision: dict[str, Any], cases: list[tuple[str, str, str]]) -> None:
    assert run_cases(xml(report_of({"a": [PASS]}), **decision)) == cases


@pytest.mark.parametrize("played", [FAIL, LOST])
def test_a_verdict_that_a_sample_explains_is_no_case(played: Played) -> None:
    assert run_cases(ran({"a": [played]})) == []


def test_a_gate_of_the_run_says_value_bound_basis_and_place() -> None:
    root = xml(report_of({"a": [PASS]}), gates=(gate("g", Verdict.FAILED),))
    (failure,) = root.iter("failure")
    text = failure.text or ""
    assert all(fact in text for fact in ("0.4", "0.5", "4 samples", "agenteval.yaml:9"))
    assert failure.get("message") == text


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({"value": None}, " –, bound 0.5,"),
        ({"value": 2 / 3, "bound": 0.7}, " 0.667, bound 0.7,"),
        ({"value": 0.9, "bound": 0.89999}, " 0.9, bound 0.89999,"),
    ],
)
def test_the_figures_of_a_gate_are_those_of_every_report(figures: dict[str, Any], text: str) -> None:
    row = replace(gate("g", Verdict.FAILED), **figures)
    (failure,) = xml(report_of({"a": [PASS]}), gates=(row,)).iter("failure")
    assert text in (failure.get("message") or "")


# ── logs without scenarios ───────────────────────────────────────────────────────────────────────


def test_failure_rates_are_properties_of_a_suite_without_cases() -> None:
    def recorded(*items: Any, stop: StopReason = StopReason.RECORDED) -> Played:
        return Played(items, turns=((),), stop=stop, detail="l.jsonl:3: x")

    bad = recorded(score(BEHAVIOR, label="x", ok=False), finding(Severity.HIGH, None, evidence="Booked!"))
    report = report_of({"a": [bad], "b": [recorded(stop=StopReason.UNREADABLE)]})
    root = xml(report, without_scenarios=True)
    (suite,) = [each for each in root if each.get("name") == "what goes wrong"]
    assert counts(suite) == ("0", "0", "0", "0")
    found = properties(suite)
    assert list(found) == ["run", "verdict", "rate.1", "quotations.1", "unknown.1"]
    assert found["rate.1"].startswith("high: false information")
    assert found["quotations.1"].startswith('l.jsonl:3: "Booked!"')
    assert "1 of 2 records" in found["unknown.1"]
    assert not [each for each in xml(report) if each.get("name") == "what goes wrong"]
