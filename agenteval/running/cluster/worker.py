"""Plays samples in a process of its own for a driver in another one.

The worker prepares the run from the driver's request, like a run that is resumed, and refuses to take part if
anything would be measured differently. It decides nothing about the run: which sample is played when, the
journal, the report and the gates are the driver's."""

from __future__ import annotations

import asyncio
import os
import platform
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from agenteval import __version__
from agenteval.adapters.traffic.leased_calls import CallCoordinator, LeasedCalls
from agenteval.conversation.local_runner import LocalRunner
from agenteval.conversation.runtime import RunControl
from agenteval.conversation.visibility_tracker import VisibilityTracker
from agenteval.core.errors import AgentevalError, AuthorError
from agenteval.core.event import CallsSeen, Event, Notice, RunStarted, Scored, TurnFinished
from agenteval.core.scenario import Sample, SampleKey
from agenteval.files.environment import PREFIX
from agenteval.files.journal import event_from_json
from agenteval.files.redaction import redact_events
from agenteval.planning.request import Request, restore_request
from agenteval.planning.run_preparation import PreparedRun, prepare
from agenteval.running.cluster.messages import (
    Line,
    LineKind,
    PlayOrder,
    RunState,
    WorkerHello,
    WorkerSetup,
    encode_lines,
    event_line,
    hash_secret,
)
from agenteval.running.execution import make_run_started, redact_run_started
from agenteval.running.registries import REGISTRIES
from agenteval.verdict.resumption import list_changes

GATHER_S = 0.2
"""The time, in seconds, for which lines are gathered into one message. Nobody waits for them, and a message
costs about a millisecond of CPU at each end."""
_URGENT_S = 0.005
"""The same for lines that somebody waits for, and for what a turn proves: others often follow at once."""
_MOST_PROBLEMS = 5


class Worker:
    """A worker process. ``hello`` must be called first. The methods are called from one event loop."""

    def __init__(self, setup: WorkerSetup, coordinator: CallCoordinator) -> None:
        self.name = setup.name
        self._calls = LeasedCalls(setup.name)
        self._calls.connect(coordinator)
        self._late: list[Line] = []
        self._outboxes: dict[SampleKey, _Outbox] = {}
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._control = RunControl()
        self._prepared: PreparedRun | None = None
        self._problems: tuple[str, ...] = ()
        try:
            self._prepared = _prepare(setup, self._calls)
        except AgentevalError as error:
            self._problems = tuple(str(error).splitlines())
        except Exception as error:  # of the author's code, or of an installation that lacks something
            self._problems = (f"{type(error).__name__}: {error}",)
        if self._prepared:
            self._begin(self._prepared, setup)

    def _begin(self, prepared: PreparedRun, setup: WorkerSetup) -> None:
        runtime, resources = prepared.wired.runtime, prepared.wired.resources
        self._scenarios = {each.id: each for each in prepared.wired.scenarios}
        self._none_follows = anyio.Event()
        self._tracker = VisibilityTracker(
            runtime.visibility, passthrough=runtime.unmocked_tools == "passthrough"
        )
        self._runner = LocalRunner(runtime, self._control, self._tracker, lambda: self._none_follows)
        unknown = [each for each in resources.secrets if hash_secret(each) not in setup.known_secrets]
        self._emit = redact_events(self._send, unknown)
        resources.emit = self._emit
        resources.traffic.begin()

    def hello(self) -> WorkerHello:
        """Return whether the worker can take part, and why not."""
        place = f"{socket.gethostname()}, process {os.getpid()}"
        return WorkerHello(self._problems[:_MOST_PROBLEMS], place)

    def update(self, state: bytes) -> None:
        """Take in what is known of the conversations that others play."""
        found = RunState.decode(state)
        self._tracker.may_start = found.may_learn
        self._tracker.add_evidence(found.evidence or {})
        if found.none_follows:
            self._none_follows.set()
        elif self._none_follows.is_set():
            self._none_follows = anyio.Event()

    def cancel(self, number: int, why: str) -> None:
        """Stop an attempt. Its stream ends with the end of the sample."""
        self._control.stop_reason = why
        if scope := self._scopes.get(number):
            scope.cancel()

    async def play(self, order: bytes) -> AsyncIterator[bytes]:
        """Play a sample, and yield its lines while it is played: several at a time, but none later than
        ``GATHER_S`` seconds after it was made."""
        found = PlayOrder.decode(order)
        sample = Sample(found.key, self._scenarios[found.key.scenario], found.seed)
        outbox = _Outbox()
        playing = asyncio.create_task(self._play(sample, found.number, outbox))
        try:
            while lines := await outbox.gather():
                yield encode_lines(lines)
            await playing  # raises what broke it
        finally:
            playing.cancel()

    async def _play(self, sample: Sample, number: int, outbox: _Outbox) -> None:
        self._outboxes[sample.key] = outbox
        try:
            with anyio.CancelScope() as self._scopes[number]:
                emit = self._tracker.wrap_emit(self._emit)
                await self._runner.run_sample(sample, emit, _SentProgress(outbox, self))
        finally:
            del self._scopes[number], self._outboxes[sample.key]
            outbox.close()

    def _send(self, event: Event) -> None:
        """Send an event with the stream of its sample, or keep it if there is none."""
        if isinstance(event, CallsSeen):
            return  # the driver sees it in the turns
        key = getattr(event, "key", None)
        outbox = self._outboxes.get(key) if key else None
        kind: LineKind = "sample" if outbox else "run"
        if isinstance(event, Notice) and self._is_once(event.text):
            kind = "once"
        line = event_line(kind, event)
        if outbox is None:
            self._late.append(line)
        else:
            # What a turn proves must not be lost with the worker.
            outbox.put(line, is_urgent=isinstance(event, TurnFinished | Scored))

    def _is_once(self, text: str) -> bool:
        assert self._prepared
        wired = self._prepared.wired
        return text in wired.runtime.emitted_warnings or wired.resources.has_warned(text)

    def free_last_slot(self) -> None:
        """Note that no conversation begins while this one is judged, if that is so (``fail_fast``)."""
        if self._runner.runtime.fail_fast:
            self._none_follows.set()

    def flush(self) -> bytes:
        """Return the lines that came after the end of their sample, or belong to none."""
        self._calls.flush()
        late, self._late = self._late, []
        return encode_lines(late)

    async def close(self) -> None:
        """Close the agents and the connections."""
        if self._prepared:
            for factory in self._prepared.wired.runtime.agents.values():
                await factory.aclose()
            await self._prepared.wired.resources.aclose()


class _SentProgress:
    """Sends what a conversation reports about itself."""

    def __init__(self, outbox: _Outbox, worker: Worker) -> None:
        self._outbox = outbox
        self._worker = worker

    async def wait_until_known(self) -> None:
        await self._outbox.wait_until_sent()

    def free_slot(self) -> None:
        self._worker.free_last_slot()
        self._outbox.put(Line("progress", "free_slot"), is_urgent=True)

    def end_conversation(self) -> None:
        self._outbox.put(Line("progress", "end_conversation"), is_urgent=True)


class _Outbox:
    """The lines of a sample that have not been sent yet."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._arrived, self._urgent, self._closed = (asyncio.Event() for _ in range(3))
        self._sent = asyncio.Event()

    def put(self, line: Line, *, is_urgent: bool = False) -> None:
        """Add a line. An urgent one is sent at once."""
        self._lines.append(line)
        self._sent.clear()
        self._arrived.set()
        if is_urgent:
            self._urgent.set()

    def close(self) -> None:
        self._closed.set()
        self._arrived.set()
        self._urgent.set()

    async def wait_until_sent(self) -> None:
        """Wait until all lines that were added have been sent."""
        if not self._sent.is_set():
            self._urgent.set()
            await self._sent.wait()

    async def gather(self) -> list[Line]:
        """Wait for a line, and return it together with those that follow soon. Return nothing at the end."""
        if not self._lines:  # whoever asks again has sent the lines before
            self._sent.set()
        await self._arrived.wait()
        with anyio.move_on_after(GATHER_S):
            await self._urgent.wait()
            with anyio.move_on_after(_URGENT_S):
                await self._closed.wait()
        lines, self._lines = self._lines, []
        if not self._closed.is_set():
            self._arrived.clear()
            self._urgent.clear()
        return lines


def _prepare(setup: WorkerSetup, calls: LeasedCalls) -> PreparedRun:
    """Prepare the run as the driver did. Raise ``AuthorError`` if anything would be measured differently."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    os.environ.update(setup.environ)
    run = event_from_json(setup.run)
    assert isinstance(run, RunStarted)
    here = {"agenteval": __version__, "python": platform.python_version()}
    if other := [name for name, version in here.items() if run.versions.get(name) != version]:
        parts = (f"it has {name} {here[name]}, the driver {run.versions.get(name)}" for name in other)
        raise AuthorError("; ".join(parts))
    run = replace_folder(run, setup.shipped_from, os.getcwd())
    os.chdir(run.request["cwd"])
    request: Request = restore_request(run)
    request = replace(request, visibility=dict(run.plan.visibility))
    prepared = prepare(request, REGISTRIES, calls)
    masked = event_from_json(setup.masked)
    assert isinstance(masked, RunStarted)
    if changes := list_changes(masked, redact_run_started(prepared, make_run_started(prepared))):
        raise AuthorError(*changes)
    return prepared


def replace_folder(run: RunStarted, old: str | None, new: str) -> RunStarted:
    """Return the run with the paths of its request below ``old`` placed below ``new``."""
    if old is None:
        return run

    def moved(value: Any) -> Any:
        if isinstance(value, str) and (value == old or value.startswith(os.path.join(old, ""))):
            return str(Path(new, os.path.relpath(value, old)))
        if isinstance(value, list):
            return [moved(each) for each in value]
        return value

    request: Mapping[str, Any] = run.request
    paths = {name: moved(request[name]) for name in ("cwd", "paths", "config", "replay")}
    packs = {
        name: request[name] and ",".join(moved(each) for each in request[name].split(","))
        for name in ("faults", "variants")
    }
    return run.model_copy(update={"request": {**request, **paths, **packs}})
