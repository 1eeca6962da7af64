"""What differs from the start state: found, recorded, made again."""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agenteval.core.world_state import StateChanges
from agenteval.world import changes as changes_module
from agenteval.world.changes import ChangedRow, changed_rows
from agenteval.world.connections import SqlCallError
from agenteval.world.database import WorldDatabase
from agenteval.world.sql_text import quote_name
from agenteval.world.start_state import StartState
from tests.support.world_states import NOW, ORDERS, database, schema_state, state


def after(start: StartState, *statements: str) -> WorldDatabase:
    sample = database(start)
    for sql in statements:
        with sample.transaction() as transaction:
            transaction.execute(sql)
    return sample


def recorded(changes: StateChanges) -> StateChanges:
    """The changes as they are read from a journal."""
    return StateChanges.model_validate(json.loads(changes.model_dump_json()))


def made_again(sample: WorldDatabase) -> WorldDatabase:
    changes = recorded(sample.changes())
    return WorldDatabase.with_changes(sample.start, changes, NOW, changes.seed)


def content(sample: WorldDatabase) -> list[Any]:
    """Every row of every table with its identity, and the type of every value."""
    found = []
    raw = sample.own_copy().raw
    for name, shape in sample.start.stored_tables.items():
        columns = [*shape.identity, *(column.name for column in shape.columns)]
        selected = ", ".join(f"{quoted}, typeof({quoted})" for quoted in map(quote_name, columns))
        found.append((name, sorted(raw.execute(f"SELECT {selected} FROM {name}").fetchall(), key=repr)))
    return found


def test_changed_rows_have_their_values_before_and_after() -> None:
    sample = after(
        state({"orders": ORDERS, "logs": [{"text": "a"}], "same": [{"a": 1}]}),
        "UPDATE orders SET status = 'cancelled', is_paid = 1 WHERE id = 'ORD-1'",
        "DELETE FROM orders WHERE id = 'ORD-2'",
        "INSERT INTO logs VALUES ('b')",
        "UPDATE same SET a = 1",
    )
    changes = sample.changes()
    assert [(table, row.identity) for table, rows in changes.tables.items() for row in rows] == [
        *(("logs", (2,)), ("orders", (1,)), ("orders", (2,))),
    ]
    assert changed_rows(changes, sample.start) == {
        "logs": [ChangedRow(None, {"text": "b"})],
        "orders": [
            ChangedRow(dict(ORDERS[0]), {**ORDERS[0], "status": "cancelled", "is_paid": True}),
            ChangedRow(dict(ORDERS[1]), None),
        ],
    }


def test_what_was_undone_is_no_change() -> None:
    start = state({"orders": ORDERS})
    sample = after(start, "UPDATE orders SET total = total + 1", "UPDATE orders SET total = total - 1")
    assert not sample.changes().tables


def test_a_row_is_known_by_its_key_even_if_it_was_inserted_again(tmp_path: Path) -> None:
    schema = "CREATE TABLE t (k TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('a', 1), ('b', 2);"
    sample = after(
        schema_state(tmp_path, schema), "REPLACE INTO t VALUES ('a', 9)", "REPLACE INTO t VALUES ('b', 2)"
    )
    assert changed_rows(sample.changes(), sample.start) == {
        "t": [ChangedRow({"k": "a", "v": 1}, {"k": "a", "v": 9})]
    }
    assert content(made_again(sample)) == content(sample)


@pytest.mark.parametrize("columns", ["(v)", "(v BLOB)", "(v ANY) STRICT"])
def test_equal_numbers_of_two_types_are_kept_apart_and_compared_by_value(
    tmp_path: Path, columns: str
) -> None:
    start = schema_state(tmp_path, f"CREATE TABLE t {columns}; INSERT INTO t VALUES (25);")
    sample = after(start, "UPDATE t SET v = 25.0")
    assert sample.changes().tables
    assert changed_rows(sample.changes(), sample.start) == {}
    assert made_again(sample).read("SELECT typeof(v), v / 2 FROM t").rows == [("real", 12.5)]


def test_a_change_of_case_is_a_change(tmp_path: Path) -> None:
    schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT COLLATE NOCASE); INSERT INTO t VALUES (1, 'a');"
    sample = after(schema_state(tmp_path, schema), "UPDATE t SET v = 'A'")
    assert changed_rows(sample.changes(), sample.start)["t"][0].after == {"id": 1, "v": "A"}


def test_rows_that_share_an_id_are_all_reported() -> None:
    sample = after(state({"t": [{"id": 1, "v": 1}, {"id": 1, "v": 2}]}), "UPDATE t SET v = v + 1")
    assert len(changed_rows(sample.changes(), sample.start)["t"]) == 2


# ── start + changes = end ────────────────────────────────────────────────────────────────────────

RICH = """
CREATE TABLE plain (a, b TEXT COLLATE NOCASE, "odd ""name" REAL);
CREATE TABLE keyed (
  id INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER UNIQUE, twice AS (n * 2), thrice AS (n * 3) STORED
);
CREATE TABLE named (k TEXT PRIMARY KEY COLLATE NOCASE, v BLOB, plain INTEGER);
CREATE TABLE pair (x TEXT, y INTEGER, v JSON, PRIMARY KEY (x, y)) WITHOUT ROWID;
CREATE TABLE child (
  id INTEGER PRIMARY KEY, keyed INTEGER REFERENCES keyed ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE TABLE log (text TEXT);
CREATE VIEW all_named AS SELECT k, v FROM named;
CREATE TRIGGER logs AFTER DELETE ON child BEGIN INSERT INTO log VALUES ('gone ' || old.id); END;
CREATE TRIGGER adds AFTER INSERT ON named BEGIN
  INSERT INTO log VALUES (new.k); UPDATE plain SET a = new.k WHERE b = 'a';
END;
CREATE TRIGGER through INSTEAD OF INSERT ON all_named BEGIN
  INSERT INTO named (k, v) VALUES (new.k, new.v);
END;
INSERT INTO plain VALUES (1, 'a', 1.5), ('1', 'B', 2), (NULL, NULL, NULL);
INSERT INTO keyed (n) VALUES (1), (2), (3);
INSERT INTO named VALUES ('a', x'00ff', 1), ('b', 'text', 2);
INSERT INTO pair VALUES ('x', 1, '[1]'), ('x', 2, NULL), ('y', 1, '{}');
INSERT INTO child VALUES (1, 1), (2, 1), (3, 2);
"""
STATEMENTS = (
    "INSERT INTO plain VALUES (:i, :t, :r)",
    "UPDATE plain SET a = :r WHERE b = :t",
    "UPDATE plain SET a = b, b = a",
    "UPDATE plain SET a = 1e999 WHERE rowid = :i",
    "UPDATE plain SET rowid = rowid + 10 WHERE rowid = :i",
    "DELETE FROM plain WHERE rowid = :i",
    "INSERT INTO keyed (n) VALUES (:i)",
    "INSERT INTO keyed (id, n) VALUES (:i * 3, :i)",
    "UPDATE keyed SET id = id + 20 WHERE id = :i",
    "UPDATE keyed SET n = 7 - n",
    "DELETE FROM keyed WHERE id = :i",
    "INSERT OR IGNORE INTO named VALUES (:t, :r, :i)",
    "REPLACE INTO named VALUES (:t, zeroblob(:i), :i)",
    "UPDATE named SET k = upper(k)",
    "UPDATE named SET v = randomblob(3), plain = :i WHERE k = :t",
    "INSERT INTO all_named VALUES (:t, :i)",
    "REPLACE INTO pair VALUES (:t, :i, :t)",
    "UPDATE pair SET y = y + 2 WHERE x = :t",
    "DELETE FROM pair WHERE y = :i",
    "INSERT INTO child (keyed) SELECT id FROM keyed",
    "DELETE FROM child WHERE id = :i",
)


def try_statement(sample: WorldDatabase, sql: str, random: Random) -> None:
    values = {
        "i": random.randint(0, 6),
        "t": random.choice("aAbcxy"),
        "r": random.choice((1.0, 2, "3", None)),
    }
    with suppress(SqlCallError), sample.transaction() as transaction:
        transaction.execute(sql, values)


@pytest.mark.parametrize("seed", range(60))
def test_the_start_state_and_the_changes_are_the_end_state(tmp_path: Path, seed: int) -> None:
    start = schema_state(tmp_path, RICH)
    random = Random(seed)
    sample = database(start, seed)
    for _ in range(random.randint(1, 25)):
        try_statement(sample, random.choice(STATEMENTS), random)
    again = made_again(sample)
    assert content(again) == content(sample)
    assert again.changes() == sample.changes()
    assert bool(sample.changes().tables) is (content(sample) != content(database(start)))
    for both in (sample, again):  # it goes on in the same way, too
        with both.transaction() as transaction:
            transaction.execute("DELETE FROM child")
            transaction.execute("INSERT INTO keyed (n) VALUES (99)")
    assert content(again) == content(sample)


def test_each_of_these_statements_changes_something(tmp_path: Path) -> None:
    start = schema_state(tmp_path, RICH)
    changing = set()
    for seed in range(10):
        for sql in STATEMENTS:
            sample = database(start)
            try_statement(sample, sql, Random(seed))
            if sample.changes().tables:
                changing.add(sql)
    assert changing == set(STATEMENTS)


# ── bounds ───────────────────────────────────────────────────────────────────────────────────────

MANY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {}) INSERT INTO t SELECT i FROM n"
)


def test_too_many_changes_are_never_taken_for_none() -> None:
    start = state({"t": [{"a": 0}]})
    assert after(start, MANY.format(10_000)).changes().is_complete
    changes = after(start, MANY.format(10_001)).changes()
    assert (changes.is_complete, len(changes.tables["t"])) == (False, 10_000)
    with pytest.raises(ValueError, match="not complete"):
        WorldDatabase.with_changes(start, changes, NOW, 1)


def test_changes_that_are_too_large_are_never_taken_for_none() -> None:
    start = state({"t": [{"a": "x"}]})
    changes = after(start, "UPDATE t SET a = hex(zeroblob(2000001))").changes()
    assert (changes.tables, changes.is_complete) == ({}, False)


def test_a_text_that_cannot_be_recorded_is_never_taken_for_no_change() -> None:
    changes = after(state({"t": [{"a": "x"}]}), "UPDATE t SET a = CAST(x'ff' AS TEXT)").changes()
    assert not changes.is_complete


def test_the_bounds_are_those_of_the_documentation() -> None:
    assert (changes_module.MAX_CHANGED_ROWS, changes_module.MAX_CHANGES_SIZE) == (10_000, 4_000_000)


def test_a_change_is_a_frozen_value_of_json() -> None:
    sample = after(state({"t": [{"a": "x"}]}), "UPDATE t SET a = x'00ff'")
    changes = sample.changes()
    assert json.loads(changes.model_dump_json(exclude={"start", "now", "seed"})) == {
        "tables": {"t": [{"identity": [1], "before": {"a": "x"}, "after": {"a": {"$blob": "AP8="}}}]},
        "is_complete": True,
    }
    assert recorded(changes) == changes
    with pytest.raises(ValueError):
        changes.is_complete = False  # type: ignore[misc]


def test_changes_are_found_although_the_sample_is_restricted() -> None:
    sample = after(state({"t": [{"a": 1}]}), "UPDATE t SET a = 2")
    assert sample.changes().tables
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        sample.own_copy().raw.execute("ATTACH ':memory:' AS x")


def test_one_is_not_true_within_json() -> None:
    start = state({"t": [{"id": 1, "a": [1]}, {"id": 2, "a": [{"b": 1}]}]})
    changes = after(start, "UPDATE t SET a = replace(a, '1', iif(id = 1, 'true', '1.0'))").changes()
    assert changed_rows(changes, start) == {"t": [ChangedRow({"id": 1, "a": [1]}, {"id": 1, "a": [True]})]}


def test_a_column_that_the_schema_computes_is_not_compared(tmp_path: Path) -> None:
    start = schema_state(tmp_path, "CREATE TABLE t (a INT, b INT AS (a + 1)); INSERT INTO t VALUES (1);")
    changes = after(start, "UPDATE t SET a = 2").changes()
    assert [dict(row.after or {}) for row in changes.tables["t"]] == [{"a": 2}]
    again = WorldDatabase.with_changes(start, changes, NOW, 1)
    assert again.read("SELECT a, b FROM t").rows == [(2, 3)]
