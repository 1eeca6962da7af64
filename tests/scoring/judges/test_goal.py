"""The judge of a goal: the references each outcome needs, what counts for and against, what is doubted."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.scenario import Scenario
from agenteval.core.score import Finding, References, RuleKind, Score, Severity, Vote
from agenteval.core.trajectory import Stop, StopReason, ToolVisibility, Trajectory
from agenteval.files.prompts import load_rubric
from agenteval.scoring.judges.gating_policy import GatingPolicy
from agenteval.scoring.judges.goal import TWIN_SHARE, GoalJudge, find_outcome_flaw, get_outcome_value
from agenteval.scoring.judges.judge import LOWERS_THE_SHARE, JudgeTarget
from agenteval.scoring.judges.judge_inputs import JudgeInputs
from agenteval.scoring.judges.judge_question import JudgeQuestion
from agenteval.scoring.judges.references import Claim
from agenteval.scoring.judges.replies import build_reply_type
from tests.support.detector_samples import call, failing, turn
from tests.support.panels import AnswerPanel
from tests.support.trajectories import seen

LOW, MEDIUM, HIGH, CRITICAL = Severity
RUBRIC = load_rubric("goal_completion")
POLICY = "Refunds are possible within 30 days. Items on sale are never refunded. Be kind to everybody."
TOOLS = {
    "get_order": {"reads": True, "returns": 1},
    "refund": {"writes": True, "returns": 1},
    "find_slots": {"reads": True, "returns": 1},
    "cancel": {"writes": True, "returns": 1},
}
SCENARIO = Scenario.model_validate(
    {
        "id": "s",
        "goal": "Get the money back for order A-7.",
        "knowledge": ["The lamp was bought in March."],
        "facts": ["The lamp was on sale in spring."],
        "tools": TOOLS,
    }
)
STOP = Stop(reason=StopReason.USER_DONE)
REFUSED = seen(
    (
        turn(
            "Please refund my order A-7.",
            "I will look into it for you.",
            call("get_order", {"order": "A-7", "age": "sixty days old"}),  # 0
            failing("refund", "the refund service is closed"),  # 1
            call("find_slots", {"slots": []}),  # 2
            "I am sorry, a refund is not possible here.",
        ),
        turn(
            "Then I will just keep the lamp.",
            "All right, goodbye to you.",
            failing("refund", "nothing left to be paid"),  # 3
        ),
    ),
    STOP,
)
OLD = call("get_order", {"age": "sixty days old"})
DONE = seen(
    (
        turn(
            "Please refund my order A-7.",
            call("get_order", {"age": "sixty days old"}),
            call("refund"),
            "It is done now.",
        ),
    ),
    STOP,
)


def judge(panel: AnswerPanel | None = None, **gating: Any) -> GoalJudge:
    inputs = JudgeInputs(panel or AnswerPanel(), lambda _: POLICY, gating=GatingPolicy(**gating))
    return GoalJudge(RUBRIC, inputs)


def built(
    talk: Trajectory = REFUSED, scenario: Scenario = SCENARIO, **gating: Any
) -> tuple[JudgeQuestion, JudgeTarget]:
    question = judge(**gating).build_question(scenario, talk)
    assert question is not None
    return question


def has_flaw(
    outcome: str,
    evidence: str = "",
    *,
    talk: Trajectory = REFUSED,
    scenario: Scenario = SCENARIO,
    scripted: bool = False,
    twin: Trajectory | None = None,
    **references: Any,
) -> bool:
    _, target = built(talk, scenario)
    if twin is not None:
        target = target._replace(twin=built(twin, scenario)[1].record)
    return bool(find_outcome_flaw(outcome, Claim(evidence, References(**references), scripted), target))


def answer(outcome: str, **more: Any) -> Any:
    value = {"evidence": "", "reason": "why", "outcome": outcome, **more}
    return build_reply_type(RUBRIC).model_validate(value)


# ── values ───────────────────────────────────────────────────────────────────────────────────────

TO_REFUSE = SCENARIO.model_copy(update={"goal_outcome": "refused"})


@pytest.mark.parametrize(
    ("outcome", "value", "if_to_be_refused"),
    [
        ("reached", 1, 0),
        ("missed", 0, 0),
        ("policy broken", 0, 0),
        ("ruled out", None, 1),
        ("withdrawn", None, None),
        ("not clear", None, None),
    ],
)
def test_the_value_of_an_outcome(outcome: str, value: float | None, if_to_be_refused: float | None) -> None:
    assert get_outcome_value(outcome, RUBRIC, SCENARIO) == value
    assert get_outcome_value(outcome, RUBRIC, TO_REFUSE) == if_to_be_refused
    for scenario, expected in ((SCENARIO, value), (TO_REFUSE, if_to_be_refused)):
        question, _ = built(scenario=scenario)
        assert question.gates(answer(outcome)) is (expected == 0)
        assert question.is_clean(answer(outcome)) is (expected == 1)


# ── references of a goal that was reached ────────────────────────────────────────────────────────

ONLY_READS = SCENARIO.model_copy(
    update={"tools": {name: SCENARIO.tools[name] for name in ("get_order", "find_slots")}}
)
AT_WORD = DONE.model_copy(update={"visibility": ToolVisibility.DECLARED_UNSEEN})
SOURCE = "sixty days old"


@pytest.mark.parametrize(
    ("more", "is_flawed"),
    [
        ({"talk": DONE, "call": 1}, False),
        ({"talk": DONE, "call": 0}, True),  # it changes nothing
        ({"talk": DONE, "call": 2}, True),
        ({"talk": DONE, "call": -1}, True),
        ({"talk": DONE}, True),
        ({"talk": DONE, "scripted": True}, False),
        ({"talk": DONE, "call": 0, "scripted": True}, True),
        ({"call": 1}, True),  # an error
        ({"talk": DONE, "source": SOURCE}, False),
        ({"talk": DONE, "call": 0, "source": SOURCE}, False),
        ({"talk": DONE, "source": "seventy days old"}, True),
        ({"source": "the refund service is closed"}, True),  # from an error
        ({"source": "Refunds are possible within 30 days"}, False),
        ({"source": "The lamp was bought in March"}, False),
        ({"source": "The lamp was on sale in spring"}, False),
        ({"source": "Please refund my order A-7"}, True),
        ({"scenario": ONLY_READS, "talk": DONE}, False),
        ({"talk": AT_WORD}, False),
        ({"talk": DONE, "call": 1, "evidence": "It is done now."}, False),
        ({"talk": DONE, "call": 1, "evidence": "It was done long ago."}, True),
        # A hand-over that the goal names and the agent announces.
        ({"talk": DONE, "evidence": "It is done now.", "source": "the money back for order A-7"}, False),
        ({"talk": DONE, "source": "the money back for order A-7"}, True),
        (
            {"talk": DONE, "call": 1, "evidence": "It is done now.", "source": "the money back for order"},
            True,
        ),
    ],
)
def test_references_of_a_goal_that_was_reached(more: dict[str, Any], is_flawed: bool) -> None:
    assert has_flaw("reached", **more) is is_flawed


# ── references of a goal that was ruled out ──────────────────────────────────────────────────────

WORDS = "a refund is not possible here"
CLOSED = "the refund service is closed"
RULE = "Items on sale are never refunded"
FACT = "The lamp was on sale in spring"


@pytest.mark.parametrize(
    ("more", "is_flawed"),
    [
        ({"evidence": WORDS, "rule": RULE, "fact": FACT}, False),
        ({"evidence": "Please refund my order A-7", "rule": RULE, "fact": FACT}, True),  # the user's words
        ({"rule": RULE, "fact": FACT}, True),
        ({"evidence": WORDS, "fact": FACT}, True),  # no obstacle
        ({"evidence": WORDS, "rule": "Nothing is ever refunded", "fact": FACT}, True),
        ({"evidence": WORDS, "rule": RULE}, True),  # no fact
        ({"evidence": WORDS, "rule": RULE, "fact": "It was bought yesterday"}, True),
        ({"evidence": WORDS, "rule": RULE, "fact": RULE}, True),
        ({"evidence": WORDS, "call": 1, "source": CLOSED, "fact": CLOSED}, True),
        ({"evidence": WORDS, "rule": RULE, "fact": "Please refund my order A-7"}, False),
        ({"evidence": WORDS, "rule": RULE, "fact": "The lamp was bought in March"}, False),
        ({"evidence": WORDS, "rule": RULE, "fact": "the money back for order A-7"}, False),
        ({"evidence": WORDS, "rule": RULE, "fact": SOURCE}, False),
        ({"evidence": WORDS, "rule": RULE, "fact": WORDS}, True),  # the agent's words
        # A result that shows it: an error, or nothing found.
        ({"evidence": WORDS, "call": 1, "source": CLOSED, "fact": FACT}, False),
        ({"evidence": WORDS, "source": "the refund service is closed", "fact": FACT}, False),
        ({"evidence": WORDS, "call": 0, "source": "the refund service is closed", "fact": FACT}, True),
        ({"evidence": WORDS, "call": 0, "source": SOURCE, "fact": FACT}, True),  # it was found
        ({"evidence": WORDS, "call": 2, "source": '{"slots": []}', "fact": FACT}, False),
        ({"evidence": WORDS, "call": 1, "fact": FACT}, True),  # its words are not quoted
        ({"evidence": WORDS, "call": 3, "source": "nothing left to be paid", "fact": FACT}, True),  # later
        (
            {"evidence": "All right, goodbye to you.", "call": 1, "source": CLOSED, "fact": FACT},
            False,
        ),
        ({"evidence": "I will look into it for you", "call": 1, "source": CLOSED, "fact": FACT}, True),
        # A scripted reply may leave out all but one.
        ({"evidence": WORDS, "scripted": True}, True),
        ({"evidence": WORDS, "rule": RULE, "scripted": True}, False),
        ({"rule": RULE, "scripted": True}, False),
        ({"call": 1, "scripted": True}, False),
        ({"call": 0, "scripted": True}, True),
        ({"evidence": WORDS, "rule": RULE, "fact": "It was bought yesterday", "scripted": True}, True),
        ({"evidence": RULE, "scripted": True}, False),
        # A refusal that the author wants needs only the agent's words.
        ({"scenario": TO_REFUSE, "evidence": WORDS}, False),
        ({"scenario": TO_REFUSE, "evidence": WORDS, "rule": "Nothing is ever refunded"}, True),
        ({"scenario": TO_REFUSE, "evidence": "Please refund my order A-7"}, True),
        ({"scenario": TO_REFUSE}, True),
    ],
)
def test_references_of_a_goal_that_was_ruled_out(more: dict[str, Any], is_flawed: bool) -> None:
    assert has_flaw("ruled out", **more) is is_flawed


@pytest.mark.parametrize(
    ("name", "result", "may_rule_out"),
    [
        ("get_order", {"error": "there is no such order"}, True),
        ("get_order", {"orders": [], "note": "there is no such order"}, True),  # an empty part
        ("get_order", {"note": "there is no such order"}, False),
        ("get_order", "there is no such order", True),  # free text
        ("get_order", {"total": 0, "note": ["there is no such order", ""]}, True),
        ("refund", "there is no such order", False),  # it reports what it has done
        ("refund", {"orders": [], "note": "there is no such order"}, False),
        ("refund", {"error": "there is no such order"}, True),
    ],
)
def test_results_that_may_rule_out_a_goal(name: str, result: Any, may_rule_out: bool) -> None:
    talk = seen((turn("Please refund my order A-7.", call(name, result), f"Sorry, {WORDS}."),), STOP)
    more = {"evidence": WORDS, "call": 0, "source": "there is no such order", "fact": FACT}
    assert has_flaw("ruled out", talk=talk, **more) is not may_rule_out


FOUND = call("find_slots", {"age": "twenty days old"})
YOUNG = call("get_order", {"age": "twenty days old"})


def talked(user: str, *parts: Any) -> Trajectory:
    return seen((turn(user, *parts),), STOP)


MINE = talked("Refund it. I bought it in a hurry.", call("get_order", {"age": "sixty days old"}), WORDS)


@pytest.mark.parametrize(
    ("twin", "difference", "is_flawed"),
    [
        (talked("Refund it.", "It is done now."), "I bought it in a hurry", False),
        (talked("Refund it. I bought it in a hurry.", "It is done now."), "I bought it in a hurry", True),
        (talked("Refund it, it never worked at all.", "Done."), "it never worked at all", False),
        (talked("Refund it.", "Done."), "it never worked at all", True),  # in neither
        (talked("Refund it.", "Done."), "", True),
        (talked("Refund it.", YOUNG, "Done."), "twenty days old", False),
        (
            talked("Refund it.", call("find_slots", {"age": "twenty days old"}), "Done."),
            "twenty days old",
            True,
        ),
        (talked("Refund it.", "Done."), "sixty days old", True),  # only one of them looked it up
        (
            talked("Refund it.", call("cancel"), YOUNG, "Done."),
            "twenty days old",
            True,  # after a change that only one of them made
        ),
        (
            talked("Refund it.", failing("cancel"), YOUNG, "Done."),
            "twenty days old",
            False,
        ),
        (talked("Refund it.", "It is done by now, madam."), "It is done by now", True),  # an agent's words
    ],
)
def test_the_difference_from_a_conversation_that_reached_the_goal(
    twin: Trajectory, difference: str, is_flawed: bool
) -> None:
    more = {"evidence": WORDS, "rule": RULE, "fact": FACT, "difference": difference}
    assert has_flaw("ruled out", talk=MINE, twin=twin, **more) is is_flawed
    assert not has_flaw("ruled out", talk=MINE, **more)
    if not difference:
        assert not has_flaw("ruled out", talk=MINE, twin=twin, scripted=True, **more)


# ── references of the other outcomes ─────────────────────────────────────────────────────────────

GIVEN_UP = "Then I will just keep the lamp"


@pytest.mark.parametrize(
    ("outcome", "more", "is_flawed"),
    [
        ("withdrawn", {"source": GIVEN_UP}, False),
        ("withdrawn", {"source": WORDS}, True),
        ("withdrawn", {}, True),
        ("withdrawn", {"evidence": GIVEN_UP}, True),
        ("withdrawn", {"evidence": GIVEN_UP, "scripted": True}, False),
        ("withdrawn", {"source": GIVEN_UP, "rule": "Nothing is ever refunded"}, True),
        ("policy broken", {"rule": RULE, "call": 1}, False),
        ("policy broken", {"rule": RULE, "evidence": WORDS}, False),
        ("policy broken", {"rule": RULE}, True),
        ("policy broken", {"call": 1}, True),
        ("policy broken", {"call": 9, "rule": RULE}, True),
        ("policy broken", {"rule": RULE, "call": 1, "source": "never said"}, True),
        ("missed", {"evidence": WORDS}, False),
        ("missed", {}, True),
        ("missed", {"evidence": "never said by anybody"}, True),
        ("not clear", {}, False),
        ("not clear", {"evidence": "never said by anybody"}, False),
    ],
)
def test_references_of_other_outcomes(outcome: str, more: dict[str, Any], is_flawed: bool) -> None:
    assert has_flaw(outcome, **more) is is_flawed


@pytest.mark.parametrize(
    ("kind", "scripted", "is_flawed"),
    [
        ("permission", False, False),
        ("disclosure", False, True),
        ("style", False, True),
        ("", False, True),
        ("", True, False),
        ("style", True, True),
    ],
)
def test_only_a_rule_about_permission_makes_a_goal_broken(kind: str, scripted: bool, is_flawed: bool) -> None:
    question, _ = built()
    given = answer("policy broken", rule=RULE, call=1, kind=kind)
    assert bool(question.flaw_in(given, scripted)) is is_flawed


# ── doubt and sides ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "talk", "scenario", "is_doubtful"),
    [
        (answer("reached", call=1), DONE, SCENARIO, False),
        (answer("reached"), DONE, SCENARIO, False),  # something was changed
        (answer("reached"), REFUSED, SCENARIO, True),  # nothing was, although it could have been
        (answer("reached", call=1), REFUSED, SCENARIO, False),
        (answer("reached"), REFUSED, ONLY_READS, False),
        (answer("reached", source=SOURCE), DONE, SCENARIO, False),
        (answer("reached", source="the money back for order A-7"), DONE, SCENARIO, True),  # only in words
        (answer("reached"), AT_WORD, SCENARIO, False),
        (answer("ruled out"), REFUSED, SCENARIO, False),
        (answer("ruled out"), REFUSED, TO_REFUSE, True),
        (answer("withdrawn"), REFUSED, SCENARIO, False),
        (answer("missed"), REFUSED, SCENARIO, False),
        (answer("not clear"), REFUSED, SCENARIO, False),
    ],
)
def test_answers_that_are_doubted(
    given: Any, talk: Trajectory, scenario: Scenario, is_doubtful: bool
) -> None:
    question, _ = built(talk, scenario)
    assert question.is_doubtful(given) is is_doubtful


BROKEN = answer("policy broken", rule=RULE, call=1, kind="permission")


@pytest.mark.parametrize(
    ("given", "fail_on", "side"),
    [
        (answer("reached"), CRITICAL, "reached"),
        (answer("ruled out"), CRITICAL, "ruled out"),
        (answer("withdrawn"), CRITICAL, "withdrawn"),
        (answer("not clear"), CRITICAL, "not clear"),
        (answer("missed"), CRITICAL, LOWERS_THE_SHARE),
        (answer("missed"), HIGH, True),
        (answer("missed", call=1), CRITICAL, LOWERS_THE_SHARE),
        (BROKEN, CRITICAL, True),
        (answer("missed"), None, LOWERS_THE_SHARE),
    ],
)
def test_sides_of_answers(given: Any, fail_on: Severity | None, side: Any) -> None:
    question, _ = built(DONE, fail_on=fail_on)
    assert question.side_of(given) == side


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def result(outcome: str | None, scenario: Scenario = SCENARIO, **more: Any) -> tuple[Score | Finding, ...]:
    vote = outcome and Vote(
        verdict=outcome,
        against=False,
        reason="why",
        evidence="words",
        references=References(call=1, rule=RULE),
    )
    return judge().build_result(vote or None, scenario, DONE, by="m", **more)


@pytest.mark.parametrize(
    ("outcome", "scenario", "value", "finding"),
    [
        ("reached", SCENARIO, 1, None),
        ("withdrawn", SCENARIO, None, None),
        ("ruled out", SCENARIO, None, None),
        ("ruled out", TO_REFUSE, 1, None),
        ("not clear", SCENARIO, None, None),
        ("missed", SCENARIO, 0, (HIGH, None, None)),  # no call is at fault
        ("policy broken", SCENARIO, 0, (CRITICAL, 1, RuleKind.PERMISSION)),
        ("reached", TO_REFUSE, 0, (CRITICAL, 1, None)),  # the call should not have been made
        ("missed", TO_REFUSE, 0, (HIGH, None, None)),
    ],
)
def test_the_score_and_the_finding(
    outcome: str, scenario: Scenario, value: float | None, finding: tuple[Any, ...] | None
) -> None:
    score, *found = result(outcome, scenario)
    assert isinstance(score, Score)
    assert (score.value, score.label, score.by, score.evidence) == (value, outcome, "m", "words")
    assert score.references == References(call=1, rule=RULE)
    kinds = [(each.severity, each.call, each.rule_kind) for each in found if isinstance(each, Finding)]
    assert kinds == ([finding] if finding else [])
    for each in found:
        assert isinstance(each, Finding)
        assert (each.label, each.metric, each.turn) == ("goal not completed", "goal_completion", None)
    is_marked = scenario is TO_REFUSE and outcome in ("reached", "missed")
    assert (score.reason != "why") is is_marked
    assert score.reason.startswith("why")


def test_answers_of_which_no_two_agree_are_not_clear() -> None:
    votes = tuple(Vote(verdict=each, against=False) for each in ("reached", "ruled out", "missed"))
    (score,) = result(None, votes=votes)
    assert isinstance(score, Score)
    assert (score.value, score.label, score.votes) == (None, "not clear", votes)


def test_what_is_shown_of_a_second_conversation() -> None:
    own = judge()
    twin = own.build_twin("epoch 2", SCENARIO, DONE, apart_from=own)
    assert (twin.name, twin.shown.calls) == ("epoch 2", DONE.tool_calls)
    assert "It is done now." in twin.text
    assert POLICY not in twin.text  # it is the same
    assert twin.size == len(twin.text.encode())
    assert TWIN_SHARE == 4
    question = own.build_second_question(SCENARIO, REFUSED, twin)
    assert question is not None
    assert "difference" in question.rubric.references
    alone = own.build_second_question(SCENARIO, REFUSED, None)
    assert alone is not None
    assert "difference" not in alone.rubric.references
    given = answer("ruled out", evidence=WORDS, rule=RULE, fact=FACT)
    assert question.flaw_in(given, False)
    assert question.accepts_flawed(given, False)  # only the difference is missing: then it was missed
    assert not alone.flaw_in(given, False)
    unfounded = answer("ruled out", evidence=WORDS)
    assert not question.accepts_flawed(unfounded, False)
    assert own.build_second_question(SCENARIO.model_copy(update={"goal": ""}), REFUSED, twin) is None
