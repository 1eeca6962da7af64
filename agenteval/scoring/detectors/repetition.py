"""Detects an answer that is repeated even though the user sent a different message."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.scoring.detectors.detector_input import DetectorInput, Proof

SHORTEST_ANSWER = 60
"""The minimum length, in characters, of a repeated answer that is reported. "You're welcome, anything else?"
is too short."""


def repetition(conversation: DetectorInput) -> Iterator[Proof]:
    """Find answers that repeat an earlier turn's answer verbatim, in reply to a different message from the
    user."""
    earlier_answers: dict[str, tuple[int, str]] = {}
    for number, turn in enumerate(conversation.turns):
        answer = turn.answer
        folded = " ".join(answer.split())
        if len(folded) < SHORTEST_ANSWER:
            continue
        asked = " ".join(turn.user.lower().split())
        earlier = earlier_answers.get(folded)
        if earlier is not None and earlier[1] != asked:
            why = f"repeats its answer from turn {earlier[0] + 1} in reply to a different user message"
            yield Proof(number, None, answer, why, (0, len(answer)))
        earlier_answers[folded] = number, asked
