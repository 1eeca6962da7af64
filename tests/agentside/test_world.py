"""Whose conversation a piece of code runs for, and what a conversation keeps of its calls."""

from __future__ import annotations

import contextvars
import datetime
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest

from agenteval.agentside import world as worlds
from agenteval.agentside.world import (
    THREAD_CONTEXT_REMEDY,
    ActiveTurn,
    RequestedCall,
    ToolAnswer,
    TurnThread,
    UntrackedCallError,
    World,
    as_json_text,
    bind_world,
    call_in_start_order,
    current_world,
    describe_suspects,
    detach_from_world,
    find_shared_threads,
    is_detached,
    may_be_agent_code,
    open_worlds,
    record_shared_threads,
    set_non_agent_check,
    untracked_call_error,
)


class Calls:
    """The scenario's tools: mocks ``book`` and says what it was asked."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, Any]] = []

    def mocks(self, name: str) -> bool:
        return name == "book"

    async def call(self, name: str, args: Any, run_real: Callable[[], Any]) -> ToolAnswer:
        self.seen.append(("call", name, args))
        return ToolAnswer(await run_real())

    def call_sync(self, name: str, args: Any, run_real: Callable[[], Any]) -> ToolAnswer:
        self.seen.append(("call_sync", name, args))
        return ToolAnswer(run_real())

    async def record(self, name: str, args: Any, run_real: Callable[[], Any]) -> Any:
        self.seen.append(("record", name, args))
        return await run_real()

    def record_sync(self, name: str, args: Any, run_real: Callable[[], Any]) -> Any:
        self.seen.append(("record_sync", name, args))
        return run_real()


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """No conversation of another test is open, and nothing is detached."""
    before = [*worlds._non_agent_checks]
    for each in open_worlds():
        each.close()
    yield
    for each in open_worlds():
        each.close()
    worlds._non_agent_checks[:] = before


def call(world: World, name: str, args: Any = None, **more: Any) -> Any:
    return world.call_sync(name, {} if args is None else args, lambda: "real", **more)


def finish(coroutine: Any) -> Any:
    """Run a coroutine that waits for nothing."""
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    return stopped.value.value


async def real() -> str:
    return "real"


# ── answers ──────────────────────────────────────────────────────────────────────────────────────

TEXTS: dict[str, tuple[Any, str, str]] = {
    "text": ("é", "é", "é"),
    "nothing": (None, "null", "null"),
    "a mapping": ({"a": "é"}, '{"a": "é"}', '{"a": "é"}'),
    "what is not JSON": ([datetime.date(2026, 3, 9)], '["2026-03-09"]', '["2026-03-09"]'),
    "an error": ({"error": "no seat"}, '{"error": "no seat"}', "no seat"),
    "an error that is not text": ({"error": {"code": 4}}, '{"error": {"code": 4}}', '{"code": 4}'),
    "an error and more": ({"error": "x", "a": 1}, '{"error": "x", "a": 1}', '{"error": "x", "a": 1}'),
    "another key": ({"fault": "x"}, '{"fault": "x"}', '{"fault": "x"}'),
    "an empty mapping": ({}, "{}", "{}"),
}


@pytest.mark.parametrize(("value", "text", "failure"), TEXTS.values(), ids=TEXTS)
def test_an_answer_as_text_and_as_failure(value: Any, text: str, failure: str) -> None:
    assert (ToolAnswer(value).text, ToolAnswer(value).failure) == (text, failure)
    assert ToolAnswer(value).is_error is False


# ── arguments ────────────────────────────────────────────────────────────────────────────────────


class Colour(Enum):
    RED = "red"


@dataclass
class Order:
    id: str
    day: datetime.date


class Model:
    def model_dump(self, mode: str = "python") -> Any:
        return {"mode": mode}


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
DAY = datetime.date(2026, 3, 9)

ARGUMENTS: dict[str, tuple[Any, Any]] = {
    "none": ({}, "{}"),
    "several, in their order": ({"b": 1, "a": [None, True]}, '{"b": 1, "a": [null, true]}'),
    "letters": ({"ä": "é"}, '{"\\u00e4": "é"}'),
    "a number as a name": ({1: "a"}, '{"1": "a"}'),
    "an enum": ({"a": Colour.RED}, '{"a": "red"}'),
    "a model": ({"a": Model()}, '{"a": {"mode": "json"}}'),
    "fields": ({"a": Order("O-1", DAY)}, '{"a": {"id": "O-1", "day": "2026-03-09"}}'),
    "a set is sorted": ({"a": {"b", "a", "c"}}, '{"a": ["a", "b", "c"]}'),
    "a frozen set, too": ({"a": frozenset({2, 1})}, '{"a": [1, 2]}'),
    "a date": ({"a": DAY}, '{"a": "2026-03-09"}'),
    "infinite": ({"a": float("inf")}, '{"a": "inf"}'),
    "what a framework injects is left out": ({"db": object(), "a": 1}, '{"a": 1}'),
    "a class": ({"a": Order, "b": 1}, '{"b": 1}'),
    "bytes": ({"a": b"x", "b": bytearray(b"x")}, "{}"),
    "an object within": ({"a": [object()]}, "{}"),
    "itself": ({"a": ENDLESS}, '{"a": "[[...]]"}'),
    "another mapping": (MappingProxyType({"a": 1}), '{"a": 1}'),
    "as the model wrote them": ('{"a": 1', '{"a": 1'),
    "a list": ([1], [1]),
    "nothing": (None, None),
}


@pytest.mark.parametrize(("args", "text"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_as_text(args: Any, text: Any) -> None:
    assert as_json_text(args) == text


# ── calls of a turn ──────────────────────────────────────────────────────────────────────────────


def test_a_call_reaches_the_scenario_and_is_kept() -> None:
    world, calls = World("one"), Calls()
    with world.turn(calls):
        found = call(world, "look", {"day": DAY, "db": object()}, call_id="c1", agent="desk")
        assert found == ToolAnswer("real")
        assert call(world, "raw", '{"a": 1') == ToolAnswer("real")
        assert finish(world.call("later", {"b": 1}, real)) == ToolAnswer("real")
        assert finish(world.record("desk", {}, real)) == "real"
        assert world.record_sync("desk", {"c": 1}, lambda: "real") == "real"
    assert calls.seen == [
        ("call_sync", "look", {"day": "2026-03-09"}),
        ("call_sync", "raw", '{"a": 1'),
        ("call", "later", {"b": 1}),
        ("record", "desk", {}),
        ("record_sync", "desk", {"c": 1}),
    ]
    kept = [
        RequestedCall("look", '{"day": "2026-03-09"}', "c1", "desk"),
        RequestedCall("raw", '{"a": 1', "", ""),
        RequestedCall("later", '{"b": 1}', "", ""),
        RequestedCall("desk", "{}", "", ""),
        RequestedCall("desk", '{"c": 1}', "", ""),
    ]
    assert world.calls_so_far == tuple(kept)
    assert world.take_calls() == kept
    assert world.take_calls() == []
    assert world.take_all_calls() == kept
    assert world.take_all_calls() == []
    assert world.called_tools == {"look", "raw", "later", "desk"}


def test_the_id_of_a_call_that_was_received() -> None:
    world = World()
    with world.turn(Calls()):
        call(world, "look", call_id="c1")
    assert (world.has_received_call("c1"), world.has_received_call("c2")) == (True, False)


def test_a_call_through_ctx_is_kept_without_an_id() -> None:
    world = World()
    world.record_direct_call("look", {"day": DAY})
    world.record_direct_call(5, "x")
    assert world.take_calls() == [
        RequestedCall("look", '{"day": "2026-03-09"}', ""),
        RequestedCall("5", "x", ""),
    ]
    assert world.take_all_calls() == []
    assert world.called_tools == {"look", "5"}


def test_calls_that_nobody_took_are_not_the_next_turns() -> None:
    world = World()
    with world.turn(Calls()):
        call(world, "first")
    call(world, "between")
    with world.turn(Calls()):
        call(world, "second")
    assert [each.name for each in world.calls_so_far] == ["between", "second"]
    assert [each.name for each in world.take_all_calls()] == ["first", "between", "second"]


def test_calls_that_were_taken_in_the_turn_are_not_forgotten_twice() -> None:
    world = World()
    with world.turn(Calls()):
        call(world, "first")
        world.take_calls()
        call(world, "second")
    world.take_calls()
    call(world, "between")
    with world.turn(Calls()):
        assert [each.name for each in world.calls_so_far] == ["between"]


def test_a_call_before_the_first_turn_is_not_run() -> None:
    world, other = World("one"), World("two")
    with pytest.raises(UntrackedCallError) as caught:
        call(world, "look")
    assert "look" in str(caught.value)
    assert caught.value.agenteval_kind == "infrastructure"
    assert world.calls_so_far == ()
    assert "look" in world.take_fault()
    assert "look" in other.take_fault()


def test_a_call_in_a_forked_process_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    with world.turn(Calls()):
        monkeypatch.setattr(os, "getpid", lambda: 1)
        with pytest.raises(UntrackedCallError) as caught:
            call(world, "look")
    assert "look" in str(caught.value)
    assert "fork" in str(caught.value)
    assert world.take_fault() == ""


def test_what_a_turn_mocks() -> None:
    world = World()
    assert world.mocks("book") is False
    with world.turn(Calls()):
        assert (world.mocks("book"), world.mocks("look")) == (True, False)
    assert world.mocks("book") is True


def test_the_tools_that_are_hooked() -> None:
    world = World(intercepted={1: "look", 2: "find"})
    with world.turn(Calls()):
        call(world, "book")
    assert world.hooked_tools == {"look", "find", "book"}
    assert World().hooked_tools == frozenset()
    assert World().intercepted == {}


def test_answered_calls_are_those_of_the_turn() -> None:
    world, one, two = World(), worlds.AnsweredCall("a", {}, 1, False), worlds.AnsweredCall("b", {}, 2, True)
    world.answered_calls.append(one)
    with world.turn(Calls()):
        world.answered_calls.append(two)
    assert world.take_answered_calls() == [two]
    assert world.take_answered_calls() == []


def test_notes_of_calls_that_are_not_seen() -> None:
    world = World()
    for what in ("b", "a", "b"):
        world.note_unseen_calls(what)
    assert world.take_unseen_calls() == ["b", "a"]
    assert world.take_unseen_calls() == []


def test_the_first_fault_is_kept_until_it_is_taken() -> None:
    world = World()
    assert world.take_fault() == ""
    world.record_fault("first")
    world.record_fault("second")
    assert (world.take_fault(), world.take_fault()) == ("first", "")
    world.shared_thread_fault = "shared"
    assert (world.take_fault(), world.take_fault()) == ("shared", "shared")
    world.record_fault("third")
    assert (world.take_fault(), world.take_fault()) == ("third", "shared")


def test_requests_to_models_are_kept_in_their_order() -> None:
    world = World()
    assert world.record_exchange("too early") is False
    with world.turn(Calls()):
        assert world.record_exchange(1) is True
        assert world.record_exchange(2) is True
    assert world.record_exchange(3) is True
    assert world.take_exchanges() == [1, 2, 3]
    assert world.take_exchanges() == []


def test_a_turn_that_is_over() -> None:
    world = World()
    turns: list[tuple[ActiveTurn, bool]] = []

    def fail() -> None:
        with world.turn(Calls()) as turn:
            turns.append((turn, turn.is_over))
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    ((turn, was_over),) = turns
    assert (was_over, turn.is_over) == (False, True)
    assert current_world() is None
    turn.settle()
    turn.settle()
    assert turn.settled.done()


# ── whose code runs ──────────────────────────────────────────────────────────────────────────────


def test_the_code_of_a_turn_has_its_world() -> None:
    one, two = World("one"), World("two")
    assert current_world() is None
    with one.turn(Calls()):
        assert current_world() is one
        with two.turn(Calls()):
            assert current_world() is two
        assert current_world() is one
        one.forget()
        assert current_world() is None


def test_which_worlds_are_open() -> None:
    one, two = World("one"), World("two")
    one.target = print
    assert {each.name for each in open_worlds()} == {"one", "two"}
    one.close()
    one.close()
    assert open_worlds() == [two]
    assert one.target is None


def test_code_without_a_world_may_be_an_agents() -> None:
    assert not may_be_agent_code()
    one = World()
    assert may_be_agent_code()
    set_non_agent_check(lambda: True)
    assert not may_be_agent_code()
    set_non_agent_check(lambda: False)
    assert may_be_agent_code()
    one.close()
    assert not may_be_agent_code()


def test_a_mock_is_no_agents_code() -> None:
    one = World()

    def mock() -> tuple[bool, bool, bool]:
        before = is_detached()
        detach_from_world()
        return before, is_detached() and current_world() is None, may_be_agent_code()

    with one.turn(Calls()):
        assert contextvars.copy_context().run(mock) == (False, True, False)
        assert current_world() is one
    assert not is_detached()


def test_a_call_that_nobody_can_place_is_everybodys_fault() -> None:
    one, two, three = World("one"), World("two"), World("three")
    error = untracked_call_error("look", lambda world: world is not two)
    assert "look" in str(error)
    for world in (one, three):
        fault = world.take_fault()
        assert str(error) in fault
        assert THREAD_CONTEXT_REMEDY in fault
        assert "one; three" in fault or "three; one" in fault
    assert two.take_fault() == ""


SUSPECTS: dict[str, tuple[list[str], str]] = {
    "none": ([], ""),
    "one": (["a"], ""),
    "one, twice": (["a", "a"], ""),
    "one and one without a name": (["a", ""], ""),
    "two": (["b", "a"], "b; a"),
    "eight": ([*"abcdefgh"], "a; b; c; d; e; f; g; h"),
    "nine": ([*"abcdefghi"], "a; b; c; d; e; f; g; h and 1 more"),
    "ten, with repetitions": ([*"aabcdefghij"], "a; b; c; d; e; f; g; h and 2 more"),
}


@pytest.mark.parametrize(("names", "listed"), SUSPECTS.values(), ids=SUSPECTS)
def test_the_conversations_that_it_may_have_been(names: list[str], listed: str) -> None:
    found = describe_suspects(names)
    assert bool(found) is bool(listed)
    assert found.endswith(listed)
    assert "more" in listed or "more" not in found


# ── threads ──────────────────────────────────────────────────────────────────────────────────────


def in_thread(run: Callable[[], Any]) -> Any:
    """What ``run`` gives or raises in a thread that has no context of its own."""
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(run())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=contextvars.Context().run, args=(work,))
    contextvars.Context().run(thread.start)  # other tests may have threads carry the world of who starts them
    thread.join(20)
    return found[0]


def test_a_thread_carries_the_world_of_who_started_it() -> None:
    world = World()
    with world.turn(Calls()) as turn:
        carried = bind_world(lambda a, *, b: (current_world(), a, b))
        assert in_thread(current_world) is None
        assert in_thread(lambda: carried(1, b=2)) == (world, 1, 2)
        (thread,) = turn.threads
        assert thread.done.done()
        assert thread.first_call_done.is_set()
    assert current_world() is None


def test_without_a_turn_nothing_is_carried() -> None:
    def run() -> None:
        return

    assert bind_world(run) is run
    world = World()
    with world.turn(Calls()):
        world.forget()
        assert bind_world(run) is run


def test_a_thread_that_fails_has_ended() -> None:
    world = World()

    def fail() -> None:
        raise ValueError("mine")

    with world.turn(Calls()) as turn:
        carried = bind_world(fail)
        assert not turn.threads[0].done.done()
        assert isinstance(in_thread(carried), ValueError)
    assert turn.threads[0].done.done()
    assert current_world() is None


def test_other_variables_are_carried_and_put_back() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("mine", default="none")
    worlds.propagate_variable(variable)
    try:
        world = World()
        with world.turn(Calls()):
            token = variable.set("given")
            carried = bind_world(variable.get)
            variable.reset(token)
            assert (carried(), variable.get()) == ("given", "none")
            assert in_thread(bind_world(variable.get)) == "none"
    finally:
        worlds._CARRIED_VARIABLES.remove(variable)


def test_a_call_of_a_thread_that_outlived_its_turn_is_not_run() -> None:
    world, calls = World(), Calls()
    with world.turn(calls):
        late = bind_world(lambda: call(world, "late"))
        asked = bind_world(lambda: world.record_exchange("late"))
    with world.turn(calls):
        assert isinstance(in_thread(late), UntrackedCallError)
        assert in_thread(asked) is False
    assert calls.seen == []
    assert "late" in world.take_fault()
    assert world.take_exchanges() == []


def test_a_thread_within_a_thread_knows_who_started_it() -> None:
    world = World()
    with world.turn(Calls()) as turn:

        def outer() -> None:
            in_thread(bind_world(lambda: None))

        in_thread(bind_world(outer))
        in_thread(bind_world(lambda: None))
    first, inner, second = turn.threads
    assert (first.parent, inner.parent, second.parent) == (None, first, None)
    assert (first.lineage, inner.lineage) == ([first], [inner, first])
    assert isinstance(first, TurnThread)


def test_a_job_in_a_thread_of_the_turn_gives_the_thread_back() -> None:
    world = World()
    with world.turn(Calls()) as turn:
        job = bind_world(lambda: None)

        def outer() -> None:
            job()
            bind_world(lambda: None)

        in_thread(bind_world(outer))
        bind_world(lambda: None)
    _, thread, within, after = turn.threads
    assert (thread.parent, within.parent, after.parent) == (None, thread, None)


def test_a_thread_whose_calls_may_be_those_of_others() -> None:
    mine, other = World("mine"), World("other")
    gone = World("gone")
    gone.close()
    found: list[Any] = []
    with mine.turn(Calls()) as turn:

        def work() -> None:
            found.append(find_shared_threads(turn))
            call(mine, "look")
            call(mine, "find")
            found.append(find_shared_threads(turn))
            found.append(other.unsettled_threads)

        in_thread(bind_world(work))
        (thread,) = turn.threads
    assert found == [[], [thread], [(thread.done, turn.settled)]]
    assert find_shared_threads(turn) == []
    assert other.unsettled_threads == []
    assert mine.unsettled_threads == []
    assert thread.called_tool == "look"
    assert {each.name for each in thread.other_worlds} == {"other"}
    record_shared_threads([thread])
    record_shared_threads([])
    for world in (mine, other):
        fault = world.take_fault()
        assert "look" in fault
        assert THREAD_CONTEXT_REMEDY in fault
    assert gone.take_fault() == ""


def test_the_first_reason_of_a_shared_thread_is_kept() -> None:
    world = World()
    one, two = (TurnThread(world, ActiveTurn(Calls())) for _ in range(2))
    one.called_tool, two.called_tool = "first", "second"
    record_shared_threads([one, two])
    assert "first" in world.take_fault()
    assert "second" not in world.take_fault()


def test_a_thread_that_calls_nothing_or_alone_is_not_shared() -> None:
    alone = World("alone")
    found: list[Any] = []
    with alone.turn(Calls()) as turn:

        def work() -> None:
            call(alone, "look")
            found.append(find_shared_threads(turn))

        in_thread(bind_world(work))
        other = World("other")
        in_thread(bind_world(lambda: found.append(find_shared_threads(turn))))
    assert found == [[], []]
    assert other.unsettled_threads == []


def test_a_request_to_a_model_marks_the_thread_too() -> None:
    mine, other = World("mine"), World("other")
    with mine.turn(Calls()) as turn:
        in_thread(bind_world(lambda: mine.record_exchange("x")))
    assert turn.threads[0].called_tool == "a model"
    assert [each.name for each in turn.threads[0].other_worlds] == [other.name]


# ── the order of threads ─────────────────────────────────────────────────────────────────────────


@contextmanager
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """How long threads are waited for, without waiting."""
    found: list[float] = []
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: 100.0)
        patch.setattr(threading.Event, "wait", lambda self, timeout=None: found.append(timeout or 0.0))
        yield found


def test_who_was_started_later_waits_for_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    seen: list[str] = []

    def ask(name: str) -> Callable[[], Any]:
        return lambda: call_in_start_order(lambda: seen.append(name))

    with world.turn(Calls()):
        first, second, third = (bind_world(ask(name)) for name in ("1", "2", "3"))
        with waits(monkeypatch) as found:
            third()
        assert found == pytest.approx([0.1, 0.1])
        with waits(monkeypatch) as found:
            second()
        assert found == pytest.approx([0.1])
        with waits(monkeypatch) as found:
            first()
        assert found == []
    assert seen == ["3", "2", "1"]


def test_only_the_first_call_of_a_thread_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def ask() -> list[int]:
        return [call_in_start_order(lambda: 1), call_in_start_order(lambda: 2)]

    with world.turn(Calls()):
        bind_world(ask)
        second = bind_world(ask)
        with waits(monkeypatch) as found:
            assert second() == [1, 2]
    assert found == pytest.approx([0.1])


def test_no_thread_and_no_turn_wait_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    with world.turn(Calls()), waits(monkeypatch) as found:
        bind_world(lambda: None)
        assert call_in_start_order(lambda: 5) == 5
    with world.turn(Calls()):
        bind_world(lambda: None)
        late = bind_world(lambda: call_in_start_order(lambda: 6))
    with waits(monkeypatch) as more:
        assert late() == 6
    assert (found, more) == ([], [])


def test_a_thread_in_another_world_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = World(), World()

    def ask() -> Any:
        with other.turn(Calls()):
            return call_in_start_order(lambda: 7)

    with mine.turn(Calls()):
        bind_world(lambda: None)
        second = bind_world(ask)
        with waits(monkeypatch) as found:
            assert second() == 7
    assert found == []


def test_a_thread_within_waits_for_what_came_before_its_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    waited: list[float] = []
    with world.turn(Calls()) as turn:

        def outer() -> None:
            inner = bind_world(lambda: call_in_start_order(lambda: None))
            with waits(monkeypatch) as found:
                inner()
            waited.extend(found)

        bind_world(lambda: None)
        bind_world(outer)()
    assert waited == pytest.approx([0.1])
    assert [each.first_call_done.is_set() for each in turn.threads] == [False, True, True]


def test_arguments_are_told_as_they_are_recorded() -> None:
    """What the scenario gets is what is kept: a mapping, read from the text that is recorded."""
    world, calls = World(), Calls()
    with world.turn(calls):
        call(world, "look", MappingProxyType({"a": {2, 1}}))
    ((_, _, args),) = calls.seen
    assert args == json.loads(world.calls_so_far[0].arguments) == {"a": [1, 2]}
