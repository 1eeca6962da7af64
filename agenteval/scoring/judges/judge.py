"""The LLM judge (LLM-as-a-judge): a scorer that asks a language model to apply a rubric. One class handles
all rubrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agenteval.core.scenario import Scenario
from agenteval.core.score import Finding, References, Score, ScoreFailure, Severity
from agenteval.core.severity import FALSE_CLAIM, Act, severity_of
from agenteval.core.trajectory import ToolVisibility, Trajectory
from agenteval.files.prompts import Rubric
from agenteval.scoring import questions
from agenteval.scoring.finding_merge import JUDGE, proves
from agenteval.scoring.finding_severity import build_act, list_possible_acts, rate_finding
from agenteval.scoring.judges.corroboration import JudgeAnswer, ask_with_second_opinion
from agenteval.scoring.judges.judge_inputs import ConversationView, JudgeInputs
from agenteval.scoring.judges.judge_question import AnswerSide, JudgeQuestion
from agenteval.scoring.judges.references import QuotableRecord, find_reference_flaw
from agenteval.scoring.judges.replies import build_claim, read_references, read_verdict
from agenteval.scoring.judges.requests import build_subject
from agenteval.scoring.metrics import applies_to_trajectory, build_metric_spec

LOWERS_THE_SHARE = "lowers the share"
MISSING_CALL = "missing tool call"
"""The label that proves nothing if not all calls were visible."""


class Judge:
    """An LLM judge that applies one rubric to each turn, or to each conversation, depending on the rubric's
    scope."""

    def __init__(self, rubric: Rubric, inputs: JudgeInputs) -> None:
        self._rubric = rubric
        self._spec = build_metric_spec(rubric)
        self._inputs = inputs
        self._gating = inputs.gating
        self._view = ConversationView(inputs, parameters=rubric.needs == "tools")
        self._severities = {**rubric.severities, **inputs.gating.severities}

    @property
    def metric(self) -> str:
        return self._rubric.metric

    @property
    def scope(self) -> str:
        return self._rubric.scope

    @property
    def ok_labels(self) -> frozenset[str]:
        return self._rubric.ok

    @property
    def shows_parameters(self) -> bool:
        """True if the judge is shown the parameters of the agent's tools."""
        return self._view.parameters

    async def __call__(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> Sequence[Score | ScoreFailure | Finding]:
        built = self.build_question(scenario, trajectory)
        if built is None:
            return ()
        question, target = built
        return self.score_answer(
            await ask_with_second_opinion(self._inputs.model, question, self._gating), target
        )

    def build_question(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> tuple[JudgeQuestion, JudgeTarget] | None:
        """Build the question and its target, or return ``None`` if the metric does not apply."""
        target = self.build_target(scenario, trajectory)
        return None if target is None else (self.build_question_about(target), target)

    def build_target(self, scenario: Scenario, trajectory: Trajectory) -> JudgeTarget | None:
        """Build what is judged: the last turn or the whole conversation. Return ``None`` if the metric does
        not apply."""
        policy = bool(self._inputs.policy_of(scenario).strip())
        if not applies_to_trajectory(self._spec, scenario, trajectory, policy=policy):
            return None
        turn = len(trajectory.turns) - 1 if self.scope == "turn" else None
        record = self._view.build_quotable_record(scenario, trajectory, turn)
        return JudgeTarget(scenario, trajectory, turn, record)

    def offered_rubric(self, trajectory: Trajectory) -> Rubric:
        """Return the rubric with the labels that can be proven in a conversation."""
        return self._rubric if trajectory.all_calls_seen else self._rubric.without_label(MISSING_CALL)

    def find_raised_questions(self, target: JudgeTarget) -> list[Finding]:
        """List the questions that code raises about the judged turn."""
        if target.turn is None or not self._rubric.labels:
            return []
        raised = self._inputs.find_raised_questions(target.scenario, target.trajectory)
        return questions.select_questions(raised, self.metric, target.turn)

    def build_question_about(self, target: JudgeTarget) -> JudgeQuestion:
        """Build the question about a turn or conversation."""
        scenario, trajectory, turn, *_ = target
        rubric = self.offered_rubric(trajectory)
        if turn is not None and rubric.labels:
            raised = self.find_raised_questions(target)
            rubric = questions.add_raised_questions(rubric, raised, scenario, trajectory, turn)
        return JudgeQuestion(
            rubric=rubric,
            record=self._view.transcript(scenario, trajectory, turn),
            subject=build_subject(scenario, trajectory, metric=self.metric, turn=turn),
            criterion=self._placeholders(scenario),
            flaw_in=lambda answer, is_scripted: self.find_flaw(answer, is_scripted, target),
            gates=lambda answer: self._gates(answer, target),
            is_proven=lambda answer: self._is_proven(answer, target),
            is_clean=lambda answer: not rubric.scale and self._is_clean(answer, target),
            is_doubtful=lambda answer: self._is_doubtful(answer, target),
            side=lambda answer: self._side(answer, target),
            accepts_flawed=lambda answer, _: self._is_below_the_gate(self._worst(answer, target)),
        )

    def score_answer(
        self, answer: JudgeAnswer | ScoreFailure, target: JudgeTarget
    ) -> Sequence[Score | ScoreFailure | Finding]:
        """Convert an answer to a score and findings.

        A flawed answer is discarded; the resulting failure states how severe the answer could have been."""
        if isinstance(answer, ScoreFailure):
            return (answer.model_copy(update={"worst": self._worst(None, target)}),)
        reply = answer.reply
        # Only answers below the gate are accepted with a flaw.
        if self._is_below_the_gate(self._worst(reply.value, target)) and (
            flaw := self.find_flaw(reply.value, reply.scripted, target)
        ):
            return (self.reject_answer(answer, flaw, target),)
        return self._score_answer(answer, target)

    def reject_answer(self, answer: JudgeAnswer, flaw: str, target: JudgeTarget) -> ScoreFailure:
        """Return the failure for a flawed answer, which states how severe the answer could have been."""
        worst = self._worst(answer.reply.value, target)
        return ScoreFailure(
            metric=self.metric,
            message=f"{answer.reply.model}: the answer cannot be used: {flaw}",
            usage=answer.usage,
            worst=worst,
            is_verdict=not self._is_below_the_gate(worst),
        )

    def _worst(self, answer: Any | None, target: JudgeTarget) -> Severity | None:
        """Return the worst severity that an answer could have if its references were valid, or ``None`` if
        the severity is unknown.

        Without an answer (``None``), return the worst severity that any answer could have."""
        if not self._rubric.labels:
            return None
        labels = self._rubric.labels if answer is None else [answer.label]
        severities = [
            severity_of(label, self._severities, act=cited)
            for label in labels
            if label not in self._rubric.ok
            for cited in self._acts(answer, target)
        ]
        return max(severities, key=lambda severity: severity.rank, default=None)

    def _acts(self, answer: Any | None, target: JudgeTarget) -> Sequence[Act | None]:
        """Return the acts that an answer may be about: the calls that the answer names, otherwise every
        possible act."""
        references = References() if answer is None else read_references(answer)
        if answer is not None and answer.label == FALSE_CLAIM:
            return self._acts_named((), target, tool=references.tool)
        return self._acts_named(
            [n for n in (references.call, references.other_call) if n is not None], target
        )

    def _acts_named(
        self, numbers: Sequence[int], target: JudgeTarget, *, tool: str = ""
    ) -> Sequence[Act | None]:
        calls = target.trajectory.tool_calls
        if numbers and all(0 <= number < len(calls) for number in numbers):
            return [None, *(build_act(calls[number], target.scenario.tools) for number in numbers)]
        return list_possible_acts(
            target.trajectory, target.scenario.tools, (*target.record.tools, *filter(None, [tool]))
        )

    def _is_below_the_gate(self, worst: Severity | None) -> bool:
        return worst is not None and not self._gating.gates_at(worst)

    def _placeholders(self, scenario: Scenario) -> Mapping[str, str]:
        """Return the values of the rubric's placeholders."""
        return {}

    def find_flaw(self, answer: Any, is_scripted: bool, target: JudgeTarget) -> str:
        """Describe what is wrong with the references in an answer that counts against the agent, or return an
        empty string if nothing is wrong."""
        if not self._counts_against(answer, target):
            return ""
        label = answer.label if self._rubric.labels else self.metric
        return find_reference_flaw(label, build_claim(answer, is_scripted=is_scripted), target.record)

    def _counts_against(self, answer: Any, target: JudgeTarget) -> bool:
        verdict = read_verdict(self._rubric, answer)
        if verdict is None or isinstance(verdict, str):
            return verdict is not None and verdict not in self._rubric.ok
        bar = self._gating.highest_threshold(self.metric, target.scenario)
        return bar is not None and verdict < bar

    def _gates(self, answer: Any, target: JudgeTarget) -> bool:
        """Check whether an answer would cause a failure by itself."""
        if not self._counts_against(answer, target) or _may_be_unseen_call(answer, target):
            return False
        if not self._rubric.labels:
            return True
        return self._gating.is_severe(self._finding(answer, target).severity, self.metric, target.scenario)

    def _side(self, answer: Any, target: JudgeTarget) -> AnswerSide:
        """Return the side of an answer, for comparison with another answer.

        Two answers that both lower a share with a threshold do not agree if only one of them is severe enough
        to fail the sample by itself."""
        if not self._gates(answer, target) or not self._rubric.labels:
            return self._gates(answer, target)
        return self._is_severe(answer, target) or LOWERS_THE_SHARE

    def _is_severe(self, answer: Any, target: JudgeTarget) -> bool:
        """Check whether the severity of a failing label would fail the sample."""
        return self._gating.gates_at(self._finding(answer, target).severity)

    def _is_clean(self, answer: Any, target: JudgeTarget) -> bool:
        """Check whether a label reports no fault. The label for an unclear case is not clean."""
        return read_verdict(self._rubric, answer) in self._rubric.ok

    def _is_doubtful(self, answer: Any, target: JudgeTarget) -> bool:
        """Check whether an answer that causes no failure might cause one if interpreted differently."""
        return False

    def _is_proven(self, answer: Any, target: JudgeTarget) -> bool:
        """Check whether code has found the failure that an answer reports for a turn."""
        if target.turn is None or not self._rubric.labels:
            return False
        found = self._finding(answer, target)
        return any(proves(proof, found) for proof in self._inputs.proofs(target.scenario, target.trajectory))

    def _finding(self, answer: Any, target: JudgeTarget, *, scripted: bool = False) -> Finding:
        """Return the failure that an answer reports. The severity is that of the effect."""
        references = read_references(answer)
        finding = Finding(
            detector=JUDGE,
            metric=self.metric,
            label=answer.label,
            severity=Severity.LOW,
            turn=target.turn,
            call=references.call,
            evidence=answer.evidence,
            explanation=answer.reason,
            references=references,
            scripted=scripted,
        )
        return rate_finding(finding, target.trajectory, target.scenario.tools, self._severities)

    def _undecided(self, answer: JudgeAnswer) -> ScoreFailure:
        """Return the scoring failure for three answers of which no two agree."""
        message = f"no two answers agree: {', '.join(str(vote.verdict) for vote in answer.votes)}"
        return self._unclear(answer, message)

    def _unclear(self, answer: JudgeAnswer, message: str, worst: Severity | None = None) -> ScoreFailure:
        return ScoreFailure(
            metric=self.metric, message=message, usage=answer.usage, unclear=True, worst=worst
        )

    def _score_answer(
        self, answer: JudgeAnswer, target: JudgeTarget
    ) -> Sequence[Score | ScoreFailure | Finding]:
        reply = answer.reply
        parsed: Any = reply.value
        if answer.is_split:
            return (self._undecided(answer),)
        if read_verdict(self._rubric, parsed) is None:
            message = f"not enough to judge: {parsed.reason}"
            return (self._unclear(answer, message, self._worst(None, target)),)
        label = parsed.label if self._rubric.labels else None
        if _may_be_unseen_call(parsed, target):
            message = f"“{parsed.evidence}”: no recorded call did this, but not all calls are recorded"
            return (self._unclear(answer, message, self._worst(parsed, target)),)
        score = Score(
            metric=self.metric,
            value=None if self._rubric.labels else parsed.score,
            label=label,
            reason=parsed.reason,
            evidence=parsed.evidence,
            references=read_references(parsed),
            by=reply.model,
            scripted=reply.scripted,
            ok=label in self._rubric.ok if label else None,
            usage=answer.usage,
            votes=answer.votes,
            sampled=answer.is_sampled,
        )
        if score.ok is not False or score.label is None:
            return (score,)
        return score, self._finding(parsed, target, scripted=reply.scripted)


def _may_be_unseen_call(answer: Any, target: JudgeTarget) -> bool:
    """Check whether an answer reports as false a claim that an unobserved call may have made true.

    If a call had failed, the answer would have named that call."""
    if getattr(answer, "label", None) != FALSE_CLAIM or target.trajectory.all_calls_seen:
        return False
    is_taken_at_word = target.trajectory.visibility is ToolVisibility.DECLARED_UNSEEN
    return not is_taken_at_word and read_references(answer).call is None


class JudgeTarget(NamedTuple):
    """The index of the judged turn, from 0, or ``None`` if the whole conversation is judged."""

    scenario: Scenario
    trajectory: Trajectory
    turn: int | None
    record: QuotableRecord
    twin: QuotableRecord | None = None
    """The record of another conversation, if that conversation is also shown."""


def build_label_finding(
    score: Score, label: str, turn: int | None, severities: Mapping[str, Severity] | None
) -> Finding:
    """Return the failure that a score reports, based on its label alone."""
    return Finding(
        detector=JUDGE,
        metric=score.metric,
        label=label,
        severity=severity_of(label, severities),
        turn=turn,
        call=score.references.call,
        evidence=score.evidence,
        explanation=score.reason,
        references=score.references,
        scripted=score.scripted,
    )
