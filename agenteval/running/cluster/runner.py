"""Plays the samples of a run on workers: chooses a worker for each sample, and takes in what it sends.

One sample is one unit, and one attempt at it one stream. A sample that is lost with its worker is repeated by
the caller, from the beginning; what the lost attempt had sent stays in the journal, and nothing of it can
arrive later, because nobody reads its stream any more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from agenteval.adapters.traffic.call_coordinator import (
    BudgetStopped,
    HolderSilent,
    News,
    RoleStopped,
)
from agenteval.conversation.runtime import RunView
from agenteval.core.event import Notice, SampleFinished
from agenteval.core.plan import Pairing
from agenteval.core.protocols import ConversationProgress, Emit, SampleLostError
from agenteval.core.scenario import Sample, SampleKey
from agenteval.running.cluster.messages import Line, RunState, decode_lines, order_for

_CANCELLED_S = 10.0
"""The time, in seconds, for which a cancelled run waits for the end of a sample."""
_MOST_MACHINES = 3
"""The number of machines that may be lost under a sample before it counts as the cause."""
_WITHOUT_WORKER_S = 60.0
"""The time, in seconds, for which samples wait for a new worker if none is left."""


class WorkerLostError(Exception):
    """Raised by the stream of a worker whose process is gone. The message says what happened. ``is_machine``
    is true if its whole machine is gone, which a sample rarely causes."""

    def __init__(self, message: str, *, is_machine: bool = False) -> None:
        super().__init__(message)
        self.is_machine = is_machine


class CoordinatorLostError(Exception):
    """Raised by a cluster whose coordinator is gone. The message says so."""


class WorkerHandle(Protocol):
    """A worker, as the driver reaches it."""

    name: str
    place: str
    """The machine and process."""

    def play(self, order: bytes) -> AsyncIterator[bytes]:
        """Yield the messages of an attempt. Raise ``WorkerLostError`` if the worker is gone, and any other
        exception if it failed."""

    def update(self, state: bytes) -> None:
        """Send the state of the run. Does not wait."""

    def cancel(self, number: int, why: str) -> None:
        """Stop an attempt, whose stream then ends. Does not wait."""

    async def flush(self) -> bytes:
        """Return the lines that belong to no stream. Raise ``WorkerLostError`` if the worker is gone."""

    def kill(self) -> None:
        """End the process of a worker that is silent."""


class Cluster(Protocol):
    """Starts workers, and keeps the coordinator of their calls. ``lose``, ``next_news`` and ``take_news``
    raise ``CoordinatorLostError`` if the coordinator is gone."""

    workers: list[WorkerHandle]
    """The workers that are ready when the run starts."""

    async def start(self) -> WorkerHandle:
        """Start a worker in place of one that is gone, as soon as there is a core for it."""

    async def lose(self, worker: str) -> None:
        """Take back the leases of a worker."""

    async def next_news(self) -> list[News]: ...

    async def take_news(self) -> list[News]: ...


@dataclass
class _WorkerSlot:
    """A worker, and what it plays."""

    worker: WorkerHandle
    playing: dict[int, Pairing] = field(default_factory=dict)
    """The attempts whose end is not known, keyed by number."""
    talking: int = 0
    """The conversations among them that are not over."""
    is_reserved: bool = False
    """True if one conversation is to have the worker for itself, but for samples that are only judged: their
    judges may have to wait until it is over."""
    is_gone: bool = False


class ClusterRunner:
    """The runner that plays samples on workers (``SampleRunner``). ``stop_for_budget`` and
    ``warn_role_stopped`` are called when the coordinator says that a budget is used up."""

    def __init__(
        self,
        cluster: Cluster,
        stop_for_budget: Callable[[str], None],
        warn_role_stopped: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._stop_for_budget = stop_for_budget
        self._warn_role_stopped = warn_role_stopped
        self._places = [_WorkerSlot(worker) for worker in cluster.workers]
        self._numbers = count(1)
        self._suspects: set[Pairing] = set()
        """The scenarios of which a sample may have killed its worker."""
        self._machines_lost: Counter[SampleKey] = Counter()
        self._shown: set[str] = set()
        """The warnings that are shown once."""
        self._changed = anyio.Event()
        self._starting = 0
        self._state = RunState()

    @asynccontextmanager
    async def attached(self, view: RunView) -> AsyncIterator[None]:
        """Keep the workers informed while samples are played."""
        self._view = view
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._push_states)
            self._tasks.start_soon(self._follow_news)
            try:
                yield
            finally:
                self._tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True), anyio.move_on_after(_CANCELLED_S):
                    await self._flush()

    async def run_sample(self, sample: Sample, emit: Emit, progress: ConversationProgress) -> None:
        pairing = (sample.key.scenario, sample.key.agent)
        number = next(self._numbers)
        is_alone = pairing in self._suspects
        place = await self._take(number, pairing, is_alone=is_alone)
        seen = _ArrivingSample(emit, progress, self._emit_of_run, self._show_once)
        try:
            seen.on_end = lambda: self._end_conversation(place, was_alone=is_alone)
            await self._follow(sample, number, place, seen)
            if is_alone:
                self._suspects.discard(pairing)
        except WorkerLostError as lost:
            self._machines_lost[sample.key] += lost.is_machine
            is_accident = lost.is_machine and self._machines_lost[sample.key] < _MOST_MACHINES
            # A conversation that is over can no longer end its worker.
            victim = seen.has_ended or is_accident
            raise SampleLostError(f"{lost} ({place.worker.place})", was_victim=victim) from lost
        finally:
            self._release(place, number, seen, was_alone=is_alone)

    async def _follow(self, sample: Sample, number: int, place: _WorkerSlot, seen: _ArrivingSample) -> None:
        """Play a sample on a worker. If the run is cancelled, wait for the end of the sample."""
        send, receive = anyio.create_memory_object_stream[bytes | Exception](math.inf)
        messages = place.worker.play(order_for(sample, number).encode())
        # The reader is not cancelled with the run: a message that it waits for would be lost.
        self._tasks.start_soon(_read, messages, send)
        async with receive:
            try:
                await _take_in(receive, seen)
            except WorkerLostError as lost:
                await self._lose(place, is_machine=lost.is_machine)
                raise
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True), anyio.move_on_after(_CANCELLED_S):
                    place.worker.cancel(number, self._view.control.stop_reason)
                    await _take_in(receive, seen)
                raise

    def _end_conversation(self, place: _WorkerSlot, *, was_alone: bool) -> None:
        place.talking -= 1
        if was_alone:
            place.is_reserved = False
        self._wake()

    # ── workers ──

    async def _take(self, number: int, pairing: Pairing, *, is_alone: bool) -> _WorkerSlot:
        """Wait for a worker. Raise ``SampleLostError`` if there is none and none is to come."""
        reserved: _WorkerSlot | None = None
        while True:
            if is_alone and reserved is None:
                reserved = min(self._free_places, key=lambda place: len(place.playing), default=None)
                if reserved:
                    reserved.is_reserved = True
            if reserved and reserved.is_gone:
                reserved = None
                continue
            if is_alone:
                found = reserved if reserved and not reserved.talking else None
            else:
                found = min(self._free_places, key=lambda place: place.talking, default=None)
            if found:
                found.playing[number] = pairing
                found.talking += 1
                return found
            if not self._places and not self._starting:
                raise SampleLostError("no worker is left")
            await self._changed.wait()

    def _add(self, worker: WorkerHandle) -> _WorkerSlot:
        worker.update(self._state.encode())
        self._places.append(_WorkerSlot(worker))
        return self._places[-1]

    @property
    def _free_places(self) -> list[_WorkerSlot]:
        return [place for place in self._places if not place.is_reserved]

    def _release(self, place: _WorkerSlot, number: int, seen: _ArrivingSample, *, was_alone: bool) -> None:
        del place.playing[number]
        if not seen.has_ended:
            self._end_conversation(place, was_alone=was_alone)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _lose(self, place: _WorkerSlot, *, is_machine: bool) -> None:
        """Take note that a worker is gone, once. Unless its machine is, what it played is repeated with a
        worker for itself: then it is known which conversation kills its worker, and no other is lost with
        it."""
        if place.is_gone:
            return
        place.is_gone = True
        self._places.remove(place)
        if not is_machine:
            self._suspects.update(place.playing.values())
        self._starting += 1
        self._tasks.start_soon(self._replace, place)
        self._wake()
        with suppress(CoordinatorLostError):  # whoever follows its news ends the run
            await self._cluster.lose(place.worker.name)

    async def _replace(self, lost: _WorkerSlot) -> None:
        try:
            with anyio.move_on_after(_WITHOUT_WORKER_S) as scope:
                self._add(await self._cluster.start())
            if scope.cancelled_caught:
                self._notify(f"no worker could be started in place of {lost.worker.place}")
        except Exception as error:
            self._notify(f"no worker could be started in place of {lost.worker.place}: {error}")
        finally:
            self._starting -= 1
            self._wake()

    # ── what is known of the run ──

    async def _push_states(self) -> None:
        visibility = self._view.visibility
        self._state = RunState()
        while True:
            state = RunState(
                visibility.may_learn, self._view.none_follows().is_set(), visibility.all_evidence
            )
            if state != self._state:
                self._state = state
                for place in self._places:
                    place.worker.update(state.encode())
            await visibility.wait_for_change()

    async def _follow_news(self) -> None:
        try:
            while True:
                await self._take_news(await self._cluster.next_news())
        except CoordinatorLostError as lost:  # no call can be made any more
            self._view.emit(Notice(level="error", text=str(lost)))
            self._view.control.cancel("interrupted", str(lost))

    async def _take_news(self, news: list[News]) -> None:
        for each in news:
            match each:
                case BudgetStopped():
                    self._stop_for_budget(each.why)
                case RoleStopped():
                    self._warn_role_stopped(each.why)
                case HolderSilent():
                    for place in [one for one in self._places if one.worker.name == each.holder]:
                        place.worker.kill()  # its streams end with that

    async def _flush(self) -> None:
        """Take in what belongs to no stream."""
        seen = _ArrivingSample(self._view.emit, None, self._emit_of_run, self._show_once)
        for place in list(self._places):
            try:
                for line in decode_lines(await place.worker.flush()):
                    seen.take(line)
            except WorkerLostError:
                continue  # nothing was being played on it
        with suppress(CoordinatorLostError):
            await self._take_news(await self._cluster.take_news())

    def _emit_of_run(self, line: Line) -> None:
        self._view.emit(line.event)

    def _show_once(self, line: Line) -> None:
        event = line.event
        if isinstance(event, Notice) and event.text not in self._shown:
            self._shown.add(event.text)
            self._view.emit(event)

    def _notify(self, text: str) -> None:
        self._view.emit(Notice(level="warning", text=text))


class _ArrivingSample:
    """What has arrived of an attempt at a sample."""

    def __init__(
        self,
        emit: Emit,
        progress: ConversationProgress | None,
        emit_of_run: Callable[[Line], None],
        show_once: Callable[[Line], None],
    ) -> None:
        self._emit = emit
        self._progress = progress
        self._emit_of_run = emit_of_run
        self._show_once = show_once
        self.on_end: Callable[[], None] = lambda: None
        self.has_ended = False
        """True if the conversation is over."""
        self.is_finished = False
        """True if the sample is finished."""

    def take(self, line: Line) -> None:
        match line.kind:
            case "sample":
                event = line.event
                self.is_finished |= isinstance(event, SampleFinished)
                self._emit(event)
            case "run":
                self._emit_of_run(line)
            case "once":
                self._show_once(line)
            case "progress" if self._progress and line.text == "end_conversation":
                self.has_ended = True
                self._progress.end_conversation()
                self.on_end()
            case "progress" if self._progress:
                self._progress.free_slot()
            case "progress":
                pass


async def _read(messages: AsyncIterator[bytes], send: MemoryObjectSendStream[bytes | Exception]) -> None:
    # If nobody waits for it any more, there is nobody to tell either.
    with send, suppress(anyio.BrokenResourceError):
        try:
            async for message in messages:
                send.send_nowait(message)
        except Exception as error:
            send.send_nowait(error)


async def _take_in(receive: MemoryObjectReceiveStream[bytes | Exception], seen: _ArrivingSample) -> None:
    """Take in the messages of an attempt until its end. If the worker is lost after the sample has finished,
    nothing is missing."""
    async for message in receive:
        if isinstance(message, WorkerLostError) and seen.is_finished:
            return
        if isinstance(message, Exception):
            raise message
        for line in decode_lines(message):
            seen.take(line)
