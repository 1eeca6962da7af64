"""Show a section of the report in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.section import Cell, Item, LocationCell, Section, StyledText, Tone, has_text
from agenteval.reporters.terminal.cells import UNDECIDED_STYLE, clean_text, heading, indented, mark
from agenteval.reporters.terminal.fitting_table import FittingTable
from agenteval.reporters.words.places import shown_place

MOST_ROWS = 30
"""The maximum number of rows shown in each table, unless the report is verbose."""
STYLES = {
    Tone.STRONG: "bold",
    Tone.QUIET: "dim",
    Tone.OPEN: UNDECIDED_STYLE,
    Tone.BAD: "red",
    Tone.WORST: "bold red",
}


def fitting_table(section: Section, rows: Sequence[Sequence[Text]], options: ReportOptions) -> RenderableType:
    return FittingTable(section.columns, rows, head=section.named_by, numbers=section.numbers)


def render_section(
    section: Section,
    options: ReportOptions,
    table: Callable[[Section, Sequence[Sequence[Text]], ReportOptions], RenderableType] = fitting_table,
) -> Iterator[RenderableType]:
    """Yield the title, the table fitted to the available width, and the notes."""
    yield heading(section.title)
    rows = section.rows if options.verbose else section.rows[:MOST_ROWS]
    if rows:
        yield indented(table(section, [[text_of(cell, options) for cell in row] for row in rows], options))
    if left := len(section.rows) - len(rows):
        yield indented(Text(f"… and {left:,} more; -v lists them", style="dim"))
    for note in section.notes:
        head, below = note if isinstance(note, Item) else ((note,), ())
        yield indented(Text.assemble(*(text_of(span, options) for span in head)))
        yield from (Padding(text_of(line, options), (0, 0, 0, 4)) for line in filter(has_text, below))
    if section.rows or section.notes:
        yield Text()


def text_of(cell: Cell, options: ReportOptions) -> Text:
    match cell:
        case Verdict():
            return mark(cell)
        case LocationCell():
            return clean_text(shown_place(cell.where, options.root), "dim")
        case StyledText():
            return clean_text(cell.text, STYLES[cell.tone] if cell.tone else "")
    return clean_text(cell)
