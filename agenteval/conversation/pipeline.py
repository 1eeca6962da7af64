"""Run samples concurrently and emit events. This module contains task groups and concurrency limits, and no
other policy."""

from __future__ import annotations

from functools import partial

import anyio
from anyio.abc import TaskGroup

from agenteval.conversation.current_sample import leave_sample
from agenteval.conversation.hooks import run_hook
from agenteval.conversation.runtime import RunControl, Runtime
from agenteval.conversation.scored_sample import ScoredSample, leaf_errors
from agenteval.conversation.simulation import ToolWorld, run_conversation, with_late_calls
from agenteval.conversation.visibility_tracker import VisibilityTracker
from agenteval.core.errors import AuthorError
from agenteval.core.event import Event, Notice, SampleFinished, SampleStarted, TurnFinished
from agenteval.core.protocols import (
    Agent,
    Emit,
    close,
    settle,
)
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import Stop, StopReason, ToolVisibility, Turn


async def run_samples(runtime: Runtime, emit: Emit, control: RunControl) -> None:
    """Run every sample in the queue, with at most ``agent_concurrency`` concurrent conversations (like a
    worker pool). A fault in one sample never ends another sample."""
    running = _RunState(runtime, emit, control)
    async with anyio.create_task_group() as group:
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
                group.start_soon(_RunningSample(sample, running).run)
                continue
            running.none_follows.set()
            running.slots.release()
            if control.is_stopping or not running.count:
                break
            await running.wait_for_one()


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


def _stop_for_error(error: Exception) -> Stop:
    """Return the stop for a sample that was ended by the author's mistake or by a defect in agenteval or a
    plugin. Other samples are not affected."""
    causes = list(leaf_errors(error))
    mistake = next((cause for cause in causes if isinstance(cause, AuthorError)), None)
    if mistake:
        return Stop(reason=StopReason.AUTHOR_ERROR, detail=str(mistake))
    return Stop(reason=StopReason.INFRASTRUCTURE, detail=f"internal error in agenteval: {causes[0]!r}")


class _RunningSample:
    def __init__(self, sample: Sample, running: _RunState) -> None:
        agent, runtime, visibility = sample.key.agent, running.runtime, running.visibility
        self._sample = sample
        self._running = running
        self._runtime = runtime
        self._evidence_events = partial(visibility.evidence_events, agent)
        self._scored = ScoredSample(
            sample,
            running.emit,
            checks=runtime.checks.get(agent, ()),
            judges=runtime.judges.get(agent, ()),
            visibility=visibility,
        )
        self._is_played = False
        self._holds_slot = True
        self._world: ToolWorld | None = None

    async def run(self) -> None:
        key, scored, control = self._sample.key, self._scored, self._running.control
        scored.emit(SampleStarted(key=key))
        began_s = anyio.current_time()
        stop: Stop | None = None
        is_set_up = False
        try:
            await run_hook("setup", self._sample)
            is_set_up = True
            with self._runtime.deadlines.time_sample(key) as scored.watch:
                async with anyio.create_task_group() as judging:
                    await self._converse(judging)
                stop = await scored.review_user(
                    self._runtime.reviewer, self._final_stop(), self._evidence_events
                )
        except Exception as error:
            stop = _stop_for_error(error)
            if stop.fault != "author":  # the report lists the author's mistakes itself
                self._running.emit(Notice(level="error", text=stop.detail, key=key))
        finally:
            stop = stop or Stop(reason=StopReason.INTERRUPTED, detail=control.stop_reason)
            await scored.check_interrupted(stop)
            if is_set_up:
                stop = await self._tear_down(stop)
            unfinished = self._unfinished(control.stop_reason)
            took_s = round(anyio.current_time() - began_s, 3)
            end = SampleFinished(
                key=key, stop=stop, unfinished=unfinished, refused=scored.is_refused, took_s=took_s
            )
            if not control.is_stopping and self._should_repeat(end):
                text = f"the conversation failed with an error and is repeated: {stop.detail}"
                self._running.emit(Notice(text=text, key=key))
                end = end.model_copy(update={"again": True})
            self._running.emit(end)
            self._stop_accepting_calls()
            self._end_playing()
            self._running.finish()
            self._free_slot()
            leave_sample()

    async def _tear_down(self, stop: Stop) -> Stop:
        """Run the hook ``teardown``, even if the run is being stopped. Return the reason why the sample
        ended, which is the author's error if the hook fails."""
        try:
            with anyio.CancelScope(shield=True):
                await run_hook("teardown", self._sample)
        except AuthorError as error:
            return _stop_for_error(error)
        return stop

    def _unfinished(self, why: str) -> Turn | None:
        """Return the turn that failed or was interrupted, with everything done up to that point."""
        last = self._scored.last_trajectory
        if last.stop is None and self._world and self._world.open_turn:
            return self._world.open_turn.close(error=why)
        return last.unfinished

    def _final_stop(self) -> Stop | None:
        """Return the reason why the conversation ended. A tool call that is made while the judges are at work
        is also considered late."""
        if self._world:
            self._scored.last_trajectory = with_late_calls(self._scored.last_trajectory, self._world)
        return self._scored.last_trajectory.stop

    def _should_repeat(self, end: SampleFinished) -> bool:
        """Check whether the sample should be retried, that is, whether the whole sample errored because of a
        fault that may not recur."""
        if not end.stop.is_loss or end.stop.is_final:
            return False
        events = [*self._scored.events, *self._evidence_events(), end]
        return self._runtime.queue.plays_again(end.key, events)

    def _stop_accepting_calls(self) -> None:
        """Stop judging the agent's calls. If the conversation appeared to be in order, a later call causes a
        warning."""
        if self._world is None:
            return
        if self._scored.last_trajectory.stop and self._world.rounds:
            self._world.on_late_call = self._warn_late_call
        self._world.rounds = None

    def _warn_late_call(self, name: str) -> None:
        assert self._world
        self._world.on_late_call = lambda name: None
        text = f"the agent called '{name}' after its conversation had ended; the call is not judged"
        self._scored.emit(Notice(level="warning", text=text, key=self._sample.key))

    def _warn_unread_message(self, text: str) -> None:
        if text not in self._runtime.emitted_warnings:
            self._runtime.emitted_warnings.add(text)
            self._scored.emit(Notice(level="warning", text=text, key=self._sample.key))

    def _end_playing(self) -> None:
        if not self._is_played:
            self._is_played = True
            self._running.end_playing()

    def _free_slot(self) -> None:
        """Free the conversation's slot when its simulation ends. Its scoring finishes later."""
        if self._holds_slot:
            self._holds_slot = False
            self._running.slots.release()

    async def _converse(self, judging: TaskGroup) -> None:
        try:
            await self._follow(judging)
        except (
            SystemExit
        ) as error:  # raised by an agent's object while it is read; it would end the event loop
            raise RuntimeError(f"SystemExit: {error}") from error

    async def _follow(self, judging: TaskGroup) -> None:
        runtime, sample = self._runtime, self._sample
        world = self._world = ToolWorld(
            sample,
            runtime.call_function,
            unmocked_tools=runtime.unmocked_tools,
            sees_all_calls=_reads_all(runtime, sample),
        )
        world.on_unread_message = self._warn_unread_message
        agent: Agent | None = None

        def make_agent() -> Agent:
            nonlocal agent
            agent = runtime.agents[sample.key.agent].make(sample)
            return agent

        async def detach(left: Agent | None) -> None:
            nonlocal agent
            agent = None
            close(left)
            # With ``fail_fast`` no sample starts before this one has a result.
            if runtime.fail_fast:
                self._running.none_follows.set()
            else:
                self._free_slot()
            await settle(left, self._running.none_follows)

        user = runtime.make_user(sample)
        trajectories = run_conversation(sample, user=user, make_agent=make_agent, world=world, detach=detach)
        try:
            async for trajectory in trajectories:
                if trajectory.stop is not None:
                    close(agent)
                    agent = None
                    if not runtime.fail_fast:
                        self._free_slot()
                await self._scored.score_progress(trajectory, judging)
                if trajectory.stop is not None:
                    self._end_playing()
        finally:
            close(agent)


def _reads_all(runtime: Runtime, sample: Sample) -> bool:
    known = runtime.visibility.get(sample.key.agent)
    return known is not None and known.is_authors and known.calls is ToolVisibility.ALL
