"""A sample's database. Samples share the start state until they write; only then is a copy made."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.json_text import to_json
from agenteval.core.world_state import StateChanges
from agenteval.world.changes import apply_changes, find_changes
from agenteval.world.clock import SampleClock
from agenteval.world.connections import SqlCallError, SqlRows, WorldConnection, translate_errors
from agenteval.world.sql_text import quote_name
from agenteval.world.start_state import StartState, from_stored
from agenteval.world.statements import Statement, duplicate_problems, prepare_statement

_MOST_VALUES = 50


class SqlAnswer(NamedTuple):
    """The result of a call: that of its last statement."""

    rows: list[dict[str, Any]]
    changed: int
    """The number of rows that the statement itself inserted, updated or deleted."""
    has_rows: bool
    """True if the statement returns rows, even if there are none."""


class QueryResult(NamedTuple):
    """The result of a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    is_ordered: bool
    """True if the query determines the order of its rows."""


class WorldDatabase:
    """The database of one sample. Its methods may be called from several threads; transactions wait for each
    other. Close it when the sample is over: its changes are then gone."""

    path: Path | None = None
    """The file of the database, on which others may work, too. ``None`` if it is in memory."""

    def __init__(self, start: StartState, now: datetime, seed: int) -> None:
        self.start = start
        self.clock = SampleClock(now, seed)
        self.written: set[str] = set()
        """The tables that were written to, in lower case."""
        self._copy: WorldConnection | None = None
        self.is_closed = False
        self._lock = threading.Lock()
        self._owner = 0
        self._found: tuple[int, StateChanges] | None = None
        """The number of changes that statements had made, and what differed then."""
        self.origin: dict[str, Any] = {
            "start": start.content_hash,
            "now": now.isoformat(),
            "seed": seed,
        }

    @classmethod
    def with_changes(
        cls, start: StartState, changes: StateChanges, now: datetime, seed: int
    ) -> WorldDatabase:
        """Make the database again from which the changes were taken. Raise ``ValueError`` if the changes are
        not complete."""
        if not changes.is_complete:
            raise ValueError("the changes are not complete")
        made = cls(start, now, seed)
        if changes.tables:
            made.written.update(table.lower() for table in changes.tables)
            with made.own_copy().unrestricted() as raw:
                apply_changes(raw, start, changes)
        return made

    def call(self, statements: Sequence[Statement], args: Mapping[str, Any]) -> SqlAnswer:
        """Run the statements of a tool in one transaction. A missing argument is NULL. Raise ``SqlCallError``
        if one fails; then nothing has changed."""
        with self.transaction() as transaction:
            return transaction.call(statements, args)

    def read(self, sql: str) -> QueryResult:
        """Run a query. Raise ``AuthorError`` if it is wrong or writes, and ``SqlCallError`` if it fails."""
        statement = prepare_statement(sql, self.start)
        if not statement.is_query:
            raise AuthorError(Problem("a check may only read", "use SELECT"))
        with self.transaction() as transaction:
            result = transaction.run(statement, {})
        return QueryResult(result.columns, result.rows, statement.is_ordered)

    def column_values(self, name: str, value: Any) -> list[Any]:
        """Return some values of the columns with this name, in the tables in which it has the given value.
        There are none if the database cannot be read."""
        tables = (
            shape.name
            for shape in self.start.tables.values()
            if name in (column.name for column in shape.columns)
        )
        column, found = quote_name(name), []
        with suppress(SqlCallError), self.transaction() as transaction:
            for table in map(quote_name, tables):
                has_value = f"EXISTS (SELECT 1 FROM {table} WHERE {column} = ?)"
                query = f"SELECT DISTINCT {column} AS value FROM {table} WHERE {has_value}"
                query += f" ORDER BY 1 LIMIT {_MOST_VALUES}"
                found += [row["value"] for row in transaction.execute(query, [value]).rows]
        return found

    @contextmanager
    def transaction(self, tool: str = "") -> Iterator[WorldTransaction]:
        """Run what is in the ``with`` block as one transaction, for a call to a tool. An exception undoes it,
        together with the random numbers that it drew: the next call draws them again. Wait until the
        transactions of other threads have ended. Raise ``SqlCallError`` if this thread has one open, for
        example for another call on the same event loop: waiting would never end."""
        if self._owner == threading.get_ident():
            raise SqlCallError("the database is in use by another call")
        with self._lock:
            if self.is_closed:
                raise RuntimeError("the database of this sample is closed")
            self._owner = threading.get_ident()
            self.clock.draw_for(tool)
            transaction = WorldTransaction(self)
            try:
                yield transaction
                transaction.commit()
            finally:
                transaction.rollback()
                transaction.is_over = True
                self._release()
                self._owner = 0
                if self.is_closed:
                    self._free()

    def _release(self) -> None:
        """Free what a transaction needed, at its end."""

    def changes(self) -> StateChanges:
        """Return what differs from the start state. It is not known while this thread has a transaction open,
        for a call that is not over."""
        if self._owner == threading.get_ident():
            why = "a call was not over, and what it changed is not known"
            return StateChanges(is_complete=False, unknown_because=why)
        with self.transaction():
            if self._copy is None:
                return StateChanges(**self.origin)
            count = self._copy.raw.total_changes
            if self._found and self._found[0] == count:
                return self._found[1]
            tables = [
                name
                for name in self.start.stored_tables
                if name.lower() in self.written or name.startswith("sqlite_")
            ]
            with self._copy.unrestricted() as raw:
                found = find_changes(raw, self.start, tables)
            self._found = count, found.model_copy(update=self.origin)
            return self._found[1]

    def close(self) -> None:
        """Free the copy. Everything else raises ``RuntimeError`` from now on. If this thread has a
        transaction open, for a call for which nobody waits, the copy is freed when it ends."""
        if self._owner == threading.get_ident():
            self.is_closed = True
            return
        with self._lock:
            self.is_closed = True
            self._free()

    def _free(self) -> None:
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    @contextmanager
    def reader(self) -> Iterator[WorldConnection]:
        """Lend a connection for a statement that only reads."""
        if self._copy is not None:
            yield self._copy
            return
        with self.start.reader() as connection:
            connection.functions.clock = self.clock
            yield connection

    def own_copy(self) -> WorldConnection:
        """Return the copy of this sample, and make it if there is none yet."""
        if self._copy is None:
            self._copy = WorldConnection(self.start.data, self.clock, self.start.writable)
        return self._copy


class WorldTransaction:
    """An open transaction, for one thread at a time."""

    def __init__(self, database: WorldDatabase) -> None:
        self._database = database
        self._copy: WorldConnection | None = None
        self._is_undone = False
        self._is_kept = False
        self._random = database.clock.random
        self._drawn = self._random.getstate()
        self.is_over = False

    def call(self, statements: Sequence[Statement], args: Mapping[str, Any]) -> SqlAnswer:
        """Run the statements of a tool, and return the result of the last one."""
        answer = SqlAnswer([], 0, has_rows=False)
        for statement in statements:
            values = {name: _to_stored(name, args.get(name)) for name in statement.parameters}
            answer = _answer(self.run(statement, values))
        return answer

    def execute(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> SqlAnswer:
        """Run a statement that an author's code made, with parameters written as ``:name`` or ``?``. Raise
        ``AuthorError`` if it is wrong or a parameter has no value, and ``SqlCallError`` if it fails."""
        statement = prepare_statement(sql, self._database.start)
        if problems := [*duplicate_problems(statement)]:
            raise AuthorError(*problems)
        return _answer(self.run(statement, _bind(statement, parameters)))

    def run(self, statement: Statement, values: Mapping[str, Any] | Sequence[Any]) -> SqlRows:
        """Run a statement, and return its rows as their author wrote them."""
        if self.is_over:
            raise SqlCallError("the call to the tool is over")
        if self._is_undone:
            raise SqlCallError("an earlier statement of this call failed, and everything was undone")
        if statement.is_query:
            with self._database.reader() as connection:
                result = connection.run(statement.text, values)
        else:
            result = self._write(statement, values)
        types = statement.types_of(result.columns)
        return result._replace(rows=[_as_written(row, types, result.columns) for row in result.rows])

    def _write(self, statement: Statement, values: Mapping[str, Any] | Sequence[Any]) -> SqlRows:
        if self._copy is None:
            self._copy = self._database.own_copy()
            self._copy.raw.execute("BEGIN")
        self._database.written |= statement.writes
        try:
            return self._copy.run(statement.text, values)
        finally:
            # SQLite itself undoes everything if a statement that writes is interrupted.
            self._is_undone = not self._copy.raw.in_transaction

    def commit(self) -> None:
        """Keep the changes. Raise ``SqlCallError`` if a deferred constraint is broken, or if an earlier
        statement undid everything."""
        if self._is_undone:
            raise SqlCallError("a statement of this call failed, and everything was undone")
        if self._copy is not None:
            with translate_errors():
                self._copy.raw.execute("COMMIT")
            self._copy = None
        self._is_kept = True

    def rollback(self) -> None:
        """Undo what was written since the transaction began, or was last undone. The transaction remains open
        until its ``with`` block ends."""
        if self._copy is not None and self._copy.raw.in_transaction:
            self._copy.raw.execute("ROLLBACK")
        if not self._is_kept:
            self._random.setstate(self._drawn)
        self._copy = None
        self._is_undone = False


# ── values ───────────────────────────────────────────────────────────────────────────────────────


def _bind(statement: Statement, parameters: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any] | list[Any]:
    if isinstance(parameters, Mapping):
        if missing := [name for name in statement.parameters if name not in parameters]:
            what = f"the parameter ':{missing[0]}' has no value"
            raise AuthorError(Problem(what, did_you_mean(missing[0], map(str, parameters))))
        return {name: _to_stored(name, parameters[name]) for name in statement.parameters}
    if len(parameters) != statement.position_count or statement.parameters:
        expected = len(statement.parameters) or statement.position_count
        what = f"the statement has {expected} parameters, but got {len(parameters)} without names"
        raise AuthorError(Problem(what, "pass a mapping for :name, and a list for ?"))
    return [_to_stored(str(number), value) for number, value in enumerate(parameters, 1)]


def _to_stored(name: str, value: Any) -> Any:
    """Return an argument as SQLite stores it."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise SqlCallError(f"'{name}' is an integer of more than 63 bits")
    if isinstance(value, Mapping | list | tuple):
        return to_json(value)
    if not isinstance(value, _STORABLE):
        raise AuthorError(Problem(f"'{name}' is of type {type(value).__name__}", "pass a text or a number"))
    return value


_STORABLE = (str, int, float, bytes, type(None))


def _answer(result: SqlRows) -> SqlAnswer:
    columns = result.columns
    rows = [dict(zip(columns, row, strict=True)) for row in result.rows]
    return SqlAnswer(rows, result.changed, has_rows=bool(columns))


def _as_written(row: Sequence[Any], types: Sequence[str], columns: Sequence[str]) -> tuple[Any, ...]:
    written = map(from_stored, row, types)
    return tuple(map(_checked, written, columns))


def _checked(value: Any, column: str) -> Any:
    """Refuse a value that JSON cannot represent. Raise ``SqlCallError``."""
    if isinstance(value, bytes):
        raise SqlCallError(f"the column '{column}' holds binary data")
    if isinstance(value, float) and not math.isfinite(value):
        raise SqlCallError(f"the column '{column}' holds a number that is not finite")
    return value
