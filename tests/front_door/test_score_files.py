"""``agenteval score``: lists with entries that cannot be read, and reports that would take a file's place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project

GOOD = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}
FIRST, LAST = {"id": "first", **GOOD}, {"id": "last", **GOOD}
LOG = json.dumps(FIRST) + "\n"


@pytest.mark.parametrize(
    "bad", [None, "text", 7, {}, {"id": "z", "messages": "no"}, {"type": "chat", "messages": None}]
)
@pytest.mark.parametrize("around", [None, "data"])
def test_an_entry_that_cannot_be_read_is_a_sample_of_its_own(project: Project, bad: Any, around: Any) -> None:
    entries = [FIRST, bad, LAST]
    project.write("log.json", json.dumps({around: entries} if around else entries, indent=1))
    done = project.call("score", "log.json", "--report", "json=results.json")
    assert done.code == 3, done.all
    found = {s["id"]: s["verdict"] for s in project.results()["scenarios"]}
    line = 1 if around else json.dumps([FIRST], indent=1).count("\n") + 1
    assert found == {"first": "passed", f"log.json:{line}": "inconclusive", "last": "passed"}


def test_scenarios_are_listed_as_the_log_has_them_whatever_their_conversations_are_named(
    project: Project,
) -> None:
    names = (("z", "b", 2), ("a", "a", 0), ("y", "b", 1))
    lines = [{**GOOD, "id": id_, "task": task, "trial": trial} for id_, task, trial in names]
    project.write("log.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    paths = ("--scenario-from", "task", "--epoch-from", "trial")
    done = project.call("score", "log.jsonl", *paths, "--report", "json=results.json")
    assert done.code == 0, done.all
    found = [(s["id"], [each["epoch"] for each in s["samples"]]) for s in project.results()["scenarios"]]
    assert found == [("b", [1, 2]), ("a", [0])]


def test_a_list_of_messages_stays_one_conversation(project: Project) -> None:
    project.write(
        "log.json", json.dumps([*GOOD["messages"], None, {"role": "user", "content": "Bye", "items": []}])
    )
    project.call("score", "log.json", "--report", "json=results.json")
    assert len(project.results()["scenarios"]) == 1


def test_a_list_that_ends_too_early_gives_what_comes_before(project: Project) -> None:
    project.write("log.json", json.dumps([FIRST, LAST])[:-30])
    done = project.call("score", "log.json", "--report", "json=results.json")
    assert done.code == 3, done.all
    found = {s["id"]: s["verdict"] for s in project.results()["scenarios"]}
    assert found == {"first": "passed", "log.json:1": "inconclusive"}


@pytest.mark.parametrize("path", ["log.jsonl", "./log.jsonl", "link.jsonl", "agenteval.yaml"])
def test_a_report_takes_no_place_of_what_is_read(project: Project, path: str) -> None:
    log, settings = project.write("log.jsonl", LOG), project.write("agenteval.yaml", "fault_tolerance: 0.1\n")
    (log.parent / "link.jsonl").symlink_to(log)
    done = project.call("score", "log.jsonl", "--report", f"json={path}")
    assert done.code == 2, done.all
    assert f"the json report would overwrite {path}, which is an input of the run" in " ".join(
        done.err.split()
    )
    assert (log.read_text(), settings.read_text()) == (LOG, "fault_tolerance: 0.1\n")
    assert not (log.parent / ".agenteval").exists()
    assert project.call("score", "log.jsonl", "--report", "json=other.jsonl").code == 0


def test_two_reports_have_two_files(project: Project) -> None:
    project.write("log.jsonl", LOG)
    done = project.call("score", "log.jsonl", "--report", "json=out", "--report", "junit=./out")
    assert done.code == 2, done.all
    assert "the json and the junit report would both be written to ./out" in " ".join(done.err.split())
    for first, second in (
        ("json=out", "junit=other"),
        ("json=out", "json=out"),
        ("json=/dev/null", "junit=/dev/null"),
    ):
        assert project.call("score", "log.jsonl", "--report", first, "--report", second).code == 0


def test_a_report_of_a_run_takes_no_scenario_s_place(project: Project) -> None:
    project.config("metrics: []\n")
    project.write("agent.py", "def agent(message: str) -> str:\n    return message\n")
    text = "scenarios:\n  - {id: a, turns: [Hello], checks: none}\n"
    scenarios = project.write("scenarios/a.yaml", text)
    for report in ("json=scenarios/a.yaml", "junit=agenteval.yaml"):
        done = project.call("run", "--report", report)
        assert done.code == 2, done.all
        assert "which is an input of the run" in " ".join(done.err.split())
    assert scenarios.read_text() == text
