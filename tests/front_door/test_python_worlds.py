"""A world in Python (``world: file.py:Class``): its methods are tools, and its snapshot is the state."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Done, Project, failed_checks

AGENT = """
import json

async def agent(messages, ctx):
    for name, args in json.loads(messages[-1]["content"]):
        await ctx.call_tool(name, args)
    return "Done."
"""
SHOP = '''
from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal, Optional

from pydantic import Field

from agenteval import ToolError
from agenteval.world import destructive, reads, writes


class Reason(Enum):
    LATE = "late"
    OTHER = "other"


@dataclass
class Line:
    product: str
    count: int = 1


class Store:
    def close_shop(self) -> None:
        self.is_open = False


class Shop(Store):
    name = "a shop"

    def __init__(self):
        self.is_open = True
        self.orders = {
            "ORD-42": {"id": "ORD-42", "status": "new", "total": 25.5, "gift": False, "lines": [["tea", 1]]},
            "ORD-43": {"id": "ORD-43", "status": "new", "total": 8, "gift": True, "lines": []},
        }

    @property
    def size(self):
        return len(self.orders)

    @classmethod
    def empty(cls):
        return cls()

    @reads
    def get_order(self, order_id: Annotated[str, Field(description="Number on the invoice.")]) -> dict:
        """Find an order."""
        return self._find(order_id)

    def _find(self, order_id):
        if order_id not in self.orders:
            raise ToolError(f"there is no order {order_id}")
        return self.orders[order_id]

    @destructive
    def cancel_order(self, order_id: str, reason: Reason = Reason.OTHER):
        self._find(order_id)["status"] = "cancelled"
        return {"reason": reason.name}

    @writes
    async def change_lines(self, order_id: str, lines: list[Line], note: Optional[str] = None, *, ctx):
        self._find(order_id)["lines"] = [[line.product, line.count] for line in lines]
        self.orders["N"] = {"id": "N", "status": str(ctx.call_index), "total": ctx.turn}
        raise ToolError("too late")

    def put_back(self, **counts):
        del self.orders["ORD-43"]
        return counts

    def snapshot(self):
        return {"orders": self.orders.values(), "shop": [{"id": 1, "is_open": self.is_open}]}
'''
CANCEL = ("cancel_order", {"order_id": "ORD-42"})
CANCELLED = {"changed": {"orders": [{"id": "ORD-42", "status": "cancelled"}]}}


def set_up(project: Project, *turns: Any, shop: str = SHOP, **more: Any) -> None:
    project.agent(AGENT)
    project.config("now: '2026-11-30T08:00:00Z'\nmetrics: []\ndetectors: []\n")
    project.write("scenarios/shop.py", shop)
    project.scenarios(json.dumps({"id": "s", "world": "shop.py:Shop", "turns": turns or ["[]"], **more}))


def say(*calls: tuple[str, dict[str, Any]], **expect: Any) -> dict[str, Any]:
    return {"user": json.dumps(calls), **({"expect": expect} if expect else {})}


def flat(done: Done) -> str:
    """All that was printed, however it was wrapped."""
    return " ".join(done.all.split())


def results(project: Project, turn: int = 0) -> list[Any]:
    return [call["result"] for call in project.sample()["turns"][turn]["tool_calls"]]


# ── the verdict ──────────────────────────────────────────────────────────────────────────────────


def test_the_right_order_is_green_and_another_one_is_red(project: Project) -> None:
    same = {"same_as": [{"name": "cancel_order", "args": {"order_id": "ORD-42"}}]}
    sql = {
        "sql": "SELECT status, total, gift, lines FROM orders WHERE id = 'ORD-42'",
        "equals": {"status": "cancelled", "total": 25.5, "gift": False, "lines": [["tea", 1]]},
    }
    before = say(("get_order", {"order_id": "ORD-42"}), state={"changed": {}})
    set_up(project, before, say(CANCEL), expect={"state": [CANCELLED, same, sql]})
    assert project.run("--epochs", "2").code == 0
    wrong = ("cancel_order", {"order_id": "ORD-43"})
    set_up(project, before, say(wrong), expect={"state": [CANCELLED, same, sql]})
    done = project.run()
    assert done.code == 1
    assert 'collateral: orders {"id": "ORD-43"} changed: status was "new", is "cancelled"' in done.out
    found = failed_checks(project.sample())
    assert found == {(None, "state.changed"), (None, "state.same_as"), (None, "state.sql")}
    project.write("scenarios/shop.py", "raise SystemExit('scoring runs no code')")
    for more in ((), ("--scenarios", "scenarios/suite.yaml")):
        assert project.call("score", "latest", *more, "--report", "json=scored.json").code == 1
        scored = json.loads((project.root / "scored.json").read_text("utf-8"))
        assert failed_checks(scored["scenarios"][0]["samples"][0]) == found


def test_a_milestone_over_a_world_fails_at_its_turn(project: Project) -> None:
    set_up(project, say(CANCEL, state={"changed": {}}), say(), expect={"state": CANCELLED})
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(0, "state.changed")}


def test_methods_are_tools_and_get_converted_arguments(project: Project) -> None:
    lines = {"order_id": "ORD-42", "lines": [{"product": "cup", "count": 2}, {"product": "tea"}]}
    calls = [
        ("cancel_order", {"order_id": "ORD-42", "reason": "late"}),
        ("cancel_order", {"order_id": "ORD-42", "reason": "bad"}),
        ("change_lines", lines),
        ("put_back", {"tea": 3}),
        ("close_shop", {}),
        ("size", {}),
    ]
    changed = {
        "orders": [
            {"id": "ORD-42", "status": "cancelled", "lines": [["cup", 2], ["tea", 1]]},
            {"id": "ORD-43", "$deleted": True},
            {"id": "N", "status": "0", "total": 0, "gift": None},
        ],
        "shop": [{"id": 1, "is_open": False}],
    }
    set_up(project, say(*calls), expect={"state": {"changed": changed}})
    done = project.run()
    found = results(project)
    assert found[0] == {"reason": "LATE"}
    assert found[1]["error"].startswith("wrong arguments: ")
    assert found[2] == {"error": "too late"}
    assert found[3] == {"tea": 3}
    assert found[4] is None
    assert found[5]["error"].startswith("unknown tool 'size'")
    checks = {check["name"]: check for check in project.sample()["checks"]}
    assert checks["state.changed"]["passed"] is True, done.all


def test_the_agent_sees_schemas_of_signatures(project: Project) -> None:
    set_up(project, expect={"output": {"contains": ["x"]}})
    project.agent("import json\ndef agent(messages, ctx): return json.dumps(ctx.tools)")
    assert project.run().code == 1
    told = json.loads(project.sample()["turns"][0]["agent"])
    tools = {tool["function"]["name"]: tool["function"] for tool in told}
    assert list(tools) == ["close_shop", "get_order", "cancel_order", "change_lines", "put_back"]
    assert tools["get_order"] == {
        "name": "get_order",
        "description": "Find an order.",
        "parameters": {
            "type": "object",
            "properties": {"order_id": {"type": "string", "description": "Number on the invoice."}},
            "required": ["order_id"],
            "additionalProperties": False,
        },
    }
    assert tools["change_lines"]["parameters"]["required"] == ["order_id", "lines"]
    assert "ctx" not in tools["change_lines"]["parameters"]["properties"]
    assert tools["put_back"]["parameters"]["additionalProperties"] is True


def test_each_sample_has_its_own_world(project: Project) -> None:
    set_up(project, say(CANCEL), expect={"state": CANCELLED}, epochs=4)
    assert project.run().code == 0
    shared = SHOP.replace("        self.orders = {", "        self.orders = ORDERS or {", 1)
    shared = shared.replace("class Store:", "ORDERS = {}\n\n\nclass Store:", 1)
    shared = shared.replace(
        "        }\n\n    @property", "        }\n        ORDERS.update(self.orders)\n\n    @property", 1
    )
    set_up(project, say(CANCEL), shop=shared, expect={"state": CANCELLED}, epochs=2)
    done = project.run("-n", "1")
    assert done.code == 2
    assert "does not begin as the one did that was made when the scenario was loaded" in flat(done)
    assert "table 'orders'" in flat(done)


# ── together with tools and state of the file ────────────────────────────────────────────────────

WITH_STATE = """
from agenteval import ToolError
from agenteval.world import reads


class Shop:
    def __init__(self, state):
        self.orders = {row["id"]: row for row in state["orders"]}

    def cancel_order(self, order_id: int, ctx):
        self.orders[order_id]["open"] = False
        ctx.db.execute("INSERT INTO log (what) VALUES (:what)", {"what": f"cancelled {order_id}"})
        if order_id == 2:
            raise ToolError("half done")

    def break_in(self, ctx):
        ctx.db.execute("DELETE FROM orders")

    def snapshot(self):
        return {"orders": list(self.orders.values())}
"""
STATE = {
    "tables": {
        "orders": [{"id": 1, "open": True, "tags": ["new"]}, {"id": 2, "open": True, "tags": None}],
        "log": [{"what": "start"}],
    }
}
COUNT = {"sql": "SELECT COUNT(*) AS n FROM orders WHERE open", "one": True}


def test_a_world_works_on_the_state_of_the_file(project: Project) -> None:
    calls = [
        ("count", {}),
        ("cancel_order", {"order_id": 2}),
        ("cancel_order", {"order_id": 1}),
        ("count", {}),
    ]
    changed = {
        "orders": [{"id": 1, "open": False, "tags": ["new"]}, {"id": 2}],
        "log": [{"what": "cancelled 1"}],
    }
    world = {"shop": WITH_STATE, "state": STATE, "tools": {"count": COUNT}}
    set_up(project, say(*calls), expect={"state": {"changed": changed}}, epochs=2, **world)
    done = project.run()
    assert done.code == 0, done.all
    set_up(project, say(*calls[:2]), expect={"state": {"changed": changed}}, **world)
    done = project.run()
    assert done.code == 1
    assert 'orders {"id": 1}: did not change' in done.out
    assert results(project) == [{"n": 2}, {"error": "half done"}]


def test_only_the_world_changes_its_tables(project: Project) -> None:
    tools = {"drop": {"sql": "DELETE FROM orders"}, "note": {"sql": "INSERT INTO log VALUES ('x')"}}
    world = {"shop": WITH_STATE, "state": STATE, "expect": {"state": {"changed": {}}}}
    set_up(project, tools=tools, **world)
    done = project.call("validate")
    assert done.code == 2
    assert done.all.count("the table 'orders' belongs to the world") == 1
    set_up(project, say(("break_in", {})), **world)
    done = project.run()
    assert done.code == 2
    assert "the world's method 'break_in': the table 'orders' belongs to the world" in flat(done)


SCHEMA = """
CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT, total REAL, gift BOOLEAN, lines JSON);
CREATE TABLE shop (id INTEGER PRIMARY KEY, is_open BOOLEAN);
CREATE TABLE refunds (id INTEGER PRIMARY KEY, order_id TEXT REFERENCES orders (id), amount REAL);
"""
WITH_REFUNDS = (
    SHOP.replace(
        '        return {"reason": reason.name}',
        '        self.refunds.append({"id": 1, "order_id": order_id, "amount": 5})\n'
        '        return {"reason": reason.name}',
    )
    .replace("        self.is_open = True\n", "        self.is_open = True\n        self.refunds = []\n")
    .replace('"shop": [', '"refunds": self.refunds, "shop": [')
)


def test_a_schema_declares_tables_that_are_empty_at_the_start(project: Project) -> None:
    changed = {**CANCELLED["changed"], "refunds": [{"id": 1, "order_id": "ORD-42", "amount": 5.0}]}
    set_up(project, say(CANCEL), shop=WITH_REFUNDS, expect={"state": {"changed": changed}})
    done = project.call("validate")
    assert done.code == 2
    assert "the table 'refunds' has no rows at the start" in flat(done)
    project.write("scenarios/schema.sql", SCHEMA)
    state = {"schema": "schema.sql"}
    set_up(project, say(CANCEL), shop=WITH_REFUNDS, state=state, expect={"state": {"changed": changed}})
    done = project.run()
    assert done.code == 0, done.all
    broken = WITH_REFUNDS.replace('"order_id": order_id, "am', '"order_id": "ORD-9", "am')
    set_up(project, say(CANCEL), shop=broken, state=state, expect={"state": {"changed": changed}})
    done = project.run()
    assert done.code == 2
    assert "a row of 'refunds' refers to no row of 'orders'" in flat(done)


# ── what is refused ──────────────────────────────────────────────────────────────────────────────

CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "no such class": ("class Shops: pass", ("has no attribute 'Shop'", "did you mean 'Shops'")),
    "no class": ("def Shop(): pass", ("shop.py:Shop is not a class",)),
    "an import that fails": ("import nowhere_at_all", ("importing 'shop.py' failed", "nowhere_at_all")),
    "a constructor that raises": (
        "class Shop:\n def __init__(self): 1 / 0\n def a(self): pass",
        ("`world`: shop.py:Shop raised ZeroDivisionError", "shop.py:2"),
    ),
    "a constructor with arguments": (
        "class Shop:\n def __init__(self, path): pass\n def a(self): pass",
        ("Shop cannot be made without arguments", "defaults"),
    ),
    "a constructor that needs a state": (
        "class Shop:\n def __init__(self, state): pass\n def a(self): pass",
        ("takes `state`, but the scenario has none",),
    ),
    "no methods": ("class Shop:\n def _a(self): pass", ("Shop has no public method",)),
    "a method with *args": ("class Shop:\n def a(self, *ids): pass", ("Shop.a takes `*ids` by position",)),
    "a method without self": ("class Shop:\n def a(): pass", ("Shop.a has no parameter `self`",)),
    "a type that JSON does not know": (
        "class Cart: pass\nclass Shop:\n def a(self, cart: Cart): pass",
        ("Shop.a: no JSON Schema can be made of its parameters",),
    ),
    "an unknown annotation": (
        "class Shop:\n def a(self, cart: 'Cart'): pass",
        ("Shop.a: the types of its parameters cannot be read", "Cart"),
    ),
    "two marks": (
        "from agenteval.world import reads, writes\nclass Shop:\n @reads\n @writes\n def a(self): pass",
        ("Shop.a: `@reads` cannot be combined",),
    ),
    "a name clash": (
        "class Shop:\n def look(self): pass",
        ("the tool 'look' is a method of the world, too",),
    ),
    "a snapshot that is a list": (
        "class Shop:\n def a(self): pass\n def snapshot(self): return [1]",
        ("`snapshot` returned a list", "{table: [rows]}"),
    ),
    "a table that is a mapping": (
        "class Shop:\n def a(self): pass\n def snapshot(self): return {'t': {'A': {'id': 1}}}",
        ("the table 't' is a mapping, but must be a list of rows", "return the list of its values"),
    ),
    "a row that is no mapping": (
        "class Shop:\n def a(self): pass\n def snapshot(self): return {'t': [{'id': 1}, 2]}",
        ("row 2 of the table 't' is 2",),
    ),
    "a snapshot that JSON cannot represent": (
        "class Shop:\n def a(self): pass\n def snapshot(self): return {'t': [{'id': object()}]}",
        ("returned a value that cannot be represented in JSON",),
    ),
    "a snapshot that raises": (
        "class Shop:\n def a(self): pass\n def snapshot(self): return 1 / 0",
        ("`world`: Shop.snapshot raised ZeroDivisionError",),
    ),
    "an async snapshot": (
        "class Shop:\n def a(self): pass\n async def snapshot(self): return {}",
        ("Shop.snapshot is async",),
    ),
    "a snapshot that is too large": (
        "class Shop:\n def a(self): pass\n def snapshot(self): return {'t': [{'id': 1}] * 10001}",
        ("10,001 rows", "at most 10,000 rows"),
    ),
    "a column of mixed types": (
        "class Shop:\n def a(self): pass\n def snapshot(self): return {'t': [{'a': True}, {'a': 5}]}",
        ("the column 'a' of 't' has no type",),
    ),
}


@pytest.mark.parametrize(("shop", "facts"), CASES.values(), ids=CASES)
def test_mistakes_are_found_when_the_file_is_loaded(
    project: Project, shop: str, facts: tuple[str, ...]
) -> None:
    set_up(project, shop=shop, tools={"look": {"returns": 1}}, checks="none")
    done = project.call("validate")
    assert done.code == 2
    assert "Traceback" not in done.all
    for fact in ("scenarios/suite.yaml:1", *facts):
        assert fact in flat(done), done.all


def test_an_expected_state_needs_a_snapshot(project: Project) -> None:
    shop = "class Shop:\n def a(self): pass"
    set_up(project, shop=shop, expect={"state": {"changed": {}}})
    done = project.call("validate")
    assert done.code == 2
    assert "needs the scenario's `state`" in flat(done)
    set_up(project, say(("a", {})), shop=shop, expect={"tool_calls": {"calls": [{"name": "a"}]}})
    assert project.run().code == 0
    set_up(project, shop=shop, expect={"tool_calls": {"calls": [{"name": "b"}]}})
    assert "expects a call to 'b'" in project.call("validate").all


LATER: dict[str, tuple[str, str]] = {
    "a new column": (
        "self.orders[args]['note'] = 'x'",
        "the table 'orders' has no column 'note' at the start",
    ),
    "a list where none was": ("self.orders[args]['total'] = [1]", "it is no JSON column"),
    "a boolean where none was": ("self.orders[args]['total'] = True", "it is no BOOLEAN column"),
    "no boolean any more": ("self.orders[args]['gift'] = 'yes'", "the column holds true and false"),
    "a table less": ("self.snapshot = lambda: {'shop': []}", "returns the table 'orders' no more"),
    "a table more": (
        "self.snapshot = lambda: {'orders': [], 'shop': [], 'new': []}",
        "returns the table 'new', which it did not at the start",
    ),
    "an exception": ("raise KeyError(args)", "the world's method 'change' raised KeyError"),
    "a result that is no JSON": ("return object()", "the world's method 'change' returned a value that"),
}


@pytest.mark.parametrize(("code", "fact"), LATER.values(), ids=LATER)
def test_what_a_call_does_wrong_is_the_authors_error(project: Project, code: str, fact: str) -> None:
    shop = f"{SHOP}\n    def change(self, args: str):\n        {code}\n"
    set_up(project, say(("change", {"args": "ORD-42"})), shop=shop, expect={"state": {"changed": {}}})
    done = project.run()
    assert done.code == 2, done.all
    assert fact in flat(done), done.all


def test_a_method_that_is_marked_as_reading_changes_nothing(project: Project) -> None:
    shop = SHOP.replace("    @destructive\n", "    @reads\n")
    set_up(project, say(CANCEL), shop=shop, expect={"state": {"changed": {}}})
    done = project.run()
    assert done.code == 2
    assert "'cancel_order' is marked `@reads`, but changed the table 'orders'" in flat(done)


def test_rows_without_a_key_are_followed_by_their_values(project: Project) -> None:
    shop = """
class Shop:
    def __init__(self):
        self.stock = [{"item": item, "left": 3} for item in ("tea", "cup", "pot")]

    def sell(self, item: str):
        for row in self.stock:
            row["left"] -= row["item"] == item

    def drop(self, item: str):
        self.stock = [row for row in reversed(self.stock) if row["item"] != item]

    def snapshot(self):
        return {"stock": self.stock}
"""
    changed = {"stock": [{"item": "pot", "left": 2}, {"item": "tea", "$deleted": True}]}
    calls = [("sell", {"item": "pot"}), ("drop", {"item": "tea"})]
    set_up(project, say(*calls), shop=shop, expect={"state": {"changed": changed}})
    done = project.run()
    assert done.code == 0, done.all
    set_up(project, say(*calls[:1]), shop=shop, expect={"state": {"changed": changed}})
    assert project.run().code == 1


# ── what is not known ────────────────────────────────────────────────────────────────────────────

GATED = (
    SHOP.replace(
        "class Reason", "from threading import Event\n\nSTARTED, GATE = Event(), Event()\n\n\nclass Reason", 1
    )
    + """
    def wait(self, ctx):
        STARTED.set()
        GATE.wait(60)
        self.orders.clear()
"""
)
GIVES_UP = """
import asyncio

async def agent(messages, ctx):
    from shop import GATE, STARTED

    waiting = asyncio.create_task(ctx.call_tool("wait", {}))
    while not STARTED.is_set():
        await asyncio.sleep(0.01)
    LEAVE
    asyncio.get_running_loop().call_later(0, GATE.set)
    return "Done."
"""


@pytest.mark.parametrize("leave", ["waiting.cancel(); await asyncio.sleep(0.1)", "pass"])
def test_a_call_that_is_not_over_leaves_the_state_unknown(project: Project, leave: str) -> None:
    set_up(project, shop=GATED, expect={"state": {"changed": {}}})
    project.agent(GIVES_UP.replace("LEAVE", leave))
    done = project.run()
    (check,) = [each for each in project.sample()["checks"] if each["name"] == "state.changed"]
    assert check["passed"] is None, done.all
    assert "a call to 'wait' was not over" in check["detail"]
    assert "not known: a call to 'wait'" in flat(project.call("show", "s"))


def test_a_method_that_the_agent_answered_itself_decides_nothing(project: Project) -> None:
    set_up(project, expect={"state": {"changed": {}}})
    project.agent("""
        def agent(messages):
            call = {"id": "1", "type": "function", "function": {"name": "cancel_order", "arguments": "{}"}}
            return [
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "1", "content": "ok"},
                {"role": "assistant", "content": "Done."},
            ]
    """)
    done = project.run()
    assert done.code == 3, done.all
    assert "the agent's own code, not the mock of 'cancel_order', answered" in flat(done)


def test_a_listing_imports_no_world(project: Project) -> None:
    set_up(project, shop="raise SystemExit('not now')", checks="none")
    assert "s" in project.call("list").out
    assert project.call("validate").code == 2
