"""The entries of a log: a record and its place, or the reason why there is none."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from agenteval.messages.record_paths import MISSING
from agenteval.messages.unplaced_entries import Unplaced

IMPORTER_REMEDY = "write an importer of its format (docs/importers.md)"
"""The remedy for a format that is not built in."""


class Record(NamedTuple):
    """A JSON value of a log."""

    value: Any
    where: str
    """The place in the log, ``file:line``."""
    logged: Any = MISSING
    """The logged value that an importer converted into this one; ``MISSING`` if it converted none, or several
    lines."""
    outcome: Any = MISSING
    """The outcome that the importer states."""
    notes: tuple[str, ...] = ()
    """The remarks that the importer makes."""
    around: tuple[Unplaced, ...] = ()
    """Fields around the value in its document that could not be placed."""

    @property
    def as_logged(self) -> Any:
        return self.value if self.logged is MISSING else self.logged


class UnreadableRecord(NamedTuple):
    """A record that could not be read, and the reason."""

    where: str
    reason: str
    hides_rest: bool = False
    """True if an unknown number of records may follow it."""


LogEntry: TypeAlias = Record | UnreadableRecord
