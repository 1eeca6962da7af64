"""A sample's database: calls, transactions, limits, values, time and chance, threads, copies."""

from __future__ import annotations

import gc
import sqlite3
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.errors import AuthorError, ToolError
from agenteval.world import connections
from agenteval.world.connections import SqlCallError, WorldConnection
from agenteval.world.database import SqlAnswer, WorldDatabase
from agenteval.world.start_state import StartState
from agenteval.world.statements import prepare_statements
from tests.support.world_states import NOW, ORDERS, database, schema_state, state


@pytest.fixture
def orders() -> StartState:
    return state({"orders": ORDERS})


def call(sample: WorldDatabase, *texts: str, **args: Any) -> SqlAnswer:
    return sample.call(prepare_statements(texts, sample.start), args)


def fails(sample: WorldDatabase, *texts: str, **args: Any) -> str:
    with pytest.raises(SqlCallError) as error:
        call(sample, *texts, **args)
    return str(error.value)


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def test_a_query_returns_rows_as_they_were_written(orders: StartState) -> None:
    answer = call(database(orders), "SELECT * FROM orders WHERE id = :id", id="ORD-1")
    assert answer == SqlAnswer([dict(ORDERS[0])], 0, has_rows=True)


def test_a_statement_that_writes_counts_rows(orders: StartState) -> None:
    sample = database(orders)
    assert call(sample, "UPDATE orders SET status = 'x'") == SqlAnswer([], 2, has_rows=False)
    assert call(sample, "SELECT * FROM orders").changed == 0
    assert call(sample, "WITH a AS (SELECT 1) DELETE FROM orders WHERE id = 'ORD-1'").changed == 1
    assert call(sample, "UPDATE orders SET status = 'y' WHERE id = 'none'").changed == 0


def test_returning_returns_rows(orders: StartState) -> None:
    answer = call(
        database(orders), "UPDATE orders SET is_paid = 1 RETURNING id, is_paid, tags, total + 1 AS more"
    )
    assert answer.changed == 2
    assert answer.rows[0] == {"id": "ORD-1", "is_paid": True, "tags": ["new", "eu"], "more": 26.5}


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("SELECT is_paid AS paid FROM orders", {"paid": False}),
        ("SELECT p FROM (SELECT is_paid AS p FROM orders)", {"p": False}),
        ("WITH x AS (SELECT tags FROM orders) SELECT * FROM x", {"tags": ["new", "eu"]}),
        ("SELECT NOT is_paid AS n FROM orders", {"n": 1}),
        ("SELECT is_paid FROM orders WHERE total > :missing OR 1 LIMIT 1", {"is_paid": False}),
    ],
)
def test_booleans_are_known_by_their_columns(orders: StartState, sql: str, row: dict[str, Any]) -> None:
    assert call(database(orders), sql).rows[0] == row


def test_a_comment_at_the_end_is_no_part_of_a_name(orders: StartState) -> None:
    assert call(database(orders), "SELECT 'a;b' || 1; -- end").rows == [{"'a;b' || 1": "a;b1"}]


def test_arguments_are_bound_as_values(orders: StartState) -> None:
    sql = "SELECT :text AS a, :missing AS b, :yes AS c, :list AS d, :none AS e"
    args = {"text": "'; DROP TABLE orders", "yes": True, "list": [1, {"a": "é"}], "none": None, "other": 1}
    [row] = call(database(orders), sql, **args).rows
    assert row == {"a": "'; DROP TABLE orders", "b": None, "c": 1, "d": '[1, {"a": "é"}]', "e": None}


def test_a_call_that_fails_changes_nothing(orders: StartState) -> None:
    sample = database(orders)
    call(sample, "UPDATE orders SET status = 'kept' WHERE id = 'ORD-1'")
    before = sample.changes()
    insert = "INSERT INTO orders (id) VALUES (:id)"
    assert fails(sample, insert, "UPDATE orders SET total = 1", insert, id=1 << 63) == (
        "'id' is an integer of more than 63 bits"
    )
    assert sample.changes() == before


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("INSERT INTO t VALUES (1, 1)", "UNIQUE constraint failed: t.id"),
        ("INSERT INTO t VALUES (2, NULL)", "NOT NULL constraint failed: t.n"),
        ("INSERT INTO t VALUES (2, -1)", "CHECK constraint failed: n >= 0"),
        ("INSERT INTO t VALUES ('x', 1)", "datatype mismatch"),
        ("INSERT INTO u VALUES (7)", "FOREIGN KEY constraint failed"),
        ("INSERT INTO v VALUES (7)", "FOREIGN KEY constraint failed"),
        ("SELECT x'00' AS b", "the column 'b' holds binary data"),
        ("SELECT 1e999 AS big", "the column 'big' holds a number that is not finite"),
        ("SELECT json('{')", "malformed JSON"),
        ("SELECT abs(-9223372036854775808)", "integer overflow"),
    ],
)
def test_an_error_of_sqlite_is_a_result(tmp_path: Path, sql: str, message: str) -> None:
    schema = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n >= 0));
    CREATE TABLE u (t REFERENCES t);
    CREATE TABLE v (t REFERENCES t DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO t VALUES (1, 1);
    """
    sample = database(schema_state(tmp_path, schema))
    assert fails(sample, sql) == message
    assert not sample.changes().tables
    assert call(sample, "UPDATE t SET n = 2").changed == 1


def test_an_argument_that_is_no_text_is_a_result(orders: StartState) -> None:
    assert fails(database(orders), "SELECT :a", a="\ud800") == "a value cannot be stored in the database"


# ── limits ───────────────────────────────────────────────────────────────────────────────────────

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (ENDLESS.format("count(*)"), "the statement takes more than 20,000,000 steps"),
        (ENDLESS.format("i"), "the answer has more than 1,000 rows"),
        (ENDLESS.format("hex(zeroblob(5000))"), "the answer has more than 1,000,000 characters"),
        ("SELECT hex(zeroblob(9000000))", "a value has more than 16,000,000 bytes"),
        ("SELECT 'a' LIKE hex(zeroblob(600))", "LIKE or GLOB pattern too complex"),
    ],
)
def test_a_statement_is_bounded(orders: StartState, sql: str, message: str) -> None:
    sample = database(orders)
    assert fails(sample, sql) == message
    call(sample, "DELETE FROM orders")
    assert fails(sample, sql) == message


def test_an_answer_may_have_as_many_rows_as_allowed(orders: StartState) -> None:
    assert len(call(database(orders), f"{ENDLESS.format('i')} LIMIT 1000").rows) == 1000


def test_the_limit_does_not_depend_on_earlier_calls(
    orders: StartState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_STEPS", 20_000)

    rows = f"SELECT count(*) AS n FROM ({ENDLESS.format('i')} LIMIT :n)"

    def is_finished(count: int) -> bool:
        try:
            return bool(call(database(orders), rows, n=count).rows)
        except SqlCallError:
            return False

    outcomes = [{is_finished(count) for _ in range(10)} for count in range(500, 2000, 100)]
    assert {True} in outcomes
    assert {False} in outcomes
    assert {True, False} not in outcomes


def test_an_interrupted_write_undoes_the_call_and_ends_it(
    orders: StartState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_STEPS", 100_000)
    sample = database(orders)
    endless = f"INSERT INTO orders (id) {ENDLESS.format('i')}"

    def play() -> None:
        with sample.transaction() as transaction:
            transaction.execute("DELETE FROM orders")
            with pytest.raises(SqlCallError, match="steps"):
                transaction.execute(endless)
            with pytest.raises(SqlCallError, match="everything was undone"):
                transaction.execute("DELETE FROM orders")

    with pytest.raises(SqlCallError, match="everything was undone"):
        play()
    assert not sample.changes().tables


# ── transactions ─────────────────────────────────────────────────────────────────────────────────


def test_code_of_the_author_runs_statements_in_the_transaction_of_its_call(orders: StartState) -> None:
    sample = database(orders)
    with sample.transaction() as transaction:
        assert transaction.execute("SELECT count(*) AS n FROM orders").rows == [{"n": 2}]
        transaction.execute("DELETE FROM orders WHERE id = ?", ["ORD-1"])
        assert transaction.execute("SELECT id FROM orders").rows == [{"id": "ORD-2"}]
        transaction.execute("UPDATE orders SET tags = :tags", {"tags": ["x"], "unused": 1})
    assert sample.read("SELECT id, tags FROM orders").rows == [("ORD-2", ["x"])]


def test_an_exception_or_the_caller_undoes_a_transaction(orders: StartState) -> None:
    sample = database(orders)

    def refuse() -> None:
        with sample.transaction() as transaction:
            transaction.execute("DELETE FROM orders")
            raise ToolError("no")

    with pytest.raises(ToolError, match="no"):
        refuse()
    with sample.transaction() as transaction:
        transaction.execute("DELETE FROM orders WHERE id = 'ORD-1'")
        transaction.rollback()
        assert len(transaction.execute("SELECT id FROM orders").rows) == 2
        transaction.execute("DELETE FROM orders WHERE id = 'ORD-2'")
    assert sample.read("SELECT id FROM orders").rows == [("ORD-1",)]


def test_a_failed_statement_may_be_caught(orders: StartState) -> None:
    sample = database(orders)
    with sample.transaction() as transaction:
        transaction.execute("DELETE FROM orders WHERE id = 'ORD-1'")
        with pytest.raises(SqlCallError):
            transaction.execute("SELECT json('{')")
    assert sample.read("SELECT id FROM orders").rows == [("ORD-2",)]


@pytest.mark.parametrize(
    ("sql", "parameters", "what"),
    [
        ("SELECT :name", {"nam": 1}, "the parameter ':name' has no value"),
        ("SELECT :a, :b", [1, 2], "the statement has 2 parameters, but got 2 without names"),
        ("SELECT ?, ?", [1], "the statement has 2 parameters, but got 1 without names"),
        ("SELECT ?", [datetime(2026, 1, 1)], "'1' is of type datetime"),
        ("CREATE TABLE x (a)", [], "a statement may not change tables: CREATE"),
        ("SELECT 1 AS a, 2 AS a", [], "two columns of the result are named 'a'"),
        ("COMMIT", [], "a statement may not begin or end a transaction: COMMIT"),
    ],
)
def test_a_wrong_statement_in_code_is_the_authors_mistake(
    orders: StartState, sql: str, parameters: Any, what: str
) -> None:
    with pytest.raises(AuthorError) as error, database(orders).transaction() as transaction:
        transaction.execute(sql, parameters)
    assert error.value.problems[0].what == what


def test_a_check_only_reads(orders: StartState) -> None:
    sample = database(orders)
    result = sample.read("SELECT id, id FROM orders ORDER BY id DESC")
    assert result == (("id", "id"), [("ORD-2", "ORD-2"), ("ORD-1", "ORD-1")], True)
    with pytest.raises(AuthorError, match="may only read"):
        sample.read("DELETE FROM orders RETURNING id")
    assert not sample.changes().tables


# ── time and chance ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT datetime('now')", "2026-03-04 05:06:07"),
        ("SELECT datetime()", "2026-03-04 05:06:07"),
        ("SELECT date('NOW', '+1 day')", "2026-03-05"),
        ("SELECT time('now', 'localtime')", "05:06:07"),
        ("SELECT strftime('%Y %f', 'now')", "2026 07.089"),
        ("SELECT strftime('now %d', '2020-01-02')", "now 02"),
        ("SELECT unixepoch()", 1772600767),
        ("SELECT julianday('now') - julianday('2026-03-04 05:06:07.089')", 0.0),
        ("SELECT CURRENT_TIMESTAMP", "2026-03-04 05:06:07"),
        ("SELECT current_date || current_time", "2026-03-0405:06:07"),
        ("SELECT datetime(0, 'unixepoch', 'localtime')", "1970-01-01 00:00:00"),
        ("SELECT date('nonsense')", None),
    ],
)
def test_the_clock_stands_still(orders: StartState, sql: str, value: Any) -> None:
    sample = database(orders)
    assert sample.read(sql).rows == [(value,)]
    call(sample, "DELETE FROM orders")
    assert sample.read(sql).rows == [(value,)]


def test_the_clock_is_in_utc(orders: StartState) -> None:
    there = NOW.astimezone(timezone(timedelta(hours=9)))
    for now in (there, NOW.replace(tzinfo=None)):
        assert WorldDatabase(orders, now, 1).read("SELECT datetime()").rows == [("2026-03-04 05:06:07",)]


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone of a process cannot be set here")
def test_the_time_zone_of_the_machine_does_not_matter(
    orders: StartState, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = sqlite3.connect(":memory:")
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XYZ-9")
        time.tzset()
        local = connection.execute("SELECT time(0, 'unixepoch', 'localtime')").fetchone()
        rows = database(orders).read("SELECT time('now', 'localtime'), time('now', 'utc')").rows
    time.tzset()
    connection.close()
    assert (local, rows) == (("09:00:00",), [("05:06:07", "05:06:07")])


def test_a_schema_may_use_the_clock(tmp_path: Path) -> None:
    schema = """
    CREATE TABLE t (d TEXT CHECK (date(d) IS NOT NULL), at TEXT DEFAULT CURRENT_TIMESTAMP);
    CREATE INDEX i ON t (date(d));
    INSERT INTO t (d) VALUES ('2020-01-01');
    """
    sample = database(schema_state(tmp_path, schema))
    call(sample, "INSERT INTO t (d) VALUES ('2020-01-02')")
    assert sample.read("SELECT DISTINCT at FROM t").rows == [("2026-03-04 05:06:07",)]


CHANCE = "SELECT random() AS a, hex(randomblob(4)) AS b, abs(random()) % 6 AS c"


def test_chance_is_that_of_the_seed(orders: StartState) -> None:
    def draw(seed: int, *, is_copied: bool = False) -> list[Any]:
        sample = database(orders, seed)
        if is_copied:
            call(sample, "DELETE FROM orders")
        return [call(sample, CHANCE).rows for _ in range(2)]

    assert draw(1) == draw(1) == draw(1, is_copied=True) != draw(2)
    assert draw(1)[0] != draw(1)[1]


# ── threads and copies ───────────────────────────────────────────────────────────────────────────


def test_calls_of_many_threads_do_not_lose_changes(orders: StartState) -> None:
    sample = database(orders)
    add = prepare_statements(["UPDATE orders SET total = total + 1", "SELECT total FROM orders"], orders)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: sample.call(add, {}).rows[0]["total"], range(200)))
    assert sorted(answers) == [25.5 + n for n in range(1, 201)]


def test_threads_of_many_samples_share_the_start_state(orders: StartState) -> None:
    statements = prepare_statements([CHANCE, "SELECT :n AS n, random() AS r"], orders)

    def play(seed: int) -> list[Any]:
        sample = database(orders, seed)
        return [sample.call(statements, {"n": n}).rows for n in range(20)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(play, range(32))) == [play(seed) for seed in range(32)]


def test_a_transaction_waits_for_that_of_another_thread(orders: StartState) -> None:
    sample = database(orders)
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(sample.read("SELECT count(*) FROM orders").rows))
    with sample.transaction() as transaction:
        thread.start()
        transaction.execute("DELETE FROM orders")
    thread.join()
    assert seen in ([[(0,)]], [[(2,)]])


def test_a_transaction_of_the_same_thread_is_refused_instead_of_waiting_for_ever(orders: StartState) -> None:
    sample = database(orders)
    with sample.transaction():
        assert fails(sample, "SELECT 1") == "the database is in use by another call"
    assert call(sample, "SELECT 1 AS a").rows == [{"a": 1}]


class OpenedDatabases:
    """Counts the databases that are opened, and those that are open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.most = 0
        self._alive: weakref.WeakSet[WorldConnection] = weakref.WeakSet()
        original = WorldConnection.__init__

        def opened(connection: WorldConnection, *args: Any) -> None:
            original(connection, *args)
            self.count += 1
            self._alive.add(connection)
            self.most = max(self.most, len(self._alive))

        monkeypatch.setattr(WorldConnection, "__init__", opened)


def test_samples_that_only_read_make_no_copies(orders: StartState, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = OpenedDatabases(monkeypatch)
    samples = [database(orders, seed) for seed in range(1000)]
    for sample in samples:
        with sample.transaction() as transaction:
            transaction.execute("SELECT * FROM orders")
        assert not sample.changes().tables
    assert opened.count == 0


def test_a_sample_makes_one_copy_which_ends_with_it(
    orders: StartState, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = OpenedDatabases(monkeypatch)
    gc.disable()  # nothing waits for the collector
    try:
        for seed in range(100):
            sample = database(orders, seed)
            for _ in range(3):
                call(sample, "UPDATE orders SET status = 'x'")
    finally:
        gc.enable()
    assert (opened.count, opened.most) == (100, 1)


def test_a_closed_database_is_not_taken_for_the_start_state(orders: StartState) -> None:
    sample = database(orders)
    call(sample, "DELETE FROM orders")
    sample.close()
    for use in (lambda: call(sample, "SELECT 1"), lambda: call(sample, "DELETE FROM orders"), sample.changes):
        with pytest.raises(RuntimeError, match="closed"):
            use()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        pytest.param("temp_store", 2, id="no temporary files"),
        pytest.param("journal_mode", "memory", id="no journal"),
        pytest.param("trusted_schema", 1, id="triggers may call the clock"),
        pytest.param("foreign_keys", 1, id="foreign keys"),
    ],
)
def test_the_settings_are_the_same_whatever_sqlite_was_built_with(
    orders: StartState, setting: str, value: Any
) -> None:
    with database(orders).own_copy().unrestricted() as raw:
        assert raw.execute(f"PRAGMA {setting}").fetchall() == [(value,)]


def test_the_converters_of_an_agent_are_not_ours(orders: StartState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sqlite3.converters, "BOOLEAN", lambda _: "the agent's")
    assert database(orders).read("SELECT is_paid FROM orders").rows == [(False,), (True,)]
    assert "JSON" not in sqlite3.converters
