"""A journal of another version is refused with one sentence, at its place, by every command that reads one;
that of this version is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from agenteval.core.event import SCHEMA_VERSION
from tests.support.kit import Project

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


@pytest.fixture
def journal(project: Project) -> Path:
    """Of a run whose only sample failed."""
    project.agent("def agent(messages): return 'no'\n")
    project.config("judge: {corroborate: false}\nmetrics: []\nmodels: {default: scripted/replies.yaml}\n")
    project.write("replies.yaml", "replies: []\n")
    project.scenarios("{id: a, turns: [hello], expect: {output: {contains: ['yes']}}}\n")
    assert project.call("run").code == 1
    (found,) = (project.root / ".agenteval/runs").glob("*/events.jsonl")
    return found


def of_version(journal: Path, version: int) -> None:
    text = journal.read_text("utf-8")
    assert text.count(f'"schema_version":{SCHEMA_VERSION},') == 1
    journal.write_text(
        text.replace(f'"schema_version":{SCHEMA_VERSION}', f'"schema_version":{version}'), "utf-8"
    )


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        (SCHEMA_VERSION - 1, "read it with the version of agenteval that wrote it, or repeat the run"),
        (SCHEMA_VERSION + 1, "use the version of agenteval that wrote it, or a newer one"),
    ],
)
def test_another_version_is_refused(
    project: Project, journal: Path, reader: str, version: int, remedy: str
) -> None:
    of_version(journal, version)
    done = project.call(*READERS[reader](journal))
    assert done.code == 2, done.all
    told = f"the journal has version {version}, but this agenteval reads version {SCHEMA_VERSION} — {remedy}"
    assert told in " ".join(done.err.split())
    assert "events.jsonl:1: " in done.err
    assert len(list((project.root / ".agenteval/runs").iterdir())) == 1, "nothing was begun"


@pytest.mark.parametrize("reader", READERS)
def test_this_version_is_read(project: Project, journal: Path, reader: str) -> None:
    done = project.call(*READERS[reader](journal))
    assert done.code in (0, 1, 3), done.all
    assert "version" not in done.err
