"""Issues on a screen, one on each line: how many, of which severity, and where they first occurred."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.score import Issue, IssueExample, Occurrence, Severity, Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.issues import issue_lines
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import PASS, report_of

P, F = Verdict.PASSED, Verdict.FAILED
LOW, MEDIUM, HIGH, CRITICAL = Severity


def issue(severity: Severity = HIGH, title: str = "Lies", *, samples: int = 1, **more: Any) -> Issue:
    occurrences = tuple(Occurrence(scenario="a", agent="bot", epoch=n, findings=(0,)) for n in range(samples))
    examples = (IssueExample(scenario="a", agent="bot"),)
    fields = {"id": "I", "agent": "bot", "labels": ("x",), "metrics": ("m",), "examples": examples, **more}
    return Issue(severity=severity, title=title, occurrences=occurrences, **fields)


def shown(*issues: Issue, width: int = 60, verdict: Verdict = F, **decision: Any) -> list[str]:
    report = replace(report_of({"a": [PASS]}), issues=issues)
    facts = Facts(report, replace(decide(report), verdict=verdict, **decision))
    told = ReportOptions(width=width)
    return render_parts(issue_lines(facts, told), told).splitlines()


def test_a_line_has_severity_title_place_and_frequency() -> None:
    first, second, end = shown(issue(CRITICAL), issue(LOW, samples=1200))
    assert first == "critical  Lies" + " " * 45 + "a"
    assert second.startswith("low       Lies ")
    assert second.endswith(" a (1,200×)")
    assert (len(first), len(second), end) == (60, 60, "")


def test_the_worst_comes_first() -> None:
    lines = shown(issue(LOW), issue(CRITICAL), issue(MEDIUM), issue(HIGH))
    assert [line.split()[0] for line in lines[:-1]] == ["critical", "high", "medium", "low"]


@pytest.mark.parametrize(
    ("count", "rest"),
    [(5, []), (6, ["… and 1 low; -v lists them"]), (8, ["… and 1 medium, 2 low; -v lists them"])],
)
def test_five_are_shown_and_the_others_counted_by_severity(count: int, rest: list[str]) -> None:
    severities = [HIGH] * 5 + ([LOW] if count == 6 else [LOW, MEDIUM, LOW])[: count - 5]
    lines = shown(*map(issue, severities))
    assert lines[5:-1] == rest


@pytest.mark.parametrize(
    ("severities", "heads"),
    [
        ([], []),
        ([LOW, MEDIUM], ["issues:      1 medium, 1 low; -v lists them"]),
        ([HIGH], ["high"]),
        ([HIGH, LOW], ["high", "… and 1 low; -v lists them"]),
        ([CRITICAL, HIGH, HIGH], ["critical", "high", "… and 1 high; -v lists them"]),
    ],
)
def test_of_a_run_that_passed_at_most_two_severe_ones_are_shown(
    severities: list[Severity], heads: list[str]
) -> None:
    lines = shown(*map(issue, severities), verdict=P)
    assert [line.split("  Lies")[0].strip() for line in lines] == heads


def test_without_issues_there_is_no_line() -> None:
    assert shown() == []


@pytest.mark.parametrize(("by", "count"), [((), 0), (("",), 0), (("m",), 2), (("", "m"), 3)])
def test_what_code_grouped_is_in_the_table_of_a_reported_log(by: tuple[str, ...], count: int) -> None:
    assert len(shown(*(issue(by=name) for name in by), is_reported=True)) == count


def test_a_long_place_and_a_long_title_are_cut() -> None:
    long = issue(title="t" * 100, examples=(IssueExample(scenario="s" * 50, agent="bot"),))
    (line,) = shown(long)[:-1]
    assert len(line) == 60
    title, place = line.removeprefix("high      ").split("  ")
    assert (title[-1], place) == ("…", "s" * 23 + "…")
    (bare,) = shown(issue(examples=()))[:-1]
    assert bare.rstrip() == "high      Lies"
