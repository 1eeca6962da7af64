"""Runs that are played: in a folder of their own, or to their end after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval import __version__
from agenteval.core.errors import AuthorError, RunLockedError
from agenteval.core.event import RunStarted
from agenteval.planning.request import Request
from agenteval.planning.run_preparation import prepare
from agenteval.running.live_run import (
    _require_resumable,
    _restore_working_directory,
    count_done,
    plan_start,
    play,
    play_remaining,
    reopen,
)
from agenteval.running.observer import SilentObserver
from agenteval.running.registries import REGISTRIES
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import FAIL, PASS, Played, events_of

PLAYED = {"request": {"cwd": ".", "record": None}, "versions": {"agenteval": __version__}}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def begun(**run: Any) -> RunStarted:
    first = events_of({"a": [PASS]}, run=run)[0]
    assert isinstance(first, RunStarted)
    return first


def test_a_run_of_this_version_that_was_played() -> None:
    run = begun(**PLAYED)
    assert _require_resumable([run]) is run


@pytest.mark.parametrize(
    ("run", "facts"),
    [
        ({"versions": PLAYED["versions"]}, ["no request"]),
        ({**PLAYED, "versions": {"agenteval": "0.1"}}, ["0.1", __version__]),
        ({**PLAYED, "versions": {}}, [__version__]),
    ],
)
def test_runs_that_cannot_be_resumed(run: dict[str, Any], facts: list[str]) -> None:
    with pytest.raises(AuthorError) as error:
        _require_resumable([begun(**run)])
    for fact in facts:
        assert fact in str(error.value)


def test_the_working_directory_of_the_run(root: Path) -> None:
    (root / "deep").mkdir()
    _restore_working_directory(begun(request={"cwd": str(root / "deep")}))
    assert Path.cwd() == root / "deep"
    with pytest.raises(AuthorError) as error:
        _restore_working_directory(begun(request={"cwd": str(root / "gone")}))
    assert str(root / "gone") in str(error.value)


@pytest.mark.parametrize(("played", "code"), [(PASS, 0), (FAIL, 1)])
def test_a_complete_run_is_only_decided(root: Path, played: Played, code: int) -> None:
    folder = keep_run(root, "r1", events_of({"a": [played, PASS]}, run=PLAYED))
    before = (folder / "events.jsonl").read_bytes()
    with reopen(folder, {}) as found:
        assert found.prepared is None
        assert (found.started.run_id, count_done(found)) == ("r1", (2, 2))
        assert (found.config, found.scenarios) == (found.started.config, found.started.scenarios)
        run = play_remaining(found, SilentObserver())
    assert (run.report.run.run_id, run.decision.exit_code, run.folder) == ("r1", code, folder)
    assert (folder / "events.jsonl").read_bytes() == before


def test_a_run_that_another_process_has_played_is_not_played_again(root: Path) -> None:
    (root / "agent.py").write_text("def agent(message):\n    raise SystemExit\n")
    (root / "agenteval.yaml").write_text("agent: {name: bot, target: 'agent.py:agent'}\ncode_only: true\n")
    (root / "scenarios").mkdir()
    (root / "scenarios" / "a.yaml").write_text("{id: a, turns: [hi], checks: none}\n")
    prepared, observer = prepare(Request(), REGISTRIES), SilentObserver()
    begun = plan_start(prepared, observer, "r1")
    assert begun.run_id == "r1"
    folder = keep_run(root, "r1", events_of({"a": [PASS]}))
    before = (folder / "events.jsonl").read_bytes()
    with pytest.raises(RunLockedError) as error:
        play(prepared, begun, observer)
    assert "r1" in str(error.value)
    assert (folder / "events.jsonl").read_bytes() == before
