"""Which findings count, and which failed judges might have found something that counts."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.decision import SampleDecision
from agenteval.core.score import Severity, Verdict
from agenteval.core.trajectory import StopReason
from agenteval.verdict.counted_findings import (
    failed_below_gate,
    gates_by_severity,
    list_counted_findings,
    locate_counted_findings,
    may_hide,
)
from tests.support.verdict_runs import (
    BEHAVIOR,
    GOAL,
    Played,
    finding,
    judge_failed,
    only_sample,
    only_scenario,
    report_of,
    sample_verdicts,
    score,
    whole,
)

LOW, HIGH, CRITICAL = Severity.LOW, Severity.HIGH, Severity.CRITICAL


@pytest.mark.parametrize(
    ("fault", "counts"),
    [
        (None, True),
        ("agent", True),
        ("judge", True),
        ("undecided", True),
        ("infrastructure", False),
        ("simulator", False),
        ("author", False),
        ("recording", False),
        ("interrupted", False),
        ("budget", False),
    ],
)
def test_findings_of_samples_with_a_fault_that_is_not_the_agents_do_not_count(
    fault: str | None, counts: bool
) -> None:
    report = report_of({"a": [whole(finding(LOW), finding(HIGH, turn=None))]})
    key = only_sample(report).key
    decided = {key: SampleDecision(Verdict.FAILED, fault)}
    found = list(locate_counted_findings(report.scenarios, decided, report))
    assert [(sample, place, each.severity) for sample, place, each in found] == (
        [(key, 0, LOW), (key, 1, HIGH)] if counts else []
    )
    assert len(list_counted_findings(report.scenarios, decided, report)) == 2 * counts


def test_findings_of_samples_without_a_decision_do_not_count() -> None:
    report = report_of({"a": [whole(finding())]})
    assert list_counted_findings(report.scenarios, {}, report) == []


def test_accepted_findings_do_not_count_and_the_others_keep_their_place() -> None:
    epochs = {"a": [whole(finding(CRITICAL), finding(HIGH, turn=None))]}
    first = report_of(epochs)
    (name,) = next(iter(sample_verdicts(first).values())).violations[0].fingerprints
    entry = {"fingerprint": name, "owner": "o", "reason": "r", "expires": "9999-12-31"}

    def places(**more: str) -> list[int]:
        report = report_of(epochs, accepted_failures=[{**entry, **more}])
        found = locate_counted_findings(report.scenarios, sample_verdicts(report), report)
        return [place for _, place, _ in found]

    assert places() == [1]
    assert places(fingerprint="0" * 12) == [0, 1]
    assert places(expires="2026-11-20") == [0, 1]  # the run was on the 21st
    assert places(expires="2026-11-21") == [1]


@pytest.mark.parametrize(
    ("metric", "has_severity"),
    [(BEHAVIOR, True), ("leak", True), ("repetition", True), ("stars", False), (GOAL, False), ("x", False)],
)
def test_labels_and_detectors_have_a_severity(metric: str, has_severity: bool) -> None:
    assert gates_by_severity(metric, report_of({"a": [whole()]}).plan) is has_severity


@pytest.mark.parametrize(
    ("failure", "fail_on", "config", "hides"),
    [
        (judge_failed(BEHAVIOR), "critical", {}, True),
        (judge_failed(BEHAVIOR), "none", {}, False),
        (judge_failed("stars"), "low", {}, False),
        (judge_failed("leak"), "critical", {}, True),
        (judge_failed(BEHAVIOR, worst=CRITICAL), "critical", {}, True),
        (judge_failed(BEHAVIOR, worst=HIGH), "critical", {}, False),
        (judge_failed(BEHAVIOR, worst=HIGH), "high", {}, True),
        (judge_failed("stars", worst=CRITICAL), "high", {}, False),
        # A model may raise a severity by one level.
        (judge_failed(BEHAVIOR, worst=HIGH), "critical", {"severity_from": "model"}, True),
        (judge_failed(BEHAVIOR, worst=Severity.MEDIUM), "critical", {"severity_from": "model"}, False),
        # A goal that was missed may be severe: alone, or if no conversation reached it.
        (judge_failed(GOAL), "critical", {}, True),
        (judge_failed(GOAL), "none", {}, False),
        (judge_failed(GOAL), "critical", {"severities": {"goal never completed": "high"}}, False),
        (judge_failed(GOAL), "high", {"severities": {"goal never completed": "low"}}, True),
    ],
)
def test_what_a_failed_judge_may_hide(failure: Any, fail_on: str, config: Any, hides: bool) -> None:
    report = report_of({"a": [whole(failure)]}, fail_on_severity=fail_on, **config)
    assert may_hide(failure, only_scenario(report), report.plan) is hides


def test_a_goal_reached_elsewhere_was_not_missed_everywhere() -> None:
    failure = judge_failed(GOAL)
    report = report_of({"a": [whole(failure), whole(score(GOAL, 1.0))]})
    assert may_hide(failure, only_scenario(report), report.plan) is False


@pytest.mark.parametrize(
    ("failures", "config", "count"),
    [
        ([judge_failed(BEHAVIOR, worst=LOW)], {}, 1),
        ([judge_failed(BEHAVIOR, worst=LOW), judge_failed(BEHAVIOR, worst=HIGH)], {}, 2),
        ([judge_failed(BEHAVIOR)], {}, 0),  # it may hide something
        ([judge_failed(BEHAVIOR)], {"fail_on_severity": "none"}, 1),
        ([judge_failed(GOAL)], {"fail_on_severity": "none"}, 1),
        ([judge_failed("stars")], {"fail_on_severity": "none"}, 0),  # a number has no severity
        ([judge_failed(BEHAVIOR, unclear=True)], {"fail_on_severity": "none"}, 0),
        ([judge_failed(BEHAVIOR, author=True)], {"fail_on_severity": "none"}, 0),
        ([judge_failed(BEHAVIOR, refused=True)], {"fail_on_severity": "none"}, 0),
        ([judge_failed(BEHAVIOR)], {"fail_on_severity": "none", "judge": {"on_failure": "skip"}}, 0),
        ([], {}, 0),
    ],
)
def test_how_many_judges_failed_that_could_not_fail_a_sample(
    failures: list[Any], config: dict[str, Any], count: int
) -> None:
    report = report_of({"a": [whole(*failures)]}, **config)
    assert failed_below_gate(report) == count


def test_failures_of_turns_count_too() -> None:
    failure = judge_failed(BEHAVIOR, worst=LOW)
    report = report_of({"a": [Played((failure,), ((failure,), (failure,)))], "b": [whole(failure)]})
    assert failed_below_gate(report) == 4


def test_a_lost_sample_has_no_findings_in_a_whole_run() -> None:
    played = Played((), ((finding(turn=0),),), stop=StopReason.AGENT_ERROR)
    report = report_of({"a": [played]})
    assert len(list_counted_findings(report.scenarios, sample_verdicts(report), report)) == 1
