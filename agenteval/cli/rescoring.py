"""Recorded conversations in, events out: what a run tells, of conversations that were held long ago."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from agenteval.conversation.current_sample import enter
from agenteval.conversation.found_visibility import FoundVisibility
from agenteval.conversation.pipeline import Control, said_by
from agenteval.core.event import Event, SampleFinished, SampleStarted, Scored, TurnFinished
from agenteval.core.plan import Applies, Plan
from agenteval.core.protocols import Emit, Reviewer, Scorer
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.score import ScoreItem, UserReview
from agenteval.core.tool_visibility import KnownVisibility, evidence_in, own_visibility, visibility_of
from agenteval.core.trajectory import Stop, StopReason, Trajectory
from agenteval.core.value import changed
from agenteval.files.recorded.identity import Recorded
from agenteval.scoring.resolve import applies_of

_BREATH = 20
"""After so many conversations that nothing had to be waited for, signals are heard."""
_SCORED = Scored(key=SampleKey(scenario="", agent=""), turn=None, items=())


@dataclass(frozen=True)
class Rescoring:
    """``checks_of``: the scorers in code for a conversation. ``judges`` ask models; of so many conversations
    at a time. ``applies_of``: what applies to a scenario with an agent, where that is not what the suite
    says of all. ``visibility``: by agent, what is known of how its calls are seen."""

    checks_of: Callable[[Recorded], Sequence[Scorer]]
    judges: Sequence[Scorer] = ()
    applies_of: Callable[[Scenario, str], Applies | None] = lambda _scenario, _agent: None
    visibility: Mapping[str, KnownVisibility] = field(default_factory=dict)
    in_flight: int = 20
    review: Reviewer | None = None
    """Who looks at the users of conversations that were judged."""

    def seen(self, recorded: Recorded, trajectory: Trajectory) -> Trajectory:
        """Return what was held with how much of its calls is seen, as far as this record alone tells."""
        known = self.visibility.get(recorded.key.agent) or self.visibility.get("")
        if recorded.scenario.tools:
            evidence = evidence_in(recorded.trajectory.all_turns)
            found = visibility_of(known, evidence, passthrough=False)
        else:
            found = own_visibility(known, trajectory.all_turns)
        return trajectory.model_copy(update={"visibility": found})


class Applied:
    """What applies to one conversation after the other; ``None``: what the suite says of all. Mostly they are
    of a few kinds, each of which is one value."""

    def __init__(self, suite: Plan) -> None:
        self._suite = suite
        self._known: dict[str, Applies | None] = {}

    def __call__(self, scenario: Scenario, agent: str) -> Applies | None:
        applies = applies_of(scenario, self._suite, agent)
        return self._known.setdefault(repr(applies), None if applies == self._suite.default else applies)


async def rescore(
    conversations: Iterable[Recorded], rescoring: Rescoring, emit: Emit, control: Control
) -> None:
    """Score each conversation, and keep none. Without judges one after the other; with them, up to
    ``in_flight`` at a time. ``control`` ends it early."""
    slots = anyio.Semaphore(rescoring.in_flight)
    found = FoundVisibility(rescoring.visibility)
    emit = found.emitting(emit)
    async with anyio.create_task_group() as group:
        control.attach(group.cancel_scope)
        for number, recorded in enumerate(conversations):
            if not control.may_begin(recorded):
                break
            if not rescoring.judges:
                await _score(recorded, rescoring, emit, None)
                if number % _BREATH == 0:
                    await anyio.lowlevel.checkpoint()
                continue
            await slots.acquire()
            group.start_soon(_judge, recorded, rescoring, emit, slots, found)


async def _judge(
    recorded: Recorded,
    rescoring: Rescoring,
    emit: Emit,
    slots: anyio.Semaphore,
    found: FoundVisibility,
) -> None:
    enter(recorded.key)
    events: list[Event] = []

    def emit_and_keep(event: Event) -> None:
        events.append(event)
        emit(event)

    try:
        async with anyio.create_task_group() as scoring:
            await _score(recorded, rescoring, emit_and_keep, scoring, finish=False)
        shown = found.shown_by(recorded.key.agent)
        _finish(recorded, emit, await _review(recorded, rescoring, emit, [*events, *shown]))
    except BaseException:
        stop = Stop(reason=StopReason.INTERRUPTED, detail="the run was interrupted")
        with suppress(Exception):
            _finish(recorded, emit, stop)
        raise
    finally:
        slots.release()


async def _score(
    recorded: Recorded, rescoring: Rescoring, emit: Emit, scoring: TaskGroup | None, *, finish: bool = True
) -> None:
    """The turns as they were finished, then the whole: each scorer sees what had happened by then."""
    applies = rescoring.applies_of(recorded.scenario, recorded.key.agent)
    emit(SampleStarted(key=recorded.key, applies=applies, scenario=recorded.scenario))
    ask = _Asking(recorded, rescoring, emit, scoring)
    turns = recorded.trajectory.turns
    for index, turn in enumerate(turns):
        emit(TurnFinished(key=recorded.key, index=index, turn=turn))
        await ask.all("turn", Trajectory(turns=turns[: index + 1]), index)
    whole = recorded.trajectory
    review = recorded.replayed.review if recorded.replayed else None
    if review:  # of the user that was then: none is asked anew
        emit(Scored(key=recorded.key, turn=None, items=(review,)))
        if review.decides:
            whole = Trajectory(turns=turns[: review.turn], stop=whole.stop)
    if whole.unfinished:
        await ask.all("turn", whole, len(turns), checks_alone=True)
        if whole.ends_at_a_call:
            ask.judge("turn", Trajectory(turns=whole.all_turns), len(turns))
    await ask.all("conversation", whole, None)
    if recorded.checks:
        emit(Scored(key=recorded.key, turn=None, items=recorded.checks))
    if finish:
        _finish(recorded, emit, recorded.trajectory.stop)


async def _review(
    recorded: Recorded, rescoring: Rescoring, emit: Emit, events: Sequence[Event]
) -> Stop | None:
    """Why the conversation ended, once its user was looked at. Of a run of ours that was done then; where the
    user's fault explains the outcome, only what was proven before it stands, as in a run."""
    stop = recorded.trajectory.stop
    was_reviewed = recorded.replayed is not None and recorded.replayed.review is not None
    if rescoring.review is None or was_reviewed or stop is None or stop.reason is not StopReason.RECORDED:
        return stop
    end = SampleFinished(key=recorded.key, stop=stop, unfinished=recorded.trajectory.unfinished)
    reviewer = rescoring.review(Sample(key=recorded.key, scenario=recorded.scenario), [*events, end])
    if reviewer is None:
        return stop
    whole = rescoring.seen(recorded, recorded.trajectory)
    items = await said_by(reviewer, recorded.scenario, whole)
    emit(Scored(key=recorded.key, turn=None, items=tuple(items)))
    fault = next((item for item in items if isinstance(item, UserReview) and item.decides), None)
    if fault is None:
        return stop
    stop = Stop(reason=StopReason.SIMULATOR, detail=fault.sentence)
    before = Trajectory(turns=recorded.trajectory.turns[: fault.turn], stop=stop)
    await _Asking(recorded, rescoring, emit, None).all("conversation", before, None)
    if recorded.checks:
        emit(Scored(key=recorded.key, turn=None, items=recorded.checks))
    return stop


def _finish(recorded: Recorded, emit: Emit, stop: Stop | None) -> None:
    assert stop is not None
    names = dict(recorded.replayed.names) if recorded.replayed else {}
    unfinished = recorded.trajectory.unfinished
    emit(SampleFinished(key=recorded.key, stop=stop, unfinished=unfinished, names=names))


class _Asking:
    """Checks are asked in passing, judges beside everything else."""

    def __init__(
        self, recorded: Recorded, rescoring: Rescoring, emit: Emit, scoring: TaskGroup | None
    ) -> None:
        self._recorded = recorded
        self._emit = emit
        self._scoring = scoring
        self._checks = rescoring.checks_of(recorded)
        self._seen = partial(rescoring.seen, recorded)
        stop = recorded.trajectory.stop
        lost = stop is not None and stop.fault not in (None, "agent")
        self._judges = () if lost else tuple(rescoring.judges)

    async def all(
        self, scope: str, trajectory: Trajectory, turn: int | None, *, checks_alone: bool = False
    ) -> None:
        items: list[ScoreItem] = []
        seen = self._seen(trajectory)
        for check in self._checks:
            if check.scope == scope:
                items += await said_by(check, self._recorded.scenario, seen)
        if items:
            own = {"key": self._recorded.key, "turn": turn, "items": tuple(items)}
            self._emit(changed(_SCORED, own))
        if not checks_alone:
            self.judge(scope, trajectory, turn)

    def judge(self, scope: str, trajectory: Trajectory, turn: int | None) -> None:
        trajectory = self._seen(trajectory)
        for judge in self._judges:
            if judge.scope == scope and self._scoring:
                self._scoring.start_soon(self._ask, judge, trajectory, turn)

    async def _ask(self, judge: Scorer, trajectory: Trajectory, turn: int | None) -> None:
        items = await said_by(judge, self._recorded.scenario, trajectory)
        if items:
            self._emit(Scored(key=self._recorded.key, turn=turn, items=tuple(items)))
