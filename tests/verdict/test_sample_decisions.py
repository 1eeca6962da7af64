"""What a sample comes to, and what is known of it before its run is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agenteval.core.decision import SampleDecision
from agenteval.core.scenario import SampleKey
from agenteval.core.score import OUTCOME, RULED_OUT, Check, Severity, UserReview, Verdict
from agenteval.core.trajectory import Stop, StopReason
from agenteval.verdict.recorded_logs import SEVERE
from agenteval.verdict.report import Report
from agenteval.verdict.sample_decisions import (
    decide_samples,
    fails_alone,
    is_never_tolerated,
    is_severe,
    sample_failed,
)
from tests.support.verdict_runs import (
    BEHAVIOR,
    BROKEN,
    CUT,
    FAIL,
    GOAL,
    HELD,
    LOST,
    PASS,
    UNDECIDED,
    Played,
    finding,
    judge_failed,
    report_of,
    score,
    unclear,
    whole,
)

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
LOW, MEDIUM, HIGH, CRITICAL = Severity
SKIP = {"judge": {"on_failure": "skip"}}
UNJUDGED = Check(name="criteria", passed=None)
NOT_CLEAR_CRITERION = Check(name="criteria", passed=None, by="openai/m")
EMPTY = Check(name="answer", passed=False)


def decided(played: Played | None, *others: Played | None, **more: Any) -> SampleDecision:
    report = report_of({"a": [played, *others]}, **more)
    return decide_samples(report)[SampleKey(scenario="a", agent="bot")]


def names(found: SampleDecision) -> list[str]:
    return [violation.name for violation in found.violations]


@pytest.mark.parametrize(
    ("played", "config", "verdict", "fault", "violated"),
    [
        (PASS, {}, PASSED, None, []),
        (whole(), {}, PASSED, None, []),
        (FAIL, {}, FAILED, None, ["output.contains"]),
        (Played((), ((BROKEN,),)), {}, FAILED, None, ["output.contains"]),
        (whole(UNDECIDED), {}, OPEN, "undecided", ["python"]),
        (whole(UNDECIDED, BROKEN), {}, FAILED, None, ["python", "output.contains"]),
        (whole(Check(name=OUTCOME, passed=None)), {}, PASSED, None, []),
        (whole(Check(name=OUTCOME, passed=False)), {}, FAILED, None, [OUTCOME]),
        # An empty answer is reported by the whole conversation, if at all.
        (Played((EMPTY,), ((EMPTY,),)), {}, FAILED, None, ["answer"]),
        (Played((), ((EMPTY,), (EMPTY,))), {}, FAILED, None, ["answer", "answer"]),
        (Played((Check(name="answer", passed=True),), ((EMPTY,),)), {}, FAILED, None, ["answer"]),
        # Findings at or above the severity that fails.
        (whole(finding(CRITICAL)), {}, FAILED, None, [SEVERE]),
        (whole(finding(HIGH)), {}, PASSED, None, []),
        (whole(finding(HIGH)), {"fail_on_severity": "high"}, FAILED, None, [SEVERE]),
        (whole(finding(MEDIUM)), {"fail_on_severity": "high"}, PASSED, None, []),
        (whole(finding(CRITICAL)), {"fail_on_severity": "none"}, PASSED, None, []),
        # Judges that failed.
        (whole(judge_failed(BEHAVIOR)), {}, OPEN, "judge", ["judge"]),
        (whole(judge_failed(BEHAVIOR), BROKEN), {}, FAILED, None, ["output.contains", "judge"]),
        (whole(judge_failed(BEHAVIOR, worst=HIGH)), {}, PASSED, None, []),
        (whole(judge_failed(BEHAVIOR)), {"fail_on_severity": "none"}, PASSED, None, []),
        (whole(judge_failed("stars")), {}, PASSED, None, []),
        (whole(judge_failed("stars", author=True)), {}, OPEN, "judge", ["judge"]),
        (whole(judge_failed("criteria")), {}, PASSED, None, []),
        (whole(judge_failed("user_review")), {}, PASSED, None, []),
        (whole(judge_failed("leak")), {}, OPEN, "judge", ["judge"]),
        (whole(judge_failed("leak")), {"fail_on_severity": "none"}, PASSED, None, []),
        (whole(judge_failed("a check of ours")), {}, OPEN, "judge", ["judge"]),
        (whole(judge_failed("a check of ours")), {"fail_on_severity": "none"}, OPEN, "judge", ["judge"]),
        (Played((), ((), (judge_failed(BEHAVIOR),))), {}, OPEN, "judge", ["judge"]),
        (whole(judge_failed(BEHAVIOR)), SKIP, PASSED, None, []),
        (whole(judge_failed(BEHAVIOR, author=True)), SKIP, OPEN, "judge", ["judge"]),
        (whole(judge_failed(BEHAVIOR, is_verdict=True)), SKIP, OPEN, "judge", ["judge"]),
        # Criteria that no judge answered, and those with an answer.
        (whole(UNJUDGED), {}, OPEN, "judge", ["criteria"]),
        (whole(UNJUDGED), {"run": {"no_judge": True}}, OPEN, "undecided", ["criteria"]),
        (whole(NOT_CLEAR_CRITERION), {}, OPEN, "undecided", ["criteria"]),
        (whole(UNJUDGED, judge_failed("criteria")), SKIP, PASSED, None, []),
        (whole(UNJUDGED, judge_failed("criteria", author=True)), SKIP, OPEN, "judge", ["criteria", "judge"]),
        (whole(UNJUDGED), SKIP, OPEN, "judge", ["criteria"]),
        (whole(NOT_CLEAR_CRITERION, judge_failed("criteria")), SKIP, OPEN, "undecided", ["criteria"]),
        (whole(UNJUDGED, HELD), {"code_only": True}, PASSED, None, []),
        (whole(UNJUDGED), {"code_only": True}, OPEN, "judge", ["criteria"]),
        # The agent's own failure.
        (Played(stop=StopReason.AGENT_ERROR), {}, FAILED, "agent", ["no_error"]),
        (Played(stop=StopReason.TOOL_LOOP), {}, FAILED, "agent", ["no_error"]),
        (
            Played((Check(name="no_error", passed=False),), stop=StopReason.AGENT_TIMEOUT),
            {},
            FAILED,
            "agent",
            ["no_error"],
        ),
        # Faults that are not the agent's.
        (LOST, {}, OPEN, "infrastructure", ["infrastructure"]),
        (CUT, {}, OPEN, "interrupted", ["interrupted"]),
        (None, {}, OPEN, "interrupted", ["interrupted"]),
        (Played(stop=StopReason.AUTHOR_ERROR), {}, OPEN, "author", ["author"]),
        (Played(stop=StopReason.SIMULATOR), {}, OPEN, "simulator", ["simulator"]),
        (Played(stop=StopReason.BUDGET), {}, OPEN, "budget", ["budget"]),
        (Played(stop=StopReason.UNREADABLE, detail="a:1: x"), {}, OPEN, "recording", ["recording"]),
        (
            Played((), ((BROKEN,),), stop=StopReason.BUDGET),
            {},
            FAILED,
            None,
            ["output.contains", "budget"],
        ),
        (Played((UNDECIDED,), ((),), stop=StopReason.BUDGET), {}, OPEN, "budget", ["budget"]),
        (Played((finding(turn=0),), ((),), stop=StopReason.BUDGET), {}, FAILED, None, [SEVERE, "budget"]),
        (Played((finding(turn=1),), ((),), stop=StopReason.BUDGET), {}, OPEN, "budget", ["budget"]),
    ],
)
def test_what_a_sample_comes_to(
    played: Played | None, config: Any, verdict: Verdict, fault: str | None, violated: list[str]
) -> None:
    found = decided(played, **config)
    assert (found.verdict, found.fault, names(found)) == (verdict, fault, violated)


def test_recorded_calls_of_the_turn_that_errored_are_proof() -> None:
    calls = Check(name="tool_calls", passed=False)
    answer = Check(name="output.contains", passed=False)
    lost = Played((calls.model_copy(update={"turn": 1}),), ((),), stop=StopReason.INFRASTRUCTURE)
    assert decided(lost).verdict is FAILED
    other = Played((answer.model_copy(update={"turn": 1}),), ((),), stop=StopReason.INFRASTRUCTURE)
    assert decided(other).verdict is OPEN
    first = Played((answer.model_copy(update={"turn": 0}),), ((),), stop=StopReason.INFRASTRUCTURE)
    assert decided(first).verdict is FAILED


@pytest.mark.parametrize(
    ("played", "turn"),
    [
        (Played((), ((), (BROKEN,))), 1),
        (whole(BROKEN), None),
        (whole(BROKEN.model_copy(update={"turn": 0})), 0),
        (Played((), ((), ()), stop=StopReason.AGENT_ERROR), 2),
        (Played((), ((), ()), stop=StopReason.INFRASTRUCTURE), 2),
        (Played((), ((), ()), stop=None), None),
        (Played((), (), stop=StopReason.UNREADABLE), None),
        (Played((EMPTY,), ((EMPTY,),)), None),
        (whole(finding(turn=0)), 0),
        (whole(finding(turn=None)), None),
        (Played((), ((), (judge_failed(BEHAVIOR),))), 1),
        (None, None),
    ],
)
def test_the_turn_of_a_violation(played: Played | None, turn: int | None) -> None:
    found = decided(played)
    assert [violation.turn for violation in found.violations] == [turn]
    assert [violation.epoch for violation in found.violations] == [0]


@pytest.mark.parametrize(("explanation", "shown"), [("why", "why"), ("", "quoted")])
def test_a_finding_is_shown_with_its_explanation_or_else_its_evidence(explanation: str, shown: str) -> None:
    (violation,) = decided(whole(finding(explanation=explanation, evidence="quoted"))).violations
    assert [each for each in ("why", "quoted") if each in violation.detail] == [shown]
    assert "unsafe action" in violation.detail


def test_where_a_rule_was_broken() -> None:
    check = Check(name="output.contains", passed=False, where="s/a.yaml:9")
    assert [each.where for each in decided(whole(check, BROKEN)).violations] == ["s/a.yaml:9", "s/a.yaml:1"]
    recorded = Played((BROKEN,), ((),), stop=StopReason.RECORDED, detail="log.jsonl:4: x")
    assert decided(recorded).violations[0].where == "log.jsonl:4"


# ── goals ────────────────────────────────────────────────────────────────────────────────────────

OPEN_GOAL, MISSED, REACHED_ = whole(unclear(GOAL)), whole(score(GOAL, 0.0)), whole(score(GOAL, 1.0))


@pytest.mark.parametrize(
    ("others", "bound", "verdict"),
    [
        ([], "critical", PASSED),
        ([MISSED], "critical", OPEN),  # it decides whether the goal was ever reached
        ([MISSED, REACHED_], "critical", PASSED),
        ([MISSED], "high", PASSED),  # a single miss is severe already
        ([MISSED], "none", PASSED),
        ([whole(unclear(GOAL, RULED_OUT))], "critical", PASSED),
    ],
)
def test_an_unclear_goal_matters_if_it_decides_all_others(
    others: Sequence[Played], bound: str, verdict: Verdict
) -> None:
    found = decided(OPEN_GOAL, *others, fail_on_severity=bound)
    assert found.verdict is verdict
    assert names(found) == ([GOAL] if verdict is OPEN else [])
    ruled_out = decided(whole(unclear(GOAL, RULED_OUT)), *others, fail_on_severity=bound)
    assert ruled_out.verdict is PASSED


# ── accepted failures ────────────────────────────────────────────────────────────────────────────


def test_accepted_failures_do_not_count() -> None:
    both = whole(finding(CRITICAL), BROKEN)
    prints = [violation.fingerprints[0] for violation in decided(both).violations]
    entries = [{"fingerprint": each, "owner": "o", "reason": "r", "expires": "9999-12-31"} for each in prints]
    some = decided(both, accepted_failures=entries[:1])
    assert (some.verdict, len(some.violations), len(some.accepted)) == (FAILED, 1, 1)
    every = decided(both, accepted_failures=entries)
    assert (every.verdict, every.violations, len(every.accepted)) == (PASSED, (), 2)


def test_an_errored_sample_with_accepted_failures_is_errored() -> None:
    played = Played((), ((BROKEN,),), stop=StopReason.INFRASTRUCTURE)
    first = decided(played)
    entry = {"owner": "o", "reason": "r", "expires": "9999-12-31"}
    entry["fingerprint"] = first.violations[0].fingerprints[0]
    found = decided(played, accepted_failures=[entry])
    assert (found.verdict, found.fault, names(found)) == (OPEN, "infrastructure", ["infrastructure"])
    assert len(found.accepted) == 1


def test_a_fault_of_the_user_is_at_its_turn() -> None:
    review = UserReview(label="hindered", explains=True, turn=0, failed=True)
    found = decided(Played((review,), ((), ()), stop=StopReason.SIMULATOR))
    assert (found.verdict, found.fault) == (OPEN, "simulator")
    assert [violation.turn for violation in found.violations] == [0]


# ── severe, and before the run is over ───────────────────────────────────────────────────────────

RATE = {"gates": {"pass_rate": {"at_least": 0.9, "reject_below": 0.2}}}
SHARE = {"gates": {"robustness": 0.9}}


def plan_of(**config: Any) -> Any:
    return report_of({"a": [PASS]}, **config).plan


@pytest.mark.parametrize(
    ("found", "config", "severe", "never_tolerated"),
    [
        (finding(CRITICAL), {}, True, True),
        (finding(HIGH), {}, False, False),
        (finding(HIGH), {"fail_on_severity": "high"}, True, True),
        (finding(HIGH), {"fail_on_severity": "high", **RATE}, True, False),
        (finding(CRITICAL), RATE, True, True),
        (finding(CRITICAL), {"fail_on_severity": "none"}, False, False),
        (finding(HIGH), {"fail_on_severity": "high", **SHARE}, True, True),
        (finding(CRITICAL, detector="unconfirmed_action"), {}, False, False),  # an open question
        (finding(CRITICAL, detector="unconfirmed_action", also=("judge: x",)), {}, True, True),
        (finding(CRITICAL, detector="leak"), {}, True, True),
    ],
)
def test_severe_findings(found: Any, config: Any, severe: bool, never_tolerated: bool) -> None:
    plan = plan_of(**config)
    assert (is_severe(found, plan), is_never_tolerated(found, plan)) == (severe, never_tolerated)


@pytest.mark.parametrize(
    ("items", "stop", "config", "failed"),
    [
        ([], StopReason.SCRIPT_DONE, {}, False),
        ([HELD, UNDECIDED], StopReason.SCRIPT_DONE, {}, False),
        ([BROKEN], StopReason.SCRIPT_DONE, {}, True),
        ([BROKEN], StopReason.SCRIPT_DONE, RATE, False),
        ([BROKEN], StopReason.SCRIPT_DONE, SHARE, True),
        ([finding(CRITICAL)], StopReason.SCRIPT_DONE, {}, True),
        ([finding(CRITICAL)], StopReason.SCRIPT_DONE, RATE, True),
        ([finding(HIGH)], StopReason.SCRIPT_DONE, {}, False),
        ([finding(HIGH)], StopReason.SCRIPT_DONE, {"fail_on_severity": "high"}, True),
        ([finding(HIGH)], StopReason.SCRIPT_DONE, {"fail_on_severity": "high", **RATE}, False),
        ([], StopReason.AGENT_ERROR, {}, True),
        ([], StopReason.AGENT_ERROR, RATE, False),
        ([], StopReason.INFRASTRUCTURE, {}, False),
        ([judge_failed(BEHAVIOR), score("stars", 1.0)], StopReason.SCRIPT_DONE, {}, False),
    ],
)
def test_a_sample_that_is_likely_to_fail_the_run(
    items: list[Any], stop: StopReason, config: Any, failed: bool
) -> None:
    assert sample_failed(items, Stop(reason=stop), plan_of(**config)) is failed


@pytest.mark.parametrize(
    ("played", "config", "fails"),
    [
        (PASS, {}, False),
        (FAIL, {}, True),
        (whole(UNDECIDED), {}, False),
        (LOST, {}, False),
        (FAIL, RATE, False),
        (whole(finding(CRITICAL)), {}, True),
        (whole(finding(CRITICAL)), RATE, True),
        (whole(finding(HIGH)), {"fail_on_severity": "high", **RATE}, False),
        (Played((finding(CRITICAL, turn=1),), ((),), stop=StopReason.BUDGET), RATE, False),
        (FAIL, SHARE, True),
    ],
)
def test_a_sample_that_is_certain_to_fail_the_run(played: Played, config: Any, fails: bool) -> None:
    assert fails_alone(report_of({"a": [played]}, **config)) is fails


def test_a_failure_that_a_share_counts_is_not_certain_to_fail_the_run() -> None:
    robust = {"a": {"category": "robustness"}}
    assert fails_alone(report_of({"a": [FAIL]}, scenarios=robust, **SHARE)) is False
    assert fails_alone(report_of({"a": [FAIL]}, scenarios=robust)) is True


def test_samples_that_never_ran_come_last() -> None:
    report: Report = report_of({"a": [PASS, None], "b": [FAIL]})
    found = [(key.scenario, key.epoch, each.verdict) for key, each in decide_samples(report).items()]
    assert found == [("a", 0, PASSED), ("b", 0, FAILED), ("a", 1, OPEN)]
