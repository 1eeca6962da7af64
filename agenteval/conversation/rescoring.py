"""Score recorded conversations: emit the events of a run for conversations that took place earlier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from agenteval.conversation.current_sample import enter_sample, leave_sample
from agenteval.conversation.runtime import RunControl
from agenteval.conversation.scored_sample import ScoredSample
from agenteval.conversation.visibility_tracker import VisibilityTracker
from agenteval.core.event import SampleFinished, SampleStarted, Scored
from agenteval.core.plan import ScenarioRules
from agenteval.core.protocols import Emit, Reviewer, Scorer
from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.core.scenario import Sample, Scenario
from agenteval.core.tool_visibility import KnownVisibility, evidence_in
from agenteval.core.trajectory import Stop, StopReason, Trajectory

_BREATH = 20
"""The number of conversations that are scored in succession before signals are handled."""


@dataclass(frozen=True)
class Rescoring:
    """The settings for scoring recorded conversations."""

    checks_of: Callable[[RecordedConversation], Sequence[Scorer]]
    """Returns the scorers in code for a conversation."""
    judges: Sequence[Scorer] = ()
    """The scorers that call models (LLM-as-a-judge)."""
    rules_for: Callable[[Scenario, str], ScenarioRules | None] = lambda _scenario, _agent: None
    """Returns the rules for a scenario and an agent if they differ from the rules of the suite."""
    visibility: Mapping[str, KnownVisibility] = field(default_factory=dict)
    """The known visibility of each agent's calls, keyed by agent."""
    max_concurrent: int = 20
    """The maximum number of conversations that are judged concurrently."""
    reviewer: Reviewer | None = None
    """The reviewer of the simulated users in conversations that were judged."""


async def rescore(
    conversations: Iterable[RecordedConversation], rescoring: Rescoring, emit: Emit, control: RunControl
) -> None:
    """Score each recorded conversation without keeping any of them in memory. Without judges, conversations
    are scored one after another; with judges, up to ``max_concurrent`` at a time. ``control`` can end the
    scoring early."""
    slots = anyio.Semaphore(rescoring.max_concurrent)
    visibility = VisibilityTracker(rescoring.visibility)
    emit = visibility.wrap_emit(emit)
    async with anyio.create_task_group() as group:
        control.attach(group.cancel_scope)
        for number, recorded in enumerate(conversations):
            if not control.may_begin(recorded):
                break
            one = _RecordedSample(recorded, rescoring, emit)
            if not rescoring.judges:
                await one.score(None)
                one.finish(recorded.trajectory.stop)
                if number % _BREATH == 0:
                    await anyio.lowlevel.checkpoint()
                continue
            await slots.acquire()
            group.start_soon(_judge, one, slots, visibility)


async def _judge(one: _RecordedSample, slots: anyio.Semaphore, visibility: VisibilityTracker) -> None:
    enter_sample(one.key)
    try:
        async with anyio.create_task_group() as judging:
            await one.score(judging)
        one.finish(await one.review(visibility))
    except BaseException:
        with suppress(Exception):
            one.finish(Stop(reason=StopReason.INTERRUPTED, detail="the run was interrupted"))
        raise
    finally:
        slots.release()
        leave_sample()


class _RecordedSample:
    def __init__(self, recorded: RecordedConversation, rescoring: Rescoring, emit: Emit) -> None:
        self.key = recorded.key
        self._recorded = recorded
        self._rescoring = rescoring
        stop = recorded.trajectory.stop
        is_lost = stop is not None and stop.fault not in (None, "agent")
        shown = {recorded.key.agent: evidence_in(recorded.trajectory.all_turns)}
        self._scored = ScoredSample(
            Sample(key=recorded.key, scenario=recorded.scenario),
            emit,
            checks=rescoring.checks_of(recorded),
            judges=() if is_lost else rescoring.judges,
            # This record alone determines how many of its calls are seen.
            visibility=VisibilityTracker(rescoring.visibility, evidence=shown, may_start=False),
        )

    async def score(self, judging: TaskGroup | None) -> None:
        """Score the turns in the order in which they finished, then the whole conversation. Each scorer sees
        only what had happened up to that point."""
        key, scenario = self.key, self._recorded.scenario
        rules = self._rescoring.rules_for(scenario, key.agent)
        self._scored.emit(SampleStarted(key=key, rules=rules, scenario=scenario))
        self._scored.use_references(self._recorded.references)
        for trajectory in self._trajectories():
            await self._scored.score_progress(trajectory, judging)
        self._emit_known_checks()

    def _trajectories(self) -> Iterator[Trajectory]:
        complete = self._recorded.trajectory
        for count in range(1, len(complete.turns) + 1):
            yield Trajectory(turns=complete.turns[:count])
        review = self._recorded.review
        if review:  # the review of the original user: no new one is requested
            self._scored.emit(Scored(key=self.key, turn=None, items=(review,)))
            if review.decides:
                complete = Trajectory(turns=complete.turns[: review.turn], stop=complete.stop)
        yield complete

    def _emit_known_checks(self) -> None:
        if self._recorded.checks:
            self._scored.emit(Scored(key=self.key, turn=None, items=self._recorded.checks))

    async def review(self, visibility: VisibilityTracker) -> Stop | None:
        """Return the reason why the conversation ended, after a review of its user. If the conversation was
        recorded in an agenteval run, the review took place in that run."""
        stop = self._recorded.trajectory.stop
        if self._recorded.review or stop is None or stop.reason is not StopReason.RECORDED:
            return stop
        after = await self._scored.review_user(
            self._rescoring.reviewer, stop, lambda: visibility.evidence_events(self.key.agent)
        )
        if after is not stop:
            self._emit_known_checks()
        return after

    def finish(self, stop: Stop | None) -> None:
        assert stop is not None
        names, trajectory = dict(self._recorded.names), self._recorded.trajectory
        self._scored.emit(
            SampleFinished(
                key=self.key,
                stop=stop,
                unfinished=trajectory.unfinished,
                state=trajectory.end_state,
                names=names,
            )
        )
