"""Build the rows of the page's list: one for each scenario with each agent, those that did not pass first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import isfinite
from typing import Any

from agenteval.core.decision import Decision, SampleDecision, Violation
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Finding, Verdict
from agenteval.reporters.sections.scenarios import format_score
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import (
    NEVER_RAN,
    NONE_PASSED,
    SOME_FAILED,
    planned,
    scenario_decision,
    scenario_violations,
)
from agenteval.reporters.words.issue import IssueText, by_scenario
from agenteval.reporters.words.places import shown_place, shown_places
from agenteval.reporters.words.score_cells import (
    ScoreCell,
    ScoreColumn,
    is_scored,
    scenario_cells,
    threshold_marks,
)

MOST_COLUMNS = 4
"""The maximum number of score columns in the list."""
_LONGEST_REASON = 300


@dataclass(frozen=True)
class ListedEpoch:
    """A planned sample of a scenario."""

    key: SampleKey
    sample: SampleReport | None
    """The sample; ``None`` if it never ran."""
    decided: SampleDecision

    @property
    def is_fine(self) -> bool:
        """True if the sample passed without a finding or an accepted failure."""
        has_finding = self.sample is not None and bool(self.sample.findings)
        return self.decided.verdict is Verdict.PASSED and not self.decided.accepted and not has_finding


@dataclass(frozen=True)
class ListedScenario:
    """A row of the list."""

    report: ScenarioReport
    verdict: Verdict
    epochs: tuple[ListedEpoch, ...]
    reason: str
    """The first reason why the scenario did not pass, or its worst finding; empty if there is neither."""
    issues: tuple[str, ...]
    """The ids of the issues that occur in the scenario."""
    cells: tuple[ScoreCell, ...]
    where: str
    state: str
    """The verdict of the scenario; ``tolerated`` if it passed although conversations failed, and ``reported``
    for a conversation of a log without expectations, which cannot pass."""
    violations: tuple[Violation, ...] = ()
    """The violations of rules about all conversations of the scenario."""

    @property
    def is_flaky(self) -> bool:
        """True if some conversations passed and others failed."""
        found = {each.decided.verdict for each in self.epochs}
        return {Verdict.PASSED, Verdict.FAILED} <= found

    @property
    def is_accepted(self) -> bool:
        """True if the accept list covers a failure of the scenario."""
        return any(each.decided.accepted for each in self.epochs)

    @property
    def states(self) -> tuple[str, ...]:
        """The words by which the list can be filtered."""
        flags = {
            "flaky": self.is_flaky,
            "accepted": self.is_accepted,
            "finding": self.worst is not None,
            "partly-read": self.is_partly_read,
        }
        return (self.state, *(word for word, holds in flags.items() if holds))

    @property
    def is_partly_read(self) -> bool:
        """True if a part of the record was not recognized."""
        samples = (each.sample for each in self.epochs if each.sample)
        return any(turn.turn.unplaced for sample in samples for turn in sample.turns)

    @property
    def findings(self) -> Iterator[Finding]:
        return chain.from_iterable(each.sample.findings for each in self.epochs if each.sample)

    @property
    def worst(self) -> Finding | None:
        """The first of the worst findings."""
        return max(self.findings, key=lambda finding: finding.severity.rank, default=None)


def scenario_rows(facts: Facts, texts: Sequence[IssueText], root: str) -> list[ListedScenario]:
    """Return a row for each scenario with each agent: failed, inconclusive, flaky and accepted scenarios come
    before those that passed. ``texts`` are the issues of the run."""
    report, decision = facts.report, facts.decision
    marks = threshold_marks(decision)
    reasons = _first_reasons(facts)
    issues = by_scenario(texts)
    rows = [
        ListedScenario(
            report=each,
            verdict=scenario_decision(decision, each).verdict,
            epochs=tuple(_epochs(each, decision)),
            reason=_reason(each, reasons),
            issues=tuple(text.issue.id for text in issues.get((each.scenario.id, each.agent), ())),
            cells=scenario_cells(each, facts.columns, report, marks),
            where=shown_places((each.scenario.where(), each.scenario.row), root),
            state=_state(each, facts),
            violations=tuple(
                replace(broken, where=shown_place(broken.where, root) if broken.where else "")
                for broken in scenario_violations(each, decision)
            ),
        )
        for each in report.scenarios
    ]
    return sorted(rows, key=_rank)


def _rank(row: ListedScenario) -> tuple[int, bool, bool, int]:
    worst = row.worst
    return -row.verdict.rank, not row.is_flaky, not row.is_accepted, -(worst.severity.rank if worst else -1)


def _epochs(scenario: ScenarioReport, decision: Decision) -> Iterator[ListedEpoch]:
    for key, sample in planned(scenario):
        yield ListedEpoch(key, sample, decision.samples.get(key, NEVER_RAN))


def _state(scenario: ScenarioReport, facts: Facts) -> str:
    verdict = scenario_decision(facts.decision, scenario).verdict
    if verdict is not Verdict.PASSED:
        return verdict.value
    if facts.decision.is_reported:
        return "reported"
    outcome = facts.outcomes[scenario.scenario.id, scenario.agent]
    return "tolerated" if outcome in (SOME_FAILED, NONE_PASSED) else verdict.value


def _reason(scenario: ScenarioReport, reasons: Mapping[tuple[str, str], str]) -> str:
    if scenario.missing and not scenario.samples:
        return "never ran"
    return reasons.get((scenario.scenario.id, scenario.agent)) or _worst_explanation(scenario)


def _worst_explanation(scenario: ScenarioReport) -> str:
    findings = (finding for sample in scenario.samples for finding in sample.findings)
    worst = max(findings, key=lambda finding: finding.severity.rank, default=None)
    return one_line(worst.explanation, _LONGEST_REASON) if worst else ""


def _first_reasons(facts: Facts) -> dict[tuple[str, str], str]:
    """Return the first reason of each scenario. Reasons that count take precedence over tolerated ones."""
    reasons: dict[tuple[str, str], str] = {}
    for failure in chain(chain.from_iterable(facts.decisive), facts.failures):
        reasons.setdefault((failure.scenario, failure.agent), failure.rules[0].gist)
    return reasons


def listed_columns(rows: Sequence[ListedScenario], columns: Sequence[ScoreColumn]) -> list[int]:
    """Return the indexes of the metrics that are columns of the list: those with a threshold or, if there is
    no threshold, the first ones that were judged."""
    used = [n for n, _ in enumerate(columns) if any(is_scored(row.cells[n]) for row in rows)]
    gating = [n for n in used if any(row.cells[n].verdict for row in rows)]
    return (gating or used)[:MOST_COLUMNS]


def row_to_json(
    row: ListedScenario, columns: Sequence[int], places: Mapping[SampleKey, tuple[int, int]]
) -> dict[str, Any]:
    """Return a row as the script of the page reads it. ``columns`` are the indexes of the listed metrics.
    ``places`` maps a sample to its block and its line there; samples whose conversation is not in the page
    are missing. Fields without content are omitted."""
    spec, samples = row.report.scenario, [each.sample for each in row.epochs if each.sample]
    costs = [sample.trajectory.usage.cost for sample in samples]
    times = [ms for sample in samples if isfinite(ms := sample.trajectory.latency_ms) and ms]
    tools = dict.fromkeys(call.name for sample in samples for call in sample.trajectory.tool_calls)
    worst = row.worst
    means = {name: each.value for name, each in row.report.aggregates.items()}
    fields = {
        "id": spec.id,
        "agent": row.report.agent,
        "is": list(row.states),
        "reason": row.reason[:_LONGEST_REASON],
        "name": spec.name if spec.name != spec.id else "",
        "tags": list(spec.tags),
        "category": spec.category.value,
        "where": row.where,
        "tools": list(tools),
        "issues": list(row.issues),
        "severity": str(worst.severity) if worst else "",
        "scores": [format_score(row.cells[n]) for n in columns],
        "values": {name: mean for name, mean in means.items() if mean is not None and isfinite(mean)},
        "rules": [
            {"name": each.name, "detail": each.detail, "where": each.where, "verdict": each.verdict.value}
            for each in row.violations
        ],
        "cost": sum(filter(None, costs)) if costs and None not in costs and any(costs) else None,
        "ms": round(sum(times) / len(times)) if times else None,
        "epochs": [_epoch(each, places.get(each.key)) for each in row.epochs],
    }
    return {name: value for name, value in fields.items() if value not in ("", [], {}, None)}


def _epoch(epoch: ListedEpoch, place: tuple[int, int] | None) -> list[Any]:
    """Return the epoch, the variant, the verdict, and the place of the conversation if it is in the page."""
    return [epoch.key.epoch, epoch.key.variant, epoch.decided.verdict.value, *(place or ())]
