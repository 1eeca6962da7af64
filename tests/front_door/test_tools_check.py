"""``agenteval tools check``: real tools that only read against mocks."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.support.kit import Done, Project
from tests.support.recorded_tools import CONFIG, SHOP, real_calls, record, set_up


@pytest.fixture
def checked(project: Project) -> Project:
    """A project with a recording."""
    set_up(project, "status of ORD-2", "items of ORD-2", "which orders besides ORD-1", "status of ORD-9",
           "cancel ORD-2")  # fmt: skip
    assert record(project).code == 0
    project.write("agenteval.yaml", CONFIG)
    (project.root / "REAL").unlink()
    return project


def check(project: Project, *arguments: str) -> Done:
    return project.call("tools", "check", *arguments)


def payload(project: Project, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(check(project, *arguments, "--json").out)
    return found


def change(project: Project, before: str, after: str) -> None:
    assert before in SHOP
    project.write("shop.py", SHOP.replace(before, after))


def test_unchanged_tools_agree_and_the_writing_one_is_not_called(checked: Project) -> None:
    done = check(checked, "mocks.yaml")
    assert done.code == 0, done.all
    assert "AGREE: 3 mocks agree, 0 differ, 1 not called, 1 not comparable (exit 0)" in done.out
    assert "cancel_order (1 mock): it writes" in done.out
    calls = real_calls(checked)
    assert sorted(calls) == ["get_order ORD-2", "get_order ORD-9", "list_orders"]
    found = payload(checked, "mocks.yaml")
    assert [each["tool"] for each in found["not_called"]] == ["cancel_order"]
    # ORD-2 without `verbose` was asked for before and after its cancellation.
    assert [each["reason"] for each in found["not_comparable"]] == [
        "its answers follow each other (sequence)"
    ]


@pytest.mark.parametrize(
    ("before", "after", "tool", "expected"),
    [
        ('"total": 8}', '"total": 9}', "get_order", ("values", "total", 8, 9)),
        ('"total": 8}', '"total": "8"}', "get_order", ("types", "total", 8, "8")),
        ('"total": 8}', '"total": None}', "get_order", ("types", "total", 8, None)),
        ('"qty": 1', '"qty": True', "get_order", ("types", "items[0].qty", 1, True)),
        (', "total": 8}', "}", "get_order", ("fields", "total", 8)),
        ('"total": 8}', '"total": 8, "eta": 1}', "get_order", ("fields", "eta", 1)),
        ("sorted(ORDERS)", '[*sorted(ORDERS), "ORD-7"]', "list_orders", ("values", "[2]", "ORD-7")),
        ("return sorted(ORDERS)", 'raise OSError("closed")', "list_orders",
         ("error", "", ["ORD-1", "ORD-2"], {"error": "OSError: closed"})),
        ('raise LookupError(f"no order {id}")', "return None", "get_order",
         ("error", "", {"error": "LookupError: no order ORD-9"}, None)),
        ("no order {id}", "none {id}", "get_order",
         ("values", "error", "LookupError: no order ORD-9", "LookupError: none ORD-9")),
    ],
)  # fmt: skip
def test_a_tool_that_changed_is_named(
    checked: Project, before: str, after: str, tool: str, expected: tuple[Any, ...]
) -> None:
    change(checked, before, after)
    done = check(checked, "mocks.yaml")
    assert done.code == 1, done.all
    assert "DIFFER: 2 mocks agree, 1 differs" in done.out
    kind, path = expected[:2]
    (differing,) = payload(checked, "mocks.yaml")["differ"]
    (difference,) = differing["differences"]
    assert differing["tool"] == tool
    assert (difference.pop("kind"), difference.pop("path"), *difference.values()) == expected
    file, _, line = differing["at"].partition(":")
    assert file == "mocks.yaml"
    text = (checked.root / file).read_text("utf-8").splitlines()[int(line) - 1]
    assert text.lstrip().startswith("- ")
    row = next(row for row in done.out.splitlines() if row.startswith(tool))
    assert kind in row
    assert path in row
    assert differing["at"] in row
    assert not any(call.startswith("cancel") for call in real_calls(checked))


def test_ignored_fields_are_left_out_and_others_are_not(checked: Project) -> None:
    change(checked, '"total": 8}', '"total": 9, "qty": 1}')
    assert check(checked, "mocks.yaml", "--ignore", "total").code == 1
    both = check(checked, "mocks.yaml", "--ignore", "total", "--ignore", "qty")
    assert both.code == 0, both.all
    assert "warning" not in both.err
    # A dotted path means that place only.
    change(checked, '"qty": 1', '"qty": 2')
    assert check(checked, "mocks.yaml", "--ignore", "items.qty").code == 0
    other = check(checked, "mocks.yaml", "--ignore", "lines.qty")
    assert other.code == 1
    assert "--ignore lines.qty" in other.err


def test_only_a_tool_that_is_known_to_read_is_called(project: Project) -> None:
    """By name, by mark, and never by both where they disagree."""
    project.write("shop.py", SHOP + "\n".join(
        f"def {name}(id: str):\n    _log('{name}')\n    return 1\n"
        for name in ("order", "inspect", "get_receipt", "delete_order", "find_order")
    ))  # fmt: skip
    names = ("order", "inspect", "get_receipt", "delete_order", "find_order")
    intercept = "".join(f"    {name}: shop.py:{name}\n" for name in names)
    project.agent("def agent(question: str): return 'hi'\n")
    head = "agent:\n  name: bot\n  target: agent.py:agent\n  intercept:\n"
    project.write("agenteval.yaml", head + intercept + "metrics: []\n")
    tool = {"rules": [{"when": {"args": {"id": "A"}}, "returns": 1}]}
    marks = {"inspect": {"reads": True}, "get_receipt": {"writes": True}}
    tools = {name: {**tool, **marks.get(name, {})} for name in names}
    other = {"id": "b", "turns": ["hi"], "checks": "none", "tools": {"find_order": {**tool, "writes": True}}}
    project.scenarios(
        json.dumps({"scenarios": [{"id": "a", "turns": ["hi"], "checks": "none", "tools": tools}, other]})
    )
    done = check(project, "-s", "a")
    assert done.code == 0, done.all
    assert real_calls(project) == ["inspect"]
    # One scenario says that `find_order` writes.
    assert "find_order (1 mock): it writes" in done.out
    for name in ("order", "get_receipt", "delete_order"):
        assert f"{name} (1 mock): it " in done.out


def test_what_cannot_be_compared_is_named_and_nothing_is_claimed(project: Project) -> None:
    set_up(project)
    project.write("agenteval.yaml", CONFIG)
    project.scenarios(
        """
        id: a
        checks: none
        turns: [hi]
        state: {tables: {orders: [{id: A}]}}
        tools:
          get_order:
            rules:
              - {when: {args: {id: {$in: [A, B]}}}, returns: 1}
              - {when: {args: {id: A}, call: 1}, returns: 1}
              - {when: {args: {id: A}}, returns: {id: "${args.id}"}}
              - {when: {args: {id: B}}, sql: "SELECT 1"}
              - {when: {args: {id: C}}, python: "shop.py:get_order"}
              - {when: {args: {id: D}}, sequence: [{returns: 1}]}
              - {returns: 2}
          list_orders: {returns: []}
        """
    )
    done = check(project)
    assert done.code == 3, done.all
    assert "NOT DECIDED: 0 mocks agree, 0 differ, 8 not comparable (exit 3)" in done.out
    for fact in (
        "matchers",
        "number of the call",
        "${…}",
        "SQL",
        "a function answers",
        "sequence",
        "any arguments",
    ):
        assert fact in done.out
    assert real_calls(project) == []


@pytest.mark.parametrize(
    ("function", "fact"),
    [
        ("def get_order(number): return 1", "recorded arguments"),
        ("import time\ndef get_order(id): time.sleep(600)", "did not answer within 1.5 s"),
        ("def get_order(id): return object()", "not JSON"),
        ("class get_order: ...", "is a class"),
        ("get_order = 5", "is not a function"),
        ("def get_order(*ids): return 1", "recorded arguments"),
    ],
)
def test_a_tool_without_an_answer_is_undecided(project: Project, function: str, fact: str) -> None:
    project.write("shop.py", f"{function}\ndef list_orders(): return []\n")
    project.agent("def agent(question: str): return 'hi'\n")
    intercept = "{get_order: 'shop.py:get_order', list_orders: 'shop.py:list_orders'}"
    project.write(
        "agenteval.yaml",
        f"agent: {{name: bot, target: 'agent.py:agent', timeout_s: 1.5, intercept: {intercept}}}\n"
        "metrics: []\n",
    )
    project.scenarios(
        """
        id: a
        checks: none
        turns: [hi]
        tools:
          get_order: {rules: [{when: {args: {id: A}}, returns: 1}]}
          list_orders: {parameters: {type: object, properties: {}}, returns: []}
          find_order: {rules: [{when: {args: {id: A}}, returns: 1}]}
        """
    )
    done = check(project)
    assert done.code == 3, done.all
    assert "1 mock agrees, 0 differ, 2 without an answer" in done.out
    assert "get_order (1 mock): " in done.out
    assert fact in done.out
    assert "find_order (1 mock): its function is not known" in done.out


@pytest.mark.parametrize(
    ("code", "name", "fact"),
    [
        ("class Shop:\n    def get(self, id): return 1\nshop = Shop()", "shop.get", ""),
        ("class Shop:\n    @staticmethod\n    def get(id): return 1", "Shop.get", ""),
        ("class Shop:\n    @classmethod\n    async def get(cls, id): return 1", "Shop.get", ""),
        ("class Shop:\n    def get(self, id): return 1", "Shop.get", "needs an object"),
        ("def get(id, /, *, db=None, **more): return 1", "get", ""),
        (
            "class Tool:\n    def __init__(self, func): self.func = func\n@Tool\ndef get(id): return 1",
            "get",
            "",
        ),
    ],
)
def test_the_ways_to_a_function(project: Project, code: str, name: str, fact: str) -> None:
    project.write("shop.py", code + "\n")
    project.agent("def agent(question: str): return 'hi'\n")
    intercept = f"{{get_order: 'shop.py:{name}'}}"
    project.write(
        "agenteval.yaml",
        f"agent: {{name: bot, target: 'agent.py:agent', intercept: {intercept}}}\nmetrics: []\n",
    )
    project.scenarios(
        """
        id: a
        checks: none
        turns: [hi]
        tools: {get_order: {rules: [{when: {args: {id: A}}, returns: 1}]}}
        """
    )
    done = check(project)
    assert done.code == (3 if fact else 0), done.all
    assert fact in done.out


def test_a_mock_of_many_scenarios_is_called_once(project: Project) -> None:
    set_up(project)
    project.write("agenteval.yaml", CONFIG)
    project.scenarios(
        """
        defaults:
          checks: none
          turns: [hi]
          tools:
            get_order:
              rules: [{when: {args: {id: ORD-2}}, returns: {id: ORD-2, status: shipped, total: 8.0}}]
        scenarios:
          - id: a
          - id: b
          - {id: c, tools: {list_orders: {rules: [{when: {args: {id: ORD-2}}, returns: 1}]}}}
        """
    )
    done = check(project)
    assert done.code == 3, done.all
    assert "1 mock agrees, 0 differ, 1 without an answer" in done.out
    assert real_calls(project) == ["get_order ORD-2"]


def test_wrong_input(project: Project) -> None:
    set_up(project)
    config = CONFIG.replace("shop.py:get_order", "shop.py:get_ordr")
    project.write("agenteval.yaml", config)
    project.scenarios(
        """
        id: a
        checks: none
        turns: [hi]
        tools: {get_order: {rules: [{when: {args: {id: A}}, returns: 1}]}}
        """
    )
    check(project).refuses("agenteval.yaml:5:5", "get_ordr", "get_order")
    project.write("agenteval.yaml", CONFIG)
    for options, fact in {
        ("--ignore", "a..b"): "a..b",
        ("--ignore", "items[0]"): "positions",
        ("--mcp", ""): "--mcp",
        ("--mcp", "node 'x"): "quotation",
        ("--agent", "bott"): "bot",
        ("gone.yaml",): "gone.yaml",
    }.items():
        done = check(project, *options)
        assert done.code == 2, done.all
        assert fact in done.err
    agents = "agents:\n  other: {target: agent.py:agent, intercept: {get_order: 'shop.py:list_orders'}}\n"
    project.write("agenteval.yaml", CONFIG + agents)
    two = check(project)
    assert two.code == 2, two.all
    assert "--agent" in two.err
    assert check(project, "--agent", "bot").code == 1  # a real order A does not exist
    assert real_calls(project) == ["get_order A"]


SERVER = """
import json, pathlib, sys
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("shop")

def log(name):
    with pathlib.Path("REAL").open("a") as file:
        file.write(name + "\\n")

@server.tool()
def get_order(id: str) -> dict:
    log("get_order")
    if id == "ORD-9":
        raise ValueError("no such order")
    return {"id": id, "status": STATUS}

@server.tool()
def get_text(id: str) -> str:
    log("get_text")
    return json.dumps({"id": id})

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def run_sql(text: str) -> int:
    log("run_sql")
    return 3

@server.tool(annotations=ToolAnnotations(read_only_hint=False))
def get_and_lock(id: str) -> int:
    log("get_and_lock")
    return 3

server.run()
"""


@pytest.mark.parametrize(("status", "code"), [("shipped", 0), ("lost", 1)])
def test_the_tools_of_an_mcp_server(project: Project, status: str, code: int) -> None:
    """Its hints say what a name does not, and overrule a name."""
    pytest.importorskip("mcp")
    project.write("server.py", SERVER.replace("STATUS", repr(status)))
    project.agent("def agent(question: str): return 'hi'\n")
    project.config()
    project.scenarios(
        """
        id: a
        checks: none
        turns: [hi]
        tools:
          get_order:
            rules:
              - {when: {args: {id: ORD-2}}, returns: {id: ORD-2, status: shipped}}
              - {when: {args: {id: ORD-9}}, error: "Error executing tool get_order"}
          get_text: {rules: [{when: {args: {id: A}}, returns: {id: A}}]}
          run_sql: {rules: [{when: {args: {text: SELECT}}, returns: "3"}]}
          get_and_lock: {rules: [{when: {args: {id: A}}, returns: "3"}]}
        """
    )
    done = check(project, "--mcp", f"'{sys.executable}' server.py")
    assert done.code == code, done.all
    assert f"{4 - code} mocks agree, {code} differ" in done.out
    assert "get_and_lock (1 mock): it writes" in done.out
    assert sorted(set(real_calls(project))) == ["get_order", "get_text", "run_sql"]
    if code:
        assert [
            payload(project, "--mcp", f"'{sys.executable}' server.py")["differ"][0]["differences"][0][key]
            for key in ("path", "mock", "real")
        ] == ["status", "shipped", "lost"]


def test_an_mcp_server_that_cannot_be_reached(project: Project) -> None:
    pytest.importorskip("mcp")
    set_up(project)
    done = check(project, "--mcp", "http://127.0.0.1:1/mcp")
    assert done.code == 2, done.all
    assert "http://127.0.0.1:1/mcp" in done.err
