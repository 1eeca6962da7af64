"""Killed at any moment and resumed, a run ends as if nothing had happened: nothing lost, nothing twice."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval.core.errors import AuthorError
from agenteval.core.event import Event, Notice, SampleFinished
from agenteval.core.scenario import SampleKey
from agenteval.core.trajectory import Stop, StopReason
from agenteval.files import runs
from agenteval.files.journal import Journal, event_to_json, read_journal
from agenteval.verdict.report import build_report
from agenteval.verdict.resumption import events_to_keep, finished_samples, run_ending
from tests.support.cut_runs import (
    SAMPLES,
    asked,
    copy_to,
    events,
    finished,
    folder,
    journal,
    results_of,
    set_up,
)
from tests.support.kit import Project
from tests.support.patience import eventually

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills a process")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("undisturbed"))
    set_up(project)
    assert project.call("run").code == 1
    assert sorted(Counter(asked(project)).values()) == [1] * SAMPLES
    return project


def start_and_kill(project: Project, *arguments: str, lines: int) -> None:
    """Kill the process as soon as the journal has so many lines (or at once where it has them)."""
    process = project.start("run", *arguments)
    try:
        while process.poll() is None and length(project) < lines:
            time.sleep(0.0005)
    finally:
        process.kill()


def length(project: Project) -> int:
    found = list(project.root.glob(".agenteval/runs/*/events.jsonl"))
    return found[0].read_bytes().count(b"\n") if found else 0


@pytest.mark.parametrize("lines", [1, 30, 70])
def test_killed_and_resumed(project: Project, undisturbed: Project, lines: int) -> None:
    set_up(project)
    start_and_kill(project, lines=lines)
    done_before = finished(project)
    assert not (folder(project) / "results.json").exists()
    done = project.call("run", "--resume", "latest")
    assert done.code == 1, done.err
    assert results_of(project) == results_of(undisturbed)
    times = Counter(asked(project))
    assert all(times[name] == 1 for name in done_before)
    assert len(times) == SAMPLES
    assert max(times.values()) <= 2
    # What the journal says afterwards is the same again.
    assert project.call("report", "latest", "--report", "json=again.json").code == 1
    again = json.loads((project.root / "again.json").read_text("utf-8"))
    assert again == json.loads((folder(project) / "results.json").read_text("utf-8"))


def test_killed_again_and_again(project: Project, undisturbed: Project) -> None:
    set_up(project)
    start_and_kill(project, lines=20)
    start_and_kill(project, "--resume", "latest", lines=length(project) + 12)
    assert project.call("run", "--resume", "latest").code == 1
    assert results_of(project) == results_of(undisturbed)
    ends = Counter(finished(project))
    assert sorted(ends.values()) == [1] * SAMPLES


# ── the end of the file ──────────────────────────────────────────────────────────────────────────


def cuts(data: bytes) -> range:
    """Every length of the file that ends within its last two lines."""
    return range(data.rstrip(b"\n").rfind(b"\n", 0, data.rstrip(b"\n").rfind(b"\n")) + 1, len(data) + 1)


def test_a_journal_that_ends_anywhere_is_gone_on_with(
    undisturbed: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)  # there is no power cut here, but a thousand files
    first, *_, last = journal(undisturbed).read_bytes().splitlines(keepends=True)
    data = first + f"{event_to_json(Notice(text='Größe ✓'))}\n".encode() + last
    path = tmp_path / "events.jsonl"
    more = Notice(text="it goes on")
    assert len(cuts(data)) > 100
    for length in cuts(data):
        path.write_bytes(data[:length])
        before = list(read_journal(path))
        with Journal.reopen(path) as resumed:
            resumed(more)
        assert list(read_journal(path)) == [*before, more], length


@pytest.mark.parametrize("missing", [1, 60, 400])
def test_a_torn_end_is_made_good(project: Project, undisturbed: Project, missing: int) -> None:
    data = copy_to(project, undisturbed)
    journal(project).write_bytes(data[:-missing])
    assert project.call("run", "--resume", "latest").code == 1
    assert results_of(project) == results_of(undisturbed)
    assert events(project)[-1]["type"] == "run_finished"
    assert sorted(Counter(asked(project)).values()) == [1] * SAMPLES  # all had been done


@pytest.mark.parametrize("left", [0, 300])
def test_of_a_run_that_was_killed_at_its_very_beginning_nothing_is_left(
    project: Project, undisturbed: Project, left: int
) -> None:
    data = copy_to(project, undisturbed)
    journal(project).write_bytes(data[:left])
    done = project.call("run", "--resume", folder(project).name)
    assert done.code == 2
    assert "run_started" in done.err
    assert journal(project).read_bytes() == data[:left]


def test_every_cut_of_the_journal_keeps_what_is_over(undisturbed: Project) -> None:
    told = list(read_journal(journal(undisturbed)))
    whole = build_report(told)
    for length in range(1, len(told)):
        begun = told[:length]
        left = list(events_to_keep(begun))
        done = finished_samples(begun)
        assert done == {event.key for event in begun if isinstance(event, SampleFinished)}
        assert [s for s in whole.samples if s.key in done] == list(build_report(left).samples)
        assert (run_ending(begun) is not None) == (length == len(told))


# ── the file itself ──────────────────────────────────────────────────────────────────────────────

KEY = SampleKey(scenario="a", agent="bot")


def end(epoch: int) -> Event:
    return SampleFinished(
        key=SampleKey(scenario="a", agent="bot", epoch=epoch), stop=Stop(reason=StopReason.SCRIPT_DONE)
    )


def test_a_finished_sample_is_synced_and_nothing_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    with Journal(tmp_path / "events.jsonl") as writer:
        monkeypatch.setattr("os.fsync", lambda _: synced.append(writer.path.read_bytes().count(b"\n")))
        writer(Notice(text="no sample"))
        time.sleep(0.02)
        assert synced == []
        for epoch in range(50):
            writer(end(epoch))
    assert synced[-1] == 51  # the last sync came after the last line
    assert len(synced) <= 51


def test_a_disk_that_cannot_sync_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", broken)
    with Journal(tmp_path / "events.jsonl") as writer:
        writer(end(0))
        assert eventually_fails(lambda: writer(Notice(text="next"))) == "Input/output error"


def eventually_fails(write: Callable[[], None]) -> str | None:
    found: list[str | None] = []

    def fails() -> bool:
        try:
            write()
        except OSError as error:
            found.append(error.strerror)
        return bool(found)

    return found[0] if eventually(fails) else None


def test_a_line_is_written_in_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = Notice(text="long " * 100_000)
    with Journal(tmp_path / "events.jsonl") as writer:
        pieces: list[int] = []
        real = writer._file

        class Counting:
            def write(self, data: bytes) -> int:
                pieces.append(len(data))
                return real.write(data)

            def __getattr__(self, name: str) -> object:
                return getattr(real, name)

        monkeypatch.setattr(writer, "_file", Counting())
        writer(event)
    assert pieces == [len(event_to_json(event)) + 1]


def test_a_journal_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"type": "run_started", "schema_version": 99}\n{"torn', "utf-8")
    with pytest.raises(AuthorError, match="99"):
        runs.load_run(path)
