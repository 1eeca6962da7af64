"""List what the agents made of the faults of their tools (``run --faults``)."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.tool_faults import FAILING_OUTCOMES, FaultOutcome
from agenteval.reporters.sections.section import Cell, Section, StyledText, Tone
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.fault_table import FaultRow, fault_rows

_SHOWN = (
    FaultOutcome.HONEST,
    FaultOutcome.GAVE_UP,
    FaultOutcome.NOT_NOTICED,
    FaultOutcome.MADE_UP,
    FaultOutcome.LOOPED,
    FaultOutcome.OBEYED,
    FaultOutcome.BROKE,
    FaultOutcome.UNDECIDED,
)
"""The outcomes with a column of their own, unless it would be empty."""


def faults(facts: Facts) -> Iterator[Section]:
    """Yield the table of faults, or nothing if the run had none."""
    rows = fault_rows(facts.report, facts.decision)
    if not rows:
        return
    several = facts.report.has_several_agents
    reached = [row for row in rows if row.reached]
    shown = [outcome for outcome in _SHOWN if any(row.outcomes[outcome] for row in reached)]
    numbers = ("reached", "recovered", *map(str, shown))
    yield Section(
        "Faults of tools",
        columns=(*(("agent",) if several else ()), "tool", "fault", *numbers, "recovery"),
        rows=tuple(_cells(row, shown, several=several) for row in reached),
        notes=tuple(_notes(rows)),
        numbers=numbers,
        noun="fault",
        named_by=3 if several else 2,
    )


def _cells(row: FaultRow, shown: list[FaultOutcome], *, several: bool) -> tuple[Cell, ...]:
    names = (row.agent, row.tool, row.fault) if several else (row.tool, row.fault)
    counts = (_count(row, outcome) for outcome in shown)
    reached = f"{row.reached}/{row.conversations}"
    recovered = str(row.outcomes[FaultOutcome.RECOVERED])
    return (*(one_line(name, 60) for name in names), reached, recovered, *counts, _recovery(row))


def _count(row: FaultRow, outcome: FaultOutcome) -> Cell:
    count = row.outcomes[outcome]
    if not count:
        return ""
    if outcome in FAILING_OUTCOMES:
        return StyledText(str(count), Tone.BAD)
    return StyledText(str(count), Tone.OPEN) if outcome is FaultOutcome.UNDECIDED else str(count)


def _recovery(row: FaultRow) -> str:
    if row.recovery is None:
        return "–"
    return f"{row.recovery:.0%} of {row.compared} [{row.low:.0%}–{row.high:.0%}]"


def _notes(rows: tuple[FaultRow, ...]) -> Iterator[str]:
    if any(row.reached for row in rows):
        yield "Recovery: the share of those that passed without the fault, with its 95% interval"
    unreached = [row for row in rows if not row.reached]
    if unreached:
        names = ", ".join(dict.fromkeys(f"{row.fault}.{row.tool}" for row in unreached[:5]))
        more = f" and {len(unreached) - 5} more" if len(unreached) > 5 else ""
        count = f"{plural(len(unreached), 'fault')} of {len(rows)}"
        yield f"{count} never reached, which says nothing: {names}{more}"
