"""Issues in words: how bad each is, how often it occurred, what a model said of it, and where."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import Decision
from agenteval.core.score import Issue, IssueExample, Occurrence, Severity
from agenteval.reporters.words.issue import (
    IssueText,
    by_scenario,
    extent_text,
    grouped_by,
    issues_text,
    not_asked_text,
)
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.score_samples import MODEL, SCRIPT
from tests.support.verdict_runs import PASS, Played, finding, report_of, with_suite

LOW, MEDIUM, HIGH, CRITICAL = Severity
FINDINGS = Played((finding(LOW, None), finding(CRITICAL, None), finding(HIGH, None)), turns=((),))


def at(epoch: int = 0, scenario: str = "a", agent: str = "bot", **more: Any) -> IssueExample:
    return IssueExample(scenario=scenario, agent=agent, epoch=epoch, **more)


def occurs(*findings: int, epoch: int = 0, scenario: str = "a", agent: str = "bot") -> Occurrence:
    return Occurrence(scenario=scenario, agent=agent, epoch=epoch, findings=findings)


def issue(*occurrences: Occurrence, severity: Severity = HIGH, **more: Any) -> Issue:
    fields = {"id": "I1", "agent": "bot", "title": "Lies", "labels": ("x",), "metrics": ("m",), **more}
    return Issue(severity=severity, occurrences=occurrences or (occurs(0),), **fields)


def report_with(*issues: Issue, agents: tuple[str, ...] = ("bot",), epochs: int = 2, **suite: Any) -> Report:
    report = report_of({"a": [FINDINGS] * epochs, "b": [FINDINGS]}, agents=agents)
    return with_suite(replace(report, issues=issues), **suite)


def texts(*issues: Issue, **more: Any) -> tuple[IssueText, ...]:
    report = report_with(*issues, **more)
    return issues_text(report, decide(report))


def only(told: Issue, **more: Any) -> IssueText:
    (text,) = texts(told, **more)
    return text


def test_issues_come_worst_first_and_else_in_their_order() -> None:
    each = [
        issue(severity=severity, id=name)
        for name, severity in zip("abcd", (LOW, HIGH, CRITICAL, HIGH), strict=True)
    ]
    assert [text.issue.id for text in texts(*each)] == ["c", "b", "d", "a"]
    assert texts() == ()


@pytest.mark.parametrize(
    ("source", "findings", "severity"),
    [
        ("table", (1,), MEDIUM),
        ("model", (0,), LOW),
        ("model", (0, 1, 2), CRITICAL),
        ("model", (0, 2), HIGH),
    ],
)
def test_the_severity_is_that_of_the_table_or_of_the_worst_finding(
    source: str, findings: tuple[int, ...], severity: Severity
) -> None:
    text = only(issue(occurs(*findings), severity=MEDIUM), severity_from=source)
    assert text.severity is severity
    remarks = [remark for remark in text.remarks if "severity table" in remark]
    assert remarks == ([] if severity is MEDIUM else ["medium in the severity table"])
    assert text.head.startswith(f"[{severity}] Lies (")


def test_without_a_finding_the_severity_is_that_of_the_table() -> None:
    assert only(issue(occurs(), severity=LOW), severity_from="model").severity is LOW


@pytest.mark.parametrize(
    ("proposed", "remarks"),
    [(None, []), (HIGH, []), (CRITICAL, ["critical"]), (LOW, ["low"])],
)
def test_another_severity_that_a_model_proposed_is_told(
    proposed: Severity | None, remarks: list[str]
) -> None:
    told = only(issue(severity=HIGH, proposed_severity=proposed)).remarks
    assert [remark.rpartition(" ")[2] for remark in told] == remarks


def test_that_a_model_blames_another_is_only_an_opinion() -> None:
    (remark,) = only(issue(not_the_agents_fault="the mock\nis wrong.")).remarks
    assert ": the mock is wrong (" in remark
    assert "verdict" in remark


@pytest.mark.parametrize(
    ("findings", "least", "fails"),
    [
        ((0,), HIGH, False),
        ((1,), HIGH, True),
        ((0, 2), HIGH, True),
        ((2,), CRITICAL, False),
        ((1,), None, False),
    ],
)
def test_an_issue_fails_the_run_by_any_of_its_findings(
    findings: tuple[int, ...], least: Severity | None, fails: bool
) -> None:
    assert only(issue(occurs(*findings)), fail_on_severity=least or "none").fails is fails


def test_the_findings_of_another_sample_do_not_fail_it() -> None:
    report = report_with(issue(occurs(1, epoch=1)), fail_on_severity=CRITICAL)
    decided = decide(report)
    (text,) = issues_text(report, decided)
    assert text.fails
    first = {key: each for key, each in decided.samples.items() if key.epoch == 0}
    (text,) = issues_text(report, Decision(decided.verdict, 1, (), first, decided.scenarios))
    assert not text.fails


@pytest.mark.parametrize(
    ("findings", "samples", "scenarios", "text"),
    [
        (1, 1, 1, "1 occurrence in 1 scenario"),
        (9, 2, 1, "2 occurrences in 1 scenario, 9 findings"),
        (3, 3, 2, "3 occurrences in 2 scenarios"),
        (2000, 1000, 2, "1,000 occurrences in 2 scenarios, 2,000 findings"),
    ],
)
def test_how_often(findings: int, samples: int, scenarios: int, text: str) -> None:
    assert extent_text(findings, samples, scenarios) == text


def test_the_extent_counts_findings_samples_and_scenarios() -> None:
    told = issue(occurs(0, 1), occurs(0, epoch=1), occurs(0, scenario="b"))
    assert only(told).extent == "3 occurrences in 2 scenarios, 4 findings"
    first, _ = texts(told, issue(agent="x"), agents=("bot", "x"))
    assert first.extent == "3 occurrences in 2 scenarios, 4 findings, agent bot"


@pytest.mark.parametrize(
    ("title", "shown"), [("", "(untitled)"), ("a\nb", "a b"), ("x" * 161, "x" * 159 + "…")]
)
def test_the_title(title: str, shown: str) -> None:
    assert only(issue(title=title)).title == shown


def test_the_explanation_is_one_line() -> None:
    assert only(issue(explanation="a\nb")).explanation == "a b"
    assert len(only(issue(explanation="x" * 700)).explanation) == 600


@pytest.mark.parametrize(
    ("examples", "lines"),
    [
        ([], []),
        ([at(0)], ["a · epoch 1"]),
        ([at(0, turn=4), at(0, turn=1), at(0, turn=4)], ["a · epoch 1, turns 2, 5"]),
        ([at(1, turn=0), at(0, turn=0), at(1)], ["a · epoch 2, turn 1", "a · epoch 1, turn 1"]),
        ([at(0, "b", turn=0)], ["b, turn 1"]),
    ],
)
def test_a_line_for_each_sample_with_its_turns(examples: list[IssueExample], lines: list[str]) -> None:
    assert list(only(issue(examples=tuple(examples))).examples) == lines


def test_an_example_of_a_scenario_that_is_not_there_has_a_name_too() -> None:
    (line,) = only(issue(examples=(at(0, "gone"),))).examples
    assert "gone" in line


def test_each_example_is_quoted_and_the_first_that_says_something_is_the_evidence() -> None:
    text = only(issue(examples=(at(0, turn=0), at(0, turn=2, evidence="Bo\noked"), at(1, evidence="y"))))
    assert text.quotations == (
        ("a · epoch 1, turn 1", ""),
        ("a · epoch 1, turn 3", "Bo oked"),
        ("a · epoch 2", "y"),
    )
    assert text.evidence == "Bo oked"
    assert only(issue()).evidence == ""


def test_places_do_not_name_the_agent() -> None:
    first, _ = texts(issue(examples=(at(0, "b"),)), issue(agent="x"), agents=("bot", "x"))
    assert first.examples == ("b",)


def test_issues_by_scenario_and_agent() -> None:
    one = issue(occurs(0), occurs(0, epoch=1), occurs(0, scenario="b"), id="one")
    two = issue(occurs(1), id="two", severity=LOW)
    other = issue(occurs(1, agent="x"), id="other", agent="x", severity=LOW)
    found = by_scenario(texts(one, two, other, agents=("bot", "x")))
    assert {key: [text.issue.id for text in each] for key, each in found.items()} == {
        ("a", "bot"): ["one", "two"],
        ("b", "bot"): ["one"],
        ("a", "x"): ["other"],
    }
    assert by_scenario(()) == {}


@pytest.mark.parametrize(
    ("by", "text"), [("", "code"), (MODEL, MODEL), (SCRIPT, f"{SCRIPT} (no language model)")]
)
def test_who_grouped_the_findings(by: str, text: str) -> None:
    assert grouped_by(issue(by=by)) == text


@pytest.mark.parametrize(("count", "fact"), [(0, ""), (1, "1 finding "), (2, "2 findings ")])
def test_findings_that_no_model_grouped(count: int, fact: str) -> None:
    text = not_asked_text(replace(report_of({"a": [PASS]}), findings_not_asked=count))
    assert text.startswith(fact)
    assert bool(text) is bool(count)
