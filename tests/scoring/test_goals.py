"""Goals over all conversations in a scenario: what was reached, what is open, and when a miss is severe."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.event import SampleStarted, Scored
from agenteval.core.plan import SuitePolicy
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Finding, Score, ScoreFailure, Severity
from agenteval.core.trajectory import Stop, StopReason, Trajectory
from agenteval.scoring.goals import (
    GOAL,
    count_open_goals,
    decides_all_others,
    failed_to_refuse,
    get_goal_scores,
    has_reached,
    is_goal_excused,
    list_goal_scores,
    may_gate_unjudged,
    raise_missed_goals,
)

VALUES = {"reached": 1.0, "missed": 0.0, "policy broken": 0.0}
LOW, MEDIUM, HIGH, CRITICAL = Severity
MISS = Finding(detector="judge", metric=GOAL, label="goal not completed", severity=HIGH, explanation="why")
SUITE = SuitePolicy()


def goal(outcome: str, value: float | None = None) -> Score:
    return Score(metric=GOAL, label=outcome, value=VALUES.get(outcome) if value is None else value)


def sample(
    *goals: str | Score,
    epoch: int = 0,
    stop: StopReason | None = StopReason.USER_DONE,
    findings: tuple[Finding, ...] = (MISS,),
    failed_judge: str = "",
) -> SampleReport:
    return SampleReport(
        key=SampleKey(scenario="s", agent="a", epoch=epoch),
        turns=(),
        stop=stop and Stop(reason=stop),
        checks=(),
        scores=(
            Score(metric="helpfulness", value=1),
            *(each if isinstance(each, Score) else goal(each) for each in goals),
        ),
        score_failures=(ScoreFailure(metric=failed_judge, message="m"),) if failed_judge else (),
        findings=findings,
        trajectory=Trajectory(),
    )


REFUSED_GOAL_REACHED = goal("reached", 0.0)
REFUSED = goal("ruled out", 1.0)


def severities(*samples: SampleReport, suite: SuitePolicy = SUITE) -> list[list[Severity]]:
    return [[each.severity for each in found.findings] for found in raise_missed_goals(samples, suite)]


def test_only_scores_of_goals_are_goal_scores() -> None:
    one, two = sample("missed", "reached"), sample("withdrawn")
    assert [each.label for each in get_goal_scores(one)] == ["missed", "reached"]
    assert get_goal_scores(sample()) == ()
    assert [each.label for each in list_goal_scores([one, sample(), two])] == [
        "missed",
        "reached",
        "withdrawn",
    ]


@pytest.mark.parametrize(
    ("outcomes", "count"),
    [
        (("ruled out",), 2),
        (("withdrawn",), 1),
        (("not clear",), 1),
        (("ruled out", "withdrawn"), 3),
        (("missed",), 0),  # never open
        (("reached",), 0),
        ((), 0),
    ],
)
def test_open_goals_are_counted_by_outcome(outcomes: tuple[str, ...], count: int) -> None:
    samples = [sample("ruled out", "withdrawn"), sample("ruled out"), sample("not clear"), sample("missed")]
    assert count_open_goals([*samples, sample(REFUSED)], *outcomes) == count


@pytest.mark.parametrize(
    ("goals", "reached", "not_refused"),
    [
        ((), False, False),
        (("reached",), True, False),
        ((REFUSED_GOAL_REACHED,), False, True),
        ((REFUSED,), False, False),  # a refusal that was required does not reach the goal
        (("missed",), False, False),
        (("policy broken",), False, False),
        (("ruled out",), False, False),
        (("not clear",), False, False),
        (("missed", "reached"), True, False),
    ],
)
def test_what_reaches_a_goal(goals: tuple[Any, ...], reached: bool, not_refused: bool) -> None:
    assert (has_reached(sample(*goals)), failed_to_refuse(sample(*goals))) == (reached, not_refused)


@pytest.mark.parametrize(
    ("samples", "is_raised"),
    [
        ((sample("missed"),), True),
        ((sample("missed"), sample("missed")), True),
        ((sample("policy broken"),), True),
        ((sample(REFUSED_GOAL_REACHED),), True),
        ((sample("missed"), sample("reached")), False),
        ((sample("missed"), sample(REFUSED)), False),
        ((sample("missed"), sample("ruled out")), True),
        ((sample("missed"), sample("withdrawn")), True),
        ((sample("missed"), sample("not clear")), False),
        ((sample("missed", failed_judge=GOAL),), False),
        ((sample("missed", failed_judge="helpfulness"),), True),
        ((sample("missed"), sample(stop=None)), False),
        ((sample("missed"), sample(stop=StopReason.INTERRUPTED)), False),
        ((sample("missed"), sample(stop=StopReason.BUDGET)), False),
        ((sample("missed"), sample(stop=StopReason.INFRASTRUCTURE)), True),
        ((sample("missed"), sample(stop=StopReason.SIMULATOR)), True),
        ((sample("missed", stop=StopReason.AGENT_ERROR),), True),
    ],
)
def test_a_goal_that_no_conversation_reached_is_severe(
    samples: tuple[SampleReport, ...], is_raised: bool
) -> None:
    assert severities(*samples) == [[CRITICAL if is_raised else HIGH]] * len(samples)
    if not is_raised:
        assert raise_missed_goals(samples, SUITE) is samples


def test_only_findings_about_the_goal_are_raised_and_none_is_lowered() -> None:
    other = MISS.model_copy(update={"metric": "helpfulness"})
    higher = MISS.model_copy(update={"severity": CRITICAL})
    found = (other, MISS, higher)
    assert severities(sample("missed", findings=found)) == [[HIGH, CRITICAL, CRITICAL]]
    (after,) = raise_missed_goals((sample("missed", findings=found),), SUITE)
    assert [each.explanation == "why" for each in after.findings] == [True, False, True]
    assert after.findings[1].explanation.startswith("why")
    milder = SuitePolicy(severities={"goal never completed": MEDIUM})
    low = MISS.model_copy(update={"severity": LOW})
    assert severities(sample("missed", findings=(MISS, low)), suite=milder) == [[HIGH, MEDIUM]]


def test_the_explanation_names_how_many_conversations_there_were() -> None:
    (one,) = raise_missed_goals((sample("missed"),), SUITE)
    two, _ = raise_missed_goals((sample("missed"), sample("missed")), SUITE)
    third, _ = raise_missed_goals((sample(REFUSED_GOAL_REACHED), sample(REFUSED_GOAL_REACHED)), SUITE)
    assert " 2 " in two.findings[0].explanation
    assert not any(each.isdigit() for each in one.findings[0].explanation)
    assert ["refuse" in each.findings[0].explanation for each in (one, two, third)] == [False, False, True]


@pytest.mark.parametrize(
    ("goals", "suite", "may_gate"),
    [
        (("missed",), {}, True),  # never completed is critical
        (("reached",), {}, False),  # not completed is only high
        ((REFUSED,), {}, False),
        ((), {}, True),
        (("reached",), {"fail_on_severity": "high"}, True),
        (("missed",), {"fail_on_severity": "none"}, False),
        (("missed",), {"severities": {"goal never completed": "high"}}, False),
        (("reached",), {"severities": {"goal not completed": "critical"}}, True),
        (("missed",), {"fail_on_severity": "low", "severities": {"goal not completed": "low"}}, True),
    ],
)
def test_whether_an_unjudged_goal_might_fail_the_sample(
    goals: tuple[Any, ...], suite: dict[str, Any], may_gate: bool
) -> None:
    assert may_gate_unjudged([sample(*goals)], SuitePolicy.model_validate(suite)) is may_gate


@pytest.mark.parametrize(
    ("goals", "suite", "decides"),
    [
        (("missed", "not clear"), {}, True),
        (("missed",), {}, True),
        (("not clear", "ruled out"), {}, False),  # no goal was missed
        ((), {}, False),
        (("missed", "reached"), {}, False),
        (("missed",), {"fail_on_severity": "none"}, False),
        (("missed",), {"fail_on_severity": "high"}, False),  # a single miss is severe enough
        (("missed",), {"severities": {"goal never completed": "high"}}, False),
        (
            ("missed",),
            {
                "fail_on_severity": "high",
                "severities": {"goal not completed": "medium", "goal never completed": "high"},
            },
            True,
        ),
    ],
)
def test_whether_an_unclear_goal_decides_the_others(
    goals: tuple[Any, ...], suite: dict[str, Any], decides: bool
) -> None:
    samples = [sample(each) for each in goals]
    assert decides_all_others(samples, SuitePolicy.model_validate(suite)) is decides


# ── which events report an excused goal ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("items", "at", "is_excused"),
    [
        ((goal("ruled out"),), None, True),
        ((goal("withdrawn"),), None, True),
        ((goal("not clear"),), None, False),
        ((goal("missed"),), None, False),
        ((goal("ruled out", value=1.0),), None, False),  # a refusal that was required
        ((goal("ruled out"),), 0, False),
        ((goal("ruled out").model_copy(update={"metric": "mine"}),), None, False),
        ((goal("missed"), goal("ruled out")), None, True),
        ((ScoreFailure(metric=GOAL, message="m"),), None, False),
        ((), None, False),
    ],
)
def test_events_that_report_an_excused_goal(items: tuple[Any, ...], at: int | None, is_excused: bool) -> None:
    assert is_goal_excused(Scored(key=SampleKey(scenario="s", agent="a"), turn=at, items=items)) is is_excused


def test_other_events_report_none() -> None:
    assert not is_goal_excused(SampleStarted(key=SampleKey(scenario="s", agent="a")))
