"""What a detector gets: calls with their places, texts, and the effect of a tool."""

from __future__ import annotations

import pytest

from agenteval.core.tool_effects import ToolEffect
from agenteval.core.trajectory import Step, ToolCall, Trajectory, Turn
from agenteval.scoring.detectors.detector_input import (
    DetectorInput,
    LocatedCall,
    Proof,
    ToolFacts,
    get_tool_effect,
)
from tests.support.detector_samples import call, conversation, failing, turn

READS, WRITES, UNKNOWN = ToolEffect.READS, ToolEffect.WRITES, ToolEffect.UNKNOWN


@pytest.mark.parametrize(
    ("name", "facts", "effect"),
    [
        ("get_weather", None, READS),
        ("cancel_order", None, WRITES),
        ("frobnicate", None, UNKNOWN),
        ("get_weather", ToolFacts(), READS),
        ("get_weather", ToolFacts(writes=True), WRITES),
        ("get_weather", ToolFacts(destructive=True), WRITES),
        ("cancel_order", ToolFacts(reads=True), READS),
        ("frobnicate", ToolFacts(reads=True), READS),
        ("frobnicate", ToolFacts(reads=True, writes=True), WRITES),
        ("think", None, READS),
        ("think", ToolFacts(), READS),
        ("think", ToolFacts(writes=True), WRITES),
    ],
)
def test_the_mark_of_a_tool_comes_before_its_name(
    name: str, facts: ToolFacts | None, effect: ToolEffect
) -> None:
    assert get_tool_effect(name, facts) is effect


@pytest.mark.parametrize(
    ("facts", "is_marked"),
    [
        (ToolFacts(), False),
        (ToolFacts(parameters={}), False),
        (ToolFacts(reads=True), True),
        (ToolFacts(writes=True), True),
        (ToolFacts(destructive=True), True),
    ],
)
def test_a_tool_is_marked_by_any_effect(facts: ToolFacts, is_marked: bool) -> None:
    assert facts.is_marked is is_marked


def test_the_error_of_a_call_is_that_of_its_result() -> None:
    made = [failing("a", "no such city"), call("b"), ToolCall(name="c", args={})]
    errors = [LocatedCall(0, 0, 0, each).error for each in made]
    assert errors[1:] == [None, None]
    assert errors[0] is not None
    assert "no such city" in errors[0]


A, B, C, D = (call(name) for name in "abcd")


def test_calls_are_numbered_over_the_conversation() -> None:
    made = conversation(turn("1", (A, B), "text", C), turn("2", "no call"), turn("3", D))
    assert [(each.turn, each.step, each.index, each.call.name) for each in made.calls] == [
        (0, 0, 0, "a"),
        (0, 0, 1, "b"),
        (0, 2, 2, "c"),
        (2, 0, 3, "d"),
    ]
    assert [[each.call.name for each in made.calls_in_turn(n)] for n in range(4)] == [
        ["a", "b", "c"],
        [],
        ["d"],
        [],
    ]


def test_nothing_is_empty() -> None:
    made = conversation()
    assert (made.turns, made.calls, dict(made.answers_at)) == ((), (), {})
    assert list(made.calls_in_turn(0)) == []


@pytest.mark.parametrize(
    ("parts", "answer", "at"),
    [
        (("Booked.",), "Booked.", None),
        ((A, "Booked."), "Booked.", None),
        (("Let me see.", A, "Booked."), "Let me see.\n\nBooked.", 13),
        (("One.", "Two.", A, "Three."), "One.\n\nTwo.\n\nThree.", 12),
        (("Let me see.", A), "Let me see.", 11),
        ((A,), "", None),
        ((), "", None),
    ],
    ids=["only text", "after a call", "before a call", "several", "no final text", "no text", "no step"],
)
def test_the_answer_has_all_texts_and_where_the_final_one_begins(
    parts: tuple[ToolCall | str, ...], answer: str, at: int | None
) -> None:
    made = conversation(turn("hi", *parts))
    assert made.turns[0].answer == answer
    assert made.answers_at.get(0) == at
    assert len(made.calls) == sum(part is A for part in parts)


def test_reasoning_is_blanked_and_keeps_its_length() -> None:
    made = conversation(turn("hi", "<think>hm</think>Booked."))
    thought = len("<think>hm</think>")
    assert made.turns[0].answer == " " * thought + "Booked."
    assert made.answers_at == {0: 0}
    made = conversation(turn("hi", "<think>x</think>See.", A, "Done."))
    assert made.turns[0].answer.strip() == "See.\n\nDone."


def test_other_turns_stay_as_they_are() -> None:
    made = conversation(turn("1", "a"), turn("2", "b", A, "c"), turn("3", "d"))
    assert [each.answer for each in made.turns] == ["a", "b\n\nc", "d"]
    assert [each.user for each in made.turns] == ["1", "2", "3"]
    assert list(made.answers_at) == [1]


def test_an_interrupted_turn_counts_and_what_is_known_is_kept() -> None:
    trajectory = Trajectory(
        turns=(turn("1", "a"),), unfinished=Turn(user="2", steps=(Step(tool_calls=(A,)),))
    )
    made = DetectorInput.from_trajectory(trajectory, policy="Be kind.", observed=False)
    assert [each.user for each in made.turns] == ["1", "2"]
    assert [each.turn for each in made.calls] == [1]
    assert (made.policy, made.observed, made.undeclared_exist) == ("Be kind.", False, True)


def test_a_proof_needs_no_more_than_its_place_and_words() -> None:
    proof = Proof(0, None, "e", "x")
    assert (proof.span, proof.severity, proof.tool) == (None, None, "")
