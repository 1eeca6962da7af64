"""Which tools write: by marks, else by the hints of MCP or of a framework, else by plain names."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
import yaml

from tests.support.kit import Done, Project
from tests.support.scored_logs import calling, caveats, last_line, log, score
from tests.support.toy import install_toy

CALLS = "tool_call_behavior_failure"
NEEDLESS = {"evidence": "Done.", "reason": "r", "label": "unnecessary tool call", "call": 0}
AGENT = """
import toy
from toy import Agent


def run_sql(id):
    "Runs a statement."


HINTS


async def play(run, text):
    await run.call("run_sql", id="A-7")
    return "Done."

agent = Agent(play, run_sql)
"""


def judged(project: Project) -> None:
    replies = [
        {"when": {"role": "judge"}, "reply": NEEDLESS},
        {"when": {"role": "dedup"}, "reply": {"issues": []}},
    ]
    project.write("replies.yaml", json.dumps({"replies": replies}))


def severities(project: Project) -> list[str]:
    return [finding["severity"] for finding in project.sample()["findings"]]


def run(project: Project, hints: str, mark: dict[str, bool], place: str = "") -> Done:
    install_toy(project)
    project.agent(AGENT.replace("HINTS", hints))
    config = f"models: {{default: scripted/replies.yaml}}\nmetrics: [{CALLS}]\ndetectors: []\n"
    project.config(f"agent: {{name: bot, target: agent.py:agent{place}}}\n{config}", target="")
    judged(project)
    tools = {"run_sql": {"returns": {"rows": 1}, **mark}}
    project.scenarios(json.dumps({"id": "s", "turns": ["Please."], "tools": tools, "checks": "none"}))
    return project.run()


def annotated(**hints: bool) -> str:
    return f"run_sql.metadata = {{'annotations': {hints!r}}}"


WRITES, READS = {"writes": True}, {"reads": True}


@pytest.mark.parametrize(
    ("hints", "mark", "severity"),
    [
        (annotated(readOnlyHint=False), {}, "critical"),
        (annotated(destructiveHint=True), {}, "critical"),
        ("run_sql.metadata = {'readOnlyHint': False}", {}, "critical"),
        ("class M: read_only_hint, destructive_hint = False, None\nrun_sql.annotations = M", {}, "critical"),
        (annotated(readOnlyHint=True, destructiveHint=True), {}, "medium"),  # MCP: read-only goes first
        (annotated(readOnlyHint=True), WRITES, "critical"),  # a mark goes before a hint
        (annotated(readOnlyHint=False), READS, "medium"),
        (annotated(destructiveHint=False), {}, "medium"),  # says nothing of writing
        ("run_sql.metadata = {'annotations': {'readOnlyHint': 'no'}}", {}, "medium"),
        ("pass", {}, "medium"),
    ],
)
def test_a_hint_of_the_framework_decides_whether_a_tool_writes(
    project: Project, hints: str, mark: dict[str, bool], severity: str
) -> None:
    done = run(project, hints, mark)
    assert severities(project) == [severity], done.all
    assert done.code == int(severity == "critical"), done.all
    is_known = bool(mark) or severity == "critical" or "readOnlyHint': True" in hints
    assert ("tools_unmarked" in caveats(project)) is not is_known
    advice = ("run_sql", "`writes: true`", "`reads: true`")
    assert all(fact in last_line(done) for fact in advice) is not is_known
    again = project.call("report", "latest", "--report", "json=again.json")
    assert again.code == done.code
    reported = json.loads((project.root / "again.json").read_text("utf-8"))
    assert reported["scenarios"] == project.results()["scenarios"]


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_hints_come_from_an_interpreter_of_the_agents_own_too(project: Project) -> None:
    place = f", interpreter: '{sys.executable}'"
    assert run(project, annotated(readOnlyHint=False), {}, place).code == 1
    assert run(project, annotated(readOnlyHint=True), {}, place).code == 0


@pytest.mark.parametrize(
    ("annotations", "severity"),
    [({"destructiveHint": True}, "critical"), ({"readOnlyHint": True}, "medium"), ({}, "medium")],
)
def test_hints_that_a_log_holds_count(project: Project, annotations: dict[str, bool], severity: str) -> None:
    judged(project)
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Please."},
        calling("run_sql"),
        {"role": "tool", "tool_call_id": "1", "content": '{"rows": 1}'},
        {"role": "assistant", "content": "Done."},
    ]
    tools = [{"name": "run_sql", "inputSchema": {"type": "object"}, "annotations": annotations}]
    log(project, {"id": "a", "messages": messages, "tools": tools})
    asked = ("log.jsonl", "-m", "scripted/replies.yaml", "--metric", CALLS)
    done = score(project, *asked)
    assert severity in severities(project), done.all
    suite = {"id": "a", "turns": ["Please."], "tools": {"run_sql": READS}, "checks": "none"}
    project.write("suite.yaml", json.dumps(suite))
    score(project, *asked, "--scenarios", "suite.yaml")
    assert severities(project) == ["medium"], "the author's mark goes before it"


SERVER = """
from mcp.server import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("shop")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def run_sql(id: str) -> str:
    return "x"


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def http_request(id: str) -> str:
    return "x"


@server.tool()
def bash(id: str) -> str:
    return "x"


server.run()
"""


def test_hints_of_a_server_become_marks_of_the_scenarios_tools(project: Project) -> None:
    pytest.importorskip("mcp")
    project.write("server.py", SERVER)
    done = project.call("tools", "schemas", sys.executable, "server.py")
    assert done.code == 0, done.all
    tools = yaml.safe_load(done.out)["tools"]
    marks = {name: {key for key in tool if key in ("reads", "writes")} for name, tool in tools.items()}
    assert marks == {"run_sql": {"reads"}, "http_request": {"writes"}, "bash": set()}
