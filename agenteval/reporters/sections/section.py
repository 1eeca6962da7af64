"""The parts of a section that every format shows: a title, a table and notes, without markup or layout."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from agenteval.core.score import Verdict


class Tone(StrEnum):
    """The meaning of a text beyond its words, for formats that can show it."""

    STRONG = "strong"
    QUIET = "quiet"
    OPEN = "open"
    """Not decided, or worth a look."""
    BAD = "bad"
    WORST = "worst"


class StyledText(NamedTuple):
    """A text with a tone."""

    text: str
    tone: Tone | None = None


class LocationCell(NamedTuple):
    """The place where something is written: ``file:line``, or words if there is no file."""

    where: str


Cell: TypeAlias = str | StyledText | Verdict | LocationCell
"""A cell of a table; a verdict is shown as its mark."""


class Item(NamedTuple):
    """A line with further lines below it. Empty lines are not shown."""

    head: tuple[str | StyledText, ...]
    below: tuple[str | StyledText, ...] = ()


@dataclass(frozen=True)
class Section:
    """A section of a report. Notes follow the table."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    notes: tuple[str | StyledText | Item, ...] = ()
    numbers: tuple[str, ...] = ()
    """The columns that are aligned to the right."""
    noun: str = "row"
    """The noun for a row."""
    named_by: int = 1
    """The number of columns that name a row."""
    level: int = 2
    """The depth of the heading, 2 at the top and more for a section within another."""
    can_be_short: bool = False
    """True if each row begins with its verdict and a short report may leave out the rows that passed."""


def has_text(span: str | StyledText) -> bool:
    return bool(span.text if isinstance(span, StyledText) else span)
