"""``agenteval report``: a kept run is reported again."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.cli.commands.report import report
from agenteval.core.config import ReporterChoice
from agenteval.core.errors import AuthorError
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import FAIL, PASS, UNSURE, Played, events_of


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
