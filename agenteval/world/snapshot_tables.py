"""The tables of a world in Python: reads what ``snapshot()`` returns, makes tables of it at the start, and
copies every later snapshot into the database of the sample, so that whatever reads the state reads it
there."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from itertools import count
from typing import Any, NamedTuple

from agenteval.core.call_outcomes import json_key
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.json_text import to_json
from agenteval.core.world_state import WorldTables
from agenteval.files.yaml_scalars import display_value
from agenteval.world.changes import MAX_CHANGED_ROWS, MAX_CHANGES_SIZE
from agenteval.world.database import WorldDatabase
from agenteval.world.sql_text import quote_name
from agenteval.world.start_state import (
    StartState,
    TableShape,
    from_stored,
    is_boolean_type,
    is_json_type,
    read_shapes,
)
from agenteval.world.table_rows import DECLARED_TYPES, infer_type, to_stored

_SHAPE = "return {table: [rows]}, in which a row is {column: value}"
_IN_SCHEMA = "give it in the first snapshot, or declare it in `state: {schema: FILE.sql}`"


def read_snapshot(value: Any) -> WorldTables:
    """Check what ``snapshot()`` returned, as JSON. Raise ``AuthorError`` without a place."""
    if not isinstance(value, Mapping):
        raise AuthorError(Problem(f"`snapshot` returned {display_value(value)}", _SHAPE))
    for table, rows in value.items():
        if not isinstance(rows, list):
            what = f"`snapshot`: the table '{table}' is {_kind_of(rows)}, but must be a list of rows"
            remedy = "return the list of its values" if isinstance(rows, Mapping) else _SHAPE
            raise AuthorError(Problem(what, remedy))
        for index, row in enumerate(rows):
            if not isinstance(row, Mapping):
                what = f"`snapshot`: row {index + 1} of the table '{table}' is {display_value(row)}"
                raise AuthorError(Problem(what, _SHAPE))
    found = {table: tuple(rows) for table, rows in value.items()}
    _check_size(found)
    return found


def _kind_of(value: Any) -> str:
    return "a mapping" if isinstance(value, Mapping) else display_value(value)


def _check_size(tables: WorldTables) -> None:
    rows = [row for each in tables.values() for row in each]
    size = len(rows) and len(to_json(rows))
    if len(rows) > MAX_CHANGED_ROWS or size > MAX_CHANGES_SIZE:
        what = (
            f"`snapshot` returned {len(rows):,} rows of {size:,} characters;"
            f" at most {MAX_CHANGED_ROWS:,} rows and {MAX_CHANGES_SIZE:,} characters are recorded"
        )
        raise AuthorError(Problem(what, "leave out what no call changes, or keep it in `state`"))


# ── the start ────────────────────────────────────────────────────────────────────────────────────


def fill_tables(connection: sqlite3.Connection, snapshot: WorldTables, in_schema: Set[str]) -> list[Problem]:
    """Make the tables of the first snapshot, or fill those that the schema or the database has
    (``in_schema``, in lower case). Columns of new tables have a type only if they hold booleans, lists or
    mappings, so that all other values keep theirs. Return the problems."""
    shapes = {shape.name.lower(): shape for shape in read_shapes(connection)}
    problems: list[Problem] = []
    for table, rows in snapshot.items():
        try:
            shape = shapes.get(table.lower())
            if table.lower() in in_schema and shape:
                _refuse_triggers(connection, shape.name)
                connection.execute(f"DELETE FROM {quote_name(shape.name)}")
            else:
                _create_table(connection, table, rows, shape)
        except AuthorError as error:
            problems += error.problems
    if problems:
        return problems
    shapes = {shape.name.lower(): shape for shape in read_shapes(connection)}
    for table, rows in snapshot.items():
        shape = shapes[table.lower()]
        try:
            _insert(connection, shape, [({}, row) for row in _to_stored_rows(rows, shape)])
        except AuthorError as error:
            problems += error.problems
    return problems


def _refuse_triggers(connection: sqlite3.Connection, table: str) -> None:
    listed = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE"
    if found := connection.execute(listed, (table,)).fetchone():
        what = f"the table '{table}' belongs to the world, but the schema has the trigger '{found[0]}' on it"
        raise AuthorError(Problem(what, "remove the trigger, and let the world make its changes"))


def _create_table(
    connection: sqlite3.Connection,
    table: str,
    rows: Sequence[Mapping[str, Any]],
    given: TableShape | None,
) -> None:
    """Create a table that no schema declares. ``given`` is the table that was made of the author's rows."""
    kinds: dict[str, str] = {}
    for column in given.columns if given else ():
        is_boolean, is_json = is_boolean_type(column.declared_type), is_json_type(column.declared_type)
        kinds[column.name] = "boolean" if is_boolean else "json" if is_json else ""
    for column_name in dict.fromkeys(name for row in rows for name in row):
        if not kinds.get(column_name):
            kinds[column_name] = _infer(table, column_name, rows)
    if not kinds:
        what = f"`snapshot`: the table '{table}' has no rows at the start, so that its columns are not known"
        raise AuthorError(Problem(what, "declare it in `state: {schema: FILE.sql}`"))
    if given:
        connection.execute(f"DROP TABLE {quote_name(given.name)}")
    columns = (f"{quote_name(name)} {DECLARED_TYPES.get(kind, '')}" for name, kind in kinds.items())
    try:
        connection.execute(f"CREATE TABLE {quote_name(table)} ({', '.join(columns)})")
    except sqlite3.Error as error:
        what = f"`snapshot`: the table '{table}' cannot be created: {error}"
        raise AuthorError(Problem(what, "rename it or its columns")) from error


def _infer(table: str, column: str, rows: Sequence[Mapping[str, Any]]) -> str:
    try:
        found = infer_type([row.get(column) for row in rows])
    except ValueError as error:
        what = f"`snapshot`: the column '{column}' of '{table}' has no type: {error}"
        raise AuthorError(Problem(what, "return values of one type")) from error
    return found if found in ("boolean", "json") else ""


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────

Stored = tuple[Any, ...]
"""The values of a row in the order of its table's stored columns."""


def _to_stored_rows(rows: Sequence[Mapping[str, Any]], shape: TableShape) -> list[Stored]:
    """Return rows as SQLite stores them. A column that a row does not have is NULL. Raise ``AuthorError``."""
    columns = {column.name.lower(): column for column in shape.stored_columns}
    found: list[Stored] = []
    for row in rows:
        values = dict.fromkeys(column.name for column in shape.stored_columns)
        for name, value in row.items():
            column = columns.get(name.lower())
            if column is None:
                what = f"`snapshot`: the table '{shape.name}' has no column '{name}' at the start"
                raise AuthorError(Problem(what, _IN_SCHEMA))
            try:
                values[column.name] = _to_stored_value(value, column.declared_type)
            except ValueError as error:
                what = f"`snapshot`: '{name}' in {_describe_row(row, shape)}: {error}"
                raise AuthorError(Problem(what, _IN_SCHEMA)) from error
        found.append(tuple(values.values()))
    return found


def _to_stored_value(value: Any, declared_type: str) -> Any:
    if value is None:
        return None
    if is_json_type(declared_type):
        return to_json(value)
    if isinstance(value, bool) is not is_boolean_type(declared_type):
        is_boolean = is_boolean_type(declared_type)
        what = "the column holds true and false" if is_boolean else "it is no BOOLEAN column"
        raise ValueError(f"got {display_value(value)}, but {what}")
    if isinstance(value, Mapping | list | tuple):
        raise ValueError(f"got {display_value(value)}, but it is no JSON column")
    return to_stored(value, "", is_text=False)


def _describe_row(row: Mapping[str, Any], shape: TableShape) -> str:
    named = {name: row[name] for name in shape.key if name in row} or row
    return f"{shape.name} {to_json(named)}"[:200]


def _insert(
    connection: sqlite3.Connection, shape: TableShape, rows: Sequence[tuple[Mapping[str, Any], Stored]]
) -> None:
    """Insert rows, each with the rowid or the like that it must have. Raise ``AuthorError``."""
    names = [column.name for column in shape.stored_columns]
    for own, row in rows:
        columns, values = (*own, *names), (*own.values(), *row)
        holes = ", ".join("?" * len(values))
        sql = f"INSERT INTO {quote_name(shape.name)} ({', '.join(map(quote_name, columns))}) VALUES ({holes})"
        try:
            connection.execute(sql, values)
        except (sqlite3.Error, UnicodeError) as error:
            read = dict(zip(names, row, strict=True))
            what = f"`snapshot`: {_describe_row(read, shape)} cannot be stored: {error}"
            raise AuthorError(Problem(what, "return rows that the schema allows")) from error


# ── later snapshots ──────────────────────────────────────────────────────────────────────────────


class TableDifference(NamedTuple):
    """A table in which two snapshots differ."""

    table: str
    text: str
    """A description of a row that only one of them has."""


def find_difference(before: WorldTables, after: WorldTables) -> TableDifference | None:
    """Return the first difference of two snapshots, or ``None`` if they are equal. The order of rows does not
    count, and a column with null is as good as none."""
    for table in dict.fromkeys((*before, *after)):
        if table not in before or table not in after:
            side = "only later" if table in after else "no more"
            return TableDifference(table, f"the table is there {side}")
        old, new = _count_rows(before[table]), _count_rows(after[table])
        for key in dict.fromkeys((*old, *new)):
            if len(old[key]) != len(new[key]):
                row, verb = (new[key][0], "added") if len(new[key]) > len(old[key]) else (old[key][0], "gone")
                return TableDifference(table, f"{to_json(row)[:200]} is {verb}")
    return None


def _count_rows(rows: Sequence[Mapping[str, Any]]) -> dict[Hashable, list[Mapping[str, Any]]]:
    found: dict[Hashable, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[json_key({name: value for name, value in row.items() if value is not None})].append(row)
    return found


def mirror_snapshot(database: WorldDatabase, snapshot: WorldTables) -> str:
    """Make the tables of the world in the database equal to the snapshot. Return the name of one that
    changed, or an empty string if none did. Raise ``AuthorError`` if they
    cannot be, because the snapshot has other tables or columns than the first one, or breaks the schema."""
    start = database.start
    _check_tables(snapshot, start)
    shapes = {name.lower(): shape for name, shape in start.tables.items()}
    rows = {shapes[name.lower()].name: each for name, each in snapshot.items()}
    stored = {name: _to_stored_rows(each, start.tables[name]) for name, each in rows.items()}
    with start.reader() as connection, connection.unrestricted() as raw:
        at_start = {name: _read_rows(raw, start.tables[name]) for name in stored}
    with database.transaction():
        with database.reader() as connection, connection.unrestricted() as raw:
            plans = [_plan(raw, start.tables[name], each, at_start[name]) for name, each in stored.items()]
        plans = [plan for plan in plans if plan.deleted or plan.inserted]
        if not plans:
            return ""
        database.written |= {plan.shape.name.lower() for plan in plans}
        with database.own_copy().unrestricted() as raw:
            _replace_rows(raw, plans)
        return plans[0].shape.name


def _check_tables(snapshot: WorldTables, start: StartState) -> None:
    names = {name.lower(): name for name in snapshot}
    if gone := sorted(start.of_world - names.keys()):
        what = f"`snapshot` returns the table '{gone[0]}' no more"
        raise AuthorError(Problem(what, "return an empty list if it has no rows"))
    if new := sorted(names.keys() - start.of_world):
        what = f"`snapshot` returns the table '{names[new[0]]}', which it did not at the start"
        remedy = (
            "return it from the start, and if it is empty then, declare it in `state: {schema: FILE.sql}`"
        )
        raise AuthorError(Problem(what, remedy))


class _TablePlan(NamedTuple):
    """What has to be done to a table. Rows that change are deleted and inserted again, under their old rowid,
    so that no row is in the way of another one with the same key."""

    shape: TableShape
    deleted: Sequence[Stored]
    """The identities of the rows to delete."""
    inserted: Sequence[tuple[Mapping[str, Any], Stored]]
    """The rows to insert, with the rowids that they must have."""


def _plan(
    connection: sqlite3.Connection, shape: TableShape, rows: Sequence[Stored], at_start: Sequence[_Found]
) -> _TablePlan:
    """Find what turns the table into these rows. Where a row goes depends on the rows at the start, and not
    on what was there in between, so that a change that is taken back leaves no trace."""
    names = [column.name for column in shape.stored_columns]
    found = _read_rows(connection, shape)
    now = dict(found)
    placed, new = _place_rows(rows, at_start, [names.index(name) for name in shape.key])
    kept = {each for each, row in placed.items() if each in now and _typed(now[each]) == _typed(row)}
    taken = {*placed, *(() if shape.key else (identity for identity, _ in at_start))}
    others, new = _match_equal(new, [each for each in found if each[0] not in taken])
    kept.update(others)
    own = [name for name in shape.identity if name not in names]
    inserted = [
        (dict(zip(own, identity, strict=False)), row)
        for identity, row in placed.items()
        if identity not in kept
    ]
    # A row without a number would get the next one, which may be that of a row that is gone.
    numbers = count(max((each[0] for each in (*now, *taken)), default=0) + 1) if not shape.key else None
    inserted += [({own[0]: next(numbers)} if numbers else {}, row) for row in new]
    return _TablePlan(shape, [identity for identity in now if identity not in kept], inserted)


_Found = tuple[Stored, Stored]
"""The identity of a row in the database, and its values."""


def _read_rows(connection: sqlite3.Connection, shape: TableShape) -> list[_Found]:
    columns = (*shape.identity, *(column.name for column in shape.stored_columns))
    wanted, width = ", ".join(map(quote_name, columns)), len(shape.identity)
    found = connection.execute(f"SELECT {wanted} FROM {quote_name(shape.name)}")
    return [(row[:width], row[width:]) for row in found]


def _place_rows(
    rows: Sequence[Stored], at_start: Sequence[_Found], key: Sequence[int]
) -> tuple[dict[Stored, Stored], list[Stored]]:
    """Return the rows that were there at the start, by their identity then, and the rows that were not. A row
    is an equal one or, if it has changed, the one with its key. In a table without a key, it is the one with
    which it shares the most values, if it shares any."""
    placed, left = _match_equal(rows, at_start)
    free = [each for each in at_start if each[0] not in placed]
    by_key = (
        {tuple(row[at] for at in key): (identity, row) for identity, row in reversed(free)} if key else {}
    )
    new: list[Stored] = []
    for row in left:
        best = by_key.pop(tuple(row[at] for at in key), None) if key else _most_alike(row, free)
        if best is None:
            new.append(row)
            continue
        placed[best[0]] = row
        if not key:
            free.remove(best)
    return placed, new


def _match_equal(
    rows: Sequence[Stored], found: Sequence[_Found]
) -> tuple[dict[Stored, Stored], list[Stored]]:
    """Return the rows that are found, by their identity, and the others. Equal rows are counted."""
    left: dict[Hashable, list[Stored]] = defaultdict(list)
    for identity, row in reversed(found):
        left[_typed(row)].append(identity)
    matched: dict[Stored, Stored] = {}
    others: list[Stored] = []
    for row in rows:
        if identities := left.get(_typed(row)):
            matched[identities.pop()] = row
        else:
            others.append(row)
    return matched, others


def _typed(row: Stored) -> Hashable:
    return tuple((type(value), value) for value in row)


_MOST_COMPARED = 200


def _most_alike(row: Stored, found: Sequence[_Found]) -> _Found | None:
    best = max(found[:_MOST_COMPARED], key=lambda each: _shared_values(each[1], row), default=None)
    return best if best and _shared_values(best[1], row) else None


def _shared_values(one: Stored, other: Stored) -> int:
    return sum(a is not None and a == b for a, b in zip(one, other, strict=True))


def _replace_rows(raw: sqlite3.Connection, plans: Sequence[_TablePlan]) -> None:
    raw.execute("PRAGMA foreign_keys = OFF")  # checked once all tables are up to date
    raw.execute("BEGIN")
    try:
        for plan in plans:
            same = " AND ".join(f"{quote_name(name)} IS ?" for name in plan.shape.identity)
            raw.executemany(f"DELETE FROM {quote_name(plan.shape.name)} WHERE {same}", plan.deleted)
        for plan in plans:
            _insert(raw, plan.shape, plan.inserted)
        if broken := raw.execute("PRAGMA foreign_key_check").fetchone():
            what = f"`snapshot`: a row of '{broken[0]}' refers to no row of '{broken[2]}'"
            raise AuthorError(Problem(what, "return rows that the schema allows"))
        raw.execute("COMMIT")
    finally:
        if raw.in_transaction:
            raw.execute("ROLLBACK")
        raw.execute("PRAGMA foreign_keys = ON")


TableRows = dict[str, list[dict[str, Any]]]
"""Rows by table, as their author wrote them."""


def start_rows(start: StartState) -> TableRows:
    """Return the rows of all tables as their author wrote them, as new objects."""
    found: TableRows = {}
    with start.reader() as connection, connection.unrestricted() as raw:
        for name, shape in start.tables.items():
            columns = ", ".join(quote_name(column.name) for column in shape.columns)
            order = ", ".join(map(quote_name, shape.identity))
            rows = raw.execute(f"SELECT {columns} FROM {quote_name(name)} ORDER BY {order}")
            found[name] = [
                {
                    column.name: from_stored(value, column.declared_type)
                    for column, value in zip(shape.columns, row, strict=True)
                }
                for row in rows
            ]
    return found
