"""Show the outcome of each scenario, its scores, and the three dimensions."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from agenteval.core.decision import Decision
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import Aggregate, ScenarioReport, p95_is_highest
from agenteval.core.scenario import Category
from agenteval.core.score import Verdict
from agenteval.reporters.sections.gates import NO_FIGURE, format_value
from agenteval.reporters.sections.section import Cell, Section
from agenteval.reporters.words import score_cells
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import planned, scenario_decision
from agenteval.reporters.words.failure_rates import percentage
from agenteval.reporters.words.judge import second_opinions_text
from agenteval.reporters.words.row_groups import fold_rows
from agenteval.reporters.words.score_cells import NOT_APPLICABLE, ScoreColumn, is_scored, legend
from agenteval.verdict.report import Report

_MOST_AGGREGATES = 12
_LONGEST_NOTE = 200


def scenarios(facts: Facts) -> Iterator[Section]:
    """Yield a table with a row for each scenario, or nothing for a log without expectations, because its
    conversations cannot pass."""
    if facts.decision.is_reported or not facts.report.scenarios:
        return
    report, decision = fold_rows(facts.report, facts.decision)
    judged = {column.name for column in facts.columns}
    note = ("note",) if any((each.scenario.note or "").strip() for each in report.scenarios) else ()
    yield Section(
        "Scenarios",
        columns=("", "scenario", "agent", "category", *note, "samples passed", "scores"),
        rows=tuple(_cells(scenario, decision, judged, has_note=bool(note)) for scenario in report.scenarios),
        noun="scenario",
        named_by=2,
        can_be_short=True,
    )


def _cells(
    scenario: ScenarioReport, decision: Decision, judged: Collection[str], *, has_note: bool
) -> tuple[Cell, ...]:
    keys = [key for key, _ in planned(scenario)]
    passed = sum(key in decision.samples and decision.samples[key].verdict == "passed" for key in keys)
    measured = [
        f"{metric} {_aggregate(value)}"
        for metric, value in scenario.aggregates.items()
        if metric not in judged and value.n  # judged metrics have a table of their own
    ]
    return (
        scenario_decision(decision, scenario).verdict,
        scenario.scenario.id,
        scenario.agent,
        scenario.scenario.category.value,
        *([one_line(scenario.scenario.note or "", _LONGEST_NOTE)] if has_note else []),
        f"{passed}/{len(keys)}",
        ", ".join(measured[:_MOST_AGGREGATES]) or NO_FIGURE,
    )


def _aggregate(value: Aggregate) -> str:
    missing = f", {value.missing} missing" if value.missing else ""
    return f"{format_value(value.value)} (n={value.n}{missing})"


# ── scores ───────────────────────────────────────────────────────────────────────────────────────


def scores(facts: Facts) -> Iterator[Section]:
    """Yield a table with a column for each judged metric. Scenarios that did not pass come first. Yield
    nothing for a log without expectations if nothing was judged."""
    report, decision = facts.report, facts.decision
    if decision.is_reported and not any(any(sample.all_scores) for sample in report.samples):
        return
    rows = list(_score_rows(facts))
    columns = facts.columns
    used = [n for n, _ in enumerate(columns) if any(row.cells[n].text != NOT_APPLICABLE for row in rows)]
    if not used:
        return
    cells = [row.cells[n] for row in rows for n in used]
    notes = ("; ".join(legend(cells)), second_opinions_text(report))
    agent = ["agent"] if facts.report.has_several_agents else []
    yield Section(
        "Scores (uncalibrated)" if any(map(is_scored, cells)) else "Scores",
        columns=("", "scenario", *agent, *(_heading(columns[n]) for n in used)),
        rows=tuple((*row.head, *(format_score(row.cells[n]) for n in used)) for row in rows),
        notes=tuple(filter(None, notes)),
        noun="scenario",
        named_by=2,
    )


class _ScoreRow(NamedTuple):
    """The row for a scenario: its verdict and name, and a cell for each judged metric."""

    head: tuple[Cell, ...]
    cells: tuple[score_cells.ScoreCell, ...]


def _score_rows(facts: Facts) -> Iterator[_ScoreRow]:
    marks = score_cells.threshold_marks(facts.decision)
    verdicts = [(each, scenario_decision(facts.decision, each).verdict) for each in facts.report.scenarios]
    for scenario, verdict in sorted(verdicts, key=lambda pair: -pair[1].rank):
        agent = [scenario.agent] if facts.report.has_several_agents else []
        cells = score_cells.scenario_cells(scenario, facts.columns, facts.report, marks)
        yield _ScoreRow((verdict, scenario.scenario.id, *agent), cells)


def _heading(column: ScoreColumn) -> str:
    return one_line(column.name, 60).replace("_", " ") or "?"


_THRESHOLD_MARKS = {Verdict.PASSED: "✓", Verdict.FAILED: "✗", Verdict.INCONCLUSIVE: "?"}


def format_score(cell: score_cells.ScoreCell) -> str:
    """Format the scores of a scenario with their marks, which ``legend`` explains."""
    parts = (
        cell.text + ("ˢ" if cell.scripted else ""),
        _THRESHOLD_MARKS[cell.verdict] if cell.verdict and is_scored(cell) else "",
        f"!{cell.missing}" if cell.missing else "",
        f"~{cell.open}" if cell.open else "",
    )
    return " ".join(filter(None, parts))


# ── dimensions ───────────────────────────────────────────────────────────────────────────────────


_RATES = {
    "robustness_pass": "Pass rate",
    "tool_accuracy": "Tool call accuracy",
    "task_completion": "Task completion rate",
    "checks_passed": "All checks passed",
    "tool_calls": "Tool calls as expected",
    "output": "Output as expected",
}
_SPREADS = {
    "steps": "Avg steps per task",
    "tool_calls": "Avg tool calls per task",
    "tokens": "Avg tokens per task",
    "input_tokens": "Avg tokens in per task",
    "output_tokens": "Avg tokens out per task",
    "latency_ms": "Avg latency ms",
}


def dimensions(facts: Facts) -> Iterator[Section]:
    """Yield a summary table of the measurements in each dimension. If the run has several agents, their rows
    for the same measurement are adjacent."""
    report, several = facts.report, facts.report.has_several_agents
    agents = ["Agent"] if several else []
    numbers = ("Value", "Median", "p95", "n")
    measures = [each for agent in report.dimensions for each in _measures(report, agent)]
    order = list(dict.fromkeys(each[:2] for each in measures))
    rows = [
        (category.value.capitalize(), measure, *([one_line(agent, 60)] if several else []), *figures)
        for category, measure, agent, figures in sorted(measures, key=lambda each: order.index(each[:2]))
    ]
    is_estimated = any(estimates_of(report, *place) for place in {(each[0], each[2]) for each in measures})
    if rows:
        yield Section(
            "Summary",
            columns=("Dimension", "Metric", *agents, *numbers),
            rows=tuple(rows),
            notes=("≈ estimated: not every reply reported its usage",) if is_estimated else (),
            named_by=2 + several,
            numbers=numbers,
        )


def _measures(report: Report, agent: str) -> Iterator[tuple[Category, str, str, tuple[str, str, str, str]]]:
    """Yield the category, the name, the agent and the formatted values of each measurement."""
    for dimension in report.dimensions[agent]:
        for name, metric in _RATES.items():
            if name in dimension.rates and (
                name != "robustness_pass" or dimension.category is Category.ROBUSTNESS
            ):
                rate = dimension.rates[name]
                share = NO_FIGURE if rate.value is None else percentage(rate.value)
                yield dimension.category, metric, agent, (share, "", "", f"{rate.n:,}")
        for name, metric in _SPREADS.items():
            if (spread := dimension.spreads.get(name)) is None:
                continue
            about = estimates_of(report, dimension.category, agent) if name.endswith("tokens") else ""
            most = f"{'max ' if p95_is_highest(spread.n) else ''}{format_value(spread.p95)}"
            figures = (
                f"{about}{format_value(spread.mean)}",
                f"{about}{format_value(spread.p50)}",
                f"{about}{most}",
            )
            yield dimension.category, metric, agent, (*figures, f"{spread.n:,}")


def estimates_of(report: Report, category: Category, agent: str) -> str:
    """Return ``≈`` if any of the agent's token counts in the category are estimated; otherwise, return an
    empty string."""
    is_estimated = any(
        sample.trajectory.usage.estimated
        for scenario in report.scenarios
        if scenario.agent == agent and scenario.scenario.category is category
        for sample in scenario.samples
    )
    return "≈" if is_estimated else ""
