"""Loads the start state of a scenario. Scenarios with the same state share it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from agenteval.core.errors import Place
from agenteval.core.world_state import StateSpec, TableFile
from agenteval.world.start_builder import build_start_state
from agenteval.world.start_state import StartState
from agenteval.world.table_rows import PlaceOf, StateFiles

_MOST_KEPT = 32
"""The number of start states that are kept for scenarios to come."""


def world_time(text: str | None, otherwise: datetime) -> datetime:
    """Return the time in a tool world, in UTC: the configured ``now`` if it is a date and time in ISO 8601
    format, otherwise ``otherwise``."""
    try:
        found = datetime.fromisoformat((text or "").strip())
    except ValueError:
        found = otherwise
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def load_start_state(spec: StateSpec, now: datetime, place_of: PlaceOf | None = None) -> StartState:
    """Load a state. ``now`` is the time in the tool world, and ``place_of`` returns the place of a key below
    ``state``. Raise ``AuthorError`` with all mistakes."""
    key = (spec.base, spec.model_dump_json(), now, *map(_stamp, spec.files))
    with _lock:
        found = _known.get(key)
        if found is None:
            found = _build(spec, now, place_of or _no_place)
            if len(_known) >= _MOST_KEPT:
                del _known[next(iter(_known))]
            _known[key] = found
        return found


_lock = Lock()
_known: dict[tuple[Any, ...], StartState] = {}


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _no_place(_path: tuple[str | int, ...]) -> Place | None:
    return None


def _build(spec: StateSpec, now: datetime, place_of: PlaceOf) -> StartState:
    tables = {
        name: entry.model_dump() if isinstance(entry, TableFile) else entry
        for name, entry in spec.tables.items()
    }
    return build_start_state(
        tables=tables,
        schema=spec.schema,
        database=spec.database,
        files=StateFiles(Path(spec.base), Path.cwd()),
        place_of=place_of,
        now=now,
        snapshot=spec.snapshot,
    )
