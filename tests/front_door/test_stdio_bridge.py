"""Agents that start their MCP servers themselves, without their environment: bug red, fix green."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import yaml

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
    project: Project, *, bug: bool, server: list[str] = BRIDGE, bot: str = BOT, **config: Any
) -> Project:
    agent = {"command": [sys.executable, "bot.py"], "mcp": True}
    project.write("agenteval.yaml", yaml.safe_dump({"agent": agent, "metrics": [], **config}))
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
