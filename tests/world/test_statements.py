"""Statements: what is refused, with which remedy, and what is known of those that are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.errors import AuthorError
from agenteval.world.start_state import StartState
from agenteval.world.statements import Statement, prepare_statement, prepare_statements
from tests.support.world_states import ORDERS, schema_state, state


@pytest.fixture(scope="module")
def start() -> StartState:
    return state({"orders": ORDERS, "customers": [{"id": 1, "name": "Ann"}]})


@pytest.mark.parametrize(
    ("sql", "what", "remedy"),
    [
        ("SELECT * FROM orderz", "no such table: orderz", "did you mean 'orders'?"),
        ("SELECT stats FROM orders", "no such column: stats", "did you mean 'status'?"),
        ("SELECT o.stats FROM orders o", "no such column: o.stats", "did you mean 'status'?"),
        ("INSERT INTO orders (idd) VALUES (1)", "table orders has no column named idd", "did you mean 'id'?"),
        (
            'SELECT * FROM orders WHERE id = "A"',
            "no such column: A",
            "a text is written in single quotes: 'A'",
        ),
        ("SELEC 1", "a statement may not begin with 'SELEC'", "did you mean 'SELECT'?"),
        ("SELECT FROM orders", 'near "FROM": syntax error', ""),
        ("SELECT 1; SELECT 2", "two statements in one text", "write a list of statements, one per text"),
        ("  -- nothing", "the statement is empty", "use SELECT, INSERT, UPDATE or DELETE"),
        ("CREATE TABLE x (a)", "a statement may not change tables: CREATE", "tables are created by the"),
        ("drop table orders", "a statement may not change tables: DROP", "tables are created by the"),
        (
            "/* a */ ALTER TABLE orders ADD b",
            "a statement may not change tables: ALTER",
            "tables are created",
        ),
        ("BEGIN", "a statement may not begin or end a transaction: BEGIN", "remove it: every call is one"),
        ("ROLLBACK", "a statement may not begin or end a transaction: ROLLBACK", "remove it: every call"),
        ("ATTACH 'x' AS y", "ATTACH is not allowed", "use SELECT, INSERT, UPDATE or DELETE"),
        ("PRAGMA user_version", "PRAGMA is not allowed", "use SELECT, INSERT, UPDATE or DELETE"),
        ("SELECT * FROM pragma_table_info('orders')", "PRAGMA is not allowed", "use SELECT, INSERT"),
        ("SELECT load_extension('x')", "the function load_extension is not allowed", "use SELECT, INSERT"),
        (
            "SELECT ${args.id}",
            "'${args.id}' is not allowed within SQL",
            "write :name, which is bound as a value",
        ),
        ("SELECT '${args.id}'", "'${args.id}' is not allowed within SQL", "write :name, which is bound"),
        ("SELECT @id", "the parameter '@id' is not allowed", "write the name as :name"),
        ("SELECT ?1", "the parameter '?1' is not allowed", "write the name as :name"),
        ("SELECT ?", "the parameter '?' has no name", "write the name of an argument, such as :id"),
        ("SELECT :a, ?", "some parameters have a name and others are '?'", "write all as :name, or all as ?"),
        ("SELECT id, o.id FROM orders o", "two columns of the result are named 'id'", "rename one: id AS"),
        ("SELECT :a, 1, :a", "two columns of the result are named ':a'", "rename one: :a AS other_name"),
        ("SELECT foo(1)", "no such function: foo", ""),
        ("SELECT 'a\0b'", "the statement contains a null character", "remove it"),
        ("DELETE FROM sqlite_master", "table sqlite_master may not be modified", ""),
    ],
)
def test_a_wrong_statement_is_refused(start: StartState, sql: str, what: str, remedy: str) -> None:
    with pytest.raises(AuthorError) as error:
        prepare_statements([sql], start)
    [problem] = error.value.problems
    assert (problem.what, problem.remedy[: len(remedy)]) == (what, remedy)
    assert bool(problem.remedy) is bool(remedy)


def test_all_mistakes_of_a_list_are_reported(start: StartState) -> None:
    with pytest.raises(AuthorError) as error:
        prepare_statements(["SELECT * FROM x", "SELECT 1", "SELECT ?"], start)
    assert [problem.what for problem in error.value.problems] == [
        "no such table: x",
        "the parameter '?' has no name",
    ]


def test_a_counter_of_sqlite_cannot_be_written(tmp_path: Path) -> None:
    start = schema_state(tmp_path, "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    with pytest.raises(AuthorError, match="a change of 'sqlite_sequence' is not allowed"):
        prepare_statement("DELETE FROM sqlite_sequence", start)


def prepared(start: StartState, sql: str) -> Statement:
    return prepare_statements([sql], start)[0]


def test_the_parameters_are_those_outside_of_texts_and_comments(start: StartState) -> None:
    sql = "SELECT :b, ':c', [:d] FROM (SELECT 1 AS [:d]) -- :e\nWHERE :a = :b /* :f */;"
    assert prepared(start, sql).parameters == ("b", "a")


@pytest.mark.parametrize(
    ("sql", "is_ordered"),
    [
        ("SELECT * FROM orders ORDER BY id", True),
        ("SELECT * FROM (SELECT * FROM orders ORDER BY id)", False),
        ("SELECT id AS [ORDER] FROM orders -- ORDER BY", False),
    ],
)
def test_a_statement_knows_whether_it_orders_its_rows(start: StartState, sql: str, is_ordered: bool) -> None:
    assert prepared(start, sql).is_ordered is is_ordered


def test_triggers_and_foreign_keys_write_too(tmp_path: Path) -> None:
    schema = """
    CREATE TABLE a (id INTEGER PRIMARY KEY);
    CREATE TABLE b (a REFERENCES a ON DELETE CASCADE);
    CREATE TABLE c (x);
    CREATE TRIGGER t AFTER DELETE ON b BEGIN INSERT INTO c VALUES (old.a); END;
    """
    start = schema_state(tmp_path, schema)
    assert prepared(start, "DELETE FROM a").writes == {"a", "b", "c"}
    assert prepared(start, "WITH x AS (SELECT 1) INSERT INTO c SELECT * FROM x").writes == {"c"}
    assert prepared(start, "SELECT * FROM a").is_query


def test_a_statement_is_checked_once(start: StartState, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepare_statement("SELECT 41 + 1", start)
    monkeypatch.setattr("agenteval.world.statements.tokenize", None)
    assert prepare_statement("SELECT 41 + 1", start) is first
