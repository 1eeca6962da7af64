"""``expect.criteria``: each sentence judged by a model as met, not met or not clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio

from agenteval.errors import AuthorError
from agenteval.prompts import CRITERIA, load_rubric
from agenteval.protocols import ChatModel, ModelReply, ModelRequest, Subject
from agenteval.scenario import Scenario
from agenteval.score import Check, Finding, ScoreFailure, Severity
from agenteval.scorers.judge import PolicyOf, Record, ToolsOf, ask, no_policy, request_of, subject_of
from agenteval.severity import of_label
from agenteval.trajectory import Trajectory
from agenteval.transcript import tools_of

LABEL = "criterion not met"
SPANS = {"turn": "in the turn to judge", "conversation": "over the whole conversation"}


class Criteria:
    """The criteria of a scenario (scope ``conversation``) or of its scripted turns (scope ``turn``), one
    call each, all at once.

    A criterion that is not clear, or whose judge broke, is a check that could not be decided, which
    leaves the sample inconclusive. A conversation in which the agent broke is not asked about: the
    sample has failed already.
    """

    metric: Final = CRITERIA

    def __init__(
        self,
        model: ChatModel,
        *,
        scope: str,
        policy_of: PolicyOf = no_policy,
        tools_of: ToolsOf = tools_of,
        now: str | None = None,
        severities: Mapping[str, Severity] | None = None,
    ) -> None:
        self._model = model
        self._scope = scope
        self._record = Record(policy_of, tools_of, now)
        self._severity = of_label(LABEL, severities)

    @property
    def scope(self) -> str:
        return self._scope

    async def __call__(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> Sequence[Check | ScoreFailure | Finding]:
        criteria, path = _criteria(scenario, trajectory, self._scope)
        if not criteria:
            return ()
        turn = len(trajectory.turns) - 1 if self._scope == "turn" else None
        context = self._record.text(scenario, trajectory, turn)
        subject = subject_of(scenario, trajectory, metric=self.metric, turn=turn)
        replies: list[ModelReply | ScoreFailure | AuthorError | None] = [None] * len(criteria)

        async def judge(index: int) -> None:
            request = criterion_request(criteria[index], self._scope, context, subject=subject)
            try:
                replies[index] = await ask(self._model, request)
            except AuthorError as error:
                replies[index] = error  # raised below: out of a task group it would be in a group

        async with anyio.create_task_group() as group:
            for index in range(len(criteria)):
                group.start_soon(judge, index)
        items: list[Check | ScoreFailure | Finding] = []
        for criterion, reply in zip(criteria, replies, strict=True):
            if isinstance(reply, AuthorError):
                raise reply
            assert reply is not None
            items += self._items(criterion, reply, scenario.where(path), turn)
        return items

    def _items(
        self, criterion: str, reply: ModelReply | ScoreFailure, where: str, turn: int | None
    ) -> Sequence[Check | ScoreFailure | Finding]:
        if isinstance(reply, ScoreFailure):
            detail = f"{criterion} — not judged: {reply.message}"
            return Check(name=CRITERIA, passed=None, detail=detail, where=where), reply
        said: Any = reply.value
        passed = {"pass": True, "fail": False}.get(said.label)
        check = Check(
            name=CRITERIA,
            passed=passed,
            detail=_detail(criterion, said),
            where=where,
            by=reply.model,
            scripted=reply.scripted,
            usage=reply.usage,
        )
        if passed is None:
            # The check carries the usage; it must not be counted twice.
            return check, ScoreFailure(metric=CRITERIA, message=f"not clear: {criterion}: {said.reason}")
        return (check,) if passed else (check, self._finding(criterion, reply, turn))

    def _finding(self, criterion: str, reply: ModelReply, turn: int | None) -> Finding:
        said: Any = reply.value
        return Finding(
            detector="judge",
            metric=CRITERIA,
            label=LABEL,
            severity=self._severity,
            turn=turn,
            evidence=said.evidence,
            explanation=said.reason,
            criterion=criterion,
            scripted=reply.scripted,
        )


def _criteria(scenario: Scenario, trajectory: Trajectory, scope: str) -> tuple[tuple[str, ...], str]:
    """The criteria to judge now, and the path of where they are written."""
    if scope == "conversation":
        ended_well = trajectory.stop is None or trajectory.stop.fault is None
        return (scenario.expect.criteria if ended_well and trajectory.turns else ()), "expect.criteria"
    if not trajectory.turns or trajectory.unfinished:
        return (), ""
    turn = trajectory.turns[-1]
    expect = scenario.turn_expectation(turn)
    return (expect.criteria if expect else ()), f"turns.{turn.script}.expect.criteria"


def criterion_request(criterion: str, scope: str, context: str, *, subject: Subject) -> ModelRequest:
    """The request that asks for one criterion."""
    values = {"criterion": criterion, "span": SPANS[scope]}
    return request_of(load_rubric(CRITERIA), context, subject=subject, criterion=values)


def _detail(criterion: str, said: Any) -> str:
    quoted = f" (evidence: “{said.evidence}”)" if said.evidence.strip() else ""
    return f"{criterion} — {said.label}: {said.reason}{quoted}"
