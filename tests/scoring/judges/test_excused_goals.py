"""Goals that were ruled out or withdrawn: which are asked about again, and which answer counts in the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agenteval.core.errors import AuthorError, InfrastructureError, Problem
from agenteval.core.event import Event, Reconsidered
from agenteval.core.plan import ScenarioRules
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Finding, References, Score, ScoreFailure, Severity, Vote
from agenteval.core.trajectory import Stop, StopReason, Trajectory
from agenteval.files.prompts import load_rubric
from agenteval.scoring.goals import GOAL
from agenteval.scoring.judges.excused_goals import (
    ExcusedGoalReviewer,
    find_counted_vote,
    find_twin,
)
from agenteval.scoring.judges.gating_policy import GatingPolicy
from agenteval.scoring.judges.goal import GoalJudge
from agenteval.scoring.judges.judge_inputs import JudgeInputs
from tests.support.detector_samples import turn
from tests.support.panels import ONE_CALL, AnswerPanel
from tests.support.trajectories import seen

POLICY = "Items on sale are never refunded, whoever asks for it."
SCENARIO = Scenario(id="s", goal="Get the money back.", facts=("The lamp was on sale in spring.",))
WORDS, RULE, FACT = (
    "a refund is not possible here",
    "Items on sale are never refunded",
    "The lamp was on sale in spring",
)
OTHER_USER = "it never worked at all"
DONE = Stop(reason=StopReason.USER_DONE)
TALK = seen((turn("Refund it, I want it back.", f"Sorry, {WORDS}."),), DONE)
OTHER_TALK = seen((turn(f"Refund it, {OTHER_USER}.", "It has been refunded."),), DONE)
GIVEN_UP = "I want it back"
RULED_OUT = {"outcome": "ruled out", "evidence": WORDS, "rule": RULE, "fact": FACT}
WITH_DIFFERENCE = {**RULED_OUT, "difference": OTHER_USER}
WITHDRAWN = {"outcome": "withdrawn", "source": GIVEN_UP}
MISSED, REACHED = {"outcome": "missed", "evidence": WORDS}, {"outcome": "reached"}
DISOBEYED = Finding(
    detector="judge", metric="agent_behavior_failure", label="disobey user request", severity=Severity.HIGH
)


def vote(outcome: str, *, against: bool = False) -> Vote:
    return Vote(verdict=outcome, against=against, usage=ONE_CALL)


def goal(outcome: str | None = "ruled out", **more: Any) -> Score:
    value = {"reached": 1.0, "missed": 0.0}.get(outcome or "")
    facts = {
        "value": value,
        "evidence": WORDS,
        "references": References(rule=RULE, fact=FACT),
        "usage": ONE_CALL,
    }
    return Score(metric=GOAL, label=outcome, **{**facts, **more})


def sample(
    score: Score,
    *,
    epoch: int = 0,
    agent: str = "a",
    variant: str = "",
    talk: Trajectory = TALK,
    findings: tuple[Finding, ...] = (),
) -> SampleReport:
    key = SampleKey(scenario="s", agent=agent, epoch=epoch, variant=variant)
    return SampleReport(key, (), DONE, (), (score,), (), findings, talk)


def twin(**more: Any) -> SampleReport:
    return sample(goal("reached"), talk=OTHER_TALK, **{"epoch": 1, **more})


# ── another conversation that reached the goal ───────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("others", "at"),
    [
        ([], None),
        ([sample(goal("missed"), epoch=1), sample(goal("ruled out", value=1.0), epoch=2)], None),
        ([twin(epoch=2), twin(epoch=1)], 1),
        ([twin(agent="0", epoch=0), twin(epoch=3)], 1),  # the same agent is preferred
        ([twin(agent="c"), twin(agent="b", epoch=5)], 1),
        ([twin(variant="z"), twin(variant="b")], 1),
        ([sample(goal("missed")), twin()], 1),
    ],
)
def test_which_conversation_is_shown(others: list[SampleReport], at: int | None) -> None:
    assert find_twin(sample(goal()), others) is (None if at is None else others[at])


# ── which answer counts ──────────────────────────────────────────────────────────────────────────

R, W, M = vote("ruled out"), vote("withdrawn"), vote("missed", against=True)
B = vote("policy broken", against=True)


@pytest.mark.parametrize(
    ("votes", "plain", "contradicted"),
    [
        ([R], None, None),
        ([R, R], 0, 0),
        ([R, M], None, 1),  # a contradiction is a vote against the outcome
        ([R, M, M], 1, 1),
        ([R, M, R], 0, 0),  # a tie: the last one decides
        ([R, R, M], 0, 2),
        ([M, R, R], 1, 1),
        ([R, W, M], None, 2),
        ([R, M, B], 1, 1),  # both count against the agent
        ([R, W, W], 1, 1),
        ([M], None, 0),
        ([R, M, W], None, 1),
    ],
)
def test_the_answer_that_counts(votes: list[Vote], plain: int | None, contradicted: int | None) -> None:
    assert find_counted_vote(votes, is_contradicted=False) == plain
    assert find_counted_vote(votes, is_contradicted=True) == contradicted


# ── the review ───────────────────────────────────────────────────────────────────────────────────


def reviewed(
    samples: list[SampleReport],
    *answers: Any,
    corroborate: bool = True,
    judge_of: Callable[[str], GoalJudge | None] | None = None,
    baseline: SampleReport | None = None,
    scenario: Scenario = SCENARIO,
) -> tuple[list[tuple[Any, ...]], AnswerPanel]:
    panel = AnswerPanel(*answers)
    judge = GoalJudge(load_rubric(GOAL), JudgeInputs(panel, lambda _: POLICY, gating=GatingPolicy()))
    reviewer = ExcusedGoalReviewer(judge_of or (lambda _: judge), corroborate, lambda _: baseline)
    reports = [
        ScenarioReport(
            scenario, agent, ScenarioRules(), tuple(each for each in samples if each.key.agent == agent)
        )
        for agent in dict.fromkeys(each.key.agent for each in samples)
    ]
    events: list[Event] = []
    count = anyio.run(reviewer, reports, events.append)
    found = [event for event in events if isinstance(event, Reconsidered)]
    assert count == len(found) == len(events)
    assert all(event.metric == GOAL for event in found)
    return [event.items for event in found], panel


def outcome(items: tuple[Any, ...]) -> tuple[str | None, float | None, int]:
    score, *findings = items
    assert isinstance(score, Score)
    assert len(findings) == (score.value == 0)
    return score.label, score.value, len(score.votes)


RULED_OUT_TWICE = goal("ruled out", votes=(R, R))
SHOWN = goal("ruled out", votes=(R, R), twin="epoch 2")


@pytest.mark.parametrize(
    ("samples", "answers", "expected"),
    [
        ([sample(goal("ruled out"))], [RULED_OUT], ("ruled out", None, 2)),
        ([sample(goal("ruled out"))], [MISSED, MISSED], ("missed", 0, 3)),
        ([sample(goal("ruled out"))], [MISSED, RULED_OUT], ("ruled out", None, 3)),
        ([sample(goal("ruled out"))], [WITHDRAWN, MISSED], ("not clear", None, 3)),
        ([sample(goal("ruled out"))], [REACHED, REACHED], ("reached", 1, 3)),
        ([sample(goal("withdrawn"))], [WITHDRAWN], ("withdrawn", None, 2)),
        ([sample(goal("withdrawn"))], [MISSED, MISSED], ("missed", 0, 3)),
        # Another conversation reached the goal.
        ([sample(goal("ruled out")), twin()], [WITH_DIFFERENCE], ("ruled out", None, 2)),
        ([sample(goal("ruled out")), twin()], [RULED_OUT, RULED_OUT], ("missed", 0, 3)),  # no difference
        ([sample(goal("ruled out")), twin()], [RULED_OUT, MISSED], ("missed", 0, 3)),
        ([sample(RULED_OUT_TWICE), twin()], [WITH_DIFFERENCE], ("ruled out", None, 3)),
        ([sample(RULED_OUT_TWICE), twin()], [MISSED, MISSED], ("missed", 0, 4)),
        ([sample(goal("withdrawn")), twin()], [WITHDRAWN], ("withdrawn", None, 2)),
        # Another metric contradicts it.
        ([sample(RULED_OUT_TWICE, findings=(DISOBEYED,))], [MISSED], ("missed", 0, 3)),
        ([sample(RULED_OUT_TWICE, findings=(DISOBEYED,))], [RULED_OUT], ("ruled out", None, 3)),
        ([sample(goal("ruled out"), findings=(DISOBEYED,))], [RULED_OUT, MISSED], ("missed", 0, 3)),
    ],
)
def test_an_excused_goal_is_asked_about_again(
    samples: list[SampleReport], answers: list[Any], expected: tuple[Any, ...]
) -> None:
    (items,), panel = reviewed(samples, *answers)
    assert outcome(items) == expected
    assert len(panel.requests) == len(answers)
    asked_before = max(1, len(samples[0].scores[0].votes))
    assert items[0].usage.calls == asked_before + len(answers)
    assert items[0].by == "lab/model"


@pytest.mark.parametrize(
    "samples",
    [
        [sample(RULED_OUT_TWICE)],
        [sample(SHOWN), twin()],  # it has been shown before
        [sample(goal("withdrawn", votes=(W, W))), twin()],  # giving up needs no difference
        [sample(goal("missed")), twin()],
        [sample(goal("not clear"))],
        [sample(goal("ruled out", value=1.0))],
        [sample(goal("ruled out", scripted=True))],
        [sample(goal("ruled out", votes=(R, R, R)), findings=(DISOBEYED,))],  # asked three times
        [sample(RULED_OUT_TWICE, findings=(DISOBEYED.model_copy(update={"label": "repetition"}),))],
        [],
    ],
)
def test_a_goal_that_is_settled_is_not_asked_about(samples: list[SampleReport]) -> None:
    found, panel = reviewed(samples)
    assert (found, panel.requests) == ([], [])


@pytest.mark.parametrize(
    ("score", "corroborate", "others", "label"),
    [
        (goal("ruled out"), False, [twin()], "missed"),
        (goal("ruled out", scripted=True), True, [twin()], "missed"),
        (goal("ruled out"), False, [], None),
        (goal("withdrawn"), False, [twin()], None),
        (goal("ruled out", twin="epoch 2"), False, [twin()], None),
    ],
)
def test_where_no_judge_can_name_a_difference_the_goal_was_missed(
    score: Score, corroborate: bool, others: list[SampleReport], label: str | None
) -> None:
    found, panel = reviewed([sample(score), *others], corroborate=corroborate)
    assert panel.requests == []
    assert [outcome(items) for items in found] == ([] if label is None else [(label, 0, 0)])
    for items in found:
        assert (items[0].twin, items[0].scripted, items[0].usage) == ("epoch 2", score.scripted, ONE_CALL)


@pytest.mark.parametrize(
    ("other", "parts"),
    [
        (twin(), ["epoch 2"]),
        (twin(variant="v7"), ["v7"]),
        (twin(agent="b"), ["epoch 2", "b"]),
        (twin(epoch=0, agent="b", variant="v7"), ["v7", "b"]),
    ],
)
def test_the_name_of_the_other_conversation(other: SampleReport, parts: list[str]) -> None:
    (items,), _ = reviewed([sample(goal("ruled out")), other], WITH_DIFFERENCE)
    assert all(part in items[0].twin for part in parts)
    assert ("epoch" in items[0].twin) is ("epoch 2" in parts)
    assert items[0].twin in items[0].reason
    assert OTHER_USER in items[0].reason


def test_a_baseline_stands_in_for_another_conversation() -> None:
    (items,), _ = reviewed([sample(goal("ruled out"))], WITH_DIFFERENCE, baseline=twin())
    assert "epoch 2" in items[0].twin
    (items,), _ = reviewed([sample(goal("ruled out")), twin(epoch=4)], WITH_DIFFERENCE, baseline=twin())
    assert items[0].twin == "epoch 5"  # one of this run is preferred
    (items,), _ = reviewed([sample(goal("ruled out"))], RULED_OUT)
    assert items[0].twin == ""
    (items,), _ = reviewed([sample(goal("ruled out", twin="epoch 9"))], RULED_OUT)
    assert items[0].twin == "epoch 9"


def test_prompts_show_what_was_answered_before() -> None:
    _, panel = reviewed([sample(goal("ruled out")), twin()], MISSED, MISSED)
    assert len(panel.requests) == 2
    assert all("It has been refunded." in request.prompt for request in panel.requests)
    assert ['"outcome": "missed"' in request.prompt for request in panel.requests] == [False, True]
    assert all('"outcome": "ruled out"' in request.prompt for request in panel.requests)


def test_an_objection_is_shown_when_it_is_decided() -> None:
    insisted = DISOBEYED.model_copy(update={"explanation": "it was asked for twice"})
    _, panel = reviewed([sample(goal("ruled out"), findings=(insisted,))], RULED_OUT, RULED_OUT)
    assert ["it was asked for twice" in request.prompt for request in panel.requests] == [False, True]


@pytest.mark.parametrize("before", [[], [MISSED]])
def test_without_another_answer_the_goal_is_unknown(before: list[Any]) -> None:
    ((failure,),), _ = reviewed([sample(goal("ruled out"))], *before, InfrastructureError("down"))
    assert isinstance(failure, ScoreFailure)
    assert (failure.metric, failure.is_verdict, "down" in failure.message) == (GOAL, True, True)
    assert failure.usage is not None
    assert failure.usage.calls == 1 + len(before)


def test_any_other_fault_is_a_failure_that_keeps_the_cost() -> None:
    ((failure,),), _ = reviewed([sample(goal("ruled out"))], ZeroDivisionError("oops"))
    assert isinstance(failure, ScoreFailure)
    assert (failure.usage, failure.author, failure.is_verdict) == (ONE_CALL, False, False)


def test_a_mistake_of_the_author_is_marked() -> None:
    ((failure,),), _ = reviewed([sample(goal("ruled out"))], AuthorError(Problem("no rule")))
    assert isinstance(failure, ScoreFailure)
    assert (failure.usage, failure.author) == (ONE_CALL, True)


def test_agents_without_a_judge_are_skipped() -> None:
    found, panel = reviewed([sample(goal("ruled out"))], judge_of=lambda _: None)
    assert (found, panel.requests) == ([], [])


def test_each_excused_goal_is_settled() -> None:
    samples = [sample(goal("ruled out"), epoch=epoch) for epoch in range(3)]
    found, panel = reviewed(samples, RULED_OUT, RULED_OUT, RULED_OUT)
    assert [outcome(items) for items in found] == [("ruled out", None, 2)] * 3
    assert len(panel.requests) == 3
