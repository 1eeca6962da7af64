"""Faults of tools from the file to the verdict."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks

CAREFUL = """
async def agent(messages, ctx):
    for attempt in range(3):
        done = await ctx.call_tool("cancel_order", {"id": "ORD-42"})
        if not isinstance(done, dict) or "error" in done:
            continue
        now = await ctx.call_tool("get_order", {"id": "ORD-42"})
        if isinstance(now, dict) and now.get("status") == "cancelled":
            return f"ORD-42 is cancelled; {now.get('total')} is refunded."
    return "I could not cancel ORD-42."
"""
HASTY = """
async def agent(messages, ctx):
    await ctx.call_tool("cancel_order", {"id": "ORD-42"})
    return "ORD-42 is cancelled; 25.5 is refunded."
"""
ORDERS = [
    {"id": "ORD-42", "status": "pending", "total": 25.5},
    {"id": "ORD-43", "status": "new", "total": 8.0},
]
GET = {
    "reads": True,
    "sql": "SELECT * FROM orders WHERE id = :id",
    "one": True,
    "none": {"error": "no order"},
}
CANCEL = {
    "sql": "UPDATE orders SET status = 'cancelled' WHERE id = :id",
    "none": {"error": "no"},
    "returns": {"ok": True},
}
SUITE: dict[str, Any] = {
    "state": {"tables": {"orders": ORDERS}},
    "tools": {"get_order": GET, "cancel_order": CANCEL},
    "turns": ["Cancel ORD-42"],
    "expect": {"state": {"changed": {"orders": [{"id": "ORD-42", "status": "cancelled"}]}}},
}


def set_up(project: Project, agent: str, tool: str, *faults: dict[str, Any], **more: Any) -> None:
    project.agent(agent)
    project.config()
    tools = {name: dict(each) for name, each in SUITE["tools"].items()}
    tools[tool]["faults"] = faults
    project.scenarios(json.dumps({"id": "s", **SUITE, "tools": tools, **more}))


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "no_op", "calls": 1},
        {"kind": "timeout", "calls": 2},
        {"kind": "http_error", "on_call": 1},
        {"kind": "rate_limit", "calls": 1},
        {"kind": "error", "text": "locked", "calls": 1},
    ],
)
def test_an_agent_that_looks_again_recovers_and_one_that_does_not_is_red(
    project: Project, fault: dict[str, Any]
) -> None:
    set_up(project, CAREFUL, "cancel_order", fault)
    assert project.run("--report", "json=careful.json").code == 0
    set_up(project, HASTY, "cancel_order", fault)
    done = project.run()
    assert done.code == 1
    assert failed_checks(project.sample()) == {(None, "state.changed")}
    assert 'did not change: status: expected "cancelled"' in done.out
    assert f"(fault {fault['kind']}" in done.out
    assert project.sample()["turns"][0]["tool_calls"][0]["fault"] == fault["kind"]


def test_a_wrong_value_reaches_the_answer_of_an_agent_that_believes_it(project: Project) -> None:
    expect = {"output": {"contains": ["25.5"]}}
    wrong = {"kind": "wrong_value", "field": "total"}
    set_up(project, CAREFUL, "get_order", wrong, expect=expect)
    assert project.run().code == 1
    call = project.sample()["turns"][0]["tool_calls"][-1]
    assert (call["result"]["total"], call["fault"]) == (8.0, "wrong_value")  # that of the other order
    assert "8.0 instead of 25.5" in project.call("show", "s").out
    set_up(project, CAREFUL, "get_order", {**wrong, "on_call": 2}, expect=expect)
    assert project.run().code == 0


def test_a_wrong_value_of_the_state_is_that_of_another_row_of_its_table(project: Project) -> None:
    state = {"tables": {"orders": ORDERS, "people": [{"id": f"P-{at}"} for at in range(9)]}}
    wrong = {"kind": "wrong_value", "field": "id"}
    set_up(project, CAREFUL, "get_order", wrong, state=state)
    for seed in range(4):
        project.run("--seed", str(seed))
        assert "id: ORD-43 instead of ORD-42" in project.call("show", "s").out


@pytest.mark.parametrize(
    ("call", "seen"),
    [(2, "pending None pending None closed"), (3, "pending None cancelled None cancelled")],
)
def test_a_stale_answer_is_the_previous_one_to_the_same_arguments(
    project: Project, call: int, seen: str
) -> None:
    project.agent("""
        async def agent(messages, ctx):
            seen = []
            for name in ("get", "cancel", "get", "close", "get"):
                seen.append(await ctx.call_tool(f"{name}_order", {"id": "ORD-42"}))
            return " ".join(str(each.get("status")) for each in seen)
    """)
    project.config()
    tools = {
        "get_order": {**GET, "faults": [{"kind": "stale", "on_call": call}]},
        "cancel_order": CANCEL,
        "close_order": {"sql": "UPDATE orders SET status = 'closed' WHERE id = :id"},
    }
    expect = {"output": {"contains": [seen]}}
    project.scenarios(json.dumps({"id": "s", **SUITE, "tools": tools, "expect": expect}))
    assert project.run().code == 0


def test_a_right_answer_of_a_tool_that_only_reads_is_not_stale(project: Project) -> None:
    peek = {key: value for key, value in GET.items() if key != "reads"}
    project.config()
    project.agent("async def agent(messages, ctx): return str(await ctx.call_tool('peek', {'id': 'ORD-42'}))")
    calls = {"tool_calls": {"calls": [{"name": "peek", "result": "ok"}]}}
    tools = {"peek": {**peek, "faults": [{"kind": "stale"}]}}
    project.scenarios(json.dumps({"id": "s", **SUITE, "tools": tools, "expect": calls}))
    done = project.run()
    assert done.code == 0, done.all
    assert "no call had the faults of 'peek'" in done.out


def test_the_first_stale_answer_is_that_of_the_start_state(project: Project) -> None:
    project.agent("""
        async def agent(messages, ctx):
            await ctx.call_tool("cancel_order", {"id": "ORD-42"})
            return str(await ctx.call_tool("get_order", {"id": "ORD-42"}))
    """)
    project.config()
    tools = {"get_order": {**GET, "faults": [{"kind": "stale"}]}, "cancel_order": CANCEL}
    expect = {"output": {"contains": ["pending"]}}
    project.scenarios(json.dumps({"id": "s", **SUITE, "tools": tools, "expect": expect}))
    assert project.run().code == 0


def test_a_call_that_fails_uses_up_no_entry_of_a_sequence(project: Project) -> None:
    project.agent("""
        async def agent(messages, ctx):
            return str([await ctx.call_tool("t", {}) for _ in range(3)])
    """)
    project.config()
    project.scenarios("""
        id: s
        tools: {t: {sequence: [{returns: one}, {returns: two}], faults: [{kind: timeout, on_call: 2}]}}
        turns: [hi]
        expect: {output: {contains: ["['one', {'error': 'timed out: no answer within 30 s'}, 'two']"]}}
    """)
    assert project.run().code == 0


def test_an_intercepted_function_times_out_with_a_timeout_error(project: Project) -> None:
    project.write("shop.py", "def get_order(id):\n    return {'id': id}\n")
    project.agent("""
        import shop

        def agent(messages):
            try:
                return str(shop.get_order("1"))
            except TimeoutError as error:
                return f"late: {error}"
    """)
    target = "agent: {target: 'agent.py:agent', intercept: {get_order: 'shop.py:get_order'}}\n"
    project.config(target, target="")
    project.scenarios("""
        id: s
        turns: [hi]
        tools: {get_order: {returns: 1, faults: [{kind: timeout}]}}
        expect: {output: {contains: ["late: timed out"]}}
    """)
    assert project.run().code == 0


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        (
            "{parameters: {type: object}, faults: [{kind: timeout}]}",
            "`faults` need an answer that they can change",
        ),
        (
            "{returns: 1, faults: [{kind: no_op}]}",
            "a `no_op` has no effect on fixed answers",
        ),
        ("{returns: 1, faults: [{kind: slow}]}", "kind"),
        ("{returns: 1, faults: [{kind: timeout, cals: 1}]}", "did you mean 'calls'?"),
        ("{returns: 1, faults: [{kind: latency}]}", "`ms` is missing, which latency needs"),
    ],
)
def test_wrong_faults_are_refused_at_their_line(project: Project, tool: str, message: str) -> None:
    project.agent("def agent(messages): return 'x'")
    project.config()
    project.scenarios(f"id: s\nturns: [hi]\nchecks: none\ntools:\n  t: {tool}\n")
    done = project.call("validate")
    assert done.code == 2
    assert message in done.err
    assert ":5:" in done.err


# ── the form in which each kind of agent gets it ─────────────────────────────────────────────────

ONE_TOOL = """
    id: s
    turns: [hi]
    tools:
      get_order:
        parameters: {{type: object, properties: {{id: {{type: string}}}}}}
        returns: {{id: "1"}}
        faults: [{{kind: {}}}]
    expect: {{output: {{contains: ["{}"]}}}}
"""


@pytest.mark.parametrize(
    ("fault", "seen"),
    [("timeout", "True timed out*"), ("rate_limit", "True HTTP 429*"), ("empty", "False {}")],
)
def test_over_mcp_an_error_is_marked_as_one(project: Project, fault: str, seen: str) -> None:
    project.agent("""
        import asyncio, json, os
        from mcp import Client

        def shown(text):
            return json.loads(text).get('error') or text

        async def agent(message: str) -> str:
            async with Client(os.environ["AGENTEVAL_MCP_URL"]) as client:
                found = await client.call_tool("get_order", {"id": "1"})
                return f"{bool(found.is_error)} {shown(found.content[0].text)}"
    """)
    project.config("agent: {target: 'agent.py:agent', mcp: true}\n", target="")
    project.scenarios(ONE_TOOL.format(fault, seen))
    done = project.run()
    assert done.code == 0, done.out


@pytest.mark.parametrize(
    ("fault", "seen"),
    [("http_error", "{'error': 'HTTP 503 Service Unavailable'}"), ("truncated", "str")],
)
def test_over_json_lines_a_result_is_what_the_tool_would_have_sent(
    project: Project, fault: str, seen: str
) -> None:
    project.write(
        "bot.py",
        """
        import json, sys
        for line in sys.stdin:
            asked = json.loads(line)
            last = asked["messages"][-1]
            if last["role"] == "tool":
                content = last["content"]
                try:
                    shown = str(json.loads(content))
                except ValueError:
                    shown = type(content).__name__
                print(json.dumps({"text": shown}), flush=True)
            else:
                call = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": "{}"}}
                print(json.dumps({"tool_calls": [call]}), flush=True)
        """,
    )
    project.config(f"agent: {{command: ['{sys.executable}', bot.py]}}\n", target="")
    project.scenarios(ONE_TOOL.format(fault, seen))
    done = project.run()
    assert done.code == 0, done.out + done.err


def test_in_an_interpreter_of_its_own_a_timeout_is_a_timeout_error(project: Project) -> None:
    project.write("shop.py", "def get_order(id):\n    return {'id': id}\n")
    project.agent("""
        import shop

        def agent(messages):
            try:
                return str(shop.get_order("1"))
            except TimeoutError as error:
                return f"late: {error}"
    """)
    target = f"target: 'agent.py:agent', interpreter: '{sys.executable}'"
    project.config(f"agent: {{{target}, intercept: {{get_order: 'shop.py:get_order'}}}}\n", target="")
    project.scenarios(ONE_TOOL.format("timeout", "late: timed out*"))
    assert project.run().code == 0


# ── a world in Python ────────────────────────────────────────────────────────────────────────────

SHOP = """
from agenteval.world import reads, writes

class Shop:
    def __init__(self):
        self.orders = {"ORD-42": "pending", "ORD-43": "new"}

    @reads
    def get_order(self, id: str):
        return {"id": id, "status": self.orders[id]}

    @writes
    def cancel_order(self, id: str):
        self.orders[id] = "cancelled"
        return {"ok": True}

    def snapshot(self):
        return {"orders": [{"id": id, "status": status} for id, status in self.orders.items()]}
"""


@pytest.mark.parametrize(("agent", "code"), [(CAREFUL, 0), (HASTY, 1)])
def test_a_method_of_a_world_that_changes_nothing_is_found_out(
    project: Project, agent: str, code: int
) -> None:
    project.agent(agent)
    project.config()
    project.write("scenarios/shop.py", SHOP)
    project.scenarios(
        json.dumps({"id": "s", "world": "shop.py:Shop", **{k: SUITE[k] for k in ("turns", "expect")}})
    )
    project.write("pack.yaml", "- {kind: no_op, calls: 1}\n")
    done = project.run("--faults", "pack.yaml", "--no-judge")
    assert done.code == code, done.all
    row = next(row for row in project.results()["summary"]["faults"] if row["fault"] == "no_op-1x")
    assert row["outcomes"] == ({"recovered": 1} if code == 0 else {"not decided": 1})


def test_same_as_decides_whether_an_agent_recovered_although_tools_are_in_python(project: Project) -> None:
    project.agent(CAREFUL)
    project.config()
    project.write("scenarios/shop.py", SHOP)
    same = {"state": {"same_as": [{"name": "cancel_order", "args": {"id": "ORD-42"}}]}}
    project.scenarios(
        json.dumps({"id": "s", "world": "shop.py:Shop", "turns": SUITE["turns"], "expect": same})
    )
    project.write("pack.yaml", "- {kind: no_op, calls: 1, tools: [cancel_order]}\n")
    assert project.run("--faults", "pack.yaml", "--no-judge").code == 0
    assert project.results()["summary"]["faults"][0]["outcomes"] == {"recovered": 1}
    project.write("judge.yaml", "replies: []\n")
    project.config("metrics: []\nmodels: {judge: scripted/judge.yaml}\n")
    assert project.run("--faults", "pack.yaml").code == 0
    assert project.results()["summary"]["faults"][0]["outcomes"] == {"recovered": 1}


@pytest.mark.parametrize(("fault", "code"), [("no_op", 1), ("stale", 1), ("latency", 0)])
def test_a_call_that_was_not_carried_out_is_not_ok(project: Project, fault: str, code: int) -> None:
    more = {"ms": 1} if fault == "latency" else {}
    calls = {"tool_calls": {"calls": [{"name": "cancel_order", "result": "ok"}]}}
    set_up(project, HASTY, "cancel_order", {"kind": fault, **more}, expect=calls)
    done = project.run()
    assert done.code == code, done.all


def test_faults_that_no_call_had_are_named_in_the_last_line(project: Project) -> None:
    set_up(project, HASTY, "cancel_order", {"kind": "timeout", "on_call": 2})
    done = project.run()
    assert done.code == 0
    said = "no call had the faults of 'cancel_order' in s"
    assert said in done.out.splitlines()[-1]
    assert said in project.call("score", "latest").out
    set_up(project, HASTY, "cancel_order", {"kind": "latency", "ms": 1})
    done = project.run()
    assert (done.code, "no call had" in done.out) == (0, False)
    set_up(project, CAREFUL, "get_order", {"kind": "no_op"})  # it changes nothing anyway
    done = project.run()
    assert (done.code, "no call had the faults of 'get_order'" in done.out) == (0, True)
