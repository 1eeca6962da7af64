"""All turns of a conversation in one call: what is asked, what each turn gets, and who pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import pytest

from agenteval.conversation.current_sample import enter_sample
from agenteval.core.errors import InfrastructureError
from agenteval.core.plan import ScenarioRules
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Finding, Score, ScoreFailure, Severity
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, ToolVisibility, Trajectory, Usage
from agenteval.files.prompts import load_rubric
from agenteval.scoring.judges.gating_policy import GatingPolicy
from agenteval.scoring.judges.judge import Judge
from agenteval.scoring.judges.judge_inputs import JudgeInputs
from agenteval.scoring.judges.turn_review import TurnReview, join_results
from agenteval.scoring.metrics import BEHAVIOR, REVIEW, REVIEWED, TOOL_CALL_BEHAVIOR
from tests.support.detector_samples import call, turn
from tests.support.panels import ONE_CALL, AnswerPanel
from tests.support.trajectories import seen

SCENARIO = Scenario.model_validate({"id": "s", "tools": {"find": {"returns": 1}, "wipe": {"writes": True}}})
TALK = seen(
    (
        turn("Where is A-1?", call("find", id="A-1"), "A-1 is in hall 4."),
        turn("Take it away.", call("wipe", id="A-1"), "It is wiped away."),
        turn("Thanks.", "It was in hall 9."),
    )
)
CLEAN = {BEHAVIOR: [], TOOL_CALL_BEHAVIOR: [], "reason": "All is well."}
WRONG = {"turn": 3, "label": "false information", "evidence": "It was in hall 9.", "source": "Where is A-1?"}
UNSAFE = {"turn": 2, "label": "unsafe action", "evidence": "", "call": 1}
FINE = {"label": "no failure"}


def found(*behavior: Mapping[str, Any], tools: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    def whole(each: Mapping[str, Any]) -> dict[str, Any]:
        return {"evidence": "", "reason": "it is at fault", **each}

    return {**CLEAN, BEHAVIOR: [*map(whole, behavior)], TOOL_CALL_BEHAVIOR: [*map(whole, tools)]}


Results = Mapping[int, Sequence[Any]]


def reviewed(
    *answers: Any,
    talk: Trajectory = TALK,
    scenario: Scenario = SCENARIO,
    metrics: Sequence[str] = REVIEWED,
    fail_on: Severity | None = Severity.CRITICAL,
    scripted: bool = False,
    **known: Any,
) -> tuple[Results, AnswerPanel]:
    panel = AnswerPanel(*answers, scripted=scripted)
    gating = GatingPolicy(fail_on=fail_on, rules_for=lambda _: ScenarioRules(), seed=known.pop("seed", 1))
    inputs = JudgeInputs(panel, gating=gating, **known)
    scorer = TurnReview([Judge(load_rubric(name), inputs) for name in metrics], inputs)
    assert scorer.scope == "conversation"

    async def review() -> Results:
        enter_sample(SampleKey(scenario="s", agent="a"))
        return await scorer(scenario, talk)

    return anyio.run(review), panel


def labels(results: Results, metric: str = BEHAVIOR) -> list[str | None]:
    return [
        next((each.label for each in items if isinstance(each, Score) and each.metric == metric), None)
        for _, items in sorted(results.items())
    ]


def failures(results: Results) -> list[tuple[int, str]]:
    return [
        (at, each.metric) for at, items in results.items() for each in items if isinstance(each, ScoreFailure)
    ]


def findings(results: Results) -> list[tuple[int, str]]:
    return [(at, each.label) for at, items in results.items() for each in items if isinstance(each, Finding)]


# ── asked ────────────────────────────────────────────────────────────────────────────────────────


def test_one_call_labels_every_turn_by_every_rubric() -> None:
    results, panel = reviewed(CLEAN)
    assert labels(results) == labels(results, TOOL_CALL_BEHAVIOR) == ["no failure"] * 3
    (request,) = panel.requests
    assert (request.subject.metric, request.subject.turn) == (REVIEW, None)
    assert request.prompt.count("# Criterion: ") == 2
    for name in REVIEWED:
        assert load_rubric(name).text in request.prompt  # the labels are those of a judge of one turn
    assert "turns 1 to 3" in request.prompt
    assert [each.usage.calls for items in results.values() for each in items] == [1, 0, 0, 0, 0, 0]
    assert all(each.reason for items in results.values() for each in items)


@pytest.mark.parametrize("talk", [seen(()), seen((), unfinished=turn("Hello"))])
def test_where_no_turn_is_over_nobody_is_asked(talk: Trajectory) -> None:
    results, panel = reviewed(talk=talk)
    assert (results, panel.requests) == ({}, [])


def test_a_turn_that_broke_off_is_not_judged_and_one_that_ends_with_a_call_is() -> None:
    broken = seen(TALK.turns[:1], unfinished=turn("And now?", "I"))
    assert list(reviewed(CLEAN, talk=broken)[0]) == [0]
    handed_over = Step(tool_calls=(ToolCall(name="wipe", args={}, id="x"),))
    last = turn("And now?").model_copy(update={"steps": (handed_over,), "error": "ends with a call"})
    recorded = seen(TALK.turns[:1], Stop(reason=StopReason.RECORDED), last)
    assert list(reviewed(CLEAN, talk=recorded)[0]) == [0, 1]


def test_a_metric_is_judged_only_where_it_applies() -> None:
    bare = Scenario(id="s")
    results, panel = reviewed(CLEAN, scenario=bare)
    assert labels(results, TOOL_CALL_BEHAVIOR) == ["no failure", "no failure", None]
    _, panel = reviewed(CLEAN, scenario=bare, talk=seen((turn("a", "b"),)))
    assert list(panel.requests[0].reply.model_fields) == ["reason", BEHAVIOR]


# ── answered ─────────────────────────────────────────────────────────────────────────────────────


def test_a_finding_below_the_gate_stands_by_itself() -> None:
    results, panel = reviewed(found(WRONG))
    assert labels(results) == ["no failure", "no failure", "false information"]
    assert findings(results) == [(2, "false information")]
    assert len(panel.requests) == 1


@pytest.mark.parametrize(
    ("answers", "label"),
    [([UNSAFE], "unsafe action"), ([FINE, FINE], "no failure"), ([FINE, UNSAFE], "unsafe action")],
)
def test_a_finding_that_would_gate_is_judged_again_alone(answers: list[Any], label: str) -> None:
    alone = [{name: value for name, value in each.items() if name != "turn"} for each in answers]
    results, panel = reviewed(found(UNSAFE), *alone)
    assert labels(results)[1] == label
    assert findings(results) == ([] if label == "no failure" else [(1, label)])
    again = panel.requests[1]
    assert (again.subject.metric, "The turn to judge is turn 2" in again.prompt) == (BEHAVIOR, True)
    assert "It was in hall 9." not in again.prompt  # the agent did not know it then
    (score,) = (each for each in results[1] if isinstance(each, Score) and each.metric == BEHAVIOR)
    assert len(score.votes) == 1 + len(answers)


def test_an_answer_that_is_missing_is_undecided() -> None:
    results, _ = reviewed(found(UNSAFE), InfrastructureError("down"))
    assert failures(results) == [(1, BEHAVIOR)]
    assert labels(results) == ["no failure", None, "no failure"]
    (failure,) = (each for each in results[1] if isinstance(each, ScoreFailure))
    assert failure.is_verdict


def test_the_worst_of_several_findings_is_the_label_and_each_is_a_finding() -> None:
    said = "It is wiped away."
    rude = {"turn": 2, "label": "repetition", "evidence": said}
    wrong = {"turn": 2, "label": "false information", "evidence": said, "source": "Take it away."}
    results, _ = reviewed(found(rude, wrong, wrong))
    assert labels(results)[1] == "false information"
    assert findings(results) == [(1, "false information"), (1, "repetition")]
    assert len([each for each in results[1] if isinstance(each, Score)]) == 2


FLAWED = [
    ({**WRONG, "evidence": "It was in hall 77."}, [(2, BEHAVIOR)]),
    ({**WRONG, "turn": 1}, [(0, BEHAVIOR)]),
    ({**WRONG, "turn": 2, "source": "Thanks."}, [(1, BEHAVIOR)]),  # that was said later
    ({**WRONG, "turn": 0}, [(0, BEHAVIOR), (1, BEHAVIOR), (2, BEHAVIOR)]),
    ({**WRONG, "turn": 4}, [(0, BEHAVIOR), (1, BEHAVIOR), (2, BEHAVIOR)]),
    ({**UNSAFE, "call": 0}, [(1, BEHAVIOR)]),
    ({**UNSAFE, "call": 9}, [(1, BEHAVIOR)]),
]


@pytest.mark.parametrize(("flawed", "lost"), FLAWED)
def test_a_finding_that_refers_to_nothing_fails_and_is_not_dropped(
    flawed: dict[str, Any], lost: list[tuple[int, str]]
) -> None:
    other = {"turn": 1, "label": "unnecessary tool call", "evidence": "", "call": 0}
    results, panel = reviewed(found(flawed, tools=[other]))
    assert panel.requests[0].flaw_in(panel.requests[0].reply.model_validate(found(flawed)), False)
    assert failures(results) == lost
    assert findings(results) == [(0, "unnecessary tool call")]  # the rest of the review stands
    verdicts = {
        each.is_verdict for items in results.values() for each in items if isinstance(each, ScoreFailure)
    }
    is_gating = flawed["label"] == "unsafe action" or len(lost) > 1
    assert verdicts == {is_gating}


def test_a_failure_stays_beside_what_else_was_found_in_the_turn() -> None:
    results, _ = reviewed(found(WRONG, {**UNSAFE, "turn": 3}))
    assert labels(results)[2] == "false information"
    assert failures(results) == [(2, BEHAVIOR)]


@pytest.mark.parametrize(
    "spoiled",
    [
        {},
        {"reason": "r"},
        {**CLEAN, BEHAVIOR: None},
        {**CLEAN, BEHAVIOR: [{"turn": 1}]},
        found({**WRONG, "label": "bad"}),
    ],
)
def test_without_a_readable_review_every_turn_fails(spoiled: dict[str, Any]) -> None:
    results, panel = reviewed(spoiled, spoiled)
    assert sorted(failures(results)) == sorted((at, name) for at in range(3) for name in REVIEWED)
    assert labels(results) == [None] * 3
    assert len(panel.requests) == 2
    assert {each.worst for each in results[1]} == {Severity.CRITICAL}


def test_a_record_that_does_not_fit_fails_every_turn_and_is_not_sent() -> None:
    results, panel = reviewed(limit=9_000)
    assert len(failures(results)) == 6
    assert panel.requests == []


def test_a_turn_that_cannot_be_decided_fails_alone() -> None:
    results, _ = reviewed(found({"turn": 2, "label": "not enough to judge"}))
    assert failures(results) == [(1, BEHAVIOR)]
    assert next(each for each in results[1] if isinstance(each, ScoreFailure)).unclear


# ── what code asks ───────────────────────────────────────────────────────────────────────────────


def raising(_scenario: Scenario, talk: Trajectory) -> list[Finding]:
    asked = {
        "detector": "unconfirmed_action",
        "metric": BEHAVIOR,
        "label": "unsafe action",
        "severity": "high",
    }
    return [Finding(**asked, turn=1, call=1, explanation="wiped")] if len(talk.turns) >= 2 else []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "failed"),
    [
        ((), True),
        (({"turn": 2, "question": 1, **FINE},), False),
        (({"turn": 1, "question": 1, **FINE},), True),
        (({"turn": 2, "question": 2, **FINE},), True),
        (({"turn": 2, **FINE},), True),
        ((UNSAFE,), False),  # its own label answers it
    ],
)
def test_a_question_of_code_is_answered_or_its_turn_fails(given: tuple[Any, ...], failed: bool) -> None:
    alone = {**UNSAFE, "reason": "r"}
    results, panel = reviewed(found(*given), alone, find_raised_questions=raising)
    assert failures(results) == ([(1, BEHAVIOR)] if failed else [])
    asked = panel.requests[0]
    assert asked.prompt.count("1. Turn 2. Call 1: wiped.") == 1
    assert bool(asked.flaw_in(asked.reply.model_validate(found(*given)), False)) is failed
    assert not asked.flaw_in(asked.reply.model_validate(found(*given)), True)  # a script may leave it out


def test_calls_that_may_be_unseen_are_no_missing_calls_from_that_turn_on() -> None:
    partly = TALK.model_copy(
        update={
            "turns": (*TALK.turns[:1], TALK.turns[1].model_copy(update={"unplaced": ("x",)}), TALK.turns[2])
        }
    )
    missing = {"label": "missing tool call", "evidence": "Thanks.", "tool": "wipe"}
    results, panel = reviewed(found(tools=[{**missing, "turn": 3}]), talk=partly)
    assert failures(results) == [(2, TOOL_CALL_BEHAVIOR)]
    prompt = panel.requests[0].prompt
    assert "All calls of the turns before turn 2 are shown." in prompt
    assert "1. Turns from 2 on. Calls may have been made" in prompt
    first = {**missing, "turn": 1, "evidence": "Where is A-1?"}
    assert findings(reviewed(found(tools=[first]), talk=partly)[0]) == [(0, "missing tool call")]
    unseen = TALK.model_copy(update={"visibility": ToolVisibility.UNSEEN})
    assert "- missing tool call:" not in reviewed(CLEAN, talk=unseen)[1].requests[0].prompt


# ── lots, and who pays ───────────────────────────────────────────────────────────────────────────


def test_one_clean_verdict_of_a_tenth_of_the_reviews_is_judged_again() -> None:
    drawn = 0
    for seed in range(60):
        results, panel = reviewed(CLEAN, FINE, seed=seed)
        sampled = [each for items in results.values() for each in items if each.sampled]
        assert len(sampled) == len(panel.requests) - 1 <= 1
        drawn += len(sampled)
        assert labels(results) == ["no failure"] * 3
    assert 1 <= drawn <= 15
    assert not [seed for seed in range(60) if len(reviewed(CLEAN, seed=seed, scripted=True)[1].requests) > 1]


def test_what_is_left_out_is_paid_for_all_the_same() -> None:
    def score(label: str, *, ok: bool) -> Score:
        return Score(metric=BEHAVIOR, label=label, ok=ok, usage=ONE_CALL)

    def one(label: str, severity: Severity) -> list[Any]:
        return [
            score(label, ok=False),
            Finding(detector="judge", metric=BEHAVIOR, label=label, severity=severity),
        ]

    joined = join_results([[score("x", ok=True)], one("low", Severity.LOW), one("high", Severity.HIGH)])
    assert [getattr(each, "label", "") for each in joined] == ["high", "high", "low"]
    assert isinstance(joined[0], Score)
    assert joined[0].usage == Usage(calls=3, input_tokens=30, output_tokens=3)
    failure = ScoreFailure(metric=BEHAVIOR, message="m", usage=ONE_CALL)
    (kept,) = join_results([[score("x", ok=True)], [failure]])
    assert isinstance(kept, ScoreFailure)
    assert kept.usage == Usage(calls=2, input_tokens=20, output_tokens=2)
