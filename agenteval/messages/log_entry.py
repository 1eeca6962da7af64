"""Defines the entries of a log: records with their location, and unreadable records with the reason."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from agenteval.messages.record_paths import MISSING
from agenteval.messages.unplaced_entries import Unplaced

IMPORTER_REMEDY = "write an importer for its format (docs/importers.md)"
"""The suggested remedy for a format that is not built in."""


class Record(NamedTuple):
    """A JSON value from a log."""

    value: Any
    where: str
    """The location in the log, as ``file:line``."""
    logged: Any = MISSING
    """The logged value from which an importer created this record. The field is ``MISSING`` if no importer
    converted the value, or if the record was created from several lines."""
    outcome: Any = MISSING
    """The outcome that the importer reported."""
    notes: tuple[str, ...] = ()
    """The remarks that the importer made."""
    around: tuple[Unplaced, ...] = ()
    """Fields that surround the value in its document and could not be placed."""

    @property
    def as_logged(self) -> Any:
        return self.value if self.logged is MISSING else self.logged


class UnreadableRecord(NamedTuple):
    """A record that could not be read, with the reason."""

    where: str
    reason: str
    hides_rest: bool = False
    """True if an unknown number of additional records may follow the unreadable record."""


LogEntry: TypeAlias = Record | UnreadableRecord
