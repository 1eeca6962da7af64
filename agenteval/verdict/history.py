"""Summarize the runs of a suite over time (trend, run history): one point for each run. Pure.

An unknown number is ``None`` and never 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import fsum

from agenteval.core.decision import Decision
from agenteval.core.run_summary import RunSummary, ScenarioSummary
from agenteval.core.sample_report import SampleReport, ScenarioReport, Spread, spread_of
from agenteval.core.score import Verdict
from agenteval.verdict.ledger import total_cost
from agenteval.verdict.report import Report
from agenteval.verdict.resource_usage import known_measure
from agenteval.verdict.statistics import Interval, Tally, wilson
from agenteval.verdict.thresholds import NOT_THE_AGENTS


@dataclass(frozen=True)
class MetricMean:
    """The mean of a judged metric. For labels, it is the share of conversations or turns without a
    failure."""

    metric: str
    short: str
    """The short name of the metric; empty if it has none."""
    value: float
    """The mean over the scenarios, each of which has the same weight."""
    n: int
    """The number of conversations that have a score."""


@dataclass(frozen=True)
class AgentFigures:
    """The results of one agent in one run."""

    agent: str
    passed: int
    """The number of scenarios that passed."""
    failed: int
    inconclusive: int
    tally: Tally
    """The number of conversations that succeeded, that were decided, and that were planned. A conversation
    succeeds if it passed and its goal, if judged, was completed."""
    interval: Interval
    """The 95% score interval of the rate of success (Wilson 1927), for display only."""
    means: tuple[MetricMean, ...] = ()
    latency_ms: Spread | None = None
    """The latency of a conversation to whose end the agent answered, or ``None`` if the latency of any of
    these is unknown. The same applies to ``tokens`` and ``cost``, which are those of the agent alone."""
    tokens: Spread | None = None
    cost: Spread | None = None
    """The cost in US dollars."""

    @property
    def scenarios(self) -> int:
        return self.passed + self.failed + self.inconclusive

    @property
    def rate(self) -> float | None:
        """The share of the decided conversations that succeeded, or ``None`` if none was decided."""
        return None if self.tally.rate is None else float(self.tally.rate)


@dataclass(frozen=True)
class HistoryPoint:
    """One run of the suite."""

    run_id: str
    started_at: str
    """The start time, in ISO 8601 format (UTC)."""
    commit: str
    """The commit of the repository, or an empty string if unknown."""
    dirty: bool
    """True if files had been changed since the commit."""
    verdict: str
    """The verdict as shown to readers."""
    exit_code: int
    outcome: str | None
    """How the run ended, such as ``complete`` or ``budget``; ``None`` if the run was cut off."""
    agents: tuple[AgentFigures, ...]
    judges: tuple[str, ...] = ()
    """The models that judged. ``users`` are the models that simulated the user."""
    users: tuple[str, ...] = ()
    scripted: bool = False
    """True if any reply came from the scripted model."""
    cost: float | None = None
    """The cost of the entire run in US dollars, or ``None`` if any part of it is unknown."""
    tokens: int | None = None
    """The tokens of the entire run, or ``None`` if any part of them is unknown."""
    estimated: bool = False
    """True if any part of the tokens and of the cost was not reported by a provider."""
    elapsed_s: float | None = None
    """The duration, or ``None`` if the run was cut off."""
    changes: tuple[str, ...] = ()
    """The changes since the preceding run that make the two runs not comparable. Empty for the first run."""

    @property
    def is_complete(self) -> bool:
        return self.outcome == "complete"

    @property
    def short_commit(self) -> str:
        return self.commit[:12]


class LeftOutReason(StrEnum):
    """The reason why a stored run is no point of the history."""

    SELECTION = "a selection of the scenarios"
    SCORE = "scores of recorded conversations"
    OTHER_SUITE = "another configuration or profile"
    GIVEN_SCENARIOS = "scenarios that were given in Python"
    IN_PROGRESS = "still in progress"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class LeftOutRuns:
    """The stored runs that are no points of the history for the same reason."""

    reason: LeftOutReason
    run_ids: tuple[str, ...]
    """The ids of the runs, oldest first."""
    details: tuple[str, ...] = ()
    """Why runs cannot be read, or which configurations and profiles they have; each once, newest first."""


@dataclass(frozen=True)
class RunHistory:
    """The latest runs of a suite."""

    points: tuple[HistoryPoint, ...]
    """The runs, oldest first."""
    left_out: tuple[LeftOutRuns, ...] = ()
    older: int = 0
    """The number of older runs that were not read, because enough newer runs were found."""
    config: str = ""
    """The name of the configuration file; empty if there is none."""
    profile: str = ""
    """The profile of the configuration; empty if none was selected."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents of all runs, in the order in which they first occur."""
        return tuple(dict.fromkeys(each.agent for point in self.points for each in point.agents))


def point_of(report: Report, decision: Decision, summary: RunSummary) -> HistoryPoint:
    """Return the point of a run. ``summary`` is the summary of the same run."""
    run = report.run
    answered = list(_answered(report, decision))
    return HistoryPoint(
        run_id=run.run_id,
        started_at=run.started_at,
        commit=run.commit,
        dirty=run.dirty,
        verdict=decision.verdict_label,
        exit_code=decision.exit_code,
        outcome=report.finished.outcome if report.finished else None,
        agents=tuple(_agent_figures(agent, report, summary, answered) for agent in summary.agents),
        judges=summary.judged_by,
        users=summary.played_by,
        scripted=report.scripted,
        cost=_total_cost(report, answered),
        tokens=_total_tokens(report, answered),
        estimated=any(line.usage.estimated for line in report.ledger),
        elapsed_s=report.finished.elapsed_s if report.finished else None,
    )


_Answered = tuple[ScenarioReport, SampleReport]


def _answered(report: Report, decision: Decision) -> Iterator[_Answered]:
    """Yield the conversations to whose end the agent answered, each with its scenario."""
    for scenario in report.scenarios:
        for sample in scenario.samples:
            is_answered = sample.stop is not None and sample.stop.fault is None
            if is_answered and decision.samples[sample.key].fault not in NOT_THE_AGENTS:
                yield scenario, sample


def _agent_figures(
    agent: str, report: Report, summary: RunSummary, answered: Iterable[_Answered]
) -> AgentFigures:
    scenarios = [each for each in summary.scenarios if each.agent == agent]
    own = [(scenario, sample) for scenario, sample in answered if scenario.agent == agent]
    verdicts = Counter(each.verdict for each in scenarios)
    successes, decided, planned = (
        sum(getattr(each, name) for each in scenarios) for name in ("successes", "decided", "planned")
    )
    return AgentFigures(
        agent=agent,
        passed=verdicts[Verdict.PASSED],
        failed=verdicts[Verdict.FAILED],
        inconclusive=verdicts[Verdict.INCONCLUSIVE],
        tally=Tally(successes, decided, planned),
        interval=wilson(successes, decided),
        means=tuple(_means(scenarios, {spec.name: spec.short for spec in report.plan.suite.metrics})),
        latency_ms=_spread("latency_ms", own, report),
        tokens=_spread("tokens", own, report),
        cost=_spread("cost", own, report),
    )


def _means(scenarios: Iterable[ScenarioSummary], short: Mapping[str, str]) -> Iterator[MetricMean]:
    """Yield the mean of each metric, in the order of the known metrics, followed by all others."""
    values: dict[str, list[tuple[float, ...]]] = {name: [] for name in short}
    for scenario in scenarios:
        for metric, scores in scenario.scores.items():
            values.setdefault(metric, []).append(scores)
    for metric, found in values.items():
        if found:
            mean = fsum(fsum(scores) / len(scores) for scores in found) / len(found)
            yield MetricMean(metric, short.get(metric, ""), mean, sum(map(len, found)))


def _spread(measure: str, answered: Iterable[_Answered], report: Report) -> Spread | None:
    """Return the spread of a measure over the conversations, or ``None`` if any value is unknown, because the
    known conversations might be the cheap ones."""
    values = [known_measure(measure, sample, each.scenario, report.plan) for each, sample in answered]
    known = [value for value in values if value is not None]
    return spread_of(known) if known and len(known) == len(values) else None


def _total_cost(report: Report, answered: Iterable[_Answered]) -> float | None:
    cost = total_cost(report.ledger)
    return cost.known if cost.is_fully_known and _spread("cost", answered, report) else None


def _total_tokens(report: Report, answered: Iterable[_Answered]) -> int | None:
    # The scripted model uses no tokens.
    lines = [line for line in report.ledger if not line.name.startswith("scripted/")]
    counts = [line.usage.reported_tokens for line in lines]
    known = [count for count in counts if count is not None]
    is_known = len(known) == len(counts) and _spread("tokens", answered, report) is not None
    return sum(known) if is_known else None
