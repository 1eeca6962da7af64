"""An agent that starts an MCP server over stdio itself, and calls its tools in a loop of its own: the
scenario answers where the client sends a call. The real server leaves a mark of each tool that ran."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.kit import Project, failed_checks

pytest.importorskip("mcp")

SERVER = """
import os
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("shop", log_level="WARNING")

def mark(name):
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(name + "\\n")

@server.tool()
def get_order(order_id: str) -> dict[str, str]:
    mark("get_order")
    return {"status": "real"}

@server.tool()
def cancel_order(order_id: str) -> str:
    mark("cancel_order")
    raise ToolError("too late")

server.run("stdio")
"""
BOT = """
import asyncio, os, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

server = StdioServerParameters(
    command=sys.executable, args=[str(Path(__file__).with_name("server.py"))], env=dict(os.environ)
)

async def by_async(text: str) -> str:
    orders = text.split()[1:]
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        looks = (session.call_tool("get_order", {"order_id": each}) for each in orders)
        found = await asyncio.gather(*looks)
        if BUG:
            await session.call_tool("cancel_order", arguments={"order_id": orders[0]})
    texts = [f"{each.structured_content} {each.content[0].text} {each.is_error}" for each in found]
    return "; ".join(texts)

def by_function(text: str) -> str:
    return asyncio.run(by_async(text))

def by_thread(text: str) -> str:
    with ThreadPoolExecutor() as pool:
        return pool.submit(by_function, text).result()
"""


def shop(project: Project, form: str, *, bug: bool, **config: Any) -> Project:
    agent = {"target": f"bot.py:{form}"}
    project.write("agenteval.yaml", yaml.safe_dump({"agent": agent, "metrics": [], **config}))
    project.write("bot.py", f"BUG = {bug}\n{BOT}")
    project.write("server.py", SERVER)
    return project


def run(project: Project, *arguments: str) -> Any:
    return project.run(*arguments, env={"RAN": str(project.root / "RAN")})


def ran(project: Project) -> list[str]:
    path = project.root / "RAN"
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def scenario(answer: dict[str, Any] | None, says: str, *contains: str) -> dict[str, Any]:
    calls = [{"name": "get_order", "args": {"order_id": each}} for each in says.split()[1:]]
    expect = {
        "tool_calls": {"calls": calls, "forbidden": [{"name": "cancel_order"}]},
        "output": {"contains": list(contains)},
    }
    tools = {"get_order": answer, "cancel_order": {"returns": {}}} if answer else {}
    turns = [{"user": says, "expect": expect}]
    return {"id": says.replace(" ", "-"), "turns": turns, **({"tools": tools} if tools else {})}


@pytest.mark.parametrize("bug", [True, False])
@pytest.mark.parametrize("form", ["by_async", "by_function", "by_thread"])
def test_the_mock_answers_and_the_bug_is_red(form: str, bug: bool, project: Project) -> None:
    shop(project, form, bug=bug)
    late = {"returns": {"status": "late ${args.order_id}"}}
    texts = ("{'status': 'late A-1'}", "{'status': 'late B-2'}", '{"status": "late B-2"} False')
    project.scenarios(
        yaml.safe_dump(
            {
                "scenarios": [
                    scenario(late, "orders A-1 B-2", *texts),
                    scenario({"error": "no such order"}, "order A-7", "None no such order True"),
                ]
            }
        )
    )
    done = run(project)
    assert done.code == int(bug), done.all
    both, failed = (project.sample(each) for each in ("orders-A-1-B-2", "order-A-7"))
    assert failed_checks(both) == failed_checks(failed) == ({(0, "tool_calls")} if bug else set())
    cancels = [("cancel_order", {"order_id": "A-1"})] if bug else []
    called = [(call["name"], call["args"]) for call in both["turns"][0]["tool_calls"]]
    assert called == [("get_order", {"order_id": each}) for each in ("A-1", "B-2")] + cancels
    assert ran(project) == []


def test_what_is_left_to_the_agent_runs_and_is_recorded_once_with_its_result(project: Project) -> None:
    shop(project, "by_function", bug=True, unmocked_tools="passthrough")
    project.scenarios(yaml.safe_dump({"scenarios": [scenario(None, "order A-7", "real")]}))
    done = run(project)
    assert done.code == 1, done.all
    looked, cancelled = project.sample("order-A-7")["turns"][0]["tool_calls"]
    assert (looked["name"], looked["result"]["status"]) == ("get_order", "real")
    assert cancelled["name"] == "cancel_order"
    assert "too late" in str(cancelled["result"])
    assert ran(project) == ["get_order", "cancel_order"]


def test_a_tool_that_the_scenario_does_not_answer_does_not_run(project: Project) -> None:
    shop(project, "by_function", bug=True)
    only = {**scenario(None, "order A-7", "x"), "tools": {"get_order": {"returns": {}}}}
    project.scenarios(yaml.safe_dump({"scenarios": [only]}))
    done = run(project)
    assert (done.code, ran(project)) == (2, []), done.all
    assert "the agent called the tool 'cancel_order', which is not mocked" in done.all
