"""Agents that start their MCP servers themselves, without their environment, by ``--stdio-bridge``."""

from __future__ import annotations

import sys

import pytest

from agenteval.adapters.agents.mcp_server import MCP_URL_VARIABLE, McpHost
from tests.support.kit import Project, failed_checks
from tests.support.mcp_orders import ORDERS, assert_orders, names_of, write

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there the bridge needs the variable")

BRIDGE = [sys.executable, "-m", "agenteval", "tools", "serve", "--stdio-bridge"]

# Arguments: "bug" or "fix", the tool to ask, and the command of the server. The SDK hands on HOME, PATH and
# the like to that command, and no other variable.
BOT = """
import asyncio, json, re, sys
from mcp import Client, StdioServerParameters

HAS_BUG, TOOL, COMMAND = sys.argv[1] == "bug", sys.argv[2], sys.argv[3:]

async def main():
    async with Client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert "get_order" in listed, listed
        while line := await asyncio.to_thread(sys.stdin.readline):
            asked = json.loads(line)["message"]
            name = re.search("ORD-[0-9]+", asked)[0]
            order = await client.call_tool(TOOL, {"id": name})
            if HAS_BUG and "cancel" in asked:
                await client.call_tool("cancel_order", {"id": name})
            print(json.dumps({"text": order.content[0].text}), flush=True)

asyncio.run(main())
"""
TARGET = f"""
import re
from mcp import Client, StdioServerParameters

async def answer(question, has_bug):
    name = re.search("ORD-[0-9]+", question)[0]
    async with Client(StdioServerParameters(command={BRIDGE[0]!r}, args={BRIDGE[1:]})) as client:
        order = await client.call_tool("get_order", {{"id": name}})
        if has_bug and "cancel" in question:
            await client.call_tool("cancel_order", {{"id": name}})
    return order.content[0].text

async def bug(question: str) -> str:
    return await answer(question, True)

async def fix(question: str) -> str:
    return await answer(question, False)
"""
WITHOUT_MCP = f"""
import subprocess
done = subprocess.run({BRIDGE}, env={{}}, capture_output=True, text=True)
print(done.returncode, done.stderr)
"""
AGENTS = {
    **{
        f"command-{kind}": {"command": [sys.executable, "bot.py", kind, "get_order", *BRIDGE], "mcp": True}
        for kind in ("bug", "fix")
    },
    **{f"target-{kind}": {"target": f"target.py:{kind}", "mcp": True} for kind in ("bug", "fix")},
}
"""A program that keeps its server, and functions in agenteval's process that start one for each turn."""


@pytest.fixture(scope="module")
def bridged(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """All agents at once, each with a world of its own, and one without ``mcp: true`` beside them."""
    project = Project(tmp_path_factory.mktemp("bridged"))
    for name, code in (("bot", BOT), ("target", TARGET), ("without_mcp", WITHOUT_MCP)):
        project.write(f"{name}.py", code)
    stolen = {
        "id": "stolen",
        "agent": "command-fix",
        "tools": {"get_order": {"returns": {"id": "${args.id}", "status": "stolen"}}},
        "turns": [{"user": "Where is ORD-44?", "expect": {"output": {"contains": ["ORD-44", "stolen"]}}}],
    }
    without = {
        "id": "without-mcp",
        "agent": "without-mcp",
        "tools": {"get_order": {"returns": "mocked"}},
        "turns": [{"user": "ORD-1", "expect": {"output": {"contains": ["2 agenteval: ", "mcp: true"]}}}],
    }
    agents = {**AGENTS, "without-mcp": {"command": {"run": [sys.executable, "without_mcp.py"]}}}
    scenarios = [*({"id": name, "agent": name, **ORDERS} for name in AGENTS), stolen, without]
    write(project, agents, scenarios)
    done = project.run()
    assert done.code == 1, done.all
    return project


@pytest.mark.parametrize("name", AGENTS)
def test_a_bug_is_red_at_its_turn_and_its_fix_green(bridged: Project, name: str) -> None:
    assert_orders(bridged.sample(name), has_bug=name.endswith("bug"))


def test_each_conversation_has_the_tools_of_its_scenario(bridged: Project) -> None:
    assert bridged.sample("stolen")["verdict"] == "passed"


def test_an_agent_without_mcp_does_not_get_the_tools_of_another(bridged: Project) -> None:
    """Its process is started by the one in which the other agents play."""
    assert bridged.sample("without-mcp")["verdict"] == "passed"


# ── the real server behind it ────────────────────────────────────────────────────────────────────

REAL = """
import sys
from mcp.server.mcpserver import MCPServer

server = MCPServer("shop", instructions="Ask for the weather first.")

def mark(name):
    with open(sys.argv[1], "a") as file:
        file.write(name + "\\n")

@server.tool()
def get_order(id: str) -> dict[str, str]:
    "An order, really."
    mark("get_order")
    return {"id": id, "status": "real"}

@server.tool()
def get_weather(city: str) -> dict[str, str]:
    "The weather."
    mark("get_weather")
    if city == "Atlantis":
        raise ValueError("no such city")
    return {"sky": f"clear over {city}"}

server.run()
"""
WEATHER_BOT = """
import asyncio, json, sys
from mcp import Client, StdioServerParameters

HAS_BUG, COMMAND = sys.argv[1] == "bug", sys.argv[2:]

async def main():
    async with Client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["get_order"].description == "An order.", tools
        assert tools["get_weather"].input_schema["required"] == ["city"]
        assert "cancel_order" in tools
        assert client.instructions == "Ask for the weather first."
        for line in sys.stdin:
            city = json.loads(line)["message"].split()[-1]
            weather = await client.call_tool("get_weather", {"city": city})
            order = await client.call_tool("get_order", {"id": "ORD-1"})
            if HAS_BUG and city == "Bonn":
                await client.call_tool("get_weather", {"city": "Cologne"})
            print(json.dumps({"text": f"{weather.content[0].text} {order.content[0].text}"}), flush=True)

asyncio.run(main())
"""
FAILED_LOOK = {"tool_calls": {"calls": [{"name": "get_weather", "result": "error"}]}}
ONE_LOOK = {
    "tool_calls": {
        "match": "strict",
        "calls": [{"name": "get_weather", "args": {"city": "Bonn"}}, {"name": "get_order"}],
    },
    "output": {"contains": ["clear over Bonn", "mocked"], "not_contains": ["real"]},
}
WEATHER = {
    "tools": {
        "get_order": {"description": "An order.", "returns": {"id": "${args.id}", "status": "mocked"}},
        "cancel_order": {"returns": {"ok": True}},
    },
    "turns": [
        {
            "user": "And in Atlantis",
            "expect": {**FAILED_LOOK, "output": {"contains": ["mocked", "get_weather"]}},
        },
        {"user": "And in Bonn", "expect": ONE_LOOK},
    ],
}
NOBODY_ANSWERS = {
    "tools": {"get_order": {"returns": {"ok": True}}},
    "turns": [
        {
            "user": "The weather of ORD-1",
            "expect": {
                "output": {"contains": ["'get_weather'"]},
                "tool_calls": {"match": "strict", "calls": [{"name": "get_weather", "result": "error"}]},
            },
        }
    ],
}


def with_real(kind: str) -> list[str]:
    """The command of a weather bot, whose real server leaves marks in ``ran-<kind>``."""
    server = [*BRIDGE, "--else", "--", sys.executable, "real.py", f"ran-{kind}"]
    return [sys.executable, "weather_bot.py", kind, *server]


@pytest.fixture
def weather(project: Project) -> Project:
    for name, code in (("bot", BOT), ("weather_bot", WEATHER_BOT), ("real", REAL)):
        project.write(f"{name}.py", code)
    return project


def test_the_real_server_alone_carries_out_what_the_scenario_leaves_to_it(weather: Project) -> None:
    commands = {kind: with_real(kind) for kind in ("bug", "fix")}
    commands["no-server"] = [sys.executable, "bot.py", "fix", "get_weather", *BRIDGE]
    agents = {name: {"command": command, "mcp": True, "calls": "all"} for name, command in commands.items()}
    scenarios = [{"id": kind, "agent": kind, **WEATHER} for kind in ("bug", "fix")]
    scenarios.append({"id": "no-server", "agent": "no-server", **NOBODY_ANSWERS})
    write(weather, agents, scenarios, unmocked_tools="passthrough")
    done = weather.run()
    assert done.code == 1, done.all
    for kind, more in (("bug", ["get_weather"]), ("fix", [])):
        sample = weather.sample(kind)
        assert failed_checks(sample) == ({(1, "tool_calls")} if more else set())
        assert names_of(sample) == [["get_weather", "get_order"], ["get_weather", "get_order", *more]]
        assert (weather.root / f"ran-{kind}").read_text().split() == ["get_weather", "get_weather", *more]
    assert weather.sample("no-server")["verdict"] == "passed"


def test_without_passthrough_the_real_server_carries_out_nothing(weather: Project) -> None:
    write(weather, {"a": {"command": with_real("bug"), "mcp": True}}, [{"id": "a", "agent": "a", **WEATHER}])
    done = weather.run()
    assert done.code == 2, done.all
    assert "'get_weather'" in done.err
    assert not (weather.root / "ran-bug").exists()


# ── outside a conversation ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("--stdio-bridge",), ("--stdio-bridge", "agenteval run", "mcp: true")),
        (("--stdio-bridge", "-s", "orders"), ("--stdio-bridge", "--only", "--else")),
        (("--stdio-bridge", "orders.yaml"), ("--stdio-bridge", "(orders.yaml)", "--else")),
        (("--stdio-bridge", "--else"), ("--else",)),
        (("--stdio-bridge", "--only", ","), ("--only",)),
        (("--only", "get_order"), ("--only", "--else", "--stdio-bridge")),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], facts: tuple[str, ...], project: Project) -> None:
    done = project.call("tools", "serve", *arguments)
    done.refuses("agenteval", *facts)
    assert len(done.err.strip().splitlines()) == 1, done.err


def test_a_run_that_is_over_and_a_real_server_that_does_not_start_are_named(project: Project) -> None:
    def bridge(url: str) -> str:
        command = ("--else", "--", sys.executable, "-c", "raise SystemExit('no database')")
        done = project.call("tools", "serve", "--stdio-bridge", *command, env={MCP_URL_VARIABLE: url})
        assert done.code == 2, done.all
        return done.err

    host = McpHost()
    try:
        host.start()
        err = bridge(host.address().url)
        assert "no database" in err  # the server's own words
        assert f"({sys.executable} -c" in err
    finally:
        host.close()
    assert "http://127.0.0.1:1/mcp" in bridge("http://127.0.0.1:1/mcp")
