"""A question to a judge, and the functions with which code evaluates each possible answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agenteval.core.protocols import Subject, reject_flawed
from agenteval.files.prompts import Rubric
from agenteval.scoring.transcript import JudgeTranscript

AnswerSide: TypeAlias = bool | str
"""The side of an answer: whether the answer would cause a failure, or the outcome of a goal that was not
missed. Two answers agree if they are on the same side."""


@dataclass(frozen=True)
class JudgeQuestion:
    """A question to a judge, and the interpretation of the answer."""

    rubric: Rubric
    record: JudgeTranscript
    subject: Subject
    flaw_in: Callable[[Any, bool], str]
    """A function that describes what is wrong with an answer. The second argument states whether the answer
    is scripted."""
    gates: Callable[[Any], bool]
    """A function that checks whether an answer would cause a failure by itself."""
    is_proven: Callable[[Any], bool] = lambda _answer: False
    """A function that checks whether code has proven the failure that an answer reports."""
    is_clean: Callable[[Any], bool] = lambda _answer: False
    """A function that checks whether an answer reports no fault, so that it may be selected for a repeated
    check."""
    is_drawn: bool | None = None
    """True if a clean answer is checked again, and false if it is not. If ``None``, lots decide."""
    is_doubtful: Callable[[Any], bool] = lambda _answer: False
    """A function that checks whether the judge is asked again about an answer that causes no failure."""
    side: Callable[[Any], AnswerSide] | None = None
    """A function that returns the side of an answer, if the side does not depend only on whether the answer
    gates."""
    criterion: Mapping[str, str] | None = None
    """The criterion, as in ``build_judge_request``."""
    accepts_flawed: Callable[[Any, bool], bool] = reject_flawed
    """A function that checks whether a flawed answer counts as an answer."""

    def side_of(self, answer: Any) -> AnswerSide:
        return self.side(answer) if self.side else self.gates(answer)
