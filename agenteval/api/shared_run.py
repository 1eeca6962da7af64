"""Plays a run that several processes share: the process that comes first plays it, and the others wait for
its journal. If that process dies, another one plays the rest.

The pytest plugin uses it, because pytest-xdist runs items in several processes. If each process played its
own items, a limit on concurrent calls would apply per process, and a gate over the run could not be
decided."""

from __future__ import annotations

import time
from pathlib import Path

from agenteval.conversation.runtime import RunControl
from agenteval.core.errors import RunLockedError
from agenteval.files import runs
from agenteval.files.journal import is_run_locked
from agenteval.files.runs import JOURNAL_FILE
from agenteval.planning.request import Request
from agenteval.planning.run_preparation import prepare
from agenteval.running.live_run import plan_start, play, play_remaining, reopen
from agenteval.running.observer import Observer
from agenteval.running.registries import REGISTRIES
from agenteval.running.stored_runs import DecidedRun, load_decided_run
from agenteval.verdict.resumption import run_ending

POLL_S = 0.1
"""The interval, in seconds, at which a process checks whether the run of another process has ended."""


def play_shared(request: Request, folder: Path, observer: Observer, control: RunControl) -> DecidedRun:
    """Play the run in ``folder``, or wait until another process has played it, and return it. The name of the
    folder is the id of the run. ``control`` lets another thread stop the run and the waiting."""
    while not control.is_stopping:
        try:
            if not is_run_locked(folder):
                return _play_or_load(request, folder, observer, control)
        except RunLockedError:
            pass  # another process was faster
        time.sleep(POLL_S)
    raise KeyboardInterrupt


def _play_or_load(request: Request, folder: Path, observer: Observer, control: RunControl) -> DecidedRun:
    if not (folder / JOURNAL_FILE).exists():
        prepared = prepare(request, REGISTRIES)
        return play(prepared, plan_start(prepared, observer, folder.name), observer, control)
    if run_ending(runs.load_run(folder)):
        return load_decided_run(str(folder))
    with reopen(folder, {}) as rest:
        return play_remaining(rest, observer, control)
