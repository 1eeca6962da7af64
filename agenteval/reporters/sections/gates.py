"""List the gates of a run, and the measurements that no gate uses."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.decision import GateRow
from agenteval.core.number_format import format_number
from agenteval.core.safe_text import one_line
from agenteval.reporters.sections.section import Cell, LocationCell, Section
from agenteval.reporters.words.facts import Facts

NO_FIGURE = "–"
COLUMNS = ("", "rule", "value", "bound", "based on", "where")


def gates(facts: Facts) -> Iterator[Section]:
    """Yield the section on gates (thresholds and other pass/fail rules). Gates that did not pass are listed
    first."""
    decision = facts.decision
    rows = sorted(decision.gates, key=lambda row: -row.verdict.rank)
    notes = [] if rows else ["No gate applied"]
    if decision.ungated:
        names = ", ".join(one_line(name, 80) for name in decision.ungated)
        notes.append(f"Judged or measured, but not gated: {names}")
    yield Section(
        "What gated this run",
        columns=COLUMNS,
        rows=tuple(map(gate_cells, rows)),
        notes=tuple(notes),
        noun="gate",
        can_be_short=True,
    )


def gate_cells(row: GateRow) -> tuple[Cell, ...]:
    """Return the verdict, the rule, the value, the bound, the basis and the location of a gate."""
    rule = " · ".join(filter(None, (row.name, row.scenario, row.agent)))
    # The basis includes what would decide the gate, so it is not cut here.
    return (
        row.verdict,
        one_line(rule, 200),
        *format_figures(row),
        one_line(row.basis, 10_000),
        LocationCell(row.where),
    )


def format_figures(row: GateRow) -> tuple[str, str]:
    """Format the value and the bound of a gate with enough digits to distinguish them."""
    return format_value(row.value, row.bound), format_value(row.bound, row.value)


def format_value(value: float | str | None, other: float | str | None = None) -> str:
    if value is None:
        return NO_FIGURE
    return one_line(value, 80) if isinstance(value, str) else format_number(value, other)
