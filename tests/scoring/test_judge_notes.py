"""What a program notes beside a turn for its judges."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.scenario import Scenario
from agenteval.core.score import References
from agenteval.core.trajectory import Step, ToolCall, ToolResult, ToolVisibility, Trajectory, Turn
from agenteval.scoring.judge_notes import MAX_NOTED_VALUES, find_ungrounded_values, format_call_outcomes
from agenteval.scoring.judges.references import Claim, build_quotable_record, find_reference_flaw
from agenteval.scoring.transcript import NOTE_TITLE, render_transcript
from tests.support.trajectories import seen

SCENARIO = Scenario.model_validate(
    {"id": "s", "knowledge": ["The desk closes at 18:00."], "facts": ["A room is $90."]}
)
POLICY = "Refunds take place by May 6, 2026 at the latest. Write to desk@inn.example."
RESULT = {"booking": "KX-7712", "price": 240.5, "nights": 3}


def turn(
    answer: str, *calls: ToolCall, user: str = "What of my booking KX-7712, made on 2 April?", **known: Any
) -> Turn:
    steps = (Step(tool_calls=calls), Step(text=answer)) if calls else (Step(text=answer),)
    return Turn(user=user, steps=steps, **known)


def call(value: Any = RESULT, **known: Any) -> ToolCall:
    return ToolCall(name="get_booking", args={"id": "KX-7712"}, result=ToolResult(value=value, **known))


def nowhere(*turns: Turn) -> list[tuple[str, ...]]:
    return list(find_ungrounded_values(SCENARIO, turns, policy=POLICY, tools="", now="2026-04-30 09:15"))


@pytest.mark.parametrize(
    ("answer", "values"),
    [
        ("It costs $260.50, on 9 May at 20:15.", ()),  # amounts, days and times are for the judge
        ("KX-7712 is booked.", ()),
        ("KX-7721 is booked.", ("KX-7721",)),
        ("Write to desk@inn.example or to boss@inn.example.", ("boss@inn.example",)),
        ("For example KX-0000.", ()),
    ],
)  # fmt: skip
def test_identifiers_that_nobody_had_given(answer: str, values: tuple[str, ...]) -> None:
    assert nowhere(turn(answer, call())) == [values]


def test_what_the_agent_said_before_is_not_told_again() -> None:
    again = turn("KX-7721, as I said.", user="Which?")
    assert nowhere(turn("It is KX-7721."), again) == [("KX-7721",), ()]


def test_nothing_is_from_nowhere_after_a_result_that_is_not_known() -> None:
    lost = ToolCall(name="get_booking", args={}, result=None)
    assert nowhere(turn("It is KX-7721.", lost), turn("It is KX-7731.", user="And?")) == [(), ()]


def test_so_many_values_are_named() -> None:
    [values] = nowhere(turn(" ".join(f"KX-{number}" for number in range(7300, 7400))))
    assert len(values) == MAX_NOTED_VALUES


def test_each_call_has_its_outcome() -> None:
    calls = [call(), call("no such booking", is_error=True), call(None).model_copy(update={"result": None})]
    assert (
        format_call_outcomes(calls, 4)
        == "4 get_booking: a result; 5 get_booking: an error; 6 get_booking: not known"
    )


def talk() -> Trajectory:
    return seen(turns=(turn("It is KX-7721.", call()), turn("Bye.", user="Thanks.")))


def test_the_record_has_the_notes_beside_their_turns() -> None:
    text = render_transcript(SCENARIO, talk(), policy=POLICY)
    _, first, last = text.split(NOTE_TITLE)
    assert "tool calls of this turn: 0 get_booking: a result\n" in first
    assert "identifiers that the agent says and that stand nowhere before: KX-7721" in first
    assert "tool calls of this turn: none" in last
    assert text.startswith(
        render_transcript(SCENARIO, talk(), policy=POLICY, upto=0).rpartition("# What to judge")[0]
    )


def test_nothing_is_noted_where_calls_cannot_be_seen() -> None:
    hidden = Trajectory(turns=(turn("It is KX-7721."),), visibility=ToolVisibility.UNSEEN)
    assert NOTE_TITLE not in render_transcript(SCENARIO, hidden, policy=POLICY)


def test_a_note_is_no_evidence() -> None:
    record = build_quotable_record(SCENARIO, talk(), 0, policy=POLICY, tools=[])
    note = Claim("identifiers that the agent says", References())
    assert "must quote words" in find_reference_flaw("disobey user request", note, record)
