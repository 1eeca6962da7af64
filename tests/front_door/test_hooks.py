"""``setup``, ``teardown`` and ``skip`` of a scenario."""

from __future__ import annotations

import pytest

from tests.support.kit import Project

HOOKS = """
from pathlib import Path

LOG = Path(__file__).with_name("log.txt")


def note(sample, what):
    with LOG.open("a") as file:
        file.write(f"{what} {sample.key.scenario} {sample.key.epoch}\\n")


def fresh(sample):
    note(sample, "fresh")


async def drop(sample):
    note(sample, "drop")


def broken(sample):
    raise OSError("no database")


def needs_two(sample, more): ...
"""
AGENT = """
from hooks import LOG


def agent(messages):
    with LOG.open("a") as file:
        file.write("turn\\n")
    return "Hello."
"""


@pytest.fixture
def hooked(project: Project) -> Project:
    project.config("metrics: []")
    project.write("hooks.py", HOOKS)
    project.agent(AGENT)
    return project


def scenario(more: str, id: str = "greet") -> str:
    return f"id: {id}\nturns: [Hi]\nexpect: {{output: {{contains: Hello}}}}\n{more}"


def log(project: Project) -> list[str]:
    path = project.root / "log.txt"
    return path.read_text().splitlines() if path.exists() else []


def test_hooks_run_around_each_conversation(hooked: Project) -> None:
    hooked.scenarios(scenario("epochs: 2\nsetup: ../hooks.py:fresh\nteardown: ../hooks.py:drop\n"))
    assert hooked.run("-n", "1").code == 0
    lines = log(hooked)
    assert sorted(lines) == ["drop greet 0", "drop greet 1", "fresh greet 0", "fresh greet 1", "turn", "turn"]
    assert lines.index("fresh greet 0") < lines.index("turn") < lines.index("drop greet 0")


@pytest.mark.parametrize(
    ("hooks", "played"),
    [
        ("setup: ../hooks.py:broken\nteardown: ../hooks.py:drop\n", []),
        ("setup: ../hooks.py:fresh\nteardown: ../hooks.py:broken\n", ["fresh greet 0", "turn"]),
    ],
    ids=["setup", "teardown"],
)
def test_a_hook_that_raises_is_the_authors_error(hooked: Project, hooks: str, played: list[str]) -> None:
    hooked.scenarios(scenario(hooks))
    done = hooked.run()
    assert done.code == 2
    assert log(hooked) == played
    assert "no database" in done.out + done.err


@pytest.mark.parametrize("target", ["../hooks.py:nothing", "../hooks.py:needs_two", "../nowhere.py:x"])
def test_a_hook_that_cannot_be_called_is_refused_at_its_line(hooked: Project, target: str) -> None:
    hooked.scenarios(scenario(f"setup: {target}\n"))
    done = hooked.run()
    assert done.code == 2
    assert "scenarios/suite.yaml:4" in done.err
    assert log(hooked) == []


def test_a_skipped_scenario_is_not_run_and_named(hooked: Project) -> None:
    hooked.scenarios(
        "scenarios:\n"
        "  - {id: one, turns: [Hi], expect: {output: {contains: Hello}}}\n"
        "  - {id: two, skip: needs the staging server, turns: [Hi], expect: {output: {contains: Nothing}}}\n"
    )
    done = hooked.run()
    assert done.code == 0
    assert "two" in done.out
    assert "needs the staging server" in done.out
    assert [each["id"] for each in hooked.results()["scenarios"]] == ["one"]


@pytest.mark.parametrize("value", ["false", "true", "1", "[]"])
def test_skip_is_a_reason(hooked: Project, value: str) -> None:
    hooked.scenarios(scenario(f"skip: {value}\n"))
    hooked.run().refuses("scenarios/suite.yaml:4", "skip")


def test_a_run_of_skipped_scenarios_alone_is_no_pass(hooked: Project) -> None:
    hooked.scenarios(scenario("skip: later\n"))
    done = hooked.run()
    assert done.code == 5
    assert "scenarios/suite.yaml:4" in done.err
