"""Runs custom metrics (user-defined scorers) that are classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from numbers import Real
from typing import Any

import anyio

from agenteval.agentside.targets.faults import contain_exits, describe_error
from agenteval.conversation.user_code import call_user_code
from agenteval.core.errors import AuthorError, InfrastructureError, RequestSkippedError, UnreadableReplyError
from agenteval.core.protocols import ChatModel
from agenteval.core.scenario import Scenario
from agenteval.core.score import Finding, Score, ScoreFailure, Severity
from agenteval.core.trajectory import Trajectory, Turn
from agenteval.scoring.checks.conversation import build_call_record
from agenteval.scoring.judges.custom import (
    CURRENT_EVALUATION,
    CustomMetric,
    Llm,
    MetricEvaluation,
    QualResult,
    QuantResult,
    ScoreInput,
    TurnRecord,
    build_custom_metric_spec,
    get_declared_labels,
)
from agenteval.scoring.judges.judge import build_label_finding
from agenteval.scoring.judges.requests import build_subject
from agenteval.scoring.metrics import applies_to_trajectory


class _NoScoreError(Exception):
    """Raised if a metric returned a value that is not a score."""


class CustomScorer:
    """Runs a custom metric that is a class. Any error in the metric becomes a scoring failure."""

    def __init__(
        self,
        metric: CustomMetric,
        model: ChatModel | None,
        *,
        severities: Mapping[str, Severity] | None = None,
    ) -> None:
        self._metric = metric
        self._spec = build_custom_metric_spec(metric)
        self._labels = get_declared_labels(metric)
        self._severities = {**self._labels.severities, **(severities or {})}
        self._judge = getattr(metric, "evaluate" if self._spec.is_label else "score")
        metric.llm = Llm(model)

    @property
    def metric(self) -> str:
        return self._spec.name

    @property
    def scope(self) -> str:
        return self._spec.scope

    async def __call__(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> Sequence[Score | ScoreFailure | Finding]:
        if not applies_to_trajectory(self._spec, scenario, trajectory):
            return ()
        turn = len(trajectory.turns) - 1 if self.scope == "turn" else None
        subject = build_subject(scenario, trajectory, metric=self.metric, turn=turn)
        timeout_s = self._metric.timeout_s
        with anyio.move_on_after(timeout_s) as scope:
            evaluation = MetricEvaluation(subject, scope, timeout_s)
            return await self._run(build_score_input(scenario, trajectory, self.scope), evaluation, turn)
        return (self._failure(f"no result after {timeout_s:g} s", evaluation),)

    async def _run(
        self, metric_input: ScoreInput, evaluation: MetricEvaluation, turn: int | None
    ) -> Sequence[Score | ScoreFailure | Finding]:
        token = CURRENT_EVALUATION.set(evaluation)
        try:
            result = await call_user_code(self._judge, metric_input)
            with contain_exits():
                score = self._build_score(result, evaluation)
        except AuthorError:
            raise
        except UnreadableReplyError as error:
            return (self._failure(str(error), evaluation, raw=error.raw),)
        except (InfrastructureError, _NoScoreError) as error:
            return (self._failure(str(error), evaluation, refused=isinstance(error, RequestSkippedError)),)
        except Exception as error:
            return (self._failure(describe_error(error), evaluation),)
        finally:
            CURRENT_EVALUATION.reset(token)
        if score.ok is not False or score.label is None:
            return (score,)
        return score, build_label_finding(score, score.label, turn, self._severities)

    def _failure(
        self, message: str, evaluation: MetricEvaluation, *, raw: str = "", refused: bool = False
    ) -> ScoreFailure:
        return ScoreFailure(
            metric=self.metric, message=message, raw=raw, usage=evaluation.reported_usage, refused=refused
        )

    def _build_score(self, result: Any, evaluation: MetricEvaluation) -> Score:
        """Convert a result to a score. Raise ``_NoScoreError`` if the result is not a valid score."""
        value, label = (
            (None, self._parse_label(result)) if self._spec.is_label else (self._parse_value(result), None)
        )
        return Score(
            metric=self.metric,
            value=value,
            label=label,
            reason=str(result.reason),
            evidence=str(result.evidence),
            by=evaluation.by,
            scripted=evaluation.scripted,
            ok=label in self._spec.ok if label is not None else None,
            usage=evaluation.reported_usage,
        )

    def _parse_value(self, result: Any) -> float:
        if not isinstance(result, QuantResult):
            raise _NoScoreError(f"'{self.metric}' returned {type(result).__name__}; expected QuantResult")
        value: Any = result.value
        if value is None:
            raise _NoScoreError(f"not enough to judge: {result.reason}")
        low, high = self._spec.scale
        if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
            raise _NoScoreError(
                f"'{self.metric}' returned {value!r}; expected a number between {low:g} and {high:g}"
            )
        return float(value)

    def _parse_label(self, result: Any) -> str:
        if not isinstance(result, QualResult):
            raise _NoScoreError(f"'{self.metric}' returned {type(result).__name__}; expected QualResult")
        known = self._spec.labels
        if not isinstance(result.label, str) or (known and result.label not in known):
            listed = ", ".join(known) or "a string"
            raise _NoScoreError(f"'{self.metric}' returned the label {result.label!r}; expected {listed}")
        return result.label


def build_score_input(scenario: Scenario, trajectory: Trajectory, scope: str) -> ScoreInput:
    """Build a metric's input from a conversation. The input is a copy, because the record is also used
    elsewhere."""
    trajectory = deepcopy(trajectory)
    turns = trajectory.all_turns
    last = turns[-1]
    calls = last.tool_calls if scope == "turn" else trajectory.tool_calls
    return ScoreInput(
        goal=scenario.goal,
        profile=scenario.profile,
        knowledge=scenario.knowledge,
        user_message=last.user,
        agent_message=last.answer,
        tool_calls=tuple(map(build_call_record, calls)),
        history=tuple(map(_turn_record, (*deepcopy(scenario.history_turns), *turns[:-1]))),
        turn_index=len(turns) - 1,
        trajectory=trajectory,
    )


def _turn_record(turn: Turn) -> TurnRecord:
    return TurnRecord(turn.user, turn.answer, tuple(map(build_call_record, turn.tool_calls)))
