"""The samples as CSV: what each column holds, what is empty, and that a file of it is one table."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.core.scenario import CaseSpec
from agenteval.core.score import RULED_OUT, MetricSpec, Severity
from agenteval.core.trajectory import Step, StopReason, ToolCall, ToolVisibility, Trajectory, Turn, Usage
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results.document import results
from agenteval.reporters.results.samples_csv import COLUMNS, render
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.score_samples import judged_run
from tests.support.verdict_runs import (
    BEHAVIOR,
    BROKEN,
    CUT,
    FAIL,
    GOAL,
    HELD,
    LOST,
    PASS,
    STARS,
    UNSURE,
    Played,
    finding,
    judge_failed,
    only_scenario,
    report_of,
    score,
    unclear,
    whole,
)

Row = dict[str, str]
CALL = ToolCall(name="t", args={})


def table(report: Report) -> list[Row]:
    text = render(report, decide(report), ReportOptions())
    reader = csv.DictReader(StringIO(text, newline=""), strict=True)
    found = list(reader)
    assert reader.fieldnames is not None
    assert tuple(reader.fieldnames[: len(COLUMNS)]) == COLUMNS
    assert not any(None in row or None in row.values() for row in found)
    return found


def rows(played: Mapping[str, Sequence[Played | None]], **more: Any) -> list[Row]:
    return table(report_of(played, **more))


def row(played: Played | None, **more: Any) -> Row:
    (found,) = rows({"a": [played]}, **more)
    return found


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_row_is_a_sample_in_the_order_of_the_json_report() -> None:
    report = report_of({"b": [PASS, None, FAIL], "a": [PASS]}, agents=("y", "x"))
    expected = [
        (scenario.id, scenario.agent, str(sample.epoch + 1), sample.verdict, sample.reason)
        for scenario in results(report, decide(report)).scenarios
        for sample in scenario.samples
    ]
    found = table(report)
    assert [
        (each["scenario"], each["agent"], each["epoch"], each["verdict"], each["reason"]) for each in found
    ] == expected
    assert len(found) == 8
    assert {each["run"] for each in found} == {report.run.run_id}


@pytest.mark.parametrize(
    ("played", "verdict", "fault", "reason", "stop"),
    [
        (PASS, "passed", "", "", "script_done"),
        (FAIL, "failed", "", "output.contains: not there", "script_done"),
        (UNSURE, "inconclusive", "undecided", "python: it raised", "script_done"),
        (Played(stop=StopReason.AGENT_ERROR), "failed", "agent", "no_error", "agent_error"),
        (LOST, "inconclusive", "infrastructure", "infrastructure", "infrastructure"),
        (CUT, "inconclusive", "interrupted", "", ""),
        (None, "inconclusive", "interrupted", "interrupted: the sample was not run", ""),
    ],
)
def test_a_verdict_comes_with_its_reason(
    played: Played | None, verdict: str, fault: str, reason: str, stop: str
) -> None:
    found = row(played)
    assert (found["verdict"], found["fault"], found["stop"]) == (verdict, fault, stop)
    assert (reason in found["reason"]) if reason else True
    assert bool(found["reason"]) is (played is not PASS)


def test_a_sample_that_never_ran_has_only_what_was_planned() -> None:
    found = row(None, scenarios={"a": {"name": "The A", "tags": ("x", "y z"), "category": "robustness"}})
    known = {name: value for name, value in found.items() if value}
    assert known == {
        "scenario": "a",
        "name": "The A",
        "agent": "bot",
        "category": "robustness",
        "tags": "x; y z",
        "epoch": "1",
        "verdict": "inconclusive",
        "fault": "interrupted",
        "reason": "interrupted: the sample was not run",
        "where": "s/a.yaml:1",
        "run": "20261121-101500-ab12",
    }


def test_a_recorded_conversation_is_at_its_record() -> None:
    recorded = Played(stop=StopReason.RECORDED, detail="log.jsonl:7")
    assert row(recorded)["where"] == "log.jsonl:7"


# ── what was measured ────────────────────────────────────────────────────────────────────────────


def changed(report: Report, **sample: Any) -> Report:
    scenario = only_scenario(report)
    (one,) = scenario.samples
    return replace(report, scenarios=(replace(scenario, samples=(replace(one, **sample),)),))


def measured(*steps: Step, latency_ms: float = 0, visibility: ToolVisibility | None = None) -> Row:
    turn = Turn(user="hi", steps=steps, latency_ms=latency_ms)
    found = changed(report_of({"a": [PASS]}), trajectory=Trajectory(turns=(turn,), visibility=visibility))
    (only,) = table(found)
    return only


SPLIT = Usage(calls=1, input_tokens=120, output_tokens=30, cost=0.001)


@pytest.mark.parametrize(
    ("usage", "tokens", "split", "estimated", "cost"),
    [
        (SPLIT, "150", ("120", "30"), "false", "0.001"),
        (SPLIT.model_copy(update={"estimated": True}), "150", ("120", "30"), "true", "0.001"),
        (SPLIT.model_copy(update={"cost": None}), "150", ("120", "30"), "false", ""),
        (SPLIT.model_copy(update={"cost": 0.0}), "150", ("120", "30"), "false", "0.0"),
        (SPLIT.model_copy(update={"unsplit": True}), "150", ("", ""), "false", "0.001"),
        (Usage(calls=1, output_tokens=30), "30", ("", "30"), "false", ""),
        (Usage(calls=1), "", ("", ""), "", ""),
        (Usage(), "", ("", ""), "", ""),
    ],
)
def test_tokens_that_are_not_known_are_not_0(
    usage: Usage, tokens: str, split: tuple[str, str], estimated: str, cost: str
) -> None:
    found = measured(Step(text="x", usage=usage))
    assert (found["tokens"], found["estimated"], found["cost"]) == (tokens, estimated, cost)
    assert (found["input_tokens"], found["output_tokens"]) == split


@pytest.mark.parametrize(
    ("latency_ms", "shown"),
    [(0, ""), (1.5, "1.5"), (float("nan"), ""), (float("inf"), ""), (-1.0, "-1.0")],
)
def test_a_time_that_is_no_number_is_empty(latency_ms: float, shown: str) -> None:
    assert measured(latency_ms=latency_ms)["latency_ms"] == shown


@pytest.mark.parametrize(
    ("visibility", "calls", "shown"),
    [
        (ToolVisibility.ALL, 0, "0"),
        (ToolVisibility.ALL, 2, "2"),
        (ToolVisibility.PARTLY, 2, "2"),
        (ToolVisibility.PARTLY, 0, ""),
        (ToolVisibility.UNSEEN, 0, ""),
        (None, 0, ""),
    ],
)
def test_calls_that_nobody_could_see_are_not_0(
    visibility: ToolVisibility | None, calls: int, shown: str
) -> None:
    found = measured(Step(tool_calls=(CALL,) * calls), Step(text="x"), visibility=visibility)
    assert (found["tool_calls"], found["steps"]) == (shown, "2")


def test_turns_are_all_that_began() -> None:
    assert row(Played(turns=((), ())))["turns"] == "2"
    assert row(Played(turns=((),), stop=StopReason.AGENT_ERROR))["turns"] == "2"  # the last one broke


@pytest.mark.parametrize(
    ("items", "findings", "severity"),
    [
        ((), "0", ""),
        ((finding(Severity.LOW, label="a"),), "1", "low"),
        ((finding(Severity.LOW, label="a"), finding(Severity.HIGH), finding(Severity.MEDIUM, label="b")),
         "3", "high"),
    ],
)  # fmt: skip
def test_findings_are_counted_and_the_worst_is_named(
    items: tuple[Any, ...], findings: str, severity: str
) -> None:
    found = row(whole(*items))
    assert (found["findings"], found["severity"]) == (findings, severity)


def test_a_case_has_its_accuracy() -> None:
    case = CaseSpec(expected_tools=("t", "u"), expected_output_contains=("hello",))
    names = ("tool_accuracy", "output_correct", "robustness_pass")
    found = row(Played((HELD, BROKEN), calls=(CALL,)), scenarios={"a": {"case": case}})
    assert [found[name] for name in names] == ["0.5", "false", "false"]
    assert [row(PASS)[name] for name in names] == ["", "", ""]


def test_scripted_replies_are_marked() -> None:
    assert {each["scripted"] for each in table(judged_run(scripted=True)[0])} >= {"true"}
    assert {each["scripted"] for each in table(judged_run()[0])} == {"false"}


# ── scores ───────────────────────────────────────────────────────────────────────────────────────


def label(name: str, *, ok: bool) -> Any:
    return score(BEHAVIOR, label=name, ok=ok)


@pytest.mark.parametrize(
    ("turns", "mean", "shown"),
    [
        ([("no failure", True)], "1.0", "no failure"),
        ([("no failure", True), ("repetition", False)], "0.5", "repetition"),
        ([("repetition", False), ("unsafe action", False)], "0.0", "repetition"),
        ([], "", ""),
    ],
)
def test_a_label_is_the_first_that_reports_a_failure(
    turns: list[tuple[str, bool]], mean: str, shown: str
) -> None:
    played = Played(turns=tuple((label(name, ok=ok),) for name, ok in turns) or ((),))
    found = row(played, run={"judged": (BEHAVIOR,)})
    assert (found[f"score.{BEHAVIOR}"], found[f"label.{BEHAVIOR}"]) == (mean, shown)


@pytest.mark.parametrize(
    ("goal", "mean", "shown"),
    [
        (score(GOAL, 1.0, label="reached"), "1.0", "reached"),
        (score(GOAL, 0.0, label="missed"), "0.0", "missed"),
        (score(GOAL, 0.0, label="reached"), "0.0", "reached"),  # although a refusal was expected
        (unclear(GOAL, RULED_OUT), "", RULED_OUT),
        (unclear(GOAL), "", "not clear"),
    ],
)
def test_a_goal_that_counts_neither_way_is_empty_and_has_its_outcome(
    goal: Any, mean: str, shown: str
) -> None:
    found = row(whole(goal))
    assert (found[f"score.{GOAL}"], found[f"label.{GOAL}"]) == (mean, shown)


def test_an_open_label_gives_way_to_a_failure_only() -> None:
    policy = "policy_adherence"
    turns = [score(policy, label=name, ok=ok) for name, ok in (("followed", True), ("not clear", None))]
    found = row(Played(turns=tuple((each,) for each in turns)))
    assert (found[f"score.{policy}"], found[f"label.{policy}"]) == ("1.0", "not clear")


def test_a_number_is_the_mean_of_its_turns_and_has_no_label() -> None:
    played = Played((), turns=((score("stars", 5.0),), (score("stars", 2.0),)))
    found = row(played)
    assert found["score.stars"] == "3.5"
    assert "label.stars" not in found
    assert row(whole(score("stars", float("nan"))))["score.stars"] == ""


def test_a_metric_that_was_not_judged_has_an_empty_column() -> None:
    found = row(PASS, run={"judged": ("stars", GOAL)})
    scores = {name: value for name, value in found.items() if name not in COLUMNS}
    assert scores == {f"score.{GOAL}": "", f"label.{GOAL}": "", "score.stars": ""}


def test_a_missing_score_is_named_and_no_0() -> None:
    broken = judge_failed("stars")
    played = Played((broken, judge_failed(GOAL)), turns=((score("stars", 4.0),), (broken,)))
    found = row(played)
    assert (found["score.stars"], found["score_failures"]) == ("4.0", f"stars; {GOAL}")
    assert row(PASS)["score_failures"] == ""


def test_a_metric_with_the_name_of_a_column_has_a_column_of_its_own() -> None:
    own = MetricSpec(name="cost", scope="conversation", kind="mean", scale=(0.0, 9.0))
    found = row(whole(score("cost", 7.0)), run={"metrics": (own, STARS), "judged": ("cost",)})
    assert (found["cost"], found["score.cost"]) == ("", "7.0")


def test_the_means_are_those_of_the_json_report() -> None:
    report, decision = judged_run()
    finished = [each for each in table(report) if each["stop"].endswith("_done")]
    compared = 0
    for scenario in results(report, decision).scenarios:
        of_scenario = [each for each in finished if each["scenario"] == scenario.id]
        for metric, aggregate in scenario.aggregates.items():
            values = [float(each[name]) for each in of_scenario if each.get(name := f"score.{metric}")]
            if aggregate.of_samples is not None:
                assert sum(values) / len(values) == pytest.approx(aggregate.of_samples), metric
                compared += 1
    assert compared > 10


# ── text ─────────────────────────────────────────────────────────────────────────────────────────


def test_texts_are_quoted_and_numbers_and_words_of_the_format_are_not() -> None:
    report = report_of({"a": [PASS]})
    head, line = render(report, decide(report), ReportOptions()).splitlines()
    assert head.startswith("scenario,name,")
    assert line.startswith('"a","a","bot",capability,,1,,passed,,,"s/a.yaml:1",')


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ('a "b", c', 'a "b", c'),
        ("two\r\nlines", "two\nlines"),
        ("=1+1", "'=1+1"),
        ("half \ud83d", "half \ufffd"),
        ("a\n::error::x", "a\n: :error::x"),
        ("42", "42"),
        ("-42", "'-42"),
    ],
)
def test_a_text_is_one_cell_and_no_formula(name: str, shown: str) -> None:
    assert row(PASS, scenarios={"a": {"name": name}})["name"] == shown


@given(st.text(st.characters(exclude_categories=())), st.text(max_size=5))
@example('"', '",\n"=x')
@example("\x1b[31m=1", "\u200b=1")
def test_any_text_stays_in_its_cell(name: str, metric: str) -> None:
    own = MetricSpec(name=metric, scope="conversation", kind="mean")
    played = {"a": [whole(score(metric, 1.0)), None]}
    found = rows(played, scenarios={"a": {"name": name}}, run={"metrics": (own,), "judged": (metric,)})
    assert [(each["scenario"], each["verdict"]) for each in found] == [("a", "passed"), ("a", "inconclusive")]
    assert not any(value.lstrip()[:1] in ("=", "+", "-", "@") for value in found[0].values() if value)
