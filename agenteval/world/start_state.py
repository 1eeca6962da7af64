"""The state with which every sample of a scenario begins. It is never changed, and all samples share it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError
from agenteval.core.json_text import STRICT_DECODER
from agenteval.world.clock import SampleClock
from agenteval.world.connections import WorldConnection
from agenteval.world.sql_text import quote_name


class TableColumn(NamedTuple):
    """A column of a table."""

    name: str
    declared_type: str
    """The type as written in the schema. Empty if there is none."""
    is_generated: bool = False
    """True if the schema computes the value."""


class TableShape(NamedTuple):
    """A table: its columns, and how its rows are told apart."""

    name: str
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...]
    """The columns by which authors know a row: the primary key, else ``id``. Empty if there is neither."""
    identity: tuple[str, ...]
    """The columns by which SQLite knows a row: the rowid, or the primary key of a table WITHOUT ROWID."""

    @property
    def stored_columns(self) -> tuple[TableColumn, ...]:
        """The columns whose values the schema does not compute from others."""
        return tuple(column for column in self.columns if not column.is_generated)


class StartState:
    """A start state. ``data`` is the serialized database, empty if it has no tables."""

    def __init__(self, data: bytes, of_world: Collection[str] = ()) -> None:
        """Open a start state. ``of_world`` are the tables that belong to a world in Python, which alone
        changes them."""
        self.data = data
        self.of_world = frozenset(name.lower() for name in of_world)
        self._connection = WorldConnection(data, SampleClock(datetime.min, 0))
        self._lock = Lock()
        with self._connection.unrestricted() as raw:
            shapes = read_shapes(raw)
            views = raw.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall()
        self.stored_tables: Mapping[str, TableShape] = MappingProxyType(
            {shape.name: shape for shape in shapes}
        )
        """All tables that statements change, including the one in which SQLite counts AUTOINCREMENT."""
        self.tables: Mapping[str, TableShape] = MappingProxyType(
            {name: shape for name, shape in self.stored_tables.items() if not name.startswith("sqlite_")}
        )
        """The tables of the author."""
        self.views = frozenset(name for (name,) in views)
        self._connection.authorizer.writable = self.writable
        self._connection.authorizer.of_world = self.of_world
        self.statements: dict[str, Any] = {}
        """The statements that were prepared for this state (``statements.py``)."""

    @property
    def writable(self) -> frozenset[str]:
        """The names, in lower case, of everything that a statement may write to."""
        return frozenset(name.lower() for name in (*self.tables, *self.views)) - self.of_world

    @contextmanager
    def reader(self) -> Iterator[WorldConnection]:
        """Lend the connection that all samples share until they write. One statement runs at a time."""
        with self._lock:
            yield self._connection

    @cached_property
    def content_hash(self) -> str:
        """A hash of the schema and of all rows, which does not depend on the version of SQLite."""
        digest = sha256()
        with self.reader() as connection, connection.unrestricted() as raw:
            schema = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
            for row in raw.execute(schema):
                digest.update(repr(row).encode())
            for name, shape in self.stored_tables.items():
                identity = ", ".join(map(quote_name, shape.identity))
                for row in raw.execute(f"SELECT {identity}, * FROM {quote_name(name)} ORDER BY {identity}"):
                    digest.update(repr(row).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


_SCHEMA_TABLES = frozenset(("sqlite_schema", "sqlite_master"))
_ROWIDS = ("rowid", "_rowid_", "oid")


def read_shapes(connection: sqlite3.Connection) -> list[TableShape]:
    """Read the tables of a database, less virtual ones. Raise ``AuthorError`` for a table whose rows cannot
    be told apart."""
    listed = connection.execute(
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name"
    ).fetchall()
    return [_shape(connection, name, wr) for name, wr in listed if name not in _SCHEMA_TABLES]


def _shape(connection: sqlite3.Connection, name: str, is_without_rowid: int) -> TableShape:
    listed = connection.execute(f"PRAGMA table_xinfo({quote_name(name)})").fetchall()
    columns = tuple(TableColumn(each[1], each[2], each[6] > 1) for each in listed)
    primary = tuple(each[1] for each in sorted(listed, key=lambda each: int(each[5])) if each[5])
    names = {column.name.lower(): column.name for column in columns}
    key = primary or ((names["id"],) if "id" in names else ())
    rowid = next((each for each in _ROWIDS if each not in names), "")
    if not is_without_rowid and not rowid:
        raise AuthorError(f"the table '{name}' has columns named {', '.join(_ROWIDS)}; rename one")
    return TableShape(name, columns, key, primary if is_without_rowid else (rowid,))


# ── values ───────────────────────────────────────────────────────────────────────────────────────


def type_word(declared_type: str) -> str:
    """Return the first word of a declared type in upper case."""
    return declared_type.partition("(")[0].strip().partition(" ")[0].upper()


def is_boolean_type(declared_type: str) -> bool:
    return type_word(declared_type) in {"BOOLEAN", "BOOL"}


def is_json_type(declared_type: str) -> bool:
    return type_word(declared_type) == "JSON"


def from_stored(value: Any, declared_type: str) -> Any:
    """Return a stored value as its author wrote it: columns declared BOOLEAN hold 1 and 0, and columns
    declared JSON hold text. A value of any other kind in such a column is returned unchanged."""
    if is_boolean_type(declared_type) and value in (0, 1):
        return bool(value)
    if is_json_type(declared_type) and isinstance(value, str):
        return _parse_json(value)
    return value


def _parse_json(text: str) -> Any:
    try:
        return STRICT_DECODER.decode(text)
    except (ValueError, RecursionError):
        return text
