"""Finds what an agent's own tools changed in a database file. The file is the agent's: whatever it did to
the file is either found, or makes the state unknown, with the reason."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path

from agenteval.core.json_text import to_json
from agenteval.core.world_state import RowChange, StateChanges
from agenteval.world.changes import attached_start, collect_changes
from agenteval.world.connections import open_file
from agenteval.world.sql_text import quote_name
from agenteval.world.start_state import StartState


class UnknownChangesError(Exception):
    """Raised if it cannot be known what changed. The message explains why, and names the remedy."""


def read_changes(path: Path, start: StartState) -> StateChanges:
    """Compare what is committed in a file with the start state. If the file cannot be read, or differs in a
    way that rows do not show, the result is not complete and says why."""
    try:
        with closing(open_file(path)) as connection:
            return _read(connection, start)
    except UnknownChangesError as error:
        return StateChanges(is_complete=False, unknown_because=str(error))
    except sqlite3.Error as error:
        return StateChanges(is_complete=False, unknown_because=_describe(error, path))


def _describe(error: sqlite3.Error, path: Path) -> str:
    text = str(error)
    if not path.exists():
        return "the agent's database file was deleted or moved"
    if "locked" in text:
        return (
            "the agent's database was locked at the end of the turn — commit, or end the transaction, before"
            " the answer"
        )
    return f"the agent's database file cannot be read: {text}"


def _read(connection: sqlite3.Connection, start: StartState) -> StateChanges:
    with attached_start(connection, start):
        connection.execute("BEGIN")  # everything is read as of one moment
        try:
            if what := next(chain(_schema_changes(connection), _virtual_table_changes(connection)), ""):
                raise UnknownChangesError(what)
            found = collect_changes(connection, start, _watched_tables(start))
        finally:
            connection.execute("ROLLBACK")
    return found.model_copy(update={"tables": dict(_by_value(found.tables, start))})


_COUNTERS = "sqlite_sequence"


def _watched_tables(start: StartState) -> list[str]:
    """Return the author's tables, and the one in which SQLite counts AUTOINCREMENT. The other tables of
    SQLite are statistics, which any connection may renew."""
    return [*start.tables, *(name for name in start.stored_tables if name == _COUNTERS)]


# ── changes that are not of rows ─────────────────────────────────────────────────────────────────

_REMEDY = "add it to the scenario's `state`"


def _schema_changes(connection: sqlite3.Connection) -> Iterator[str]:
    """Describe changes of tables, views and triggers. An index changes no row and no result."""
    before, now = _definitions(connection, "start_state"), _definitions(connection, "main")
    for (kind, name), sql in now.items():
        if (kind, name) not in before:
            yield f"the agent created the {kind} '{name}' — {_REMEDY}"
        elif before[kind, name] != sql:
            yield f"the agent changed the {kind} '{name}'{_describe_columns(connection, kind, name)}"
    for kind, name in sorted(before.keys() - now.keys()):
        yield f"the agent dropped the {kind} '{name}'"


def _definitions(connection: sqlite3.Connection, schema: str) -> dict[tuple[str, str], str]:
    rows = connection.execute(
        f"SELECT type, name, sql FROM {schema}.sqlite_master"
        " WHERE type IN ('table', 'view', 'trigger') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY type, name"
    )
    return {(kind, name): sql for kind, name, sql in rows}


def _describe_columns(connection: sqlite3.Connection, kind: str, name: str) -> str:
    if kind != "table":
        return ""
    listed = "SELECT name FROM pragma_table_xinfo(?, ?)"
    before, now = (
        [column for (column,) in connection.execute(listed, (name, schema))]
        for schema in ("start_state", "main")
    )
    added = [column for column in now if column not in before]
    gone = [column for column in before if column not in now]
    if added:
        return f": it has the new column '{added[0]}' — {_REMEDY}"
    return f": the column '{gone[0]}' is gone" if gone else ""


_OWNS_NO_ROWS = re.compile(r"\bcontent\s*=", re.IGNORECASE)
"""A full-text index whose rows are those of another table."""


def _virtual_table_changes(connection: sqlite3.Connection) -> Iterator[str]:
    """Describe changes in virtual tables, whose rows cannot be recorded."""
    for (kind, name), sql in _definitions(connection, "start_state").items():
        if kind == "table" and _is_virtual(sql) and not _OWNS_NO_ROWS.search(sql):
            before, now = (
                f"SELECT rowid, * FROM {schema}.{quote_name(name)}" for schema in ("start_state", "main")
            )
            for one, other in ((before, now), (now, before)):
                if connection.execute(f"{one} EXCEPT {other} LIMIT 1").fetchone():
                    yield f"the agent changed the virtual table '{name}', whose rows cannot be recorded"
                    return


def _is_virtual(sql: str) -> bool:
    return sql.lstrip().upper().startswith("CREATE VIRTUAL")


# ── rows without a key ───────────────────────────────────────────────────────────────────────────


def _by_value(
    tables: Mapping[str, tuple[RowChange, ...]], start: StartState
) -> Iterator[tuple[str, tuple[RowChange, ...]]]:
    """Yield the changes of each table. In a table without a key, SQLite's numbers tell the rows apart. VACUUM
    changes these, as does writing a table anew: the same rows with other numbers are no change."""
    for table, rows in tables.items():
        shape = start.stored_tables[table]
        if shape.key or table == _COUNTERS:
            yield table, rows
            continue
        before = Counter(to_json(row.before) for row in rows if row.before is not None)
        after = Counter(to_json(row.after) for row in rows if row.after is not None)
        if before == after:
            continue
        if before & after:
            raise UnknownChangesError(
                f"rows of the table '{table}' were written anew (by VACUUM, for example), and without a key"
                f" nobody can tell which of them changed — give '{table}' a primary key"
            )
        yield table, rows
