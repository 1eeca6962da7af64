"""Samples of a run: how many play at once, what ends a run early, and what a fault means for its sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from agenteval.conversation.current_sample import enter_sample, sample_memory
from agenteval.conversation.pipeline import run_samples
from agenteval.conversation.runtime import RunControl, Runtime
from agenteval.core.errors import AgentError, AuthorError, InfrastructureError, Problem
from agenteval.core.event import Event, Notice, SampleFinished, SampleStarted, Scored, TurnFinished
from agenteval.core.protocols import AgentReply, ReadReply, UserMove
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.score import Check, ScoreFailure
from agenteval.core.trajectory import Stop, StopReason, Trajectory, Turn

# ── a run ────────────────────────────────────────────────────────────────────────────────────────


class Queue:
    def __init__(self, count: int, *, repeats: bool = False) -> None:
        scenario = Scenario(id="s")
        self.left = [
            Sample(key=SampleKey(scenario="s", agent="a", epoch=number), scenario=scenario)
            for number in range(count)
        ]
        self.repeats, self.asked = repeats, 0

    def __call__(self, event: Event, /) -> None:
        pass

    def next(self) -> Sample | None:
        return self.left.pop(0) if self.left else None

    def plays_again(self, key: SampleKey, events: Sequence[Event], /, *, was_victim: bool = False) -> bool:
        assert isinstance(events[-1], SampleFinished)
        self.asked += 1
        return self.repeats


class User:
    """Sends one message."""

    async def next(self, trajectory: Trajectory) -> UserMove:
        return UserMove(
            None if trajectory.turns else "Hi", stop=StopReason.USER_DONE if trajectory.turns else None
        )


class Agents:
    """A factory of agents, and each of them: ``reply`` is what they answer or raise."""

    def __init__(self, reply: Any = "Hello.") -> None:
        self.answer, self.running, self.most, self.made, self.closed = reply, 0, 0, 0, 0

    def make(self, _sample: Sample) -> Agents:
        self.made += 1
        return self

    async def reply(self, _messages: Any, _tools: Any) -> AgentReply:
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        self.running -= 1
        answer = self.answer() if callable(self.answer) else self.answer
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, AgentReply) else AgentReply(answer)

    def end_conversation(self) -> None:
        self.closed += 1

    async def aclose(self) -> None:
        pass


class Scoring:
    def __init__(self, scope: str, *items: Any) -> None:
        self.scope, self._items = scope, items

    async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Any]:
        return self._items


async def _no_function(*_: Any) -> Any:
    raise AssertionError


def run(
    queue: Queue,
    agents: Agents | None = None,
    *,
    control: RunControl | None = None,
    on_event: Callable[[Event, RunControl], None] = lambda _event, _control: None,
    make_user: Callable[..., Any] = lambda *_: User(),
    **more: Any,
) -> list[Event]:
    control = control or RunControl()
    events: list[Event] = []

    def emit(event: Event) -> None:
        events.append(event)
        on_event(event, control)

    runtime = Runtime(queue, {"a": agents or Agents()}, make_user, _no_function, **more)
    anyio.run(run_samples, runtime, emit, control)
    assert control.active_conversations == 0
    return events


def ends(events: list[Event]) -> list[SampleFinished]:
    return [event for event in events if isinstance(event, SampleFinished)]


@pytest.mark.parametrize(("count", "limit", "most"), [(5, 2, 2), (2, 5, 2), (3, 1, 1), (0, 2, 0)])
def test_conversations_at_once(count: int, limit: int, most: int) -> None:
    agents = Agents()
    events = run(Queue(count), agents, agent_concurrency=limit)
    assert (agents.most, agents.made, agents.closed) == (most, count, count)
    assert sorted(end.key.epoch for end in ends(events)) == list(range(count))
    assert {end.stop.reason for end in ends(events)} <= {StopReason.USER_DONE}


def test_the_defaults() -> None:
    plain = Runtime(Queue(0), {}, lambda _sample: User(), _no_function)
    assert (plain.agent_concurrency, plain.unmocked_tools, plain.fail_fast) == (20, "error", False)


def test_the_events_of_a_sample() -> None:
    checks = [
        Scoring("turn", Check(name="t", passed=True)),
        Scoring("conversation", Check(name="c", passed=True)),
    ]
    judges = [Scoring("conversation", Check(name="j", passed=True))]
    events = run(Queue(1), checks={"a": checks}, judges={"a": judges})
    kinds = [event.items[0].name if isinstance(event, Scored) else event.type for event in events]  # type: ignore[union-attr]
    assert kinds == ["sample_started", "turn_finished", "t", "c", "j", "sample_finished"]
    unscored = run(Queue(1), checks={"b": checks}, judges={"b": judges})
    assert [type(event) for event in unscored] == [SampleStarted, TurnFinished, SampleFinished]


@pytest.mark.parametrize(
    ("answer", "reason", "is_noted"),
    [
        (AgentError("broke"), StopReason.AGENT_ERROR, False),
        (InfrastructureError("down"), StopReason.INFRASTRUCTURE, False),
        (AuthorError(Problem("wrong")), StopReason.AUTHOR_ERROR, False),
        (ZeroDivisionError("defect"), StopReason.INFRASTRUCTURE, True),
        (SystemExit(0), StopReason.INFRASTRUCTURE, True),
        (
            ExceptionGroup("g", [ValueError("x"), AuthorError(Problem("wrong"))]),
            StopReason.AUTHOR_ERROR,
            False,
        ),
    ],
)
def test_a_fault_ends_only_its_own_sample(answer: BaseException, reason: StopReason, is_noted: bool) -> None:
    answers: list[Any] = [answer, "Hello."]
    events = run(Queue(2), Agents(lambda: answers.pop(0)), agent_concurrency=1)
    first, second = ends(events)
    assert (first.stop.reason, second.stop.reason) == (reason, StopReason.USER_DONE)
    assert any(isinstance(event, Notice) and event.level == "error" for event in events) is is_noted
    assert first.unfinished is not None
    assert first.unfinished.user == "Hi"


@pytest.mark.parametrize(
    ("answer", "repeats", "asked", "again"),
    [
        (InfrastructureError("down"), True, 1, True),
        (InfrastructureError("down"), False, 1, False),
        (InfrastructureError("down", is_final=True), True, 0, False),
        (AgentError("broke"), True, 0, False),
        (AuthorError(Problem("wrong")), True, 0, False),
        ("Hello.", True, 0, False),
    ],
)
def test_a_lost_conversation_may_be_repeated(answer: Any, repeats: bool, asked: int, again: bool) -> None:
    queue = Queue(1, repeats=repeats)
    events = run(queue, Agents(answer))
    (end,) = ends(events)
    assert (queue.asked, end.again) == (asked, again)
    assert sum(isinstance(event, Notice) for event in events) == again


def test_nothing_is_repeated_once_the_run_is_stopping() -> None:
    def stop(event: Event, control: RunControl) -> None:
        if isinstance(event, SampleStarted):
            control.stop("budget")

    queue = Queue(3, repeats=True)
    events = run(queue, Agents(InfrastructureError("down")), on_event=stop, agent_concurrency=1)
    (end,) = ends(events)
    assert (end.again, queue.asked, len(queue.left)) == (False, 0, 2)


def test_a_stop_lets_conversations_end_and_a_cancellation_does_not() -> None:
    def act(name: str) -> Callable[[Event, RunControl], None]:
        def on_event(event: Event, control: RunControl) -> None:
            if isinstance(event, SampleStarted):
                getattr(control, name)("fail_fast", "why")

        return on_event

    (stopped,) = ends(run(Queue(2), on_event=act("stop"), agent_concurrency=1))
    assert stopped.stop.reason is StopReason.USER_DONE
    (cancelled,) = ends(run(Queue(2), on_event=act("cancel"), agent_concurrency=1))
    assert (cancelled.stop.reason, cancelled.stop.detail) == (StopReason.INTERRUPTED, "why")


class LosingRunner:
    """Starts a sample, unless ``starts`` is false, and then does what ``end`` does instead of ending it."""

    def __init__(self, end: Callable[[], Any], *, starts: bool = True) -> None:
        self._end, self._starts = end, starts

    async def run_sample(self, sample: Sample, emit: Any, progress: Any) -> None:
        if self._starts:
            emit(SampleStarted(key=sample.key))
        await anyio.lowlevel.checkpoint()
        self._end()


def lose() -> None:
    raise ConnectionError("gone")


@pytest.mark.parametrize("starts", [True, False])
@pytest.mark.parametrize("end", [lose, lambda: None])
def test_a_sample_that_its_runner_loses_is_ended_for_it(end: Callable[[], Any], starts: bool) -> None:
    events = run(Queue(2), runner=LosingRunner(end, starts=starts), agent_concurrency=1)
    assert [type(event) for event in events] == [SampleStarted, SampleFinished] * 2
    assert {end.stop.reason for end in ends(events)} == {StopReason.INFRASTRUCTURE}
    assert all("gone" in each.stop.detail for each in ends(events)) is (end is lose)


def test_what_the_finished_turns_of_a_lost_sample_prove_is_checked() -> None:
    class LosesTurn2(LosingRunner):
        async def run_sample(self, sample: Sample, emit: Any, progress: Any) -> None:
            emit(SampleStarted(key=sample.key))
            for index, is_scored in enumerate((True, False)):
                emit(TurnFinished(key=sample.key, index=index, turn=Turn(user="Hi")))
                if is_scored:
                    emit(Scored(key=sample.key, turn=index, items=(of_turn,)))
            self._end()

    of_turn, whole = (
        Check(name=name, passed=False, detail="", where="s.yaml:1") for name in ("turn", "whole")
    )
    checks = {"a": [Scoring("turn", of_turn), Scoring("conversation", whole)]}
    events = run(Queue(1), runner=LosesTurn2(lose), checks=checks)
    scored = [(event.turn, event.items) for event in events if isinstance(event, Scored)]
    assert scored == [(0, (of_turn,)), (1, (of_turn,)), (None, (whole,))]
    assert isinstance(events[-1], SampleFinished)
    assert events[-1].stop.reason is StopReason.INFRASTRUCTURE


def test_a_sample_that_its_runner_loses_is_repeated_if_the_queue_says_so() -> None:
    queue = Queue(1, repeats=True)
    events = run(queue, runner=LosingRunner(lose))
    (end,) = ends(events)
    assert (queue.asked, end.again) == (1, True)


def test_a_runner_that_is_cancelled_need_not_end_its_samples() -> None:
    def cancel(event: Event, control: RunControl) -> None:
        if isinstance(event, SampleStarted):
            control.cancel("deadline", "too late")

    queue = Queue(1, repeats=True)
    (end,) = ends(run(queue, runner=LosingRunner(lose), on_event=cancel))
    assert (end.stop.reason, end.stop.detail, queue.asked) == (StopReason.INTERRUPTED, "too late", 0)


def test_a_runner_that_fails_after_the_end_has_lost_nothing() -> None:
    class Late(LosingRunner):
        async def run_sample(self, sample: Sample, emit: Any, progress: Any) -> None:
            emit(SampleStarted(key=sample.key))
            emit(SampleFinished(key=sample.key, stop=Stop(reason=StopReason.USER_DONE)))
            self._end()

    (end,) = ends(run(Queue(1), runner=Late(lose)))
    assert end.stop.reason is StopReason.USER_DONE


@pytest.mark.parametrize(("fail_fast", "most"), [(False, 2), (True, 1)])
def test_a_runner_frees_the_slot_of_a_conversation_unless_results_are_awaited(
    fail_fast: bool, most: int
) -> None:
    class Judging:
        running = most = 0

        async def run_sample(self, sample: Sample, emit: Any, progress: Any) -> None:
            self.running += 1
            self.most = max(self.most, self.running)
            emit(SampleStarted(key=sample.key))
            progress.free_slot()
            progress.end_conversation()
            assert control.active_conversations == 0
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            self.running -= 1
            emit(SampleFinished(key=sample.key, stop=Stop(reason=StopReason.USER_DONE)))

    control, runner = RunControl(), Judging()
    events = run(Queue(2), control=control, runner=runner, agent_concurrency=1, fail_fast=fail_fast)
    assert (len(ends(events)), runner.most) == (2, most)
    assert {end.stop.reason for end in ends(events)} == {StopReason.USER_DONE}


def test_an_interrupted_run_begins_nothing() -> None:
    control = RunControl()
    control.interrupt()
    assert run(Queue(2), control=control) == []
    assert control.outcome == "interrupted"
    control = RunControl()
    control.interrupt()
    run(Queue(0), control=control)
    assert control.outcome == "complete"


def test_a_judge_that_was_not_called_marks_the_sample() -> None:
    refused = ScoreFailure(metric="m", message="no", refused=True)
    (end,) = ends(run(Queue(1), judges={"a": [Scoring("turn", refused)]}))
    assert end.refused
    (end,) = ends(run(Queue(1), judges={"a": [Scoring("turn", ScoreFailure(metric="m", message="no"))]}))
    assert not end.refused


@pytest.mark.parametrize(("fail_fast", "waits"), [(False, False), (True, True)])
def test_whether_a_conversation_waits_for_the_judges_of_the_one_before(fail_fast: bool, waits: bool) -> None:
    class Slow(Scoring):
        async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Any]:
            for _ in range(200):
                await anyio.lowlevel.checkpoint()
            return self._items

    judges = {"a": [Slow("conversation", Check(name="j", passed=True))]}
    events = run(Queue(2), judges=judges, fail_fast=fail_fast, agent_concurrency=1)
    order = [(event.type, event.key.epoch) for event in events if isinstance(event, SampleStarted | Scored)]
    assert (order.index(("scored", 0)) < order.index(("sample_started", 1))) is waits


def test_usage_that_cannot_be_read_is_noted_once_for_an_agent() -> None:
    events = run(Queue(3), Agents(AgentReply("Hi", usage={"prompt_tokens": "many"})), agent_concurrency=1)
    notices = [event for event in events if isinstance(event, Notice)]
    assert [(notice.level, notice.key and notice.key.epoch) for notice in notices] == [("warning", 0)]
    assert "many" in notices[0].text


def test_content_that_is_not_recognized_is_noted_once_for_the_run() -> None:
    emitted: set[str] = set()
    agents = Agents(ReadReply("Hi", unplaced=("a picture",)))
    events = run(Queue(2), agents, agent_concurrency=1, emitted_warnings=emitted)
    assert [event.text for event in events if isinstance(event, Notice)] == ["a picture"]
    assert emitted == {"a picture"}


def test_judges_of_a_sample_share_its_memory_which_is_cleared_when_it_ends() -> None:
    memories: list[dict[Any, Any]] = []

    class Keeping(Scoring):
        async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Any]:
            memory = sample_memory()
            memory[len(memory)] = trajectory
            memories.append(memory)
            return ()

    def make_user(sample: Sample, _call_tool: Any) -> User:
        enter_sample(sample.key)
        return User()

    lengths: list[int] = []
    judges = {"a": [Keeping("turn"), Keeping("turn"), Keeping("conversation")]}

    def note_end(event: Event, _control: RunControl) -> None:
        if isinstance(event, SampleFinished):
            lengths.extend(map(len, memories))

    run(Queue(2), judges=judges, make_user=make_user, on_event=note_end)
    assert max(lengths) == 3
    assert len({id(memory) for memory in memories}) == 2
    assert all(memory == {} for memory in memories)
