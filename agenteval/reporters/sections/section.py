"""Define the elements of a section, which are the same in every format: a title, a table and notes, without
markup or layout."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from agenteval.core.score import Verdict


class Tone(StrEnum):
    """The significance of a string, which some formats express as a style."""

    STRONG = "strong"
    """A title or a name."""
    QUIET = "quiet"
    """A detail that a reader may skip."""
    OPEN = "open"
    """Not decided, or worth examining."""
    BAD = "bad"
    """A failure."""
    WORST = "worst"
    """A critical failure."""


class StyledText(NamedTuple):
    """A string with an optional tone. ``str()`` returns the string."""

    text: str
    """The string."""
    tone: Tone | None = None
    """The significance of the string."""

    def __str__(self) -> str:
        return self.text


class LocationCell(NamedTuple):
    """The location of an item. ``str()`` returns the location."""

    where: str
    """The location, as ``file:line``, or a description if there is no file."""

    def __str__(self) -> str:
        return self.where


Cell: TypeAlias = str | StyledText | Verdict | LocationCell
"""A table cell. A verdict is shown as a symbol."""


class Item(NamedTuple):
    """A line with additional lines below it. Empty lines are omitted. ``str()`` returns the lines, indented
    below the first."""

    head: tuple[str | StyledText, ...]
    """The parts of the first line."""
    below: tuple[str | StyledText, ...] = ()
    """The additional lines."""

    def __str__(self) -> str:
        return "\n  ".join(("".join(map(str, self.head)), *filter(None, map(str, self.below))))


@dataclass(frozen=True)
class Section:
    """A section of a report. The notes are shown after the table. ``str()`` of a cell or a note returns its
    text."""

    title: str
    """The title, such as ``What gated this run``."""
    columns: tuple[str, ...] = ()
    """The titles of the columns. The title of a column of verdicts is empty."""
    rows: tuple[tuple[Cell, ...], ...] = ()
    """The rows of the table, with a cell for each column."""
    notes: tuple[str | StyledText | Item, ...] = ()
    """The lines below the table."""
    numbers: tuple[str, ...] = ()
    """The titles of the right-aligned columns."""
    noun: str = "row"
    """The noun that describes a row."""
    named_by: int = 1
    """The number of leading columns that identify a row."""
    level: int = 2
    """The heading level: 2 for a top-level section, and more for a section within another section."""
    can_be_short: bool = False
    """True if each row begins with its verdict, so that a short report may omit rows that passed."""


def has_text(span: str | StyledText) -> bool:
    return bool(span.text if isinstance(span, StyledText) else span)
