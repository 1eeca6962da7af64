"""Group the data rows of a scenario, so that a report contains one line instead of hundreds of lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import NamedTuple, TypeAlias

from agenteval.core.decision import Decision, ScenarioDecision
from agenteval.core.plurals import plural
from agenteval.core.sample_report import ScenarioReport, aggregates_of
from agenteval.core.score import Verdict
from agenteval.reporters.words.failure import ReportedFailure, scenario_decision
from agenteval.verdict.report import Report

TemplateKey: TypeAlias = tuple[str, str, str]
"""A key that consists of a scenario as written by its author and an agent. All data rows of the scenario have
the same key."""


class RowGroup(NamedTuple):
    """Data rows of a scenario that broke the same rules."""

    rows: tuple[tuple[ReportedFailure, ...], ...]
    """The failures of each data row."""
    count_text: str
    """The size of the group, such as ``3 of 50 rows``; empty if the scenario has only one data row."""


def template_key(scenario: ScenarioReport) -> TemplateKey:
    spec = scenario.scenario
    return (spec.source, spec.pattern, scenario.agent) if spec.pattern else ("", spec.id, scenario.agent)


def fold_failures(
    groups: Iterable[tuple[ReportedFailure, ...]], scenarios: Iterable[ScenarioReport]
) -> list[RowGroup]:
    """Group the data rows of a scenario that broke the same rules. The groups are in the order of their first
    rows. ``scenarios`` must contain all scenarios of the report."""
    all_rows = Counter(map(template_key, scenarios))
    grouped: dict[tuple[TemplateKey, object], list[tuple[ReportedFailure, ...]]] = {}
    for group in groups:
        broken = group[0].verdict, broken_rule_keys(group)
        grouped.setdefault((template_key(group[0].scenario_report), broken), []).append(group)
    return [
        RowGroup(tuple(rows), _count_text(len(rows), all_rows[scenario]))
        for (scenario, _), rows in grouped.items()
    ]


def broken_rule_keys(group: Iterable[ReportedFailure]) -> frozenset[tuple[bool, str, int | None]]:
    """Return a key for each broken rule. The key consists of a flag for a rule about the whole scenario, the
    name of the rule, and the turn."""
    return frozenset((each.key is None, v.name, v.turn) for each in group for v in each.violations)


def _count_text(rows: int, total: int) -> str:
    return f"{rows:,} of {plural(total, 'row')}" if total > 1 else ""


def fold_rows(report: Report, decision: Decision) -> tuple[Report, Decision]:
    """Merge the data rows of each scenario into a single table row. The merged scenario contains the
    conversations, scores and rules of all data rows, and has the worst of their verdicts."""
    groups: dict[TemplateKey, list[ScenarioReport]] = {}
    for scenario in report.scenarios:
        groups.setdefault(template_key(scenario), []).append(scenario)
    if len(groups) == len(report.scenarios):
        return report, decision
    names: dict[tuple[str, str], str] = {}
    scenarios, decided = [], dict(decision.scenarios)
    for rows in groups.values():
        if len(rows) > 1:
            folded = _fold(rows)
            names |= {(row.scenario.id, row.agent): folded.scenario.id for row in rows}
            decided[folded.scenario.id, folded.agent] = _worst(decision, rows)
            scenarios.append(folded)
        else:
            scenarios += rows
    return replace(report, scenarios=tuple(scenarios)), _renamed(decision, decided, names)


def _fold(rows: Sequence[ScenarioReport]) -> ScenarioReport:
    first = rows[0]
    samples = tuple(sample for row in rows for sample in row.samples)
    pattern = first.scenario.pattern
    if not any(map(str.isalnum, pattern)):  # id: "${row.id}" does not describe all rows
        pattern = f"{pattern} of {PurePath(first.scenario.source).name}"
    name = f"{pattern} ({plural(len(rows), 'row')})"
    return replace(
        first,
        scenario=first.scenario.model_copy(update={"id": name, "note": _shared_note(rows)}),
        samples=samples,
        missing=tuple(key for row in rows for key in row.missing),
        aggregates=aggregates_of(samples),
    )


def _shared_note(rows: Sequence[ScenarioReport]) -> str | None:
    """Return the note of all rows. If the notes differ, return their number."""
    notes = {row.scenario.note for row in rows}
    return notes.pop() if len(notes) == 1 else f"({plural(len(notes), 'different note')})"


def _worst(decision: Decision, rows: Sequence[ScenarioReport]) -> ScenarioDecision:
    of_rows = [scenario_decision(decision, row) for row in rows]
    worst = Verdict.worst(each.verdict for each in of_rows)
    return ScenarioDecision(worst, tuple(violation for each in of_rows for violation in each.violations))


def _renamed(
    decision: Decision,
    scenarios: Mapping[tuple[str, str], ScenarioDecision],
    names: Mapping[tuple[str, str], str],
) -> Decision:
    gates = tuple(
        replace(gate, scenario=names.get((gate.scenario, gate.agent), gate.scenario))
        for gate in decision.gates
    )
    return replace(decision, scenarios=scenarios, gates=gates)
