"""A scenario's state: a SQLite database, one copy per conversation, on which tools written in SQL work."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Done, Project

ORDERS = [
    {"id": "ORD-42", "status": "pending", "total": 25.5, "gift": True, "lines": ["lamp"]},
    {"id": "ORD-43", "status": "shipped", "total": 3.0, "gift": False, "lines": []},
]
TOOLS: dict[str, Any] = {
    "get_order": {
        "sql": "SELECT * FROM orders WHERE id = :id",
        "one": True,
        "none": {"error": "no order ${args.id}"},
    },
    "list_orders": {"sql": "SELECT id FROM orders ORDER BY id"},
    "find_order": {"sql": "SELECT id FROM orders WHERE id = :id", "one": True},
    "cancel_order": {
        "writes": True,
        "sql": "UPDATE orders SET status = 'cancelled' WHERE id = :id AND status = 'pending'",
        "none": {"error": "order ${args.id} cannot be cancelled"},
        "returns": {"cancelled": "${args.id}"},
    },
    "delete_order": {"sql": "DELETE FROM orders WHERE id = :id"},
    "describe": {
        "sql": "SELECT status, total FROM orders WHERE id = :id",
        "none": {"returns": "nothing"},
        "returns": "${result.status} for $${result.total} = ${result.total}",
    },
    "move": {
        "sql": [
            "UPDATE orders SET total = total - :amount WHERE id = 'ORD-42'",
            "UPDATE orders SET total = total + :amount WHERE id = :to",
        ],
        "none": {"error": "no such order"},
    },
}
AGENT = """
import json

async def agent(messages, ctx):
    calls = json.loads(messages[-1]["content"])
    results = [await ctx.call_tool(name, args) for name, args in calls]
    return json.dumps(results)
"""
Call = tuple[str, dict[str, Any]]


def set_up(project: Project, *turns: list[Call], **more: Any) -> None:
    project.agent(AGENT)
    project.config(more.pop("config", ""))
    scenario = {
        "id": "s",
        "state": {"tables": {"orders": ORDERS}},
        "tools": TOOLS,
        "turns": [json.dumps(turn) for turn in turns] or ["[]"],
        "checks": "none",
        **more,
    }
    project.scenarios(json.dumps({key: value for key, value in scenario.items() if value is not None}))


def results(project: Project, sample: int = 0) -> list[Any]:
    turns = project.results()["scenarios"][0]["samples"][sample]["turns"]
    return [call["result"] for turn in turns for call in turn["tool_calls"]]


def played(project: Project, *turns: list[Call], **more: Any) -> list[Any]:
    set_up(project, *turns, **more)
    done = project.run()
    assert done.code == 0, done.all
    return results(project)


def test_queries(project: Project) -> None:
    got = ("get_order", {"id": "ORD-42"}), ("get_order", {"id": "ORD-1"})
    assert played(project, [*got, ("list_orders", {}), ("find_order", {"id": "x"}), ("find_order", {})]) == [
        ORDERS[0],
        {"error": "no order ORD-1"},
        [{"id": "ORD-42"}, {"id": "ORD-43"}],
        None,
        None,
    ]


def test_changes_stay_until_the_conversation_ends(project: Project) -> None:
    cancel: list[Call] = [("cancel_order", {"id": "ORD-42"}), ("describe", {"id": "ORD-42"})]
    found = played(project, cancel, cancel, epochs=2)
    assert found == results(project, 1) == [
        {"cancelled": "ORD-42"},
        "cancelled for ${result.total} = 25.5",
        {"error": "order ORD-42 cannot be cancelled"},
        "cancelled for ${result.total} = 25.5",
    ]  # fmt: skip


def test_what_a_turn_changed_is_shown(project: Project) -> None:
    cancel, delete = ("cancel_order", {"id": "ORD-42"}), ("delete_order", {"id": "ORD-43"})
    played(project, [cancel], [cancel], [delete])
    shown = project.call("show", "s").out
    assert shown.count('orders "ORD-42": status "pending" → "cancelled"') == 1
    assert shown.count('orders - {"id": "ORD-43"') == 1


def test_rows_that_were_changed_are_counted(project: Project) -> None:
    delete: Call = ("delete_order", {"id": "ORD-43"})
    assert played(project, [delete, delete, ("describe", {"id": "ORD-43"})]) == [
        {"changed": 1},
        {"changed": 0},
        "nothing",
    ]


def test_statements_of_one_call_are_one_transaction(project: Project) -> None:
    move: list[Call] = [("move", {"amount": 5, "to": "ORD-1"}), ("move", {"amount": 5, "to": "ORD-43"})]
    totals: list[Call] = [("describe", {"id": "ORD-42"}), ("describe", {"id": "ORD-43"})]
    assert played(project, [move[0], *totals, move[1], *totals]) == [
        {"error": "no such order"},
        "pending for ${result.total} = 25.5",
        "shipped for ${result.total} = 3.0",
        {"changed": 1},
        "pending for ${result.total} = 20.5",
        "shipped for ${result.total} = 8.0",
    ]


def test_rules_and_sequences_take_sql_and_need_no_state(project: Project) -> None:
    rules = [
        {"when": {"args": {"op": "divide", "b": 0}}, "error": "Division by zero"},
        {"when": {"args": {"op": "multiply"}}, "sql": "SELECT :a * :b AS result", "one": True},
        {"sequence": [{"error": "busy"}, {"sql": "SELECT :a + :b AS result", "one": True}]},
    ]
    calls: list[Call] = [("calculate", {"op": op, "a": 6, "b": 7}) for op in ("multiply", "add", "add")]
    assert played(project, calls, state=None, tools={"calculate": {"rules": rules}}) == [
        {"result": 42},
        {"error": "busy"},
        {"result": 13},
    ]


def test_functions_work_on_the_same_state_and_an_error_undoes_what_they_did(project: Project) -> None:
    project.write(
        "scenarios/mocks.py",
        """
        from agenteval import ToolError

        def raise_total(args, ctx):
            ctx.db.execute("UPDATE orders SET total = total + ?", [args["by"]])
            if args["by"] < 0:
                raise ToolError("never")
            return ctx.db.execute("SELECT total FROM orders ORDER BY id").rows
        """,
    )
    tools = {**TOOLS, "raise_total": {"python": "mocks.py:raise_total"}}
    calls: list[Call] = [
        ("raise_total", {"by": 1}),
        ("raise_total", {"by": -9}),
        ("describe", {"id": "ORD-43"}),
    ]
    assert played(project, calls, tools=tools) == [
        [{"total": 26.5}, {"total": 4.0}],
        {"error": "never"},
        "shipped for ${result.total} = 4.0",
    ]


def test_wrong_sql_of_a_function_names_its_tool_and_its_line(project: Project) -> None:
    look = "def look(args, ctx):\n    return ctx.db.execute('SELECT * FROM orderz').rows\n"
    project.write("scenarios/mocks.py", look)
    set_up(project, [("look", {})], tools={"look": {"python": "mocks.py:look"}})
    assert project.run().code == 2
    reason = project.results()["scenarios"][0]["samples"][0]["reason"]
    assert "scenarios/suite.yaml:1: the mock of 'look': no such table: orderz" in reason
    assert "did you mean 'orders'?" in reason


def test_calls_at_the_same_time_do_not_mix(project: Project) -> None:
    set_up(project)
    project.agent("""
        import asyncio

        async def agent(messages, ctx):
            calls = [ctx.call_tool("move", {"amount": 1, "to": "ORD-43"}) for _ in range(20)]
            await asyncio.gather(*calls, *(ctx.call_tool("list_orders", {}) for _ in range(20)))
            return str(await ctx.call_tool("describe", {"id": "ORD-43"}))
    """)
    assert project.run().code == 0
    assert results(project)[-1] == "shipped for ${result.total} = 23.0"


def test_a_statement_that_fails_is_an_error_to_the_agent(project: Project) -> None:
    project.write("scenarios/schema.sql", "CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER CHECK (n > 0));")
    tools = {
        "add": {"sql": "INSERT INTO t (id, n) VALUES (:id, :n)"},
        "count": {"sql": "SELECT count(*) AS n FROM t"},
    }
    calls: list[Call] = [
        ("add", {"id": "a", "n": 1}),
        ("add", {"id": "a", "n": 1}),
        ("add", {"id": "b", "n": 0}),
    ]
    first, second, third, counted = played(
        project, [*calls, ("count", {})], tools=tools, state={"schema": "schema.sql"}
    )
    assert (first, counted) == ({"changed": 1}, [{"n": 1}])
    assert "UNIQUE" in second["error"]
    assert "CHECK" in third["error"]


def test_a_state_from_files(project: Project) -> None:
    project.write("scenarios/customers.csv", "id,age\n007,30\n8,\n")
    with sqlite3.connect(project.root / "scenarios" / "shop.sqlite") as shop:
        shop.execute("CREATE TABLE items (name TEXT)")
        shop.execute("INSERT INTO items VALUES ('lamp')")
    shop.close()
    state = {
        "database": "shop.sqlite",
        "tables": {"customers": {"file": "customers.csv", "types": {"age": "integer"}}},
    }
    tools = {
        "look": {"sql": "SELECT c.*, i.name FROM customers c, items i ORDER BY c.id"},
        "drop": {"sql": "DELETE FROM items"},
    }
    before = (project.root / "scenarios" / "shop.sqlite").read_bytes()
    assert played(project, [("look", {}), ("drop", {})], tools=tools, state=state)[0] == [
        {"id": "007", "age": 30, "name": "lamp"},
        {"id": "8", "age": None, "name": "lamp"},
    ]
    assert (project.root / "scenarios" / "shop.sqlite").read_bytes() == before


def test_chance_and_the_clock_are_the_same_in_every_run(project: Project) -> None:
    tools = {"draw": {"sql": "SELECT random() AS n, datetime('now') AS at, date(:day, '+1 day') AS next"}}
    runs = [
        played(
            project, [("draw", {"day": "2026-12-31"})], tools=tools, config="now: '2026-11-30T08:00:00Z'\n"
        )
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert {**runs[0][0][0], "n": 0} == {"n": 0, "at": "2026-11-30 08:00:00", "next": "2027-01-01"}


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────

SUITE = """\
id: s
turns: [hi]
checks: none
state:
  tables:
    orders:
      - {id: 1, status: new}
      - {id: 2, status: old, total: 3}
tools:
  look:
    parameters: {type: object, properties: {id: {type: integer}}}
    LOOK
"""


def refused(project: Project, look: str) -> Done:
    project.agent(AGENT)
    project.config()
    project.write("scenarios/s.yaml", SUITE.replace("LOOK", look))
    return project.call("validate")


@pytest.mark.parametrize(
    ("look", "facts"),
    [
        ("sql: SELECT * FROM orderz", ("orderz", "orders")),
        ("sql: SELECT stat FROM orders", ("stat", "status")),
        ("sql: SELEC id FROM orders", ("SELEC",)),
        ("sql: 'SELECT 1; SELECT 2'", ("two statements",)),
        ("sql: DROP TABLE orders", ("DROP",)),
        ("sql: 'SELECT * FROM orders WHERE id = ${args.id}'", ("${args.id}", ":name")),
        ("sql: 'SELECT * FROM orders WHERE id = :ident'", ("ident", "id")),
        ("sql: 'SELECT * FROM orders WHERE status = \"new\"'", ("'new'",)),
    ],
)
def test_a_mistake_in_a_statement(project: Project, look: str, facts: tuple[str, ...]) -> None:
    refused(project, look).refuses("scenarios/s.yaml:12", *facts)


def test_a_column_that_returning_does_not_give_is_the_authors_mistake(project: Project) -> None:
    sql = "UPDATE orders SET status = 'x' WHERE id = :id RETURNING status"
    tools = {"lose": {"sql": sql, "none": {"error": "no"}, "returns": "${result.statuz}"}}
    set_up(project, [("lose", {"id": "ORD-42"})], tools=tools)
    done = project.run()
    assert (done.code, "result.statuz" in done.all, "status" in done.all) == (2, True, True), done.all


@pytest.mark.parametrize(
    ("look", "facts"),
    [
        ("one: true", ("`sql`",)),
        ("{sql: SELECT 1, error: x}", ("sql", "error")),
        ("{sql: 'SELECT id FROM orders', returns: '${result.id}'}", ("none",)),
        ("{sql: 'SELECT id FROM orders', none: {returns: 1}, returns: '${result.ident}'}", ("ident", "id")),
        ("{sql: 'DELETE FROM orders', none: {returns: 1}, returns: '${result.id}'}", ("result.id",)),
        ("{returns: '${result.id}'}", ("result.id",)),
        ("{sql: SELECT 1, none: {}}", ("returns", "error")),
    ],
)
def test_a_mistake_beside_a_statement(project: Project, look: str, facts: tuple[str, ...]) -> None:
    project.agent(AGENT)
    project.config()
    head = SUITE.partition("  look:")[0]
    project.write("scenarios/s.yaml", f"{head}  look: {look if look.startswith('{') else f'{{{look}}}'}\n")
    refusal = project.call("validate")
    refusal.refuses("scenarios/s.yaml:10", *facts)


@pytest.mark.parametrize(
    ("state", "place", "facts"),
    [
        ("state: {}", "4", ("empty",)),
        ("state: {tables: {orders: nothing.csv}}", "4", ("nothing.csv",)),
        ("state: {tables: {orders: [1]}}", "4", ()),
        ("state: {tables: {o: {file: o.csv, types: {a: int}}}}", "4:43", ("'int'", "'integer'")),
        ("state: {tables: {orders: []}}", "4", ("orders",)),
        ("state: {schema: a.sql, database: b.sqlite}", "4", ("schema", "database")),
        ("state: {tabels: {}}", "4", ("tabels", "tables")),
        ("state: {tables: {o: [{a: 1}]}, base: x}", "4", ("base",)),
    ],
)
def test_a_mistake_in_a_state(project: Project, state: str, place: str, facts: tuple[str, ...]) -> None:
    project.agent(AGENT)
    project.config()
    project.write("scenarios/o.csv", "a\n1\n")
    project.write("scenarios/s.yaml", f"id: s\nturns: [hi]\nchecks: none\n{state}\n")
    project.call("validate").refuses(f"scenarios/s.yaml:{place}", *facts)


def test_a_run_is_not_resumed_with_another_state(project: Project) -> None:
    project.write("scenarios/orders.csv", "id\n1\n")
    tools = {"look": {"sql": "SELECT * FROM orders"}}
    set_up(project, [("look", {})], tools=tools, state={"tables": {"orders": "orders.csv"}}, epochs=2)
    assert project.run().code == 0
    (folder,) = (project.root / ".agenteval" / "runs").iterdir()
    journal = Path(folder, "events.jsonl")
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    journal.write_text("".join(lines[:4]), encoding="utf-8")
    project.write("scenarios/orders.csv", "id\n2\n")
    done = project.call("run", "--resume", "latest")
    assert (done.code, "orders.csv" in done.err) == (2, True), done.all


@pytest.mark.parametrize(
    ("tool", "place"),
    [
        ("{sql: []}", "4:3"),
        ("{sql: null}", "4:3"),
        ("{rules: [{sql: []}]}", "4:17"),
        ("{sequence: [{returns: 1}, {sql: null}]}", "4:34"),
    ],
)
def test_sql_without_a_statement_is_refused(project: Project, tool: str, place: str) -> None:
    project.agent(AGENT)
    project.config()
    project.scenarios(f"""
        id: s
        turns: [hi]
        tools:
          get: {tool}
    """)
    project.call("validate").refuses(f"scenarios/suite.yaml:{place}", "sql", "no statement")


def test_mistakes_in_the_first_line_of_a_schema_and_without_a_line_have_a_place(project: Project) -> None:
    project.agent(AGENT)
    project.config()
    project.write("scenarios/a.sql", "ATTACH 'x' AS y;")
    project.write("scenarios/b.sql", "CREATE TABLE t (u REFERENCES nope (id)); INSERT INTO t VALUES (5);")
    project.scenarios("{id: a, state: {schema: a.sql}, turns: [hi]}")
    project.write("scenarios/b.yaml", "{id: b, turns: [hi], state: {schema: b.sql}}")
    done = project.call("validate")
    done.refuses("scenarios/a.sql:1", "ATTACH", "CREATE TABLE")
    done.refuses("scenarios/b.yaml:1:22", "'u' is 5", "'nope'")
