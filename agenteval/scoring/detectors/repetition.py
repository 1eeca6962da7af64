"""The same answer again, although the user had said something else; or the same passage twice in one
answer."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.scoring.detectors.conversation import Conversation, Proof

SHORTEST_ANSWER = 60
"""Characters of an answer that counts when it is given again: "You're welcome, anything else?" does not."""
SHORTEST_PARAGRAPH = 80
"""Characters of a paragraph that counts when it stands in one answer twice."""


def repetition(conversation: Conversation) -> Iterator[Proof]:
    """An answer that is that of an earlier turn word for word, to another message of the user; or a paragraph
    that stands in one answer twice."""
    said: dict[str, tuple[int, str]] = {}
    for number, turn in enumerate(conversation.turns):
        answer = turn.answer
        if span := _doubled(answer):
            why = "the same passage twice in one answer"
            yield Proof(number, None, answer[slice(*span)], why, span)
        folded = " ".join(answer.split())
        if len(folded) < SHORTEST_ANSWER:
            continue
        asked = " ".join(turn.user.lower().split())
        earlier = said.get(folded)
        if earlier is not None and earlier[1] != asked:
            why = f"repeats what it said in turn {earlier[0] + 1}, although the user said something else"
            yield Proof(number, None, answer, why, (0, len(answer)))
        said[folded] = number, asked


def _doubled(answer: str) -> tuple[int, int] | None:
    """Where a paragraph stands for the second time."""
    seen: set[str] = set()
    at = 0
    for line in answer.split("\n"):
        text = line.strip()
        if len(text) >= SHORTEST_PARAGRAPH and text[0].isalpha() and text[-1] in ".!?":
            if text in seen:
                start = at + line.index(text)
                return start, start + len(text)
            seen.add(text)
        at += len(line) + 1
    return None
