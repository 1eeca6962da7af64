"""``score --max-rate``: the share of recorded conversations with a finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agenteval.core.decision import SampleDecision, Violation
from agenteval.core.score import Check, Severity, UserReview, Verdict
from agenteval.core.trajectory import StopReason
from agenteval.verdict.max_rates import MAX_RATE, Shares, failed_checks, is_bad, max_rate_rows, shares_of
from agenteval.verdict.recorded_logs import SEVERE
from tests.support.verdict_runs import (
    BEHAVIOR,
    BROKEN,
    HELD,
    UNDECIDED,
    Played,
    finding,
    judge_failed,
    report_of,
    sample_verdicts,
    score,
    unclear,
    with_suite,
)

LOW, MEDIUM, HIGH, CRITICAL = Severity
PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


def recorded(*items: Any, stop: StopReason = StopReason.RECORDED) -> Played:
    return Played(items, turns=((),), stop=stop, detail="log.jsonl:3: x")


GOOD, BAD = recorded(HELD), recorded(finding(HIGH))
OPEN_ONE = recorded(judge_failed(BEHAVIOR))
UNREADABLE = recorded(stop=StopReason.UNREADABLE)


def shares(played: Sequence[Played], severity: Severity = HIGH, **config: Any) -> Shares:
    report = report_of({f"s{n}": [each] for n, each in enumerate(played)}, **config)
    return shares_of(report, sample_verdicts(report), severity, "again")


@pytest.mark.parametrize(
    ("played", "severity", "counts"),
    [
        ([GOOD, BAD], HIGH, (2, 1, 0, 0)),
        ([GOOD, BAD], MEDIUM, (2, 1, 0, 0)),
        ([GOOD, BAD], CRITICAL, (2, 0, 0, 0)),
        ([recorded(finding(LOW))], LOW, (1, 1, 0, 0)),
        ([recorded(finding(HIGH), finding(HIGH, turn=None))], HIGH, (1, 1, 0, 0)),
        # A check that does not pass fails a conversation regardless of the severity.
        ([recorded(BROKEN)], CRITICAL, (1, 1, 0, 1)),
        ([recorded(BROKEN, finding(HIGH))], HIGH, (1, 1, 0, 0)),
        ([GOOD, OPEN_ONE], HIGH, (2, 0, 1, 0)),
        ([recorded(finding(HIGH), judge_failed(BEHAVIOR))], HIGH, (1, 1, 0, 0)),
        ([recorded(judge_failed(BEHAVIOR, worst=MEDIUM))], HIGH, (1, 0, 0, 0)),
        ([recorded(judge_failed("stars"))], LOW, (1, 0, 0, 0)),
        ([recorded(unclear(BEHAVIOR))], HIGH, (1, 0, 1, 0)),
        ([recorded(unclear("stars"))], HIGH, (1, 0, 0, 0)),
        ([recorded(score(BEHAVIOR, label="no failure", ok=True))], HIGH, (1, 0, 0, 0)),
        ([recorded(UNDECIDED)], HIGH, (1, 0, 1, 0)),
        ([recorded(judge_failed("stars", author=True))], HIGH, (1, 0, 0, 0)),
        ([recorded(stop=StopReason.INFRASTRUCTURE)], HIGH, (1, 0, 1, 0)),
        ([recorded(stop=StopReason.AGENT_ERROR)], HIGH, (1, 1, 0, 1)),
        ([UNREADABLE, GOOD], HIGH, (1, 0, 0, 0)),
        ([UNREADABLE], HIGH, (0, 0, 0, 0)),
    ],
)
def test_what_counts_against_a_rate(
    played: list[Played], severity: Severity, counts: tuple[int, int, int, int]
) -> None:
    found = shares(played, severity)
    assert (found.conversations, len(found.bad), len(found.unknown), found.by_checks) == counts
    assert sum(found.remedies.values()) == len(found.unknown)


def test_remedies_are_counted_by_conversation() -> None:
    broken = recorded(judge_failed("leak"))
    found = shares([OPEN_ONE, OPEN_ONE, broken])
    assert dict(found.remedies) == {"again": 2, "no answer": 1}
    checks = [
        recorded(Check(name="x", passed=None, detail=detail)) for detail in ("", "why", "not decided: so")
    ]
    assert dict(shares(checks).remedies) == {"x": 1, "why": 1, "so": 1}
    report = report_of({"a": [OPEN_ONE]})
    assert dict(shares_of(report, sample_verdicts(report), HIGH).remedies) == {BEHAVIOR: 1}


def test_a_fault_of_the_user_has_a_remedy_of_its_own() -> None:
    by_user = UserReview(label="hindered", explains=True, turn=0)
    lost = recorded(stop=StopReason.SIMULATOR)
    (other,) = shares([lost]).remedies
    (own,) = shares([recorded(by_user, stop=StopReason.SIMULATOR)]).remedies
    fine = UserReview(label="as it should", turn=0)
    assert own != other
    assert list(shares([recorded(fine, stop=StopReason.SIMULATOR)]).remedies) == [other]


@pytest.mark.parametrize(
    ("played", "bound", "verdict", "value"),
    [
        ([BAD, GOOD, GOOD, GOOD], 0.25, PASSED, 0.25),
        ([BAD, GOOD, GOOD, GOOD], 0.24, FAILED, 0.25),
        ([GOOD], 0.0, PASSED, 0),
        ([BAD], 0.0, FAILED, 1),
        ([OPEN_ONE, GOOD, GOOD, GOOD], 0.25, PASSED, 0),
        ([OPEN_ONE, GOOD, GOOD, GOOD], 0.24, OPEN, 0),
        ([OPEN_ONE, BAD, GOOD, GOOD], 0.5, PASSED, 0.25),
        ([OPEN_ONE, BAD, GOOD, GOOD], 0.25, OPEN, 0.25),
        ([OPEN_ONE, BAD, GOOD, GOOD], 0.2, FAILED, 0.25),
        ([BAD] * 29 + [GOOD] * 71, 0.29, PASSED, 0.29),  # as written, not as rounded
        ([UNREADABLE], 1.0, OPEN, None),
    ],
)
def test_the_row_of_a_rate(played: list[Played], bound: float, verdict: Verdict, value: float | None) -> None:
    made = report_of({f"s{n}": [each] for n, each in enumerate(played)})
    report = with_suite(made, max_rates={HIGH: bound})
    (row,) = max_rate_rows(report, sample_verdicts(made), "again")
    assert (row.verdict, row.value, row.bound) == (verdict, value, bound)
    assert (row.name, row.where) == (f"{MAX_RATE} high", MAX_RATE)
    assert bool(row.resolution) is (verdict is OPEN)


def test_each_rate_has_its_row_by_its_own_severity() -> None:
    made = report_of({"a": [BAD], "b": [GOOD]})
    report = with_suite(made, max_rates={CRITICAL: 0.1, LOW: 0.1})
    rows = list(max_rate_rows(report, sample_verdicts(made), ""))
    assert [(row.name, row.verdict, row.value) for row in rows] == [
        (f"{MAX_RATE} critical", PASSED, 0),
        (f"{MAX_RATE} low", FAILED, 0.5),
    ]
    assert list(max_rate_rows(made, {}, "")) == []


def test_rules_that_are_not_findings_as_well() -> None:
    names = ("output.contains", SEVERE, "leak", "tool_calls")
    violations = [Violation(name, "", "") for name in names]
    violations.append(Violation("python", "", "", Verdict.INCONCLUSIVE))
    decided = SampleDecision(FAILED, None, tuple(violations))
    assert list(failed_checks(decided)) == ["output.contains", "tool_calls"]


def test_a_conversation_is_bad_by_a_finding_or_a_check() -> None:
    report = report_of({"a": [recorded(Check(name="x", passed=False))], "b": [GOOD]})
    samples = sample_verdicts(report)
    first, second = samples
    assert [is_bad(first, samples, set()), is_bad(second, samples, set())] == [True, False]
    assert is_bad(second, samples, {second}) is True
