"""Build a report from the events of a run. Pure, and independent of the order of events between samples."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from agenteval.core.errors import AuthorError
from agenteval.core.event import (
    Event,
    IssuesFound,
    ModelAsked,
    Notice,
    Reconsidered,
    ReferenceStatesMade,
    RunFinished,
    RunStarted,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.plan import Pairing, Plan
from agenteval.core.sample_report import (
    Aggregate,
    SampleReport,
    ScenarioReport,
    Spread,
    aggregates_of,
    mean_of,
    spread_of,
)
from agenteval.core.scenario import Category, SampleKey
from agenteval.core.score import Issue, ScoreFailure, Severity
from agenteval.core.trajectory import CallEvidence, ToolVisibility, Trajectory, Usage
from agenteval.core.value import compact
from agenteval.files.runs import StoredRun
from agenteval.scoring.goals import raise_missed_goals
from agenteval.verdict.event_accumulator import RunAccumulator, SampleAccumulator
from agenteval.verdict.ledger import LedgerLine
from agenteval.verdict.sample_fold import build_sample_report, visibility_in
from agenteval.verdict.slim_samples import SampleSlimmer
from agenteval.verdict.spending import by_role, ledger_of
from agenteval.verdict.variant_checks import VariantChecks


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
    changed_states: Collection[Pairing] = ()
    """The pairings of scenario and agent whose state differed from the start, or may have."""
    faulty_tools: Collection[tuple[Pairing, str]] = ()
    """The tools of a pairing of scenario and agent of which a call had a fault."""
    finished: RunFinished | None = None
    """The end of the run, or ``None`` if the run was interrupted."""

    @cached_property
    def plan(self) -> Plan:
        """The plan that the run followed."""
        return self.run.plan

    def visibility_of(self, agent: str) -> ToolVisibility:
        """Return the visibility of the agent's tool calls in this run."""
        return visibility_in(self.run.plan, agent, self.evidence)

    @cached_property
    def scripted(self) -> bool:
        """True if any reply came from the scripted model. In that case, no language model judged the run."""
        return any(sample.scripted for sample in self.samples) or any(i.scripted for i in self.issues)

    @cached_property
    def has_several_agents(self) -> bool:
        return len({scenario.agent for scenario in self.scenarios}) > 1

    @property
    def in_full(self) -> Report:
        """The same report with the texts of all conversations, which are read again."""

        def full(scenario: ScenarioReport) -> ScenarioReport:
            return replace(scenario, samples=tuple(sample.in_full for sample in scenario.samples))

        return replace(self, scenarios=tuple(map(full, self.scenarios)))

    @cached_property
    def samples(self) -> tuple[SampleReport, ...]:
        return tuple(sample for scenario in self.scenarios for sample in scenario.samples)


def build_report(events: Iterable[Event], *, of_one_sample: bool = False) -> Report:
    """Build the report of a run from its events. Raise ``ValueError`` if the events do not contain
    ``RunStarted``. A report ``of_one_sample`` compares the sample with no other one."""
    fold = Fold(of_one_sample=of_one_sample)
    for event in events:
        fold.add(event)
    return fold.report()


def fold_run(run: StoredRun) -> Fold:
    """Take in all events of a stored run. Raise ``AuthorError`` if its journal cannot be read."""
    fold = Fold(run)
    for event, place in run.events():
        fold.add(event, place)
    return fold


class StoredEvents(Protocol):
    """A journal whose events can be read again."""

    def read(self, places: Iterable[int]) -> Iterator[Event]:
        """Yield the events at these places."""


class Fold:
    """Takes in the events of a run one by one, and makes its report of them. The events are not kept: a
    sample becomes its report when it is finished.

    With ``journal``, the texts of conversations are not kept, either. They are read again from the journal
    when somebody asks for them (``SampleReport.in_full``)."""

    def __init__(self, journal: StoredEvents | None = None, *, of_one_sample: bool = False) -> None:
        self._run = RunAccumulator()
        self._journal = journal
        self._variants = None if of_one_sample else VariantChecks()
        self._slimmer = SampleSlimmer()
        self._reader = _SampleReader(journal, self._run)
        self._stored: dict[SampleKey, _StoredSample] = {}
        """The samples in the order in which they started. Each has one key, the same object here and in its
        report."""
        self._finished: dict[SampleKey, SampleReport] = {}
        self._unplaced: dict[SampleKey, SampleAccumulator] = {}
        """The finished samples that cannot be read again."""
        self._scenarios: tuple[ScenarioReport, ...] | None = None

    def add(self, event: Event, place: int | None = None) -> None:
        """Take in an event. ``place`` is where it is in the journal. Without it, the texts of the sample are
        kept."""
        if not isinstance(event, _OF_SAMPLES):
            self._run.apply(event)
            if not isinstance(event, _OF_THE_END):
                self._scenarios = None
            return
        stored, self._scenarios = self._stored_sample(event.key), None
        self._reopen(stored)
        self._run.apply(event)
        stored.note_place(None if self._journal is None else place)
        if isinstance(event, SampleFinished | Reconsidered) and self._run.run is not None:
            self._finish(stored)

    def report(self) -> Report:
        """Return the report of the events so far. Raise ``ValueError`` if they do not contain
        ``RunStarted``."""
        if self._run.run is None:
            raise ValueError("no run_started event: this is not the journal of a run")
        run, plan, found = self._run.run, self._run.run.plan, self._run.found or IssuesFound(issues=())
        reports = {key: self._report_of(stored) for key, stored in self._stored.items()}
        if self._scenarios is None:
            built = tuple(_build_scenario_reports(plan, self._run, reports))
            self._scenarios = self._variants.add_to(built, plan) if self._variants else built
        scenarios = self._scenarios
        if self._run.found and plan.suite.severity_from == "model":
            scenarios = _with_proposed_severities(scenarios, found.issues, plan.suite.severities)
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
            notices=tuple(self._run.notices),
            evidence=self._run.evidence,
            changed_states=frozenset(self._run.changed_states),
            faulty_tools=frozenset(self._run.faulty_tools),
            finished=self._run.finished,
        )

    @property
    def needs_grouping(self) -> bool:
        """True if the findings of the run have not been grouped, or may have changed since."""
        return self._run.found is None

    def _stored_sample(self, key: SampleKey) -> _StoredSample:
        found = self._stored.get(key)
        if found is None:
            found = _StoredSample(self._reader, compact(key))
            self._stored[found.key] = found
        return found

    def _finish(self, stored: _StoredSample) -> None:
        """Make the report of a sample, and keep nothing else of it if it can be read again."""
        key = stored.key
        if key not in self._run.samples:
            return
        sample = self._run.samples.pop(key)
        built = self._reader.build(key, sample)
        if stored.is_readable:
            self._finished[key] = self._slimmer.slim(built, stored)
        else:
            self._finished[key], self._unplaced[key] = built, sample

    def _reopen(self, stored: _StoredSample) -> None:
        """Prepare a finished sample for a further event."""
        key = stored.key
        if self._variants:
            self._variants.forget(key)
        if self._finished.pop(key, None) is not None:
            self._run.samples[key] = stored.accumulate() if stored.is_readable else self._unplaced.pop(key)

    def _report_of(self, stored: _StoredSample) -> SampleReport:
        key = stored.key
        found = self._finished.get(key)
        if found is None:
            return self._reader.build(key, self._run.samples[key])
        if found.trajectory.visibility is not self._reader.visibility_of(key.agent):
            # The agent's calls were shown only after the sample had finished.
            self._reopen(stored)
            self._finish(stored)
        return self._finished[key]


_OF_SAMPLES = (SampleStarted, TurnFinished, Scored, SampleFinished, Reconsidered)
_OF_THE_END = (Notice, ModelAsked, ReferenceStatesMade, IssuesFound, RunFinished)
"""The events that say nothing of a sample."""


class _SampleReader:
    """Makes the reports of single samples, of their events or of the journal."""

    def __init__(self, journal: StoredEvents | None, run: RunAccumulator) -> None:
        self._journal = journal
        self._run = run

    def visibility_of(self, agent: str) -> ToolVisibility:
        assert self._run.run is not None
        return visibility_in(self._run.run.plan, agent, self._run.evidence)

    def build(self, key: SampleKey, sample: SampleAccumulator) -> SampleReport:
        assert self._run.run is not None
        scenario = self._run.scenario(key.scenario)
        return build_sample_report(key, scenario, sample, self._run.run.plan, self._run.evidence)

    def accumulate(self, key: SampleKey, places: Iterable[int]) -> SampleAccumulator:
        assert self._journal is not None
        again = RunAccumulator()
        for event in self._journal.read(places):
            again.apply(event)
        return again.samples[key]


class _StoredSample:
    """A sample in the journal. What is called is ``ReadAgain``."""

    __slots__ = ("_places", "_reader", "is_readable", "key")

    def __init__(self, reader: _SampleReader, key: SampleKey) -> None:
        self._reader = reader
        self.key = key
        self.is_readable = True
        """False if one of the events is in no journal. A report from before that event can still be read."""
        self._places = array("Q")

    def note_place(self, place: int | None) -> None:
        """Take in where a further event of the sample is; ``None`` if it is in no journal."""
        if place is None:
            self.is_readable = False
        elif self.is_readable:
            self._places.append(place)

    def accumulate(self) -> SampleAccumulator:
        """Read the events again. Raise ``AuthorError`` if the journal is gone or was changed."""
        return self._reader.accumulate(self.key, self._places)

    def __call__(self) -> SampleReport | None:
        try:
            return self._reader.build(self.key, self.accumulate())
        except AuthorError:
            return None  # a report that lacks texts is better than none


def _build_scenario_reports(
    plan: Plan, run: RunAccumulator, reports: Mapping[SampleKey, SampleReport]
) -> Iterator[ScenarioReport]:
    planned_keys = plan.samples
    planned = set(planned_keys)
    # A run that decides along the way how many epochs it needs has more than planned.
    further = sorted((key for key in reports if key not in planned), key=lambda k: (k.variant, k.epoch))
    groups: dict[tuple[str, str], list[SampleKey]] = {}
    groups |= {(key.scenario, key.agent): [] for key in (*planned_keys, *reports)}
    for key in (*planned_keys, *further):
        groups[key.scenario, key.agent].append(key)
    for (scenario_id, agent), keys in groups.items():
        scenario_rules = run.rules.get((scenario_id, agent)) or plan.rules_for_pairing(scenario_id, agent)
        missing = tuple(key for key in keys if key not in reports)
        samples = tuple(reports[key] for key in keys if key in reports)
        if not missing:
            samples = raise_missed_goals(samples, plan.suite)
        yield ScenarioReport(
            scenario=run.scenario(scenario_id),
            agent=agent,
            rules=scenario_rules,
            samples=samples,
            missing=missing,
            aggregates=aggregates_of(samples),
        )


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
    "input_tokens": lambda t: 0 if (usage := t.usage).unsplit else usage.input_tokens,
    "output_tokens": lambda t: 0 if (usage := t.usage).unsplit else usage.output_tokens,
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
