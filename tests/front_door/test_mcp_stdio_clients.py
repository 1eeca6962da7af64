"""An agent that starts an MCP server over stdio itself, and calls its tools in a loop of its own: the
scenario answers where the client sends a call. The real server leaves a mark of each tool that ran."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.kit import Done, Project, failed_checks

pytest.importorskip("mcp")

Json = dict[str, Any]

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


FORMS = ("by_async", "by_function", "by_thread")


def play(project: Project, agents: dict[str, str], scenarios: list[Json], **config: Any) -> Done:
    """Agents by name and the function that each is: of ``bug.py`` or of ``fix.py``."""
    for name, has_bug in (("bug", True), ("fix", False)):
        project.write(f"{name}.py", f"BUG = {has_bug}\n{BOT}")
    project.write("server.py", SERVER)
    targets = {name: {"target": target} for name, target in agents.items()}
    project.write("agenteval.yaml", yaml.safe_dump({"agents": targets, "metrics": [], **config}))
    project.scenarios(yaml.safe_dump({"scenarios": scenarios}))
    return project.run(env={"RAN": str(project.root / "RAN")})


def ran(project: Project) -> list[str]:
    path = project.root / "RAN"
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def scenario(name: str, agent: str, text: str, *contains: str, answer: Json | None = None) -> Json:
    """Looks at each order of the text, and must not cancel one."""
    calls = [{"name": "get_order", "args": {"order_id": each}} for each in text.split()[1:]]
    expect = {
        "tool_calls": {"calls": calls, "forbidden": [{"name": "cancel_order"}]},
        "output": {"contains": list(contains)},
    }
    tools = {"get_order": answer, "cancel_order": {"returns": {}}} if answer else {}
    return {"id": name, "agent": agent, "turns": [{"user": text, "expect": expect}], "tools": tools}


@pytest.fixture(scope="module")
def mocked(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Each form of the agent with the bug and without it; where it has none, with an error of a tool too."""
    project = Project(tmp_path_factory.mktemp("mocked"))
    agents = {f"{kind}-{form}": f"{kind}.py:{form}" for kind in ("bug", "fix") for form in FORMS}
    late = {"returns": {"status": "late ${args.order_id}"}}
    texts = ("{'status': 'late A-1'}", "{'status': 'late B-2'}", '{"status": "late B-2"} False')
    scenarios = [scenario(name, name, "orders A-1 B-2", *texts, answer=late) for name in agents]
    unknown = {"error": "no such order"}
    scenarios += [
        scenario(f"error-{form}", f"fix-{form}", "order A-7", "None no such order True", answer=unknown)
        for form in FORMS
    ]
    done = play(project, agents, scenarios)
    assert done.code == 1, done.all
    assert ran(project) == []
    return project


@pytest.mark.parametrize("form", FORMS)
def test_the_mock_answers_and_a_bug_is_red(mocked: Project, form: str) -> None:
    bug, fix, error = (mocked.sample(f"{kind}-{form}") for kind in ("bug", "fix", "error"))
    assert failed_checks(bug) == {(0, "tool_calls")}
    assert (fix["verdict"], error["verdict"]) == ("passed", "passed")
    looks = [("get_order", {"order_id": each}) for each in ("A-1", "B-2")]
    for sample, more in ((bug, [("cancel_order", {"order_id": "A-1"})]), (fix, [])):
        assert [(call["name"], call["args"]) for call in sample["turns"][0]["tool_calls"]] == looks + more


def test_what_is_left_to_the_agent_runs_and_is_recorded_once_with_its_result(project: Project) -> None:
    left = scenario("a", "bot", "order A-7", "real")
    done = play(project, {"bot": "bug.py:by_function"}, [left], unmocked_tools="passthrough")
    assert done.code == 1, done.all
    looked, cancelled = project.sample()["turns"][0]["tool_calls"]
    assert (looked["name"], looked["result"]["status"]) == ("get_order", "real")
    assert cancelled["name"] == "cancel_order"
    assert "too late" in str(cancelled["result"])
    assert ran(project) == ["get_order", "cancel_order"]


def test_a_tool_that_the_scenario_does_not_answer_does_not_run(project: Project) -> None:
    only = {**scenario("a", "bot", "order A-7", "x"), "tools": {"get_order": {"returns": {}}}}
    done = play(project, {"bot": "bug.py:by_function"}, [only])
    assert (done.code, ran(project)) == (2, []), done.all
    assert "'cancel_order'" in done.err
