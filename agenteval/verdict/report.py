"""Events in, a report out. Pure, and independent of the order of events between samples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agenteval.core.event import (
    CallsSeen,
    Event,
    IssuesFound,
    Notice,
    Reconsidered,
    RunFinished,
    RunResumed,
    RunStarted,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.plan import Pairing, Plan, ScenarioRules
from agenteval.core.sample_report import (
    Aggregate,
    SampleReport,
    ScenarioReport,
    Spread,
    TurnReport,
    aggregates_of,
    all_held,
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
from agenteval.core.tool_visibility import settled, visibility_of, why_open
from agenteval.core.trajectory import CallEvidence, Stop, StopReason, ToolVisibility, Trajectory, Turn, Usage
from agenteval.core.value import changed
from agenteval.scoring.effects import rated
from agenteval.scoring.finding_merge import merged
from agenteval.scoring.goals import raised_if_never_completed
from agenteval.scoring.questions import open_checks, without_answered
from agenteval.verdict.ledger import LedgerLine, lines_of
from agenteval.verdict.spending import by_role, dedup_line, lines_of_sample


@dataclass(frozen=True)
class Dimension:
    """The numbers of one of the three dimensions, over the samples of its category."""

    category: Category
    samples: int
    rates: Mapping[str, Aggregate]
    spreads: Mapping[str, Spread]


@dataclass(frozen=True)
class Report:
    """All that is known of a run. ``finished`` is ``None`` for one that was cut off."""

    run: RunStarted
    scenarios: tuple[ScenarioReport, ...]
    dimensions: Mapping[str, tuple[Dimension, ...]]
    """By agent."""
    usage: Mapping[str, Usage]
    """By role: agent, user, judge, dedup."""
    ledger: tuple[LedgerLine, ...] = ()
    """By role and model."""
    issues: tuple[Issue, ...] = ()
    issue_failures: tuple[ScoreFailure, ...] = ()
    findings_not_asked: int = 0
    """Findings that were more than a model is asked to group: code grouped them."""
    notices: tuple[Notice, ...] = ()
    evidence: Mapping[str, frozenset[CallEvidence]] = field(default_factory=dict)
    """By agent: what its turns have shown of how its calls are seen."""
    finished: RunFinished | None = None

    @property
    def plan(self) -> Plan:
        """What applied."""
        return self.run.plan

    def visibility_of(self, agent: str) -> ToolVisibility:
        """How much of an agent's tool calls the run has seen."""
        return _visibility(self.run.plan, agent, self.evidence)

    @property
    def scripted(self) -> bool:
        """Whether any reply came from the scripted model: no language model judged that."""
        return any(sample.scripted for sample in self.samples) or any(i.scripted for i in self.issues)

    @property
    def has_several_agents(self) -> bool:
        return len({scenario.agent for scenario in self.scenarios}) > 1

    @property
    def samples(self) -> tuple[SampleReport, ...]:
        return tuple(sample for scenario in self.scenarios for sample in scenario.samples)


def _visibility(plan: Plan, agent: str, evidence: Mapping[str, Collection[CallEvidence]]) -> ToolVisibility:
    passthrough = plan.suite.unmocked_tools == "passthrough"
    return visibility_of(plan.known_visibility(agent), evidence.get(agent, ()), passthrough=passthrough)


class _SampleEvents:
    """What has been told of one sample so far."""

    def __init__(self) -> None:
        self.turns: dict[int, Turn] = {}
        self.items: dict[int | None, list[ScoreItem]] = {}
        self.aside: list[ScoreItem] = []
        self.stop: Stop | None = None
        self.is_over = False
        self.is_lost = False
        self.unfinished: Turn | None = None
        self.names: dict[str, tuple[str, ...]] = {}
        self.lost: tuple[_SampleEvents, ...] = ()

    def anew(self) -> _SampleEvents:
        """Of the sample when it starts anew: what was cut off is forgotten, and what was lost kept apart."""
        events = _SampleEvents()
        events.lost = (*self.lost, self) if self.is_lost else self.lost
        return events

    def score(self, turn: int | None, items: Sequence[ScoreItem]) -> None:
        """What a scorer said. A review that makes the outcome the simulator's sets aside what was said before
        of the whole, and of the turns from the user's fault on."""
        for review in (item for item in items if isinstance(item, UserReview) and item.decides):
            for place in [each for each in self.items if each is None or each >= (review.turn or 0)]:
                self.aside += self.items.pop(place)
        self.items.setdefault(turn, []).extend(items)

    def reconsider(self, event: Reconsidered) -> None:
        """What was looked at once more takes the place of what was said before."""
        whole = self.items.get(None, [])
        others = [item for item in whole if getattr(item, "metric", "") != event.metric]
        self.items[None] = [*others, *event.items]
        self.is_over &= event.is_over


def fold(events: Iterable[Event]) -> Report:
    """The report of a run. Raises ``ValueError`` if the events hold no ``RunStarted``."""
    run: RunStarted | None = None
    found: IssuesFound | None = None
    finished: RunFinished | None = None
    notices: list[Notice] = []
    samples: dict[SampleKey, _SampleEvents] = {}
    recorded: dict[str, Scenario] = {}
    rules: dict[Pairing, ScenarioRules] = {}
    evidence: dict[str, set[CallEvidence]] = {}
    for event in events:
        match event:
            case RunStarted():
                run = event
            case RunResumed() if run:
                budget = {"budget": event.budget}
                now = {
                    "config": run.config.model_copy(update=budget),
                    "plan": run.plan.with_suite(**budget),
                }
                run, finished, found = run.model_copy(update=now), None, None
            case RunFinished():
                finished = event
            case IssuesFound():
                found = event
            case Notice():
                notices.append(event)
            case CallsSeen():
                evidence.setdefault(event.agent, set()).add(event.evidence)
            case SampleStarted(key=key):
                if event.scenario:
                    recorded.setdefault(key.scenario, event.scenario)
                if event.rules:
                    rules.setdefault((key.scenario, key.agent), event.rules)
                # A sample that is started anew (a resumed run) forgets what was cut off.
                if key not in samples or not samples[key].is_over:
                    samples[key] = samples[key].anew() if key in samples else _SampleEvents()
            case TurnFinished(key=key, index=index, turn=turn):
                samples[key].turns[index] = turn
            case Scored(key=key, turn=turn_index, items=items):
                samples[key].score(turn_index, items)
            case SampleFinished(key=key):
                samples[key].stop, samples[key].is_over = event.stop, event.is_over
                samples[key].unfinished, samples[key].names = event.unfinished, event.names
                samples[key].is_lost = event.again
            case Reconsidered(key=key) if key in samples:
                samples[key].reconsider(event)
    if run is None:
        raise ValueError("no run_started event: this is not the journal of a run")
    by_id = {**recorded, **{scenario.id: scenario for scenario in run.scenarios}}
    # Each is let go when it is read: of many samples only one form is in memory.
    seen = {agent: frozenset(found) for agent, found in evidence.items()}
    reports = {
        key: _sample(key, by_id[key.scenario], samples.pop(key), run.plan, seen) for key in list(samples)
    }
    scenarios = tuple(_scenarios(run, by_id, rules, reports))
    if found and run.plan.suite.severity_from == "model":
        scenarios = _with_proposed_severities(scenarios, found.issues, run.plan.suite.severities)
    ledger = _ledger(reports.values(), found.usage if found else Usage(), run.plan)
    return Report(
        run=run,
        scenarios=scenarios,
        dimensions=_dimensions(scenarios),
        usage=by_role(ledger),
        ledger=ledger,
        issues=found.issues if found else (),
        issue_failures=found.failures if found else (),
        findings_not_asked=found.not_asked if found else 0,
        notices=tuple(notices),
        evidence=seen,
        finished=finished,
    )


def _of_kind(items: Iterable[ScoreItem], kind: type) -> tuple:  # type: ignore[type-arg]
    return tuple([item for item in items if isinstance(item, kind)])


def _sample(
    key: SampleKey,
    scenario: Scenario,
    told: _SampleEvents,
    plan: Plan,
    evidence: Mapping[str, frozenset[CallEvidence]],
) -> SampleReport:
    turns = tuple(told.turns[index] for index in sorted(told.turns))
    visibility = _visibility(plan, key.agent, evidence)
    recorded = told.stop is not None and told.stop.reason is StopReason.RECORDED
    why = why_open(visibility, plan.known_visibility(key.agent), recorded=recorded)
    trajectory = Trajectory(turns=turns, stop=told.stop, unfinished=told.unfinished, visibility=visibility)
    turn_reports = []
    for index, turn in enumerate(_with_charged_fault(trajectory)):
        items = settled(told.items.get(index, ()), visibility, (turn,), why)
        of_kinds = [_of_kind(items, kind) for kind in (Check, Score, ScoreFailure)] if items else ()
        turn_reports.append(TurnReport(turn, *of_kinds))
    whole = settled(told.items.get(None, ()), visibility, trajectory.all_turns, why)
    said = (item for items in told.items.values() for item in items if isinstance(item, Finding))
    findings = sorted(
        settled(tuple(said), visibility, trajectory.all_turns, why),
        key=lambda f: (f.turn is None, f.turn or 0, f.call or 0, f.metric, f.detector),
    )
    merged_findings = merged(
        findings, lambda each: rated(each, trajectory, scenario.tools, plan.suite.severities)
    )
    scores = {index: turn.scores for index, turn in enumerate(turn_reports)}
    left = without_answered(merged_findings, scores)
    sample = SampleReport(
        key=key,
        turns=tuple(turn_reports),
        stop=told.stop,
        checks=(*_of_kind(whole, Check), *open_checks(left, trajectory, scenario, plan)),
        scores=_of_kind(whole, Score),
        score_failures=_of_kind(whole, ScoreFailure),
        findings=left,
        trajectory=trajectory,
        review=next((item for item in whole if isinstance(item, UserReview)), None),
        set_aside=tuple(item for item in told.aside if isinstance(item, Score | ScoreFailure | Check)),
        names=told.names,
        lost=tuple(_sample(key, scenario, each, plan, evidence) for each in told.lost),
    )
    return _with_case_values(sample, scenario)


def _with_charged_fault(trajectory: Trajectory) -> Sequence[Turn]:
    """The turns; a finished one that is charged with the fault says so, as one that broke off does."""
    stop, turns = trajectory.stop, trajectory.all_turns
    if stop is None or stop.turn is None:
        return turns
    at = stop.turn
    return (*turns[:at], changed(turns[at], {"error": stop.detail}), *turns[at + 1 :])


def _with_case_values(sample: SampleReport, scenario: Scenario) -> SampleReport:
    fault = sample.stop.fault if sample.stop else "interrupted"
    if scenario.case is None or fault not in (None, "agent"):
        return sample
    answered = fault is None and bool(sample.trajectory.turns and sample.trajectory.turns[-1].answer.strip())
    outputs = [check.passed for check in sample.all_checks if check.name == "output.contains"]
    return replace(
        sample,
        tool_accuracy=_tool_accuracy(scenario.case, sample.trajectory),
        output_correct=all_held([answered, *outputs]),
        robustness_pass=sample.held,
    )


def _tool_accuracy(case: CaseSpec, trajectory: Trajectory) -> float | None:
    """The share of the expected tools that were called; where none may be called, whether none was."""
    if not trajectory.all_calls_seen:
        return None
    if case.allows_no_call:
        return 0.0 if trajectory.tool_calls else 1.0
    called = {call.name for call in trajectory.tool_calls if call.was_made}
    return sum(name in called for name in case.tools) / len(case.tools) if case.tools else None


def _scenarios(
    run: RunStarted,
    by_id: Mapping[str, Scenario],
    rules: Mapping[Pairing, ScenarioRules],
    reports: Mapping[SampleKey, SampleReport],
) -> Iterable[ScenarioReport]:
    samples_planned = run.plan.samples
    planned = set(samples_planned)
    # A run that decides as it goes how many epochs there are has more than it had planned.
    further = sorted((key for key in reports if key not in planned), key=lambda k: (k.variant, k.epoch))
    groups: dict[tuple[str, str], list[SampleKey]] = {}
    groups |= {(key.scenario, key.agent): [] for key in (*samples_planned, *reports)}
    for key in (*samples_planned, *further):
        groups[key.scenario, key.agent].append(key)
    for (scenario_id, agent), keys in groups.items():
        samples = tuple(reports[key] for key in keys if key in reports)
        missing = tuple(key for key in keys if key not in reports)
        if not missing:
            samples = raised_if_never_completed(samples, run.plan)
        yield ScenarioReport(
            scenario=by_id[scenario_id],
            agent=agent,
            rules=rules.get((scenario_id, agent)) or run.plan.of(scenario_id, agent),
            samples=samples,
            missing=missing,
            aggregates=aggregates_of(samples),
        )


def _with_proposed_severities(
    scenarios: tuple[ScenarioReport, ...], issues: Sequence[Issue], overrides: Mapping[str, Severity]
) -> tuple[ScenarioReport, ...]:
    """``severity_from: model``: a finding counts one level more than by the table where its issue was rated
    above it."""
    from agenteval.scoring.findings import effective_severities

    findings = {sample.key: sample.findings for scenario in scenarios for sample in scenario.samples}
    counted = effective_severities(issues, findings, "model", overrides)

    def rated(sample: SampleReport) -> SampleReport:
        pairs = zip(sample.findings, counted[sample.key], strict=True)
        return replace(
            sample, findings=tuple(f.model_copy(update={"severity": severity}) for f, severity in pairs)
        )

    return tuple(replace(s, samples=tuple(map(rated, s.samples))) for s in scenarios)


_NEVER_ZERO = frozenset({"input_tokens", "output_tokens", "latency_ms"})
"""No agent answers with nothing, or at once: a zero is an agent that does not tell, or a recording."""
_SPREADS: dict[str, Callable[[Trajectory], float]] = {
    "steps": lambda t: t.steps,
    "tool_calls": lambda t: len(t.tool_calls),
    "input_tokens": lambda t: t.usage.input_tokens,
    "output_tokens": lambda t: t.usage.output_tokens,
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
    rates = {
        "tool_calls": mean_of([_right_calls(s) for s in finished]),
        "output": mean_of([_right_output(s) for s in finished]),
        "tool_accuracy": mean_of([s.tool_accuracy for s in finished]),
        "task_completion": mean_of([s.output_correct for s in finished]),
        "checks_passed": mean_of([s.held for s in finished]),
        "robustness_pass": mean_of([s.robustness_pass for s in finished]),
    }
    answered = [s.trajectory for s in finished if s.stop is not None and s.stop.fault is None]
    measured = {
        name: [value for t in answered if (value := of(t)) or name not in _NEVER_ZERO]
        for name, of in _SPREADS.items()
    }
    spreads = {name: spread_of(values) for name, values in measured.items() if values}
    return Dimension(category, len(samples), {k: v for k, v in rates.items() if v.n}, spreads)


def _right_calls(sample: SampleReport) -> float | None:
    """Whether all that was expected of its calls holds, at its turns too; of a test case that lacks tools,
    their share."""
    checks = [check.passed for check in sample.all_checks if check.name == "tool_calls"]
    if sample.tool_accuracy is not None and sample.tool_accuracy < 1:
        return sample.tool_accuracy
    return all_held(checks) if checks else sample.tool_accuracy


def _right_output(sample: SampleReport) -> bool | None:
    """Whether all that was expected of its answers holds, at its turns too."""
    checks = [check.passed for check in sample.all_checks if check.name.startswith("output.")]
    if sample.output_correct is False:
        return False
    return all_held(checks) if checks else sample.output_correct


def _ledger(samples: Iterable[SampleReport], dedup: Usage, plan: Plan) -> tuple[LedgerLine, ...]:
    told = (
        line
        for last in samples
        for sample in (*last.lost, last)
        for line in lines_of_sample(sample.key.agent, sample.trajectory, sample.judgements, plan)
    )
    return lines_of((*told, dedup_line(dedup, plan)))
