"""The tables of a world in Python follow its snapshots: the database always reads as the last one did."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.core.world_state import WorldTables
from agenteval.world.changes import changed_rows
from agenteval.world.database import WorldDatabase
from agenteval.world.snapshot_tables import find_difference, mirror_snapshot, read_snapshot, start_rows
from agenteval.world.start_builder import build_start_state
from agenteval.world.table_rows import StateFiles
from tests.support.world_states import NOW

Rows = list[dict[str, Any]]


def database(
    first: Mapping[str, Rows], folder: Path | None = None, schema: str = "", **tables: Rows
) -> WorldDatabase:
    base = folder or Path()
    if schema:
        (base / "schema.sql").write_text(schema, "utf-8")
    start = build_start_state(
        tables=tables,
        schema="schema.sql" if schema else None,
        database=None,
        files=StateFiles(base, base),
        place_of=lambda _: None,
        now=NOW,
        snapshot=snapshot(first),
    )
    return WorldDatabase(start, NOW, 1)


def snapshot(tables: Mapping[str, Rows]) -> WorldTables:
    return read_snapshot({table: list(rows) for table, rows in tables.items()})


def stored(world: WorldDatabase, table: str) -> list[Any]:
    result = world.read(f"SELECT * FROM {table}")
    return sorted((dict(zip(result.columns, row, strict=True)) for row in result.rows), key=repr)


def texts(world: WorldDatabase) -> dict[str, list[tuple[Any, Any]]]:
    return {
        name: [(row.before, row.after) for row in rows]
        for name, rows in changed_rows(world.changes(), world.start).items()
    }


SCHEMAS = {
    "no schema": "",
    "a key": "CREATE TABLE t (id INTEGER PRIMARY KEY, v UNIQUE, n REAL);",
    "without rowid": "CREATE TABLE t (id TEXT, v, n, PRIMARY KEY (id, v)) WITHOUT ROWID;",
    "counted": "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v, n);",
    "no key": "CREATE TABLE t (id_ INTEGER, v, n);",
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("seed", range(8))
def test_the_database_reads_as_the_last_snapshot(schema: str, seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    key = "id_" if "id_" in schema else "id"

    def rows() -> Rows:
        ids = random.sample(range(9), random.randint(1, 6))
        values = random.sample("abcdefghi", len(ids))
        made = zip(ids, values, strict=True)
        one: Any = str if "TEXT" in schema else int
        return [{key: one(id_), "v": value, "n": random.choice((None, 1.5, 2.5))} for id_, value in made]

    first = {"t": rows()}
    world = database(first, tmp_path, schema)
    for _ in range(12):
        now = {"t": rows()}
        mirror_snapshot(world, snapshot(now))
        assert stored(world, "t") == sorted(now["t"], key=repr)
        again = WorldDatabase.with_changes(world.start, world.changes(), NOW, 1)
        assert stored(again, "t") == sorted(now["t"], key=repr)
    mirror_snapshot(world, snapshot({"t": [*reversed(first["t"])]}))
    assert texts(world) == {}


def test_a_row_keeps_its_place_by_its_key() -> None:
    world = database({"t": [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]})
    mirror_snapshot(world, snapshot({"t": [{"id": 2, "v": "c"}, {"id": 3, "v": "a"}]}))
    found = texts(world)["t"]
    assert len(found) == 3
    for expected in (
        ({"id": 1, "v": "a"}, None),
        ({"id": 2, "v": "b"}, {"id": 2, "v": "c"}),
        (None, {"id": 3, "v": "a"}),
    ):
        assert expected in found


def test_values_keep_their_types() -> None:
    first = {"t": [{"id": 1, "any": "25", "yes": True, "list": [1], "late": None}]}
    world = database(first)
    for value in (25, 25.5, "25", None):
        mirror_snapshot(world, snapshot({"t": [{**first["t"][0], "any": value}]}))
        (row,) = stored(world, "t")
        assert (row["any"], type(row["any"])) == (value, type(value))
    mirror_snapshot(world, snapshot({"t": [{"id": 1, "list": "no list", "yes": False}]}))
    assert stored(world, "t") == [{"id": 1, "any": None, "yes": False, "list": "no list", "late": None}]


def test_rows_of_the_file_give_an_empty_table_its_columns_and_types() -> None:
    world = database({"t": []}, t=[{"id": 1, "ok": True, "text": "a"}])
    assert stored(world, "t") == []
    mirror_snapshot(world, snapshot({"t": [{"id": "1", "ok": False, "text": 5}]}))
    assert stored(world, "t") == [{"id": "1", "ok": False, "text": 5}]
    assert start_rows(world.start) == {"t": []}


@pytest.mark.parametrize(
    ("schema", "rows", "problem"),
    [
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, v NOT NULL);", [{"id": 1}], "cannot be stored: NOT NULL"),
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, v);", [{"id": 1}, {"id": 1}], "cannot be stored: UNIQUE"),
        ("CREATE TABLE t (id, v);", [{"id": 1, "v": 1 << 63}], "an integer has at most 63 bits"),
        ("CREATE TABLE t (id, v AS (id + 1));", [{"id": 1, "v": 2}], "has no column 'v'"),
    ],
)
def test_rows_that_the_schema_does_not_allow(schema: str, rows: Rows, problem: str, tmp_path: Path) -> None:
    with pytest.raises(AuthorError, match=problem):
        database({"t": rows}, tmp_path, schema)
    world = database({"t": []}, tmp_path, schema)
    with pytest.raises(AuthorError, match=problem):
        mirror_snapshot(world, snapshot({"t": rows}))
    assert stored(world, "t") == []


def test_a_trigger_on_a_table_of_the_world_is_refused(tmp_path: Path) -> None:
    schema = (
        "CREATE TABLE t (id); CREATE TABLE log (id);"
        "CREATE TRIGGER noted AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.id); END;"
    )
    with pytest.raises(AuthorError, match="the schema has the trigger 'noted'"):
        database({"t": []}, tmp_path, schema)
    assert stored(database({"log": []}, tmp_path, schema), "t") == []


@pytest.mark.parametrize(
    ("after", "text"),
    [
        ([{"a": 1.0, "b": None}, {"a": 2}], None),
        ([{"a": 2}, {"a": 1}], None),
        ([{"a": 1}], '{"a": 2} is gone'),
        ([{"a": 1}, {"a": 2}, {"a": 2}], '{"a": 2} is added'),
        ([{"a": True}, {"a": 2}], '{"a": 1} is gone'),
    ],
)
def test_a_difference_names_a_row(after: Rows, text: str | None) -> None:
    found = find_difference(snapshot({"t": [{"a": 1}, {"a": 2}]}), snapshot({"t": after}))
    assert (found.text if found else None) == text
