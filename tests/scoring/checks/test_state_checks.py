"""``expect.state``: what a state must hold, at the end of a turn and of a conversation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.errors import Mistake
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check
from agenteval.core.trajectory import Step, Stop, StopReason, Trajectory, Turn
from agenteval.core.world_state import StateChanges, StateSpec
from agenteval.files.yaml_source import Mark, unlocated_mark
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome
from agenteval.scoring.checks.expectations import broken_turn_checks, conversation_checks, turn_checks
from agenteval.scoring.checks.state import STATE, find_state_mistakes
from agenteval.scoring.checks.state_expectations import state_expectation_problems
from agenteval.world.database import WorldDatabase
from agenteval.world.loading import load_start_state
from agenteval.world.start_state import StartState
from tests.support.trajectories import seen
from tests.support.world_states import NOW

TABLES: dict[str, Any] = {
    "orders": [
        {"id": "ORD-1", "status": "pending", "total": 25.5, "is_paid": False, "tags": ["new"], "note": None},
        {"id": "ORD-2", "status": "pending", "total": 3.0, "is_paid": True, "tags": None, "note": None},
        {"id": "ORD-3", "status": "shipped", "total": 7.0, "is_paid": True, "tags": None, "note": None},
    ],
    "log": [{"text": "a"}, {"text": "b"}],
}
TOOLS: dict[str, Any] = {
    "cancel_order": {
        "sql": "UPDATE orders SET status = 'cancelled' WHERE id = :id AND status = 'pending'",
        "none": {"error": "order ${args.id} cannot be cancelled"},
    },
    "create_order": {
        "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        "sql": "INSERT INTO orders (id, status) VALUES (:id, 'new')",
    },
    "delete_order": {"sql": "DELETE FROM orders WHERE id = :id"},
    "write_log": {"sql": "INSERT INTO log VALUES (:text)"},
    "busy": {"sequence": [{"error": "busy"}, {"sql": "INSERT INTO log VALUES ('second')"}]},
    "ruled": {"rules": [{"when": {"args": {"a": 1}}, "sql": "INSERT INTO log VALUES ('one')"}]},
    "look": {"returns": {"ok": True}},
    "own": {"python": "mocks.py:own"},
    "bare": {"description": "has no answer"},
}
CANCEL = "UPDATE orders SET status = 'cancelled' WHERE id = 'ORD-1'"
DONE = Stop(reason=StopReason.SCRIPT_DONE)


def spec(**more: Any) -> StateSpec:
    return StateSpec.model_validate({"tables": TABLES, **more})


def scenario(expect: Any = (), **more: Any) -> Scenario:
    fields = {"id": "s", "state": spec(), "tools": TOOLS, "expect": {"state": expect}, "source": "s.yaml:1"}
    return Scenario.model_validate(fields | more)


def start_of(state: StateSpec) -> StartState:
    return load_start_state(state, NOW)


def after(*statements: str, state: StateSpec | None = None) -> StateChanges:
    """What differs from the start after these statements, as it is read from a journal."""
    sample = WorldDatabase(start_of(state or spec()), NOW, seed=7)
    for sql in statements:
        with sample.transaction() as transaction:
            transaction.execute(sql)
    return StateChanges.model_validate(json.loads(sample.changes().model_dump_json()))


def turn(state: StateChanges | None, script: int | None = None) -> Turn:
    return Turn(user="u", steps=(Step(text="done"),), state=state, script=script)


def whole(*turns: Turn, stop: Stop = DONE, unfinished: Turn | None = None) -> Trajectory:
    return seen(turns=turns, stop=stop, unfinished=unfinished)


def outcome(expected: dict[str, Any], *statements: str, state: StateSpec | None = None) -> CheckOutcome:
    """The outcome of one expectation after these statements."""
    made = scenario([expected], state=state or spec())
    (rule,) = STATE
    turns = (turn(after(*statements, state=state)),)
    (found,) = rule.decide_all(made.expect.state, CheckInput(turns, state=made.state, tools=made.tools))
    return found


def state_checks(checks: Sequence[Check]) -> list[tuple[str, bool | None]]:
    return [(check.name, check.passed) for check in checks if check.name.startswith("state")]


# ── sql ──────────────────────────────────────────────────────────────────────────────────────────

STATUS = "SELECT status FROM orders WHERE id = 'ORD-1'"


@pytest.mark.parametrize(
    ("sql", "equals"),
    [
        (STATUS, "cancelled"),
        (STATUS, {"status": "cancelled"}),
        (STATUS, {"STATUS": {"$in": ["cancelled", "void"]}}),
        (STATUS, {"$regex": "^cancel"}),
        ("SELECT total FROM orders WHERE id = 'ORD-2'", 3),
        ("SELECT total FROM orders WHERE id = 'ORD-1'", {"$approx": {"value": 25, "abs": 1}}),
        ("SELECT count(*) FROM orders", 3.0),
        ("SELECT is_paid FROM orders WHERE id = 'ORD-2'", True),
        ("SELECT tags FROM orders WHERE id = 'ORD-1'", {"tags": ["new"]}),
        ("SELECT tags FROM orders WHERE id = 'ORD-2'", None),
        ("SELECT * FROM orders WHERE id = 'ORD-1'", {"status": "cancelled", "note": None}),
        ("SELECT id FROM orders", ["ORD-3", "ORD-1", "ORD-2"]),
        ("SELECT id FROM orders ORDER BY id DESC", ["ORD-3", "ORD-2", "ORD-1"]),
        ("SELECT id, total FROM orders WHERE is_paid", [{"id": "ORD-3"}, {"id": "ORD-2", "total": 3}]),
        ("SELECT status FROM orders", [{"$any": True}, {"$regex": "^c"}, "pending"]),
        ("SELECT id FROM orders WHERE total > 100", []),
        ("SELECT text FROM log WHERE text = 'x' UNION ALL SELECT 'a' UNION ALL SELECT 'a'", ["a", "a"]),
    ],
)
def test_the_result_of_a_query_is_compared_by_value(sql: str, equals: Any) -> None:
    found = outcome({"sql": sql, "equals": equals}, CANCEL)
    assert (found.passed, found.subject, found.key_path) == (True, "sql", "0"), found.detail


@pytest.mark.parametrize(
    ("sql", "equals", "detail"),
    [
        (STATUS, "pending", f'{STATUS}: expected "pending", got "cancelled"'),
        (STATUS, None, f'{STATUS}: expected null, got "cancelled"'),
        (STATUS, {"status": "pending"}, f'{STATUS}: status: expected "pending", got "cancelled"'),
        (STATUS, {"state": "cancelled"}, f"{STATUS}: state: the query has no such column"),
        ("SELECT is_paid FROM orders WHERE id = 'ORD-2'", 1, "expected 1, got true"),
        ("SELECT 1", True, "SELECT 1: expected true, got 1"),
        ("SELECT '25'", 25, "SELECT '25': expected 25, got \"25\""),
        ("SELECT note FROM orders WHERE id = 'ORD-2'", "", 'expected "", got null'),
        ("SELECT 1 WHERE 0", 1, "SELECT 1 WHERE 0: expected 1, got no row"),
        ("SELECT 1 WHERE 0", {"a": 1}, 'expected one row, {"a": 1}, got no row'),
        ("SELECT 1 AS a, 2 AS b", 1, 'expected 1, got 1 row: {"a": 1, "b": 2}'),
        ("SELECT 1 AS a, 2 AS b", [1], 'expected the values of one column, got 1 row: {"a": 1, "b": 2}'),
        (
            "SELECT id FROM orders ORDER BY id",
            {"id": "ORD-1"},
            'expected one row, {"id": "ORD-1"}, got 3 rows: {"id": "ORD-1"}, {"id": "ORD-2"},'
            ' {"id": "ORD-3"}',
        ),
        (
            "SELECT id FROM orders ORDER BY id DESC",
            ["ORD-1", "ORD-2", "ORD-3"],
            'expected in this order: ["ORD-1", "ORD-2", "ORD-3"], got ["ORD-3", "ORD-2", "ORD-1"]',
        ),
        (
            "SELECT id, status FROM orders WHERE is_paid",
            [{"id": "ORD-2", "status": "shipped"}, {"id": "ORD-3"}],
            'SELECT id, status FROM orders WHERE is_paid:\nmissing: {"id": "ORD-2", "status": "shipped"}\n'
            'unexpected: {"id": "ORD-2", "status": "pending"}',
        ),
        ("SELECT 'a' UNION ALL SELECT 'a'", ["a"], "SELECT 'a' UNION ALL SELECT 'a': unexpected: \"a\""),
    ],
)
def test_a_result_that_differs_is_shown_beside_the_expected_one(sql: str, equals: Any, detail: str) -> None:
    found = outcome({"sql": sql, "equals": equals}, CANCEL)
    assert found.passed is False
    assert found.detail.endswith(detail), found.detail
    assert found.parts == (sql,)


def test_a_query_may_have_to_find_nothing() -> None:
    found = outcome({"sql": "SELECT id FROM orders WHERE total > 100", "empty": True})
    assert (found.passed, found.detail) == (True, "SELECT id FROM orders WHERE total > 100: no row")
    found = outcome({"sql": "SELECT id FROM orders WHERE total > 20", "empty": True})
    assert found.passed is False
    assert found.detail == 'SELECT id FROM orders WHERE total > 20: expected no row, got "ORD-1"'


def test_a_long_difference_is_cut() -> None:
    rows = [f"INSERT INTO log VALUES ('new {number:02}')" for number in range(20)]
    found = outcome({"sql": "SELECT text FROM log", "equals": ["a", "b"]}, *rows)
    assert found.detail.splitlines()[1:3] == ['unexpected: "new 00"', 'unexpected: "new 01"']
    assert found.detail.splitlines()[-1] == "and 10 more"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT * FROM orderz", "no such table: orderz — did you mean 'orders'?"),
        ("DELETE FROM orders", "a check may only read — use SELECT"),
        ("SELECT x'00' AS data", "the column 'data' holds binary data"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT * FROM n",
            "more than 1,000 rows",
        ),
    ],
)
def test_a_query_that_fails_is_not_decided(sql: str, reason: str) -> None:
    found = outcome({"sql": sql, "empty": True})
    assert found.passed is None
    assert reason in found.detail


# ── changed ──────────────────────────────────────────────────────────────────────────────────────

CANCELLED = {"orders": [{"id": "ORD-1", "status": "cancelled"}]}


@pytest.mark.parametrize(
    ("changed", "statements"),
    [
        (CANCELLED, [CANCEL]),
        (CANCELLED, [CANCEL, "UPDATE orders SET note = 'free' WHERE id = 'ORD-1'"]),
        ({"ORDERS": [{"ID": "ORD-1", "Status": {"$in": ["cancelled"]}}]}, [CANCEL]),
        ({"orders": [{"id": "ORD-1"}]}, [CANCEL]),
        ({"orders": [{"status": "cancelled"}]}, [CANCEL]),
        ({"orders": [{"id": "ORD-3", "$deleted": True}]}, ["DELETE FROM orders WHERE id = 'ORD-3'"]),
        ({"orders": [{"status": "shipped", "$deleted": True}]}, ["DELETE FROM orders WHERE id = 'ORD-3'"]),
        ({"orders": [{"id": "ORD-3", "total": 7, "$deleted": True}]}, ["DELETE FROM orders WHERE total = 7"]),
        (
            {"orders": [{"id": "ORD-2", "total": 4, "is_paid": False}]},
            ["UPDATE orders SET total = 4, is_paid = 0 WHERE id = 'ORD-2'"],
        ),
        (
            {"orders": [{"id": {"$regex": "^ORD-"}, "status": "new"}]},
            ["INSERT INTO orders (id, status) VALUES ('ORD-9', 'new')"],
        ),
        (
            {"log": [{"text": "c"}, {"text": "a", "$deleted": True}]},
            ["DELETE FROM log WHERE text = 'a'", "INSERT INTO log VALUES ('c')"],
        ),
        ({"log": [{"text": "c"}, {"text": "c"}]}, ["INSERT INTO log VALUES ('c'), ('c')"]),
        ({"log": [{"text": {"$any": True}}, {"text": "c"}]}, ["INSERT INTO log VALUES ('c'), ('d')"]),
        ({}, []),
        ({}, [CANCEL, "UPDATE orders SET status = 'pending' WHERE id = 'ORD-1'"]),
        ({}, ["UPDATE orders SET total = 7 WHERE id = 'ORD-3'"]),
        ({"log": []}, []),
    ],
)
def test_exactly_the_expected_rows_have_changed(changed: dict[str, Any], statements: list[str]) -> None:
    found = outcome({"changed": changed}, *statements)
    assert (found.passed, found.subject) == (True, "changed"), found.detail


@pytest.mark.parametrize(
    ("changed", "statements", "detail", "parts"),
    [
        (
            CANCELLED,
            [],
            'orders {"id": "ORD-1"}: did not change: status: expected "cancelled", got "pending"',
            ("orders.status",),
        ),
        (
            {"orders": [{"id": "ORD-1", "status": "pending"}]},
            [],
            'orders {"id": "ORD-1"}: did not change',
            ("orders: row unchanged",),
        ),
        (
            CANCELLED,
            ["UPDATE orders SET status = 'shipped' WHERE id = 'ORD-1'"],
            'orders {"id": "ORD-1"}: status: expected "cancelled", got "shipped"',
            ("orders.status",),
        ),
        (
            CANCELLED,
            ["DELETE FROM orders WHERE id = 'ORD-1'"],
            'orders {"id": "ORD-1"}: was deleted',
            ("orders: row deleted",),
        ),
        (
            {"orders": [{"id": "ORD-9", "status": "new"}]},
            [],
            'orders {"id": "ORD-9"}: there is no such row',
            ("orders: row missing",),
        ),
        (
            {"orders": [{"id": "ORD-3", "$deleted": True}]},
            [],
            'orders {"id": "ORD-3"}: was not deleted',
            ("orders: row not deleted",),
        ),
        (
            {"log": [{"text": "c"}]},
            [],
            'log {"text": "c"}: no such row was inserted or changed',
            ("log: row unchanged",),
        ),
        (
            {"log": [{"text": {"$regex": "^c"}, "$deleted": True}]},
            [],
            'log {"text": text matching /^c/}: no such row was deleted',
            ("log: row unchanged",),
        ),
        (
            {"log": [{"text": "c"}]},
            ["INSERT INTO log VALUES ('c'), ('c')"],
            'collateral: log {"text": "c"} was inserted',
            ("collateral: log: row inserted",),
        ),
        (
            {},
            ["UPDATE orders SET is_paid = 1, total = 26 WHERE id = 'ORD-1'"],
            'collateral: orders {"id": "ORD-1"} changed: total was 25.5, is 26.0; is_paid was false, is true',
            ("collateral: orders.total", "collateral: orders.is_paid"),
        ),
    ],
)
def test_a_row_that_differs_is_named_with_its_key(
    changed: dict[str, Any], statements: list[str], detail: str, parts: tuple[str, ...]
) -> None:
    found = outcome({"changed": changed}, *statements)
    assert (found.passed, found.detail, tuple(found.parts)) == (False, detail, parts)


def test_what_holds_is_told_by_the_number_of_rows() -> None:
    assert outcome({"changed": CANCELLED}, CANCEL).detail == "1 row changed, as expected"
    assert outcome({"changed": {}}).detail == "nothing changed"


@pytest.mark.parametrize(
    ("row", "label"),
    [
        ({"status": "cancelled"}, '{"status": "cancelled"}'),
        (
            {"id": {"$in": ["ORD-2"]}, "status": "cancelled"},
            '{"id": one of ["ORD-2"], "status": "cancelled"}',
        ),
    ],
)
def test_a_row_without_a_key_is_none_of_the_changed_rows(row: dict[str, Any], label: str) -> None:
    found = outcome({"changed": {"orders": [row]}}, "UPDATE orders SET total = 1 WHERE id = 'ORD-2'")
    assert found.detail.splitlines() == [
        f"orders {label}: no such row was inserted or changed",
        'collateral: orders {"id": "ORD-2"} changed: total was 3.0, is 1.0',
    ]


def test_each_wrong_row_is_compared_with_the_one_of_its_key() -> None:
    expected = [{"id": f"ORD-{number}", "total": number} for number in (2, 1)]
    found = outcome({"changed": {"orders": expected}}, "UPDATE orders SET total = total + 1 WHERE total < 30")
    assert found.detail.splitlines() == [
        'orders {"id": "ORD-2"}: total: expected 2, got 4.0',
        'orders {"id": "ORD-1"}: total: expected 1, got 26.5',
        'collateral: orders {"id": "ORD-3"} changed: total was 7.0, is 8.0',
    ]


def test_a_row_that_should_be_gone_shows_what_it_reads() -> None:
    found = outcome({"changed": {"log": [], "orders": [{"id": "ORD-1", "$deleted": True}]}}, CANCEL)
    assert found.detail.startswith('orders {"id": "ORD-1"}: was not deleted, and now reads {"id": "ORD-1",')
    assert '"status": "cancelled"' in found.detail


def test_every_other_change_is_collateral_row_by_row() -> None:
    found = outcome(
        {"changed": CANCELLED},
        "UPDATE orders SET status = 'cancelled' WHERE status = 'pending'",
        "DELETE FROM orders WHERE id = 'ORD-3'",
        "INSERT INTO orders (id) VALUES ('ORD-9')",
        "UPDATE log SET text = 'z' WHERE text = 'a'",
    )
    assert found.passed is False
    assert found.detail.splitlines() == [
        'collateral: orders {"id": "ORD-2"} changed: status was "pending", is "cancelled"',
        'collateral: orders {"id": "ORD-3"} was deleted',
        'collateral: orders {"id": "ORD-9"} was inserted: {"id": "ORD-9", "status": null, "total": null,'
        ' "is_paid": null, "tags": null, "note": null}',
        'collateral: log {"text": "a"} changed: text was "a", is "z"',
    ]
    assert found.parts == (
        "collateral: orders.status",
        "collateral: orders: row deleted",
        "collateral: orders: row inserted",
        "collateral: log.text",
    )


def test_what_is_wrong_comes_before_collateral_which_is_cut() -> None:
    rows = [f"INSERT INTO log VALUES ('new {number}')" for number in range(20)]
    found = outcome({"changed": CANCELLED}, *rows)
    lines = found.detail.splitlines()
    assert lines[0].startswith('orders {"id": "ORD-1"}: did not change')
    assert (len(lines), lines[-1]) == (11, "and 11 more")
    assert found.parts == ("orders.status", "collateral: log: row inserted")


def test_a_primary_key_is_known_before_id(tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text(
        "CREATE TABLE seats (row INTEGER, number INTEGER, id TEXT, guest TEXT, PRIMARY KEY (row, number));"
        " INSERT INTO seats VALUES (1, 1, 'a', NULL), (1, 2, 'a', NULL);",
        "utf-8",
    )
    state = StateSpec(schema="schema.sql", base=str(tmp_path))
    taken = "UPDATE seats SET guest = 'Ann' WHERE number = 2"
    expected = {"changed": {"seats": [{"row": 1, "number": 2, "guest": "Bob"}]}}
    found = outcome(expected, taken, state=state)
    assert found.detail == 'seats {"row": 1, "number": 2}: guest: expected "Bob", got "Ann"'
    found = outcome({"changed": {"seats": [{"id": "a", "guest": "Ann"}]}}, taken, state=state)
    assert found.passed, found.detail
    found = outcome({"changed": {"seats": [{"number": 2, "guest": "Bob"}]}}, taken, state=state)
    assert found.detail.startswith('seats {"number": 2, "guest": "Bob"}: no such row was inserted')


def test_a_row_inserted_beside_one_with_its_id_may_not_be_the_expected_one() -> None:
    """``id`` is a key only by convention, unless the table declares it."""
    expected = {"changed": {"orders": [{"id": "ORD-1", "status": "cancelled"}]}}
    assert outcome(expected, "UPDATE orders SET status = 'cancelled' WHERE id = 'ORD-1'").passed
    found = outcome(expected, "INSERT INTO orders (id, status) VALUES ('ORD-1', 'cancelled')")
    assert (found.passed, found.detail) == (
        None,
        'orders {"id": "ORD-1"}: was inserted, but 2 rows have this key'
        " — give 'orders' a primary key, or use `sql`",
    )
    twice = {"changed": {"orders": [{"id": "ORD-9"}, {"id": "ORD-9"}]}}
    assert outcome(twice, "INSERT INTO orders (id) VALUES ('ORD-9'), ('ORD-9')").passed


STOCK = {"tables": {"stock": [{"sku": "A", "n": 5}, {"sku": "B", "n": 7}]}}
"""A table without a key, in which SQLite gives the number of the last row to the next one."""
REPLACED = "DELETE FROM stock WHERE sku = 'B'", "INSERT INTO stock VALUES ('C', 1)"


@pytest.mark.parametrize(
    ("rows", "statements", "passed"),
    [
        ([{"sku": "C", "n": 1}], REPLACED, None),
        ([{"sku": "C", "n": 1}, {"sku": "B", "$deleted": True}], REPLACED, True),
        ([{"sku": "C", "n": 1}, {"sku": "A", "$deleted": True}], REPLACED, False),
        ([{"sku": "C", "n": 1}], REPLACED[1:], True),
        ([{"sku": "B", "n": 1}], ["UPDATE stock SET n = 1 WHERE sku = 'B'"], True),
        ([{"n": 1}], ["UPDATE stock SET n = 1 WHERE sku = 'B'"], None),
        ([{"n": 2}], ["UPDATE stock SET n = 1 WHERE sku = 'B'"], False),
    ],
)
def test_a_table_without_a_key_hides_no_deletion(
    rows: list[dict[str, Any]], statements: Sequence[str], passed: bool | None
) -> None:
    found = outcome({"changed": {"stock": rows}}, *statements, state=StateSpec.model_validate(STOCK))
    assert found.passed is passed, found.detail
    assert passed is not None or "primary key" in found.detail


def test_an_unknown_name_in_changed_is_not_decided() -> None:
    found = outcome({"changed": {"orderz": [{"id": 1}], "log": [{"txt": 1}]}})
    assert found.passed is None
    assert found.detail.splitlines() == [
        "the state has no table 'orderz' — did you mean 'orders'?",
        "the table 'log' has no column 'txt' — did you mean 'text'?",
    ]


# ── same_as ──────────────────────────────────────────────────────────────────────────────────────


def calls(*names: str, **args: Any) -> dict[str, Any]:
    return {"same_as": [{"name": name, "args": args} for name in names]}


@pytest.mark.parametrize(
    ("expected", "statements"),
    [
        (calls("cancel_order", id="ORD-1"), [CANCEL]),
        (
            calls("cancel_order", id="ORD-1"),
            [
                "DELETE FROM orders WHERE id = 'ORD-1'",
                "INSERT INTO orders VALUES ('ORD-1', 'cancelled', 25.5, 0, '[\"new\"]', NULL)",
            ],
        ),
        (
            calls("write_log", "write_log", text="c"),
            ["INSERT INTO log VALUES ('c'), ('d'), ('c')", "DELETE FROM log WHERE text = 'd'"],
        ),
        (calls("busy", "busy"), ["INSERT INTO log VALUES ('second')"]),
        (calls("ruled", a=1), ["INSERT INTO log VALUES ('one')"]),
        (calls("look"), []),
    ],
)
def test_every_path_to_the_same_state_passes(expected: dict[str, Any], statements: list[str]) -> None:
    found = outcome(expected, *statements)
    assert (found.passed, found.subject) == (True, "same_as"), found.detail


def test_a_state_that_equals_that_of_the_calls_names_them() -> None:
    found = outcome(calls("cancel_order", id="ORD-1"), CANCEL)
    assert found.detail == 'the state is the one that cancel_order(id="ORD-1") leaves'


@pytest.mark.parametrize(
    ("expected", "statements", "lines", "parts"),
    [
        (
            calls("cancel_order", id="ORD-1"),
            ["UPDATE orders SET status = 'cancelled' WHERE id = 'ORD-2'"],
            [
                'the state differs from the one that cancel_order(id="ORD-1") leaves:',
                'orders {"id": "ORD-1"}: status: expected "cancelled", got "pending"',
                'orders {"id": "ORD-2"}: status: expected "pending", got "cancelled"',
            ],
            ("orders.status",),
        ),
        (
            calls("create_order", id="ORD-9"),
            ["DELETE FROM orders WHERE id = 'ORD-3'"],
            [
                'the state differs from the one that create_order(id="ORD-9") leaves:',
                'orders: missing row {"id": "ORD-9", "status": "new", "total": null, "is_paid": null,'
                ' "tags": null, "note": null}',
                'orders: missing row {"id": "ORD-3", "status": "shipped", "total": 7.0, "is_paid": true,'
                ' "tags": null, "note": null}',
            ],
            ("orders: row missing",),
        ),
        (
            calls("delete_order", id="ORD-3"),
            ["UPDATE orders SET total = 8 WHERE id = 'ORD-3'"],
            [
                'the state differs from the one that delete_order(id="ORD-3") leaves:',
                'orders: extra row {"id": "ORD-3", "status": "shipped", "total": 8.0, "is_paid": true,'
                ' "tags": null, "note": null}',
            ],
            ("orders: row extra",),
        ),
        (
            calls("write_log", text="c"),
            ["INSERT INTO log VALUES ('d'), ('d')", "DELETE FROM log WHERE text = 'a'"],
            [
                'the state differs from the one that write_log(text="c") leaves:',
                'log: missing row {"text": "c"}',
                'log: missing row {"text": "a"}',
                'log: extra row {"text": "d"}',
                'log: extra row {"text": "d"}',
            ],
            ("log: row missing", "log: row extra"),
        ),
    ],
)
def test_a_failure_shows_the_difference_of_the_two_states(
    expected: dict[str, Any], statements: list[str], lines: list[str], parts: tuple[str, ...]
) -> None:
    found = outcome(expected, *statements)
    assert found.passed is False
    assert sorted(found.detail.splitlines()[1:]) == sorted(lines[1:])
    assert (found.detail.splitlines()[0], tuple(sorted(found.parts))) == (lines[0], tuple(sorted(parts)))


@pytest.mark.parametrize("statements", [[], ["INSERT INTO log VALUES ('c')"]])
def test_a_path_of_which_a_call_fails_decides_nothing(statements: list[str]) -> None:
    found = outcome(calls("cancel_order", "write_log", id="ORD-3", text="c"), *statements)
    assert (found.passed, found.detail) == (
        None,
        'the expected cancel_order(id="ORD-3", text="c") returns {"error": "order ORD-3 cannot be cancelled"}'
        " — correct the call, or remove it",
    )


def test_values_that_are_equal_are_equal_states() -> None:
    """25 is 25.0 where a column has no type of its own; true is not 1."""
    tables = {"t": [{"id": 1, "v": "a"}, {"id": 2, "v": 3}]}
    state = spec(tables=tables)
    tools = {"set": {"sql": "UPDATE t SET v = 25 WHERE id = 1"}}
    made = scenario([calls("set")], state=state, tools=tools)
    for value, passed in (("25", True), ("25.0", True), ("'25'", False)):
        changes = after(f"UPDATE t SET v = {value} WHERE id = 1", state=state)
        checks = conversation_checks(made, whole(turn(changes)))
        assert state_checks(checks) == [("state.same_as", passed)]


def test_rows_whose_id_is_not_unique_are_compared_as_a_whole() -> None:
    state = spec(tables={"t": [{"id": 1, "v": "a"}, {"id": 1, "v": "b"}]})
    tools = {"set": {"sql": "UPDATE t SET v = 'c'"}}
    made = scenario([calls("set")], state=state, tools=tools)
    changes = after("UPDATE t SET v = 'd' WHERE v = 'a'", "UPDATE t SET v = 'c' WHERE v = 'b'", state=state)
    (check,) = [c for c in conversation_checks(made, whole(turn(changes))) if c.name == "state.same_as"]
    assert check.detail.splitlines()[1:] == [
        't: missing row {"id": 1, "v": "c"}',
        't: extra row {"id": 1, "v": "d"}',
    ]


def test_an_id_that_only_the_agent_repeats_is_no_key() -> None:
    state = spec(tables={"t": [{"id": 1, "v": "a"}]})
    made = scenario([calls("set")], state=state, tools={"set": {"sql": "UPDATE t SET v = 'c'"}})
    changes = after("UPDATE t SET v = 'c'", "INSERT INTO t VALUES (1, 'd')", state=state)
    (check,) = [c for c in conversation_checks(made, whole(turn(changes))) if c.name == "state.same_as"]
    assert check.detail.splitlines()[1:] == ['t: extra row {"id": 1, "v": "d"}']


@pytest.mark.parametrize(
    ("expected", "detail"),
    [
        (calls("own"), "the state that own() leaves was not recorded"),
        (calls("cancel"), "unknown tool 'cancel' — did you mean 'cancel_order'?"),
        (calls("ruled", a=2), "no rule of 'ruled' matches ruled(a=2)"),
        (calls("busy"), 'the expected busy() returns {"error": "busy"}'),
    ],
)
def test_calls_that_cannot_be_made_are_not_decided(expected: dict[str, Any], detail: str) -> None:
    found = outcome(expected)
    assert found.passed is None
    assert found.detail.startswith(detail)


# ── turns and conversations ──────────────────────────────────────────────────────────────────────

IS_CANCELLED = {"sql": STATUS, "equals": "cancelled"}


def test_each_expectation_is_a_check_at_its_line() -> None:
    made = scenario(
        [IS_CANCELLED, {"changed": CANCELLED}, calls("cancel_order", id="ORD-2")],
        lines={"expect.state": 5, "expect.state.0": 6, "expect.state.1": 7, "expect.state.2": 8},
    )
    checks = conversation_checks(made, whole(turn(after()), turn(after(CANCEL))))
    assert [(c.name, c.passed, c.where) for c in checks if c.name.startswith("state")] == [
        ("state.sql", True, "s.yaml:6"),
        ("state.changed", True, "s.yaml:7"),
        ("state.same_as", False, "s.yaml:8"),
    ]


def test_a_single_expectation_need_not_be_in_a_list() -> None:
    made = scenario(IS_CANCELLED, lines={"expect.state": 5, "expect.state.sql": 6})
    checks = conversation_checks(made, whole(turn(after(CANCEL))))
    assert [(c.name, c.where) for c in checks if c.passed and c.where][-1] == ("state.sql", "s.yaml:5")


def test_a_milestone_is_the_state_at_the_end_of_its_turn() -> None:
    turns = [
        {"user": "a", "expect": {"state": {"changed": {}}}},
        {"user": "b", "expect": {"state": IS_CANCELLED}},
    ]
    made = scenario(turns=turns)
    before, cancelled = turn(after(), script=0), turn(after(CANCEL), script=1)
    assert state_checks(turn_checks(made, before)) == [("state.changed", True)]
    assert state_checks(turn_checks(made, cancelled, [before])) == [("state.sql", True)]
    early = turn(after(CANCEL), script=0)
    (check,) = [c for c in turn_checks(made, early) if c.name == "state.changed"]
    assert (check.passed, check.where) == (False, "s.yaml:1")
    unfinished = turn(after(), script=1)
    broken = whole(before, stop=Stop(reason=StopReason.AGENT_TIMEOUT), unfinished=unfinished)
    assert state_checks(broken_turn_checks(made, broken)) == []


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        (StopReason.AGENT_TIMEOUT, [("state.sql", True), ("state.changed", True)]),
        (StopReason.INFRASTRUCTURE, []),
        (StopReason.INTERRUPTED, []),
    ],
)
def test_a_broken_conversation_is_decided_if_the_agent_broke_it(
    reason: StopReason, found: list[tuple[str, bool]]
) -> None:
    made = scenario([IS_CANCELLED, {"changed": CANCELLED}])
    broken = whole(turn(after()), stop=Stop(reason=reason), unfinished=turn(after(CANCEL)))
    assert state_checks(conversation_checks(made, broken)) == found


def undecided(made: Scenario, changes: StateChanges | None) -> str:
    checks = [c for c in conversation_checks(made, whole(turn(changes))) if c.name.startswith("state")]
    assert [check.passed for check in checks] == [None] * len(made.expect.state)
    (detail,) = {check.detail for check in checks}
    return detail


def test_a_state_that_is_not_known_decides_nothing(tmp_path: Path) -> None:
    expected = [{"changed": {}}, IS_CANCELLED, calls("look")]
    made = scenario(expected)
    assert undecided(made, None) == "no state of the tool world was recorded"
    changes = after()
    too_many = changes.model_copy(update={"is_complete": False})
    assert undecided(made, too_many).startswith("the changes of the state are too many, or too large")
    other = scenario(expected, state=spec(tables={**TABLES, "log": [{"text": "other"}]}))
    assert (
        undecided(other, changes) == "the scenario's `state` is not the one with which the conversation began"
    )
    assert undecided(scenario(expected, state=None), changes) == "the scenario has no `state`"
    timeless = changes.model_copy(update={"now": ""})
    assert undecided(made, timeless) == "the time in the tool world was not recorded"
    gone = scenario(expected, state=StateSpec(tables={"orders": "gone.csv"}, base=str(tmp_path)))
    detail = undecided(gone, changes)
    assert detail.startswith("the scenario's `state` cannot be loaded: the file 'gone.csv' does not exist")


def test_a_conversation_without_turns_has_no_state() -> None:
    made = scenario([{"changed": {}}])
    assert state_checks(conversation_checks(made, whole())) == [("state.changed", None)]


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "mistakes"),
    [
        (
            [{"sql": "SELECT 1", "equals": {"a": {"$inn": [1]}}}],
            [Mistake("unknown matcher '$inn'", "did you mean '$in'?", (0, "equals", "a", "$inn"))],
        ),
        (
            [{"sql": "SELECT 1", "equals": {}}, {"sql": "SELECT 1", "equals": [{"a": 1}, {}]}],
            [
                Mistake("an empty row names no column", "use `{column: value}`, or `empty: true`", place)
                for place in ((0, "equals"), (1, "equals", 1))
            ],
        ),
        (
            {"sql": "SELECT 1", "equals": [{"a": 1}, 2]},
            [
                Mistake(
                    "`equals` lists rows and values",
                    "write every item as {column: value}, or every item as a value",
                    ("equals",),
                )
            ],
        ),
        ({"sql": "SELECT 1", "equals": [{"$any": True}, 2]}, []),
        (
            [{"changed": {"t": [{"id": 1, "$deleted": False}]}}],
            [
                Mistake(
                    "$deleted: expected true, got false",
                    "use `$deleted: true`, or remove it",
                    (0, "changed", "t", 0, "$deleted"),
                )
            ],
        ),
        (
            [{"changed": {"t": [{"$deleted": True}, {}]}}],
            [
                Mistake("the row names no column", "use, for example, `{id: 7}`", (0, "changed", "t", at))
                for at in (0, 1)
            ],
        ),
        (
            [{"changed": {"t": [{"id": 1, "v": {"$in": []}}]}}],
            [
                Mistake(
                    "$in: expected a list of values, got an empty list",
                    "use `{$in: [one, two]}`",
                    (0, "changed", "t", 0, "v", "$in"),
                )
            ],
        ),
        (
            [{"same_as": [{"name": "a", "args": {"ids": [{"$any": True}]}}]}],
            [
                Mistake(
                    "a call has values, but '$any' is a matcher",
                    "write the value itself",
                    (0, "same_as", 0, "args", "ids", 0, "$any"),
                )
            ],
        ),
        ([{"changed": {"t": [{"id": 1, "$deleted": True}]}}, {"changed": {}}, "x", {"changed": 1}], []),
    ],
)
def test_mistakes_that_need_no_state_are_found_when_the_file_is_read(
    written: Any, mistakes: list[Mistake]
) -> None:
    assert [*find_state_mistakes(written)] == mistakes


def problems(expect: Any, state: StateSpec | None = None) -> list[tuple[str, str]]:
    """Mistakes with their places, which are the paths of keys here."""
    made = scenario(expect)
    start = start_of(state or made.state or spec())
    mark = located({"expect": {"state": expect}}, "")
    return [
        (str(each.place.path if each.place else ""), str(each._replace(place=None)))
        for each in state_expectation_problems(made, mark, start)
    ]


def located(value: Any, path: str) -> Mark:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = {str(key): located(item, f"{path}.{key}".lstrip(".")) for key, item in pairs}
    return Mark(path, 1, children=[*below.values()] if isinstance(value, list) else below)


@pytest.mark.parametrize(
    ("expected", "place", "problem"),
    [
        (
            {"sql": "SELECT * FROM orderz", "empty": True},
            "sql",
            "no such table: orderz — did you mean 'orders'?",
        ),
        (
            {"sql": "SELECT stat FROM orders", "equals": "x"},
            "sql",
            "no such column: stat — did you mean 'status'?",
        ),
        ({"sql": "UPDATE log SET text = 1", "empty": True}, "sql", "a check may only read — use SELECT"),
        ({"sql": "SELECT :id", "equals": 1}, "sql", "':id' has no value in a check — write the value itself"),
        ({"sql": "SELECT ?", "equals": 1}, "sql", "'?' has no value in a check — write the value itself"),
        (
            {"sql": "SELECT id, total FROM orders", "equals": "x"},
            "sql",
            "the query has 2 columns, but `equals` has values of one"
            " — select one column, or expect rows: {column: value}",
        ),
        (
            {"sql": "SELECT id, total FROM orders", "equals": {"idd": 1}},
            "equals.idd",
            "the query has no column 'idd' — did you mean 'id'?",
        ),
        (
            {"sql": "SELECT id FROM orders", "equals": [{"ID": "a"}, {"total": 1}]},
            "equals.1.total",
            "the query has no column 'total' — known: id",
        ),
        (
            {"sql": "SELECT id, total AS id FROM orders", "equals": {"id": 1}},
            "sql",
            "two columns of the result are named 'id' — rename one: id AS other_name",
        ),
        (
            {"changed": {"orderz": [{"id": 1}]}},
            "changed.orderz",
            "the state has no table 'orderz' — did you mean 'orders'?",
        ),
        (
            {"changed": {"orders": [{"id": 1}, {"id": 2, "stat": 1, "$deleted": True}]}},
            "changed.orders.1.stat",
            "the table 'orders' has no column 'stat' — did you mean 'status'?",
        ),
        (calls("look", "cancel"), "same_as.1", "unknown tool 'cancel' — did you mean 'cancel_order'?"),
        (
            calls("bare"),
            "same_as.0",
            "the tool 'bare' has no answer, so that a call changes nothing — add `sql`",
        ),
        (
            calls("ruled", a=2),
            "same_as.0",
            "no rule of 'ruled' matches ruled(a=2) — correct the arguments, or add a rule",
        ),
        (
            calls("create_order"),
            "same_as.0",
            "wrong arguments: 'id' is a required property — correct the call",
        ),
        (
            calls("look", "busy"),
            "same_as.1",
            'the expected busy() returns {"error": "busy"} — repeat the call if it succeeds then, or use'
            " `changed` or `sql`",
        ),
    ],
)
def test_mistakes_that_the_state_shows_have_their_place(
    expected: dict[str, Any], place: str, problem: str
) -> None:
    assert problems([{"changed": {}}, expected]) == [(f"expect.state.1.{place}", problem)]
    assert problems(expected) == [(f"expect.state.{place}", problem)]


def test_right_expectations_have_no_mistakes() -> None:
    expected = [
        {"sql": "SELECT * FROM orders ORDER BY id -- all", "equals": [{"Id": "a"}]},
        {"sql": "SELECT id, total FROM orders", "equals": []},
        {"sql": "SELECT count(*) FROM orders;", "equals": 3},
        {"changed": {"Orders": [{"ID": 1, "$deleted": True}]}},
        calls("cancel_order", "busy", "busy", "look", id="ORD-1"),
    ]
    assert problems(expected) == []


def test_an_expectation_needs_a_state() -> None:
    turns = [{"user": "a", "expect": {"state": {"changed": {}}}}]
    made = scenario([{"changed": {}}], turns=turns, state=None)
    mark = located({"turns": [{"expect": {"state": {}}}], "expect": {"state": []}}, "")
    for start in (None, StartState(b"")):
        found = [*state_expectation_problems(made, mark, start)]
        assert [each.place.path for each in found if each.place] == ["turns.0.expect.state", "expect.state"]
        assert {each.what for each in found} == {
            "an expectation about the state needs the scenario's `state`"
        }
    none = scenario(state=None)
    assert not [*state_expectation_problems(none, unlocated_mark({}, "s.yaml"), None)]
