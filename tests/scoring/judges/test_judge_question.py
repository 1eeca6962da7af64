"""A question to a judge: its defaults, and the side of an answer."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.protocols import Subject
from agenteval.files.prompts import Rubric
from agenteval.scoring.judges.judge_question import JudgeQuestion
from agenteval.scoring.transcript import JudgeTranscript


def question(**more: Any) -> JudgeQuestion:
    fields = {"flaw_in": lambda *_: "", "gates": lambda answer: answer < 3, **more}
    return JudgeQuestion(Rubric("m", "turn", "t"), JudgeTranscript("r"), Subject(), **fields)


@pytest.mark.parametrize(("answer", "side"), [(2, True), (3, False)])
def test_the_side_is_whether_an_answer_gates(answer: int, side: bool) -> None:
    assert question().side_of(answer) is side


def test_a_question_may_have_sides_of_its_own() -> None:
    assert question(side=lambda answer: f"outcome {answer}").side_of(2) == "outcome 2"


def test_unless_told_otherwise_nothing_is_proven_clean_doubtful_or_accepted() -> None:
    asked = question()
    assert (asked.is_proven(1), asked.is_clean(1), asked.is_doubtful(1)) == (False, False, False)
    assert asked.accepts_flawed(1, True) is False
    assert asked.criterion is None
