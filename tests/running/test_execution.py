"""The frame of a run: its id, its folder, its first and last event, and sinks that fail."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval import __version__
from agenteval.conversation.runtime import RunControl
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError
from agenteval.core.event import Event, Notice
from agenteval.running.execution import (
    FanOut,
    make_run_folder,
    new_run_id,
    stamp_run_finished,
    stamp_run_started,
    utc_timestamp,
)
from tests.support.plans import plan_for

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def test_ids_are_times_and_unique() -> None:
    ids = {new_run_id() for _ in range(20)}
    assert len(ids) == 20
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{6}", each) for each in ids)


def test_times_are_in_utc_to_the_millisecond() -> None:
    assert TIME.fullmatch(utc_timestamp())


def test_the_first_event() -> None:
    config = Config()
    begun = stamp_run_started(
        config, plan_for(config), "r1", ["run", "-x"], scenarios=(), commit="c", dirty=True
    )
    assert (begun.run_id, begun.command, begun.commit, begun.dirty) == ("r1", ("run", "-x"), "c", True)
    assert TIME.fullmatch(begun.started_at)
    assert set(begun.versions) == {"agenteval", "python"}
    assert begun.versions["agenteval"] == __version__
    assert begun.config == config


def test_the_last_event() -> None:
    control = RunControl()
    ended = stamp_run_finished(control, time.monotonic() - 5)
    assert (ended.outcome, ended.unmet) == ("complete", {})
    assert 5 <= ended.elapsed_s < 60
    assert TIME.fullmatch(ended.finished_at)
    control.stop("interrupted")
    ended = stamp_run_finished(control, time.monotonic(), {"a": "b"})
    assert (ended.outcome, ended.unmet) == ("interrupted", {"a": "b"})


def test_the_folder_of_a_run(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path, "r1")
    assert folder == tmp_path / ".agenteval" / "runs" / "r1"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / ".agenteval" / ".gitignore").is_file()


def test_the_folder_of_a_run_that_several_processes_share(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path, "r1")
    (folder / "events.jsonl").write_text("kept")
    assert make_run_folder(tmp_path, "r1") == folder
    assert (folder / "events.jsonl").read_text() == "kept"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / ".agenteval").write_text("")
    with pytest.raises(AuthorError) as error:
        make_run_folder(tmp_path, "r1")
    assert str(tmp_path / ".agenteval" / "runs" / "r1") in str(error.value)


class Breaks:
    def __init__(self, at: int) -> None:
        self.at, self.seen = at, 0

    def __call__(self, event: Event) -> None:
        self.seen += 1
        if self.seen == self.at:
            raise ValueError("no more")


def test_every_sink_gets_every_event_in_order() -> None:
    seen: list[str] = []

    def told(name: str) -> Callable[[Event], None]:
        return lambda event: seen.append(f"{name}{event.text if isinstance(event, Notice) else event}")

    first, second = Notice(level="info", text="1"), Notice(level="info", text="2")
    emit = FanOut(iter([told("a"), told("b")]))
    emit(first)
    emit(second)
    assert seen == ["a1", "b1", "a2", "b2"]


def test_a_sink_that_fails_is_told_of_once_and_the_others_go_on() -> None:
    seen: list[Event] = []
    breaks = Breaks(2)
    emit = FanOut([breaks, seen.append])
    events = [Notice(level="info", text=str(n)) for n in range(4)]
    for event in events:
        emit(event)
    assert breaks.seen == 2
    told = [event for event in seen if event not in events]
    assert [event for event in seen if event in events] == events
    (notice,) = told
    assert isinstance(notice, Notice)
    assert notice.level == "error"
    assert "Breaks" in notice.text
    assert "no more" in notice.text


def test_of_sinks_that_fail_at_one_event_each_is_told_of_once() -> None:
    seen: list[Event] = []
    first, second, later = Breaks(1), Breaks(1), Breaks(2)
    emit = FanOut([first, second, later, seen.append])
    event = Notice(level="info", text="1")
    emit(event)
    assert [first.seen, second.seen, later.seen] == [1, 1, 2]
    assert seen[0] == event
    assert [type(each) for each in seen] == [Notice] * 4
    assert sum("Breaks" in each.text for each in seen if isinstance(each, Notice)) == 3
