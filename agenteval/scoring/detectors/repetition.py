"""Detects the same answer to a different message of the user."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.scoring.detectors.detector_input import DetectorInput, Proof

SHORTEST_ANSWER = 60
"""The number of characters from which a repeated answer counts: "You're welcome, anything else?" does not."""


def repetition(conversation: DetectorInput) -> Iterator[Proof]:
    """Find answers that repeat that of an earlier turn word for word, to another message of the user."""
    earlier_answers: dict[str, tuple[int, str]] = {}
    for number, turn in enumerate(conversation.turns):
        answer = turn.answer
        folded = " ".join(answer.split())
        if len(folded) < SHORTEST_ANSWER:
            continue
        asked = " ".join(turn.user.lower().split())
        earlier = earlier_answers.get(folded)
        if earlier is not None and earlier[1] != asked:
            why = f"repeats its answer of turn {earlier[0] + 1} to a different message of the user"
            yield Proof(number, None, answer, why, (0, len(answer)))
        earlier_answers[folded] = number, asked
