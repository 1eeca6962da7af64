"""A section in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.safe_text import brief, markdown
from agenteval.core.score import Verdict
from agenteval.reporters.markdown.table import MARKS, more, table
from agenteval.reporters.sections.section import Cell, Section, Span

_NOTE = 1000
"""Characters of a note."""


def printed(section: Section, most: int) -> Iterator[str]:
    """The title, ``most`` rows of the table, and the notes as a list."""
    yield f"{'#' * section.level} {markdown(section.title)}"
    if section.rows:
        rows = ([text_of(cell) for cell in row] for row in section.rows[:most])
        yield table([markdown(title) for title in section.columns], rows)
    yield from filter(None, [more(len(section.rows) - most, "row")])
    if section.notes:
        yield "\n".join(f"- {markdown(brief(text_of(note), _NOTE))}" for note in section.notes)


def text_of(cell: Cell) -> str:
    if isinstance(cell, Verdict):
        return MARKS[cell]
    return cell.text if isinstance(cell, Span) else cell
