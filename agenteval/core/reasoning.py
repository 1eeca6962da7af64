"""What an agent said, and what it only thought."""

from __future__ import annotations

import re

from agenteval.core.trajectory import Turn

_MARK = re.compile(r"<(/?)think>")


def reasoning_end(text: str) -> int:
    """Where the thought ends that a text begins with; 0 if it begins with none.

    A thought is one leading, balanced ``<think>…</think>``. A mark anywhere else is a part of what was said:
    whoever writes ``</think>`` behind a sentence has not unsaid it, nor has one that closes nothing.
    """
    start = len(text) - len(text.lstrip())
    if not text.startswith("<think>", start):
        return 0
    depth = 0
    for mark in _MARK.finditer(text, start):
        depth += -1 if mark[1] else 1
        if not depth:
            return mark.end()
    return 0


def blank_reasoning(text: str) -> str:
    """The text with blanks where the agent thought: all else keeps its place."""
    end = reasoning_end(text) if "<think>" in text else 0
    return " " * end + text[end:]


def final_answer(turn: Turn) -> str:
    """The turn's final answer without the thought."""
    answer = blank_reasoning(turn.answer)
    return answer if answer == turn.answer else answer.strip()


def agent_texts(turn: Turn) -> list[str]:
    """All that the agent said in the turn, piece by piece: what stood beside its calls, then its answer."""
    texts = [blank_reasoning(step.text).strip() for step in turn.steps if step.text]
    return [text for text in texts if text]


def agent_text(turn: Turn) -> str:
    """All that the agent said in the turn, as one text."""
    return "\n\n".join(agent_texts(turn))
