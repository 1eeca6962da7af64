"""``agenteval runs``: what became of each kept run, and how the list says it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval import __version__
from agenteval.cli.commands import list_runs as module
from agenteval.cli.commands.list_runs import CACHE_FILE, LATEST, RunEntry, list_runs
from agenteval.core.decision import REPORTED
from agenteval.core.event import RunResumed, TurnFinished
from agenteval.core.trajectory import Step, Turn, Usage
from tests.support.kept_runs import keep_run, write_journal
from tests.support.verdict_runs import CUT, FAIL, LOST, PASS, UNSURE, Played, events_of

OURS = {"versions": {"agenteval": __version__}}
PLAYED = {"request": {"paths": []}, **OURS}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TZ", "UTC")
    return tmp_path


@pytest.fixture
def listed(capsys: pytest.CaptureFixture[str]) -> Any:
    def entries(**more: Any) -> list[dict[str, Any]]:
        assert list_runs(as_json=True, **more) == 0
        read: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return read

    return entries


def began(day: int) -> str:
    return f"2026-11-{day:02}T10:20:00.000Z"


def keep(
    root: Path, name: str, day: int, played: Sequence[Played | None] = (PASS,), run: Any = PLAYED, **more: Any
) -> Path:
    return keep_run(root, name, events_of({"a": played}, run=run, **more), began(day))


def test_all_of_an_entry(root: Path, listed: Any) -> None:
    events = events_of({"a": [PASS, PASS], "b": [FAIL], "c": [UNSURE]}, run=PLAYED, elapsed_s=2.5)
    keep_run(root, "r1", events, began(1))
    assert listed() == [
        {
            "id": "r1",
            "started_at": began(1),
            "state": "complete",
            "kind": "run",
            "verdict": "failed",
            "exit_code": 1,
            "scenarios": {"passed": 1, "failed": 1, "inconclusive": 1},
            "conversations": 4,
            "agents": ["bot"],
            "selection": False,
            "elapsed_s": 2.5,
            "cost": None,  # nobody knows the price
            "shard": "",
            "merged": "",
            "resumable": False,
            "problem": "",
        }
    ]


@pytest.mark.parametrize(
    ("played", "more", "expected"),
    [
        ([PASS], {}, {"verdict": "passed", "exit_code": 0, "state": "complete", "resumable": False}),
        ([UNSURE], {}, {"verdict": "inconclusive", "state": "complete"}),
        ([PASS], {"run": OURS}, {"kind": "score", "resumable": False}),
        ([PASS], {"outcome": None}, {"state": "cut off", "elapsed_s": None, "resumable": True}),
        ([PASS, CUT], {"outcome": None}, {"state": "cut off", "resumable": True, "conversations": 2}),
        (
            [PASS, None],
            {"outcome": "interrupted"},
            {"state": "complete", "resumable": True, "conversations": 1},
        ),
        ([FAIL, None], {"outcome": "fail_fast"}, {"state": "complete", "resumable": False}),
        ([PASS], {"outcome": None, "run": OURS}, {"state": "cut off", "kind": "score", "resumable": False}),
        (
            [PASS],
            {"outcome": None, "run": {**PLAYED, "versions": {"agenteval": "0.1"}}},
            {"state": "cut off", "resumable": False},
        ),
        ([PASS], {"agents": ("y", "x")}, {"agents": ["y", "x"], "conversations": 2}),
        ([PASS], {"run": {**PLAYED, "request": {"paths": ["a"]}}}, {"kind": "run"}),
    ],
)
def test_what_became_of_a_run(
    root: Path, listed: Any, played: list[Played | None], more: dict[str, Any], expected: dict[str, Any]
) -> None:
    keep(root, "r1", 1, played, **more)
    (entry,) = listed()
    assert {key: entry[key] for key in expected} == expected


def test_a_run_that_goes_on_and_one_that_cannot_be_read(
    root: Path, listed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(root, "r1", 1, outcome=None)
    broken = keep(root, "r2", 2)
    (broken / "events.jsonl").write_text('{"started_at":"2026-11-02T10:20:00.000Z", oops\n')
    second, first = listed()
    assert (first["state"], first["resumable"]) == ("cut off", True)
    assert (second["id"], second["started_at"], second["state"]) == ("r2", began(2), "unreadable")
    assert second["problem"]
    assert "\n" not in second["problem"]
    assert [second[key] for key in ("kind", "verdict", "exit_code", "scenarios", "cost")] == [None] * 5
    monkeypatch.setattr(module, "is_run_locked", lambda _: True)
    second, first = listed()
    assert (first["state"], first["resumable"], first["verdict"]) == ("running", False, "inconclusive")
    assert (second["state"], second["verdict"]) == ("running", None)
    assert list(root.rglob(CACHE_FILE)) == []


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(calls=1, input_tokens=5, cost=0.25), 0.25),
        (Usage(calls=1, input_tokens=5), None),
        (Usage(), 0.0),
    ],
)
def test_the_cost(root: Path, listed: Any, usage: Usage, cost: float | None) -> None:
    events = [
        event.model_copy(update={"turn": Turn(user="hi", steps=(Step(text="x", usage=usage),))})
        if isinstance(event, TurnFinished)
        else event
        for event in events_of({"a": [PASS]}, run=PLAYED)
    ]
    keep_run(root, "r1", events)
    assert listed()[0]["cost"] == cost


# ── which runs ───────────────────────────────────────────────────────────────────────────────────


def test_the_latest_come_first_and_the_others_where_they_are_wanted(
    root: Path, listed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"r{day:02}" for day in range(1, LATEST + 2)]
    for day, name in enumerate(reversed(names), 1):
        keep(root, name, day)
    assert [each["id"] for each in listed()] == names[:LATEST]
    assert [each["id"] for each in listed(every=True)] == names
    list_runs()
    *rows, last = capsys.readouterr().out.splitlines()
    assert len(rows) == LATEST + 1
    assert "1 older run;" in last
    assert "--all" in last
    list_runs(every=True)
    assert "--all" not in capsys.readouterr().out


def test_no_runs(root: Path, listed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed() == []
    assert list_runs() == 0
    said = capsys.readouterr().out
    assert str(root / ".agenteval" / "runs") in said
    assert "agenteval run" in said


# ── what was read before ─────────────────────────────────────────────────────────────────────────


def test_a_complete_run_is_read_once(root: Path, listed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(root, "r1", 1, agents=("x", "y"))
    keep(root, "r2", 2, outcome=None)
    read: list[str] = []
    whole = module._read_entry

    def read_entry(folder: Path) -> RunEntry:
        read.append(folder.name)
        return whole(folder)

    monkeypatch.setattr(module, "_read_entry", read_entry)
    first = listed()
    assert listed() == first
    assert read == ["r2", "r1", "r2"]
    cache = root / ".agenteval" / "runs" / "r1" / CACHE_FILE
    assert cache.stat().st_mode & 0o777 == 0o600
    (root / ".agenteval" / "runs" / "r1").rename(root / ".agenteval" / "runs" / "r3")
    assert [each["id"] for each in listed()] == ["r2", "r3"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "{}", '{"stamp": []}', '{"stamp": [], "entry": {}}', "null", "\udcff"]
)
def test_a_broken_cache_is_not_used(root: Path, listed: Any, text: str) -> None:
    folder = keep(root, "r1", 1)
    first = listed()
    (folder / CACHE_FILE).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert listed() == first


def test_a_cache_of_an_earlier_journal_is_not_used(
    root: Path, listed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = events_of({"a": [PASS, None]}, run=PLAYED, outcome="interrupted")
    folder = keep_run(root, "r1", events)
    assert listed()[0]["state"] == "complete"
    begun = json.loads((folder / "events.jsonl").read_text().splitlines()[0])
    write_journal(folder, [*events, RunResumed(at=began(2))])
    assert (listed()[0]["state"], begun["run_id"]) == ("cut off", "r1")
    keep(root, "r1", 1)
    assert listed()[0]["verdict"] == "passed"
    monkeypatch.setattr(module, "__version__", "another")
    monkeypatch.setattr(module, "_read_entry", lambda folder: RunEntry(folder.name, "anew", "unreadable"))
    assert listed()[0]["started_at"] == "anew"


# ── words ────────────────────────────────────────────────────────────────────────────────────────

WHOLE = RunEntry(
    *("r1", "2026-11-01T10:20:30.000Z", "complete", "run", "failed", 1),
    scenarios={"passed": 19, "failed": 4, "inconclusive": 0},
    conversations=30,
    agents=("bot",),
    elapsed_s=1.0,
    cost=0.11,
)


@pytest.mark.parametrize(
    ("changes", "facts", "without"),
    [
        ({}, ["r1", "failed", "19 of 23", "bot", "$0.1100"], ["score", "selection", "resumable", "complete"]),
        ({"agents": ("a", "b")}, ["a, b"], []),
        ({"agents": ()}, ["–"], []),
        ({"cost": None}, ["–"], ["$"]),
        ({"cost": 0.0}, [" 0"], ["$"]),
        ({"cost": 0.00001}, ["$<0.0001"], []),
        ({"kind": "score", "selection": True}, ["score, a selection"], []),
        ({"state": "cut off", "resumable": True}, ["cut off, resumable"], []),
        ({"state": "running"}, ["running"], ["resumable"]),
        ({"verdict": REPORTED}, [REPORTED, "–"], ["of 23"]),
        (
            {"scenarios": None, "verdict": None, "state": "unreadable", "problem": "why"},
            ["unreadable: why"],
            ["of"],
        ),
        ({"scenarios": {"passed": 1000, "failed": 1}}, ["1,000 of 1,001"], []),
        ({"started_at": ""}, ["–"], ["2026"]),
        ({"started_at": "yesterday"}, ["–"], ["yesterday"]),
        ({"id": "r\x1b[2J1"}, ["r1"], ["\x1b"]),
    ],
)
def test_a_line_of_the_list(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    facts: list[str],
    without: list[str],
) -> None:
    keep(root, "r1", 1)
    monkeypatch.setattr(module, "_entry", lambda _: WHOLE._replace(**changes))
    assert list_runs() == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "began", "verdict", "scenarios", "agent", "cost"]
    for fact in facts:
        assert fact in line
    for fact in without:
        assert fact not in line
    if "started_at" not in changes:
        assert re.search(r"2026-1[01]-\d\d \d\d:\d\d ", line)


def test_lost_conversations_are_counted(root: Path, listed: Any) -> None:
    keep(root, "r1", 1, [LOST, PASS])
    assert listed()[0]["conversations"] == 2
