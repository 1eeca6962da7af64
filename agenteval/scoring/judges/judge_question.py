"""One question to a judge, and what code makes of each answer that it may get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agenteval.core.protocols import Subject, reject_flawed
from agenteval.files.prompts import Rubric
from agenteval.scoring.transcript import JudgeTranscript

AnswerSide: TypeAlias = bool | str
"""What an answer comes to: whether it would fail something, or of a goal that was not missed the outcome. Two
answers agree if they are on one side."""


@dataclass(frozen=True)
class JudgeQuestion:
    """What a judge is asked, and what an answer would mean."""

    rubric: Rubric
    record: JudgeTranscript
    subject: Subject
    flaw_in: Callable[[Any, bool], str]
    """What is wrong with an answer; whether it is scripted is given, too."""
    gates: Callable[[Any], bool]
    """Whether an answer would fail something by itself."""
    is_proven: Callable[[Any], bool] = lambda _answer: False
    """Whether code has proven what it says."""
    is_clean: Callable[[Any], bool] = lambda _answer: False
    """Whether it finds no fault, so that it may be drawn."""
    is_doubtful: Callable[[Any], bool] = lambda _answer: False
    """Whether one that would fail nothing is asked again."""
    side: Callable[[Any], AnswerSide] | None = None
    """What it comes to, where that is more than whether it gates."""
    criterion: Mapping[str, str] | None = None
    """As in ``request_of``."""
    accepts_flawed: Callable[[Any, bool], bool] = reject_flawed
    """Whether one with a flaw is an answer all the same."""

    def side_of(self, answer: Any) -> AnswerSide:
        return self.side(answer) if self.side else self.gates(answer)
