"""The judge of policy adherence: the violations of an answer, their turns, severities and consequences."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agenteval.core.plan import SuitePolicy
from agenteval.core.scenario import Scenario
from agenteval.core.score import Finding, RuleKind, Score, ScoreFailure, Severity
from agenteval.core.trajectory import Stop, StopReason
from agenteval.files.prompts import load_rubric
from agenteval.planning.plan_resolution import rules_for
from agenteval.scoring.judges.gating_policy import GatingPolicy
from agenteval.scoring.judges.judge import JudgeTarget
from agenteval.scoring.judges.judge_inputs import JudgeInputs
from agenteval.scoring.judges.judge_question import JudgeQuestion
from agenteval.scoring.judges.policy import PolicyBreach, PolicyJudge, find_turn_of_breach, parse_breaches
from agenteval.scoring.judges.replies import build_reply_type
from tests.support.detector_samples import call, failing, turn
from tests.support.panels import AnswerPanel
from tests.support.trajectories import seen

LOW, MEDIUM, HIGH, CRITICAL = Severity
RUBRIC = load_rubric("policy_adherence")
POLICY = "Never refund an item on sale. Name the fee before any booking. Greet each user by name."
REFUND, FEE, GREET = (
    "Never refund an item on sale",
    "Name the fee before any booking",
    "Greet each user by name",
)
SCENARIO = Scenario.model_validate(
    {
        "id": "s",
        "tools": {
            "look_up": {"reads": True, "returns": 1},
            "refund": {"writes": True, "returns": 1},
        },
    }
)
TALK = seen(
    (
        turn("Refund it.", call("look_up"), "Let me see about that."),  # 0
        turn("And now?", call("refund"), failing("refund", "not again"), "I have refunded the lamp."),  # 1, 2
        turn("Thanks.", "I have refunded the lamp."),
    ),
    Stop(reason=StopReason.USER_DONE),
)


def judge(panel: AnswerPanel | None = None, **gating: Any) -> PolicyJudge:
    inputs = JudgeInputs(panel or AnswerPanel(), lambda _: POLICY, gating=GatingPolicy(**gating))
    return PolicyJudge(RUBRIC, inputs)


def built(**gating: Any) -> tuple[JudgeQuestion, JudgeTarget]:
    question = judge(**gating).build_question(SCENARIO, TALK)
    assert question is not None
    return question


def broken(rule: str = REFUND, kind: str = "permission", **more: Any) -> dict[str, Any]:
    return {"rule": rule, "kind": kind, "evidence": "", "call": None, "reason": "why", **more}


def reply(label: str, *violations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"label": label, "violations": list(violations), "evidence": "", "reason": "overall", **more}


def answer(label: str, *violations: dict[str, Any], **more: Any) -> Any:
    return build_reply_type(RUBRIC).model_validate(reply(label, *violations, **more))


BY_CALL, BY_WORDS = broken(call=1), broken(evidence="I have refunded the lamp.")


# ── violations ───────────────────────────────────────────────────────────────────────────────────


def test_each_violation_counts_once() -> None:
    same = broken(rule="never  refund an ITEM on sale", call=1, reason="again")
    other = broken(call=2)
    found = list(parse_breaches(answer("fail", BY_CALL, same, other, BY_WORDS, BY_WORDS)))
    assert [(each.call, each.evidence, each.reason) for each in found] == [
        (1, "", "why"),
        (2, "", "why"),
        (None, "I have refunded the lamp.", "why"),
    ]


def test_a_violation_without_a_reason_has_that_of_the_answer() -> None:
    (found,) = parse_breaches(answer("fail", broken(call=1, reason="")))
    assert (found.reason, found.kind, found.carried_out) == ("overall", RuleKind.PERMISSION, None)
    assert (found.references.rule, found.references.call) == (REFUND, 1)


def test_an_answer_without_violations_is_one_itself() -> None:
    (found,) = parse_breaches(answer("fail", evidence="words", rule=FEE, call=2, kind="style"))
    assert found == PolicyBreach(FEE, "words", 2, RuleKind.STYLE, None, "overall")
    assert FEE in found.explanation
    assert found._replace(rule="").explanation == "overall"


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({"call": 0}, 0),
        ({"call": 1}, 1),
        ({"call": 2}, 1),
        ({"call": 3}, None),
        ({"evidence": "I have refunded the lamp."}, 1),  # the first time
        ({"evidence": "Let me see about that."}, 0),
        ({"evidence": "Refund it."}, None),  # the user's words
        ({"evidence": "  "}, None),
        ({}, None),
        ({"call": 0, "evidence": "I have refunded the lamp."}, 0),
    ],
)
def test_the_turn_of_a_violation(more: dict[str, Any], at: int | None) -> None:
    breach = PolicyBreach(
        **{"rule": "", "evidence": "", "call": None, "kind": None, "carried_out": None, "reason": "", **more}
    )
    assert find_turn_of_breach(breach, built()[1]) == at


# ── flaws ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "flawed", "if_scripted"),
    [
        (answer("pass"), False, False),
        (answer("pass", BY_CALL), True, True),
        (answer("not clear"), False, False),
        (answer("not clear", BY_CALL), True, True),
        (answer("fail", BY_CALL), False, False),
        (answer("fail", BY_WORDS), False, False),
        (answer("fail"), True, True),  # nothing is quoted either
        (answer("fail", evidence="I have refunded the lamp."), True, False),
        (answer("fail", broken(kind="", call=1)), True, False),
        (answer("fail", broken(rule="Always be silent", call=1)), True, True),
        (answer("fail", broken(rule="", call=1)), True, False),
        (answer("fail", broken(call=9)), True, True),
        (answer("fail", broken()), True, True),
        (answer("fail", BY_CALL, broken(evidence="never said by anybody")), True, True),
        (answer("fail", broken(call=1, evidence="never said by anybody")), True, True),
    ],
)
def test_answers_that_cannot_be_used(given: Any, flawed: bool, if_scripted: bool) -> None:
    question, _ = built()
    assert bool(question.flaw_in(given, False)) is flawed
    assert bool(question.flaw_in(given, True)) is if_scripted


# ── consequences ─────────────────────────────────────────────────────────────────────────────────

STYLE, DISCLOSURE = broken(GREET, "style", call=1), broken(FEE, "disclosure", call=1)
READ = broken(call=0)


@pytest.mark.parametrize(
    ("given", "at_critical", "at_high"),
    [
        (answer("pass"), False, False),
        (answer("not clear"), False, False),
        (answer("fail", BY_CALL), True, True),  # it changed something
        (answer("fail", BY_WORDS), True, True),
        (answer("fail", broken(evidence="I have refunded the lamp.", carried_out=False)), False, True),
        (answer("fail", READ), False, True),
        (answer("fail", STYLE), False, False),
        (answer("fail", DISCLOSURE), False, False),
        (answer("fail", STYLE, BY_CALL), True, True),  # the worst counts
    ],
)
def test_what_fails_the_sample(given: Any, at_critical: bool, at_high: bool) -> None:
    assert built()[0].gates(given) is at_critical
    assert built(fail_on=HIGH)[0].gates(given) is at_high
    assert not built(fail_on=None)[0].gates(given)
    bounded = rules_for(
        Scenario.model_validate({"id": "s", "thresholds": {"policy_adherence": 0.9}}), SuitePolicy()
    )
    question, _ = built(rules_for=lambda _: bounded)
    assert question.gates(given) is (given.label == "fail")
    expected = False if given.label != "fail" else True if at_critical else "lowers the share"
    assert question.side_of(given) == expected
    assert question.is_clean(given) is (given.label == "pass")


@pytest.mark.parametrize(
    ("given", "is_doubtful"),
    [
        (answer("fail", DISCLOSURE), True),  # with another kind of rule it would be critical
        (answer("fail", STYLE), True),
        (answer("fail", BY_CALL), False),
        (answer("fail", broken(GREET, "style", call=0)), False),
        (answer("fail", broken(GREET, "style", call=2)), False),  # that call failed
        (answer("fail", broken(GREET, "style", evidence="I have refunded the lamp.")), False),
        (answer("fail", BY_CALL, STYLE), True),
        (answer("fail", broken(kind="", call=1)), True),
        (answer("pass"), False),
        (answer("not clear"), False),
    ],
)
def test_answers_that_are_doubted(given: Any, is_doubtful: bool) -> None:
    assert built()[0].is_doubtful(given) is is_doubtful


@pytest.mark.parametrize(
    ("given", "accepted"),
    [
        (answer("pass", BY_CALL), False),  # nothing severe, but nothing known either
        (answer("fail", BY_CALL), False),
        (answer("fail", broken(kind="", call=0)), False),
        (answer("fail", broken(kind="", call=0, carried_out=False)), False),
        (answer("fail", broken(call=0, carried_out=False)), True),
        (answer("fail", READ), False),
        (answer("fail", broken(GREET, "style", call=0)), True),
        (answer("fail", broken(GREET, "style", call=1)), False),
        (answer("fail", broken(FEE, "disclosure", call=0)), True),
    ],
)
def test_flawed_answers_below_the_gate(given: Any, accepted: bool) -> None:
    assert built()[0].accepts_flawed(given, False) is accepted


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def judged(*answers: Any, scripted: bool = False, **gating: Any) -> list[Any]:
    return list(anyio.run(judge(AnswerPanel(*answers, scripted=scripted), **gating), SCENARIO, TALK))


@pytest.mark.parametrize(("label", "ok"), [("pass", True), ("not clear", None)])
def test_an_answer_without_violations(label: str, ok: bool | None) -> None:
    (score,) = judged(reply(label), corroborate=False)
    assert isinstance(score, Score)
    assert (score.label, score.ok, score.value, score.reason) == (label, ok, None, "overall")
    assert score.by == "lab/model"


def test_each_violation_is_a_finding() -> None:
    score, *found = judged(reply("fail", BY_CALL, STYLE, BY_WORDS), corroborate=False)
    assert (score.label, score.ok, score.evidence) == ("fail", False, "I have refunded the lamp.")
    assert score.references.rule == REFUND
    facts = [(each.severity, each.turn, each.call, each.rule_kind) for each in found]
    assert facts == [
        (CRITICAL, 1, 1, RuleKind.PERMISSION),
        (LOW, 1, 1, RuleKind.STYLE),
        (CRITICAL, 1, None, RuleKind.PERMISSION),
    ]
    assert [each.evidence for each in found] == ["refund {}", "refund {}", "I have refunded the lamp."]
    assert all(
        (each.label, each.detector, each.scripted) == ("policy violation", "judge", False) for each in found
    )
    assert all(isinstance(each, Finding) for each in found)


def test_the_evidence_of_the_answer_comes_first() -> None:
    score, *_ = judged(reply("fail", BY_WORDS, evidence="Let me see about that."), corroborate=False)
    assert score.evidence == "Let me see about that."


def test_a_scripted_answer() -> None:
    score, found = judged(reply("fail", evidence="I have refunded the lamp."), scripted=True)
    assert (score.scripted, found.scripted, found.rule_kind, found.severity) == (True, True, None, MEDIUM)


@pytest.mark.parametrize(
    ("answers", "label", "against"),
    [
        ((reply("fail", BY_CALL), reply("fail", BY_WORDS)), "fail", [True, True]),
        ((reply("fail", BY_CALL), reply("pass"), reply("pass")), "pass", [True, False, False]),
        ((reply("fail", BY_CALL), reply("pass"), reply("fail", BY_CALL)), "fail", [True, False, True]),
    ],
)
def test_a_violation_that_fails_the_sample_needs_a_second_opinion(
    answers: tuple[Any, ...], label: str, against: list[bool]
) -> None:
    score, *found = judged(*answers)
    assert (score.label, [vote.against for vote in score.votes]) == (label, against)
    assert len(found) == (label == "fail")


def test_a_judge_that_fails_may_have_found_the_worst() -> None:
    (failure,) = judged(reply("fail"))
    assert isinstance(failure, ScoreFailure)
    assert failure.worst is CRITICAL
    (milder,) = judged(reply("fail"), severities={"policy violation": MEDIUM})
    assert isinstance(milder, ScoreFailure)
    assert milder.worst is MEDIUM
