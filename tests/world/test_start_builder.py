"""Start states: what rows, files, schemas and databases become, and what is refused at which place."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.world.start_state import StartState
from agenteval.world.statements import prepare_statement
from tests.support.world_states import ORDERS, database, schema_state, state


def rows(start: StartState, sql: str) -> list[tuple[Any, ...]]:
    return database(start).read(sql).rows


def refused(tables: Mapping[str, Any], base: Path = Path(), **more: Any) -> list[tuple[str, str]]:
    """The place and the words of each problem."""
    with pytest.raises(AuthorError) as error:
        state(tables, base=base, **more)
    return [(str(problem.place), problem.what) for problem in error.value.problems]


def refused_schema(folder: Path, sql: str, tables: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    (folder / "schema.sql").write_text(sql, "utf-8")
    return refused(tables or {}, folder, schema="schema.sql")


# ── rows in the scenario ─────────────────────────────────────────────────────────────────────────


def test_rows_come_back_as_they_were_written() -> None:
    start = state({"orders": ORDERS})
    assert rows(start, "SELECT * FROM orders ORDER BY id") == [tuple(row.values()) for row in ORDERS]
    assert [column.declared_type for column in start.tables["orders"].columns] == [
        *("TEXT", "TEXT", "REAL", "BOOLEAN", "JSON TEXT")
    ]


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        pytest.param(["25", 25], [("25", "text"), (25, "integer")], id="a text that looks like a number"),
        pytest.param(["025", "1e3"], [("025", "text"), ("1e3", "text")], id="texts"),
        pytest.param([1, 2.5], [(1.0, "real"), (2.5, "real")], id="numbers"),
        pytest.param([{"a": 1}, "25.0"], [({"a": 1}, "text"), ("25.0", "text")], id="nested"),
        pytest.param([None, None], [(None, "null"), (None, "null")], id="nothing"),
        pytest.param([True, None], [(True, "integer"), (None, "null")], id="booleans"),
    ],
)
def test_the_values_of_a_column_keep_their_types(values: list[Any], stored: list[Any]) -> None:
    start = state({"t": [{"v": value} for value in values]})
    assert rows(start, "SELECT v, typeof(v) FROM t") == stored


def test_a_key_that_a_row_does_not_have_is_null() -> None:
    assert rows(state({"t": [{"a": 1}, {"b": "x"}]}), "SELECT a, b FROM t") == [(1, None), (None, "x")]


def test_all_mistakes_in_rows_are_reported_at_their_places() -> None:
    tables = {
        "a": [{"n": 1 << 63}, {"n": 1}],
        "b": [{"flag": "yes"}, {"flag": True}],
        "c": [],
        "d": ["x", {"n": 1}],
        "e": 5,
        "f": [{"n": float("inf")}],
        "sqlite_g": [{"n": 1}],
        "h": [{"id": 1, "ID": 2}],
    }
    found = refused(tables)
    assert [place for place, _ in found] == [
        *("tables.a.0.n", "tables.b.1.flag", "tables.c", "tables.d.0", "tables.e", "tables.f.0.n"),
        *("tables.sqlite_g", "tables.h"),
    ]
    assert found[1][1] == "the column 'flag' has no type: some values are true or false, and others are not"


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def test_csv_cells_are_texts_and_an_empty_one_is_null(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("id,zip\n1,01234\n2,\n", "utf-8")
    start = state({"c": "c.csv"}, base=tmp_path)
    assert rows(start, "SELECT * FROM c") == [("1", "01234"), ("2", None)]


def test_types_give_the_cells_of_a_file_their_types(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text('i,r,b,j,t\n7,2,True,"[1, 2]",7\n,,,,y\n-7,2.5,0,{},x\n', "utf-8")
    types = {"i": "integer", "r": "real", "b": "boolean", "j": "json"}
    start = state({"c": {"file": "c.csv", "types": types}}, base=tmp_path)
    assert rows(start, "SELECT * FROM c") == [
        (7, 2.0, True, [1, 2], "7"),
        (None, None, None, None, "y"),
        (-7, 2.5, False, {}, "x"),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("t.json", '[{"a": 1, "b": [true]}]', id="json"),
        pytest.param("t.jsonl", '{"a": 1, "b": [true]}\n', id="jsonl"),
        pytest.param("t.yaml", "- {a: 1, b: [true]}\n", id="yaml"),
    ],
)
def test_a_table_is_read_from_any_format(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    assert rows(state({"t": name}, base=tmp_path), "SELECT * FROM t") == [(1, [True])]


def test_mistakes_in_a_file_are_reported_at_their_lines(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("age,ok,doc\nold,maybe,{\n9,true,1\n1.5,true,2\n", "utf-8")
    types = {"age": "integer", "ok": "boolean", "doc": "json"}
    assert refused({"c": {"file": "c.csv", "types": types}}, tmp_path) == [
        ("c.csv:2", "'age': expected an integer, got 'old'"),
        ("c.csv:2", "'ok': expected true or false, got 'maybe'"),
        (
            "c.csv:2",
            "'doc': expected JSON, got '{': Expecting property name enclosed in double quotes",
        ),
        ("c.csv:4", "'age': expected an integer, got '1.5'"),
    ]


@pytest.mark.parametrize(
    ("source", "place", "what"),
    [
        pytest.param("d.csv", "tables.c", "the file 'd.csv' does not exist", id="no file"),
        pytest.param("c.txt", "c.txt", "rows can only be read from", id="format"),
        pytest.param({"types": {}}, "tables.c", "expected a file and types", id="no file in a mapping"),
        pytest.param({"file": "c.csv", "typ": {}}, "tables.c", "expected a file and types", id="key"),
        pytest.param(
            {"file": "c.csv", "types": {"b": "text"}},
            "tables.c.types.b",
            "the file has no column 'b'",
            id="column",
        ),
        pytest.param(
            {"file": "c.csv", "types": {"a": "int"}}, "tables.c.types.a", "unknown type 'int'", id="type"
        ),
    ],
)
def test_a_wrong_file_is_reported(tmp_path: Path, source: Any, place: str, what: str) -> None:
    (tmp_path / "c.csv").write_text("a\n1\n", "utf-8")
    (tmp_path / "c.txt").write_text("a\n1\n", "utf-8")
    [(at, words)] = refused({"c": source}, tmp_path)
    assert (at, words[: len(what)]) == (place, what)


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────

SHOP = """
-- a shop; with a comment
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE orders (
  id TEXT PRIMARY KEY, customer INTEGER REFERENCES customers(id), is_paid BOOLEAN DEFAULT 0,
  total REAL CHECK (total >= 0), notes JSON
);
CREATE INDEX by_customer ON orders (customer);
CREATE TRIGGER audit AFTER UPDATE ON orders BEGIN SELECT 1; SELECT 2; END;
CREATE VIEW paid AS SELECT * FROM orders WHERE is_paid;
INSERT INTO customers VALUES (1, 'Ann; Bob');
"""


def test_rows_fill_the_tables_of_a_schema(tmp_path: Path) -> None:
    tables = {
        "orders": [
            {"id": "A", "customer": 2, "is_paid": True, "notes": "25"},
            {"id": "B", "total": 3, "customer": 1},
        ],
        "customers": [{"id": 2, "name": "Eve"}],
        "logs": [{"text": "x"}],
    }
    start = schema_state(tmp_path, SHOP, tables)
    assert rows(start, "SELECT * FROM orders ORDER BY id") == [
        ("A", 2, True, None, "25"),
        ("B", 1, False, 3.0, None),
    ]
    assert rows(start, "SELECT name FROM customers ORDER BY id") == [("Ann; Bob",), ("Eve",)]
    assert (sorted(start.tables), start.views) == (["customers", "logs", "orders"], {"paid"})
    assert [start.tables[name].key for name in ("orders", "customers", "logs")] == [("id",), ("id",), ()]


def test_a_schema_gives_the_cells_of_csv_their_types(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("id,is_paid,total\nA,true,2\nB,1,\nC,false,x\n", "utf-8")
    assert refused_schema(tmp_path, SHOP, {"orders": "o.csv"}) == [
        ("o.csv:4", "'total': expected a number, got 'x'")
    ]
    (tmp_path / "o.csv").write_text("id,is_paid,total\nA,true,2\nB,1,\n", "utf-8")
    start = schema_state(tmp_path, SHOP, {"orders": "o.csv"})
    assert rows(start, "SELECT id, is_paid, total FROM orders") == [("A", True, 2.0), ("B", True, None)]


def test_what_a_schema_forbids_is_reported_at_the_row(tmp_path: Path) -> None:
    tables = {
        "orders": [
            {"id": "A", "total": -1},
            {"id": "B"},
            {"id": "B"},
            {"id": "C", "is_paid": "yes"},
        ],
        "customers": [{"id": 7}, {"id": 8, "nam": "x"}],
    }
    assert refused_schema(tmp_path, SHOP, tables) == [
        (
            "tables.orders.0",
            "the row cannot be inserted into 'orders': CHECK constraint failed: total >= 0",
        ),
        ("tables.orders.2", "the row cannot be inserted into 'orders': UNIQUE constraint failed: orders.id"),
        ("tables.orders.3.is_paid", "'is_paid': expected true or false, got 'yes'"),
        ("tables.customers.1.nam", "the table 'customers' has no column 'nam'"),
    ]


def test_foreign_keys_are_checked_once_all_tables_are_filled(tmp_path: Path) -> None:
    tables = {"orders": [{"id": "A", "customer": 2}, {"id": "B", "customer": 9}], "customers": "c.csv"}
    (tmp_path / "c.csv").write_text("id,name\n2,Eve\n", "utf-8")
    assert refused_schema(tmp_path, SHOP, tables) == [
        ("tables.orders.1.customer", "'customer' is 9 in a row of 'orders', but 'customers' has no such row")
    ]


@pytest.mark.parametrize(
    ("sql", "line", "what"),
    [
        pytest.param(
            "CREATE TABLE a (x);\nDROP TABLE a;", 2, "a schema may not contain DROP TABLE", id="drop"
        ),
        pytest.param(
            "PRAGMA foreign_keys = OFF;", 1, "a schema may not contain PRAGMA foreign_keys", id="pragma"
        ),
        pytest.param("\n\nATTACH 'x' AS y", 3, "a schema may not contain ATTACH 'x'", id="attach"),
        pytest.param("CREATE TEMP TABLE a (x)", 1, "a schema may not contain CREATE TEMP", id="temporary"),
        pytest.param(
            "CREATE VIRTUAL TABLE a USING fts5(x)", 1, "a schema may not contain CREATE VIRTUAL", id="virtual"
        ),
        pytest.param(
            "/* c\n */ CREATE TABEL a (x)", 2, "a schema may not contain CREATE TABEL", id="misspelt"
        ),
        pytest.param("CREATE TABLE a (x", 1, "incomplete input", id="incomplete"),
        pytest.param("SELECT 1;", 1, "a schema may not contain SELECT 1", id="select"),
        pytest.param("CREATE TABLE a (x);\nINSERT INTO b VALUES (1);", 2, "no such table: b", id="insert"),
        pytest.param(
            "CREATE TABLE a AS SELECT load_extension('x')",
            1,
            "a part of this statement is not allowed",
            id="function",
        ),
    ],
)
def test_a_wrong_statement_of_a_schema_is_reported_at_its_line(
    tmp_path: Path, sql: str, line: int, what: str
) -> None:
    [(place, words)] = refused_schema(tmp_path, sql)
    assert (place, words) == (f"schema.sql:{line}", what)
    assert list(tmp_path.iterdir()) == [tmp_path / "schema.sql"]


# ── existing databases ───────────────────────────────────────────────────────────────────────────


def write_database(path: Path, *, mode: str = "delete") -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, on_sale BOOLEAN)")
    connection.execute("INSERT INTO t VALUES (1, 1)")
    connection.commit()
    return connection


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("is_closed", [True, False])
def test_a_database_is_read_and_never_changed(tmp_path: Path, mode: str, is_closed: bool) -> None:
    connection = write_database(tmp_path / "shop #1?.sqlite", mode=mode)
    if is_closed:
        connection.close()
        connection = sqlite3.connect(tmp_path / "shop #1?.sqlite")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if not path.name.endswith("-shm")}
    start = state({"t": [{"id": 2}], "u": [{"a": 1}]}, database="shop #1?.sqlite", base=tmp_path)
    sample = database(start)
    with sample.transaction() as transaction:
        transaction.execute("DELETE FROM t WHERE id = 1")
    assert sample.read("SELECT id, on_sale FROM t").rows == [(2, None)]
    assert rows(start, "SELECT id, on_sale FROM t") == [(1, True), (2, None)]
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir() if not path.name.endswith("-shm")}
    assert files == before
    assert connection.execute("SELECT * FROM t").fetchall() == [(1, 1)]
    connection.close()


def test_an_index_for_full_text_search_is_read_and_not_written(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "docs.sqlite")
    try:
        connection.execute("CREATE VIRTUAL TABLE docs USING fts5(text)")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no full-text search")
    connection.execute("INSERT INTO docs VALUES ('hello world')")
    connection.commit()
    connection.close()
    start = state(database="docs.sqlite", base=tmp_path)
    assert rows(start, "SELECT text FROM docs WHERE docs MATCH 'hello'") == [("hello world",)]
    with pytest.raises(AuthorError, match="a change of 'docs' is not allowed"):
        prepare_statement("INSERT INTO docs VALUES ('x')", start)


def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "shop.sqlite").write_text("id,name\n" * 200, "utf-8")
    [found] = refused({}, tmp_path, database="shop.sqlite")
    assert found == ("database", "'shop.sqlite' cannot be read: file is not a database")
    [(place, what)] = refused({}, tmp_path, database="ship.sqlite")
    assert (place, what[:35]) == ("database", "the file 'ship.sqlite' does not exi")


def test_a_schema_and_a_database_exclude_each_other() -> None:
    [(place, what)] = refused({}, schema="a.sql", database="b.sqlite")
    assert (place, what[:38]) == ("schema", "`schema` and `database` exclude each o")


def test_an_old_sqlite_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(AuthorError, match=r"`state` needs SQLite 3\.37 or later"):
        state()


# ── the state itself ─────────────────────────────────────────────────────────────────────────────


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    orders = [dict(row) for row in ORDERS]
    first, same = state({"orders": orders}), state({"orders": orders})
    other = state({"orders": [{**orders[0], "total": 26}, orders[1]]})
    assert first.content_hash == same.content_hash != other.content_hash
    assert schema_state(tmp_path, SHOP).content_hash != schema_state(tmp_path, "").content_hash


def test_an_empty_state_answers_statements_without_tables() -> None:
    assert rows(state(), "SELECT 1 + 1") == [(2,)]


def test_a_table_whose_rows_have_no_identity_is_refused() -> None:
    with pytest.raises(AuthorError, match="columns named rowid, _rowid_, oid"):
        state({"t": [{"rowid": 1, "_rowid_": 2, "oid": 3}]})
