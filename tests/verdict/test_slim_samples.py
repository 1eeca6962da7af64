"""A sample without its texts decides as it did."""

from __future__ import annotations

import pytest

from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, Finding, References, Severity
from agenteval.core.severity import FALSE_CLAIM
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, ToolResult, Trajectory, Turn
from agenteval.scoring.finding_severity import find_cited_calls
from agenteval.scoring.metrics import TOOL_CALL_BEHAVIOR
from agenteval.verdict.fingerprints import failures_of
from agenteval.verdict.sample_fold import _turn_report
from agenteval.verdict.slim_samples import LEFT_OUT, SampleSlimmer

CALLS = (
    ToolCall(name="find", args={"a": 1}, result=ToolResult(value="x" * 500)),
    ToolCall(name="book", args={"a": 2}, result=ToolResult(refused=True)),
)
FINDING = Finding(detector="d", metric="m", label="l", severity=Severity.LOW, turn=0, call=0)
PASSED, BROKEN = Check(name="answer", passed=True, detail="d"), Check(name="x", passed=False, detail="why")


def sample(
    user: str = "hello",
    *checks: Check,
    findings: tuple[Finding, ...] = (),
    calls: tuple[ToolCall, ...] = CALLS,
) -> SampleReport:
    turn = Turn(user=user, steps=(Step(text="", tool_calls=calls, latency_ms=3.0), Step(text="answer")))
    trajectory = Trajectory(turns=(turn,), stop=Stop(reason=StopReason.SCRIPT_DONE))
    return SampleReport(
        key=SampleKey(scenario="s", agent="a"),
        turns=(_turn_report(turn, checks),),
        stop=trajectory.stop,
        checks=checks,
        scores=(),
        score_failures=(),
        findings=findings,
        trajectory=trajectory,
    )


def slim(whole: SampleReport) -> SampleReport:
    return SampleSlimmer().slim(whole, lambda: whole)


@pytest.mark.parametrize(("user", "shown"), [("hello", LEFT_OUT), ("", "")])
def test_an_empty_message_stays_one(user: str, shown: str) -> None:
    (turn,) = slim(sample(user)).turns
    assert turn.turn.user == shown
    assert [step.text for step in turn.turn.steps] == ["", LEFT_OUT]


def test_calls_keep_their_names_and_what_was_refused() -> None:
    found = slim(sample())
    assert [(call.name, call.was_made) for call in found.trajectory.tool_calls] == [
        ("find", True),
        ("book", False),
    ]
    assert found.turns[0].turn is found.trajectory.turns[0]
    assert found.trajectory.turns[0].steps[0].latency_ms == 3.0


def test_a_failure_keeps_its_name() -> None:
    whole = sample("hello", PASSED, BROKEN, findings=(FINDING,))
    scenario = Scenario(id="s")
    assert failures_of(slim(whole), scenario) == failures_of(whole, scenario)
    assert failures_of(whole, scenario).findings[0].what != failures_of(
        sample(), scenario
    )  # it names the call


FAILED = ToolCall(name="pay", args={"a": 3}, result=ToolResult(value={"error": "no"}, is_error=True))
OF_A_TURN = FINDING.model_copy(update={"metric": TOOL_CALL_BEHAVIOR, "call": None})
FALSE = FINDING.model_copy(update={"label": FALSE_CLAIM, "call": None})
LATER = FINDING.model_copy(update={"call": 0, "references": References(call=0, other_call=1)})


@pytest.mark.parametrize(
    ("finding", "calls", "kept"),
    [(FINDING, CALLS, {0}), (OF_A_TURN, CALLS[:1], {0}), (OF_A_TURN, CALLS, set()), (LATER, CALLS, {0, 1}),
     (FALSE, (*CALLS, FAILED), {1, 2}), (FINDING.model_copy(update={"call": 9}), CALLS, set())],
)  # fmt: skip
def test_only_the_calls_that_findings_cite_are_kept(
    finding: Finding, calls: tuple[ToolCall, ...], kept: set[int]
) -> None:
    whole = sample(findings=(finding,), calls=calls)
    small = slim(whole).trajectory
    assert {at for at, call in enumerate(small.tool_calls) if call == calls[at]} == kept
    cited = [find_cited_calls(finding, [each]) for each in (small.tool_calls, calls)]
    assert [*cited[0]] == [*cited[1]]


def test_checks_that_passed_are_one_object() -> None:
    slimmer = SampleSlimmer()
    first, second = (slimmer.slim(sample("hello", PASSED), None) for _ in range(2))
    assert first.checks is second.checks
    (check,) = first.checks
    assert (check.name, check.passed, check.detail) == ("answer", True, "")
    assert slim(sample("hello", BROKEN)).checks == (BROKEN,)


def test_what_cannot_be_read_again_is_not_asked_for() -> None:
    found = SampleSlimmer().slim(sample(), None)
    assert found.in_full is found
    assert slim(sample()).in_full == sample()
