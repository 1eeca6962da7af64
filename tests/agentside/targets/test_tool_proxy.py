"""What the scenario answers, what the agent runs itself, and how arguments and results read as JSON."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import threading
import uuid
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum, IntEnum, StrEnum
from itertools import count
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from agenteval.agentside.targets.context import CONVERSATION_OVER, Context, is_loop_blocked
from agenteval.agentside.targets.tool_proxy import (
    NOT_JSON,
    PassthroughCall,
    ToolProxy,
    record_call,
    record_call_async,
    to_json_argument,
    to_json_arguments,
)
from agenteval.agentside.world import ToolAnswer

# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    YES = "yes"


class Level(IntEnum):
    HIGH = 3


class Odd(Enum):
    WITH = (1, 2)
    BYTES = b"x"


class Letters(str):
    def __str__(self) -> str:
        return "abc"


class Seat(NamedTuple):
    row: int
    paid: bool


Loose = namedtuple("Loose", ["at"])


@dataclasses.dataclass
class Order:
    id: str
    lines: tuple[int, ...] = ()
    day: datetime.date | None = None


@dataclasses.dataclass
class Holder:
    kept: Any


class Model:
    def model_dump(self, mode: str = "python") -> Any:
        return {"mode": mode}


class Named:
    def __str__(self) -> str:
        return "a name"


class Caller:
    def __call__(self) -> None:
        return

    def __str__(self) -> str:
        return "a function"


class Plain:
    pass


class Broken:
    """Has a text that cannot be had."""

    def __str__(self) -> str:
        raise ValueError("no text")


class BrokenModel(Plain):
    def model_dump(self, mode: str = "python") -> Any:
        raise TypeError("unable to serialize")


class BrokenMapping(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("closed")


A_DAY = datetime.date(2026, 3, 9)
AN_ID = uuid.UUID(int=5)

READS: dict[str, tuple[Any, Any]] = {
    "none": (None, None),
    "true": (True, True),
    "false": (False, False),
    "zero": (0, 0),
    "a large number": (10**30, 10**30),
    "a fraction": (0.5, 0.5),
    "infinite": (float("inf"), "inf"),
    "minus infinite": (float("-inf"), "-inf"),
    "no number": (float("nan"), "nan"),
    "text": ("é", "é"),
    "no text": ("", ""),
    "a text of its own class": (Letters("x"), "abc"),
    "an enum": (Colour.RED, "red"),
    "an enum that is text": (Word.YES, "yes"),
    "an enum that is a number": (Level.HIGH, 3),
    "an enum of several": (Odd.WITH, [1, 2]),
    "a list": ([1, "a", None], [1, "a", None]),
    "an empty list": ([], []),
    "a tuple": ((1, (2,)), [1, [2]]),
    "a set": ({4}, [4]),
    "a frozen set": (frozenset({"x"}), ["x"]),
    "a named tuple": (Seat(4, True), {"row": 4, "paid": True}),
    "an older named tuple": ([Loose(1)], [{"at": 1}]),
    "a mapping": ({"a": {"b": 1}}, {"a": {"b": 1}}),
    "an empty mapping": ({}, {}),
    "another mapping": (MappingProxyType({"a": 1}), {"a": 1}),
    "the order of keys": (OrderedDict([("z", 1), ("a", 2)]), {"z": 1, "a": 2}),
    "keys that are not text": ({1: "a", None: "b", A_DAY: "c"}, {"1": "a", "None": "b", "2026-03-09": "c"}),
    "a dataclass": (Order("O-1", (1, 2)), {"id": "O-1", "lines": [1, 2], "day": None}),
    "a dataclass within": ([Order("O", day=A_DAY)], [{"id": "O", "lines": [], "day": "2026-03-09"}]),
    "a model": (Model(), {"mode": "json"}),
    "a date": (A_DAY, "2026-03-09"),
    "an id": (AN_ID, str(AN_ID)),
    "a path": (PurePosixPath("a/b"), "a/b"),
    "an object with a text": (Named(), "a name"),
}


@pytest.mark.parametrize(("value", "read"), READS.values(), ids=READS)
def test_a_value_as_json(value: Any, read: Any) -> None:
    found = to_json_argument(value)
    assert found == read
    assert type(found) is type(read)
    if isinstance(read, dict):
        assert [*found] == [*read]


NO_JSON: dict[str, Any] = {
    "an object": Plain(),
    "a class": Plain,
    "a class that has a text": Named,
    "a dataclass itself": Order,
    "a model's class": Model,
    "a function": to_json_argument,
    "a lambda": lambda: None,
    "a callable with a text": Caller(),
    "bytes": b"x",
    "a byte array": bytearray(b"x"),
    "a view": memoryview(b"x"),
    "an enum of bytes": Odd.BYTES,
    "an object whose text fails": Broken(),
    "a model that cannot be serialized": BrokenModel(),
    "a mapping that cannot be read": BrokenMapping(a=1),
    "a key whose text fails": {Broken(): 1},
    "one within a list": [1, Plain()],
    "one within a mapping": {"a": {"b": Plain()}},
    "one within a dataclass": Holder(Plain()),
    "one within a named tuple": Loose(Plain()),
}


@pytest.mark.parametrize("value", NO_JSON.values(), ids=NO_JSON)
def test_what_json_cannot_hold(value: Any) -> None:
    assert to_json_argument(value) is NOT_JSON


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_the_depth_has_a_limit() -> None:
    assert to_json_argument(nested(50)) == nested(50)
    assert to_json_argument(nested(51)) is NOT_JSON
    endless: list[Any] = []
    endless.append(endless)
    assert to_json_argument(endless) is NOT_JSON


@pytest.mark.parametrize("wrap", [Holder, lambda value: {"a": value}, Loose], ids=["fields", "key", "named"])
def test_every_container_counts_as_a_level(wrap: Callable[[Any], Any]) -> None:
    value: Any = None
    for _ in range(60):
        value = wrap(value)
    assert to_json_argument(value) is NOT_JSON


ARGUMENTS: dict[str, tuple[Any, Any]] = {
    "none given": ({}, {}),
    "those that are not JSON are left out": ({"db": Plain(), "id": 1, "raw": b""}, {"id": 1}),
    "null is an argument": ({"day": None}, {"day": None}),
    "one with a part that is not JSON": ({"a": [Plain()], "b": [1]}, {"b": [1]}),
    "those that fail are left out": ({"db": Broken(), "m": BrokenModel(), "id": 1}, {"id": 1}),
    "names are text": ({1: A_DAY}, {"1": "2026-03-09"}),
    "another mapping": (MappingProxyType({"a": (1,)}), {"a": [1]}),
    "as the model wrote them": ('{"a": 1', '{"a": 1'),
    "nothing": (None, None),
    "a list": ([1, Plain], [1, Plain]),
}


@pytest.mark.parametrize(("args", "read"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_as_json(args: Any, read: Any) -> None:
    assert to_json_arguments(args) == read


# ── calls ────────────────────────────────────────────────────────────────────────────────────────

ANSWER = ToolAnswer({"mocked": True})


class Scenario(Context):
    """Answers the tools of ``mocked``, and leaves those of ``real`` to the agent."""

    def __init__(self, mocked: tuple[str, ...] = (), real: tuple[str, ...] = (), *, is_over: bool = False):
        super().__init__(self._ask, count(1), [])
        self._mocked, self._real, self._is_over = mocked, real, is_over
        self.log: list[tuple[Any, ...]] = []
        self.blocked: list[bool] = []
        self.recorded: list[ToolAnswer] = []

    def _ask(self, name: Any, args: Any, batch: int) -> Future[ToolAnswer]:
        raise AssertionError("an agent's own tool is a known call")

    def request_known_call(self, name: str, args: Any, batch: int) -> Future[ToolAnswer]:
        self.log.append(("known", name, args, batch))
        self.blocked.append(is_loop_blocked())
        return self._future(ANSWER)

    def request_passthrough(
        self, name: str, args: dict[str, Any], batch: int, passthrough: PassthroughCall
    ) -> Future[ToolAnswer]:
        self.log.append(("own", name, args, batch))
        if self._is_over:
            return self._future(None)
        recorded: Future[ToolAnswer] = Future()

        def note(done: Future[ToolAnswer]) -> None:
            self.recorded.append(done.result())
            recorded.set_result(done.result())

        passthrough.done.add_done_callback(note)
        passthrough.go_ahead.set_result(None)
        return recorded

    def _future(self, answer: ToolAnswer | None) -> Future[ToolAnswer]:
        future: Future[ToolAnswer] = Future()
        if self._is_over:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            assert answer is not None
            future.set_result(answer)
        return future

    def mocks(self, name: str) -> bool:
        return name in self._mocked

    def passes_through(self, name: str) -> bool:
        return name in self._real


def refuse() -> Any:
    raise AssertionError("a mocked tool never runs")


Ask = Callable[[ToolProxy, str, Any, Callable[[], Any]], Any]


def call(proxy: ToolProxy, name: str, args: Any, run: Callable[[], Any]) -> Any:
    async def own() -> Any:
        return run()

    return asyncio.run(proxy.call(name, args, own))


def call_sync(proxy: ToolProxy, name: str, args: Any, run: Callable[[], Any]) -> Any:
    return proxy.call_sync(name, args, run)


def record(proxy: ToolProxy, name: str, args: Any, run: Callable[[], Any]) -> Any:
    async def own() -> Any:
        return run()

    return asyncio.run(proxy.record(name, args, own))


def record_sync(proxy: ToolProxy, name: str, args: Any, run: Callable[[], Any]) -> Any:
    return proxy.record_sync(name, args, run)


CALLS = pytest.mark.parametrize("ask", [call, call_sync])
RECORDS = pytest.mark.parametrize("ask", [record, record_sync])


@CALLS
def test_the_scenario_answers_and_the_tool_does_not_run(ask: Ask) -> None:
    scenario = Scenario(mocked=("book",))
    assert ask(ToolProxy(scenario), "book", {"day": A_DAY, "db": Plain()}, refuse) == ANSWER
    assert scenario.log == [("known", "book", {"day": "2026-03-09"}, 1)]


@CALLS
def test_what_the_scenario_leaves_to_the_agent_runs(ask: Ask) -> None:
    scenario, value = Scenario(real=("book",)), Seat(1, False)
    answer = ask(ToolProxy(scenario), "book", {"ids": (1, 2)}, lambda: value)
    assert answer == ToolAnswer(value)
    assert answer.value is value
    assert scenario.log == [("own", "book", {"ids": [1, 2]}, 1)]
    assert scenario.recorded == [ToolAnswer({"row": 1, "paid": False}, False)]


def within_itself() -> Plain:
    value = Plain()
    value.me = value  # type: ignore[attr-defined]
    return value


@pytest.mark.parametrize("value", [within_itself(), BrokenModel(), [within_itself()]])
@pytest.mark.parametrize("ask", [call, call_sync, record, record_sync])
def test_a_result_that_cannot_be_recorded_is_returned_as_it_is(ask: Ask, value: Any) -> None:
    scenario = Scenario(real=("book",))
    answer = ask(ToolProxy(scenario), "book", {}, lambda: value)
    assert (answer.value if isinstance(answer, ToolAnswer) else answer) is value
    (recorded,) = scenario.recorded
    assert not recorded.is_error
    assert type(value).__name__ in recorded.value


@RECORDS
def test_recording_runs_even_what_the_scenario_declares(ask: Ask) -> None:
    scenario, value = Scenario(mocked=("agent",)), object()
    assert ask(ToolProxy(scenario), "agent", {"a": 1, "db": Plain()}, lambda: value) is value
    assert scenario.log == [("own", "agent", {"a": 1}, 1)]


@pytest.mark.parametrize("ask", [call, call_sync, record, record_sync])
def test_an_exception_of_the_own_tool_is_recorded_and_raised(ask: Ask) -> None:
    scenario, fault = Scenario(real=("book",)), ValueError("no such day")

    def fail() -> Any:
        raise fault

    with pytest.raises(ValueError) as caught:
        ask(ToolProxy(scenario), "book", {}, fail)
    assert caught.value is fault
    (recorded,) = scenario.recorded
    assert recorded.is_error is True
    assert [*recorded.value] == ["error"]
    assert "ValueError: no such day" in recorded.value["error"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("ask", [call_sync, record_sync])
def test_even_one_that_ends_the_program_is_recorded(ask: Ask, kind: type[BaseException]) -> None:
    scenario = Scenario(real=("book",))

    def fail() -> Any:
        raise kind("enough")

    with pytest.raises(kind):
        ask(ToolProxy(scenario), "book", {}, fail)
    assert [each.is_error for each in scenario.recorded] == [True]


@pytest.mark.parametrize("ask", [call_sync, record_sync])
def test_a_conversation_that_is_over_ends_the_thread(ask: Ask) -> None:
    for real in ((), ("book",)):
        scenario = Scenario(real=real, is_over=True)
        with pytest.raises(SystemExit) as caught:
            ask(ToolProxy(scenario), "book", {}, refuse)
        assert caught.value.code == CONVERSATION_OVER
        assert caught.value.__suppress_context__


@pytest.mark.parametrize("ask", [call, record])
def test_a_conversation_that_is_over_cancels_the_task(ask: Ask) -> None:
    for real in ((), ("book",)):
        scenario = Scenario(real=real, is_over=True)
        with pytest.raises(asyncio.CancelledError):
            ask(ToolProxy(scenario), "book", {}, refuse)


@pytest.mark.parametrize("ask", [call_sync, record_sync, call, record])
def test_a_conversation_that_ends_while_the_own_tool_runs(ask: Ask) -> None:
    class Ending(Scenario):
        def request_passthrough(self, *_: Any) -> Future[ToolAnswer]:
            passthrough = _[-1]
            recorded: Future[ToolAnswer] = Future()
            passthrough.done.add_done_callback(lambda _: recorded.cancel())
            passthrough.go_ahead.set_result(None)
            return recorded

    with pytest.raises((SystemExit, asyncio.CancelledError)):
        ask(ToolProxy(Ending(real=("book",))), "book", {}, lambda: 1)


def test_simultaneous_calls_are_one_step_and_those_after_are_the_next() -> None:
    scenario = Scenario(mocked=("a",), real=("b",))
    proxy = ToolProxy(scenario)

    async def slow() -> str:
        await asyncio.sleep(0)
        return "b"

    async def main() -> None:
        await asyncio.gather(proxy.call("b", {}, slow), proxy.call("a", {}, slow))
        await proxy.call("a", {}, slow)

    asyncio.run(main())
    assert [(name, batch) for _, name, _, batch in scenario.log] == [("b", 1), ("a", 1), ("a", 2)]


@pytest.mark.parametrize("is_async", [True, False])
def test_calls_within_a_recorded_one_are_later_steps(is_async: bool) -> None:
    scenario = Scenario(mocked=("inner",))
    proxy = ToolProxy(scenario)
    if is_async:

        async def outer() -> Any:
            return await proxy.call("inner", {}, outer)

        asyncio.run(proxy.record("outer", {}, outer))
    else:
        proxy.record_sync("outer", {}, lambda: proxy.call_sync("inner", {}, refuse))
    assert [(name, batch) for _, name, _, batch in scenario.log] == [("outer", 1), ("inner", 2)]


def test_a_call_without_await_blocks_the_loop() -> None:
    scenario = Scenario(mocked=("a",))
    proxy = ToolProxy(scenario)
    proxy.call_sync("a", {}, refuse)

    async def main() -> None:
        proxy.call_sync("a", {}, refuse)
        await proxy.call("a", {}, refuse)

    asyncio.run(main())
    assert scenario.blocked == [False, True, False]


def test_the_scenario_is_asked_what_it_answers() -> None:
    proxy = ToolProxy(Scenario(mocked=("a",)))
    assert (proxy.mocks("a"), proxy.mocks("b")) == (True, False)


# ── a call that the agent runs itself ────────────────────────────────────────────────────────────


def test_the_world_lets_it_begin_and_waits_until_it_is_done() -> None:
    passthrough = PassthroughCall()

    async def main() -> ToolAnswer:
        waiting = asyncio.ensure_future(passthrough())
        await asyncio.sleep(0)
        assert passthrough.go_ahead.done()
        assert not waiting.done()
        passthrough.finish_with({"a": (1,)})
        return await waiting

    assert asyncio.run(main()) == ToolAnswer({"a": [1]}, False)


@pytest.mark.parametrize(
    ("value", "recorded"),
    [(None, None), ({"a": {1}}, {"a": [1]}), (A_DAY, "2026-03-09"), (float("inf"), "inf")],
)
def test_the_result_is_recorded_as_json(value: Any, recorded: Any) -> None:
    passthrough = PassthroughCall()
    passthrough.finish_with(value)
    assert passthrough.done.result() == ToolAnswer(recorded, False)


def test_a_result_that_json_cannot_hold_is_recorded_by_its_fields_or_its_class() -> None:
    with_fields, without = PassthroughCall(), PassthroughCall()
    found = Plain()
    found.seats = [1]  # type: ignore[attr-defined]
    with_fields.finish_with(found)
    without.finish_with(Plain())
    assert with_fields.done.result() == ToolAnswer({"seats": [1]}, False)
    assert "Plain" in without.done.result().value


def test_a_call_that_nobody_waits_for_does_not_begin() -> None:
    passthrough = PassthroughCall()
    recorded = passthrough.begin(Scenario(is_over=True), "a", {}, 1)
    assert recorded.cancelled()
    assert passthrough.go_ahead.cancelled()
    begun = PassthroughCall()
    begun.begin(Scenario(), "a", {}, 1)
    begun.finish_with(1)
    assert begun.go_ahead.result() is None


class _SlowRecord:
    """A context whose record of a call is complete some time after the call."""

    def __init__(self) -> None:
        self.recorded = False

    def request_passthrough(self, name: str, args: Any, batch: int, own: PassthroughCall) -> Future[Any]:
        done: Future[Any] = Future()

        def record() -> None:
            own.go_ahead.set_result(None)
            own.done.result()
            threading.Event().wait(0.05)
            self.recorded = True
            done.set_result(None)

        threading.Thread(target=record).start()
        return done


def _fails() -> None:
    raise ValueError("no such order")


async def _fails_async() -> None:
    _fails()


def test_the_error_of_a_tool_is_recorded_before_the_agent_goes_on() -> None:
    context: Any = _SlowRecord()
    with pytest.raises(ValueError, match="no such order"):
        record_call(context, "fails", {}, 1, _fails)
    assert context.recorded


def test_the_error_of_an_async_tool_is_recorded_before_the_agent_goes_on() -> None:
    context: Any = _SlowRecord()
    with pytest.raises(ValueError, match="no such order"):
        asyncio.run(record_call_async(context, "fails", {}, 1, _fails_async))
    assert context.recorded
