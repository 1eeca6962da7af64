"""A sample that is scored: which scorers run on what, in which order, and what a review changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from agenteval.conversation.scored_sample import ScoredSample, leaf_errors, run_scorer
from agenteval.conversation.visibility_tracker import VisibilityTracker
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import Event, SampleFinished, Scored, TurnFinished
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.score import Check, ScoreFailure, UserReview
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, ToolVisibility, Trajectory, Turn

SAMPLE = Sample(key=SampleKey(scenario="s", agent="a"), scenario=Scenario(id="s"))
CALL = Step(tool_calls=(ToolCall(name="t", args={}),))
A, B = (Turn(user=name, steps=(Step(text=name),)) for name in "ab")
DONE = Stop(reason=StopReason.USER_DONE)
FAILED = Check(name="c", passed=False)


class Recorder:
    """A scorer that notes what it was called with."""

    def __init__(self, scope: str, log: list[Any], name: str = "", *items: Any, error: Any = None) -> None:
        self.scope, self.metric = scope, name or scope
        self._log, self._items, self._error = log, items, error

    async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Any]:
        stop = trajectory.stop.reason if trajectory.stop else None
        self._log.append((self.metric, len(trajectory.turns), bool(trajectory.unfinished), stop))
        if self._error:
            raise self._error
        return self._items


def scored_sample(
    log: list[Any], *items: Any, tracker: VisibilityTracker | None = None, error: Any = None
) -> ScoredSample:
    return ScoredSample(
        SAMPLE,
        lambda event: None,
        checks=[
            Recorder(scope, log, f"check {scope}", *items, error=error) for scope in ("turn", "conversation")
        ],
        judges=[Recorder(scope, log, f"judge {scope}") for scope in ("turn", "conversation")],
        visibility=tracker or VisibilityTracker({}, may_start=False),
    )


def progress(*trajectories: Trajectory, with_judges: bool = True) -> tuple[list[Any], ScoredSample]:
    log: list[Any] = []
    scored = scored_sample(log, FAILED)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for trajectory in trajectories:
                await scored.score_progress(trajectory, group if with_judges else None)

    anyio.run(main)
    return log, scored


RECORDED = Stop(reason=StopReason.RECORDED)
HANDED = Turn(user="c", steps=(CALL,), error="no answer")


@pytest.mark.parametrize(
    ("trajectory", "calls"),
    [
        (Trajectory(turns=(A, B)), [("check turn", 2, False, None), ("judge turn", 2, False, None)]),
        (
            Trajectory(turns=(A,), stop=DONE),
            [("check conversation", 1, False, "user_done"), ("judge conversation", 1, False, "user_done")],
        ),
        (
            Trajectory(turns=(A,), stop=Stop(reason=StopReason.AGENT_ERROR), unfinished=HANDED),
            [
                ("check turn", 1, True, "agent_error"),
                ("check conversation", 1, True, "agent_error"),
                ("judge conversation", 1, True, "agent_error"),
            ],
        ),
        (
            Trajectory(turns=(A,), stop=RECORDED, unfinished=HANDED),  # it ends with a call
            [
                ("check turn", 1, True, "recorded"),
                ("check conversation", 1, True, "recorded"),
                ("judge turn", 2, False, None),
                ("judge conversation", 1, True, "recorded"),
            ],
        ),
        (
            Trajectory(turns=(A,), stop=RECORDED, unfinished=A),
            [
                ("check turn", 1, True, "recorded"),
                ("check conversation", 1, True, "recorded"),
                ("judge conversation", 1, True, "recorded"),
            ],
        ),
    ],
)
def test_which_scorers_run(trajectory: Trajectory, calls: list[Any]) -> None:
    log, scored = progress(trajectory)
    assert log == calls
    assert scored.last_trajectory is trajectory
    without, _ = progress(trajectory, with_judges=False)
    assert without == [call for call in calls if call[0].startswith("check")]


def test_events_name_the_turn() -> None:
    _, scored = progress(
        Trajectory(turns=(A,)),
        Trajectory(turns=(A, B)),
        Trajectory(turns=(A, B), stop=Stop(reason=StopReason.AGENT_ERROR), unfinished=HANDED),
    )
    events = [
        (event.type, event.index if isinstance(event, TurnFinished) else event.turn)
        for event in scored.events
        if isinstance(event, TurnFinished | Scored)
    ]
    assert events == [
        ("turn_finished", 0),
        ("scored", 0),
        ("turn_finished", 1),
        ("scored", 1),
        ("scored", 2),  # of the turn that was interrupted
        ("scored", None),
    ]


def test_scorers_without_results_emit_nothing() -> None:
    log: list[Any] = []
    scored = scored_sample(log)
    anyio.run(scored.score_progress, Trajectory(turns=(A,)), None)
    assert [type(event) for event in scored.events] == [TurnFinished]


@pytest.mark.parametrize(
    ("before", "calls"),
    [
        ([], []),
        ([Trajectory()], []),
        ([Trajectory(turns=(A,))], [("check conversation", 1, False, "interrupted")]),
        ([Trajectory(turns=(A,)), Trajectory(turns=(A,), stop=DONE)], []),  # the checks have run
    ],
)
def test_an_interrupted_conversation_is_checked_once(before: list[Trajectory], calls: list[Any]) -> None:
    log: list[Any] = []
    scored = scored_sample(log)

    async def main() -> None:
        for trajectory in before:
            if trajectory.turns:
                await scored.score_progress(trajectory, None)
        log.clear()
        await scored.check_interrupted(Stop(reason=StopReason.INTERRUPTED))

    anyio.run(main)
    assert log == calls


# ── faults of scorers ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "author", "fact"),
    [
        (AuthorError(Problem("no rule")), True, "no rule"),
        (ValueError("odd"), False, "odd"),
        (SystemExit(3), False, "SystemExit"),
        (ExceptionGroup("g", [ExceptionGroup("h", [KeyError("deep")]), ValueError("odd")]), False, "deep"),
    ],
)
def test_a_fault_of_a_scorer_is_a_failure(error: Any, author: bool, fact: str) -> None:
    scorer = Recorder("turn", [], "mine", error=error)
    (failure,) = anyio.run(run_scorer, scorer, SAMPLE.scenario, Trajectory())
    assert isinstance(failure, ScoreFailure)
    assert (failure.metric, failure.author, fact in failure.message) == ("mine", author, True)


def test_a_scorer_without_a_metric_is_named_after_its_class() -> None:
    class Nameless:
        scope = "turn"

        async def __call__(self, *_: Any) -> Sequence[Any]:
            raise ValueError

    (failure,) = anyio.run(run_scorer, Nameless(), SAMPLE.scenario, Trajectory())
    assert isinstance(failure, ScoreFailure)
    assert failure.metric == "Nameless"


def test_leaves_of_nested_groups() -> None:
    one, two, three = ValueError(1), ValueError(2), ValueError(3)
    nested = ExceptionGroup("g", [one, ExceptionGroup("h", [two]), three])
    assert list(leaf_errors(nested)) == [one, two, three]
    assert list(leaf_errors(one)) == [one]


@pytest.mark.parametrize(("refused", "expected"), [(True, True), (False, False)])
def test_a_judge_that_was_not_called_is_noted(refused: bool, expected: bool) -> None:
    scored = scored_sample([], ScoreFailure(metric="m", message="x", refused=refused), FAILED)
    anyio.run(scored.score_progress, Trajectory(turns=(A,)), None)
    assert scored.is_refused is expected
    anyio.run(scored.check_interrupted, DONE)
    assert scored.is_refused is expected


def test_a_later_judge_does_not_hide_that_one_was_not_called() -> None:
    items = (ScoreFailure(metric="m", message="x", refused=True),), (FAILED,)
    scored = ScoredSample(
        SAMPLE,
        lambda event: None,
        checks=[Recorder("turn", [], "c", *each) for each in items],
        judges=[],
        visibility=VisibilityTracker({}, may_start=False),
    )
    anyio.run(scored.score_progress, Trajectory(turns=(A,)), None)
    assert scored.is_refused


# ── visibility ───────────────────────────────────────────────────────────────────────────────────


def test_checks_see_what_is_known_of_the_calls() -> None:
    found: list[Any] = []

    class Visible(Recorder):
        async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Any]:
            found.append(trajectory.visibility)
            return ()

    scored = ScoredSample(
        SAMPLE,
        lambda event: None,
        checks=[Visible("turn", [])],
        judges=[],
        visibility=VisibilityTracker({}, may_start=False),
    )
    anyio.run(scored.score_progress, Trajectory(turns=(A,)), None)
    assert found == [ToolVisibility.UNSEEN]


# ── the review of the user ───────────────────────────────────────────────────────────────────────


def review(label: str = "hindered", **more: Any) -> UserReview:
    return UserReview(label=label, explains=True, reason="r", evidence="e", **{"turn": 1, **more})


def reviewed(
    stop: Stop | None, *items: Any, reviewer: Callable[..., Any] | None = None, is_asked: bool = True
) -> tuple[Stop | None, ScoredSample, list[Any], list[Event]]:
    log: list[Any] = []
    scored = scored_sample(log, FAILED)
    shown: list[Event] = []

    def find_reviewer(_sample: Sample, events: Sequence[Event]) -> Any:
        shown.extend(events)
        return Recorder("conversation", [], "user_review", *items) if is_asked else None

    async def main() -> Stop | None:
        await scored.score_progress(Trajectory(turns=(A, B), stop=stop), None)
        log.clear()
        return await scored.review_user(reviewer or find_reviewer, stop, lambda: [])

    return anyio.run(main), scored, log, shown


def test_a_fault_of_the_user_that_explains_the_end() -> None:
    found = review()
    spent = DONE.model_copy(update={"user_usage": DONE.user_usage})
    stop, scored, log, shown = reviewed(spent, found)
    assert stop is not None
    assert (stop.reason, stop.fault, stop.detail) == (StopReason.SIMULATOR, "simulator", found.sentence)
    assert log == [("check conversation", 1, False, "simulator")]  # only what came before the fault
    assert scored.last_trajectory.stop == stop
    assert len(scored.last_trajectory.turns) == 2
    assert isinstance(shown[-1], SampleFinished)
    assert shown[-1].stop == spent
    assert [event.items for event in scored.events[-2:] if isinstance(event, Scored)] == [(found,), (FAILED,)]


@pytest.mark.parametrize(
    "items",
    [
        (),
        (review("as it should"),),
        (UserReview(label="hindered", explains=False, turn=1),),
        (review(failed=False),),  # a conversation that passed although it was hindered
        (ScoreFailure(metric="user_review", message="m"),),
    ],
)
def test_reviews_that_change_nothing(items: tuple[Any, ...]) -> None:
    stop, scored, log, _ = reviewed(DONE, *items)
    assert (stop, log) == (DONE, [])
    assert scored.last_trajectory.stop == DONE
    last = scored.events[-1]
    assert isinstance(last, Scored)
    assert last.items == items


@pytest.mark.parametrize(
    ("stop", "is_asked"),
    [
        (Stop(reason=StopReason.AGENT_ERROR), True),
        (Stop(reason=StopReason.INFRASTRUCTURE), True),
        (DONE, False),
    ],
)
def test_conversations_that_are_not_reviewed(stop: Stop, is_asked: bool) -> None:
    after, scored, log, shown = reviewed(stop, review(), is_asked=is_asked)
    assert (after, log, bool(shown)) == (stop, [], stop is DONE)
    assert not any(
        isinstance(item, UserReview) for event in scored.events for item in getattr(event, "items", ())
    )


def test_without_a_reviewer_or_an_end_nothing_is_reviewed() -> None:
    scored = scored_sample([])
    assert anyio.run(scored.review_user, None, DONE, lambda: []) is DONE

    def never(*_: Any) -> Any:
        raise AssertionError

    assert anyio.run(scored.review_user, never, None, lambda: []) is None


def test_all_judges_of_a_turn_are_shown_the_same_object() -> None:
    shown: list[Trajectory] = []

    class Judge:
        scope = "turn"

        async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Any]:
            shown.append(trajectory)
            return ()

    tracker = VisibilityTracker({}, may_start=False)
    scored = ScoredSample(SAMPLE, lambda event: None, checks=[], judges=[Judge()] * 8, visibility=tracker)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for turns in ((A,), (A, B)):
                await scored.score_progress(Trajectory(turns=turns), group)

    anyio.run(main)
    assert [len(each.turns) for each in shown] == [1] * 8 + [2] * 8
    assert len({id(each) for each in shown}) == 2
