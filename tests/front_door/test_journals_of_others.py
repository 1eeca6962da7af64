"""A journal may be anybody's: it is read, and it opens no file of the machine on which it is scored."""

from __future__ import annotations

import json

import pytest

from tests.support.kit import Done, Project

PRIVATE = "Deploy key of the back office: nobody outside of it ever needs to read these twelve words."


@pytest.fixture
def run(project: Project) -> Project:
    """A project with a run whose agent said what a private file of this machine holds."""
    project.write("own/policy.md", "Be kind to everybody.")
    project.write("private/notes.md", PRIVATE)
    project.write("own/agent.py", f"def agent(messages):\n    return {PRIVATE!r}\n")
    agent = "{name: bot, target: 'agent.py:agent', policy: policy.md}"
    project.write("own/agenteval.yaml", f"agent: {agent}\nmetrics: []\ninclude: [s.yaml]\n")
    project.write("own/s.yaml", "scenarios:\n  - {id: a, turns: [Hi], checks: none}\n")
    assert Project(project.root / "own").call("run").code == 0
    return project


def score(project: Project, **policy: str) -> Done:
    """The journal, with what its author wrote into it, scored elsewhere."""
    (journal,) = project.root.glob("own/.agenteval/runs/*/events.jsonl")
    first, rest = journal.read_text(encoding="utf-8").split("\n", 1)
    started = json.loads(first)
    started["config"]["root"] = policy.get("root", started["config"]["root"])
    started["config"]["agent"]["policy"] = policy.get("name", "policy.md")
    project.write("elsewhere/events.jsonl", f"{json.dumps(started)}\n{rest}")
    return Project(project.root / "elsewhere").call("score", "events.jsonl")


def test_a_file_that_the_run_did_not_read_is_not_opened(run: Project) -> None:
    done = score(run, root=str(run.root / "private"), name="notes.md")
    assert done.code == 2, done.all
    assert "the policy of agent 'bot', notes.md, is not the file that the run read" in " ".join(
        done.err.split()
    )
    assert "word for word" not in done.all


def test_the_policy_of_the_run_is_read(run: Project) -> None:
    assert score(run).code == 0
    run.write("own/policy.md", PRIVATE)
    assert score(run).code == 2


def test_a_configuration_that_names_the_policy_reads_it_as_it_is_now(run: Project) -> None:
    run.write("own/policy.md", PRIVATE)
    done = Project(run.root / "own").call("score", "latest")
    assert done.code == 1, done.all
    assert "word for word" in done.all
