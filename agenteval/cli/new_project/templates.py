"""Templates for the files that ``agenteval init`` writes."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from agenteval.cli.new_project.programs import PROGRAM_FORMS, make_command_keys
from agenteval.files.regular_files import read_file

STARTER_FILE = "my_agent.py"
STARTER = '''\
"""A starter agent: it answers questions about orders with a tool. Replace it with yours."""

import re


async def agent(messages, ctx):
    # Yours would call its model here; `messages` is the conversation in OpenAI's format.
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
        # Expectations are written below the message, for example:
        # expect:
{calls}        #   output: {{contains: [order]}}
    expect:
      limits: {{latency_ms: 30000}}
"""
_CALLS = "        #   tool_calls: {calls: [{name: get_order, args: {id: ORD-42}}]}\n"
_UNSEEN = """\
        #   (calls to plain functions are visible if `intercept` lists them: docs/agents.md,
        #   "Which calls are seen")
"""
METRICS = "metrics: []   # no judges yet, only code checks, so no model is needed\n"

WORKFLOW = """\
name: agenteval
on:
  push: {{branches: {branches}}}
  pull_request:
permissions: {{contents: read}}
jobs:
  agenteval:
    runs-on: ubuntu-latest
    timeout-minutes: 15
{folder}{env}    steps:
      - uses: actions/checkout@v6
      - uses: actions/setup-python@v6
        with: {{python-version: "{python}"}}
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
SERVICE_HINT = "# start the service under test here, for example:"
_AGENTEVAL = "install agenteval-runner   # if it is not on the package index, use the path of a checkout"
_GITLAB_NODE = """\
  before_script:
    - apt-get update && apt-get install -y --no-install-recommends nodejs npm
"""
GITLAB = """\
agenteval:
  image: python:{python}
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
{node}  script:
{steps}  artifacts:
    when: always
    reports: {{junit: {junit}}}
"""
_JUNIT = ".agenteval/junit.xml"
_VERSION = re.compile(r"^version(?:_info)? *= *(3\.\d+)", re.MULTILINE)


def config_text(agent: Mapping[str, Any], note: str, words: Sequence[str]) -> str:
    """Return the text of the configuration. ``words`` is the command that starts a program whose way of
    accepting messages is uncertain; comments in the text show the alternatives."""
    others = [(form, make_command_keys(list(words), form)) for form in PROGRAM_FORMS] if words else []
    notes = [f"or, if {PROGRAM_FORMS[form]}: {_flow_yaml(each)}" for form, each in others if each != agent]
    body = yaml.safe_dump(
        {"agent": dict(agent)}, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
    return body + "".join(f"# {each}\n" for each in [*([note] if note else []), *notes]) + METRICS


def _flow_yaml(value: Any) -> str:
    flow = yaml.safe_dump(value, default_flow_style=True, width=1000, allow_unicode=True, sort_keys=False)
    return flow.strip()[1:-1]


def agent_line(agent: Mapping[str, Any]) -> str:
    """Return the agent's keys as a single line of the configuration."""
    return _flow_yaml({"agent": dict(agent)})


def scenario_text(tools: Sequence[str] = (), *, shows_calls: bool, is_python: bool) -> str:
    """Return the text of the first scenario for the author's agent. ``tools`` contains the agent's tools,
    which the scenario mocks."""
    lines = [f"      {_flow_yaml([name])}: {{returns: {{}}}}\n" for name in tools]
    head = "    tools:   # mocks of the agent's own tools: set what they return\n"
    calls = _CALLS if shows_calls else _UNSEEN if is_python else ""
    return SCENARIO.format(tools="".join([head, *lines]) if lines else "", calls=calls)


def workflow_text(root: Path, top: Path, agent: Mapping[str, Any]) -> str:
    """Return a GitHub Actions workflow. ``top`` is the root folder of the repository."""
    where = Path(os.path.relpath(root, top)).as_posix()
    folder = "" if where == "." else f"    defaults: {{run: {{working-directory: {_flow_yaml([where])}}}}}\n"
    steps = [*_install_steps(root, agent), f"{_run_prefix(root, agent)}agenteval run --report github"]
    return WORKFLOW.format(
        branches=_flow_yaml([[_branch(top)]]),
        python=_python_version(root, top),
        folder=folder,
        env=WORKFLOW_ENV if "headers" in agent else WORKFLOW_ENV_HINT,
        node=NODE if (root / "package.json").exists() else "",
        steps="".join(f"      {s}\n" if s[0] == "#" else f"      - run: {s}\n" for s in steps),
    )


def gitlab_text(root: Path, top: Path, agent: Mapping[str, Any]) -> str:
    """Return a GitLab CI file that a project can include."""
    where = Path(os.path.relpath(root, top)).as_posix()
    change = [] if where == "." else [f"cd {shlex.quote(where)}"]
    run = f"{_run_prefix(root, agent)}agenteval run --report junit={_JUNIT}"
    steps = [*change, *_install_steps(root, agent), run]
    lines = "".join(f"    {s}\n" if s[0] == "#" else f"    - {s}\n" for s in steps)
    node = _GITLAB_NODE if (root / "package.json").exists() else ""
    python = _python_version(root, top)
    return GITLAB.format(
        python=python,
        node=node,
        steps=lines,
        junit=_flow_yaml([_JUNIT if where == "." else f"{where}/{_JUNIT}"]),
    )


def _branch(top: Path) -> str:
    """Return the name of the current branch. Git worktrees are supported."""
    git = top / ".git"
    if git.is_file():
        git = top / _read_or_empty(git).removeprefix("gitdir:").strip()
    head = _read_or_empty(git / "HEAD").strip()
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else "main"


def _python_version(root: Path, top: Path) -> str:
    """Return the Python version that the project declares or, if it declares none, the version in the
    project's environment."""
    for folder in (root, top):
        if found := re.match(r"3\.\d+", _read_or_empty(folder / ".python-version")):
            return found[0]
    for folder in (root / ".venv", root / "venv", top / ".venv", top / "venv"):
        if found := _VERSION.search(_read_or_empty(folder / "pyvenv.cfg")):
            return found[1]
    return "3.12"


def _read_or_empty(path: Path) -> str:
    try:
        return read_file(path, 1_000_000).decode("utf-8", "replace")
    except OSError:
        return ""


def _run_prefix(root: Path, agent: Mapping[str, Any]) -> str:
    return "uv run --no-sync " if (root / "uv.lock").exists() and "interpreter" not in agent else ""


def _install_steps(root: Path, agent: Mapping[str, Any]) -> Iterator[str]:
    """Yield the commands that install the agent's dependencies, followed by agenteval. The commands depend on
    the files that exist."""
    if (root / "uv.lock").exists():
        yield "pip install uv && uv sync"
        pip = "pip" if agent.get("interpreter") else "uv pip"
    else:
        yield from _pip_install_steps(root, agent.get("interpreter"))
        pip = "pip"
    if (root / "package.json").exists():
        yield "npm ci" if (root / "package-lock.json").exists() else "npm install"
    if "endpoint" in agent and "headers" not in agent:
        start = "./serve.sh" if (root / "serve.sh").exists() else "python -m my_service"
        yield f"{SERVICE_HINT} {start} &"
    yield f"{pip} {_AGENTEVAL}"


def _pip_install_steps(root: Path, interpreter: str | None) -> Iterator[str]:
    """Yield the commands that create the environment of the ``interpreter`` and install packages into it. If
    ``interpreter`` is None, packages are installed into the environment of the workflow."""
    pip = "pip"
    if interpreter:
        environment = Path(interpreter).parent.parent.as_posix()
        yield f"python -m venv {environment}"
        pip = f"{environment}/bin/pip"
    if (root / "requirements.txt").exists():
        yield f"{pip} install -r requirements.txt"
    elif "[project]" in _read_or_empty(root / "pyproject.toml"):
        yield f"{pip} install -e ."
    elif interpreter:
        yield f"# install what the agent needs here: {pip} install …"
