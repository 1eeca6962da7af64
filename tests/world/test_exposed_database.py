"""A database file on which an agent's own tools work: what they did is found, or the state is not known."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agenteval.core.errors import ToolError
from agenteval.world import connections
from agenteval.world.changes import changed_rows
from agenteval.world.database import WorldDatabase
from agenteval.world.exposed_database import ExposedDatabase
from agenteval.world.start_state import StartState
from tests.support.world_states import NOW, schema_state, state

SCHEMA = """
    CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT NOT NULL CHECK (status <> 'never'));
    CREATE TABLE notes (text);
    CREATE VIEW open_orders AS SELECT * FROM orders WHERE status = 'new';
    CREATE TRIGGER noted AFTER DELETE ON orders BEGIN INSERT INTO notes VALUES ('deleted ' || old.id); END;
    INSERT INTO orders VALUES (1, 'new'), (2, 'new');
    INSERT INTO notes VALUES ('a'), ('b'), ('c'), ('d');
"""


@pytest.fixture
def start(tmp_path: Path) -> StartState:
    return schema_state(tmp_path, SCHEMA)


@pytest.fixture
def exposed(start: StartState) -> Iterator[ExposedDatabase]:
    database = ExposedDatabase(start, NOW, 1)
    yield database
    database.close()


def path_of(database: WorldDatabase) -> Path:
    assert database.path
    return database.path


def agent(database: WorldDatabase, *statements: str) -> None:
    """What an agent does with a connection of its own."""
    with closing(sqlite3.connect(path_of(database), isolation_level=None)) as connection:
        for sql in statements:
            connection.execute(sql)


def changed(database: WorldDatabase) -> dict[str, list[object]]:
    found = database.changes()
    assert found.is_complete, found.unknown_because
    return {
        table: [(row.before, row.after) for row in rows]
        for table, rows in changed_rows(found, database.start).items()
    }


def unknown(database: WorldDatabase) -> str:
    found = database.changes()
    assert not found.is_complete
    assert not found.tables
    return found.unknown_because


def test_changes_of_every_table_are_found_and_can_be_made_again(exposed: ExposedDatabase) -> None:
    assert changed(exposed) == {}
    agent(exposed, "UPDATE orders SET status = 'cancelled' WHERE id = 1", "DELETE FROM orders WHERE id = 2")
    assert changed(exposed) == {
        "orders": [
            ({"id": 1, "status": "new"}, {"id": 1, "status": "cancelled"}),
            ({"id": 2, "status": "new"}, None),
        ],
        "notes": [(None, {"text": "deleted 2"})],
    }
    made = WorldDatabase.with_changes(exposed.start, exposed.changes(), NOW, 1)
    assert made.read("SELECT * FROM orders").rows == [(1, "cancelled")]


def test_the_folder_is_private_and_goes_with_the_sample(start: StartState) -> None:
    database = ExposedDatabase(start, NOW, 1)
    folder = path_of(database).parent
    assert folder.stat().st_mode & 0o077 == 0
    agent(database, "PRAGMA journal_mode = WAL", "DELETE FROM notes")
    database.close()
    assert not folder.exists()
    assert "deleted" in unknown(database)


def test_tools_and_the_agent_see_what_the_other_committed(exposed: ExposedDatabase) -> None:
    agent(exposed, "UPDATE orders SET status = 'paid' WHERE id = 1")
    with exposed.transaction() as transaction:
        assert transaction.execute("SELECT status FROM orders WHERE id = 1").rows == [{"status": "paid"}]
        transaction.execute("INSERT INTO orders VALUES (3, random())")
    with closing(sqlite3.connect(path_of(exposed))) as connection:
        assert connection.execute("SELECT COUNT(*) FROM orders").fetchone() == (3,)
    with exposed.transaction() as transaction:
        transaction.execute("DELETE FROM orders")
        transaction.rollback()
    assert [row for row, _ in changed(exposed)["orders"]] == [{"id": 1, "status": "new"}, None]


def test_a_tool_reads_columns_that_the_agent_added(exposed: ExposedDatabase) -> None:
    agent(exposed, "ALTER TABLE orders ADD COLUMN note")
    with exposed.transaction() as transaction:
        assert transaction.execute("SELECT * FROM orders WHERE id = 1").rows == [
            {"id": 1, "status": "new", "note": None}
        ]


def test_only_what_is_committed_counts(exposed: ExposedDatabase) -> None:
    with closing(sqlite3.connect(path_of(exposed))) as connection:
        connection.execute("DELETE FROM notes")
        assert changed(exposed) == {}
        connection.commit()
        assert len(changed(exposed)["notes"]) == 4


def test_a_database_in_write_ahead_mode_is_read_with_its_log(exposed: ExposedDatabase) -> None:
    with closing(sqlite3.connect(path_of(exposed), isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("DELETE FROM notes WHERE text = 'd'")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM notes")
        assert changed(exposed) == {"notes": [({"text": "d"}, None)]}


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_process_that_was_killed_left_what_it_had_committed(exposed: ExposedDatabase, mode: str) -> None:
    code = f"""
import os, signal, sqlite3
connection = sqlite3.connect({str(exposed.path)!r}, isolation_level=None)
connection.execute("PRAGMA journal_mode = {mode}")
connection.execute("PRAGMA cache_size = 1")
connection.execute("DELETE FROM notes WHERE text = 'd'")
connection.execute("BEGIN")
connection.executemany("INSERT INTO notes VALUES (?)", [("x" * 5000,)] * 200)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert len(os.listdir(path_of(exposed).parent)) > 1  # its log, or its journal
    assert changed(exposed) == {"notes": [({"text": "d"}, None)]}


def test_a_locked_database_is_not_known(exposed: ExposedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BUSY_S", 0.0)
    with closing(sqlite3.connect(path_of(exposed), isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert "locked" in unknown(exposed)
        with pytest.raises(ToolError, match="locked"), exposed.transaction() as transaction:
            transaction.execute("DELETE FROM notes")


def test_a_file_that_is_gone_or_no_database_is_not_known(exposed: ExposedDatabase) -> None:
    path_of(exposed).write_bytes(b"no database" * 200)
    assert "cannot be read" in unknown(exposed)
    path_of(exposed).write_bytes(b"")
    assert "dropped the table 'notes'" in unknown(exposed)
    path_of(exposed).unlink()
    assert "deleted" in unknown(exposed)
    with pytest.raises(ToolError), exposed.transaction() as transaction:
        transaction.execute("DELETE FROM notes")
    assert not path_of(exposed).exists()


def test_a_page_that_is_damaged_is_not_known(exposed: ExposedDatabase) -> None:
    data = bytearray(path_of(exposed).read_bytes())
    data[4096 : 3 * 4096] = b"\xff" * (2 * 4096)
    path_of(exposed).write_bytes(data)
    assert "cannot be read" in unknown(exposed)


def test_what_is_put_at_the_path_counts(exposed: ExposedDatabase, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    other.write_bytes(path_of(exposed).read_bytes())
    with closing(sqlite3.connect(other, isolation_level=None)) as connection:
        connection.execute("DELETE FROM notes WHERE text = 'd'")
    os.replace(other, path_of(exposed))
    assert changed(exposed) == {"notes": [({"text": "d"}, None)]}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("CREATE TABLE audit (text)", "created the table 'audit'"),
        ("CREATE VIEW audit AS SELECT 1", "created the view 'audit'"),
        ("CREATE TRIGGER audit AFTER INSERT ON notes BEGIN SELECT 1; END", "created the trigger 'audit'"),
        ("ALTER TABLE orders ADD COLUMN note", "new column 'note'"),
        ("ALTER TABLE notes RENAME COLUMN text TO body", "new column 'body'"),
        ("DROP TABLE notes", "dropped the table 'notes'"),
        ("DROP VIEW open_orders", "dropped the view"),
        ("DROP TRIGGER noted", "dropped the trigger"),
    ],
)
def test_a_change_of_the_schema_is_named_and_decides_nothing(
    exposed: ExposedDatabase, statement: str, expected: str
) -> None:
    agent(exposed, statement)
    assert expected in unknown(exposed)


def test_what_changes_no_row_is_no_change(exposed: ExposedDatabase) -> None:
    agent(
        exposed,
        "CREATE TABLE IF NOT EXISTS notes (text)",
        "CREATE INDEX by_text ON notes (text)",
        "ANALYZE",
        "PRAGMA user_version = 7",
        "VACUUM",
        "UPDATE orders SET status = status",
        "CREATE TEMP TABLE mine AS SELECT * FROM orders",
    )
    assert changed(exposed) == {}


def test_rows_that_vacuum_numbers_anew_are_told_by_their_values(exposed: ExposedDatabase) -> None:
    agent(exposed, "DELETE FROM notes", "INSERT INTO notes VALUES ('d'), ('c'), ('b'), ('a')")
    assert changed(exposed) == {}
    agent(exposed, "DELETE FROM notes WHERE text = 'c'", "VACUUM")
    assert "give 'notes' a primary key" in unknown(exposed)


def test_a_key_tells_rows_that_vacuum_numbers_anew(tmp_path: Path) -> None:
    start = state({"orders": [{"id": f"ORD-{n}", "status": "new"} for n in range(4)]})
    with closing(ExposedDatabase(start, NOW, 1)) as database:
        agent(database, "DELETE FROM orders WHERE id = 'ORD-1'", "VACUUM")
        assert changed(database) == {"orders": [({"id": "ORD-1", "status": "new"}, None)]}
        made = WorldDatabase.with_changes(start, database.changes(), NOW, 1)
    assert len(made.read("SELECT * FROM orders").rows) == 3


def test_a_text_that_is_not_unicode_is_not_known(exposed: ExposedDatabase) -> None:
    agent(exposed, "UPDATE notes SET text = CAST(X'FF' AS TEXT) WHERE text = 'a'")
    found = exposed.changes()
    assert not found.is_complete
    assert "'notes' is not valid Unicode" in found.unknown_because


def test_a_row_that_breaks_a_check_of_the_schema_can_be_made_again(exposed: ExposedDatabase) -> None:
    agent(exposed, "PRAGMA ignore_check_constraints = ON", "UPDATE orders SET status = 'never' WHERE id = 1")
    made = WorldDatabase.with_changes(exposed.start, exposed.changes(), NOW, 1)
    assert made.read("SELECT status FROM orders WHERE id = 1").rows == [("never",)]


def test_a_change_in_a_virtual_table_is_not_known(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, status)")
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5(body)")
        connection.execute("CREATE VIRTUAL TABLE by_status USING fts5(status, content='orders')")
        connection.execute("INSERT INTO texts VALUES ('a')")
        connection.commit()
    with closing(ExposedDatabase(state(database="shop.sqlite", base=tmp_path), NOW, 1)) as database:
        agent(database, "INSERT INTO orders VALUES (1, 'new')", "INSERT INTO by_status VALUES ('new')")
        assert list(changed(database)) == ["orders"]
        agent(database, "DELETE FROM texts")
        assert "virtual table 'texts'" in unknown(database)


def test_the_counter_of_autoincrement_is_a_part_of_the_state(tmp_path: Path) -> None:
    start = schema_state(tmp_path, "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, x)")
    with closing(ExposedDatabase(start, NOW, 1)) as database:
        agent(database, "INSERT INTO t (x) VALUES ('a'), ('b')", "DELETE FROM t WHERE x = 'b'")
        made = WorldDatabase.with_changes(start, database.changes(), NOW, 1)
    with made.transaction() as transaction:
        assert transaction.execute("INSERT INTO t (x) VALUES ('c') RETURNING id").rows == [{"id": 3}]
