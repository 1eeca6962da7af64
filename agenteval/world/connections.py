"""Connections to a sample's database, in memory or in its own file, that run an author's statements and
nothing else: no other files, no other databases, no settings, and no statement without end."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.core.errors import ToolError
from agenteval.world.clock import ClockFunctions, SampleClock

MAX_STEPS = 20_000_000
"""The maximum number of steps of a statement: instructions of SQLite's virtual machine, about one second.
They are counted, not timed, so that a statement ends in the same way on every machine."""
MAX_ROWS = 1_000
"""The maximum number of rows in an answer."""
MAX_ANSWER_SIZE = 1_000_000
"""The maximum size of the rows in an answer: the length of their texts, and eight for every other value."""
MAX_VALUE_BYTES = 16_000_000
"""The maximum size of one value or row in the database."""
_MOST_LIKE_PATTERN_BYTES = 1_000
_STEPS_PER_CHECK = 10_000


class SqlCallError(ToolError):
    """Raised for a statement that fails when it is run: a broken constraint, a wrong value, a limit. The
    message is an error result for the agent."""


class SqlRows(NamedTuple):
    """The result of a statement."""

    columns: tuple[str, ...]
    """The names of the columns. Empty if the statement returns no rows."""
    rows: list[tuple[Any, ...]]
    changed: int
    """The number of rows that the statement itself inserted, updated or deleted."""


class StatementAuthorizer:
    """Decides what a statement may do, and remembers what the last one writes."""

    def __init__(self, writable: Set[str], of_world: Set[str] = frozenset()) -> None:
        self.writable = writable
        """The tables and views that statements may write to, in lower case."""
        self.of_world = of_world
        """The tables that belong to a world in Python, in lower case."""
        self.writes: dict[str, None] = {}
        """The tables in the order in which they were met, in lower case."""
        self.refused = ""
        """What was refused, in the words of an author. Empty if nothing was refused."""

    def __call__(
        self, action: int, first: str | None, second: str | None, database: str | None, source: str | None
    ) -> int:
        if action in _WRITES:
            return self._write(first or "")
        if action == sqlite3.SQLITE_FUNCTION:
            return self._answer(f"the function {second}", is_allowed=second not in REFUSED_FUNCTIONS)
        if action == sqlite3.SQLITE_READ:
            return self._answer("PRAGMA", is_allowed=not (first or "").startswith("pragma_"))
        is_of_search = action == sqlite3.SQLITE_PRAGMA and first == "data_version"  # full-text search asks it
        return self._answer(_ACTIONS.get(action, "this"), is_allowed=is_of_search or action in _READS)

    def _write(self, table: str) -> int:
        if table == "sqlite_master":  # SQLite declares the columns of table-valued functions in this way
            return sqlite3.SQLITE_OK
        self.writes[table.lower()] = None
        if table.lower() in self.of_world:
            return self._answer(f"the table '{table}' belongs to the world; a change of it", is_allowed=False)
        return self._answer(f"a change of '{table}'", is_allowed=table.lower() in self.writable)

    def _answer(self, what: str, *, is_allowed: bool) -> int:
        self.refused = self.refused if is_allowed else what
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


_WRITES = frozenset((sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE))
_READS = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_TRANSACTION))
_ACTIONS = {
    sqlite3.SQLITE_PRAGMA: "PRAGMA",
    sqlite3.SQLITE_ATTACH: "ATTACH",
    sqlite3.SQLITE_DETACH: "DETACH",
}
REFUSED_FUNCTIONS = frozenset(("load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"))


class StepLimit:
    """Counts the steps of a statement."""

    def __init__(self) -> None:
        self.checks = 0

    def __call__(self) -> bool:
        self.checks += 1
        return self.checks > MAX_STEPS // _STEPS_PER_CHECK


class WorldConnection:
    """A database in memory, or in a file, for one statement at a time."""

    def __init__(self, data: bytes | Path, clock: SampleClock, writable: Set[str] = frozenset()) -> None:
        """Open a copy of a serialized database, or a file."""
        self.raw = open_file(data) if isinstance(data, Path) else open_in_memory(data)
        self.functions = ClockFunctions(clock)
        self.functions.install(self.raw)
        self.authorizer = StatementAuthorizer(writable)
        self._steps = StepLimit()
        self._restrict()
        # Nothing that the connection refers to refers to it: it is closed as soon as nobody uses it.
        self.close = weakref.finalize(self, self.raw.close)

    def _restrict(self) -> None:
        self.raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        self.raw.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _MOST_LIKE_PATTERN_BYTES)
        self.raw.set_authorizer(self.authorizer)
        self.raw.set_progress_handler(self._steps, _STEPS_PER_CHECK)

    @contextmanager
    def unrestricted(self) -> Iterator[sqlite3.Connection]:
        """Lift the restrictions for statements of our own."""
        self.raw.set_authorizer(None)
        self.raw.set_progress_handler(None, 0)
        try:
            yield self.raw
        finally:
            self._restrict()

    def run(self, sql: str, values: Mapping[str, Any] | Sequence[Any]) -> SqlRows:
        """Run a statement that was checked before. Raise ``SqlCallError``."""
        self._steps.checks = 0
        with translate_errors():
            before = self.raw.total_changes
            cursor = self.raw.execute(sql, values)
            columns = tuple(each[0] for each in cursor.description or ())
            rows = _fetch_rows(cursor)
            return SqlRows(columns, rows, self._changed() if self.raw.total_changes != before else 0)

    def _changed(self) -> int:
        """Return SQLite's count of changed rows. ``Cursor.rowcount`` does not count after WITH."""
        return int(self.raw.execute("SELECT changes()").fetchone()[0])


def open_in_memory(data: bytes) -> sqlite3.Connection:
    """Open a copy of a serialized database; an empty one if there are no data.

    Statements are compiled each time: the steps of one that is kept are counted on from its last run, so that
    the limit would depend on earlier calls."""
    connection = sqlite3.connect(
        ":memory:", isolation_level=None, check_same_thread=False, cached_statements=0
    )
    if data:
        connection.deserialize(data)
    return _configured(connection)


BUSY_S = 1.0
"""The time, in seconds, to wait for a lock of another connection. An agent that works on the same file holds
one while it commits."""


def open_file(path: Path) -> sqlite3.Connection:
    """Open a database file, which must exist. It may be written to even by who only reads it, because SQLite
    first completes or undoes what a process that was killed left behind."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=0,
    )
    connection.execute("PRAGMA synchronous = OFF")  # nothing that has to outlive this machine
    return _configured(connection)


def _configured(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA trusted_schema = ON")  # else its triggers may not call the fixed clock
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _fetch_rows(cursor: sqlite3.Cursor) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in cursor:
        rows.append(row)
        size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
        if len(rows) > MAX_ROWS:
            raise SqlCallError(f"the answer has more than {MAX_ROWS:,} rows")
        if size > MAX_ANSWER_SIZE:
            raise SqlCallError(f"the answer has more than {MAX_ANSWER_SIZE:,} characters")
    return rows


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def translate_errors() -> Iterator[None]:
    """Convert an error that SQLite or its Python module raises while a statement is run."""
    try:
        yield
    except sqlite3.Error as error:
        raise SqlCallError(_describe(error)) from error
    except (OverflowError, UnicodeError) as error:
        raise SqlCallError("a value cannot be stored in the database") from error


def _describe(error: sqlite3.Error) -> str:
    text = str(error)
    return _MESSAGES.get(text, text)


_MESSAGES = {
    "interrupted": f"the statement takes more than {MAX_STEPS:,} steps",
    "string or blob too big": f"a value has more than {MAX_VALUE_BYTES:,} bytes",
    **dict.fromkeys(("not authorized", "authorization denied"), "the statement does what is not allowed"),
}
