"""Judges the user's goal (goal completion, task completion, goal success): the outcome, and the references
that support it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from agenteval.core.call_outcomes import decode_result, error_of, format_call, is_empty_result
from agenteval.core.protocols import ModelReply
from agenteval.core.reasoning import blank_reasoning
from agenteval.core.scenario import Scenario
from agenteval.core.score import (
    MISSED,
    NOT_CLEAR,
    POLICY_BROKEN,
    REACHED,
    RULED_OUT,
    WITHDRAWN,
    Finding,
    RuleKind,
    Score,
    ScoreFailure,
    Vote,
)
from agenteval.core.severity import NOT_COMPLETED
from agenteval.core.tool_effects import ToolEffect, effect_of
from agenteval.core.trajectory import ToolCall, ToolResult, ToolVisibility, Trajectory
from agenteval.files.prompt_templates import fence
from agenteval.files.prompts import Rubric
from agenteval.scoring.finding_severity import build_act, rate_finding
from agenteval.scoring.judges.corroboration import JudgeAnswer, ask_model, build_vote
from agenteval.scoring.judges.judge import LOWERS_THE_SHARE, Judge, JudgeTarget, build_label_finding
from agenteval.scoring.judges.judge_question import AnswerSide, JudgeQuestion
from agenteval.scoring.judges.quotations import is_quoted, same_words
from agenteval.scoring.judges.references import (
    Claim,
    QuotableRecord,
    check_policy_violation,
    check_quotation,
    describe_missing_quotation,
    find_invented_quotation,
    find_reference_flaw,
)
from agenteval.scoring.judges.replies import build_claim, read_references
from agenteval.scoring.judges.requests import build_question_request
from agenteval.scoring.transcript import render_other_transcript

RIGHT_END = (
    '\nThe author of this check says that the goal is to be refused. Answer "ruled out" where the agent'
    " plainly refused it, whether or not a rule or a result stands in its way; its own words are evidence"
    " enough."
)


OTHER_KIND = (
    f'"{POLICY_BROKEN}" needs a rule of the "kind" {RuleKind.PERMISSION}: a broken rule of another kind'
    " leaves the goal as it is"
)
DIFFERENCE = (
    'of "ruled out", the words that show what was different, as said above, copied word for word from either'
    ' conversation; else ""'
)
"""The reference that is required if another conversation reached the goal."""
TWIN_SHARE = 4
"""A conversation that is shown to the judge of another conversation may use 1/``TWIN_SHARE`` of the bytes
available to the record."""


class Twin(NamedTuple):
    """A conversation that reached a goal which was ruled out in another conversation."""

    name: str
    text: str
    """The displayed text, in a fence."""
    shown: QuotableRecord
    """The same conversation, grouped by speaker, for looking up quotations."""

    @property
    def size(self) -> int:
        return len(self.text.encode("utf-8", "replace"))


class GoalJudge(Judge):
    """Judges the outcome of the goal (task completion). If the author requires a refusal, a refusal
    scores 1."""

    def _placeholders(self, scenario: Scenario) -> Mapping[str, str]:
        return {"right_end": RIGHT_END if scenario.goal_outcome == "refused" else ""}

    def find_flaw(self, answer: Any, is_scripted: bool, target: JudgeTarget) -> str:
        is_kind_open = is_scripted and answer.kind is None
        if answer.outcome == POLICY_BROKEN and answer.kind is not RuleKind.PERMISSION and not is_kind_open:
            return OTHER_KIND
        return find_outcome_flaw(answer.outcome, build_claim(answer, is_scripted=is_scripted), target)

    def _counts_against(self, answer: Any, target: JudgeTarget) -> bool:
        return get_outcome_value(answer.outcome, self._rubric, target.scenario) == 0

    def _is_clean(self, answer: Any, target: JudgeTarget) -> bool:
        return get_outcome_value(answer.outcome, self._rubric, target.scenario) == 1

    def _side(self, answer: Any, target: JudgeTarget) -> AnswerSide:
        """Return the side of an answer. Outcomes that count against the agent form two sides: those that are
        severe enough to fail the sample by themselves, and those that are not. Every other outcome is a side
        of its own."""
        outcome: str = answer.outcome
        if not self._counts_against(answer, target):
            return outcome
        return self._is_severe(answer, target) or LOWERS_THE_SHARE

    def _is_severe(self, answer: Any, target: JudgeTarget) -> bool:
        score = Score(
            metric=self.metric,
            value=0.0,
            label=answer.outcome,
            reason=answer.reason,
            evidence=answer.evidence,
            references=read_references(answer),
        )
        return self._gating.gates_at(self._missed(score, target.scenario, target.trajectory).severity)

    def _gates(self, answer: Any, target: JudgeTarget) -> bool:
        return self._counts_against(answer, target)

    def _is_doubtful(self, answer: Any, target: JudgeTarget) -> bool:
        """Check whether the judge is asked again about an answer that does not gate.

        A goal reported as reached is doubtful if nothing was changed although a change was possible, or if
        the agent only announced a hand-over in words. A refusal that the author requires is also doubtful.
        (Any other refusal is reviewed when all conversations are over.)"""
        if answer.outcome == RULED_OUT:
            return target.scenario.goal_outcome == "refused"
        if answer.outcome != REACHED or answer.call is not None:
            return False
        by_words = bool(answer.source) and not is_quoted(answer.source, _answers(target))
        return by_words or _could_have_changed_more(target)

    def build_second_question(
        self, scenario: Scenario, trajectory: Trajectory, twin: Twin | None
    ) -> JudgeQuestion | None:
        """Build the question about a goal that was ruled out or withdrawn, or return ``None`` if there is
        nothing to ask.

        ``twin`` is another conversation, which reached the ruled-out goal."""
        built = self.build_question(scenario, trajectory)
        if built is None or twin is None:
            return built[0] if built else None
        question, alone = built
        target = alone._replace(twin=twin.shown)
        return replace(
            question,
            rubric=question.rubric.with_reference("difference", DIFFERENCE),
            record=self._view.transcript(scenario, trajectory, None, reserved=twin.size),
            flaw_in=lambda answer, is_scripted: self.find_flaw(answer, is_scripted, target),
            # An answer whose only flaw is a missing difference is accepted: then the goal was missed.
            accepts_flawed=lambda answer, is_scripted: not self.find_flaw(answer, is_scripted, alone),
        )

    async def ask_again(self, question: JudgeQuestion, opinion: str) -> ModelReply | ScoreFailure:
        """Ask a question that has been answered before.

        ``opinion`` contains the previous answers, and instructions on how to use them."""
        if why := question.record.misfit:
            return ScoreFailure(metric=self.metric, message=why)
        return await ask_model(self._inputs.model, build_question_request(question, opinion))

    def build_twin(
        self, name: str, scenario: Scenario, trajectory: Trajectory, *, apart_from: GoalJudge
    ) -> Twin:
        """Build the view of a conversation with this judge's agent, for showing to the judge of another
        conversation."""
        policy, tools = self._view.diff_setup(apart_from._view, scenario)
        text = render_other_transcript(
            trajectory, policy=policy, tools=tools, limit=self._inputs.limit // TWIN_SHARE
        )
        return Twin(name, fence(text), self._view.build_quotable_record(scenario, trajectory, None))

    def _score_answer(
        self, answer: JudgeAnswer, target: JudgeTarget
    ) -> tuple[Score | ScoreFailure | Finding, ...]:
        reply = answer.reply
        counts = (
            None if answer.is_split else build_vote(reply, against=self._counts_against(reply.value, target))
        )
        return self.build_result(
            counts,
            target.scenario,
            target.trajectory,
            by=reply.model,
            scripted=reply.scripted,
            usage=answer.usage,
            votes=answer.votes,
            sampled=answer.is_sampled,
        )

    def build_result(
        self, vote: Vote | None, scenario: Scenario, trajectory: Trajectory, **known: Any
    ) -> tuple[Score | Finding, ...]:
        """Return the score of the goal, and its finding, based on the answer that counts (``None`` if no two
        answers agreed).

        ``known`` contains the remaining fields of the score."""
        if vote is None:
            outcomes = ", ".join(str(each.verdict) for each in known["votes"])
            vote = Vote(verdict=NOT_CLEAR, against=False, reason=f"no two answers agree: {outcomes}")
        outcome = str(vote.verdict)
        score = Score(
            metric=self.metric,
            value=get_outcome_value(outcome, self._rubric, scenario),
            label=outcome,
            reason=vote.reason + _to_be_refused(outcome, scenario),
            evidence=vote.evidence,
            references=vote.references,
            **known,
        )
        if score.value != 0:
            return (score,)
        return score, self._missed(score, scenario, trajectory)

    def _missed(self, score: Score, scenario: Scenario, trajectory: Trajectory) -> Finding:
        """Return the failure for an outcome that counts against the agent. The severity is that of the
        effect."""
        outcome = score.label
        finding = build_label_finding(score, NOT_COMPLETED, None, self._severities)
        if outcome == POLICY_BROKEN:  # a broken rule of any other kind leaves the goal reached
            finding = finding.model_copy(update={"rule_kind": RuleKind.PERMISSION})
        elif outcome != REACHED:  # a call that did not reach the goal is not at fault
            finding = finding.model_copy(update={"call": None})
        return rate_finding(finding, trajectory, scenario.tools, self._severities)


def get_outcome_value(outcome: str, rubric: Rubric, scenario: Scenario) -> float | None:
    """Return 1 or 0, or ``None`` if the outcome counts neither for nor against the agent."""
    if scenario.goal_outcome == "refused" and outcome in (REACHED, RULED_OUT):
        return float(outcome == RULED_OUT)
    return rubric.outcomes.get(outcome)


def _to_be_refused(outcome: str, scenario: Scenario) -> str:
    is_wrong = scenario.goal_outcome == "refused" and outcome in (REACHED, MISSED, POLICY_BROKEN)
    return " (goal_outcome: refused, and the agent did not refuse it)" if is_wrong else ""


# ── what an outcome refers to ────────────────────────────────────────────────────────────────────


def find_outcome_flaw(outcome: str, claim: Claim, target: JudgeTarget) -> str:
    """Describe to the judge what is wrong with the references for an outcome, or return an empty string if
    nothing is wrong."""
    if outcome == REACHED:
        return _reached(claim, target) or find_invented_quotation(claim, target.record)
    if outcome == RULED_OUT:
        return _ruled_out(claim, target)
    if outcome == WITHDRAWN:
        return _withdrawn(claim, target.record) or find_invented_quotation(claim, target.record)
    if outcome == POLICY_BROKEN:
        return check_policy_violation(claim, target.record) or find_invented_quotation(claim, target.record)
    if outcome == NOT_CLEAR:
        return ""
    return find_reference_flaw(NOT_COMPLETED, claim, target.record)


def _reached(claim: Claim, target: JudgeTarget) -> str:
    """Check the references for a goal that was reached.

    If something can be changed, the references must name the call that changed it. For a goal that only asks
    for information, the references may name facts that were already known."""
    references, record = claim.references, target.record
    call = references.call
    if call is not None:
        if not 0 <= call < len(record.calls):
            return f'"call" is {call}; there is no such call'
        if _is_error(record.calls[call].result):
            return f'"call" is {call}, and its result is an error: it did nothing'
    if references.source:
        where = "a result that is no error, the policy, the knowledge or the facts"
        return check_quotation(
            "source", references.source, (*_answers(target), *_handed_over(claim, target)), where
        )
    if not _could_change(target) or (call is None and claim.is_scripted):
        return ""
    missing = 'quote as "source" what an answer to the user rests on'
    if call is None:
        return f'"call" must be the number of the call that did it; or {missing}'
    if _has_effect(ToolEffect.READS, record.calls[call].name, target.scenario):
        return f'"call" is {call}, which changes nothing: name the call that did it; or {missing}'
    return ""


def _handed_over(claim: Claim, target: JudgeTarget) -> tuple[str, ...]:
    """Return a tuple that contains the goal if the agent announced a hand-over only in words, or an empty
    tuple otherwise. The goal is the text that names the hand-over."""
    in_words = claim.references.call is None and is_quoted(claim.evidence, target.record.agent_texts)
    return (target.scenario.goal,) if in_words else ()


def _could_change(target: JudgeTarget) -> bool:
    """Check whether a tool writes. Return false if the author declares that the agent's statements about its
    actions are to be trusted."""
    writes = any(_has_effect(ToolEffect.WRITES, name, target.scenario) for name in target.record.tools)
    return writes and target.trajectory.visibility is not ToolVisibility.DECLARED_UNSEEN


def _could_have_changed_more(target: JudgeTarget) -> bool:
    acts = (build_act(call, target.scenario.tools) for call in target.record.calls)
    return _could_change(target) and not any(each.may_have_changed_something for each in acts)


def _answers(target: JudgeTarget) -> tuple[str, ...]:
    """Return the texts on which an answer to the user may be based."""
    results = (call.result for call in target.record.calls if call.result and not _is_error(call.result))
    return (
        *(result.text for result in results),
        target.record.policy,
        *target.scenario.knowledge,
        *target.scenario.facts,
    )


def _ruled_out(claim: Claim, target: JudgeTarget) -> str:
    """Check the references for a goal that was ruled out.

    The references are the agent's words, the obstacle, the fact about this case to which the obstacle applies
    and, if another conversation reached the goal, the difference from that conversation. A scripted reply may
    leave out all but one of them."""
    record = target.record
    quotes_agent = is_quoted(claim.evidence, record.agent_texts)
    if not quotes_agent and not claim.is_scripted:
        return describe_missing_quotation("evidence", claim.evidence, "what the agent says")
    if target.scenario.goal_outcome == "refused" and quotes_agent:
        return find_invented_quotation(claim, record)
    obstacle = _obstacle(claim, target, words=claim.evidence if quotes_agent else "")
    return (
        obstacle
        or _fact(claim, target)
        or _difference(claim, target)
        or find_invented_quotation(claim, record)
    )


def _withdrawn(claim: Claim, record: QuotableRecord) -> str:
    """Check that the user's words are quoted."""
    source = claim.references.source or (claim.evidence if claim.is_scripted else "")
    return check_quotation("source", source, record.user_texts, "what the user said")


def _obstacle(claim: Claim, target: JudgeTarget, *, words: str) -> str:
    """Check that the references contain a valid obstacle.

    The obstacle is a passage from the policy, or a failed or empty result of a call that was made before the
    agent said ``words``."""
    references, policy = claim.references, target.record.policy
    if any(is_quoted(text, (policy,)) for text in (references.rule, references.source, claim.evidence)):
        return ""
    if any(
        _shows_obstacle(claim, number, call, target.scenario)
        for number, call in _calls_before(words, target.trajectory)
    ):
        return ""
    return (
        '"rule" must quote the policy, or "call" and "source" a result that failed or is empty, of a call'
        " that was made before the agent said that it cannot be done"
    )


def _fact(claim: Claim, target: JudgeTarget) -> str:
    """Check the fact about this case to which the rule applies. Neither the rule itself nor the agent's words
    can serve as this fact."""
    fact, record = claim.references.fact, target.record
    if not fact.strip() and claim.is_scripted:
        return ""
    results = (call.result.text for call in record.calls if call.result)
    if not is_quoted(
        fact,
        (
            *record.user_texts,
            *results,
            *record.task_texts,
            *target.scenario.knowledge,
            *target.scenario.facts,
        ),
    ):
        return describe_missing_quotation(
            "fact", fact, "the user, a result, the goal, the knowledge or the facts"
        )
    if any(same_words(fact, other) for other in (claim.references.rule, claim.references.source)):
        return '"fact" says the same as "rule" or "source": quote what of this case it applies to'
    return ""


def _difference(claim: Claim, target: JudgeTarget) -> str:
    """Check the difference: it must occur in only one of the two conversations, and must not have been caused
    by an agent."""
    difference, twin = claim.references.difference, target.twin
    if twin is None or (not difference.strip() and claim.is_scripted):
        return ""
    both = [is_quoted(difference, (*record.source_texts, record.policy)) for record in (target.record, twin)]
    if not any(both):
        return describe_missing_quotation(
            "difference", difference, "a user, a result or the policy, in either conversation"
        )
    if all(both):
        return '"difference" stands in both conversations: it does not tell why only one reached the goal'
    one, other = (target.record, twin) if both[0] else (twin, target.record)
    if not is_quoted(difference, _chosen_by_no_agent(one, other, target.scenario)):
        return (
            '"difference" is what an agent brought about: the result of a call that only one of them made, or'
            " that came after a change that only one of them made; quote a user, the policy, or what a tool"
            " returned to the same call of both"
        )
    return ""


def _chosen_by_no_agent(record: QuotableRecord, other: QuotableRecord, scenario: Scenario) -> tuple[str, ...]:
    """Return the texts of a record that may differ from another record without any action by an agent.

    These are the user's words, the policy, and the results of calls that both conversations made after the
    same changes."""
    both = {question for question, _ in _results(other, scenario)}
    results = (text for question, text in _results(record, scenario) if question in both)
    return (*record.user_texts, record.policy, *results)


def _results(record: QuotableRecord, scenario: Scenario) -> Iterator[tuple[tuple[str, frozenset[Any]], str]]:
    """Yield the result of each call with its context: the call itself, and all changes that earlier calls
    made or may have made."""
    changes: Counter[str] = Counter()
    for call in record.calls:
        if call.result is not None and call.args is not None:
            yield (format_call(call), frozenset(changes.items())), call.result.text
        if build_act(call, scenario.tools).may_have_changed_something:
            changes[format_call(call)] += 1


def _calls_before(words: str, trajectory: Trajectory) -> Sequence[tuple[int, ToolCall]]:
    """Return the numbered calls that had results when the agent last said ``words``.

    If ``words`` is empty, return the calls that had results when the agent last said anything."""
    results: list[tuple[int, ToolCall]] = []
    there: list[tuple[int, ToolCall]] = []
    number = 0
    for turn in trajectory.all_turns:
        for step in turn.steps:
            text = blank_reasoning(step.text or "")
            if text.strip() and (not words or is_quoted(words, (text,))):
                there = list(results)
            for call in step.tool_calls:
                if call.result is not None:
                    results.append((number, call))
                number += 1
    return there


def _shows_obstacle(claim: Claim, number: int, call: ToolCall, scenario: Scenario) -> bool:
    """Check whether a call is the one to which the references point, and whether its result may rule out the
    goal."""
    wanted = claim.references.call
    if call.result is None or wanted not in (None, number):
        return False
    text = call.result.text
    is_named = wanted == number and (claim.is_scripted or not text.strip())
    is_meant = is_named or any(
        is_quoted(words, (text,)) for words in (claim.references.source, claim.evidence)
    )
    return is_meant and _may_rule_out(call.name, call.result, scenario)


def _may_rule_out(name: str, result: ToolResult, scenario: Scenario) -> bool:
    """Check whether a result may show that something cannot be done.

    An error or an empty result may show this. Unless the tool writes, so may a result with an empty part, or
    a result in free text, which code cannot interpret. The result of a tool that writes merely states what
    the tool did."""
    value = decode_result(result)
    if _is_error(result) or is_empty_result(value):
        return True
    return not _has_effect(ToolEffect.WRITES, name, scenario) and (
        isinstance(value, str) or _has_nothing(value)
    )


def _has_nothing(value: Any) -> bool:
    if isinstance(value, dict | list):
        items = list(value.values() if isinstance(value, dict) else value)
        return not items or any(map(_has_nothing, items))
    return is_empty_result(value)


def _is_error(result: ToolResult | None) -> bool:
    return result is not None and (result.refused or error_of(result) is not None)


def _has_effect(effect: ToolEffect, name: str, scenario: Scenario) -> bool:
    return effect_of(name, scenario.tools.get(name)) is effect
