"""A user whose messages are altered before they are sent (``run --variants``)."""

from __future__ import annotations

from random import Random

from agenteval.conversation.message_alterations import alter_message
from agenteval.core.protocols import User, UserMove
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import Trajectory


class AlteringUser:
    """Sends the messages of another user in altered form. The other user does not know of it: it reads what
    it wrote (``Turn.original_user``)."""

    def __init__(self, user: User, sample: Sample) -> None:
        self._user = user
        self._sample = sample

    async def next(self, trajectory: Trajectory) -> UserMove:
        move = await self._user.next(trajectory)
        if move.text is None:
            return move
        text = self._alter(move.text, move.script, len(trajectory.turns))
        return move if text == move.text else move._replace(text=text, wrote=move.text)

    def _alter(self, text: str, script: int | None, turn: int) -> str:
        variant = self._sample.scenario.variant
        assert variant is not None
        assert variant.messages is not None
        if variant.messages == "paraphrase":
            return text if script is None else variant.texts[script]
        draws = Random(f"{self._sample.seed}/{variant.messages}/{turn}")
        return alter_message(text, variant.messages, draws, frozenset(variant.values))
