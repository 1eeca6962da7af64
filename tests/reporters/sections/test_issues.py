"""Issues in a report, and what failed that is not the agent's fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.score import Issue, ScoreFailure, Severity
from agenteval.reporters.sections.issues import TONES, failures_outside_agent, issues
from agenteval.reporters.sections.section import Item, Section, StyledText, Tone
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.judge import MissingScore
from agenteval.scoring.detectors.table import DETECTORS
from agenteval.verdict.gates import decide
from tests.support.report_samples import mixed, passing
from tests.support.score_samples import MODEL, SCRIPT, judged_run, lie_issue, small_issues
from tests.support.verdict_runs import PASS, Played, finding, judge_failed, report_of, whole

LOW, MEDIUM, HIGH, CRITICAL = Severity


def facts_of(*found: Issue, **more: Any) -> Facts:
    report, decision = judged_run()
    return Facts(replace(report, issues=found, **more), decision)


def section_of(*found: Issue, **more: Any) -> Section:
    (section,) = issues(facts_of(*found, **more))
    return section


def items(section: Section) -> list[Item]:
    return [note for note in section.notes if isinstance(note, Item)]


def plain(spans: Sequence[str | StyledText]) -> list[str]:
    return [span.text if isinstance(span, StyledText) else span for span in spans]


def test_each_severity_has_its_tone() -> None:
    assert TONES == {CRITICAL: Tone.WORST, HIGH: Tone.BAD, MEDIUM: Tone.OPEN, LOW: Tone.QUIET}


def test_without_findings_there_is_no_section() -> None:
    assert list(issues(Facts(*passing()))) == []


def test_issues_come_worst_first_with_their_extent() -> None:
    section = section_of(*reversed(small_issues()), lie_issue())
    assert section.title == "Issues"
    assert [plain(item.head) for item in items(section)] == [
        ["[high]", " Claims a booking that was never made", " (1 occurrence in 1 scenario, 2 findings)"],
        ["[medium]", " criterion not met: Confirms the date", " (1 occurrence in 1 scenario)"],
        ["[low]", " repetition", " (1 occurrence in 1 scenario)"],
    ]
    assert [item.head[0] for item in items(section)] == [
        StyledText("[high]", Tone.BAD),
        StyledText("[medium]", Tone.OPEN),
        StyledText("[low]", Tone.QUIET),
    ]


def test_below_an_issue_stand_its_explanation_quotations_and_remarks() -> None:
    lie, unmet, repeats = items(section_of(lie_issue(), *small_issues()))
    assert plain(lie.below) == [
        "The agent says that it booked, but no tool was called.",
        'book-morning · epoch 2, turn 1: "Booked!"',
        f"the model proposed critical; grouped by {MODEL}",
    ]
    assert plain(unmet.below)[1:] == ["book-morning · epoch 2: (nothing quoted)", "grouped by code"]
    assert plain(repeats.below)[1:] == ['refund · epoch 1, turn 2: "As I said"', "grouped by code"]


def test_one_quotation_is_shown_once() -> None:
    (example,) = lie_issue().examples
    issue = lie_issue().model_copy(update={"examples": (example, example)})
    (item,) = items(section_of(issue))
    assert len(item.below) == 3


@pytest.mark.parametrize(
    ("found", "each", "last"),
    [
        ((lie_issue(),), ["the model proposed critical"], f"grouped by {MODEL}"),
        (small_issues(), ["", ""], "grouped by code"),
        (
            (lie_issue(), small_issues()[0]),
            [f"the model proposed critical; grouped by {MODEL}", "grouped by code"],
            None,
        ),
    ],
    ids=["one model", "code alone", "both"],
)
def test_who_grouped_is_said_once_where_it_is_the_same(
    found: tuple[Issue, ...], each: list[str], last: str | None
) -> None:
    section = section_of(*found)
    assert [plain(item.below)[-1] for item in items(section)] == each
    assert [note for note in section.notes if not isinstance(note, Item)] == (
        [StyledText(last, Tone.QUIET)] if last else []
    )


@pytest.mark.parametrize(
    ("scripted", "by", "marked"),
    [(True, MODEL, True), (True, SCRIPT, False), (False, MODEL, False), (True, "", True)],
)
def test_a_scripted_issue_is_marked_unless_its_model_says_so(scripted: bool, by: str, marked: bool) -> None:
    issue = lie_issue().model_copy(update={"scripted": scripted, "by": by})
    (item,) = items(section_of(issue))
    assert plain(item.below)[-1].endswith("; scripted") is marked


@pytest.mark.parametrize(("count", "fact"), [(0, None), (1, "1 finding "), (1200, "1,200 findings ")])
def test_findings_that_no_model_was_asked_about_are_counted(count: int, fact: str | None) -> None:
    _, _, *rest = section_of(lie_issue(), findings_not_asked=count).notes
    assert [fact in note.text for note in rest if isinstance(note, StyledText) and fact] == [True] * bool(
        fact
    )


@pytest.mark.parametrize(("severity", "fails"), [(HIGH, False), (CRITICAL, True)])
def test_an_issue_that_fails_the_run_is_marked(severity: Severity, fails: bool) -> None:
    issue = lie_issue().model_copy(update={"agent": "bot", "examples": ()})
    place = issue.occurrences[0].model_copy(
        update={"scenario": "a", "agent": "bot", "epoch": 0, "findings": (0,)}
    )
    report = report_of({"a": [whole(finding(severity, None))]})
    report = replace(report, issues=(issue.model_copy(update={"occurrences": (place,)}),))
    (section,) = issues(Facts(report, decide(report)))
    (item,) = items(section)
    assert (StyledText("  fails the run", Tone.BAD) in item.head) is fails


# ── findings that were not grouped ───────────────────────────────────────────────────────────────


def test_of_an_interrupted_run_labels_are_counted_worst_first() -> None:
    told = {
        "a": [whole(finding(LOW, None, label="slow"), finding(HIGH, None)), whole(finding(HIGH, None))],
        "b": [Played((), turns=((finding(HIGH, 0), finding(HIGH, 0)),))],
        "c": [PASS],
    }
    report = report_of(told, outcome=None)
    (section,) = issues(Facts(report, decide(report)))
    assert section.title != "Issues"
    assert [(item.head, item.below) for item in items(section)] == [
        (
            (
                StyledText("[high]", Tone.BAD),
                " false information (3 occurrences in 2 scenarios, 4 findings)",
            ),
            (),
        ),
        ((StyledText("[low]", Tone.QUIET), " slow (1 occurrence in 1 scenario)"), ()),
    ]


# ── failures that are not the agent's ────────────────────────────────────────────────────────────


def outside(played: Played, **more: Any) -> list[Section]:
    report = replace(report_of({"a": [played]}), **more)
    return list(failures_outside_agent(Facts(report, decide(report))))


def test_nothing_failed_outside_the_agent() -> None:
    assert outside(PASS) == []


def test_judges_unclear_questions_and_detectors_have_sections_of_their_own() -> None:
    failed = (
        ScoreFailure(metric=next(iter(DETECTORS)), message="boom"),
        judge_failed("relevance", unclear=True),
        judge_failed("stars"),
    )
    sections = outside(whole(*failed))
    assert [section.title.split(" (")[0] for section in sections] == [str(kind) for kind in MissingScore]
    names = [plain(item.head)[1] for section in sections for item in items(section)]
    assert names == ["stars", "relevance", next(iter(DETECTORS))]


@pytest.mark.parametrize(("raw", "below"), [("{oops", ["said: {oops"]), ("", []), (" \n", [])])
def test_a_failed_judge_has_its_message_place_and_reply(raw: str, below: list[str]) -> None:
    (section,) = outside(whole(judge_failed("stars", raw=raw)))
    (item,) = items(section)
    assert item.head == (
        StyledText("! ", Tone.OPEN),
        StyledText("stars", Tone.STRONG),
        ": no answer",
        StyledText("  (a)", Tone.QUIET),
    )
    assert plain(item.below) == below


def test_faults_of_a_simulated_user_are_listed_unless_they_ended_the_sample() -> None:
    section = list(failures_outside_agent(Facts(*judged_run())))[-1]
    assert section.title.startswith("Simulated user: 2 of 6 messages")
    (note,) = section.notes
    assert isinstance(note, StyledText)
    assert note.text.startswith("book-morning · epoch 1, turn 2: spoke as the assistant")
    assert note.tone is Tone.QUIET


def test_a_failure_met_twice_is_one_line() -> None:
    (section,) = failures_outside_agent(Facts(*mixed("a", "b")))
    (item,) = items(section)
    assert "2 times in 2 samples" in plain(item.head)[-1]
