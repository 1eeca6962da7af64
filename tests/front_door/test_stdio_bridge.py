"""Agents that start their MCP servers themselves, without their environment: bug red, fix green."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import yaml

from agenteval.adapters.agents.mcp_server import MCP_URL_VARIABLE, McpHost
from tests.support.kit import Project, failed_checks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there the bridge needs the variable")

SCENARIOS = """
scenarios:
- id: orders
  epochs: 2
  tools:
    get_order:
      description: An order.
      parameters: {type: object, properties: {id: {type: string}}, required: [id]}
      sequence: [{returns: {id: "${args.id}", status: shipped}}, {returns: {id: "${args.id}", status: lost}}]
    cancel_order: {returns: {ok: true}}
  turns:
  - user: Where is ORD-42?
    expect:
      tool_calls: {match: strict, calls: [{name: get_order, args: {id: ORD-42}}]}
      output: {contains: [shipped]}
  - user: Should I cancel ORD-43?
    expect: {tool_calls: {forbidden: [{name: cancel_order}]}, output: {contains: [lost]}}
- id: other
  epochs: 2
  tools: {get_order: {returns: {id: "${args.id}", status: stolen}}}
  turns:
  - user: Where is ORD-44?
    expect: {output: {contains: [ORD-44, stolen]}}
"""
BOT = """
import asyncio, json, os, re, sys
from mcp import Client, StdioServerParameters

async def look(client, question):
    name = re.search("ORD-[0-9]+", question)[0]
    listed = [tool.name for tool in (await client.list_tools()).tools]
    assert "get_order" in listed, listed
    order = await client.call_tool("get_order", {"id": name})
    if BUG and "cancel" in question:
        await client.call_tool("cancel_order", {"id": name})
    return order.content[0].text

async def main():
    for command in json.load(open("mcp.json")):
        # The SDK hands on HOME, PATH and the like, and no other variable.
        server = StdioServerParameters(command=command[0], args=command[1:])
        async with Client(server) as client:
            while line := await asyncio.to_thread(sys.stdin.readline):
                asked = json.loads(line)["message"]
                print(json.dumps({"text": await look(client, asked)}), flush=True)

asyncio.run(main())
"""
BRIDGE = [sys.executable, "-m", "agenteval", "tools", "serve", "--stdio-bridge"]


def project_with(
    project: Project, *, bug: bool, server: list[str] = BRIDGE, bot: str = BOT, **more: Any
) -> Project:
    agent = {"command": [sys.executable, "bot.py"], "mcp": True, **more.pop("agent", {})}
    project.write("agenteval.yaml", yaml.safe_dump({"agent": agent, "metrics": [], **more}))
    project.write("bot.py", f"BUG = {bug}\n{bot}")
    project.write("mcp.json", str([server]).replace("'", '"'))
    project.scenarios(SCENARIOS)
    return project


def names_of(turn: dict[str, Any]) -> list[str]:
    return [call["name"] for call in turn["tool_calls"]]


def samples_of(project: Project, scenario: str) -> list[dict[str, Any]]:
    (found,) = (each for each in project.results()["scenarios"] if each["id"] == scenario)
    samples: list[dict[str, Any]] = found["samples"]
    return samples


@pytest.mark.parametrize("bug", [True, False])
def test_the_bug_is_red_at_its_turn_and_the_fix_green(bug: bool, project: Project) -> None:
    done = project_with(project, bug=bug).run()
    assert done.code == int(bug), done.all
    for sample in samples_of(project, "orders"):  # all at once, each with a world of its own
        assert failed_checks(sample) == ({(1, "tool_calls")} if bug else set())
        last = ["get_order", "cancel_order"] if bug else ["get_order"]
        assert [names_of(turn) for turn in sample["turns"]] == [["get_order"], last]
    for sample in samples_of(project, "other"):
        assert failed_checks(sample) == set()
    assert "Traceback" not in done.all


TARGET = """
import re, sys
from mcp import Client, StdioServerParameters

async def answer(question: str) -> str:
    name = re.search("ORD-[0-9]+", question)[0]
    server = StdioServerParameters(command=sys.executable, args=ARGUMENTS)
    async with Client(server) as client:
        order = await client.call_tool("get_order", {"id": name})
        if BUG and "cancel" in question:
            await client.call_tool("cancel_order", {"id": name})
    return order.content[0].text
"""


@pytest.mark.parametrize("bug", [True, False])
def test_a_target_in_this_process_has_a_bridge_too(bug: bool, project: Project) -> None:
    project_with(project, bug=bug, bot=f"ARGUMENTS = {BRIDGE[1:]}\n{TARGET}")
    agent = {"target": "bot.py:answer", "mcp": True}
    project.write("agenteval.yaml", yaml.safe_dump({"agent": agent, "metrics": []}))
    done = project.run("-s", "orders")
    assert done.code == int(bug), done.all
    for sample in samples_of(project, "orders"):
        assert failed_checks(sample) == ({(1, "tool_calls")} if bug else set())


def test_an_agent_without_mcp_does_not_get_the_tools_of_another(project: Project) -> None:
    """Its process is started by the one in which the other agent plays."""
    project_with(project, bug=False, bot=f"ARGUMENTS = {BRIDGE[1:]}\n{TARGET}")
    project.write("no_mcp.py", "import subprocess, sys\n"
        f"done = subprocess.run({BRIDGE}, env={{}}, capture_output=True, text=True)\n"
        "print(done.returncode, done.stderr)\n"
    )  # fmt: skip
    agents = {
        "with": {"target": "bot.py:answer", "mcp": True},
        "without": {"command": {"run": [sys.executable, "no_mcp.py"]}},
    }
    project.write("agenteval.yaml", yaml.safe_dump({"agents": agents, "metrics": []}))
    project.scenarios("""
scenarios:
- id: one
  agent: with
  tools: {get_order: {returns: mocked}}
  turns: [{user: ORD-1, expect: {output: {contains: [mocked]}}}]
- id: two
  agent: without
  tools: {get_order: {returns: mocked}}
  turns: [{user: ORD-1, expect: {output: {contains: ["2 agenteval: ", "set mcp: true for the agent"]}}}]
""")  # fmt: skip
    done = project.run()
    assert done.code == 0, done.all


# ── the real server behind it ────────────────────────────────────────────────────────────────────

REAL = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("shop", instructions="Ask for the weather first.")

def mark(name):
    with open("really_ran.txt", "a") as file:
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

async def main():
    command = json.load(open("mcp.json"))[0]
    async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["get_order"].description == "An order.", tools
        assert tools["get_weather"].input_schema["required"] == ["city"]
        assert "cancel_order" in tools
        assert client.instructions == "Ask for the weather first."
        for line in sys.stdin:
            city = json.loads(line)["message"].split()[-1]
            weather = await client.call_tool("get_weather", {"city": city})
            order = await client.call_tool("get_order", {"id": "ORD-1"})
            if BUG and city == "Bonn":
                await client.call_tool("get_weather", {"city": "Cologne"})
            print(json.dumps({"text": f"{weather.content[0].text} {order.content[0].text}"}), flush=True)

asyncio.run(main())
"""
WEATHER = """
id: weather
tools:
  get_order: {description: An order., returns: {id: "${args.id}", status: mocked}}
  cancel_order: {returns: {ok: true}}
turns:
- user: And in Atlantis
  expect:
    output: {contains: [mocked, Error executing tool get_weather]}
    tool_calls: {calls: [{name: get_weather, result: error}]}
- user: And in Bonn
  expect:
    output: {contains: [clear over Bonn, mocked], not_contains: [real]}
    tool_calls: {match: strict, calls: [{name: get_weather, args: {city: Bonn}}, {name: get_order}]}
"""
WITH_REAL = [*BRIDGE, "--else", "--", sys.executable, "real.py"]


def with_real(project: Project, *, bug: bool, **more: Any) -> Project:
    project_with(project, bug=bug, server=WITH_REAL, bot=WEATHER_BOT, **more)
    project.write("real.py", REAL)
    project.scenarios(WEATHER)
    return project


@pytest.mark.parametrize("bug", [True, False])
def test_the_real_server_carries_out_what_the_scenario_leaves_to_it(bug: bool, project: Project) -> None:
    done = with_real(project, bug=bug, unmocked_tools="passthrough", agent={"calls": "all"}).run()
    assert done.code == int(bug), done.all
    sample = project.sample()
    assert failed_checks(sample) == ({(1, "tool_calls")} if bug else set())
    more = ["get_weather"] if bug else []
    called = [["get_weather", "get_order"], ["get_weather", "get_order", *more]]
    assert [names_of(turn) for turn in sample["turns"]] == called
    ran = (project.root / "really_ran.txt").read_text().split()
    assert ran == ["get_weather", "get_weather", *more]


def test_without_passthrough_the_real_server_carries_out_nothing(project: Project) -> None:
    done = with_real(project, bug=True).run()
    assert done.code == 2, done.all
    assert "the agent called the tool 'get_weather', which is not mocked" in done.all
    assert not (project.root / "really_ran.txt").exists()


def test_without_a_real_server_nothing_answers_what_is_left_to_it(project: Project) -> None:
    bot = BOT.replace('"get_order", {"id": name}', '"get_weather", {"city": name}')
    project_with(project, bug=False, bot=bot, unmocked_tools="passthrough", agent={"calls": "all"})
    project.scenarios("""
id: weather
tools: {get_order: {returns: {ok: true}}}
turns:
- user: The weather of ORD-1
  expect:
    output: {contains: ["unknown tool 'get_weather'"]}
    tool_calls: {match: strict, calls: [{name: get_weather, result: error}]}
""")
    done = project.run()
    assert done.code == 0, done.all


# ── outside a conversation ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "replaces an MCP server while agenteval run plays an agent with mcp: true"),
        (("-s", "orders"), "takes only --only and --else"),
        (("orders.yaml",), "takes no paths (orders.yaml)"),
        (("--else",), "the command of the real server is missing"),
        (("--only", ","), "--only names no tool"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], said: str, project: Project) -> None:
    done = project.call("tools", "serve", "--stdio-bridge", *arguments)
    assert done.code == 2, done.all
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1, done.err


def test_an_option_of_the_bridge_alone_is_refused(project: Project) -> None:
    done = project.call("tools", "serve", "--only", "get_order")
    assert done.code == 2
    assert "--only and --else are for --stdio-bridge" in done.err


def test_a_run_that_is_over_and_a_real_server_that_does_not_start_are_named(project: Project) -> None:
    def bridged(url: str) -> str:
        command = ("--else", "--", sys.executable, "-c", "raise SystemExit('no database')")
        done = project.call("tools", "serve", "--stdio-bridge", *command, env={MCP_URL_VARIABLE: url})
        assert done.code == 2, done.all
        assert "Traceback" not in done.all
        return done.err

    host = McpHost()
    try:
        host.start()
        err = bridged(host.address().url)
        assert "no database" in err
        assert f"agenteval: the real server ({sys.executable} -c" in err
        assert "does not start: " in err
    finally:
        host.close()
    assert "agenteval: the run at http://127.0.0.1:1/mcp does not answer" in bridged("http://127.0.0.1:1/mcp")
