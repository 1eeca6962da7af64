"""Report one simulated or recorded sample: each turn and the results of the scorers, in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import anyio
from anyio.abc import TaskGroup

from agenteval.conversation.deadlines import Stopwatch, exempt_from_deadlines
from agenteval.conversation.visibility_tracker import VisibilityTracker
from agenteval.core.errors import AuthorError
from agenteval.core.event import Event, ReferenceStatesMade, SampleFinished, Scored, TurnFinished
from agenteval.core.protocols import Emit, Reviewer, Scorer, ScorerResults
from agenteval.core.scenario import Sample, Scenario
from agenteval.core.score import ScoreFailure, ScoreItem, UserReview
from agenteval.core.trajectory import Stop, StopReason, Trajectory
from agenteval.core.world_state import ReferenceState


class ScoredSample:
    """A sample that is being scored. ``checks`` contains scorers in code, which run within the conversation.
    ``judges`` call models in parallel with the conversation. ``visibility`` tracks how many of the agent's
    calls are seen."""

    def __init__(
        self,
        sample: Sample,
        emit: Emit,
        *,
        checks: Sequence[Scorer],
        judges: Sequence[Scorer],
        visibility: VisibilityTracker,
    ) -> None:
        self.sample = sample
        self.last_trajectory = Trajectory()
        self.watch = Stopwatch()
        self.events: list[Event] = []
        self._references: tuple[ReferenceState, ...] = ()
        self.is_refused = False
        """True if one of the sample's judges was not called."""
        self._is_whole = False  # the checks have run on the whole conversation
        self._emit_all = emit
        self._checks = checks
        self._judges = judges
        self._visibility = visibility

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self._emit_all(event)

    def use_references(self, states: tuple[ReferenceState, ...]) -> None:
        """Report the states with which ``same_as`` compares, and let the checks have them."""
        if states:
            self._references = states
            self.emit(ReferenceStatesMade(key=self.sample.key, states=states))

    async def score_progress(self, trajectory: Trajectory, judging: TaskGroup | None) -> None:
        """Report progress in the conversation (another turn or the end), and run all scorers on the new
        state. ``judging`` is the task group for the judges, if there are any."""
        self.last_trajectory = trajectory
        turns = trajectory.turns
        if trajectory.stop is None:
            index = len(turns) - 1
            self.emit(TurnFinished(key=self.sample.key, index=index, turn=turns[index]))
            await self._check("turn", trajectory, index)
            self._judge("turn", trajectory, index, judging)
            return
        if trajectory.unfinished:
            await self._check("turn", trajectory, len(turns))
        if trajectory.ends_with_call:
            self._judge("turn", Trajectory(turns=trajectory.all_turns), len(turns), judging)
        await self._check("conversation", trajectory, None)
        self._judge("conversation", trajectory, None, judging)

    async def check_interrupted(self, stop: Stop) -> None:
        """Run the checks on an interrupted conversation to determine what its turns prove so far."""
        if self.last_trajectory.turns and not self._is_whole:
            with anyio.CancelScope(shield=True):
                await self._check(
                    "conversation", self.last_trajectory.model_copy(update={"stop": stop}), None
                )

    async def check_lost(self, events: Sequence[Event], stop: Stop) -> None:
        """Run the checks on a conversation of which the end is lost: on the turns in ``events`` that were not
        checked yet, and on the conversation. What its turns prove stands."""
        turns = [event.turn for event in events if isinstance(event, TurnFinished)]
        checked = {event.turn for event in events if isinstance(event, Scored)}
        references = [event for event in events if isinstance(event, ReferenceStatesMade)]
        self._references = references[-1].states if references else ()
        with anyio.CancelScope(shield=True):
            for index in range(len(turns)):
                if index not in checked:
                    await self._check("turn", Trajectory(turns=tuple(turns[: index + 1])), index)
        self.last_trajectory = Trajectory(turns=tuple(turns))
        await self.check_interrupted(stop)

    async def review_user(
        self, reviewer_of: Reviewer | None, stop: Stop | None, shown: Callable[[], Sequence[Event]]
    ) -> Stop | None:
        """Return the reason why the conversation ended, after a review of the simulated user.

        If a fault of the user explains the outcome, the outcome is attributed to the simulator, and only what
        was proven before the fault still counts. ``shown`` returns the evidence collected so far about the
        visibility of the agent's calls."""
        if reviewer_of is None or stop is None or stop.fault is not None:
            return stop
        self.last_trajectory = await self._visibility.with_final_visibility(self.sample, self.last_trajectory)
        key = self.sample.key
        last = self.last_trajectory
        end = SampleFinished(key=key, stop=stop, unfinished=last.unfinished, state=last.end_state)
        reviewer = reviewer_of(self.sample, [*self.events, *shown(), end])
        if reviewer is None:
            return stop
        with exempt_from_deadlines(self.watch, "the review of the simulated user"):
            items = list_items(await self._run(reviewer, self.last_trajectory))
        self.emit(Scored(key=key, turn=None, items=tuple(items)))
        fault = next((item for item in items if isinstance(item, UserReview) and item.decides), None)
        if fault is None:
            return stop
        stop = Stop(reason=StopReason.SIMULATOR, detail=fault.sentence, user_usage=stop.user_usage)
        await self._check(
            "conversation", Trajectory(turns=self.last_trajectory.turns[: fault.turn], stop=stop), None
        )
        self.last_trajectory = self.last_trajectory.model_copy(update={"stop": stop})
        return stop

    async def _check(self, scope: str, trajectory: Trajectory, turn: int | None) -> None:
        """Run the checks in code, which never wait."""
        self._is_whole |= trajectory.stop is not None
        trajectory = self._visibility.with_current_visibility(self.sample, trajectory)
        trajectory = self._with_references(trajectory)
        for check in self._checks:
            if check.scope == scope:
                await self._ask(check, trajectory, turn)

    def _with_references(self, trajectory: Trajectory) -> Trajectory:
        if not self._references:
            return trajectory
        return trajectory.model_copy(update={"references": self._references})

    def _judge(self, scope: str, trajectory: Trajectory, turn: int | None, judging: TaskGroup | None) -> None:
        judges = [judge for judge in self._judges if judge.scope == scope]
        if judging is not None and judges:
            judging.start_soon(self._ask_judges, judges, trajectory, turn, judging)

    async def _ask_judges(
        self, judges: Sequence[Scorer], trajectory: Trajectory, turn: int | None, judging: TaskGroup
    ) -> None:
        """Ask all judges about one trajectory, so that they share whatever is made of it."""
        with exempt_from_deadlines(self.watch, "evidence from other conversations about the agent's calls"):
            trajectory = await self._visibility.with_final_visibility(self.sample, trajectory)
        trajectory = self._with_references(trajectory)
        for judge in judges:
            judging.start_soon(self._ask, judge, trajectory, turn)

    async def _ask(self, scorer: Scorer, trajectory: Trajectory, turn: int | None) -> None:
        with exempt_from_deadlines(self.watch, f"the {_metric(scorer)} judge"):
            results = await self._run(scorer, trajectory)
        by_turn = results if isinstance(results, Mapping) else {turn: results}
        for place, items in by_turn.items():
            if items:
                self.emit(Scored(key=self.sample.key, turn=place, items=tuple(items)))

    async def _run(self, scorer: Scorer, trajectory: Trajectory) -> ScorerResults:
        results = await run_scorer(scorer, self.sample.scenario, trajectory)
        items = list_items(results)
        self.is_refused |= any(isinstance(item, ScoreFailure) and item.refused for item in items)
        return results


def list_items(results: ScorerResults) -> tuple[ScoreItem, ...]:
    """Return a scorer's results without the turns that they belong to."""
    return tuple(chain(*results.values()) if isinstance(results, Mapping) else results)


async def run_scorer(scorer: Scorer, scenario: Scenario, trajectory: Trajectory) -> ScorerResults:
    """Return the results of a scorer or, if the scorer fails, a ``ScoreFailure``. A fault in a scorer never
    raises an exception."""
    try:
        return await scorer(scenario, trajectory)
    except AuthorError as error:
        return (ScoreFailure(metric=_metric(scorer), message=str(error), author=True),)
    except (Exception, SystemExit) as error:
        broke = f"the scorer failed: {next(leaf_errors(error))!r}"
        return (ScoreFailure(metric=_metric(scorer), message=broke),)


def _metric(scorer: Scorer) -> str:
    return getattr(scorer, "metric", type(scorer).__name__)


def leaf_errors(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from leaf_errors(each)
    else:
        yield error
