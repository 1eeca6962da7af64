"""Run samples concurrently and emit events. This module contains task groups and concurrency limits, and no
other policy. What plays a sample is its runner."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext

import anyio

from agenteval.conversation.local_runner import LocalRunner
from agenteval.conversation.runtime import RemoteRunner, RunControl, Runtime, RunView
from agenteval.conversation.scored_sample import ScoredSample
from agenteval.conversation.visibility_tracker import VisibilityTracker
from agenteval.core.event import Event, Notice, SampleFinished, SampleStarted, TurnFinished
from agenteval.core.protocols import Emit, SampleLostError, SampleRunner
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import Stop, StopReason


async def run_samples(runtime: Runtime, emit: Emit, control: RunControl) -> None:
    """Run every sample in the queue, with at most ``agent_concurrency`` concurrent conversations (like a
    worker pool). A fault in one sample never ends another sample."""
    running = _RunState(runtime, emit, control)
    view = RunView(control, running.visibility, lambda: running.none_follows, running.emit)
    runner = runtime.runner or LocalRunner(runtime, control, running.visibility, view.none_follows)
    async with _attached(runner, view), anyio.create_task_group() as group:
        control.attach(group.cancel_scope)
        while True:
            await running.slots.acquire()
            sample = None if control.is_stopping else runtime.queue.next()
            if not control.may_begin(sample):
                sample = None
            # With ``fail_fast`` a conversation may hold the last slot while its judges wait.
            running.visibility.may_start = sample is not None and not runtime.fail_fast
            if sample is not None:
                running.begin()
                group.start_soon(_RunningSample(sample, running).run, runner)
                continue
            running.none_follows.set()
            running.slots.release()
            if control.is_stopping or not running.count:
                break
            await running.wait_for_one()


def _attached(runner: SampleRunner, view: RunView) -> AbstractAsyncContextManager[None]:
    return runner.attached(view) if isinstance(runner, RemoteRunner) else nullcontext()


def _warn_unreadable_usage(emit: Emit) -> Emit:
    """Return ``emit``, extended to warn once about each agent whose usage could not be read."""
    warned: set[str] = set()

    def emit_and_warn(event: Event) -> None:
        emit(event)
        if not isinstance(event, TurnFinished) or event.key.agent in warned or not event.turn.unread_usage:
            return
        warned.add(event.key.agent)
        what = f"agent '{event.key.agent}' reports usage that cannot be read: {event.turn.unread_usage}"
        why = "its tokens are estimated, and so is everything based on them"
        emit(Notice(level="warning", text=f"{what}; {why}", key=event.key))

    return emit_and_warn


class _RunState:
    """The state that the samples of a run share: the number of running samples and the means to wait until
    one of them has finished. ``none_follows`` is set when no other sample is about to begin."""

    def __init__(self, runtime: Runtime, emit: Emit, control: RunControl) -> None:
        self.runtime = runtime
        self.control = control
        self.slots = anyio.Semaphore(runtime.agent_concurrency)
        self.visibility = VisibilityTracker(
            runtime.visibility, evidence=runtime.evidence, passthrough=runtime.unmocked_tools == "passthrough"
        )
        self.emit = self.visibility.wrap_emit(_warn_unreadable_usage(emit))
        self.count = 0
        self._one_finished = anyio.Event()
        self.none_follows = anyio.Event()

    def begin(self) -> None:
        self.count += 1
        self.control.active_conversations += 1
        self.visibility.note_conversation_start()
        if self.none_follows.is_set():
            self.none_follows = anyio.Event()

    def end_playing(self) -> None:
        """Note that a conversation provides no more evidence about the visibility of its calls."""
        self.visibility.note_conversation_end()
        self.control.active_conversations -= 1

    def finish(self) -> None:
        self.count -= 1
        self._one_finished.set()
        self._one_finished = anyio.Event()

    async def wait_for_one(self) -> None:
        await self._one_finished.wait()


class _RunningSample:
    """A sample that a runner is playing. Everything that a runner cannot know is decided here: when the next
    conversation may start, whether an errored sample is repeated, and how a sample ends that its runner
    lost."""

    def __init__(self, sample: Sample, running: _RunState) -> None:
        self._sample = sample
        self._running = running
        self._events: list[Event] = []
        self._is_played = False
        self._holds_slot = True
        self._was_victim = False

    async def run(self, runner: SampleRunner) -> None:
        cause = ""
        try:
            await runner.run_sample(self._sample, self._emit, self)
            cause = "its runner reported no end"
        except SampleLostError as error:
            cause, self._was_victim = str(error), error.was_victim
        except Exception as error:
            cause = f"its runner failed: {error!r}"
        finally:
            if not any(isinstance(event, SampleFinished) for event in self._events):
                await self._finish_lost(cause)
            self.end_conversation()
            self._running.finish()
            self._release_slot()

    async def wait_until_known(self) -> None:
        pass  # what is reported here is known at once

    def free_slot(self) -> None:
        # With ``fail_fast`` no sample starts before this one has a result.
        if self._running.runtime.fail_fast:
            self._running.none_follows.set()
        else:
            self._release_slot()

    def end_conversation(self) -> None:
        if not self._is_played:
            self._is_played = True
            self._running.end_playing()

    def _release_slot(self) -> None:
        if self._holds_slot:
            self._holds_slot = False
            self._running.slots.release()

    def _emit(self, event: Event) -> None:
        if isinstance(event, SampleFinished) and self._should_repeat(event):
            text = f"the conversation failed with an error and is repeated: {event.stop.detail}"
            self._running.emit(Notice(text=text, key=self._sample.key))
            event = event.model_copy(update={"again": True})
        self._running.emit(event)
        self._events.append(event)

    def _should_repeat(self, end: SampleFinished) -> bool:
        """Check whether the sample should be retried, that is, whether the whole sample errored because of a
        fault that may not recur."""
        running, agent = self._running, self._sample.key.agent
        if running.control.is_stopping or not end.stop.is_loss or end.stop.is_final:
            return False
        events = [*self._events, *running.visibility.evidence_events(agent), end]
        return running.runtime.queue.plays_again(end.key, events, was_victim=self._was_victim)

    async def _finish_lost(self, cause: str) -> None:
        """End a sample whose runner did not. ``cause`` is empty if the run was cancelled."""
        running, key = self._running, self._sample.key
        stop = Stop(reason=StopReason.INTERRUPTED, detail=running.control.stop_reason)
        if cause:
            stop = Stop(reason=StopReason.INFRASTRUCTURE, detail=f"the sample was lost: {cause}")
        if not self._events:
            self._emit(SampleStarted(key=key))
        lost = ScoredSample(
            self._sample,
            self._emit,
            checks=running.runtime.checks.get(key.agent, ()),
            judges=(),
            visibility=running.visibility,
        )
        await lost.check_lost(tuple(self._events), stop)
        self._emit(SampleFinished(key=key, stop=stop))
