"""A section for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.section import Cell, Item, Section, Tone
from agenteval.reporters.terminal.cells import UNDECIDED, free, heading, indented, mark
from agenteval.reporters.terminal.fitting import FittingTable

MOST_ROWS = 30
"""Of each table, unless the report is to be verbose."""
STYLES = {
    Tone.STRONG: "bold",
    Tone.QUIET: "dim",
    Tone.OPEN: UNDECIDED,
    Tone.BAD: "red",
    Tone.WORST: "bold red",
}


def printed(section: Section, options: ReportOptions) -> Iterator[RenderableType]:
    """The title, the table in the room that there is, and the notes."""
    yield heading(section.title)
    rows = section.rows if options.verbose else section.rows[:MOST_ROWS]
    if rows:
        cells = ([text_of(cell) for cell in row] for row in rows)
        yield indented(FittingTable(section.columns, cells, head=section.named_by))
    if left := len(section.rows) - len(rows):
        yield indented(Text(f"… and {left:,} more; -v lists them", style="dim"))
    for note in section.notes:
        head, below = note if isinstance(note, Item) else ((note,), ())
        yield indented(Text.assemble(*map(text_of, head)))
        yield from (Padding(text_of(line), (0, 0, 0, 4)) for line in below if text_of(line))
    if section.rows or section.notes:
        yield Text()


def text_of(cell: Cell) -> Text:
    if isinstance(cell, Verdict):
        return mark(cell)
    if isinstance(cell, str):
        return free(cell)
    return free(cell.text, STYLES[cell.tone] if cell.tone else "")
