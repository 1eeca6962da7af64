"""The functions ``run``, ``run_sync`` and ``score``.

A run is played in a thread with an event loop of its own, so that it does not matter whether the caller has
one: a notebook, a web server and a test have one, a script does not. The signal handlers of the process are
left alone."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, Unpack

import anyio
import anyio.to_thread

from agenteval.agentside.targets.loading import forget_changed_modules
from agenteval.api.requests import RunOptions, ScenarioSource, list_texts, make_request, plain_overrides
from agenteval.api.run_report import RunReport
from agenteval.conversation.exits import ExitGuard
from agenteval.conversation.runtime import RunControl
from agenteval.planning.request import JudgeChoice, Request
from agenteval.planning.run_preparation import prepare
from agenteval.planning.score_preparation import ScoreRequest
from agenteval.running.garbage_collection import reduce_garbage_collection
from agenteval.running.live_run import plan_start, play
from agenteval.running.log_scoring import open_scoring, score_log
from agenteval.running.observer import Observer, SilentObserver
from agenteval.running.registries import REGISTRIES
from agenteval.running.stored_runs import DecidedRun

_ONE_RUN = threading.Lock()
"""Held by the run that is being played. Agents, hooks and secrets belong to the process, so two runs would
change each other."""


async def run(
    scenarios: ScenarioSource | Iterable[ScenarioSource] | None = None, **options: Unpack[RunOptions]
) -> RunReport:
    """Run scenarios against an agent, as ``agenteval run`` does, and return the report. Nothing is printed,
    and no exit code is set: see ``RunReport.verdict`` and ``RunReport.raise_for_verdict``.

    ``scenarios`` are files, folders, ``FILE::ID`` or mappings with the keys of a scenario; if it is left
    out, the scenarios of the configuration are run. ``options`` are described at ``RunOptions``.

    If the task is cancelled, the run stops, and ``agenteval run --resume`` can continue it. Runs in one
    process are played one after another.

    Raise ``AuthorError`` for a mistake in a file or an argument, and ``NothingSelectedError`` if no scenario
    is left."""
    request = make_request(scenarios, "run", options)
    return await _await_thread(_player(request, progress=options.get("progress", False)))


def run_sync(
    scenarios: ScenarioSource | Iterable[ScenarioSource] | None = None, **options: Unpack[RunOptions]
) -> RunReport:
    """Run scenarios like ``run``, from code that is not asynchronous. It works in a notebook, too: if an
    event loop is running, that loop waits."""
    request = make_request(scenarios, "run_sync", options)
    return _join_thread(_player(request, progress=options.get("progress", False)))


def score(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    scenarios: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    *,
    model: str | None = None,
    metrics: str | Iterable[str] = (),
    no_judge: bool = False,
    config: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> RunReport:
    """Score recorded conversations, as ``agenteval score`` does, and return the report. ``files`` are logs,
    folders or runs. ``scenarios`` are the files that contain the expectations. Without ``scenarios``, the
    verdict is usually ``reported``.

    Raise ``AuthorError`` for a mistake in a file or an argument."""
    logs, expected = _paths(files), _paths(scenarios or ())
    judging = JudgeChoice(model, no_judge, list_texts("metrics", metrics))
    request = ScoreRequest(
        files=logs,
        config=None if config is None else os.fspath(config),
        judging=judging,
        scenarios=expected,
        command=("score", *logs, *(part for path in expected for part in ("--scenarios", path))),
        overrides=plain_overrides(overrides),
    )

    def play_log(control: RunControl) -> DecidedRun:
        observer = SilentObserver()
        with ExitStack() as stack:
            scoring = open_scoring(request, stack, observer)
            return score_log(scoring, observer, control)

    return _join_thread(play_log)


def _paths(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    return tuple(os.fspath(each) for each in ([given] if isinstance(given, str | os.PathLike) else given))


# ── threads ──────────────────────────────────────────────────────────────────────────────────────

_Player = Callable[[RunControl], DecidedRun]


def _player(request: Request, *, progress: bool) -> _Player:
    def play_request(control: RunControl) -> DecidedRun:
        observer = _observer(shows=progress)
        prepared = prepare(request, REGISTRIES)
        return play(prepared, plan_start(prepared, observer), observer, control)

    return play_request


def _observer(*, shows: bool) -> Observer:
    if not shows:
        return SilentObserver()
    from agenteval.cli.progress import TerminalObserver

    return TerminalObserver()


_IS_PLAYING: ContextVar[bool] = ContextVar("_IS_PLAYING", default=False)
"""True in the code of an agent that is being run, which inherits the context of the run."""


@contextmanager
def _guarded_exits() -> Iterator[None]:
    """End the process with an error if an agent ends it (``os._exit(0)``), because nothing is decided yet."""
    guard = ExitGuard()
    guard.guard()
    try:
        yield
    finally:
        guard.release()


class RunningThread:
    """A thread that plays a run, and the way to stop it."""

    def __init__(self, player: _Player) -> None:
        if _IS_PLAYING.get():
            raise RuntimeError("an agent that is being run cannot start another run in the same process")
        self._player = player
        self._control = RunControl()
        self.played: Future[DecidedRun] = Future()
        self._thread = threading.Thread(target=self._work, name="agenteval-run")
        self._thread.start()

    def _work(self) -> None:
        _IS_PLAYING.set(True)
        try:
            with _ONE_RUN, reduce_garbage_collection(), _guarded_exits():
                forget_changed_modules()
                self.played.set_result(self._player(self._control))
        except BaseException as error:
            self.played.set_exception(error)

    def stop(self) -> None:
        """Stop the run. Its journal is complete up to this point."""
        self._control.cancel_from_thread("interrupted")


def _join_thread(player: _Player) -> RunReport:
    running = RunningThread(player)
    try:
        return RunReport(running.played.result())
    except KeyboardInterrupt:
        running.stop()
        running.played.exception()
        raise


async def _await_thread(player: _Player) -> RunReport:
    running = RunningThread(player)
    try:
        await anyio.to_thread.run_sync(running.played.exception, abandon_on_cancel=True)
    finally:
        if not running.played.done():
            running.stop()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(running.played.exception)
    return RunReport(running.played.result())
