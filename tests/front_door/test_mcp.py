"""Agents that find their tools at an MCP server, by each way to learn its address; ``agenteval tools``."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
import yaml

from tests.support.kit import Project, environment, failed_checks
from tests.support.local_servers import Behaviour, LocalServer, Request, answer, respond_json
from tests.support.mcp_orders import ORDERS, TOOLS, assert_orders, write
from tests.support.patience import HANG_S

Json = dict[str, Any]

BOT = """
import asyncio, json, os, re, sys
from mcp import Client

async def look(question, has_bug):
    async with Client(os.environ["AGENTEVAL_MCP_URL"]) as client:
        name = re.search("ORD-[0-9]+", question)[0]
        order = await client.call_tool("get_order", {"id": name})
        if has_bug and "cancel" in question:
            await client.call_tool("cancel_order", {"id": name})
        return order.content[0].text

async def bug(question: str) -> str:
    return await look(question, True)

async def fix(question: str) -> str:
    return await look(question, False)

if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"text": asyncio.run(look(asked["message"], sys.argv[1] == "bug"))}), flush=True)
"""
COMMAND = {"command": [sys.executable, "bot.py", "bug"]}
REQUEST = {"message": "${message}", "tools_at": "${mcp_url}"}
AGENTS: dict[str, Json] = {
    f"{how}-{kind}": agent
    for kind in ("bug", "fix")
    for how, agent in {
        "target": {"target": f"bot.py:{kind}"},
        "interpreter": {"target": f"bot.py:{kind}", "interpreter": sys.executable},
        "command": {"command": [sys.executable, "bot.py", kind]},
        "endpoint": {"endpoint": f"SERVER/{kind}", "request": REQUEST, "reply": {"text": "reply"}},
    }.items()
}


def shop(request: Request) -> Behaviour:
    """An agent that asks the MCP server that a request names, two calls at once; at ``/silent`` none."""
    from mcp import Client

    async def look(asked: Json) -> str:
        name = "ORD-" + asked["message"].split("ORD-")[1][:2]
        async with Client(asked["tools_at"]) as client:
            order = await client.call_tool("get_order", {"id": name})
            if request.path == "/bug" and "cancel" in asked["message"]:
                both = (client.call_tool("cancel_order", {"nr": number}) for number in (1, 2))
                await asyncio.gather(*both)
        return str(order.content[0].text)

    if request.path == "/silent":
        return respond_json({"reply": "shipped, and not lost"})
    return respond_json({"reply": asyncio.run(look(request.json))})


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """All agents at once, two conversations of the one in this process; each has a world of its own."""
    project = Project(tmp_path_factory.mktemp("orders"))
    project.write("bot.py", BOT)
    with LocalServer(answer(shop)) as server:
        silent = {**AGENTS["endpoint-fix"], "endpoint": "SERVER/silent"}
        agents = {
            name: {"mcp": True, **json.loads(json.dumps(agent).replace("SERVER", server.address))}
            for name, agent in {**AGENTS, "silent": silent}.items()
        }
        scenarios = [{"id": name, "agent": name, **ORDERS} for name in agents]
        scenarios.append({"id": "twice", "agent": "target-fix", "epochs": 2, **ORDERS})
        write(project, agents, scenarios)
        done = project.run()
    assert done.code == 1, done.all
    return project


@pytest.mark.parametrize("how", ["target", "interpreter", "command"])
def test_a_bug_is_red_at_its_turn_and_its_fix_green(orders: Project, how: str) -> None:
    bug = orders.sample(f"{how}-bug")
    assert_orders(bug, has_bug=True)
    assert_orders(orders.sample(f"{how}-fix"), has_bug=False)
    args = [[call["args"] for call in turn["tool_calls"]] for turn in bug["turns"]]
    assert args == [[{"id": "ORD-42"}], [{"id": "ORD-43"}, {"id": "ORD-43"}]]


def test_each_epoch_has_a_world_of_its_own(orders: Project) -> None:
    (scenario,) = (each for each in orders.results()["scenarios"] if each["id"] == "twice")
    assert [sample["verdict"] for sample in scenario["samples"]] == ["passed", "passed"]


def test_calls_at_once_of_an_agent_that_learns_the_address_from_a_request(orders: Project) -> None:
    bug, fix = orders.sample("endpoint-bug"), orders.sample("endpoint-fix")
    assert (failed_checks(bug), failed_checks(fix)) == ({(1, "tool_calls")}, set())
    assert (bug["turns"][1]["steps"], fix["turns"][1]["steps"]) == (4, 2)
    assert fix["verdict"] == "passed"


def test_an_agent_that_never_asks_the_server_is_undecided(orders: Project) -> None:
    """It may not know of the server at all, and call its tools in another way."""
    sample = orders.sample("silent")
    assert (sample["verdict"], failed_checks(sample)) == ("inconclusive", set())


# ── what is refused ──────────────────────────────────────────────────────────────────────────────

WEB = {"endpoint": "http://127.0.0.1:1/", "reply": {"text": "text"}}


@pytest.mark.parametrize(
    ("agent", "place", "facts"),
    [
        ({**WEB, "request": {"message": "${message}"}}, "agenteval.yaml:4:5", ("request", "${mcp_url}")),
        ({**WEB, "request": REQUEST, "mcp": False}, "agenteval.yaml", ("${mcp_url}", "mcp: true")),
        ({**COMMAND, "keep": True}, "agenteval.yaml", ("keep", "mcp")),
    ],
    ids=["no request has the address", "no server is started", "kept between conversations"],
)
def test_what_cannot_work_is_refused(
    project: Project, agent: Json, place: str, facts: tuple[str, ...]
) -> None:
    write(project, {"bot": {"mcp": True, **agent}}, [{"id": "orders", "agent": "bot", **ORDERS}])
    project.run().refuses(place, *facts)


def test_without_the_package_the_extra_is_named(project: Project) -> None:
    write(project, {"bot": {"mcp": True, **COMMAND}}, [{"id": "orders", "agent": "bot", **ORDERS}])
    project.write("none/mcp/__init__.py", "raise ImportError('No module named mcp')\n")
    for command in (("run",), ("tools", "serve", "-s", "orders")):
        done = project.call(*command, env={"PYTHONPATH": str(project.root / "none")})
        assert done.code == 2, done.all
        assert "pip install 'agenteval-runner[mcp]'" in done.err


# ── agenteval tools ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def served(project: Project) -> Project:
    """A project with the scenario ``orders``."""
    write(project, {"bot": {"mcp": True, **COMMAND}}, [{"id": "orders", "agent": "bot", **ORDERS}])
    return project


def test_a_scenario_is_served_and_its_tools_are_read_back(served: Project) -> None:
    done = served.call(
        "tools", "schemas", sys.executable, "-m", "agenteval", "tools", "serve", "-s", "orders"
    )
    assert done.code == 0, done.all
    tools = yaml.safe_load(done.out)["tools"]
    order = TOOLS["get_order"]
    assert tools["get_order"] == {
        "description": order["description"], "parameters": order["parameters"], "returns": {},
    }  # fmt: skip
    assert tools["cancel_order"]["parameters"] == {"type": "object"}


def test_a_served_world_has_its_state(project: Project) -> None:
    tool = {
        "parameters": {"type": "object", "properties": {"id": {"type": "string"}}},
        "sql": "UPDATE orders SET status = 'lost' WHERE id = :id AND status = 'new'",
        "none": {"error": "no new order"},
    }
    state = {"tables": {"orders": [{"id": "A", "status": "new"}]}}
    scenario = {"id": "orders", "tools": {"lose": tool}, "state": state, "turns": ["hi"], "checks": "none"}
    write(project, {"bot": {"mcp": True, **COMMAND}}, [scenario])
    client = """
import asyncio, sys
from mcp import Client, StdioServerParameters
async def main():
    command = ["-m", "agenteval", "tools", "serve", "-s", "orders"]
    async with Client(StdioServerParameters(command=sys.executable, args=command)) as client:
        for _ in range(2):
            result = await client.call_tool("lose", {"id": "A"})
            print(result.is_error, result.content[0].text)
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", client],
        cwd=project.root, env=environment(), capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == ['False {"changed": 1}', 'True {"error": "no new order"}'], done.stderr


def test_the_served_world_remembers_its_calls(served: Project) -> None:
    client = """
import asyncio, sys
from mcp import Client, StdioServerParameters
async def main():
    command = ["-m", "agenteval", "tools", "serve", "-s", "orders"]
    async with Client(StdioServerParameters(command=sys.executable, args=command)) as client:
        for args in ({"id": "A"}, {"nr": 1}, {"id": "B"}):
            result = await client.call_tool("get_order", args)
            print(result.is_error, result.content[0].text)
        print((await client.call_tool("no_tool", {})).is_error)
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", client],
        cwd=served.root, env=environment(), capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    first, wrong, second, unknown = done.stdout.splitlines()
    assert first == 'False {"id": "A", "status": "shipped"}', done.stderr
    assert second == 'False {"id": "B", "status": "lost"}'
    assert wrong.startswith("True")
    assert "'id'" in wrong
    assert unknown == "True"


@pytest.mark.parametrize(
    ("arguments", "facts", "code"),
    [
        (("serve", "-s", "nothing"), ("nothing", "1 scenario"), 5),
        (("serve", "-s", "orders", "--http", "70000"), ("--http 70000",), 2),
        (("schemas", "http://127.0.0.1:1/mcp"), ("http://127.0.0.1:1/mcp",), 2),
        (("schemas", "no-such-program"), ("no-such-program",), 2),
    ],
)
def test_a_mistake_is_one_line(
    arguments: tuple[str, ...], facts: tuple[str, ...], code: int, served: Project
) -> None:
    done = served.call("tools", *arguments)
    done.refuses("agenteval", *facts, code=code)
    assert len(done.err.strip().splitlines()) == 1, json.dumps(done.err)


def test_only_one_scenario_is_served(served: Project) -> None:
    other = {"id": "other", "agent": "bot", "turns": ["Hi"], "checks": "none"}
    served.scenarios(yaml.safe_dump({"scenarios": [{"id": "orders", "agent": "bot", **ORDERS}, other]}))
    served.call("tools", "serve").refuses("agenteval", "2 scenarios")
