"""What becomes of a model's reply as a user: a message, an end, another try, or an error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anyio
import pytest

from agenteval.conversation.simulated_user import SimulatedUser, UserReply, invented_by, is_farewell
from agenteval.core.errors import MissingFactError, SimulatorError
from agenteval.core.protocols import ModelReply, ModelRequest, UserMove
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.trajectory import Step, StopReason, Trajectory, Turn, Usage

DONE = StopReason.USER_DONE


class Model:
    """Answers with the given replies, one token each, and keeps the requests."""

    def __init__(self, replies: Iterable[dict[str, Any]]) -> None:
        self.replies = iter(replies)
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        value = UserReply.model_validate({"done": False, "message": "", **next(self.replies)})
        return ModelReply(value, Usage(calls=1, input_tokens=1), model="m")

    async def aclose(self) -> None:
        pass


def scenario(**more: Any) -> Scenario:
    return Scenario.model_validate({"id": "s", "name": "s", "goal": "A refund for ORD-42.", **more})


def talk(*answers: str) -> Trajectory:
    return Trajectory(turns=tuple(Turn(user=f"m{i}", steps=(Step(text=a),)) for i, a in enumerate(answers)))


def play(
    *replies: dict[str, Any], said: Trajectory | None = None, known: Scenario | None = None, **more: Any
) -> tuple[UserMove, Model]:
    sample = Sample(key=SampleKey(scenario="s", agent="a", epoch=0), scenario=known or scenario())
    model = Model(replies)
    return anyio.run(SimulatedUser(sample, model, **more).next, said or talk("Hello?")), model


@pytest.mark.parametrize(
    ("reply", "answer", "text", "stop"),
    [
        ({"message": " I want a refund "}, "Hello?", "I want a refund", None),
        ({"message": "I want a refund", "done": True}, "Hello?", "I want a refund", DONE),
        ({"message": "Thank you very much!", "done": True}, "Refunded.", None, DONE),
        ({"message": "Thank you very much!"}, "Refunded.", "Thank you very much!", None),
        ({"message": "", "done": True}, "Refunded.", None, DONE),
        ({"message": None, "done": True}, "Refunded.", None, DONE),
        ({"message": "[END]", "done": True}, "Refunded.", None, DONE),
        ({"message": "yes", "done": False}, "Shall I?", "yes", None),
    ],
)
def test_a_move(reply: dict[str, Any], answer: str, text: str | None, stop: StopReason | None) -> None:
    move, model = play(reply, said=talk(answer))
    assert (move.text, move.stop, move.fault, move.usage.calls) == (text, stop, "", 1)
    assert len(model.requests) == 1


def test_the_first_message_is_never_swallowed_as_a_farewell() -> None:
    move, _ = play({"message": "Thanks", "done": True}, said=Trajectory())
    assert (move.text, move.stop) == ("Thanks", DONE)


def test_what_no_user_would_write_is_asked_for_once_more() -> None:
    move, model = play({"message": "How can I help you?"}, {"message": "I want a refund"})
    assert (move.text, move.usage.calls) == ("I want a refund", 2)
    assert "assistant" in move.fault
    first, second = (request.prompt for request in model.requests)
    assert move.fault not in first
    assert move.fault in second


def test_two_faults_end_the_conversation() -> None:
    with pytest.raises(SimulatorError) as error:
        play({"message": ""}, {"message": "How can I help you?"}, {"message": "fine"})
    assert error.value.rejected_text == "How can I help you?"
    assert error.value.usage == Usage(calls=2, input_tokens=2)


NEEDS = {
    "tools": {"get_order": {"parameters": {"type": "object"}, "returns": 1}},
    "expect": {"tool_calls": {"calls": [{"name": "get_order", "args": {"order": "QQ-17"}}]}},
}
ASKS = {"message": "I do not know it", "unknown": "order number"}


def test_a_fact_that_a_check_needs_and_nobody_can_know_is_the_authors_mistake() -> None:
    with pytest.raises(MissingFactError):
        play(ASKS, known=scenario(**NEEDS))
    assert play(ASKS)[0].text == ASKS["message"]
    assert play(ASKS, known=scenario(**NEEDS), agent_has_tools=True)[0].text
    assert play(ASKS, known=scenario(**NEEDS), policy="Test with QQ-17.")[0].text
    assert play({**ASKS, "unknown": " "}, known=scenario(**NEEDS))[0].text


@pytest.mark.parametrize(
    ("allowed_by", "is_allowed"),
    [
        ("may make up a name", True),
        ("May make  up a NAME", True),
        ("may make up an address", False),
        ("a name", False),  # too short to mean anything
        ("", False),
    ],
)
def test_a_detail_may_be_made_up_where_the_author_has_written_so(allowed_by: str, is_allowed: bool) -> None:
    reply = UserReply(message="x", done=False, invented="Ann", allowed_by=allowed_by)
    for where in ({"profile": "You may make up a name."}, {"knowledge": ["You may make up a name."]}):
        assert invented_by(reply, scenario(**where)) == ("Ann" if is_allowed else "")
    assert invented_by(reply, scenario()) == ""


@pytest.mark.parametrize(
    ("text", "answer", "is_it"),
    [
        ("Thanks!", "Done.", True),
        ("Thank you very much, bye", "Done.", True),
        ("Great, thanks", "Done.", True),
        ("Great, thanks", "Shall I book it?", False),  # it may mean yes
        ("Thanks a lot", "Shall I book it?", True),
        ("Thanks, what about the hat?", "Done.", False),
        ("Thanks, the hat too", "Done.", False),
        ("Great", "Done.", False),
        ("Vielen Dank", "Fertig.", True),
        ("", "Done.", False),
    ],
)
def test_a_farewell_is_nothing_but_courtesy(text: str, answer: str, is_it: bool) -> None:
    assert is_farewell(text, answer) is is_it
