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
    QUIET = "quiet"
    OPEN = "open"
    """Not decided, or worth examining."""
    BAD = "bad"
    WORST = "worst"


class StyledText(NamedTuple):
    """A string with an optional tone."""

    text: str
    tone: Tone | None = None


class LocationCell(NamedTuple):
    """The location of an item, as ``file:line``, or a description if there is no file."""

    where: str


Cell: TypeAlias = str | StyledText | Verdict | LocationCell
"""A table cell. A verdict is shown as a symbol."""


class Item(NamedTuple):
    """A line with additional lines below it. Empty lines are omitted."""

    head: tuple[str | StyledText, ...]
    below: tuple[str | StyledText, ...] = ()


@dataclass(frozen=True)
class Section:
    """A section of a report. The notes are shown after the table."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    notes: tuple[str | StyledText | Item, ...] = ()
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
