"""Build a report from the events of a run. Pure, and independent of the order of events between samples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from agenteval.core.event import Event, IssuesFound, Notice, RunFinished, RunStarted
from agenteval.core.plan import Pairing, Plan, ScenarioRules
from agenteval.core.sample_report import (
    Aggregate,
    SampleReport,
    ScenarioReport,
    Spread,
    TurnReport,
    aggregates_of,
    combine_outcomes,
    mean_of,
    spread_of,
)
from agenteval.core.scenario import CaseSpec, Category, SampleKey, Scenario
from agenteval.core.score import (
    Check,
    Finding,
    Issue,
    Score,
    ScoreFailure,
    ScoreItem,
    Severity,
    UserReview,
)
from agenteval.core.tool_visibility import explain_open, settle_absence_checks, visibility_of
from agenteval.core.trajectory import CallEvidence, Stop, StopReason, ToolVisibility, Trajectory, Turn, Usage
from agenteval.core.value import copy_with
from agenteval.scoring.finding_merge import merge_findings
from agenteval.scoring.finding_severity import rate_finding
from agenteval.scoring.goals import raise_missed_goals
from agenteval.scoring.questions import build_open_checks, drop_answered_questions
from agenteval.verdict.event_accumulator import RunAccumulator, SampleAccumulator
from agenteval.verdict.ledger import LedgerLine
from agenteval.verdict.spending import by_role, ledger_of


@dataclass(frozen=True)
class Dimension:
    """The numbers for one of the three dimensions, across all samples in its category."""

    category: Category
    samples: int
    rates: Mapping[str, Aggregate]
    spreads: Mapping[str, Spread]


@dataclass(frozen=True)
class Report:
    """All information about a run."""

    run: RunStarted
    scenarios: tuple[ScenarioReport, ...]
    dimensions: Mapping[str, tuple[Dimension, ...]]
    """The dimensions, keyed by agent."""
    usage: Mapping[str, Usage]
    """The usage, keyed by role: agent, user, judge, dedup."""
    ledger: tuple[LedgerLine, ...] = ()
    """The usage for each role and model."""
    issues: tuple[Issue, ...] = ()
    issue_failures: tuple[ScoreFailure, ...] = ()
    findings_not_asked: int = 0
    """The number of findings that exceeded the maximum a model is asked to group and were therefore grouped
    by code."""
    notices: tuple[Notice, ...] = ()
    evidence: Mapping[str, frozenset[CallEvidence]] = field(default_factory=dict)
    """The evidence, keyed by agent, that the agent's calls are seen. It comes from the agent's turns."""
    finished: RunFinished | None = None
    """The end of the run, or ``None`` if the run was interrupted."""

    @cached_property
    def plan(self) -> Plan:
        """The plan that the run followed."""
        return self.run.plan

    def visibility_of(self, agent: str) -> ToolVisibility:
        """Return the visibility of the agent's tool calls in this run."""
        return _visibility(self.run.plan, agent, self.evidence)

    @cached_property
    def scripted(self) -> bool:
        """True if any reply came from the scripted model. In that case, no language model judged the run."""
        return any(sample.scripted for sample in self.samples) or any(i.scripted for i in self.issues)

    @cached_property
    def has_several_agents(self) -> bool:
        return len({scenario.agent for scenario in self.scenarios}) > 1

    @cached_property
    def samples(self) -> tuple[SampleReport, ...]:
        return tuple(sample for scenario in self.scenarios for sample in scenario.samples)


def _visibility(plan: Plan, agent: str, evidence: Mapping[str, Collection[CallEvidence]]) -> ToolVisibility:
    passthrough = plan.suite.unmocked_tools == "passthrough"
    return visibility_of(plan.known_visibility(agent), evidence.get(agent, ()), passthrough=passthrough)


def build_report(events: Iterable[Event]) -> Report:
    """Build the report of a run from its events. Raise ``ValueError`` if the events do not contain
    ``RunStarted``."""
    accumulator = RunAccumulator()
    for event in events:
        accumulator.apply(event)
    if accumulator.run is None:
        raise ValueError("no run_started event: this is not the journal of a run")
    run, plan, evidence = accumulator.run, accumulator.run.plan, accumulator.evidence
    by_id = {**accumulator.recorded, **{scenario.id: scenario for scenario in run.scenarios}}
    # Each is released once it is read, so that many samples are in memory in only one form.
    reports = {
        key: _build_sample_report(key, by_id[key.scenario], accumulator.samples.pop(key), plan, evidence)
        for key in list(accumulator.samples)
    }
    scenarios = tuple(_build_scenario_reports(plan, by_id, accumulator.rules, reports))
    if accumulator.found and plan.suite.severity_from == "model":
        scenarios = _with_proposed_severities(scenarios, accumulator.found.issues, plan.suite.severities)
    found = accumulator.found or IssuesFound(issues=())
    ledger = ledger_of(reports.values(), found.usage, plan)
    return Report(
        run=run,
        scenarios=scenarios,
        dimensions=_dimensions(scenarios),
        usage=by_role(ledger),
        ledger=ledger,
        issues=found.issues,
        issue_failures=found.failures,
        findings_not_asked=found.not_asked,
        notices=tuple(accumulator.notices),
        evidence=evidence,
        finished=accumulator.finished,
    )


def _items_of_kind(items: Iterable[ScoreItem], kind: Any) -> tuple:  # type: ignore[type-arg]
    return tuple([item for item in items if isinstance(item, kind)])


def _build_sample_report(
    key: SampleKey,
    scenario: Scenario,
    accumulator: SampleAccumulator,
    plan: Plan,
    evidence: Mapping[str, frozenset[CallEvidence]],
) -> SampleReport:
    visibility = _visibility(plan, key.agent, evidence)
    recorded = accumulator.stop is not None and accumulator.stop.reason is StopReason.RECORDED
    why = explain_open(visibility, plan.known_visibility(key.agent), recorded=recorded)
    finished = tuple(accumulator.turns[index] for index in sorted(accumulator.turns))
    trajectory = Trajectory(
        turns=finished, stop=accumulator.stop, unfinished=accumulator.unfinished, visibility=visibility
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
            _build_sample_report(key, scenario, each, plan, evidence) for each in accumulator.lost
        ),
    )
    return _with_case_values(sample, scenario)


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


def _build_scenario_reports(
    plan: Plan,
    by_id: Mapping[str, Scenario],
    rules: Mapping[Pairing, ScenarioRules],
    reports: Mapping[SampleKey, SampleReport],
) -> list[ScenarioReport]:
    planned_keys = plan.samples
    planned = set(planned_keys)
    # A run that decides along the way how many epochs it needs has more than planned.
    further = sorted((key for key in reports if key not in planned), key=lambda k: (k.variant, k.epoch))
    groups: dict[tuple[str, str], list[SampleKey]] = {}
    groups |= {(key.scenario, key.agent): [] for key in (*planned_keys, *reports)}
    for key in (*planned_keys, *further):
        groups[key.scenario, key.agent].append(key)
    scenario_reports = []
    for (scenario_id, agent), keys in groups.items():
        scenario_rules = rules.get((scenario_id, agent)) or plan.rules_for_pairing(scenario_id, agent)
        missing = tuple(key for key in keys if key not in reports)
        samples = tuple(reports[key] for key in keys if key in reports)
        if not missing:
            samples = raise_missed_goals(samples, plan.suite)
        scenario_reports.append(
            ScenarioReport(
                scenario=by_id[scenario_id],
                agent=agent,
                rules=scenario_rules,
                samples=samples,
                missing=missing,
                aggregates=aggregates_of(samples),
            )
        )
    return scenario_reports


def _with_proposed_severities(
    scenarios: tuple[ScenarioReport, ...], issues: Sequence[Issue], overrides: Mapping[str, Severity]
) -> tuple[ScenarioReport, ...]:
    """Apply ``severity_from: model``: raise the severity of a finding one level above the severity table if
    the model rated its issue higher."""
    from agenteval.scoring.findings import effective_severities

    findings = {sample.key: sample.findings for scenario in scenarios for sample in scenario.samples}
    counted = effective_severities(issues, findings, overrides)

    def rated(sample: SampleReport) -> SampleReport:
        pairs = zip(sample.findings, counted[sample.key], strict=True)
        return replace(
            sample, findings=tuple(f.model_copy(update={"severity": severity}) for f, severity in pairs)
        )

    return tuple(replace(s, samples=tuple(map(rated, s.samples))) for s in scenarios)


_NEVER_ZERO = frozenset({"tokens", "input_tokens", "output_tokens", "latency_ms"})
"""Measures that are never zero in a real answer. A zero means that the agent does not report the value,
that it reports only the sum of input and output tokens, or that the conversation is a recording."""
_RATES: dict[str, Callable[[SampleReport], float | bool | None]] = {
    "tool_calls": lambda s: s.calls_correct,
    "output": lambda s: s.answers_correct,
    "tool_accuracy": lambda s: s.tool_accuracy,
    "task_completion": lambda s: s.output_correct,
    "checks_passed": lambda s: s.all_checks_held,
    "robustness_pass": lambda s: s.robustness_pass,
}
_SPREADS: dict[str, Callable[[Trajectory], float]] = {
    "steps": lambda t: t.steps,
    "tool_calls": lambda t: len(t.tool_calls),
    "tokens": lambda t: t.usage.tokens,
    "input_tokens": lambda t: 0 if t.usage.unsplit else t.usage.input_tokens,
    "output_tokens": lambda t: 0 if t.usage.unsplit else t.usage.output_tokens,
    "latency_ms": lambda t: t.latency_ms,
}


def _dimensions(scenarios: Sequence[ScenarioReport]) -> dict[str, tuple[Dimension, ...]]:
    result: dict[str, tuple[Dimension, ...]] = {}
    for agent in dict.fromkeys(scenario.agent for scenario in scenarios):
        rows = []
        for category in Category:
            samples = [
                sample
                for scenario in scenarios
                if scenario.agent == agent and scenario.scenario.category is category
                for sample in scenario.samples
            ]
            if samples:
                rows.append(_dimension(category, samples))
        result[agent] = tuple(rows)
    return result


def _dimension(category: Category, samples: Sequence[SampleReport]) -> Dimension:
    finished = [s for s in samples if s.stop is not None and s.stop.fault in (None, "agent")]
    answered = [s.trajectory for s in finished if s.stop is not None and s.stop.fault is None]
    rates = {name: mean_of([of(sample) for sample in finished]) for name, of in _RATES.items()}
    measured = {
        name: [value for t in answered if (value := of(t)) or name not in _NEVER_ZERO]
        for name, of in _SPREADS.items()
    }
    return Dimension(
        category,
        len(samples),
        rates={name: rate for name, rate in rates.items() if rate.n},
        spreads={name: spread_of(values) for name, values in measured.items() if values},
    )
