"""A part of a report as every format shows it: a title, a table, notes. No format's markup, no layout."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from agenteval.core.score import Verdict


class Tone(StrEnum):
    """What a text means beside its words, where a format can show that."""

    STRONG = "strong"
    QUIET = "quiet"
    OPEN = "open"
    """Not decided, or to be looked at."""
    BAD = "bad"
    WORST = "worst"


class StyledText(NamedTuple):
    """A text in a tone."""

    text: str
    tone: Tone | None = None


class LocationCell(NamedTuple):
    """Where something is written: ``file:line``, or words where there is no file."""

    where: str


Cell: TypeAlias = str | StyledText | Verdict | LocationCell
"""A verdict is shown as its mark."""


class Item(NamedTuple):
    """Something in a line, with what belongs to it below; what is empty there is not shown."""

    head: tuple[str | StyledText, ...]
    below: tuple[str | StyledText, ...] = ()


@dataclass(frozen=True)
class Section:
    """``named_by``: how many of the columns name a row. Notes follow the table. One that is of another
    section has a greater ``level``; there is none above 2."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    notes: tuple[str | StyledText | Item, ...] = ()
    numbers: tuple[str, ...] = ()
    """The columns that are aligned to the right."""
    noun: str = "row"
    """What a row is."""
    named_by: int = 1
    level: int = 2
    can_be_short: bool = False
    """The rows begin with their verdict, and a short report leaves out those that passed."""


def has_text(span: str | StyledText) -> bool:
    return bool(span.text if isinstance(span, StyledText) else span)
