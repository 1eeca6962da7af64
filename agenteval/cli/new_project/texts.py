"""The files that ``agenteval init`` writes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from agenteval.cli.new_project.programs import FORMS, command_of
from agenteval.files.plain_files import read_file

STARTER_FILE = "my_agent.py"
STARTER = '''\
"""An agent to begin with: it answers questions about orders by a tool. Put yours in its place."""

import re


async def agent(messages, ctx):
    # Yours would ask its model here; `messages` is the conversation in OpenAI's format.
    found = re.search(r"ORD-\\d+", messages[-1]["content"])
    if not found:
        return "Which order do you mean? Its number begins with ORD-."
    order = await ctx.call_tool("get_order", {"id": found[0]})
    return f"Your order {order['id']} is {order['status']}."
'''
STARTER_SCENARIO = """\
scenarios:
  - id: first-words
    tools:
      get_order:
        parameters: {type: object, properties: {id: {type: string}}, required: [id]}
        returns: {id: "${args.id}", status: shipped}
    turns:
      - user: Where is my order?
        expect:
          tool_calls: none
          output: {contains: [ORD-]}
      - user: It is ORD-42.
        expect:
          tool_calls: {calls: [{name: get_order, args: {id: ORD-42}}]}
          output: {contains: [shipped]}
"""
SCENARIO = """\
scenarios:
  - id: first-words
{tools}    turns:
      - user: Hello! What can you help me with?
        # What has to come of a message is written below it, for example:
        # expect:
        #   tool_calls: {{calls: [{{name: get_order, args: {{id: ORD-42}}}}]}}
        #   output: {{contains: [order]}}
    expect:
      limits: {{latency_ms: 60000}}
"""
METRICS = "metrics: []   # no judges yet: only checks in code, so no model is needed\n"

WORKFLOW = """\
name: agenteval
on:
  push: {{branches: [main]}}
  pull_request:
permissions: {{contents: read}}
jobs:
  agenteval:
    runs-on: ubuntu-latest
{folder}{env}    steps:
      - uses: actions/checkout@v6
      - uses: actions/setup-python@v6
        with: {{python-version: "3.12"}}
{node}{steps}"""
WORKFLOW_ENV = """\
    env: {AGENT_API_KEY: "${{ secrets.AGENT_API_KEY }}"}
"""
WORKFLOW_ENV_HINT = """\
    # env: {OPENAI_API_KEY: "${{ secrets.OPENAI_API_KEY }}"}   # what your agent needs
"""
NODE = """\
      - uses: actions/setup-node@v6
        with: {node-version: "22"}
"""
SERVICE_HINT = "# here start the service that is tested, for example: python -m my_service &"
GITLAB = """\
agenteval:
  image: python:3.12
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
  script:
{steps}  artifacts:
    when: always
    reports: {{junit: {junit}}}
"""
_JUNIT = ".agenteval/junit.xml"


def config_text(agent: Mapping[str, Any], note: str, words: Sequence[str]) -> str:
    """The configuration. ``words``: of a program that may be asked in another way, which a comment says."""
    others = [(form, command_of(list(words), form)) for form in FORMS] if words else []
    notes = [f"or, if {FORMS[form]}: {_flow(each)}" for form, each in others if each != agent]
    body = yaml.safe_dump(
        {"agent": dict(agent)}, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
    return body + "".join(f"# {each}\n" for each in [*([note] if note else []), *notes]) + METRICS


def _flow(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=1000, allow_unicode=True).strip()[1:-1]


def scenario_text(tools: Sequence[str] = ()) -> str:
    """The first scenario of an agent of the author's, which has these tools."""
    lines = [f"      {_flow([name])}: {{returns: {{}}}}\n" for name in tools]
    head = "    tools:   # they answer in place of the agent's own: write what they return\n"
    return SCENARIO.format(tools="".join([head, *lines]) if lines else "")


def workflow_text(root: Path, top: Path, agent: Mapping[str, Any]) -> str:
    """A workflow of GitHub. ``top``: the folder of the repository."""
    where = Path(os.path.relpath(root, top)).as_posix()
    folder = "" if where == "." else f"    defaults: {{run: {{working-directory: {_flow([where])}}}}}\n"
    run = f"run --report github --report junit={_JUNIT}"
    steps = [*_installing(root, agent), f"{_prefix(root, agent)}agenteval {run}"]
    return WORKFLOW.format(
        folder=folder,
        env=WORKFLOW_ENV if "headers" in agent else WORKFLOW_ENV_HINT,
        node=NODE if (root / "package.json").exists() else "",
        steps="".join(f"      {s}\n" if s[0] == "#" else f"      - run: {s}\n" for s in steps),
    )


def gitlab_text(root: Path, top: Path, agent: Mapping[str, Any]) -> str:
    """A file for GitLab to include."""
    where = Path(os.path.relpath(root, top)).as_posix()
    change = [] if where == "." else [f"cd {shlex.quote(where)}"]
    run = f"{_prefix(root, agent)}agenteval run --report junit={_JUNIT}"
    steps = [*change, *_installing(root, agent), run]
    lines = "".join(f"    {s}\n" if s[0] == "#" else f"    - {s}\n" for s in steps)
    return GITLAB.format(steps=lines, junit=_flow([_JUNIT if where == "." else f"{where}/{_JUNIT}"]))


def _prefix(root: Path, agent: Mapping[str, Any]) -> str:
    return "uv run --no-sync " if (root / "uv.lock").exists() and "interpreter" not in agent else ""


def _installing(root: Path, agent: Mapping[str, Any]) -> Iterator[str]:
    """Commands that install what the agent needs, by the files that are there; then agenteval."""
    interpreter, has_uv, pip = agent.get("interpreter"), (root / "uv.lock").exists(), "pip"
    if has_uv:
        yield "pip install uv && uv sync"
        pip = "pip" if interpreter else "uv pip"
    elif interpreter:
        environment = Path(interpreter).parent.parent.as_posix()
        yield f"python -m venv {environment}"
        pip = f"{environment}/bin/pip"
    if not has_uv and (root / "requirements.txt").exists():
        yield f"{pip} install -r requirements.txt"
    elif not has_uv and _is_installable(root / "pyproject.toml"):
        yield f"{pip} install -e ."
    elif interpreter and not has_uv:
        yield f"# here install what the agent needs: {pip} install …"
    if (root / "package.json").exists():
        yield "npm ci" if (root / "package-lock.json").exists() else "npm install"
    if "endpoint" in agent and "headers" not in agent:
        yield SERVICE_HINT
    yield f"{pip if has_uv else 'pip'} install agenteval-runner"


def _is_installable(path: Path) -> bool:
    try:
        return b"[project]" in read_file(path)
    except OSError:
        return False
