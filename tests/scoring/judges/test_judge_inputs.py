"""What judges are given: the view of a conversation, and what two views have not in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.scenario import Scenario, Tool
from agenteval.core.trajectory import Step, Turn
from agenteval.scoring.judges.judge_inputs import ConversationView, JudgeInputs, no_findings, no_policy
from agenteval.scoring.transcript import MAX_TRANSCRIPT_BYTES
from tests.support.fake_models import FakeModel
from tests.support.trajectories import seen

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
SCENARIO = Scenario(
    id="s", goal="A haircut", tools={"book": Tool(returns=1, description="Books.", parameters=PARAMETERS)}
)
TURNS = tuple(Turn(user=f"question {n}", steps=(Step(text=f"answer {n}"),)) for n in range(3))
TALK = seen(turns=TURNS)


def inputs(**more: Any) -> JudgeInputs:
    return JudgeInputs(FakeModel({}), **more)


def test_by_default_nothing_is_known() -> None:
    given = inputs()
    assert (given.policy_of(SCENARIO), given.now, given.limit) == ("", None, MAX_TRANSCRIPT_BYTES)
    assert list(given.proofs(SCENARIO, TALK)) == list(given.find_raised_questions(SCENARIO, TALK)) == []
    assert no_policy(SCENARIO) == ""
    assert list(no_findings(SCENARIO, TALK)) == []


def test_the_record_has_policy_tools_and_time() -> None:
    view = ConversationView(inputs(policy_of=lambda _: "Be kind.", now="2026-11-21 10:00"))
    text = view.transcript(SCENARIO, TALK, None).text
    assert all(fact in text for fact in ("Be kind.", "2026-11-21 10:00", "book", "A haircut", "answer 2"))


@pytest.mark.parametrize(("turn", "last"), [(0, 0), (1, 1), (2, 2), (None, 2)])
def test_the_record_ends_with_the_judged_turn(turn: int | None, last: int) -> None:
    view = ConversationView(inputs())
    record = view.build_quotable_record(SCENARIO, TALK, turn)
    text = view.transcript(SCENARIO, TALK, turn).text
    assert [f"answer {n}" in text for n in range(3)] == [n <= last for n in range(3)]
    assert record == view.build_quotable_record(SCENARIO, TALK, turn)


@pytest.mark.parametrize("parameters", [True, False])
def test_parameters_of_tools_are_shown_if_asked_for(parameters: bool) -> None:
    text = ConversationView(inputs(), parameters).transcript(SCENARIO, TALK, None).text
    assert ("city" in text) is parameters


def test_what_is_reserved_is_taken_from_the_limit() -> None:
    long = seen(turns=(Turn(user="hi", steps=(Step(text="word " * 2000),)),))
    view = ConversationView(inputs(limit=20_000))
    assert len(view.transcript(SCENARIO, long, None).text.encode()) > 10_000
    short = view.transcript(SCENARIO, long, None, reserved=15_000)
    assert len(short.text.encode()) <= 5_000 or short.misfit


def tools(*names: str) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name}} for name in names]


@pytest.mark.parametrize(
    ("policy", "names", "expected"),
    [
        ("Be kind.", ("a",), ("", ())),
        ("Be quick.", ("a",), ("Be kind.", ())),
        ("Be kind.", ("a", "b"), ("", tuple(tools("a")))),
        ("", (), ("Be kind.", tuple(tools("a")))),
    ],
    ids=["the same", "another policy", "other tools", "both"],
)
def test_only_what_differs_between_two_views_is_returned(
    policy: str, names: tuple[str, ...], expected: tuple[str, tuple[dict[str, Any], ...]]
) -> None:
    own = ConversationView(inputs(policy_of=lambda _: "Be kind.", tools_of=lambda _: tools("a")))
    other = replace(own, inputs=inputs(policy_of=lambda _: policy, tools_of=lambda _: tools(*names)))
    assert own.diff_setup(other, SCENARIO) == expected


def test_the_record_for_references_has_policy_and_tools() -> None:
    plain = ConversationView(inputs()).build_quotable_record(SCENARIO, TALK, None)
    told = ConversationView(inputs(policy_of=lambda _: "Be kind.")).build_quotable_record(
        SCENARIO, TALK, None
    )
    assert plain != told
    assert plain == ConversationView(inputs()).build_quotable_record(SCENARIO, TALK, None)
