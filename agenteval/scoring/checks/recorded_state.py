"""Makes the state at the end of a turn again, from the scenario's state and the recorded changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from agenteval.core.errors import AuthorError
from agenteval.core.world_state import StateChanges, StateSpec
from agenteval.world.changes import ChangedRow, changed_rows
from agenteval.world.database import WorldDatabase
from agenteval.world.loading import load_start_state
from agenteval.world.sql_text import quote_name
from agenteval.world.start_state import StartState


class UnknownStateError(Exception):
    """Raised if the state is not known. The message explains why."""


def open_recorded_state(spec: StateSpec | None, changes: StateChanges | None) -> RecordedState:
    """Return the state in which these changes were found. Raise ``UnknownStateError``."""
    if spec is None:
        raise UnknownStateError("the scenario has no `state`")
    if changes is None:
        raise UnknownStateError("no state of the tool world was recorded")
    if changes.unknown_because:
        raise UnknownStateError(changes.unknown_because)
    if not changes.is_complete:
        raise UnknownStateError("the changes of the state are too many, or too large, to be recorded")
    return RecordedState(_load_start(spec, changes), changes)


def _load_start(spec: StateSpec, changes: StateChanges) -> StartState:
    try:
        start = load_start_state(spec, datetime.fromisoformat(changes.now))
    except AuthorError as error:
        raise UnknownStateError(f"the scenario's `state` cannot be loaded: {error}") from error
    except ValueError as error:
        raise UnknownStateError("the time in the tool world was not recorded") from error
    if start.content_hash != changes.start:
        raise UnknownStateError("the scenario's `state` is not the one with which the conversation began")
    return start


class RecordedState:
    """A state that was recorded."""

    def __init__(self, start: StartState, changes: StateChanges) -> None:
        self.start, self.changes = start, changes

    @cached_property
    def now(self) -> datetime:
        """The time in the tool world."""
        return datetime.fromisoformat(self.changes.now)

    @cached_property
    def changed_rows(self) -> Mapping[str, Sequence[ChangedRow]]:
        """The rows that differ from the start, by table."""
        return changed_rows(self.changes, self.start)

    @cached_property
    def database(self) -> WorldDatabase:
        return WorldDatabase.with_changes(self.start, self.changes, self.now, self.changes.seed)

    def count_rows(self, table: str, key: Mapping[str, Any]) -> int:
        """Return the number of rows with this key, whose parts must be plain values."""
        sql = f"SELECT COUNT(*) AS n FROM {quote_name(table)} WHERE {_equals(key)}"
        with self.database.transaction() as transaction:
            return int(transaction.execute(sql, [*key.values()]).rows[0]["n"])

    def find_row(
        self, table: str, key: Mapping[str, Any], columns: Sequence[str]
    ) -> Mapping[str, Any] | None:
        """Return the given columns of the first row with this key, or ``None`` if there is none. Raise
        ``SqlCallError`` for binary data."""
        shown = ", ".join(map(quote_name, columns))
        sql = f"SELECT {shown} FROM {quote_name(table)} WHERE {_equals(key)}"
        with self.database.transaction() as transaction:
            rows = transaction.execute(sql, [*key.values()]).rows
        return rows[0] if rows else None


def _equals(key: Mapping[str, Any]) -> str:
    return " AND ".join(f"{quote_name(name)} IS ?" for name in key)
