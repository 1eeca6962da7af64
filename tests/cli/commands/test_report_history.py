"""``agenteval report --history``: which runs, where it is written, and what ends it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.cli.commands import output
from agenteval.cli.commands.output import write_report_text
from agenteval.cli.commands.report_history import report_history
from agenteval.cli.safe_output import Form
from agenteval.core.errors import AuthorError
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import FAIL, PASS, Played, events_of


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def keep(root: Path, day: int, played: Played = PASS, *, is_whole: bool = True) -> Path:
    request = {"filters": {}} if is_whole else {"paths": ["a"]}
    name = f"r{day}"
    return keep_run(root, name, events_of({"a": [played]}), f"2026-11-0{day}T00:00:00Z", request=request)


@pytest.mark.parametrize("played", [PASS, FAIL])
def test_a_history_decides_nothing(root: Path, capsys: pytest.CaptureFixture[str], played: Played) -> None:
    keep(root, 1, played)
    assert report_history() == 0
    assert capsys.readouterr().out.startswith("History: 1 run")


def test_reports_are_files_or_the_screen_which_comes_last(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in (1, 2, 3):
        keep(root, day)
    assert report_history(2, reports=["terminal", "json=out.json", "markdown"]) == 0
    shown = capsys.readouterr()
    assert [each["run"] for each in json.loads((root / "out.json").read_text("utf-8"))["points"]] == [
        "r2",
        "r3",
    ]
    assert "out.json" in shown.err
    assert shown.out.index("## History") < shown.out.rindex("History: 2 runs")


@pytest.mark.parametrize("name", ["junit", "github", "comment", "jsno", "", "my.py:Team"])
def test_formats_that_know_no_history(root: Path, name: str) -> None:
    keep(root, 1)
    with pytest.raises(AuthorError) as error:
        report_history(reports=[name])
    assert f"'{name}'" in str(error.value)
    assert any(known in str(error.value) for known in ("json", "terminal", "markdown"))


def test_a_report_that_cannot_be_written(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(root, 1)

    def write(name: str, text: str, path: Path | None, form: Form) -> None:
        if name == "json":
            raise OSError(28, "full")
        write_report_text(name, text, path, form)

    monkeypatch.setattr(output, "write_report_text", write)
    assert report_history(reports=["json=out.json", "terminal"]) == 3
    shown = capsys.readouterr()
    assert shown.out
    assert "full" in shown.err


def test_no_journal_is_overwritten(root: Path) -> None:
    for day in (1, 2):
        keep(root, day)
    for name in ("r1", "r2"):
        with pytest.raises(AuthorError):
            report_history(reports=[f"json=.agenteval/runs/{name}/events.jsonl"])


def test_without_runs_there_is_no_history(root: Path) -> None:
    with pytest.raises(AuthorError) as error:
        report_history()
    assert str(root / ".agenteval" / "runs") in str(error.value)
    assert error.value.exit_code == 2


def test_selections_alone_are_no_history(root: Path) -> None:
    for day in (1, 2):
        keep(root, day, is_whole=False)
    with pytest.raises(AuthorError) as error:
        report_history()
    assert "2 runs: a selection of the scenarios" in str(error.value)
