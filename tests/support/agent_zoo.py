"""A run with an agent for each of many pieces of code: how each of them ended, side by side."""

from __future__ import annotations

import json
import textwrap
from typing import Any, NamedTuple

from tests.support.kit import Done, Project


class Bad(NamedTuple):
    """An agent's code (``agent`` is its name in it) and what must become of its sample."""

    code: str
    stop: str = "agent_error"
    says: str = ""


HEAD = """
import asyncio, contextlib, socket, ssl, sys, threading, time
from agenteval import AgentReply
kept = []
class Status(Exception):
    def __init__(self, status): self.status_code = status
def suppressed(function):
    with contextlib.suppress(BaseException): function()
"""


def _slug(name: str) -> str:
    return "bot_" + "".join(c if c.isalnum() else "_" for c in name)


class Zoo(NamedTuple):
    done: Done
    samples: dict[str, Any]
    journal: list[dict[str, Any]]


def run_all(project: Project, codes: dict[str, str], *arguments: str) -> Zoo:
    """One run with an agent and a scenario for each code."""
    parts, agents, scenarios = [HEAD], [], []
    for name, code in codes.items():
        own = textwrap.dedent(code).strip()
        parts.append(own.replace("agent(", f"{_slug(name)}(").replace("class agent", f"class {_slug(name)}"))
        limit = 0.3 if name.startswith(("hangs", "answers", "blocks")) else 30
        agents.append(f"  {_slug(name)}: {{target: 'agents.py:{_slug(name)}', timeout_s: {limit}}}")
        scenarios.append(f"  - {{id: '{name}', agent: {_slug(name)}, turns: [hello, again], checks: none,")
        scenarios.append("     tools: {t: {returns: 1}}}")
    project.write("agents.py", "\n\n".join(parts))
    text = "\n".join(["metrics: []", "agent: {target: 'agents.py:suppressed'}", "agents:", *agents])
    project.write("agenteval.yaml", text + "\n")
    project.write("scenarios/suite.yaml", "\n".join(["scenarios:", *scenarios]) + "\n")
    done = project.run(*arguments)
    (journal,) = (project.root / ".agenteval/runs").glob("*/events.jsonl")
    samples = {s["id"]: s["samples"][0] for s in project.results()["scenarios"]}
    return Zoo(done, samples, [json.loads(line) for line in journal.read_text("utf-8").splitlines()])
