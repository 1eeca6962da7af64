"""Agents that find their tools at an MCP server: bug red, fix green, by each way to hear of the address."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.kit import Project, environment, failed_checks
from tests.support.local_servers import LocalServer, Request, answer, respond_json
from tests.support.patience import HANG_S

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
"""
BOT = """
import asyncio, json, os, re, sys
from mcp import Client

async def look(question, url=""):
    async with Client(url or os.environ["AGENTEVAL_MCP_URL"]) as client:
        name = re.search("ORD-[0-9]+", question)[0]
        order = await client.call_tool("get_order", {"id": name})
        if BUG and "cancel" in question:
            await client.call_tool("cancel_order", {"id": name})
        return order.content[0].text

async def answer(question: str) -> str:
    return await look(question)

if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"text": asyncio.run(look(asked["message"]))}), flush=True)
"""


def project_with(project: Project, agent: dict[str, Any], *, bug: bool) -> Project:
    project.write("agenteval.yaml", yaml.safe_dump({"agent": {"mcp": True, **agent}, "metrics": []}))
    project.write("bot.py", f"BUG = {bug}\n{BOT}")
    project.scenarios(SCENARIOS)
    return project


AGENTS = {
    "target": {"target": "bot.py:answer"},
    "interpreter": {"target": "bot.py:answer", "interpreter": sys.executable},
    "command": {"command": [sys.executable, "bot.py"]},
}


@pytest.mark.parametrize("kind", AGENTS)
def test_the_bug_is_red_at_its_turn_and_the_fix_green(kind: str, project: Project) -> None:
    done = project_with(project, AGENTS[kind], bug=True).run()
    assert done.code == 1, done.all
    for sample in project.results()["scenarios"][0]["samples"]:  # each with a world of its own
        assert failed_checks(sample) == {(1, "tool_calls")}
        called = [[(c["name"], c["args"]) for c in turn["tool_calls"]] for turn in sample["turns"]]
        order = {"id": "ORD-43"}
        assert called == [[("get_order", {"id": "ORD-42"})], [("get_order", order), ("cancel_order", order)]]
    done = project_with(project, AGENTS[kind], bug=False).run()
    assert done.code == 0, done.all
    assert "Traceback" not in done.all


@contextmanager
def shop(*, bug: bool) -> Iterator[str]:
    """A server whose agent asks the MCP server that a request names, two calls at once."""
    import asyncio

    from mcp import Client

    async def look(asked: dict[str, Any]) -> str:
        name = asked["message"].split("ORD-")[1][:2]
        async with Client(asked["tools_at"]) as client:
            order = await client.call_tool("get_order", {"id": f"ORD-{name}"})
            if bug and "cancel" in asked["message"]:
                both = (client.call_tool("cancel_order", {"nr": n}) for n in (1, 2))
                await asyncio.gather(*both)
        return str(order.content[0].text)

    def reply(request: Request) -> Any:
        return respond_json({"reply": asyncio.run(look(request.json))})

    with LocalServer(answer(reply)) as server:
        yield f"{server.address}/chat"


@pytest.mark.parametrize("bug", [True, False])
def test_an_agent_behind_an_address_hears_of_it_in_the_request(bug: bool, project: Project) -> None:
    with shop(bug=bug) as endpoint:
        request = {"message": "${message}", "tools_at": "${mcp_url}"}
        agent = {"endpoint": endpoint, "request": request, "reply": {"text": "reply"}}
        done = project_with(project, agent, bug=bug).run()
    assert done.code == int(bug), done.all
    for sample in project.results()["scenarios"][0]["samples"]:
        assert failed_checks(sample) == ({(1, "tool_calls")} if bug else set())
        assert sample["turns"][1]["steps"] == (4 if bug else 2)


def test_an_agent_behind_an_address_that_never_asks_is_undecided(project: Project) -> None:
    """It may not know of the server at all, and call its tools in another way."""
    project_with(project, {}, bug=True)
    agent = {
        "mcp": True,
        "reply": {"text": "reply"},
        "request": {"message": "${message}", "tools_at": "${mcp_url}"},
    }
    reply = answer(lambda _request: respond_json({"reply": "shipped, and not lost"}))
    with LocalServer(reply) as server:
        config = {"agent": {**agent, "endpoint": f"{server.address}/chat"}, "metrics": []}
        project.write("agenteval.yaml", yaml.safe_dump(config))
        done = project.run()
    assert done.code == 3, done.all
    for sample in project.results()["scenarios"][0]["samples"]:
        assert failed_checks(sample) == set()


def test_what_cannot_work_is_refused_at_its_place(project: Project) -> None:
    web = {"endpoint": "http://127.0.0.1:1/", "reply": {"text": "text"}}
    done = project_with(project, {**web, "request": {"message": "${message}"}}, bug=True).run()
    assert done.code == 2
    assert "agenteval.yaml:3:" in done.err
    assert "no request says where the agent's MCP server is — write it into request" in done.err
    asked = {"message": "${message}", "at": "${mcp_url}"}
    done = project_with(project, {**web, "request": asked, "mcp": False}, bug=True).run()
    assert done.code == 2
    assert "${mcp_url} has no value: no MCP server is started for this agent — write mcp: true" in done.err
    done = project_with(project, {**AGENTS["command"], "keep": True}, bug=True).run()
    assert done.code == 2
    assert "keep and mcp do not go together" in done.err


def test_without_the_package_the_extra_is_named(project: Project) -> None:
    project_with(project, AGENTS["command"], bug=True)
    project.write("none/mcp/__init__.py", "raise ImportError('No module named mcp')\n")
    hidden = {"PYTHONPATH": str(project.root / "none")}
    for command in (("run",), ("tools", "serve", "-s", "orders")):
        done = project.call(*command, env=hidden)
        assert done.code == 2, done.all
        assert "needs the package mcp" in done.err
        assert "pip install 'agenteval-runner[mcp]'" in done.err


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────


def test_a_scenario_is_served_and_its_tools_are_read_back(project: Project) -> None:
    project_with(project, AGENTS["command"], bug=True)
    served = [sys.executable, "-m", "agenteval", "tools", "serve", "-s", "orders"]
    done = project.call("tools", "schemas", *served)
    assert done.code == 0, done.all
    tools = yaml.safe_load(done.out)["tools"]
    assert tools["get_order"] == {
        "description": "An order.",
        "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        "returns": {},
    }
    assert tools["cancel_order"]["parameters"] == {"type": "object"}


def test_the_served_world_remembers_its_calls(project: Project) -> None:
    project_with(project, AGENTS["command"], bug=True)
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
        cwd=project.root, env=environment(), capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    first, wrong, second, unknown = done.stdout.splitlines()
    assert (first, second) == (
        'False {"id": "A", "status": "shipped"}',
        'False {"id": "B", "status": "lost"}',
    ), done.stderr
    assert wrong.startswith("True")
    assert "'id' is a required property" in wrong
    assert unknown == "True"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("serve", "-s", "nothing"), "selects none of 1 scenario"),
        (("serve", "-s", "orders", "--http", "70000"), "--http 70000: not a port"),
        (("schemas", "http://127.0.0.1:1/mcp"), "does not list its tools"),
        (("schemas", "no-such-program"), "does not list its tools"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], said: str, project: Project) -> None:
    done = project_with(project, AGENTS["command"], bug=True).call("tools", *arguments)
    assert done.code in (2, 5)
    assert said in done.err
    assert "Traceback" not in done.all
    assert len(done.err.strip().splitlines()) == 1, json.dumps(done.err)


def test_two_scenarios_are_not_served(project: Project) -> None:
    project_with(project, AGENTS["command"], bug=True)
    two = SCENARIOS + "- {id: other, turns: [Hi], checks: none}\n"
    Path(project.root / "scenarios").mkdir(exist_ok=True)
    project.scenarios(two)
    done = project.call("tools", "serve")
    assert done.code == 2
    assert "2 scenarios are selected, but only one can be served" in done.err
