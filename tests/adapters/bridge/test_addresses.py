"""Addresses that a run leaves for processes without its environment: in private files, named by process."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agenteval.adapters.bridge import addresses
from agenteval.adapters.bridge.addresses import (
    AnnouncedAddress,
    announce,
    announced_url,
    find_address,
    withdraw,
    withdraw_all,
)
from agenteval.adapters.bridge.ancestors import ProcessInfo

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such files on Windows")

HERE = os.getpid()
ALIVE = {pid: ProcessInfo(pid, 1, f"t{pid}", f"name{pid}") for pid in (HERE, 101, 102, 103)}


class Place:
    """The folders, and which processes exist; ``lineage`` are the ancestors, nearest first."""

    def __init__(self, tmp_path: Path) -> None:
        self.folders = [tmp_path / "first", tmp_path / "second"]
        self.alive = dict(ALIVE)
        self.lineage: list[int] = []
        self.pauses: list[float] = []

    @property
    def files(self) -> dict[str, str]:
        """Their names and contents."""
        return {
            path.name: path.read_text(encoding="utf-8")
            for folder in self.folders
            if folder.is_dir()
            for path in folder.iterdir()
        }


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    made = Place(tmp_path)

    def ancestors() -> Iterator[ProcessInfo]:
        return iter([made.alive[pid] for pid in made.lineage])

    for name, value in {"_urls": {}, "_written": {}, "_home": HERE}.items():
        monkeypatch.setattr(addresses, name, value)
    monkeypatch.setattr(addresses, "_folders", lambda: iter(made.folders))
    monkeypatch.setattr(addresses, "inspect_process", lambda pid: made.alive.get(pid))
    monkeypatch.setattr(addresses, "ancestors", ancestors)
    monkeypatch.setattr(time, "sleep", made.pauses.append)
    monkeypatch.setattr(atexit, "register", lambda _: None)
    yield made
    withdraw_all()


# ── the run ──────────────────────────────────────────────────────────────────────────────────────


def test_an_address_is_a_private_file(place: Place) -> None:
    announce(101, "http://a")
    assert place.files == {"101-t101": "http://a"}
    (folder, _) = place.folders
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "101-t101").stat().st_mode & 0o777 == 0o600
    assert announced_url(101) == "http://a"
    assert announced_url(102) == ""


def test_the_latest_address_counts(place: Place) -> None:
    announce(101, "http://a")
    announce(102, "http://b")
    announce(101, "http://c")
    assert place.files == {"101-t101": "http://c", "102-t102": "http://b"}
    assert announced_url(101) == "http://c"


def test_no_address_is_announced_only_against_that_of_this_process(place: Place) -> None:
    announce(101, "")
    assert not place.files
    announce(HERE, "http://a")
    announce(101, "")
    assert place.files[f"{101}-t101"] == ""
    withdraw(HERE)
    announce(102, "")
    assert set(place.files) == {"101-t101"}


def test_an_address_is_withdrawn(place: Place) -> None:
    announce(101, "http://a")
    announce(102, "http://b")
    withdraw(101)
    withdraw(101)
    assert place.files == {"102-t102": "http://b"}
    assert announced_url(101) == ""
    announce(103, "http://c")
    withdraw_all()
    assert not place.files


def test_a_process_that_is_gone_has_no_file(place: Place) -> None:
    del place.alive[101]
    announce(101, "http://a")
    assert not place.files
    assert announced_url(101) == "http://a"


def test_a_fork_leaves_its_parents_files(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    announce(101, "http://a")
    monkeypatch.setattr(addresses, "_home", HERE + 1)
    withdraw_all()
    assert place.files == {"101-t101": "http://a"}
    announce(102, "http://b")
    assert announced_url(101) == ""
    withdraw_all()
    assert set(place.files) <= {"101-t101"}


def test_the_first_of_a_process_removes_what_killed_runs_left(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.folders[0]
    folder.mkdir(mode=0o700)
    gone = ("7-t7", "101-earlier", "102-earlier.new", "notes", "x-y.new", "103")
    for name in (*gone, "102-t102", "103-t103.new"):
        (folder / name).write_text("old", encoding="utf-8")
    monkeypatch.setattr(addresses, "_home", 0)
    announce(101, "http://a")
    assert set(place.files) == {"101-t101", "102-t102", "103-t103.new"}
    (folder / "7-t7").write_text("old", encoding="utf-8")
    announce(102, "http://b")
    assert "7-t7" in place.files


def test_a_half_written_file_is_replaced(place: Place) -> None:
    folder = place.folders[0]
    folder.mkdir(mode=0o700)
    (folder / "101-t101.new").write_text("half", encoding="utf-8")
    announce(101, "http://a")
    assert place.files == {"101-t101": "http://a"}


# ── the folder ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", [0o770, 0o701, 0o704, 0o777])
def test_a_folder_that_others_reach_is_not_used(place: Place, mode: int) -> None:
    first, second = place.folders
    first.mkdir()
    first.chmod(mode)
    announce(101, "http://a")
    assert not list(first.iterdir())
    assert [path.name for path in second.iterdir()] == ["101-t101"]
    first.chmod(0o700)


def test_neither_is_a_link_nor_a_file(place: Place, tmp_path: Path) -> None:
    first, second = place.folders
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    first.symlink_to(tmp_path / "elsewhere")
    second.write_text("", encoding="utf-8")
    announce(101, "http://a")
    assert not list((tmp_path / "elsewhere").iterdir())
    assert announced_url(101) == "http://a"


def test_a_folder_of_another_user_is_not_used(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    announce(101, "http://a")
    place.lineage = [101]
    assert find_address() is not None
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    assert find_address() is None


# ── the bridge ───────────────────────────────────────────────────────────────────────────────────


def test_the_nearest_ancestor_counts(place: Place) -> None:
    announce(101, "http://a")
    announce(103, "http://c")
    place.lineage = [102, 101, 103]
    assert find_address() == AnnouncedAddress("http://a", "name101")
    place.lineage = [103, 101]
    assert find_address() == AnnouncedAddress("http://c", "name103")
    assert not place.pauses


def test_an_agent_without_a_server_hides_that_of_its_ancestors(place: Place) -> None:
    announce(HERE, "http://a")
    announce(101, "")
    place.lineage = [101, HERE]
    assert find_address() == AnnouncedAddress("", "name101")


def test_a_file_of_an_earlier_process_is_not_read(place: Place) -> None:
    announce(101, "http://a")
    place.alive[101] = ProcessInfo(101, 1, "later", "x")
    place.lineage = [101]
    assert find_address() is None


def test_each_folder_is_looked_into(place: Place) -> None:
    second = place.folders[1]
    second.mkdir(mode=0o700)
    (second / "101-t101").write_text("http://a", encoding="utf-8")
    place.lineage = [101]
    assert find_address() == AnnouncedAddress("http://a", "name101")


def test_an_address_may_come_a_little_later(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.lineage = [101]

    def sleep(seconds: float) -> None:
        place.pauses.append(seconds)
        if len(place.pauses) == 3:
            announce(101, "http://a")

    monkeypatch.setattr(time, "sleep", sleep)
    assert find_address() == AnnouncedAddress("http://a", "name101")
    assert place.pauses == [0.1] * 3


def test_nobody_waits_longer_than_a_second(place: Place) -> None:
    place.lineage = [101]
    assert find_address() is None
    assert place.pauses == [0.1] * 9


@pytest.mark.parametrize("kind", ["link", "folder", "not text"])
def test_what_is_no_file_of_ours_is_not_read(place: Place, tmp_path: Path, kind: str) -> None:
    folder = place.folders[0]
    folder.mkdir(mode=0o700)
    path = folder / "101-t101"
    if kind == "link":
        (tmp_path / "x").write_text("http://evil", encoding="utf-8")
        path.symlink_to(tmp_path / "x")
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"\xff")
    place.lineage = [101]
    assert find_address() is None
