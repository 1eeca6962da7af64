"""Look up the parent processes of a process. The combination of a process ID and a start time is never
reused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_MAX_DEPTH = 100
_PS_S = 5.0


class ProcessInfo(NamedTuple):
    """A running process."""

    pid: int
    parent: int
    started: str
    """The start time in a system-specific format, used only for comparison."""
    name: str

    @property
    def identity(self) -> str:
        return f"{self.pid}-{self.started}"


def inspect_process(pid: int) -> ProcessInfo | None:
    """Return information about a process, or ``None`` if the process does not exist or the system does not
    reveal it."""
    if sys.platform == "win32":
        return None
    return _by_proc(pid) if _PROC.joinpath("self", "stat").exists() else _by_ps(pid)


def ancestors() -> Iterator[ProcessInfo]:
    """Yield the ancestors of this process, starting with its parent."""
    pid = os.getppid()
    for _ in range(_MAX_DEPTH):
        found = inspect_process(pid) if pid > 0 else None
        if found is None:
            return
        yield found
        pid = found.parent


def _by_proc(pid: int) -> ProcessInfo | None:
    try:
        text = _PROC.joinpath(str(pid), "stat").read_text(encoding="utf-8", errors="replace")
        before, _, after = text.rpartition(")")  # the name may contain blanks and parentheses
        fields = after.split()
        return ProcessInfo(pid, int(fields[1]), fields[19], before.partition("(")[2])
    except (OSError, IndexError, ValueError):
        return None


def _by_ps(pid: int) -> ProcessInfo | None:
    command = ["ps", "-o", "ppid=,lstart=,comm=", "-p", str(pid)]
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    try:
        shown = subprocess.run(command, env=env, capture_output=True, text=True, timeout=_PS_S, check=False)
        parent, *started, name = shown.stdout.split(None, 6)
        return ProcessInfo(pid, int(parent), ".".join(started).replace(":", "."), name.strip())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
