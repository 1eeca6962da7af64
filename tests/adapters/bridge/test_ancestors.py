"""The parents of a process, by /proc or by ``ps``; a number and a start are never used twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval.adapters.bridge import ancestors as module
from agenteval.adapters.bridge.ancestors import ProcessInfo, ancestors, inspect_process

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell")


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "_PROC", tmp_path)
    write(tmp_path, "self", "")
    return tmp_path


def write(folder: Path, pid: Any, text: str | bytes) -> None:
    (folder / str(pid)).mkdir()
    (folder / str(pid) / "stat").write_bytes(text if isinstance(text, bytes) else text.encode())


def stat(pid: int, parent: int, name: str = "bot", started: str = "777") -> str:
    zeros = " ".join(["0"] * 17)
    return f"{pid} ({name}) S {parent} {zeros} {started} 5 6\n"


@pytest.mark.parametrize("name", ["bot", "a b", "a) S 9 (b", "(x)", ""])
def test_a_process_by_its_file(proc: Path, name: str) -> None:
    write(proc, 5, stat(5, 3, name))
    found = inspect_process(5)
    assert found == ProcessInfo(5, 3, "777", name)
    assert found.identity == "5-777"


def test_a_name_may_be_no_text(proc: Path) -> None:
    write(proc, 5, stat(5, 3, "b\x00t").encode().replace(b"\x00", b"\xff"))
    found = inspect_process(5)
    assert found is not None
    assert (found.parent, found.name) == (3, "b�t")


@pytest.mark.parametrize("text", ["", "5 (bot) S", "5 (bot) S x " + "0 " * 20, "5 (bot) S 3 0 0"])
def test_a_file_that_cannot_be_read(proc: Path, text: str) -> None:
    write(proc, 5, text)
    assert inspect_process(5) is None
    assert inspect_process(6) is None


def lineage(monkeypatch: pytest.MonkeyPatch, parent: int) -> list[int]:
    monkeypatch.setattr(os, "getppid", lambda: parent)
    return [each.pid for each in ancestors()]


def test_ancestors_begin_with_the_parent(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pid, above in ((9, 7), (7, 1), (1, 0), (0, 0)):
        write(proc, pid, stat(pid, above))
    assert lineage(monkeypatch, 9) == [9, 7, 1]
    assert lineage(monkeypatch, 0) == []
    assert lineage(monkeypatch, 8) == []


def test_ancestors_are_not_followed_without_end(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(proc, 9, stat(9, 9))
    assert lineage(monkeypatch, 9) == [9] * 100


PS = "  3 Mon Nov  2 10:20:30 2026 /usr/bin/my bot \n"


class Ps:
    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.commands: list[Sequence[str]] = []

    def run(self, command: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        assert more["env"] == {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        assert more["capture_output"]
        assert more["text"]
        if isinstance(self.answer, Exception):
            raise self.answer
        return subprocess.CompletedProcess(command, 0, self.answer, "")


def by_ps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str | Exception) -> ProcessInfo | None:
    ps = Ps(answer)
    monkeypatch.setattr(module, "_PROC", tmp_path)
    monkeypatch.setattr(subprocess, "run", ps.run)
    found = inspect_process(5)
    assert ps.commands == [["ps", "-o", "ppid=,lstart=,comm=", "-p", "5"]]
    return found


def test_a_process_by_ps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = by_ps(monkeypatch, tmp_path, PS)
    assert found == ProcessInfo(5, 3, "Mon.Nov.2.10.20.30.2026", "/usr/bin/my bot")
    assert "/" not in found.identity
    assert ":" not in found.identity


@pytest.mark.parametrize(
    "answer", ["", "3", "x Mon Nov 2 10:20:30 2026 bot", OSError("no ps"), subprocess.TimeoutExpired("ps", 5)]
)
def test_a_process_that_ps_does_not_know(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str | Exception
) -> None:
    assert by_ps(monkeypatch, tmp_path, answer) is None


def test_this_process_is_known() -> None:
    found = inspect_process(os.getpid())
    assert found is not None
    assert found.parent == os.getppid()
