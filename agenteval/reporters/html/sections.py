"""Render a section of the report as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.core.plurals import plural
from agenteval.core.score import Verdict
from agenteval.reporters.html.markup import Markup, element, join
from agenteval.reporters.sections.section import Cell, Item, LocationCell, Section, StyledText, has_text
from agenteval.reporters.words.places import shown_place

MARKS = {Verdict.PASSED: "✓", Verdict.FAILED: "✗", Verdict.INCONCLUSIVE: "?"}
MOST_ROWS = 500
"""The maximum number of rows in a table and of notes below it."""


def section_to_html(section: Section, root: str = ".") -> Markup:
    """Return the title, the table, and a list of the notes. A verdict in the table is a mark only, because in
    a comparison it means better or worse."""
    parts: list[Markup] = [element(f"h{min(section.level + 1, 6)}", section.title)]
    if section.rows:
        parts.append(table(section.columns, section.rows[:MOST_ROWS], root=root, numbers=section.numbers))
        parts += rest(len(section.rows), MOST_ROWS, section.noun)
    if section.notes:
        parts.append(element("ul", *map(_note, section.notes[:MOST_ROWS]), class_="notes"))
        parts += rest(len(section.notes), MOST_ROWS, "line")
    return element("div", *parts, class_="section")


def rest(count: int, most: int, noun: str) -> Iterator[Markup]:
    """Yield how many of ``count`` things are not shown, if only ``most`` are."""
    if count > most:
        yield element("p", f"… and {plural(count - most, f'more {noun}')}", class_="quiet")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell | Markup]],
    *,
    root: str,
    numbers: Sequence[str] = (),
    words: bool = False,
) -> Markup:
    """Return a table, which scrolls on its own if it is wider than the window. The columns in ``numbers`` are
    right-aligned. If ``words`` is True, verdicts are also written out."""
    kinds = ["number" if title in numbers else None for title in columns]
    head = (
        element("th", title, scope="col", class_=kind) if title else element("td")
        for title, kind in zip(columns, kinds, strict=True)
    )
    body = (element("tr", _cells(row, kinds, root, words=words)) for row in rows)
    whole = element("table", element("thead", element("tr", head)), element("tbody", body))
    return element("div", whole, class_="wide", tabindex="0", role="group", aria_label=_label(columns))


def _cells(
    row: Sequence[Cell | Markup], kinds: Sequence[str | None], root: str, *, words: bool
) -> Iterator[Markup]:
    for cell, kind in zip(row, kinds, strict=True):
        yield element("td", _cell(cell, root, words=words), class_=kind)


def _label(columns: Sequence[str]) -> str:
    return f"Table: {', '.join(filter(None, columns))}"


def verdict_mark(verdict: str, word: str | None = None) -> Markup:
    """Return the symbol of a verdict and a word, by default the verdict itself."""
    sign = MARKS.get(Verdict(verdict), "") if verdict in MARKS else "•"
    return element(
        "span", f"{sign} {verdict if word is None else word}".rstrip(), class_=f"verdict {verdict}"
    )


def _cell(cell: Cell | Markup, root: str, *, words: bool) -> str | Markup:
    match cell:
        case Verdict():
            return verdict_mark(cell, None if words else "")
        case LocationCell():
            return element("code", shown_place(cell.where, root))
        case StyledText():
            return _styled(cell)
    return cell


def _note(note: str | StyledText | Item) -> Markup:
    if not isinstance(note, Item):
        return element("li", _styled(note))
    below = [element("div", _styled(line), class_="below") for line in filter(has_text, note.below)]
    return element("li", join(*map(_styled, note.head)), *below)


def _styled(text: str | StyledText) -> str | Markup:
    if isinstance(text, StyledText) and text.tone:
        return element("span", text.text, class_=f"tone-{text.tone}")
    return str(text)
