"""Questions that code raises for a judge: who answers, what is shown, and what the answer settles."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.plan import SuitePolicy
from agenteval.core.scenario import Scenario
from agenteval.core.score import Finding, Score, Severity
from agenteval.core.trajectory import ToolVisibility, Trajectory
from agenteval.files.prompts import load_rubric
from agenteval.scoring.questions import (
    add_raised_questions,
    asks_judge,
    build_open_checks,
    drop_answered_questions,
    is_open_question,
    question_detectors,
    tools_of_unseen_calls,
)
from tests.support.detector_samples import call, turn
from tests.support.trajectories import seen

BEHAVIOR, TOOL_CALLS = "agent_behavior_failure", "tool_call_behavior_failure"
RUBRIC = load_rubric(BEHAVIOR)
SCENARIO = Scenario.model_validate(
    {
        "id": "s",
        "source": "s.yaml:1",
        "lines": {"tools": 7},
        "tools": {
            "look": {"reads": True, "returns": 1},
            "wipe": {"destructive": True, "returns": 1},
            "book": {"writes": True, "returns": 1},
            "odd": {"returns": 1},
        },
    }
)
TALK = seen((turn("a", call("wipe", id="A-1"), "Gone."), turn("b", "Bye.")))


def raised(detector: str = "unconfirmed_action", label: str = "unsafe action", **more: Any) -> Finding:
    base = {"metric": BEHAVIOR, "severity": Severity.HIGH, "turn": 0, "call": 0, "evidence": "wipe(A-1)"}
    return Finding(detector=detector, label=label, **{**base, "explanation": "why", **more})


CLAIM = raised("claimed_action_not_called", "false claim of action", call=None, evidence="Gone.")


@pytest.mark.parametrize(
    ("suite", "asks"),
    [
        ({"judged": [BEHAVIOR]}, True),
        ({"judged": ["helpfulness", BEHAVIOR]}, True),
        ({"judged": [BEHAVIOR], "no_judge": True}, False),
        ({"judged": [TOOL_CALLS]}, False),
        ({}, False),
    ],
)
def test_whether_a_judge_can_answer(suite: dict[str, Any], asks: bool) -> None:
    assert asks_judge(SuitePolicy.model_validate(suite)) is asks


@pytest.mark.parametrize(
    ("detectors", "names"),
    [
        (None, ("unconfirmed_action", "claimed_action_not_called")),
        ((), ()),
        (("leak", "unconfirmed_action"), ("unconfirmed_action",)),
        (("leak", "repetition"), ()),
    ],
)
def test_detectors_that_raise_questions(detectors: tuple[str, ...] | None, names: tuple[str, ...]) -> None:
    assert question_detectors(SuitePolicy(detectors=detectors)) == names


# ── what is asked ────────────────────────────────────────────────────────────────────────────────


def shown(*found: Finding, talk: Trajectory = TALK, at: int = 0) -> str:
    after = add_raised_questions(RUBRIC, found, SCENARIO, talk, at)
    return after.text.removeprefix(RUBRIC.text)


@pytest.mark.parametrize(
    ("found", "at", "is_shown"),
    [
        (raised(), 0, True),
        (raised(), 1, False),
        (raised(metric=TOOL_CALLS), 0, False),
        (CLAIM, 0, True),
        (raised(turn=None), 0, False),
    ],
)
def test_only_questions_about_the_judged_turn_are_shown(found: Finding, at: int, is_shown: bool) -> None:
    assert (found.evidence in shown(found, at=at)) is is_shown
    if not is_shown:
        assert add_raised_questions(RUBRIC, [found], SCENARIO, TALK, at) is RUBRIC


def test_questions_are_numbered_and_name_their_calls() -> None:
    text = shown(raised(call=4, explanation="why-one"), CLAIM.model_copy(update={"explanation": "why-two"}))
    assert text.index("\n1. ") < text.index("why-one") < text.index("\n2. ") < text.index("why-two")
    assert "Call 4" in text
    assert "Call" not in shown(CLAIM)
    assert "wipe(A-1)" not in shown(raised(evidence=""))
    assert "unsafe action" in shown(raised())
    assert "false claim of action" in shown(CLAIM)


UNSEEN = TALK.model_copy(update={"visibility": ToolVisibility.UNSEEN})


@pytest.mark.parametrize(
    ("visibility", "tools"),
    [
        (ToolVisibility.ALL, []),
        (ToolVisibility.DECLARED_UNSEEN, []),
        (ToolVisibility.UNSEEN, ["wipe", "book"]),
        (ToolVisibility.PARTLY, ["wipe", "book"]),
        (None, ["wipe", "book"]),
    ],
)
def test_tools_that_may_have_been_called_unseen(visibility: ToolVisibility | None, tools: list[str]) -> None:
    talk = TALK.model_copy(update={"visibility": visibility})
    assert list(tools_of_unseen_calls(SCENARIO, talk)) == tools


def test_unseen_calls_are_a_question_of_their_own() -> None:
    text = shown(raised(), talk=UNSEEN, at=1)
    assert '["wipe", "book"]' in text
    assert f'"{RUBRIC.unsure}"' in text
    assert "1. " in text
    assert "2. " not in text
    other = load_rubric("helpfulness")  # it has no label for a false claim
    assert add_raised_questions(other, [], SCENARIO, UNSEEN, 0) is other


# ── what is answered ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("found", "is_open"),
    [
        (raised(), True),
        (raised(also=("judge: x",)), False),
        (CLAIM, False),  # it stands without an answer
        (raised("leak", "unsafe state"), False),
        (raised("judge"), False),
    ],
)
def test_open_questions(found: Finding, is_open: bool) -> None:
    assert is_open_question(found) is is_open


def label(name: str | None, metric: str = BEHAVIOR) -> Score:
    return Score(metric=metric, label=name)


@pytest.mark.parametrize(
    ("found", "scores", "stays"),
    [
        (raised(), {}, True),
        (raised(), {0: [label("no failure")]}, False),
        (raised(), {0: [label("repetition")]}, False),
        (raised(), {0: [label("unsafe action")]}, True),
        (raised(), {0: [label("unsafe state")]}, False),
        (raised(), {0: [label(None)]}, True),
        (raised(), {1: [label("no failure")]}, True),
        (raised(), {0: [label("no failure", TOOL_CALLS)]}, True),
        (raised(), {0: [label("no failure", TOOL_CALLS), label("no failure")]}, False),
        (raised(also=("judge: x",)), {0: [label("no failure")]}, True),
        (raised(turn=None), {0: [label("no failure")]}, True),
        (CLAIM, {0: [label("no failure")]}, False),
        (CLAIM, {0: [label("false claim of action")]}, True),
        (CLAIM, {0: [label("unsafe action")]}, True),  # it takes precedence
        (CLAIM, {0: [label("unsafe state")]}, True),
        (CLAIM, {0: [label("false information")]}, False),
        (raised("leak", "unsafe state"), {0: [label("no failure")]}, True),  # no question
        (raised("judge"), {0: [label("no failure")]}, True),
    ],
)
def test_a_question_that_a_label_rejects_is_dropped(
    found: Finding, scores: dict[int, list[Score]], stays: bool
) -> None:
    assert drop_answered_questions([found], scores) == ((found,) if stays else ())


@pytest.mark.parametrize(
    ("found", "suite", "count"),
    [
        (raised(), {}, 1),
        (raised(), {"fail_on_severity": "none"}, 0),
        (raised(also=("judge: x",)), {}, 0),
        (raised("leak", "unsafe state"), {}, 0),
        (raised(), {"severities": {"unsafe action": "high"}}, 0),
        (raised(), {"severities": {"unsafe action": "high"}, "fail_on_severity": "high"}, 1),
        (raised(turn=None), {}, 1),
    ],
)
def test_an_open_question_that_could_fail_the_sample_is_an_undecided_check(
    found: Finding, suite: dict[str, Any], count: int
) -> None:
    checks = list(build_open_checks([found], TALK, SCENARIO, SuitePolicy.model_validate(suite)))
    assert len(checks) == count
    for check in checks:
        assert (check.name, check.passed, check.turn) == ("unconfirmed_action", None, found.turn)
        assert check.where == "s.yaml:7"
        assert "name: wipe" in check.detail
        assert ("turn 1" in check.detail) is (found.turn == 0)


def test_the_check_depends_on_whether_a_judge_was_asked() -> None:
    (without,) = build_open_checks([raised()], TALK, SCENARIO, SuitePolicy())
    (asked,) = build_open_checks([raised()], TALK, SCENARIO, SuitePolicy(judged=(BEHAVIOR,)))
    assert (BEHAVIOR in without.detail, BEHAVIOR in asked.detail) == (True, False)


def test_checks_follow_the_order_of_the_findings() -> None:
    found = [raised(turn=1), raised("leak", "unsafe state"), raised(turn=0)]
    assert [check.turn for check in build_open_checks(found, TALK, SCENARIO, SuitePolicy())] == [1, 0]
