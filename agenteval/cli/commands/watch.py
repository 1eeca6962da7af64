"""Implements ``agenteval run --watch``: runs again whenever a file changes.

Each round is a new process, so that no module, configuration or environment of an earlier round is left. A
round after a change plays what the change may affect and what did not pass before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from agenteval.cli.commands.watch_keys import read_keys
from agenteval.cli.safe_output import print_err
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.plurals import join_first
from agenteval.files import runs
from agenteval.planning.request import Request
from agenteval.planning.suite import load_config
from agenteval.reporters.words.spending import amount
from agenteval.running.registries import REGISTRIES
from agenteval.running.stored_runs import load_decided_run
from agenteval.verdict.ledger import total_cost

if TYPE_CHECKING:
    from watchfiles import Change

KEYS = "a all · f failed · t by name · Enter again · q quit"
_QUIET_MS = 300
"""The time, in milliseconds, that files must not change before a round starts."""
_POLL_S = 0.1
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
_STOP_S = 10.0
"""The time, in seconds, that a round may take to stop when a file changes or the watch ends."""
_CODE = frozenset((".py", ".yaml", ".yml", ".toml", ".js", ".mjs", ".cjs", ".ts"))
"""The suffixes of files whose change stops the current round."""
_DATA = frozenset((".md", ".txt", ".csv", ".tsv", ".json", ".jsonl", ".env"))
"""The suffixes of files whose change starts a round only if it happened between rounds. A round may write
such files itself, as logs and reports."""


class RoundCost(NamedTuple):
    """What a round cost, in US dollars."""

    known: float
    is_complete: bool
    """False if the price of some model is unknown."""


@dataclass
class _RoundHistory:
    """What is known of the rounds so far."""

    rounds: int = 0
    cost: float = 0.0
    exit_code: int = 0
    last_run: str = ""
    """The id of the last round that has a journal."""
    pending: set[str] = field(default_factory=set)
    """The changed files that no complete round has covered yet."""
    ended_at_s: float = 0.0
    """The time at which the last round ended, in seconds since the epoch."""
    arguments: tuple[str, ...] = ()
    """The additional arguments of the last round."""


def watch(request: Request, arguments: Sequence[str]) -> int:
    """Run ``agenteval`` with ``arguments``, and again after each change, until the user quits. Return the
    exit code of the last round. Raise ``AuthorError`` if the package ``watchfiles`` is not installed or the
    configuration is invalid at the start."""
    try:
        import watchfiles  # noqa: F401
    except ImportError:
        what = "--watch needs the package watchfiles"
        raise AuthorError(Problem(what, 'pip install "agenteval-runner[watch]"')) from None
    config = load_config(request, REGISTRIES).config
    events: SimpleQueue[object] = SimpleQueue()
    stop = Event()
    with read_keys(events.put):
        Thread(target=_watch_files, args=(Path(config.root), events.put, stop), daemon=True).start()
        try:
            return _Watch(config, arguments, events).run()
        finally:
            stop.set()


def _watch_files(root: Path, put: Callable[[object], None], stop: Event) -> None:
    from watchfiles import watch as watch_files

    for changes in watch_files(root, watch_filter=_is_relevant, debounce=_QUIET_MS, stop_event=stop):
        put(frozenset(path for _, path in changes))


def _is_relevant(change: Change, path: str) -> bool:
    from watchfiles import DefaultFilter

    is_kept = DefaultFilter(ignore_dirs=(*DefaultFilter.ignore_dirs, ".agenteval"))(change, path)
    return is_kept and Path(path).suffix in _CODE | _DATA


class _Watch:
    def __init__(self, config: Config, arguments: Sequence[str], events: SimpleQueue[object]) -> None:
        self._root = Path(config.root)
        self._budget = config.budget.max_cost
        self._arguments = tuple(arguments)
        self._events = events
        self._history = _RoundHistory()

    def run(self) -> int:
        """Play rounds until the user quits or the budget is spent."""
        history = self._history
        next_round: tuple[str, ...] | None = ()
        reason: object | None = None
        while True:
            if next_round is not None:
                history.arguments = next_round
                reason = self._play(next_round)
            if self._is_budget_spent():
                print_err(
                    f"watch: the budget of {amount(self._budget or 0)} USD is spent (`budget.max_cost`)"
                )
                return history.exit_code
            event = self._events.get() if reason is None else reason
            reason = None
            if event == "q":
                return history.exit_code
            next_round = self._respond(event)

    def _respond(self, event: object) -> tuple[str, ...] | None:
        """Return the additional arguments of the next round, or None if there is none."""
        history = self._history
        match event:
            case frozenset():
                written = frozenset(filter(self._was_written_between_rounds, event))
                if not written:
                    return None
                history.pending |= written
                changed = [part for path in sorted(history.pending) for part in ("--changed-file", path)]
                failed = ("--failed-in", history.last_run) if history.last_run else ()
                # Before the first complete round, everything is still to be played.
                return (*changed, *failed) if history.last_run else ()
            case "a":
                return ()
            case "f" if history.last_run:
                return ("--failed-in", history.last_run)
            case "f":
                print_err("watch: no run yet")
            case "t":
                words = _ask("scenarios (as for -k): ", self._events)
                return ("-k", words) if words else None
            case "\n":
                return history.arguments
            case _:
                print_err(f"watch: {KEYS}")
        return None

    def _was_written_between_rounds(self, path: str) -> bool:
        if Path(path).suffix in _CODE:
            return True
        try:
            return os.stat(path).st_mtime > self._history.ended_at_s
        except OSError:  # it was removed
            return False

    def _play(self, more: tuple[str, ...]) -> object | None:
        """Play a round. Return the event that ended it early, or None if it ended by itself."""
        history, before = self._history, self._run_ids()
        history.rounds += 1
        if named := sorted(os.path.relpath(path, self._root) for path in history.pending):
            print_err(f"watch: changed: {join_first(named, 3)}")
        process = subprocess.Popen(
            [sys.executable, "-m", "agenteval", *self._arguments, *more], stdin=subprocess.DEVNULL
        )
        interrupted_by = self._wait(process)
        history.ended_at_s = time.time()
        if interrupted_by is None:
            history.exit_code = process.returncode
        is_excerpt = "-k" in more  # what did not pass elsewhere is still to be repaired
        new_runs = [run_id for run_id in self._run_ids() if run_id not in before]
        self._record(new_runs, complete=interrupted_by is None, is_excerpt=is_excerpt)
        return interrupted_by

    def _wait(self, process: subprocess.Popen[bytes]) -> object | None:
        """Wait for the round. A change or a key that starts another one stops it."""
        while process.poll() is None:
            try:
                event = self._events.get(timeout=_POLL_S)
            except Empty:
                continue
            except KeyboardInterrupt:
                _stop(process)
                raise
            is_code = isinstance(event, frozenset) and any(Path(path).suffix in _CODE for path in event)
            if is_code or event in ("q", "a", "f", "t"):
                _stop(process)
                return event
        return None

    def _record(self, new_runs: Sequence[str], *, complete: bool, is_excerpt: bool) -> None:
        """Print what the round cost, and remember its run. There are several new runs, in the order in which
        they started, if an agent or another terminal started some, too. Their cost counts."""
        history = self._history
        if new_runs and not is_excerpt:
            history.last_run = new_runs[-1]
        costs = [self._cost_of(run_id) for run_id in new_runs]
        cost = RoundCost(sum(each.known for each in costs), all(each.is_complete for each in costs))
        history.cost += cost.known
        if complete and not is_excerpt and history.exit_code in (0, 1, 3):
            history.pending.clear()
        unknown = "" if cost.is_complete else " (some prices are unknown; set `prices`)"
        print_err(
            f"\nwatch: round {history.rounds}: {amount(cost.known)} USD{unknown},"
            f" {amount(history.cost)} USD in total · waiting for a change · {KEYS}"
        )

    def _cost_of(self, run_id: str) -> RoundCost:
        try:
            found = load_decided_run(str(self._root / ".agenteval" / "runs" / run_id))
        except AuthorError:
            return RoundCost(0.0, is_complete=False)
        cost = total_cost(found.report.ledger)
        return RoundCost(cost.known, cost.is_fully_known)

    def _is_budget_spent(self) -> bool:
        return self._budget is not None and self._history.cost >= self._budget

    def _run_ids(self) -> list[str]:
        return [folder.name for folder in runs.find_run_folders(self._root)]


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a round as Ctrl-C does. Its journal stays readable."""
    # Python prints a traceback for SIGINT while it starts.
    for number in (signal.SIGTERM, signal.SIGTERM, _KILL):
        if process.poll() is None:
            process.send_signal(number)
            deadline_s = time.monotonic() + _STOP_S / 2
            while process.poll() is None and time.monotonic() < deadline_s:
                time.sleep(_POLL_S)


def _ask(question: str, events: SimpleQueue[object]) -> str:
    """Read a line of keys, which arrive one by one."""
    print_err(question)
    words = ""
    while True:
        key = events.get()
        if key == "\n":
            return words.strip()
        if isinstance(key, str):
            words = words[:-1] if key in ("\x7f", "\b") else words + key
            print_err(f"  {words}")
