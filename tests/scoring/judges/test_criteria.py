"""``expect.criteria``: which criteria are judged when, and what each answer decides."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agenteval.core.errors import InfrastructureError
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check, Finding, ScoreFailure, Severity
from agenteval.core.trajectory import Stop, StopReason, Trajectory, Turn
from agenteval.files.prompts import load_rubric
from agenteval.scoring.judges.criteria import CriteriaScorer
from agenteval.scoring.judges.gating_policy import GatingPolicy
from agenteval.scoring.judges.judge_inputs import JudgeInputs
from tests.support.detector_samples import turn
from tests.support.panels import ONE_CALL, AnswerPanel
from tests.support.trajectories import seen

SCENARIO = Scenario.model_validate(
    {
        "id": "s",
        "source": "s.yaml:1",
        "lines": {"expect.criteria": 9, "turns.1.expect.criteria": 5},
        "turns": ["one", {"user": "two", "expect": {"criteria": ["Names a date.", "Is kind."]}}],
        "expect": {"criteria": ["Says goodbye."]},
    }
)
FIRST = turn("one", "Hello to you.").model_copy(update={"script": 0})
SECOND = turn("two", "It is on Monday.").model_copy(update={"script": 1})
WHOLE = seen((FIRST, SECOND), Stop(reason=StopReason.SCRIPT_DONE))
PASS, FAIL = {"label": "pass"}, {"label": "fail", "evidence": "It is on Monday."}
AROSE_NOT, UNCLEAR = {"label": "did not arise"}, {"label": "not clear"}


def scored(
    *answers: Any,
    scope: str = "conversation",
    talk: Trajectory = WHOLE,
    scenario: Scenario = SCENARIO,
    scripted: bool = False,
    is_shared: bool = False,
    **gating: Any,
) -> tuple[list[Any], AnswerPanel]:
    panel = AnswerPanel(*answers, scripted=scripted)
    inputs = JudgeInputs(panel, gating=GatingPolicy(**{"corroborate": False, **gating}))
    scorer = CriteriaScorer(load_rubric("criteria"), inputs, scope=scope, is_shared=is_shared)
    assert (scorer.scope, scorer.metric) == (scope, "criteria")
    return list(anyio.run(scorer, scenario, talk)), panel


@pytest.mark.parametrize(
    ("answer", "passed", "arose"),
    [(PASS, True, True), (FAIL, False, True), (AROSE_NOT, True, False), (UNCLEAR, None, True)],
)
def test_what_an_answer_decides(answer: dict[str, Any], passed: bool | None, arose: bool) -> None:
    (check, *found), _ = scored(answer)
    assert isinstance(check, Check)
    assert (check.name, check.passed, check.arose, check.where) == ("criteria", passed, arose, "s.yaml:9")
    assert (check.by, check.scripted, check.usage) == ("lab/model", False, ONE_CALL)
    assert "Says goodbye." in check.detail
    assert (answer.get("evidence", "") in check.detail, "because" in check.detail) == (True, True)
    assert len(found) == (passed is False)


def test_the_finding_of_a_criterion_that_is_not_met() -> None:
    (_, found), _ = scored(FAIL, scripted=True)
    assert isinstance(found, Finding)
    assert (found.metric, found.label, found.detector) == ("criteria", "criterion not met", "judge")
    assert (found.severity, found.turn, found.criterion) == (Severity.MEDIUM, None, "Says goodbye.")
    assert (found.evidence, found.explanation, found.scripted) == ("It is on Monday.", "because", True)
    (_, severe), _ = scored(FAIL, severities={"criterion not met": Severity.HIGH})
    assert severe.severity is Severity.HIGH


@pytest.mark.parametrize(
    ("evidence", "is_flawed"),
    [
        ("It is on Monday.", False),
        ("Says goodbye", False),  # the criterion itself
        ("Never said by anybody", True),
        ("", True),
    ],
)
def test_a_criterion_that_is_not_met_needs_a_quotation(evidence: str, is_flawed: bool) -> None:
    items, _ = scored({"label": "fail", "evidence": evidence})
    kinds = [Check, ScoreFailure] if is_flawed else [Check, Finding]
    assert [type(each) for each in items] == kinds
    assert items[0].passed is (None if is_flawed else False)
    (check,), _ = scored({"label": "pass", "evidence": evidence})
    assert check.passed is True


def test_a_judge_that_fails_leaves_the_criterion_undecided() -> None:
    (check, failure), _ = scored(InfrastructureError("down"))
    assert (check.passed, check.where, failure.kind, failure.metric) == (
        None,
        "s.yaml:9",
        "failure",
        "criteria",
    )
    assert "Says goodbye." in check.detail
    assert "down" in check.detail


@pytest.mark.parametrize(
    ("stop", "turns", "count"),
    [
        (None, (FIRST,), 1),
        (StopReason.SCRIPT_DONE, (FIRST, SECOND), 1),
        (StopReason.RECORDED, (FIRST,), 1),
        (StopReason.SCRIPT_DONE, (), 0),
        (StopReason.AGENT_ERROR, (FIRST,), 0),
        (StopReason.INFRASTRUCTURE, (FIRST,), 0),
        (StopReason.BUDGET, (FIRST,), 0),
    ],
)
def test_conversations_whose_criteria_are_judged(
    stop: StopReason | None, turns: tuple[Turn, ...], count: int
) -> None:
    items, panel = scored(PASS, talk=seen(turns, stop and Stop(reason=stop)))
    assert len(items) == len(panel.requests) == count


@pytest.mark.parametrize(
    ("talk", "count"),
    [
        (seen((FIRST, SECOND)), 2),
        (seen((SECOND,)), 2),
        (seen((FIRST,)), 0),  # nothing is expected of it
        (seen((SECOND, FIRST)), 0),
        (seen(()), 0),
        (seen((SECOND,), unfinished=FIRST), 0),
        (seen((SECOND.model_copy(update={"error": "no answer"}),)), 0),
        (seen((FIRST.model_copy(update={"error": "no answer"}), SECOND)), 2),
        (seen((SECOND.model_copy(update={"script": None}),)), 0),
    ],
)
def test_turns_whose_criteria_are_judged(talk: Trajectory, count: int) -> None:
    items, panel = scored(PASS, PASS, scope="turn", talk=talk)
    assert len(items) == len(panel.requests) == count


def test_criteria_of_a_turn_keep_their_order_and_their_place() -> None:
    items, panel = scored(FAIL, PASS, scope="turn", talk=seen((FIRST, SECOND)))
    checks = [item for item in items if isinstance(item, Check)]
    assert [check.passed for check in checks] == [False, True]
    assert [check.where for check in checks] == ["s.yaml:5", "s.yaml:5"]
    assert ["Names a date." in check.detail for check in checks] == [True, False]
    (found,) = [item for item in items if isinstance(item, Finding)]
    assert (found.turn, found.criterion) == (1, "Names a date.")
    assert [request.subject.turn for request in panel.requests] == [1, 1]
    assert "in the turn to judge" in panel.requests[0].prompt
    assert "over the whole conversation" in scored(PASS)[1].requests[0].prompt


def test_several_criteria_may_share_a_call() -> None:
    both = {
        "criterion_1": {**PASS, "evidence": "", "reason": "r"},
        "criterion_2": {**AROSE_NOT, "evidence": "", "reason": "r"},
    }
    items, panel = scored(both, scope="turn", talk=seen((SECOND,)), is_shared=True)
    assert [(item.passed, item.arose) for item in items] == [(True, True), (True, False)]
    assert len(panel.requests) == 1
    assert [bool(item.usage.calls) for item in items] == [True, False]


@pytest.mark.parametrize(
    ("answers", "passed", "votes"),
    [
        ((FAIL, FAIL), False, 2),
        ((FAIL, PASS, PASS), True, 3),
        ((FAIL, UNCLEAR, FAIL), False, 3),
        ((UNCLEAR,), None, 0),
        ((AROSE_NOT,), True, 0),
        ((PASS,), True, 0),
    ],
)
def test_only_a_criterion_that_is_not_met_is_asked_again(
    answers: tuple[Any, ...], passed: bool | None, votes: int
) -> None:
    (check, *_), panel = scored(*answers, corroborate=True)
    assert (check.passed, len(check.votes), len(panel.requests)) == (passed, votes, len(answers))
