"""Show the failures in a log without scenarios, with their rates and with quotations and their locations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agenteval.core.plurals import plural
from agenteval.core.score import Severity
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import (
    NARROW,
    UNDECIDED_STYLE,
    clean_text,
    heading,
    truncate,
    wrap_lines,
)
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure_rates import (
    COLUMNS,
    HEAD,
    format_rate,
    quotation_place,
    quotation_text,
    rate_cells,
    unknown_lines,
)
from agenteval.verdict.failure_rates import FailureRate

MOST_ROWS = 30
_NUMBERS = ("conversations", "rate", "95 % interval")
_GAP = 2
_INDENT = 4
_STYLES = {Severity.CRITICAL: "red", Severity.HIGH: "red", None: "red"}


def failures_by_rate(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield the failure rates: a row with quotations for each combination of label and source. Yield nothing
    if the run has scenarios."""
    rates = facts.rates
    if rates is None:
        return
    yield Text()
    yield heading(f"{HEAD} in {plural(rates.conversations, 'conversation')}")
    rows = rates.rows[:MOST_ROWS]
    widths = _widths(rows, options.width)
    if not rows:
        yield Text("  no known kind of failure was found")
    for number, row in enumerate(rows):
        if widths:
            yield _line(row, widths, is_first=not number)
        else:
            yield from (Text(f"  {line}") for line in wrap_lines(format_rate(row), options.width - 2, 4))
        for quotation in row.quotations:
            place = Text(" " * _INDENT + quotation_place(quotation) + "  ", style="dim")
            room = options.width - place.cell_len
            text = quotation_text(quotation)
            if room >= _LEAST_ROOM:
                yield place.append(truncate(text, room).plain, style="not dim")
            else:
                yield place
                for line in wrap_lines(text, options.width - 2 * _INDENT, 2):
                    yield Text(" " * 2 * _INDENT).append_text(line)
    if len(rates.rows) > MOST_ROWS:
        yield Text(f"  … and {len(rates.rows) - MOST_ROWS:,} more; --report json lists all")
    for text in unknown_lines(rates):
        yield clean_text(f"  unknown: {text}", UNDECIDED_STYLE)
    yield Text()


_LEAST_ROOM = 60


def _widths(rows: Sequence[FailureRate], width: int) -> list[int] | None:
    """Return the width of each column, or ``None`` if there is not enough room for a table."""
    texts = [COLUMNS, *map(rate_cells, rows)]
    widths = [max(cell_len(text) for text in column) for column in zip(*texts, strict=True)]
    if width < NARROW or sum(widths) + _GAP * len(widths) > width:
        return None
    return widths


def _line(row: FailureRate, widths: Sequence[int], *, is_first: bool) -> Table:
    """Return a table with a single row. A separate table is needed because the quotations below the row span
    the full width of the screen."""
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim", show_header=is_first)
    for title, width in zip(COLUMNS, widths, strict=True):
        table.add_column(title, width=width, no_wrap=True, justify="right" if title in _NUMBERS else "left")
    severity, *others = rate_cells(row)
    style = _STYLES.get(row.severity, "")
    table.add_row(Text(severity, style=style), Text(others[0], style="bold"), *map(Text, others[1:]))
    return table
