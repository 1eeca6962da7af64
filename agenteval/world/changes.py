"""Finds what differs between a sample's database and the start state, as a value that can be recorded, and
makes the database again from it."""

from __future__ import annotations

import math
import sqlite3
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from agenteval.core.world_state import RowChange, StateChanges, StoredRow
from agenteval.world.sql_text import quote_name
from agenteval.world.start_state import StartState, TableShape, from_stored

MAX_CHANGED_ROWS = 10_000
MAX_CHANGES_SIZE = 4_000_000
"""The maximum length of the texts in all changed rows, with eight for every other value."""


class ChangedRow(NamedTuple):
    """A change in the words of the author: a row is known by its key, and has the values that statements
    return."""

    before: dict[str, Any] | None
    after: dict[str, Any] | None


# ── finding changes ──────────────────────────────────────────────────────────────────────────────


def find_changes(connection: sqlite3.Connection, start: StartState, tables: Iterable[str]) -> StateChanges:
    """Compare the given tables of a database with the start state. Values are equal only if their types are
    equal, too: 25 and 25.0 differ, because a statement may distinguish them."""
    with attached_start(connection, start):
        return collect_changes(connection, start, tables)


def collect_changes(connection: sqlite3.Connection, start: StartState, tables: Iterable[str]) -> StateChanges:
    """Do the same as ``find_changes`` while the start state is attached."""
    found: dict[str, tuple[RowChange, ...]] = {}
    collector = _Collector()
    for table in sorted(tables):
        if rows := collector.collect(connection, start.stored_tables[table]):
            found[table] = rows
    return StateChanges(tables=found, is_complete=not collector.is_full, unknown_because=collector.unknown)


class _Collector:
    """Collects changed rows until there are too many."""

    def __init__(self) -> None:
        self._rows_left = MAX_CHANGED_ROWS
        self._size_left = MAX_CHANGES_SIZE
        self.is_full = False
        self.unknown = ""
        """A row that cannot be recorded. Empty if there is none."""

    def collect(self, connection: sqlite3.Connection, shape: TableShape) -> tuple[RowChange, ...]:
        rows: list[RowChange] = []
        try:
            for row in _changed_rows(connection, shape):
                self._count(row)
                if self.is_full:
                    break
                rows.append(_row_change(row, shape))
        except sqlite3.OperationalError:
            self.is_full = True
            self.unknown = self.unknown or f"a text in the table '{shape.name}' is not valid Unicode"
        return tuple(rows)

    def _count(self, row: Sequence[Any]) -> None:
        self._rows_left -= 1
        self._size_left -= sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
        self.is_full = self.is_full or self._rows_left < 0 or self._size_left < 0


def _row_change(row: Sequence[Any], shape: TableShape) -> RowChange:
    names = [column.name for column in shape.stored_columns]
    width, count = len(shape.identity), len(names)
    (was, now), values = row[:2], [*map(_to_json_value, row[2:])]
    before, after = values[width : width + count], values[width + count :]
    return RowChange(
        identity=tuple(values[:width]),
        before=dict(zip(names, before, strict=True)) if was else None,
        after=dict(zip(names, after, strict=True)) if now else None,
    )


def _changed_rows(connection: sqlite3.Connection, shape: TableShape) -> Iterator[tuple[Any, ...]]:
    """Yield the changed rows of a table: whether the row was there, whether it is there now, its identity,
    and its values then and now."""
    table = quote_name(shape.name)
    same_row = " AND ".join(f"now.{name} IS was.{name}" for name in map(quote_name, shape.identity))
    first = quote_name(shape.identity[0])
    changed = (
        f"SELECT 1, now.{first} IS NOT NULL, {_names('was', shape.identity)}, {_columns('was', shape)},"
        f" {_columns('now', shape)} FROM start_state.{table} was LEFT JOIN main.{table} now ON {same_row}"
        f" WHERE now.{first} IS NULL OR {_differs(shape)} ORDER BY {_names('was', shape.identity)}"
    )
    inserted = (
        f"SELECT 0, 1, {_names('now', shape.identity)}, {_columns('was', shape)}, {_columns('now', shape)}"
        f" FROM main.{table} now LEFT JOIN start_state.{table} was ON {same_row}"
        f" WHERE was.{first} IS NULL ORDER BY {_names('now', shape.identity)}"
    )
    yield from connection.execute(changed)
    yield from connection.execute(inserted)


def _names(source: str, columns: Iterable[str]) -> str:
    return ", ".join(f"{source}.{quote_name(name)}" for name in columns)


def _columns(source: str, shape: TableShape) -> str:
    return _names(source, (column.name for column in shape.stored_columns))


def _differs(shape: TableShape) -> str:
    """Return the condition that a row differs: by type, and by bytes, whatever the column's collation is."""
    names = {quote_name(column.name): column.declared_type.upper() for column in shape.stored_columns}
    values = (f"was.{name} COLLATE BINARY IS NOT now.{name}" for name in names)
    # In columns of all other types, numbers that are equal are of one type.
    free = (
        name for name, declared in names.items() if not declared or "BLOB" in declared or declared == "ANY"
    )
    return " OR ".join((*values, *(f"typeof(was.{name}) IS NOT typeof(now.{name})" for name in free)))


@contextmanager
def attached_start(connection: sqlite3.Connection, start: StartState) -> Iterator[None]:
    """Attach a copy of the start state, so that SQLite can compare the two."""
    connection.execute("ATTACH ':memory:' AS start_state")
    try:
        if start.data:
            connection.deserialize(start.data, name="start_state")
        yield
    finally:
        connection.execute("DETACH start_state")


# ── applying changes ─────────────────────────────────────────────────────────────────────────────


def apply_changes(connection: sqlite3.Connection, start: StartState, changes: StateChanges) -> None:
    """Turn a copy of the start state into the database that the changes were found in. Neither triggers nor
    foreign keys act on these changes, since what they did is among them."""
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA ignore_check_constraints = ON")  # an agent's own connection may ignore them
    connection.execute("BEGIN")
    with _without_triggers(connection), _with_counters(connection, start):
        for table, rows in changes.tables.items():
            if table != _COUNTERS:
                _replace_rows(connection, start.stored_tables[table], rows)
    if counters := changes.tables.get(_COUNTERS):
        _replace_rows(connection, start.stored_tables[_COUNTERS], counters)
    connection.execute("COMMIT")
    connection.execute("PRAGMA ignore_check_constraints = OFF")
    connection.execute("PRAGMA foreign_keys = ON")


_COUNTERS = "sqlite_sequence"
"""The table in which SQLite counts the ids of AUTOINCREMENT."""


@contextmanager
def _without_triggers(connection: sqlite3.Connection) -> Iterator[None]:
    listed = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid"
    triggers = connection.execute(listed).fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {quote_name(name)}")
    yield
    for _, sql in triggers:
        connection.execute(sql)


@contextmanager
def _with_counters(connection: sqlite3.Connection, start: StartState) -> Iterator[None]:
    """Keep the counters of AUTOINCREMENT, which insertions raise."""
    if _COUNTERS not in start.stored_tables:
        yield
        return
    rows = connection.execute(f"SELECT rowid, name, seq FROM {_COUNTERS}").fetchall()
    yield
    connection.execute(f"DELETE FROM {_COUNTERS}")
    connection.executemany(f"INSERT INTO {_COUNTERS} (rowid, name, seq) VALUES (?, ?, ?)", rows)


def _replace_rows(connection: sqlite3.Connection, shape: TableShape, rows: Sequence[RowChange]) -> None:
    """Delete all changed rows first, so that no row is in the way of another one with the same key."""
    table = quote_name(shape.name)
    condition = " AND ".join(f"{quote_name(name)} IS ?" for name in shape.identity)
    connection.executemany(
        f"DELETE FROM {table} WHERE {condition}",
        ([*map(_from_json_value, row.identity)] for row in rows if row.before is not None),
    )
    names = [column.name for column in shape.stored_columns]
    own = [name for name in shape.identity if name not in names]
    holes = ", ".join("?" * (len(own) + len(names)))
    connection.executemany(
        f"INSERT INTO {table} ({', '.join(map(quote_name, (*own, *names)))}) VALUES ({holes})",
        (_stored_values(row.identity[: len(own)], row.after, names) for row in rows if row.after is not None),
    )


def _stored_values(identity: Sequence[Any], row: StoredRow, names: Iterable[str]) -> list[Any]:
    return [*map(_from_json_value, (*identity, *(row[name] for name in names)))]


def _to_json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"$blob": b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return {"$real": str(value)}
    return value


def _from_json_value(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return float(value["$real"]) if "$real" in value else b64decode(value["$blob"])


# ── changes as authors know them ─────────────────────────────────────────────────────────────────


def changed_rows(changes: StateChanges, start: StartState) -> dict[str, list[ChangedRow]]:
    """Return the changed rows of the author's tables. A row that was deleted and inserted again with the same
    key is one changed row, and a row whose values are equal is none: 25 equals 25.0 here."""
    found = {
        table: [row for row in _by_key(rows, start.tables[table]) if not _is_equal(row.before, row.after)]
        for table, rows in changes.tables.items()
        if table in start.tables
    }
    return {table: rows for table, rows in found.items() if rows}


def _is_equal(one: Any, other: Any) -> bool:
    """Compare by value: 25 equals 25.0, but 1 is not true."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_equal(each, other[key]) for key, each in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _by_key(rows: Sequence[RowChange], shape: TableShape) -> list[ChangedRow]:
    pairs = [ChangedRow(_as_written(row.before, shape), _as_written(row.after, shape)) for row in rows]
    before = {_key_of(pair.before, shape): pair.before for pair in pairs if pair.before}
    after = {_key_of(pair.after, shape): pair.after for pair in pairs if pair.after}
    is_unique = len(before) == sum(pair.before is not None for pair in pairs) and len(after) == sum(
        pair.after is not None for pair in pairs
    )
    if not shape.key or not is_unique:
        return pairs
    return [ChangedRow(before.get(key), after.get(key)) for key in dict.fromkeys((*before, *after))]


def _as_written(row: StoredRow | None, shape: TableShape) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        column.name: from_stored(row[column.name], column.declared_type) for column in shape.stored_columns
    }


def _key_of(row: Mapping[str, Any], shape: TableShape) -> str:
    return repr([row[name] for name in shape.key])
