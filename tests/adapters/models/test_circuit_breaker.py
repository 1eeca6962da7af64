"""A judge that always fails is no longer called; one that has answered is judged by the record instead."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from pydantic import BaseModel

from agenteval.adapters.models.circuit_breaker import (
    CURRENT_RUBRIC_CALL,
    FAILURES,
    CircuitBreakerModel,
    RubricCall,
    RubricCircuit,
)
from agenteval.core.errors import (
    AgentevalError,
    AuthorError,
    BudgetError,
    InfrastructureError,
    RequestSkippedError,
    UnreadableReplyError,
)
from agenteval.core.protocols import ModelReply, ModelRequest, Subject
from agenteval.core.trajectory import Usage
from tests.support.virtual_time import VirtualTime, run_virtually

DOWN = InfrastructureError("the server is down")
UNREADABLE = UnreadableReplyError("not an answer")
FLAWED = UnreadableReplyError("a wrong quotation", is_flawed=True)


class Answer(BaseModel):
    said: str = "fine"


def about(metric: str = "tone") -> ModelRequest:
    return ModelRequest("judge", "s", "p", Answer, Subject(metric=metric))


class Judge:
    """Ends each call as the next of ``ends`` says (the last one for all others), after ``takes_s``.

    ``begun`` are the times at which calls began."""

    def __init__(self, *ends: AgentevalError | Exception | None, takes_s: float = 0.0) -> None:
        self._ends = list(ends)
        self._takes_s = takes_s
        self.calls = 0
        self.begun: list[float] = []
        self.closed = 0
        self.call: RubricCall | None = None

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        end = self._ends.pop(0) if len(self._ends) > 1 else self._ends[0]
        self.call = CURRENT_RUBRIC_CALL.get()
        self.begun.append(anyio.current_time())
        await anyio.sleep(self._takes_s if self.calls > 1 else self._takes_s / 2)
        if end:
            raise end
        return ModelReply(Answer(), Usage(calls=1), "j/x")

    async def aclose(self) -> None:
        self.closed += 1


class Played:
    """What became of each of a row of calls, and the warnings."""

    def __init__(self, judge: Judge, *metrics: str) -> None:
        self.judge = judge
        self.warnings: list[str] = []
        self.ends: list[str] = []
        self.model = CircuitBreakerModel(judge, "openai/x", warn=self.warnings.append)
        anyio.run(self._play, metrics)

    async def _play(self, metrics: tuple[str, ...]) -> None:
        for metric in metrics:
            try:
                reply = await self.model.complete(about(metric))
                self.ends.append(reply.model)
            except Exception as error:
                self.ends.append(type(error).__name__)


def ends_of(*row: tuple[str, int]) -> list[str]:
    return [name for name, times in row for _ in range(times)]


def test_five_failures_in_a_row_end_it() -> None:
    assert FAILURES == 5
    played = Played(Judge(DOWN), *["tone"] * 7)
    assert played.ends == ends_of(("InfrastructureError", 5), ("RequestSkippedError", 2))
    assert played.judge.calls == 5
    (warning,) = played.warnings
    assert all(fact in warning for fact in ("openai/x", "tone", "5 times", "the server is down"))


def test_each_rubric_has_its_own_failures() -> None:
    played = Played(Judge(DOWN), *["tone", "goal"] * 4, "tone", "tone", "goal")
    assert played.ends[-2:] == ["RequestSkippedError", "InfrastructureError"]
    assert len(played.warnings) == 2


def test_an_answer_begins_the_count_again() -> None:
    played = Played(Judge(DOWN, DOWN, DOWN, DOWN, None, DOWN), *["tone"] * 11)
    assert played.ends == ends_of(
        ("InfrastructureError", 4), ("j/x", 1), ("InfrastructureError", 5), ("RequestSkippedError", 1)
    )


def test_an_unreadable_answer_counts_until_the_first_one_that_is_read() -> None:
    never = Played(Judge(UNREADABLE), *["tone"] * 6)
    assert never.ends == ends_of(("UnreadableReplyError", 5), ("RequestSkippedError", 1))
    once = Played(Judge(None, UNREADABLE), *["tone"] * 9)
    assert once.ends == ends_of(("j/x", 1), ("UnreadableReplyError", 8))
    assert not once.warnings


def test_a_flawed_answer_is_an_answer() -> None:
    played = Played(Judge(FLAWED, UNREADABLE), *["tone"] * 8)
    assert played.ends == ["UnreadableReplyError"] * 8
    assert not played.warnings


@pytest.mark.parametrize("error", [AuthorError("x"), RequestSkippedError("x"), BudgetError("x")])
def test_what_is_not_the_judges_fault_does_not_count(error: Exception) -> None:
    played = Played(Judge(error), *["tone"] * 8)
    assert played.ends == [type(error).__name__] * 8
    assert not played.warnings


def test_any_other_exception_counts() -> None:
    played = Played(Judge(ZeroDivisionError("oops")), *["tone"] * 6)
    assert played.ends == ends_of(("ZeroDivisionError", 5), ("RequestSkippedError", 1))


def test_a_call_is_known_while_it_runs() -> None:
    played = Played(Judge(None), "tone")
    assert played.judge.call is not None
    assert CURRENT_RUBRIC_CALL.get() is None


def test_the_model_is_closed() -> None:
    played = Played(Judge(None))
    anyio.run(played.model.aclose)
    assert played.judge.closed == 1


# ── several calls at a time ──────────────────────────────────────────────────────────────────────


def play_at_once(judge: Judge, count: int) -> tuple[list[str], list[str], float]:
    ends: list[str] = []
    warnings: list[str] = []
    took: list[float] = []

    async def main(time: VirtualTime) -> None:
        model = CircuitBreakerModel(judge, "openai/x", warn=warnings.append)

        async def ask() -> None:
            try:
                ends.append((await model.complete(about())).model)
            except AgentevalError as error:
                ends.append(type(error).__name__)

        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(ask)
        took.append(time())

    run_virtually(main)
    return ends, warnings, took[0]


def test_until_the_first_answer_five_calls_are_in_flight() -> None:
    judge = Judge(None, takes_s=10)
    ends, _, took_s = play_at_once(judge, 12)
    assert ends == ["j/x"] * 12
    assert judge.begun == [0] * 5 + [5] * 7  # those that waited begin when the first answer is there
    assert took_s == 15


def test_no_call_follows_five_that_failed() -> None:
    judge = Judge(DOWN, takes_s=10)
    ends, warnings, took_s = play_at_once(judge, 12)
    assert ends == ends_of(("InfrastructureError", 5), ("RequestSkippedError", 7))
    assert (judge.begun, len(warnings), took_s) == ([0] * 5, 1, 10)


def test_a_call_follows_each_failure_that_leaves_room() -> None:
    judge = Judge(DOWN, None, takes_s=10)
    ends, _, _ = play_at_once(judge, 6)
    assert sorted(ends) == ["InfrastructureError"] + ["j/x"] * 5
    assert judge.begun == [0] * 5 + [10]  # the failure counts like a call in flight


# ── the state of a rubric ────────────────────────────────────────────────────────────────────────


def failed(circuit: RubricCircuit, times: int, error: Exception = DOWN) -> list[bool]:
    return [circuit.record_failure(error) for _ in range(times)]


def test_the_fifth_failure_opens_the_circuit_once() -> None:
    circuit = RubricCircuit()
    assert (circuit.has_answered, circuit.closed_for) == (False, "")
    assert failed(circuit, 7) == [False] * 4 + [True] + [False] * 2
    assert circuit.closed_for == "the server is down"


def test_a_late_answer_closes_it_again() -> None:
    circuit = RubricCircuit()
    failed(circuit, 5)
    circuit.record_success()
    assert (circuit.has_answered, circuit.closed_for) == (True, "")
    assert failed(circuit, 5) == [False] * 4 + [True]
    assert failed(circuit, 1, UNREADABLE) == [False]


def test_the_reason_is_one_short_line() -> None:
    circuit = RubricCircuit()
    failed(circuit, 5, InfrastructureError("a\n" * 400))
    assert len(circuit.closed_for) == 300
    assert "\n" not in circuit.closed_for


@pytest.mark.parametrize(("is_sent", "cls"), [(False, RequestSkippedError), (True, InfrastructureError)])
def test_a_call_that_was_sent_is_not_skipped(is_sent: bool, cls: type[Exception]) -> None:
    circuit = RubricCircuit()
    call = RubricCall(circuit, "what happened")
    call.require_open()
    if is_sent:
        call.send()
        call.send()
    failed(circuit, 5)
    attempts: tuple[Callable[[], None], ...] = (call.require_open, call.send)
    for attempt in attempts:
        with pytest.raises(InfrastructureError) as error:
            attempt()
        assert type(error.value) is cls
        assert "what happened: the server is down" in str(error.value)
