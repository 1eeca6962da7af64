"""What gated a run, and what did not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from agenteval.core.decision import Decision, GateRow
from agenteval.core.figures import figure
from agenteval.core.safe_text import one_line
from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import (
    NOTHING,
    free_line,
    heading,
    indented,
    mark,
    plain_table,
    style_of,
)
from agenteval.reporters.words.places import shown_place
from agenteval.verdict.report import Report

WIDE = 70
"""Below so many columns each gate is a few lines instead of a row."""
VERY_WIDE = 110
"""From so many columns on, all of a gate fits into one row."""
_FIGURE_LIMIT = 16


def gates(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    """The rules that decided, broken ones first; then what was measured and decides nothing."""
    rows = sorted(decision.gates, key=lambda row: list(Verdict).index(row.verdict), reverse=True)
    if rows:
        yield heading("What gated this run")
        yield indented(_gate_table(rows, options) if options.width >= WIDE else _gate_lines(rows, options))
        yield Text()
    if decision.ungated:
        names = ", ".join(one_line(name, 80) for name in decision.ungated)
        yield Text("Judged or measured, but gates nothing")
        yield indented(Text(names))
        yield Text()


def _gate_table(rows: Sequence[GateRow], options: ReportOptions) -> RenderableType:
    """Where there is room for it, what a rule is based on and its place have columns of their own."""
    wide = options.width >= VERY_WIDE
    told = [figures(row) for row in rows]
    table = plain_table()
    table.add_column("", width=1)
    table.add_column("rule", overflow="fold", ratio=None if wide else 1)
    for title, index in (("value", 0), ("bound", 1)):
        longest = max(len(pair[index]) for pair in told)
        table.add_column(title, overflow="fold", width=max(5, min(longest, _FIGURE_LIMIT)))
    for title in ("based on", "where") if wide else ():
        table.add_column(title, overflow="fold")
    table.add_column("verdict", no_wrap=True, width=max(7, *(len(row.verdict) for row in rows)))
    for row, pair in zip(rows, told, strict=True):
        rule, basis = free_line(_rule(row), 200), _unlimited(row.basis)
        place = free_line(shown_place(row.where, options.root), 200, "dim")
        said = [rule, *_texts(pair), basis, place] if wide else [_stacked(rule, basis, place), *_texts(pair)]
        table.add_row(mark(row.verdict), *said, Text(row.verdict, style=style_of(row.verdict)))
    return table


def _texts(figures: tuple[str, str]) -> list[Text]:
    return [free_line(figure, 80) for figure in figures]


def _stacked(rule: Text, basis: Text, place: Text) -> Text:
    """The rule, and on a line below it what it is based on and where it is written."""
    details = Text("; ").join(part for part in (basis, place) if part)
    details.stylize("dim")
    return Text("\n").join([rule, details]) if details else rule


def _gate_lines(rows: Sequence[GateRow], options: ReportOptions) -> RenderableType:
    table = plain_table(show_header=False)
    table.add_column(width=1)
    table.add_column(overflow="fold")
    for row in rows:
        value, bound = figures(row)
        words = f"{_rule(row)}: {row.verdict}, value {value}, bound {bound}"
        details = "; ".join(part for part in (row.basis, shown_place(row.where, options.root)) if part)
        table.add_row(mark(row.verdict), _unlimited(f"{words} ({details})" if details else words))
    return table


def _unlimited(text: str) -> Text:
    """What a rule is based on says as well what would decide it."""
    return free_line(text, len(text))


def _rule(row: GateRow) -> str:
    place = " · ".join(part for part in (row.scenario, row.agent) if part)
    return f"{row.name} · {place}" if place else row.name


def figures(row: GateRow) -> tuple[str, str]:
    """Value and bound, with as many digits as it takes to tell the one from the other."""
    return _figure(row.value, row.bound), _figure(row.bound, row.value)


def _figure(value: float | str | None, other: float | str | None) -> str:
    if value is None:
        return NOTHING
    return value if isinstance(value, str) else figure(value, other)
