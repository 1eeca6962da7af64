"""The runs of a suite: which of the kept runs belong to its history, and what is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.event import Event
from agenteval.files import runs
from agenteval.files.journal import event_to_json, lock_run
from agenteval.running import run_history
from agenteval.running.run_history import MOST_RUNS, load_history
from agenteval.running.stored_runs import DecidedRun, decide_stored_run
from agenteval.verdict.history import LeftOutReason
from tests.support.kept_runs import keep_run
from tests.support.verdict_runs import FAIL, PASS, Played, events_of

RUN: dict[str, Any] = {"filters": {}}
"""The request of a run of the whole suite."""


def keep(place: Path, day: int, *played: Played, request: dict[str, Any] = RUN, **more: Any) -> Path:
    """The run ``rDAY`` with a scenario for each conversation: a, b, …"""
    events = events_of({"abcd"[n]: [each] for n, each in enumerate(played or (PASS,))}, **more)
    return keep_run(place, f"r{day:02}", events, f"2026-11-{day:02}T00:00:00Z", request=request)


def ids(root: Path, most: int = MOST_RUNS) -> list[str]:
    return [point.run_id for point in load_history(root, most).history.points]


def left_out(root: Path, most: int = MOST_RUNS) -> dict[LeftOutReason, tuple[str, ...]]:
    return {each.reason: each.run_ids for each in load_history(root, most).history.left_out}


def test_the_points_are_those_of_the_runs_oldest_first(tmp_path: Path) -> None:
    for day, played in ((2, FAIL), (1, PASS), (3, PASS)):
        keep(tmp_path, day, played)
    history = load_history(tmp_path).history
    assert [(point.run_id, point.verdict) for point in history.points] == [
        ("r01", "passed"), ("r02", "failed"), ("r03", "passed"),
    ]  # fmt: skip
    assert (history.left_out, history.older) == ((), 0)


@pytest.mark.parametrize(
    ("most", "found", "older"), [(1, ["r03"], 2), (2, ["r02", "r03"], 1), (3, ["r01", "r02", "r03"], 0)]
)
def test_only_the_latest_are_read(tmp_path: Path, most: int, found: list[str], older: int) -> None:
    for day in (1, 2, 3):
        keep(tmp_path, day)
    assert ids(tmp_path, most) == found
    assert load_history(tmp_path, most).history.older == older


def test_without_runs_there_are_no_points(tmp_path: Path) -> None:
    history, inputs = load_history(tmp_path)
    assert (history.points, history.left_out, history.older, inputs) == ((), (), 0, frozenset())


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({}, LeftOutReason.SCORE),
        ({"paths": ["a.yaml"]}, LeftOutReason.SELECTION),
        ({"last_failed": True}, LeftOutReason.SELECTION),
        ({"filters": {"scenarios": ["a"]}}, LeftOutReason.SELECTION),
        ({"filters": {"first": 1}}, LeftOutReason.SELECTION),
        ({"filters": {"agent": "bot"}}, None),  # another agent for all scenarios
        ({"scenarios": [{"id": "a"}], "filters": {}}, LeftOutReason.GIVEN_SCENARIOS),
        ({"agent": {"target": "a:b"}, "filters": {}}, None),
    ],
)
def test_what_is_no_run_of_the_suite(
    tmp_path: Path, request_: dict[str, Any], reason: LeftOutReason | None
) -> None:
    keep(tmp_path, 1)
    keep(tmp_path, 2, request=request_)
    keep(tmp_path, 3, request=request_)
    found = [] if reason else ["r02", "r03"]
    assert ids(tmp_path) == ["r01", *found]
    assert left_out(tmp_path) == ({reason: ("r02", "r03")} if reason else {})


def test_what_is_left_out_does_not_count_towards_the_number(tmp_path: Path) -> None:
    for day in (1, 2, 4):
        keep(tmp_path, day)
    keep(tmp_path, 3, request={})
    assert ids(tmp_path, 2) == ["r02", "r04"]
    assert left_out(tmp_path, 2) == {LeftOutReason.SCORE: ("r03",)}
    assert left_out(tmp_path, 1) == {}  # it is older than the runs that are shown


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ({"profile": "ci"}, {}, "agenteval.yaml with the profile ci"),
        ({}, {"profile": "ci"}, "agenteval.yaml"),
        ({"source": "ci/other.yaml"}, {}, "other.yaml"),
        ({"source": ""}, {}, "no configuration"),
    ],
)
def test_the_newest_run_decides_which_suite_it_is(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], name: str
) -> None:
    for day, config in ((1, first), (2, first), (3, second), (4, second)):
        keep(tmp_path, day, **{"source": "agenteval.yaml", **config})
    keep(tmp_path, 5, request={"paths": ["a"]}, **{"source": "agenteval.yaml", **first})
    history = load_history(tmp_path).history
    assert [point.run_id for point in history.points] == ["r03", "r04"]
    assert (history.config, history.profile) == ("agenteval.yaml", second.get("profile", ""))
    others = {each.reason: (each.run_ids, each.details) for each in history.left_out}
    assert others == {
        LeftOutReason.SELECTION: (("r05",), ()),
        LeftOutReason.OTHER_SUITE: (("r01", "r02"), (name,)),
    }


def test_the_folder_of_a_configuration_does_not_matter(tmp_path: Path) -> None:
    keep(tmp_path, 1, source="agenteval.yaml", root="/ci/build")
    keep(tmp_path, 2, source="../agenteval.yaml", root="/home")
    assert ids(tmp_path) == ["r01", "r02"]


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────


def write_line(folder: Path, line: str, at: int) -> None:
    path = folder / "events.jsonl"
    lines = path.read_text("utf-8").splitlines()
    lines[at:at] = [line]
    path.write_text("\n".join(lines) + "\n", "utf-8")


@pytest.mark.parametrize(
    ("line", "at", "fact"),
    [
        ('{"type": "run_started", "schema_version": 1}', 0, "version 1"),
        ("no JSON", 0, "not a run journal"),
        ("no JSON", 2, "invalid journal event"),
        ('{"type": "notice", "text": "first"}', 0, "run_started"),
        ('{"type": "run_started", "schema_version": 9}', 0, "run_started"),
    ],
)
def test_a_broken_journal_is_counted_and_hides_no_other(
    tmp_path: Path, line: str, at: int, fact: str
) -> None:
    for day in (1, 2, 3):
        keep(tmp_path, day)
    write_line(tmp_path / ".agenteval/runs/r02", line, at)
    assert ids(tmp_path) == ["r01", "r03"]
    (only,) = load_history(tmp_path).history.left_out
    assert (only.reason, only.run_ids) == (LeftOutReason.UNREADABLE, ("r02",))
    (detail,) = only.details
    assert fact in detail
    assert "\n" not in detail


@pytest.mark.skipif(os.name == "nt", reason="locks of the process itself")
def test_a_run_under_way_is_left_out_and_one_that_was_cut_off_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in (1, 2):
        keep(tmp_path, day, outcome=None)
    monkeypatch.setattr(run_history, "is_run_locked", lambda folder: folder.name == "r02")
    with lock_run(tmp_path / ".agenteval/runs/r02"):
        assert left_out(tmp_path) == {LeftOutReason.IN_PROGRESS: ("r02",)}
    (point,) = load_history(tmp_path).history.points
    assert (point.run_id, point.is_complete) == ("r01", False)


# ── neighbours ───────────────────────────────────────────────────────────────────────────────────


def test_a_change_is_that_from_the_run_before(tmp_path: Path) -> None:
    keep(tmp_path, 1)
    keep(tmp_path, 2)
    keep(tmp_path, 3, request={})  # what is left out is no neighbour
    keep(tmp_path, 4, PASS, FAIL)
    keep(tmp_path, 5, PASS, PASS)
    points = load_history(tmp_path).history.points
    assert [point.changes for point in points] == [(), (), ("1 scenario added: b",), ()]
    assert [point.changes for point in load_history(tmp_path, 2).history.points] == [(), ()]


# ── memory, files ────────────────────────────────────────────────────────────────────────────────


def test_one_run_is_in_memory_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gc
    import weakref

    for day in (1, 2, 3):
        keep(tmp_path, day)
    reports: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def decide(path: Path) -> DecidedRun:
        gc.collect()
        alive.append(sum(report() is not None for report in reports))
        kept = decide_stored_run(path)
        reports.append(weakref.ref(kept.report))
        return kept

    monkeypatch.setattr(run_history, "decide_stored_run", decide)
    assert len(load_history(tmp_path).history.points) == 3
    assert alive == [0, 0, 0]


def test_what_is_left_out_is_not_read_beyond_its_first_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path, 1)
    keep(tmp_path, 2, request={})
    loaded: list[str] = []

    def events(run: runs.StoredRun) -> Iterator[tuple[Event, int]]:
        loaded.append(run.file.parent.name)
        return read(run)

    read = runs.StoredRun.events
    monkeypatch.setattr(runs.StoredRun, "events", events)
    load_history(tmp_path)
    assert loaded == ["r01"]


def test_the_files_it_was_made_from(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("")
    keep(tmp_path, 1, root=str(tmp_path), agent={"name": "bot", "target": "agent.py:x"})
    keep(tmp_path, 2, root=str(tmp_path), agent={"name": "bot", "target": "agent.py:x"})
    keep(tmp_path, 3, request={})
    inputs = {os.path.realpath(path) for path in load_history(tmp_path).inputs}
    own = {tmp_path / ".agenteval/runs" / name / "events.jsonl" for name in ("r01", "r02")}
    assert {os.path.realpath(path) for path in (*own, tmp_path / "agent.py")} <= inputs
    assert os.path.realpath(tmp_path / ".agenteval/runs/r03/events.jsonl") not in inputs


def test_the_order_is_that_of_the_start_not_of_the_name(tmp_path: Path) -> None:
    first, second = keep(tmp_path, 1), keep(tmp_path, 2)
    text = event_to_json(
        runs.load_run_start(second).model_copy(update={"started_at": "2026-01-01T00:00:00Z"})
    )
    lines = (second / "events.jsonl").read_text("utf-8").splitlines()
    (second / "events.jsonl").write_text("\n".join([text, *lines[1:]]) + "\n", "utf-8")
    assert ids(tmp_path) == [second.name, first.name]
