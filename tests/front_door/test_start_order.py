"""What starts first in a run: what did not pass in the latest one, then what it did not have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.files.runs import find_run_folders
from tests.support.kit import Project

AGENT = """
import pathlib
def agent(m, ctx):
    return "bad" if ctx.scenario_id in pathlib.Path("broken").read_text("utf-8").split() else "good"
"""
SCENARIO = "- {{id: {id}, turns: [hello], expect: {{output: {{contains: [good]}}}}}}\n"


def write_scenarios(project: Project, *ids: str) -> None:
    project.scenarios("scenarios:\n" + "".join(SCENARIO.format(id=id) for id in ids))


@pytest.fixture
def ran(project: Project) -> Project:
    """Of three scenarios, the last one failed; it and another one have two epochs."""
    project.agent(AGENT)
    project.config("metrics: []\nepochs: 2")
    project.write("broken", "c")
    write_scenarios(project, "a", "b", "c")
    assert project.run("-n", "1").code == 1
    assert started(project) == ["a 0", "a 1", "b 0", "b 1", "c 0", "c 1"]
    return project


def journal(project: Project) -> Path:
    return find_run_folders(project.root)[-1] / "events.jsonl"


def started(project: Project) -> list[str]:
    events = [json.loads(line) for line in journal(project).read_text("utf-8").splitlines()]
    keys = [event["key"] for event in events if event["type"] == "sample_started"]
    return [f"{key['scenario']} {key.get('epoch', 0)}" for key in keys]


def test_what_failed_starts_first_then_what_is_new(ran: Project) -> None:
    write_scenarios(ran, "a", "new", "c")
    assert ran.run("-n", "1").code == 1
    assert started(ran) == ["c 0", "c 1", "new 0", "new 1", "a 0", "a 1"]
    assert [each["id"] for each in ran.results()["scenarios"]] == ["a", "new", "c"]


def test_if_everything_starts_at_once_the_order_is_that_of_the_files(ran: Project) -> None:
    write_scenarios(ran, "a", "new", "c")
    assert ran.run("-n", "6").code == 1
    assert started(ran) == ["a 0", "a 1", "new 0", "new 1", "c 0", "c 1"]


def test_fail_fast_finds_the_failure_at_once(ran: Project) -> None:
    assert ran.run("--fail-fast", "-n", "1").code == 1
    assert started(ran) == ["c 0"]


def test_an_earlier_run_that_cannot_be_read_is_ignored(ran: Project) -> None:
    with journal(ran).open("a", encoding="utf-8") as file:
        file.write("oops\n")
    write_scenarios(ran, "a", "new", "c")
    done = ran.run("-n", "1")
    assert done.code == 1
    assert "oops" not in done.all
    assert started(ran) == ["a 0", "a 1", "new 0", "new 1", "c 0", "c 1"]


def test_a_resumed_run_goes_on_in_the_order_of_the_files(ran: Project) -> None:
    assert ran.run("-n", "1").code == 1
    assert started(ran)[0] == "c 0"
    lines = journal(ran).read_text("utf-8").splitlines(keepends=True)
    first_end = next(n for n, line in enumerate(lines) if '"sample_finished"' in line)
    journal(ran).write_text("".join(lines[: first_end + 1]), "utf-8")
    assert ran.run("--resume", "latest", "-n", "1").code == 1
    assert started(ran) == ["c 0", "a 0", "a 1", "b 0", "b 1", "c 1"]
