"""A journal of another version is refused at its place by every command that reads one; a journal of another
author is read, and opens no file of the machine on which it is scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from agenteval.core.event import SCHEMA_VERSION
from tests.support.kit import Done, Project

# ── of another version ───────────────────────────────────────────────────────────────────────────

READERS: dict[str, Callable[[Path], Sequence[str]]] = {
    "report": lambda journal: ("report", "latest"),
    "diff": lambda journal: ("diff", "latest", "latest"),
    "resume": lambda journal: ("run", "--resume", "latest"),
    "baseline": lambda journal: ("run", "--baseline", "latest"),
    "last failed": lambda journal: ("run", "--last-failed"),
    "rejudge": lambda journal: ("report", "latest", "--rejudge", "--dry-run"),
    "score": lambda journal: ("score", str(journal)),
    "score of a folder": lambda journal: ("score", str(journal.parent)),
}


def failed_run(project: Project) -> Path:
    """The journal of a run whose only sample failed."""
    project.agent("def agent(messages): return 'no'\n")
    project.config("judge: {corroborate: false}\nmetrics: []\nmodels: {default: scripted/replies.yaml}\n")
    project.write("replies.yaml", "replies: []\n")
    project.scenarios("{id: a, turns: [hello], expect: {output: {contains: ['yes']}}}\n")
    assert project.call("run").code == 1
    (found,) = (project.root / ".agenteval/runs").glob("*/events.jsonl")
    return found


@pytest.fixture(scope="module", params=[SCHEMA_VERSION - 1, SCHEMA_VERSION + 1], ids=["older", "newer"])
def other_version(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Project, int]:
    project = Project(tmp_path_factory.mktemp("versions"))
    journal = failed_run(project)
    text, written = journal.read_text("utf-8"), f'"schema_version":{SCHEMA_VERSION},'
    assert text.count(written) == 1
    journal.write_text(text.replace(written, f'"schema_version":{request.param},'), "utf-8")
    return project, request.param


@pytest.mark.parametrize("reader", READERS)
def test_a_journal_of_another_version_is_refused(other_version: tuple[Project, int], reader: str) -> None:
    project, version = other_version
    (journal,) = (project.root / ".agenteval/runs").glob("*/events.jsonl")
    done = project.call(*READERS[reader](journal))
    done.refuses("events.jsonl:1", f"version {version}", f"version {SCHEMA_VERSION}")
    assert len(list((project.root / ".agenteval/runs").iterdir())) == 1, "nothing was begun"


@pytest.mark.parametrize("reader", READERS)
def test_a_journal_of_this_version_is_read(project: Project, reader: str) -> None:
    done = project.call(*READERS[reader](failed_run(project)))
    assert done.code in (0, 1, 3), done.all
    assert "version" not in done.err


# ── of another author ────────────────────────────────────────────────────────────────────────────

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
    assert "'bot'" in done.err
    assert "notes.md" in done.err
    assert not any(word in done.all for word in ("Deploy", "twelve words"))


def test_the_policy_of_the_run_is_read(run: Project) -> None:
    assert score(run).code == 0
    run.write("own/policy.md", PRIVATE)
    assert score(run).code == 2


def test_a_configuration_that_names_the_policy_reads_it_as_it_is_now(run: Project) -> None:
    """What the agent said is in the policy now, word for word: a finding."""
    run.write("own/policy.md", PRIVATE)
    own = Project(run.root / "own")
    assert own.call("score", "latest", "--report", "json=results.json").code == 1
    (finding,) = own.sample()["findings"]
    assert finding["turn"] == 0
