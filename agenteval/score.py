"""What scorers say of a conversation, and the words that verdicts are made of."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from agenteval.value import Value


class Severity(StrEnum):
    """How bad a failure is. Ordered by ``rank``: low 0, medium 1, high 2, critical 3."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Verdict(StrEnum):
    """The outcome of a sample, a scenario, a gate or a run."""

    PASSED = "passed"
    INCONCLUSIVE = "inconclusive"
    FAILED = "failed"

    @staticmethod
    def worst(verdicts: Iterable[Verdict]) -> Verdict:
        """Failed beats inconclusive beats passed; of nothing: passed."""
        order = list(Verdict)
        return max(verdicts, key=order.index, default=Verdict.PASSED)


class Check(Value):
    """A rule of the scenario, held or not. ``passed`` is ``None`` when it could not be decided.

    ``name`` is the place of the rule under ``expect`` (``tool_calls``, ``output.contains``,
    ``limits.steps``), or ``no_error`` or ``answer``. ``where`` is the line that wrote it.
    """

    kind: Literal["check"] = "check"
    name: str
    passed: bool | None
    detail: str = ""
    where: str = ""


class Score(Value):
    """A judgement: a number (``value``) or a label. ``by`` names the judge's model."""

    kind: Literal["score"] = "score"
    metric: str
    value: float | None = None
    label: str | None = None
    reason: str = ""
    evidence: str = ""
    by: str = ""
    scripted: bool = False


class ScoreFailure(Value):
    """A judge that broke. Never a score, never the agent's fault. ``raw`` is what it said."""

    kind: Literal["failure"] = "failure"
    metric: str
    message: str
    raw: str = ""


class Finding(Value):
    """One failing label on one turn.

    ``detector`` is the name of a check in code, or ``judge``. ``turn`` and ``call`` count from 0
    within the conversation, ``call`` over all its tool calls in order; ``None``: the whole of it.
    """

    kind: Literal["finding"] = "finding"
    detector: str
    metric: str
    label: str
    severity: Severity
    turn: int | None = None
    call: int | None = None
    evidence: str = ""
    explanation: str = ""
    scripted: bool = False


ScoreItem: TypeAlias = Annotated[Check | Score | ScoreFailure | Finding, Field(discriminator="kind")]
"""Anything a scorer may return."""
