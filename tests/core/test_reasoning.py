"""The thoughts at the beginning of a reply, apart from what the user sees."""

from __future__ import annotations

import pytest

from agenteval.core.reasoning import agent_text, agent_texts, blank_reasoning, final_answer, reasoning_end
from agenteval.core.trajectory import Step, Turn


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("<think>Hm.</think>Hello.", "<think>Hm.</think>"),
        (" \n<think>Hm.</think> Hello.", " \n<think>Hm.</think>"),
        ("<think></think>", "<think></think>"),
        ("<think>a<think>b</think>c</think>Hello.", "<think>a<think>b</think>c</think>"),
        ("<think>a</think>b<think>c</think>d", "<think>a</think>"),
        ("<think>a<think>b</think>Hello.", ""),  # not balanced
        ("<think>a", ""),
        ("a</think>b", ""),
        ("Hello. <think>Hm.</think>", ""),
        ("</think><think>a</think>", ""),
        ("<THINK>a</THINK>b", ""),
        ("<thinking>a</thinking>b", ""),
        ("", ""),
        (" ", ""),
    ],
)
def test_where_the_thoughts_end(text: str, thought: str) -> None:
    assert reasoning_end(text) == len(thought)
    blank = blank_reasoning(text)
    assert len(blank) == len(text)
    assert blank[len(thought) :] == text[len(thought) :]
    assert not blank[: len(thought)].strip()


def test_texts_of_a_turn() -> None:
    texts = ("<think>a</think> One. ", None, "", " ", "<think>b</think>", "Two.")
    turn = Turn(user="Hi", steps=tuple(Step(text=text) for text in texts))
    assert agent_texts(turn) == ["One.", "Two."]
    assert agent_text(turn) == "One.\n\nTwo."
    assert agent_text(Turn(user="Hi")) == ""


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>a</think> One. ", "One."),
        (" One. ", " One. "),  # as it was said
        ("<think>a</think>", ""),
        (" <think>a", " <think>a"),
        (None, ""),
    ],
)
def test_the_final_answer(text: str | None, answer: str) -> None:
    assert final_answer(Turn(user="Hi", steps=(Step(text="Before."), Step(text=text)))) == answer
