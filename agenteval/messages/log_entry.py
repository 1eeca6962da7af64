"""What was found in a log: a record and its place, or why there is none. Values."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from agenteval.messages.record_paths import MISSING
from agenteval.messages.unplaced_entries import Unplaced

IMPORTER_REMEDY = "write an importer of its format (docs/importers.md)"
"""What to do about a form that is not built in."""


class Record(NamedTuple):
    """A JSON value and its place, ``file:line``. Where an importer made it, ``logged`` is the one that it was
    made of (of several lines: itself), ``outcome`` and ``notes`` are what the importer says of it.
    ``around``: what stands around it in its document and nobody could place."""

    value: Any
    where: str
    logged: Any = MISSING
    outcome: Any = MISSING
    notes: tuple[str, ...] = ()
    around: tuple[Unplaced, ...] = ()

    @property
    def as_logged(self) -> Any:
        return self.value if self.logged is MISSING else self.logged


class UnreadableRecord(NamedTuple):
    """What could not be read, and why. ``hides_rest``: further records may follow that nobody can count."""

    where: str
    reason: str
    hides_rest: bool = False


LogEntry: TypeAlias = Record | UnreadableRecord
