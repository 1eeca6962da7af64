"""Runs samples in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio
from anyio.abc import TaskGroup

from agenteval.conversation.current_sample import enter_sample, leave_sample
from agenteval.conversation.hooks import run_hook
from agenteval.conversation.reference_states import make_references, reference_calls
from agenteval.conversation.runtime import RunControl, Runtime
from agenteval.conversation.scored_sample import ScoredSample, leaf_errors
from agenteval.conversation.simulation import ToolWorld, run_conversation, with_late_calls
from agenteval.conversation.visibility_tracker import VisibilityTracker
from agenteval.core.errors import AuthorError
from agenteval.core.event import Notice, SampleFinished, SampleStarted
from agenteval.core.protocols import Agent, ConversationProgress, Emit, close, settle
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import Stop, StopReason, ToolVisibility, Turn


@dataclass(frozen=True)
class LocalRunner:
    """The runner that plays samples in this process."""

    runtime: Runtime
    control: RunControl
    visibility: VisibilityTracker
    """Tracks the visibility of the agents' calls in all conversations of this process."""
    none_follows: Callable[[], anyio.Event]
    """Returns the event that is set when no other sample is about to begin."""

    async def run_sample(self, sample: Sample, emit: Emit, progress: ConversationProgress) -> None:
        await _LocalSample(sample, emit, progress, self).run()


def _stop_for_error(error: Exception) -> Stop:
    """Return the stop for a sample that was ended by the author's mistake or by a defect in agenteval or a
    plugin. Other samples are not affected."""
    causes = list(leaf_errors(error))
    mistake = next((cause for cause in causes if isinstance(cause, AuthorError)), None)
    if mistake:
        return Stop(reason=StopReason.AUTHOR_ERROR, detail=str(mistake))
    return Stop(reason=StopReason.INFRASTRUCTURE, detail=f"internal error in agenteval: {causes[0]!r}")


class _LocalSample:
    def __init__(
        self, sample: Sample, emit: Emit, progress: ConversationProgress, runner: LocalRunner
    ) -> None:
        agent, runtime = sample.key.agent, runner.runtime
        self._sample = sample
        self._runner = runner
        self._runtime = runtime
        self._progress = progress
        self._scored = ScoredSample(
            sample,
            emit,
            checks=runtime.checks.get(agent, ()),
            judges=runtime.judges.get(agent, ()),
            visibility=runner.visibility,
        )
        self._world: ToolWorld | None = None

    async def run(self) -> None:
        key, scored, control = self._sample.key, self._scored, self._runner.control
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
                shown = partial(self._runner.visibility.evidence_events, key.agent)
                stop = await scored.review_user(self._runtime.reviewer, self._final_stop(), shown)
        except Exception as error:
            stop = _stop_for_error(error)
            if stop.fault != "author":  # the report lists the author's mistakes itself
                scored.emit(Notice(level="error", text=stop.detail, key=key))
        finally:
            stop = stop or Stop(reason=StopReason.INTERRUPTED, detail=control.stop_reason)
            await scored.check_interrupted(stop)
            if is_set_up:
                stop = await self._tear_down(stop)
            unfinished = self._unfinished(control.stop_reason)
            took_s = round(anyio.current_time() - began_s, 3)
            refused, state = scored.is_refused, scored.last_trajectory.end_state
            scored.emit(
                SampleFinished(
                    key=key, stop=stop, unfinished=unfinished, state=state, refused=refused, took_s=took_s
                )
            )
            self._stop_accepting_calls()
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

    def _stop_accepting_calls(self) -> None:
        """Stop judging the agent's calls. If the conversation appeared to be in order, a later call causes a
        warning."""
        if self._world is None:
            return
        if self._scored.last_trajectory.stop and self._world.rounds:
            self._world.on_late_call = self._warn_late_call
        self._world.rounds = None
        self._world.close()

    def _warn_late_call(self, name: str) -> None:
        assert self._world
        self._world.on_late_call = lambda name: None
        text = f"the agent called '{name}' after its conversation had ended; the call is not judged"
        self._scored.emit(Notice(level="warning", text=text, key=self._sample.key))

    def _warn_once(self, text: str) -> None:
        if text not in self._runtime.emitted_warnings:
            self._runtime.emitted_warnings.add(text)
            self._scored.emit(Notice(level="warning", text=text, key=self._sample.key))

    async def _converse(self, judging: TaskGroup) -> None:
        try:
            await self._follow(judging)
        except (
            SystemExit
        ) as error:  # raised by an agent's object while it is read; it would end the event loop
            raise RuntimeError(f"SystemExit: {error}") from error

    async def _make_world(self) -> ToolWorld:
        runtime, sample = self._runtime, self._sample
        database = runtime.make_database(sample)
        return ToolWorld(
            sample,
            runtime.call_function,
            unmocked_tools=runtime.unmocked_tools,
            sees_all_calls=_reads_all(runtime, sample),
            database=database,
            python_world=await runtime.open_world(sample, database),
            start_over=self._make_world,
        )

    async def _follow(self, judging: TaskGroup) -> None:
        runtime, sample = self._runtime, self._sample
        # The sample begins here, in its own task, from which its scorers are started.
        enter_sample(sample.key)
        if calls := reference_calls(sample.scenario):
            self._scored.use_references(await make_references(calls, sample.scenario, self._make_world))
        world = self._world = await self._make_world()
        world.on_warning = self._warn_once
        agent: Agent | None = None

        def make_agent() -> Agent:
            nonlocal agent
            agent = runtime.agents[sample.key.agent].make(sample)
            return agent

        async def detach(left: Agent | None) -> None:
            nonlocal agent
            agent = None
            close(left)
            self._progress.free_slot()
            await settle(left, self._runner.none_follows())

        user = runtime.make_user(sample, world.call_user_tool)
        trajectories = run_conversation(sample, user=user, make_agent=make_agent, world=world, detach=detach)
        try:
            async for trajectory in trajectories:
                if trajectory.stop is not None:
                    close(agent)
                    agent = None
                    self._progress.free_slot()
                await self._scored.score_progress(trajectory, judging)
                if trajectory.stop is None:
                    await self._progress.wait_until_known()
                else:
                    self._progress.end_conversation()
        finally:
            close(agent)


def _reads_all(runtime: Runtime, sample: Sample) -> bool:
    known = runtime.visibility.get(sample.key.agent)
    return known is not None and known.is_authors and known.calls is ToolVisibility.ALL
