"""Build the report of one sample from its events. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agenteval.core.plan import Plan
from agenteval.core.sample_report import SampleReport, TurnReport, combine_outcomes
from agenteval.core.scenario import CaseSpec, SampleKey, Scenario
from agenteval.core.score import Check, Finding, Score, ScoreFailure, ScoreItem, UserReview
from agenteval.core.tool_visibility import explain_open, settle_absence_checks, visibility_of
from agenteval.core.trajectory import CallEvidence, Stop, StopReason, ToolVisibility, Trajectory, Turn
from agenteval.core.value import copy_with
from agenteval.scoring.finding_merge import merge_findings
from agenteval.scoring.finding_severity import rate_finding
from agenteval.scoring.questions import build_open_checks, drop_answered_questions
from agenteval.verdict.event_accumulator import SampleAccumulator


def visibility_in(plan: Plan, agent: str, evidence: Mapping[str, Collection[CallEvidence]]) -> ToolVisibility:
    """Return the visibility of the agent's tool calls in a run with this evidence."""
    passthrough = plan.suite.unmocked_tools == "passthrough"
    return visibility_of(plan.known_visibility(agent), evidence.get(agent, ()), passthrough=passthrough)


def build_sample_report(
    key: SampleKey,
    scenario: Scenario,
    accumulator: SampleAccumulator,
    plan: Plan,
    evidence: Mapping[str, frozenset[CallEvidence]],
) -> SampleReport:
    """Build the report of one sample from its events. ``evidence`` is that of the whole run, keyed by agent:
    it decides the checks that depend on the absence of a call."""
    visibility = visibility_in(plan, key.agent, evidence)
    recorded = accumulator.stop is not None and accumulator.stop.reason is StopReason.RECORDED
    why = explain_open(visibility, plan.known_visibility(key.agent), recorded=recorded)
    finished = tuple(accumulator.turns[index] for index in sorted(accumulator.turns))
    trajectory = Trajectory(
        turns=finished,
        stop=accumulator.stop,
        unfinished=accumulator.unfinished,
        visibility=visibility,
        end_state=accumulator.end_state,
    )
    turns = trajectory.all_turns
    of_turns = [
        settle_absence_checks(accumulator.items.get(index, ()), visibility, (turn,), why)
        for index, turn in enumerate(turns)
    ]
    conversation_items = settle_absence_checks(accumulator.items.get(None, ()), visibility, turns, why)
    found = [item for items in accumulator.items.values() for item in items if isinstance(item, Finding)]
    settled_findings = sorted(
        settle_absence_checks(found, visibility, turns, why),
        key=lambda f: (f.turn is None, f.turn or 0, f.call or 0, f.metric, f.detector),
    )
    merged_findings = merge_findings(
        settled_findings, lambda each: rate_finding(each, trajectory, scenario.tools, plan.suite.severities)
    )
    turn_reports = tuple(map(_turn_report, _with_charged_fault(turns, accumulator.stop), of_turns))
    findings = drop_answered_questions(merged_findings, dict(enumerate(turn.scores for turn in turn_reports)))
    sample = SampleReport(
        key=key,
        turns=turn_reports,
        stop=accumulator.stop,
        checks=(
            *_items_of_kind(conversation_items, Check),
            *build_open_checks(findings, trajectory, scenario, plan.suite),
        ),
        scores=_items_of_kind(conversation_items, Score),
        score_failures=_items_of_kind(conversation_items, ScoreFailure),
        findings=findings,
        trajectory=trajectory,
        review=next((item for item in conversation_items if isinstance(item, UserReview)), None),
        set_aside=_items_of_kind(accumulator.aside, Score | ScoreFailure | Check),
        names=accumulator.names,
        lost_attempts=tuple(
            build_sample_report(key, scenario, each, plan, evidence) for each in accumulator.lost
        ),
    )
    return _with_case_values(sample, scenario)


def _items_of_kind(items: Iterable[ScoreItem], kind: Any) -> tuple:  # type: ignore[type-arg]
    return tuple([item for item in items if isinstance(item, kind)])


def _turn_report(turn: Turn, items: Sequence[ScoreItem]) -> TurnReport:
    if not items:
        return TurnReport(turn)
    return TurnReport(turn, *(_items_of_kind(items, kind) for kind in (Check, Score, ScoreFailure)))


def _with_charged_fault(turns: tuple[Turn, ...], stop: Stop | None) -> tuple[Turn, ...]:
    """Return the turns, adding the error to the finished turn to which the fault is attributed, as if that
    turn had been interrupted."""
    if stop is None or stop.turn is None:
        return turns
    at = stop.turn
    return (*turns[:at], copy_with(turns[at], {"error": stop.detail}), *turns[at + 1 :])


def _with_case_values(sample: SampleReport, scenario: Scenario) -> SampleReport:
    fault = sample.stop.fault if sample.stop else "interrupted"
    if scenario.case is None or fault not in (None, "agent"):
        return sample
    answered = fault is None and bool(sample.trajectory.turns and sample.trajectory.turns[-1].answer.strip())
    outputs = [check.passed for check in sample.all_checks if check.name == "output.contains"]
    return replace(
        sample,
        tool_accuracy=_tool_accuracy(scenario.case, sample.trajectory),
        output_correct=combine_outcomes([answered, *outputs]),
        robustness_pass=sample.all_checks_held,
    )


def _tool_accuracy(case: CaseSpec, trajectory: Trajectory) -> float | None:
    """Return the share of expected tools that were called. If no tool may be called, return 1 if there were
    no calls and 0 otherwise."""
    if not trajectory.all_calls_seen:
        return None
    if case.allows_no_call:
        return 0.0 if trajectory.tool_calls else 1.0
    called = {call.name for call in trajectory.tool_calls if call.was_made}
    return sum(name in called for name in case.tools) / len(case.tools) if case.tools else None
