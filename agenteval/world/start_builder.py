"""Builds a start state from what an author wrote: rows, a schema, an existing database. All mistakes are
reported together, each at its place."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.core.world_state import WorldTables
from agenteval.files.yaml_scalars import display_value
from agenteval.files.yaml_source import decode
from agenteval.world import snapshot_tables
from agenteval.world.clock import ClockFunctions, SampleClock
from agenteval.world.connections import REFUSED_FUNCTIONS, open_in_memory
from agenteval.world.sql_text import SqlToken, quote_name, split_statements, without_space
from agenteval.world.start_state import StartState, TableShape, read_shapes
from agenteval.world.table_rows import (
    DECLARED_TYPES,
    PlaceOf,
    SourceRow,
    SourceTable,
    StateFiles,
    infer_type,
    read_source,
    to_stored,
    type_in_schema,
)

MAX_PROBLEMS = 20
MAX_DATABASE_BYTES = 100_000_000


def build_start_state(
    *,
    tables: Mapping[str, Any],
    schema: str | None,
    database: str | None,
    files: StateFiles,
    place_of: PlaceOf,
    now: datetime,
    snapshot: WorldTables = MappingProxyType({}),
) -> StartState:
    """Build the start state of a scenario. ``tables`` holds per table a list of rows, the path of a file, or
    ``{file, types}``; ``schema`` is the path of a file with SQL; ``database`` is the path of a SQLite file,
    which is read once and never changed. ``now`` is the time for a schema with CURRENT_TIMESTAMP.
    ``snapshot`` are the tables of a world in Python, whose rows replace those of the others. Raise
    ``AuthorError`` with all mistakes."""
    _check_version()
    if schema is not None and database is not None:
        what = "`schema` and `database` exclude each other: a database has its own schema"
        raise AuthorError(Problem(what, "remove one of them", place_of(("schema",))))
    data = _read_database(database, files, place_of(("database",))) if database is not None else b""
    with closing(open_in_memory(data)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")  # checked once all tables are filled
        ClockFunctions(SampleClock(now, 0)).install(connection)
        connection.execute("BEGIN")
        if schema is not None:
            _run_schema(connection, *files.read(schema, place_of(("schema",))))
        _fill_tables(connection, tables, files, place_of, snapshot)
        connection.execute("COMMIT")
        has_content = connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        return StartState(connection.serialize() if has_content else b"", of_world=snapshot)


_OLDEST_SQLITE = (3, 37)
"""The first version that lists tables with their kinds."""


def _check_version() -> None:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE or not hasattr(sqlite3.Connection, "deserialize"):
        oldest = ".".join(map(str, _OLDEST_SQLITE))
        what = f"`state` needs SQLite {oldest} or later, but this Python has {sqlite3.sqlite_version}"
        raise AuthorError(Problem(what, "use a newer Python"))


# ── an existing database ─────────────────────────────────────────────────────────────────────────


def _read_database(path: str, files: StateFiles, place: Place | None) -> bytes:
    full_path, _ = files.find(path, place)
    if full_path.stat().st_size > MAX_DATABASE_BYTES:
        what = f"'{path}' is larger than {MAX_DATABASE_BYTES // 1_000_000} MB"
        raise AuthorError(Problem(what, "use a smaller database", place))
    # Without a log beside it, nobody is writing, and SQLite need not create one to read the file.
    has_log = any(Path(f"{full_path}{suffix}").exists() for suffix in ("-wal", "-journal"))
    uri = f"{full_path.absolute().as_uri()}?{'mode=ro' if has_log else 'immutable=1'}"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as source, closing(sqlite3.connect(":memory:")) as copy:
            source.backup(copy)
            data = copy.serialize()
    except sqlite3.Error as error:
        raise AuthorError(Problem(f"'{path}' cannot be read: {error}", "use a SQLite file", place)) from error
    # A database in memory has no write-ahead log: its header must not require one.
    return data[:18] + b"\x01\x01" + data[20:]


# ── a schema ─────────────────────────────────────────────────────────────────────────────────────

_IN_SCHEMA = re.compile(r"CREATE (UNIQUE )?(TABLE|INDEX|VIEW|TRIGGER)\b|INSERT\b|REPLACE\b")
_ONLY_IN_SCHEMA = "use CREATE TABLE, INDEX, VIEW or TRIGGER, and INSERT"


def _run_schema(connection: sqlite3.Connection, data: bytes, shown_as: str) -> None:
    problems: list[Problem] = []
    connection.set_authorizer(_authorize_schema)
    for line, tokens in split_statements(decode(data, shown_as)):
        place = Place(shown_as, line)
        try:
            problems += _statement_problems(connection, tokens, place)
        except sqlite3.Error as error:
            problems.append(Problem(_describe(error), "", place))
        if len(problems) >= MAX_PROBLEMS:
            break
    connection.set_authorizer(None)
    if problems:
        raise AuthorError(*problems)


def _statement_problems(
    connection: sqlite3.Connection, tokens: list[SqlToken], place: Place
) -> Iterator[Problem]:
    words = [token.text for token in without_space(tokens)[:3]]
    if not words:
        return
    if not _IN_SCHEMA.match(" ".join(words).upper()):
        what = f"a schema may not contain {' '.join(words[:2])}"
        yield Problem(what, _ONLY_IN_SCHEMA, place)
        return
    connection.execute("".join(token.text for token in tokens))


def _authorize_schema(
    action: int, first: str | None, second: str | None, database: str | None, source: str | None
) -> int:
    is_refused = action in _REFUSED_IN_SCHEMA or (
        action == sqlite3.SQLITE_FUNCTION and second in REFUSED_FUNCTIONS
    )
    return sqlite3.SQLITE_DENY if is_refused else sqlite3.SQLITE_OK


_REFUSED_IN_SCHEMA = frozenset((sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA))


def _describe(error: Exception) -> str:
    return "a part of this statement is not allowed" if "not authorized" in str(error) else str(error)


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────


class _Filler:
    """Inserts rows, and remembers their places for the check of foreign keys."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._shapes = {shape.name.lower(): shape for shape in read_shapes(connection)}
        self.problems: list[Problem] = []
        self._places: dict[tuple[str, int], SourceRow] = {}

    def fill(self, table: SourceTable) -> None:
        shape = self._shapes.get(table.name.lower())
        types = self._types_in_schema(table, shape) if shape else self._create(table)
        for row in table.rows if types is not None else ():
            if len(self.problems) >= MAX_PROBLEMS:
                return
            self._insert(table, row, types or {})

    def _types_in_schema(self, table: SourceTable, shape: TableShape) -> dict[str, str] | None:
        declared = {column.name.lower(): column.declared_type for column in shape.columns}
        unknown = [name for name in table.columns if str(name).lower() not in declared]
        for name in unknown:
            row = next(row for row in table.rows if name in row.values)
            what = f"the table '{table.name}' has no column '{name}'"
            remedy = did_you_mean(str(name), (column.name for column in shape.columns))
            self.problems.append(Problem(what, remedy, row.place_of((name,))))
        if unknown:
            return None
        return {
            name: table.types.get(name) or type_in_schema(declared[name.lower()], is_text=table.is_text)
            for name in table.columns
        }

    def _create(self, table: SourceTable) -> dict[str, str] | None:
        if not table.columns:
            what = f"the table '{table.name}' has no rows, so that its columns are not known"
            self.problems.append(Problem(what, "add a row, or create the table in `schema`", table.place))
            return None
        types = {name: self._type_of(table, name) for name in table.columns}
        columns = (f"{quote_name(str(name))} {DECLARED_TYPES.get(kind, '')}" for name, kind in types.items())
        try:
            self._connection.execute(f"CREATE TABLE {quote_name(table.name)} ({', '.join(columns)})")
        except sqlite3.Error as error:
            what = f"the table '{table.name}' cannot be created: {error}"
            self.problems.append(Problem(what, "rename it or its columns", table.place))
            return None
        return types

    def _type_of(self, table: SourceTable, column: str) -> str:
        if column in table.types or table.is_text:
            return table.types.get(column, "text")
        try:
            return infer_type([row.values.get(column) for row in table.rows])
        except ValueError as error:
            row = next(row for row in table.rows if isinstance(row.values.get(column), bool))
            what = f"the column '{column}' has no type: {error}"
            self.problems.append(Problem(what, "write values of one type", row.place_of((column,))))
            return ""

    def _insert(self, table: SourceTable, row: SourceRow, types: Mapping[str, str]) -> None:
        values = []
        for name, value in row.values.items():
            try:
                values.append(to_stored(value, types[name], is_text=table.is_text))
            except ValueError as error:
                self.problems.append(Problem(f"'{name}': {error}", "", row.place_of((name,))))
        if len(values) == len(row.values):
            self._insert_values(table, row, values)

    def _insert_values(self, table: SourceTable, row: SourceRow, values: Sequence[Any]) -> None:
        names = ", ".join(quote_name(name) for name in row.values)
        rows = f"({names}) VALUES ({', '.join('?' * len(values))})" if names else "DEFAULT VALUES"
        try:
            cursor = self._connection.execute(f"INSERT INTO {quote_name(table.name)} {rows}", values)
        except (sqlite3.Error, UnicodeError) as error:
            what = f"the row cannot be inserted into '{table.name}': {error}"
            self.problems.append(Problem(what, "", row.place_of(())))
        else:
            self._places[table.name.lower(), cursor.lastrowid or 0] = row

    def check_foreign_keys(self) -> None:
        """Report each row that refers to a row that does not exist."""
        try:
            broken = self._connection.execute("PRAGMA foreign_key_check").fetchmany(MAX_PROBLEMS)
        except sqlite3.Error as error:
            self.problems.append(
                Problem(f"the foreign keys cannot be checked: {error}", "correct the schema")
            )
            return
        for table, rowid, parent, number in broken:
            row = self._places.get((table.lower(), rowid))
            self.problems.append(self._missing_parent(table, rowid, parent, number, row))

    def _missing_parent(
        self, table: str, rowid: int | None, parent: str, number: int, row: SourceRow | None
    ) -> Problem:
        listed = self._connection.execute(f"PRAGMA foreign_key_list({quote_name(table)})").fetchall()
        columns = [each[3] for each in listed if each[0] == number]
        names = " and ".join(f"'{name}'" for name in columns)
        what = f"{names} in a row of '{table}' refers to no row of '{parent}'"
        if rowid is not None:
            selected = ", ".join(map(quote_name, columns))
            found = self._connection.execute(
                f"SELECT {selected} FROM {quote_name(table)} WHERE rowid = ?", (rowid,)
            )
            values = ", ".join(map(display_value, found.fetchone()))
            what = f"{names} is {values} in a row of '{table}', but '{parent}' has no such row"
        place = row.place_of((columns[0],)) if row else None
        return Problem(what, f"add the row to '{parent}'", place)


def _fill_tables(
    connection: sqlite3.Connection,
    tables: Mapping[str, Any],
    files: StateFiles,
    place_of: PlaceOf,
    snapshot: WorldTables,
) -> None:
    in_schema = {shape.name.lower() for shape in read_shapes(connection)}
    filler = _Filler(connection)
    for name, source in tables.items():
        try:
            filler.fill(read_source(name, source, files, place_of))
        except AuthorError as error:
            filler.problems += error.problems
    if not filler.problems and snapshot:
        filler.problems += snapshot_tables.fill_tables(connection, snapshot, in_schema)
    if not filler.problems:
        filler.check_foreign_keys()
    if filler.problems:
        raise AuthorError(*filler.problems[:MAX_PROBLEMS])
