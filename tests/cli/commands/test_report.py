"""``agenteval report``: a kept run is decided and reported again."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.cli.commands.report import (
    add_missing_issues,
    list_run_inputs,
    load_decided_run,
    report,
    runs_root,
)
from agenteval.core.config import ReporterChoice
from agenteval.core.errors import AuthorError
from agenteval.core.event import Event, IssuesFound, RunResumed
from agenteval.core.score import Verdict
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import BEHAVIOR, FAIL, PASS, UNSURE, Played, events_of, finding

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
    assert next(list_run_inputs(kept)).resolve() == folder / "events.jsonl"


def test_a_journal_of_another_name_lies_in_its_folder(root: Path) -> None:
    folder = keep_run(root, "r1", events_of({"a": [PASS]}))
    (folder / "events.jsonl").rename(folder / "kept.jsonl")
    assert load_decided_run(str(folder / "kept.jsonl")).folder == folder


def test_no_such_run(root: Path) -> None:
    with pytest.raises(AuthorError):
        load_decided_run("r9")


@pytest.mark.parametrize(("played", "code"), [(PASS, 0), (FAIL, 1), (UNSURE, 3)])
def test_the_exit_code_is_that_of_the_run(
    root: Path, capsys: pytest.CaptureFixture[str], played: Played, code: int
) -> None:
    keep_run(root, "r1", events_of({"a": [played]}))
    assert report("latest") == code
    assert list(root.rglob("results.json")) == []
    assert capsys.readouterr().out
    assert report("latest", reports=[ReporterChoice(name="json")]) == code
    assert capsys.readouterr().out == ""
    assert (root / ".agenteval" / "runs" / "r1" / "results.json").is_file()


@pytest.mark.parametrize(("day", "is_named"), [(1, True), (3, False)])
def test_commands_name_the_run_unless_it_is_the_latest(
    root: Path, capsys: pytest.CaptureFixture[str], day: int, is_named: bool
) -> None:
    keep_run(root, "r1", events_of({"a": [FAIL]}), f"2026-11-{day:02}T00:00:00Z")
    keep_run(root, "r2", events_of({"a": [FAIL]}), "2026-11-02T00:00:00Z")
    report("r1")
    assert ("agenteval show r1" in capsys.readouterr().out) is is_named


def test_the_journal_is_not_overwritten(root: Path) -> None:
    folder = keep_run(root, "r1", events_of({"a": [PASS]}))
    with pytest.raises(AuthorError) as error:
        report("r1", reports=[ReporterChoice(name="json", path=str(folder / "events.jsonl"))])
    assert "events.jsonl" in str(error.value)


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
def test_findings_are_grouped_where_they_were_not(events: list[Event], is_added: bool) -> None:
    found = add_missing_issues(events)
    assert list(found[: len(events)]) == list(events)
    added = found[len(events) :]
    assert len(added) == is_added
    if is_added:
        (last,) = added
        assert isinstance(last, IssuesFound)
        (issue,) = last.issues
        assert issue.metrics == (BEHAVIOR,)
        assert (issue.findings, issue.by) == (2, "")
