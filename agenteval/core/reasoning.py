"""Separates an agent's visible text from its reasoning (thinking)."""

from __future__ import annotations

import re

from agenteval.core.trajectory import Turn

_MARK = re.compile(r"<(/?)think>")


def reasoning_end(text: str) -> int:
    """Return the index at which the reasoning at the beginning of a reply ends, or 0 if there is none.

    Reasoning is a single, balanced ``<think>…</think>`` at the beginning. A tag anywhere else belongs to the
    visible text: a ``</think>`` that follows a sentence, or that has no opening tag, hides nothing."""
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
    """Replace the reasoning with spaces, so that all other text keeps its position."""
    end = reasoning_end(text) if "<think>" in text else 0
    return " " * end + text[end:]


def final_answer(turn: Turn) -> str:
    """Return the turn's final answer without reasoning."""
    answer = blank_reasoning(turn.answer)
    return answer if answer == turn.answer else answer.strip()


def agent_texts(turn: Turn) -> list[str]:
    """Return the agent's texts in the turn: the texts that accompany its calls, followed by its answer."""
    texts = [blank_reasoning(step.text).strip() for step in turn.steps if step.text]
    return [text for text in texts if text]


def agent_text(turn: Turn) -> str:
    """Return the agent's texts in the turn, joined into one string."""
    return "\n\n".join(agent_texts(turn))
