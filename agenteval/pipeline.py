"""The spine: samples in, events out. Task groups and limits, no other policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import anyio
from anyio.abc import TaskGroup

from agenteval.errors import AuthorError
from agenteval.event import Notice, SampleFinished, SampleStarted, Scored, TurnFinished
from agenteval.protocols import AgentFactory, Emit, Scorer, User
from agenteval.scenario import Sample
from agenteval.score import ScoreFailure, ScoreItem
from agenteval.simulate import CallFunction, ToolWorld, converse
from agenteval.trajectory import Stop, StopReason, Trajectory, Turn

Outcome: TypeAlias = Literal["complete", "interrupted", "fail_fast", "budget"]


@dataclass(frozen=True)
class Plan:
    """All that a run needs. ``checks`` are code and run in passing; ``judges``, by agent, ask models and
    run beside the conversation. ``is_failure`` says, for ``--fail-fast``, whether a sample failed."""

    samples: Sequence[Sample]
    agents: Mapping[str, AgentFactory]
    make_user: Callable[[Sample], User]
    call_function: CallFunction
    checks: Sequence[Scorer] = ()
    judges: Mapping[str, Sequence[Scorer]] = field(default_factory=dict)
    agent_concurrency: int = 20
    unmocked: str = "error"
    is_failure: Callable[[Sequence[ScoreItem], Stop], bool] | None = None


class Control:
    """How a run is told to end early. ``stop``: start nothing more; ``cancel``: end what runs, too."""

    def __init__(self) -> None:
        self.outcome: Outcome = "complete"
        self._scope: anyio.CancelScope | None = None

    @property
    def stopping(self) -> bool:
        return self.outcome != "complete"

    def stop(self, outcome: Outcome) -> None:
        if not self.stopping:
            self.outcome = outcome

    def cancel(self, outcome: Outcome) -> None:
        self.stop(outcome)
        if self._scope:
            self._scope.cancel()

    def attach(self, scope: anyio.CancelScope) -> None:
        self._scope = scope


async def run(plan: Plan, emit: Emit, control: Control) -> None:
    """Run every sample of the plan, at most ``agent_concurrency`` conversations at a time. A fault of
    one sample never ends another."""
    slots = anyio.Semaphore(plan.agent_concurrency)
    async with anyio.create_task_group() as group:
        control.attach(group.cancel_scope)
        for sample in plan.samples:
            await slots.acquire()
            if control.stopping:
                break
            group.start_soon(_run_sample, sample, plan, emit, control, slots)


async def _run_sample(
    sample: Sample, plan: Plan, emit: Emit, control: Control, slots: anyio.Semaphore
) -> None:
    running = _RunningSample(sample, plan, emit, slots)
    emit(SampleStarted(key=sample.key))
    stop = Stop(reason=StopReason.INTERRUPTED, detail="the run was interrupted")
    try:
        async with anyio.create_task_group() as scoring:
            await running.converse(scoring)
        stop = running.last.stop or stop
    except Exception as error:
        # A defect of ours or of a plugin: this sample is lost, the others are not.
        text = f"agenteval's own error: {_first(error)!r}"
        stop = Stop(reason=StopReason.INFRASTRUCTURE, detail=text)
        emit(Notice(level="error", text=text, key=sample.key))
    finally:
        running.free_slot()
        emit(SampleFinished(key=sample.key, stop=stop, unfinished=running.unfinished))
        if plan.is_failure and plan.is_failure(running.items, stop):
            control.stop("fail_fast")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _RunningSample:
    def __init__(self, sample: Sample, plan: Plan, emit: Emit, slots: anyio.Semaphore) -> None:
        self.sample = sample
        self.last = Trajectory()
        self.items: list[ScoreItem] = []
        self._plan = plan
        self._emit = emit
        self._slots: anyio.Semaphore | None = slots
        self._world: ToolWorld | None = None

    @property
    def unfinished(self) -> Turn | None:
        """The turn that broke, or that an interruption cut off: what was done by then is kept."""
        if self.last.stop is None and self._world and self._world.open_turn:
            return self._world.open_turn.close(error="the run was interrupted")
        return self.last.unfinished

    def free_slot(self) -> None:
        """A conversation's slot is free when its simulation ends; its scores drain afterwards."""
        slots, self._slots = self._slots, None
        if slots:
            slots.release()

    async def converse(self, scoring: TaskGroup) -> None:
        plan, sample = self._plan, self.sample
        world = self._world = ToolWorld(sample, plan.call_function, unmocked=plan.unmocked)
        trajectories = converse(
            sample,
            user=plan.make_user(sample),
            make_agent=lambda: plan.agents[sample.key.agent].make(sample),
            world=world,
        )
        async for trajectory in trajectories:
            self.last = trajectory
            if trajectory.stop is None:
                index = len(trajectory.turns) - 1
                self._emit(TurnFinished(key=sample.key, index=index, turn=trajectory.turns[-1]))
                await self._score("turn", trajectory, index, scoring)
            else:
                if not plan.is_failure:  # --fail-fast starts nothing before the verdict is known
                    self.free_slot()
                await self._score("conversation", trajectory, None, scoring)

    async def _score(self, scope: str, trajectory: Trajectory, turn: int | None, scoring: TaskGroup) -> None:
        for check in self._plan.checks:
            if check.scope == scope:
                await self._ask(check, trajectory, turn)
        for judge in self._plan.judges.get(self.sample.key.agent, ()):
            if judge.scope == scope:
                scoring.start_soon(self._ask, judge, trajectory, turn)

    async def _ask(self, scorer: Scorer, trajectory: Trajectory, turn: int | None) -> None:
        items: Sequence[ScoreItem]
        try:
            items = await scorer(self.sample.scenario, trajectory)
        except AuthorError as error:
            items = (ScoreFailure(metric=_metric(scorer), message=str(error), author=True),)
        except Exception as error:
            text = f"the scorer broke: {_first(error)!r}"
            items = (ScoreFailure(metric=_metric(scorer), message=text),)
        if items:
            self.items.extend(items)
            self._emit(Scored(key=self.sample.key, turn=turn, items=tuple(items)))


def _metric(scorer: Scorer) -> str:
    return getattr(scorer, "metric", type(scorer).__name__)
