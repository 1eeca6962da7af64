"""The scores of a Markdown report."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.decision import Decision
from agenteval.core.safe_text import markdown, one_line
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.score import Verdict
from agenteval.reporters.markdown.table import MARKS, Extent, more, table
from agenteval.reporters.words.failure import scenario_decision
from agenteval.reporters.words.judge import second_opinions_text
from agenteval.reporters.words.score_cells import (
    NOT_APPLICABLE,
    Cell,
    Column,
    columns,
    is_scored,
    legend,
    scenario_cells,
    threshold_marks,
)
from agenteval.verdict.report import Report

_THRESHOLD_MARKS = {Verdict.PASSED: "✓", Verdict.FAILED: "✗", Verdict.INCONCLUSIVE: "?"}


def scores(report: Report, decision: Decision, extent: Extent) -> Iterator[str]:
    """A table of all scenarios with a column for each judged metric; those that did not pass first."""
    known = columns(report)
    if not known:
        return
    marks = threshold_marks(decision)
    ranked = sorted(report.scenarios, key=lambda s: -_rank(s, decision))
    rows = [(s, scenario_cells(s, known, report, marks)) for s in ranked[: extent.rows]]
    used = [n for n, _ in enumerate(known) if any(cells[n].text != NOT_APPLICABLE for _, cells in rows)]
    if not used:
        return
    told = [cells[n] for _, cells in rows for n in used]
    yield "## Scores (uncalibrated)" if any(map(is_scored, told)) else "## Scores"
    several = len({scenario.agent for scenario in report.scenarios}) > 1
    head = ["", "scenario", *(["agent"] if several else []), *(markdown(_heading(known[n])) for n in used)]
    lines = (
        [
            MARKS[scenario_decision(decision, scenario).verdict],
            scenario.scenario.id,
            *([scenario.agent] if several else []),
            *(_cell(cells[n]) for n in used),
        ]
        for scenario, cells in rows
    )
    yield table(head, lines)
    yield from filter(None, [more(len(ranked) - extent.rows, "scenario")])
    if words := "; ".join(legend(told)):
        yield f"{markdown(words)}."
    if again := second_opinions_text(report):
        yield f"Judges: {markdown(again)}."


def _rank(scenario: ScenarioReport, decision: Decision) -> int:
    return list(Verdict).index(scenario_decision(decision, scenario).verdict)


def _heading(column: Column) -> str:
    return one_line(column.name, 60).replace("_", " ") or "?"


def _cell(cell: Cell) -> str:
    text = cell.text + ("ˢ" if cell.scripted else "")
    text += f" {_THRESHOLD_MARKS[cell.verdict]}" if cell.verdict and is_scored(cell) else ""
    text += f" !{cell.missing}" if cell.missing else ""
    return f"{text} ~{cell.open}" if cell.open else text
