"""A run on the scripted model that can be cut off anywhere, and its results without times and ids."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.support.kit import Project

AGENT = """
import pathlib

import words

def agent(messages, ctx):
    with pathlib.Path("asked").open("a") as file:
        file.write(f"{ctx.scenario_id} {ctx.epoch} {ctx.turn}\\n")
    found = ctx.call_tool_sync("lookup", {"epoch": ctx.epoch}) if ctx.scenario_id == "with-a-tool" else ""
    return f"{words.greeting} {ctx.scenario_id} {found} {messages[-1]['content']}"
"""
CONFIG = """
agent: {name: bot, target: 'agent.py:agent', policy: policy.md, calls: all}
models: {default: scripted/model.yaml}
metrics: [helpfulness, politeness, agent_behavior_failure]
custom_metrics: [politeness.md]
agent_concurrency: 2
reporters: [terminal, json]
"""
RUBRIC = """\
---
metric: politeness
scope: turn
scale: [1, 5]
version: 1
---
Is it polite?
"""
MODEL = """
replies:
- {when: {role: user, turn: 0}, reply: {message: I want a lamp., done: false, reason: r}}
- {when: {role: user, turn: 1}, reply: {message: The tall one please., done: false, reason: r}}
- {when: {role: user}, reply: {message: Thanks so far., done: true, reason: r}}
- {when: {role: judge, metric: agent_behavior_failure, scenario: simulated},
   reply: {evidence: hello simulated, reason: r, label: repetition}}
- {when: {role: judge, metric: agent_behavior_failure}, reply: {evidence: "", reason: r, label: no failure}}
- {when: {role: judge}, reply: {evidence: "", reason: r, score: 4}}
- {when: {role: dedup}, reply: {issues: []}}
"""
SCENARIOS = """
defaults: {expect: {output: {contains: [hello]}}}
scenarios:
- {id: simulated, goal: Get a lamp., max_turns: 3, epochs: 2}
- {id: scripted, turns: [one, two], epochs: 2}
- {id: with-a-tool, tools: {lookup: {python: '../mocks.py:lookup'}}, turns: [one], epochs: 2}
- {id: fails, turns: [one, two], expect: {output: {contains: [never said]}}}
"""
SAMPLES = 7


def set_up(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.write("words.py", "greeting = 'hello'\n")
    project.write("mocks.py", "def lookup(args):\n    return {'found': args['epoch']}\n")
    project.write("policy.md", "Be kind.\n")
    project.write("politeness.md", RUBRIC)
    project.write("agenteval.yaml", CONFIG)
    project.write("model.yaml", MODEL)
    project.scenarios(SCENARIOS)


def copy_to(project: Project, run: Project) -> bytes:
    """The project ``run`` and its journal as if it had been played in the folder of ``project``, which has no
    results yet; the journal."""
    shutil.copytree(run.root, project.root, dirs_exist_ok=True)
    (folder(project) / "results.json").unlink(missing_ok=True)
    data = journal(project).read_bytes().replace(str(run.root).encode(), str(project.root).encode())
    journal(project).write_bytes(data)
    return data


def folder(project: Project) -> Path:
    (found,) = (project.root / ".agenteval/runs").iterdir()
    return found


def journal(project: Project) -> Path:
    return folder(project) / "events.jsonl"


def events(project: Project) -> list[dict[str, Any]]:
    """Those that were written whole: a process that was killed may have torn the last line."""
    *whole, last = journal(project).read_bytes().split(b"\n")
    return [
        json.loads(line) for line in [*whole, *([last] if last.endswith(b"}") and _is_json(last) else [])]
    ]


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def cut_after(project: Project, kind: str, times: int = 1) -> None:
    """Let the journal end behind the event of that kind, as if the process had been killed there."""
    lines = journal(project).read_bytes().splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if json.loads(line)["type"] == kind][times - 1]
    journal(project).write_bytes(b"".join(lines[: at + 1]))


def finished(project: Project) -> list[str]:
    """The samples that are over, as the agent notes them."""
    ends = (event for event in events(project) if event["type"] == "sample_finished")
    return [f"{end['key']['scenario']} {end['key']['epoch']}" for end in ends]


def asked(project: Project) -> list[str]:
    """Every sample, once for each time that it began."""
    path = project.root / "asked"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [line.removesuffix(" 0") for line in lines if line.endswith(" 0")]


_TIMES = frozenset(("started_at", "finished_at", "elapsed_s", "latency_ms", "command"))


def results_of(project: Project) -> str:
    """The results as text, without what differs between two runs of the same."""
    results = json.loads((folder(project) / "results.json").read_text("utf-8"))
    results["run"].pop("id")
    return json.dumps(_timeless(results), indent=1)


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if key not in _TIMES}
    return [_timeless(item) for item in value] if isinstance(value, list) else value
