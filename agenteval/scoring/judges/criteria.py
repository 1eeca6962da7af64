"""``expect.criteria``: an LLM judge decides whether each criterion is met, not met or unclear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agenteval.core.protocols import ModelReply, ModelRequest, Subject
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check, Finding, ScoreFailure
from agenteval.core.severity import severity_of
from agenteval.core.trajectory import Trajectory
from agenteval.files.prompts import CRITERIA, Rubric
from agenteval.scoring.fault_excuses import is_excused_by_fault
from agenteval.scoring.judges.corroboration import JudgeAnswer
from agenteval.scoring.judges.judge_inputs import ConversationView, JudgeInputs
from agenteval.scoring.judges.judge_question import JudgeQuestion
from agenteval.scoring.judges.references import QuotableRecord, find_reference_flaw
from agenteval.scoring.judges.replies import build_claim
from agenteval.scoring.judges.requests import build_judge_request, build_subject
from agenteval.scoring.judges.shared_calls import ask_shared
from agenteval.scoring.transcript import JudgeTranscript

LABEL = "criterion not met"
DID_NOT_ARISE = "did not arise"
SPANS = {"turn": "in the turn to judge", "conversation": "over the whole conversation"}


class CriteriaScorer:
    """Judges the criteria of a scenario (scope ``conversation``) or of its scripted turns (scope ``turn``).

    All criteria are judged concurrently, with one call for each criterion or, if ``is_shared`` is true, with
    one call for all of them.

    If a criterion is unclear or its judge failed, its check is undecided, which makes the sample
    inconclusive. A criterion whose condition never arose passes and is marked accordingly. A conversation in
    which the agent failed is not judged, because the sample has already failed."""

    metric: Final = CRITERIA

    def __init__(self, rubric: Rubric, inputs: JudgeInputs, *, scope: str, is_shared: bool = False) -> None:
        self._rubric = rubric
        self._inputs = inputs
        self._scope = scope
        self._is_shared = is_shared
        self._view = ConversationView(inputs)
        self._severity = severity_of(LABEL, inputs.gating.severities)

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
        transcript = self._view.transcript(scenario, trajectory, turn)
        subject = build_subject(scenario, trajectory, metric=self.metric, turn=turn)
        record = self._view.build_quotable_record(scenario, trajectory, turn)
        questions = {
            f"criterion_{number}": build_criterion_question(
                criterion, self._scope, transcript, subject, record, rubric=self._rubric
            )
            for number, criterion in enumerate(criteria, 1)
        }
        inputs = self._inputs
        answers = await ask_shared(inputs.model, questions, inputs.gating, is_shared=self._is_shared)
        return [
            item
            for criterion, answer in zip(criteria, answers.values(), strict=True)
            for item in self._items(criterion, answer, scenario.where(path), turn)
        ]

    def _items(
        self, criterion: str, answer: JudgeAnswer | ScoreFailure, where: str, turn: int | None
    ) -> Sequence[Check | ScoreFailure | Finding]:
        if isinstance(answer, ScoreFailure):
            detail = f"{criterion} — not judged: {answer.message}"
            return Check(name=CRITERIA, passed=None, detail=detail, where=where), answer
        reply = answer.reply
        parsed: Any = reply.value
        arose = parsed.label != DID_NOT_ARISE
        passed = {"pass": True, "fail": False, DID_NOT_ARISE: True}.get(parsed.label)
        check = Check(
            name=CRITERIA,
            passed=passed,
            detail=_format_detail(criterion, parsed),
            where=where,
            arose=arose,
            by=reply.model,
            scripted=reply.scripted,
            usage=answer.usage,
            votes=answer.votes,
        )
        return (check, self._finding(criterion, reply, turn)) if passed is False else (check,)

    def _finding(self, criterion: str, reply: ModelReply, turn: int | None) -> Finding:
        parsed: Any = reply.value
        return Finding(
            detector="judge",
            metric=CRITERIA,
            label=LABEL,
            severity=self._severity,
            turn=turn,
            evidence=parsed.evidence,
            explanation=parsed.reason,
            criterion=criterion,
            scripted=reply.scripted,
        )


def _criteria(scenario: Scenario, trajectory: Trajectory, scope: str) -> tuple[tuple[str, ...], str]:
    """Return the criteria to judge now, and the path at which they are defined."""
    if is_excused_by_fault(scenario, trajectory):
        return (), ""
    if scope == "conversation":
        ended_well = trajectory.stop is None or trajectory.stop.fault is None
        return (scenario.expect.criteria if ended_well and trajectory.turns else ()), "expect.criteria"
    if not trajectory.turns or trajectory.unfinished or trajectory.turns[-1].error:
        return (), ""
    turn = trajectory.turns[-1]
    expect = scenario.turn_expectation(turn)
    return (expect.criteria if expect else ()), f"turns.{turn.script}.expect.criteria"


def build_criterion_question(
    criterion: str,
    scope: str,
    transcript: JudgeTranscript,
    subject: Subject,
    record: QuotableRecord,
    *,
    rubric: Rubric,
) -> JudgeQuestion:
    """Build the question about one criterion.

    An answer that says the criterion is not met must quote words from the record or the criterion."""
    record = record.with_task_texts(criterion)

    def flaw_in(answer: Any, is_scripted: bool) -> str:
        return (
            find_reference_flaw(LABEL, build_claim(answer, is_scripted=is_scripted), record)
            if answer.label == "fail"
            else ""
        )

    return JudgeQuestion(
        rubric=rubric,
        record=transcript,
        subject=subject,
        criterion=_placeholder_values(criterion, scope),
        flaw_in=flaw_in,
        gates=lambda answer: answer.label == "fail",
    )


def build_criterion_request(
    criterion: str, scope: str, record: JudgeTranscript, *, rubric: Rubric, subject: Subject
) -> ModelRequest:
    """Build the initial request about one criterion."""
    values = _placeholder_values(criterion, scope)
    return build_judge_request(rubric, record, subject=subject, criterion=values)


def _placeholder_values(criterion: str, scope: str) -> dict[str, str]:
    """Return the values for the rubric's placeholders."""
    return {"criterion": criterion, "span": SPANS[scope]}


def _format_detail(criterion: str, answer: Any) -> str:
    quoted = f" (evidence: “{answer.evidence}”)" if answer.evidence.strip() else ""
    return f"{criterion} — {answer.label}: {answer.reason}{quoted}"
