"""Who speaks next: the script, the simulated user, or nobody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anyio
import pytest

from agenteval.conversation.user import ScenarioUser
from agenteval.core.protocols import UserMove
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.trajectory import StopReason, Trajectory, Usage


class Simulated:
    """Sends the given texts. It is done with one that ends in ``!``, and silently so with ``None``."""

    def __init__(self, texts: Iterable[str | None]) -> None:
        self.texts = iter(texts)

    async def next(self, trajectory: Trajectory) -> UserMove:
        text = next(self.texts)
        is_done = text is None or text.endswith("!")
        stop = StopReason.USER_DONE if is_done else None
        return UserMove(text, stop=stop, usage=Usage(calls=1, input_tokens=1))


def moves(turns: list[Any], texts: Iterable[str | None] = (), max_turns: int = 10) -> list[UserMove]:
    """All moves of the user, to the first that has a stop."""
    data = {"id": "s", "name": "s", "goal": "g", **({"turns": turns} if turns else {})}
    sample = Sample(key=SampleKey(scenario="s", agent="a", epoch=0), scenario=Scenario.model_validate(data))
    user = ScenarioUser(sample, Simulated(texts), max_turns=max_turns)
    found: list[UserMove] = []
    while not found or found[-1].stop is None:
        found.append(anyio.run(user.next, Trajectory()))
    return found


def texts_of(found: list[UserMove]) -> list[str | None]:
    return [move.text for move in found]


A, B = {"user": "a"}, {"user": "b"}
DONE, SCRIPT, LIMIT = StopReason.USER_DONE, StopReason.SCRIPT_DONE, StopReason.MAX_TURNS


@pytest.mark.parametrize(
    ("turns", "texts", "max_turns", "sent", "stop"),
    [
        ([A, B], [], 10, ["a", "b"], SCRIPT),
        ([], ["x", "y", "z"], 2, ["x", "y"], LIMIT),
        ([], ["x", "y!"], 5, ["x", "y!"], DONE),
        ([], ["x", None], 5, ["x", None], DONE),
        ([A, {"simulate": 2}], ["x", "y"], 10, ["a", "x", "y"], LIMIT),
        ([{"simulate": 2}, B], ["x", "y"], 10, ["x", "y", "b"], SCRIPT),
        ([{"simulate": 3}, B], ["x!"], 10, ["x!", "b"], SCRIPT),
        ([{"simulate": 3}, B], [None], 10, ["b"], SCRIPT),
        ([A, {"simulate": 3}], [None], 10, ["a", None], DONE),
        ([{"simulate": 5}, B], ["x", "y"], 2, ["x", "y", "b"], SCRIPT),
    ],
)
def test_the_order_of_messages_and_how_it_ends(
    turns: list[Any], texts: list[str | None], max_turns: int, sent: list[str | None], stop: StopReason
) -> None:
    found = moves(turns, texts, max_turns)
    assert texts_of(found) == sent
    assert [move.stop for move in found] == [*[None] * (len(found) - 1), stop]


def test_scripted_messages_carry_their_position_in_the_script() -> None:
    assert [move.script for move in moves([{"simulate": 1}, A, B], ["x"])] == [None, 1, 2]


def test_what_a_silent_end_cost_is_on_the_next_message() -> None:
    first, *_ = moves([{"simulate": 3}, {"simulate": 1}], [None, "x"])
    assert (first.text, first.usage.calls) == ("x", 2)
    third = moves([{"simulate": 3}, {"simulate": 2}, {"simulate": 2}], [None, None, "x", None])
    assert [(move.text, move.usage.calls) for move in third] == [("x", 3), (None, 1)]
    (only,) = moves([{"simulate": 2}, A], [None])
    assert (only.text, only.usage.calls) == ("a", 1)
