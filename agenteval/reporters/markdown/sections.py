"""Render a section of the report as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.plurals import plural
from agenteval.core.safe_text import escape_markdown, one_line_message
from agenteval.core.score import Verdict
from agenteval.reporters.markdown.table import MARKS, ReportExtent, more_line, table
from agenteval.reporters.sections.remarks import caveats
from agenteval.reporters.sections.section import Cell, Item, LocationCell, Section, StyledText, Tone, has_text
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.places import shown_place

_NOTE = 1000
"""The maximum number of characters shown for each note."""


def section_to_markdown(section: Section, extent: ReportExtent, root: str = ".") -> Iterator[str]:
    """Yield the title, the table, and a list of the notes."""
    is_short = section.can_be_short and not extent.passed
    rows = [row for row in section.rows if not is_short or row[0] is not Verdict.PASSED]
    yield f"{'#' * section.level} {escape_markdown(section.title)}"
    if rows:
        cells = ([text_of(cell, root) for cell in row] for row in rows[: extent.rows])
        yield table([escape_markdown(title) for title in section.columns], cells)
    passed = len(section.rows) - len(rows)
    yield from filter(None, [more_line(len(rows) - extent.rows, section.noun)])
    yield from [f"{plural(passed, section.noun)} passed."] if passed else []
    has_items = any(isinstance(note, Item) for note in section.notes)
    most = extent.failures if has_items else extent.rows
    if section.notes:
        yield "\n".join(line for note in section.notes[:most] for line in _note_lines(note))
    yield from filter(None, [more_line(len(section.notes) - most, "line")])


def _note_lines(note: str | StyledText | Item) -> Iterator[str]:
    if isinstance(note, Item):
        yield f"- {''.join(map(_emphasized, note.head)).strip()}"
        yield from (f"  - {_plain(line)}" for line in filter(has_text, note.below))
    else:
        yield f"- {_plain(note)}"


def _plain(text: str | StyledText) -> str:
    return escape_markdown(one_line_message(text_of(text), _NOTE))


def _emphasized(span: str | StyledText) -> str:
    """Format text in bold if its tone requires emphasis. Leading and trailing spaces are placed outside the
    bold markup."""
    is_bold = isinstance(span, StyledText) and span.tone in (Tone.STRONG, Tone.BAD, Tone.WORST)
    text, sign = text_of(span), "**" if is_bold else ""
    before, after = " " if text[:1].isspace() else "", " " if text[-1:].isspace() else ""
    return f"{before}{sign}{_plain(span)}{sign}{after}"


def caveats_to_markdown(facts: Facts) -> Iterator[str]:
    """Yield a paragraph for each remark that must accompany the verdict."""
    for label, text in caveats(facts):
        yield f"**{label.capitalize()}**: {escape_markdown(text)}."


def text_of(cell: Cell, root: str = ".") -> str:
    match cell:
        case Verdict():
            return MARKS[cell]
        case LocationCell():
            return shown_place(cell.where, root)
        case StyledText():
            return cell.text
    return cell
