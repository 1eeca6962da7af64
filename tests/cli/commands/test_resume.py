"""``run --resume``: which runs can be resumed, and with which options."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval import __version__
from agenteval.cli.commands.resume import (
    _folder,
    _refuse_settings,
    _with_absolute_path,
    resume,
)
from agenteval.core.config import ReporterChoice
from agenteval.core.errors import AuthorError
from agenteval.planning.request import Request
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import FAIL, PASS, Played, events_of

PLAYED = {"request": {"cwd": ".", "record": None}, "versions": {"agenteval": __version__}}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ((), ()),
        (("--resume", "--concurrency", "--report", "--verbose", "--quiet"), ()),
        (("--resume", "--epochs"), ("--epochs",)),
        (("PATHS", "--report", "--tag"), ("PATHS", "--tag")),
    ],
)
def test_only_options_that_change_no_result(given: tuple[str, ...], refused: tuple[str, ...]) -> None:
    request = Request(options_given=given)
    if not refused:
        _refuse_settings(request)
        return
    with pytest.raises(AuthorError) as error:
        _refuse_settings(request)
    (problem,) = error.value.problems
    assert ", ".join(refused) in problem.what
    assert not any(name in problem.what for name in ("--report", "--concurrency"))


@pytest.mark.parametrize(
    ("path", "is_changed"), [(None, False), ("-", False), ("a.json", True), ("/x/a.json", False)]
)
def test_paths_are_of_the_working_directory(root: Path, path: str | None, is_changed: bool) -> None:
    choice = ReporterChoice(name="json", path=path)
    found = _with_absolute_path(choice)
    assert found.name == "json"
    assert found.path == (str(root / "a.json") if is_changed else path)


def test_the_folder_of_a_run(root: Path) -> None:
    folder = keep_run(root, "r1", events_of({"a": [PASS]}))
    for name in ("r1", "latest", ".agenteval/runs/r1", ".agenteval/runs/r1/events.jsonl"):
        assert _folder(name) == folder
    (root / "other.jsonl").write_text((folder / "events.jsonl").read_text())
    for name in ("other.jsonl", "r9"):
        with pytest.raises(AuthorError):
            _folder(name)


@pytest.mark.parametrize(("played", "code"), [(PASS, 0), (FAIL, 1)])
def test_of_a_complete_run_only_the_reports_are_written(
    root: Path, capsys: pytest.CaptureFixture[str], played: Played, code: int
) -> None:
    folder = keep_run(root, "r1", events_of({"a": [played]}, run=PLAYED))
    before = (folder / "events.jsonl").read_bytes()
    reports = [ReporterChoice(name="json", path="out.json")]
    assert resume(Request(resume="r1"), reports=reports) == code
    assert (root / "out.json").is_file()
    assert (folder / "events.jsonl").read_bytes() == before
    assert "r1" in capsys.readouterr().err


def test_no_report_overwrites_the_journal(root: Path) -> None:
    folder = keep_run(root, "r1", events_of({"a": [PASS]}, run=PLAYED))
    before = (folder / "events.jsonl").read_bytes()
    reports = [ReporterChoice(name="json", path=".agenteval/runs/r1/events.jsonl")]
    with pytest.raises(AuthorError) as error:
        resume(Request(resume="r1"), reports=reports)
    assert "events.jsonl" in str(error.value)
    assert (folder / "events.jsonl").read_bytes() == before
