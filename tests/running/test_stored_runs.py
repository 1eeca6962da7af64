"""Runs that were kept: where they lie, and how they are loaded and decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.errors import AuthorError
from agenteval.core.event import Event, IssuesFound, RunResumed
from agenteval.core.score import Verdict
from agenteval.running.stored_runs import (
    list_run_inputs,
    load_decided_run,
    load_stored_report,
    runs_root,
)
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import BEHAVIOR, FAIL, PASS, Played, events_of, finding

FOUND = Played((), turns=((finding(),),))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_runs_lie_beside_the_nearest_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert runs_root() == deep
    (tmp_path / "agenteval.yaml").write_text("")
    assert runs_root() == tmp_path
    (tmp_path / "a" / "agenteval.yaml").write_text("")
    assert runs_root() == tmp_path / "a"


@pytest.mark.parametrize("name", ["r1", "latest", ".agenteval/runs/r1", ".agenteval/runs/r1/events.jsonl"])
def test_a_run_is_loaded_and_decided(root: Path, name: str) -> None:
    folder = keep_run(root, "r1", events_of({"a": [FAIL]}))
    kept = load_decided_run(name)
    assert kept.folder.resolve() == folder
    assert (kept.report.run.run_id, kept.decision.verdict) == ("r1", Verdict.FAILED)


def test_a_journal_of_another_name_lies_in_its_folder(root: Path) -> None:
    folder = keep_run(root, "r1", events_of({"a": [PASS]}))
    (folder / "events.jsonl").rename(folder / "kept.jsonl")
    assert load_decided_run(str(folder / "kept.jsonl")).folder == folder


def test_no_such_run(root: Path) -> None:
    with pytest.raises(AuthorError):
        load_decided_run("r9")


def test_the_journal_is_the_first_input(root: Path) -> None:
    folder = keep_run(root, "r1", events_of({"a": [PASS]}))
    assert next(list_run_inputs(load_decided_run("r1"))).resolve() == folder / "events.jsonl"


# ── a run that was killed before its findings were grouped ───────────────────────────────────────

EVENTS = events_of({"a": [FOUND, FOUND], "b": [PASS]}, outcome=None)
GROUPED = IssuesFound(issues=())
RESUMED = RunResumed(at="2026-11-22T00:00:00Z")


@pytest.mark.parametrize(
    ("events", "is_added"),
    [
        (EVENTS, True),
        ([*EVENTS, GROUPED], False),
        ([*EVENTS, GROUPED, RESUMED], True),
        ([*EVENTS, RESUMED, GROUPED], False),
        ([*EVENTS, RESUMED], True),
        (events_of({"a": [PASS]}, outcome=None), False),
    ],
)
def test_findings_are_grouped_where_they_were_not(root: Path, events: list[Event], is_added: bool) -> None:
    report = load_stored_report(keep_run(root, "r1", events)).report
    assert len(report.issues) == is_added
    if is_added:
        (issue,) = report.issues
        assert issue.metrics == (BEHAVIOR,)
        assert (issue.findings, issue.by) == (2, "")
