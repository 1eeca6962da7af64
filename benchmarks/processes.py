"""Commands in processes of their own, what they used, and what else the machine did meanwhile."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

AGENTEVAL = (sys.executable, "-m", "agenteval")
QUIET = 0.15
"""Processors' worth of other processes up to which a time by the clock is taken to be ours."""


class Done(NamedTuple):
    """``others``: the processors that other processes kept busy meanwhile, this one and its server
    included; ``None`` where the system does not say."""

    code: int
    output: str
    cpu_s: float
    wall_s: float
    max_rss_mb: float
    others: float | None


def spawn(command: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None) -> Done:
    """Run a command in a folder, with more environment variables; its output goes to a file, as in CI."""
    before, started, path = _busy_s(), time.perf_counter(), folder / "output.txt"
    with open(path, "wb") as output:
        actions = [(os.POSIX_SPAWN_DUP2, output.fileno(), fd) for fd in (1, 2)]
        here = Path.cwd()
        os.chdir(folder)
        try:
            pid = os.posix_spawn(command[0], command, _environment(variables or {}), file_actions=actions)
        finally:
            os.chdir(here)
    _, status, usage = os.wait4(pid, 0)
    wall_s, cpu_s, after = time.perf_counter() - started, usage.ru_utime + usage.ru_stime, _busy_s()
    others = None if before is None or after is None else (after - before - cpu_s) / wall_s
    text = path.read_text(encoding="utf-8", errors="replace")
    return Done(os.waitstatus_to_exitcode(status), text, cpu_s, wall_s, usage.ru_maxrss / 1024, others)


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """As it is, but for a setting by which every command would compile its modules anew: a user's do not."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | more


def _busy_s() -> float | None:
    """Seconds that the machine's processors were busy since it started; on Linux."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    except OSError:
        return None
    user, nice, system, _idle, _wait, *interrupts = map(int, fields[:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def spread(values: Sequence[float], digits: int = 3) -> str:
    """``min / median / max``."""
    three = (min(values), statistics.median(values), max(values))
    return " / ".join(f"{value:.{digits}f}" for value in three)
