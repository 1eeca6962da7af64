"""The files of a new project: configuration, first scenario and CI, as its own files ask for them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenteval.cli.new_project import templates
from agenteval.cli.new_project.programs import PROGRAM_FORMS, make_command_keys

CHECKOUT = "actions/checkout@v6"
PYTHON = "actions/setup-python@v6"
HTTP = {"endpoint": "http://localhost:8000/chat"}
TARGET = {"target": "bot.py:agent"}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def job(root: Path, agent: dict[str, Any] = TARGET, top: Path | None = None) -> dict[str, Any]:
    """The only job of the workflow on GitHub."""
    read = yaml.safe_load(templates.workflow_text(root, top or root, agent))
    (only,) = read["jobs"].values()
    return dict(only)


def commands(root: Path, agent: dict[str, Any] = TARGET) -> list[str]:
    """What the workflow on GitHub runs, which is what GitLab runs."""
    on_github = [step["run"] for step in job(root, agent)["steps"] if "run" in step]
    read = yaml.safe_load(templates.gitlab_text(root, root, agent))
    on_gitlab = read["agenteval"]["script"]
    assert on_gitlab[:-1] == on_github[:-1]
    assert on_github[-1].endswith("agenteval run --report github")
    assert on_gitlab[-1].endswith("agenteval run --report junit=.agenteval/junit.xml")
    assert on_gitlab[-1].partition("agenteval")[0] == on_github[-1].partition("agenteval")[0]
    *before, install, run = [each.partition(" agenteval")[0] for each in on_github]
    return [*before, install, run]


# ── configuration and scenario ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "agent",
    [
        TARGET,
        HTTP,
        {"target": "zoë's.py:x", "interpreter": ".venv/bin/python"},
        {"command": {"run": ["a b"]}},
    ],
)
def test_the_configuration_is_that_of_the_agent(agent: dict[str, Any]) -> None:
    text = templates.config_text(agent, "", ())
    assert yaml.safe_load(text) == {"agent": agent, "metrics": []}
    assert list(yaml.safe_load(text)) == ["agent", "metrics"]
    assert not any(line.startswith("#") for line in text.splitlines())
    assert yaml.safe_load(templates.agent_line(agent)) == {"agent": agent}
    assert "\n" not in templates.agent_line(agent)


def test_keys_keep_their_order() -> None:
    agent = {"endpoint": "x", "request": {"b": 1, "a": 2}}
    assert templates.agent_line(agent).index("b:") < templates.agent_line(agent).index("a:")
    text = templates.config_text(agent, "", ())
    assert text.index("endpoint") < text.index("b:") < text.index("a:")


def test_a_note_is_a_comment() -> None:
    lines = templates.config_text(HTTP, "look at the reply", ()).splitlines()
    assert [line for line in lines if line.startswith("#")] == ["# look at the reply"]


@pytest.mark.parametrize("form", list(PROGRAM_FORMS))
def test_the_other_ways_to_ask_a_program_are_comments(form: str) -> None:
    words = ["node", "bot.js"]
    text = templates.config_text(make_command_keys(words, form), "note", words)
    assert yaml.safe_load(text) == {"agent": make_command_keys(words, form), "metrics": []}
    note, *comments = [line for line in text.splitlines() if line.startswith("#")]
    assert note == "# note"
    others = [each for each in PROGRAM_FORMS if each != form]
    assert len(comments) == len(others)
    for line, other in zip(comments, others, strict=True):
        assert PROGRAM_FORMS[other] in line
        assert yaml.safe_load(line.partition(f"{PROGRAM_FORMS[other]}: ")[2]) == make_command_keys(
            words, other
        )


@pytest.mark.parametrize(
    ("shows_calls", "is_python", "has_calls", "names_intercept"),
    [
        (True, True, True, False),
        (True, False, True, False),
        (False, True, False, True),
        (False, False, False, False),
    ],
)
def test_the_first_scenario_shows_what_can_be_expected(
    shows_calls: bool, is_python: bool, has_calls: bool, names_intercept: bool
) -> None:
    text = templates.scenario_text(shows_calls=shows_calls, is_python=is_python)
    assert ("tool_calls:" in text) is has_calls
    assert ("`intercept`" in text) is names_intercept
    (scenario,) = yaml.safe_load(text)["scenarios"]
    assert scenario["id"] == "first-words"
    assert "tools" not in scenario
    assert scenario["turns"] == [{"user": "Hello! What can you help me with?"}]
    assert scenario["expect"] == {"limits": {"latency_ms": 30000}}
    # What the comments show is an expectation, too, once it is no comment.
    shown = "\n".join(line.replace("# ", "", 1) for line in text.splitlines() if "Expectations" not in line)
    if not names_intercept:
        (turn,) = yaml.safe_load(shown)["scenarios"][0]["turns"]
        assert set(turn["expect"]) == ({"tool_calls", "output"} if has_calls else {"output"})


def test_tools_of_the_agent_are_mocked() -> None:
    names = ["get_order", "yes", "a: b"]
    text = templates.scenario_text(names, shows_calls=True, is_python=True)
    (scenario,) = yaml.safe_load(text)["scenarios"]
    assert scenario["tools"] == {name: {"returns": {}} for name in names}


def test_the_starter_is_python_and_its_scenario_yaml() -> None:
    assert "async def agent(messages, ctx)" in templates.STARTER
    ast.parse(templates.STARTER)
    (scenario,) = yaml.safe_load(templates.STARTER_SCENARIO)["scenarios"]
    assert (set(scenario["tools"]), len(scenario["turns"])) == ({"get_order"}, 2)


# ── what a workflow installs and runs ────────────────────────────────────────────────────────────

OWN = {**TARGET, "interpreter": ".venv/bin/python"}
DEEP = {**TARGET, "interpreter": "../env/bin/python"}
LISTED, PACKAGE, LOCK = "requirements.txt", "pyproject.toml", "uv.lock"


@pytest.mark.parametrize(
    ("files", "agent", "expected"),
    [
        ({}, TARGET, ["pip install"]),
        ({LISTED: ""}, TARGET, ["pip install -r requirements.txt", "pip install"]),
        ({PACKAGE: "[project]"}, TARGET, ["pip install -e .", "pip install"]),
        ({PACKAGE: "[tool.x]"}, TARGET, ["pip install"]),
        (
            {LISTED: "", PACKAGE: "[project]"},
            TARGET,
            ["pip install -r requirements.txt", "pip install"],
        ),
        ({}, OWN, ["python -m venv .venv", "pip install"]),
        (
            {LISTED: ""},
            OWN,
            ["python -m venv .venv", ".venv/bin/pip install -r requirements.txt", "pip install"],
        ),
        (
            {LISTED: ""},
            DEEP,
            ["python -m venv ../env", "../env/bin/pip install -r requirements.txt", "pip install"],
        ),
        ({PACKAGE: "[project]"}, OWN, ["python -m venv .venv", ".venv/bin/pip install -e .", "pip install"]),
        ({LOCK: ""}, TARGET, ["pip install uv && uv sync", "uv pip install"]),
        ({LOCK: "", LISTED: ""}, TARGET, ["pip install uv && uv sync", "uv pip install"]),
        ({LOCK: ""}, OWN, ["pip install uv && uv sync", "pip install"]),
        ({"package.json": "{}"}, TARGET, ["npm install", "pip install"]),
        ({"package.json": "{}", "package-lock.json": ""}, TARGET, ["npm ci", "pip install"]),
        ({"package-lock.json": ""}, TARGET, ["pip install"]),
        ({LISTED: ""}, HTTP, ["pip install -r requirements.txt", "pip install"]),
    ],
)
def test_what_is_installed(
    tmp_path: Path, files: dict[str, str], agent: dict[str, Any], expected: list[str]
) -> None:
    uv = "uv run --no-sync" if LOCK in files and agent is not OWN else ""
    *found, run = commands(write(tmp_path, files), agent)
    assert found == expected
    assert run.partition("agenteval")[0].strip() == uv


def comments(root: Path, agent: dict[str, Any]) -> list[str]:
    text = templates.workflow_text(root, root, agent)
    found = [line.strip() for line in text.splitlines() if line.strip().startswith("#")]
    on_gitlab = templates.gitlab_text(root, root, agent).splitlines()
    steps = [line for line in found if "env:" not in line]
    assert [line.strip() for line in on_gitlab if line.strip().startswith("#")] == steps
    return steps


def test_what_the_author_has_to_add_is_a_comment(tmp_path: Path) -> None:
    assert comments(tmp_path, TARGET) == []
    (install,) = comments(tmp_path, OWN)
    assert ".venv/bin/pip install" in install
    (start,) = comments(tmp_path, HTTP)
    assert start.startswith(templates.SERVICE_HINT)
    assert "python -m my_service &" in start
    assert comments(tmp_path, {**HTTP, "headers": {}}) == []  # a service elsewhere
    (start,) = comments(write(tmp_path, {"serve.sh": ""}), HTTP)
    assert "./serve.sh &" in start


@pytest.mark.parametrize(
    ("agent", "has_env"), [(TARGET, False), (HTTP, False), ({**HTTP, "headers": {}}, True)]
)
def test_a_service_elsewhere_needs_its_key(tmp_path: Path, agent: dict[str, Any], has_env: bool) -> None:
    env = {"AGENT_API_KEY": "${{ secrets.AGENT_API_KEY }}"} if has_env else None
    assert job(tmp_path, agent).get("env") == env
    assert ("# env:" in templates.workflow_text(tmp_path, tmp_path, agent)) is not has_env


def test_node_is_there_for_a_package(tmp_path: Path) -> None:
    def used() -> tuple[list[str], bool]:
        steps = [step["uses"] for step in job(tmp_path)["steps"] if "uses" in step]
        read = yaml.safe_load(templates.gitlab_text(tmp_path, tmp_path, TARGET))
        return steps, "before_script" in read["agenteval"]

    assert used() == ([CHECKOUT, PYTHON], False)
    write(tmp_path, {"package.json": "{}"})
    assert used() == ([CHECKOUT, PYTHON, "actions/setup-node@v6"], True)


def test_a_folder_of_the_repository(tmp_path: Path) -> None:
    root = tmp_path / "my bots" / "a"
    root.mkdir(parents=True)
    assert job(root, top=tmp_path)["defaults"] == {"run": {"working-directory": "my bots/a"}}
    assert "defaults" not in job(root)
    read = yaml.safe_load(templates.gitlab_text(root, tmp_path, TARGET))["agenteval"]
    assert read["script"][0] == "cd 'my bots/a'"
    assert read["artifacts"] == {"when": "always", "reports": {"junit": "my bots/a/.agenteval/junit.xml"}}
    read = yaml.safe_load(templates.gitlab_text(root, root, TARGET))["agenteval"]
    assert not read["script"][0].startswith("cd ")
    assert read["artifacts"]["reports"] == {"junit": ".agenteval/junit.xml"}


@pytest.mark.parametrize(
    ("files", "branch"),
    [
        ({}, "main"),
        ({".git/HEAD": "ref: refs/heads/trunk\n"}, "trunk"),
        ({".git/HEAD": "ref: refs/heads/feature/a: b\n"}, "feature/a: b"),
        ({".git/HEAD": "0123abc\n"}, "main"),
        ({".git/HEAD": ""}, "main"),
        ({".git": "gitdir: elsewhere/x\n", "elsewhere/x/HEAD": "ref: refs/heads/topic\n"}, "topic"),
        ({".git": "gitdir: gone\n"}, "main"),
    ],
)
def test_the_branch(tmp_path: Path, files: dict[str, str], branch: str) -> None:
    read = yaml.safe_load(templates.workflow_text(write(tmp_path, files), tmp_path, TARGET))
    assert read[True] == {"push": {"branches": [branch]}, "pull_request": None}


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({}, "3.12"),
        ({"root/.python-version": "3.11.4\n"}, "3.11"),
        ({".python-version": "3.13"}, "3.13"),
        ({"root/.python-version": "3.11", ".python-version": "3.13"}, "3.11"),
        ({"root/.python-version": "pypy3.11", ".python-version": "3.13"}, "3.13"),
        ({"root/.python-version": "2.7"}, "3.12"),
        ({"root/.venv/pyvenv.cfg": "home = 3.9\nversion = 3.10.2\n"}, "3.10"),
        ({"root/venv/pyvenv.cfg": "version_info = 3.14.0\n"}, "3.14"),
        ({".venv/pyvenv.cfg": "version=3.13.1\n"}, "3.13"),
        ({"venv/pyvenv.cfg": "version = 3.11.1\n"}, "3.11"),
        ({"root/venv/pyvenv.cfg": "version = 3.10\n", ".venv/pyvenv.cfg": "version = 3.11\n"}, "3.10"),
        ({"root/.venv/pyvenv.cfg": "version = 3.10\n", "root/venv/pyvenv.cfg": "version = 3.11\n"}, "3.10"),
        ({".python-version": "3.13", "root/.venv/pyvenv.cfg": "version = 3.10\n"}, "3.13"),
    ],
)
def test_the_version_of_python(tmp_path: Path, files: dict[str, str], version: str) -> None:
    root = write(tmp_path, {**files, "root/x": ""}) / "root"
    (step,) = [step for step in job(root, top=tmp_path)["steps"] if step.get("uses") == PYTHON]
    assert step["with"] == {"python-version": version}
    assert (
        yaml.safe_load(templates.gitlab_text(root, tmp_path, TARGET))["agenteval"]["image"]
        == f"python:{version}"
    )
