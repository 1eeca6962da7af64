"""The second argument of an agent: its tools, the steps in which they are called, and what ends with it."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from itertools import count
from typing import Any

import pytest

from agenteval.agentside.targets.context import (
    CONVERSATION_OVER,
    Context,
    await_answer,
    is_loop_blocked,
    mark_loop_blocked,
)
from agenteval.agentside.world import ToolAnswer

TOOLS = [{"type": "function", "function": {"name": "look"}}]


class Asked:
    """Answers each call with its number; once ``is_over``, none."""

    def __init__(self, *, is_over: bool = False) -> None:
        self.is_over = is_over
        self.calls: list[tuple[Any, Any, int]] = []
        self.blocked: list[bool] = []

    def __call__(self, name: Any, args: Any, batch: int) -> Future[ToolAnswer]:
        self.calls.append((name, args, batch))
        self.blocked.append(is_loop_blocked())
        future: Future[ToolAnswer] = Future()
        if self.is_over:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            future.set_result(
                ToolAnswer({"error": "no"} if name == "bad" else len(self.calls), name == "bad")
            )
        return future


def context(asked: Any = None, first: int = 1) -> Context:
    return Context(asked or Asked(), count(first), TOOLS)


def call(ctx: Context, *args: Any) -> Any:
    return asyncio.run(ctx.call_tool(*args))


def call_sync(ctx: Context, *args: Any) -> Any:
    return ctx.call_tool_sync(*args)


CALLS = pytest.mark.parametrize("ask", [call, call_sync])


@CALLS
def test_a_call_gives_the_value_and_an_error_is_a_value(ask: Any) -> None:
    asked = Asked()
    ctx = context(asked, first=7)
    assert ask(ctx, "look", {"a": 1}) == 1
    assert ask(ctx, "bad", '{"a"') == {"error": "no"}
    assert ask(ctx, "look") == 3
    assert asked.calls == [("look", {"a": 1}, 7), ("bad", '{"a"', 8), ("look", None, 9)]


@CALLS
def test_each_call_is_noted_before_it_is_answered(ask: Any) -> None:
    asked = Asked(is_over=True)
    ctx = context(asked)
    noted: list[Any] = []
    ctx.on_direct_call = lambda name, args: noted.append((name, args, len(asked.calls)))
    with pytest.raises((SystemExit, asyncio.CancelledError)):
        ask(ctx, "look", {"a": 1})
    assert noted == [("look", {"a": 1}, 0)]


def test_a_call_after_the_conversation_ends_the_thread() -> None:
    with pytest.raises(SystemExit) as caught:
        context(Asked(is_over=True)).call_tool_sync("look")
    assert caught.value.code == CONVERSATION_OVER
    assert caught.value.__suppress_context__


def test_a_call_after_the_conversation_cancels_the_task_and_says_why() -> None:
    async def main() -> asyncio.CancelledError:
        with pytest.raises(asyncio.CancelledError) as caught:
            await context(Asked(is_over=True)).call_tool("look")
        return caught.value

    assert asyncio.run(main()).args == (CONVERSATION_OVER,)


def test_the_agents_own_cancellation_stays_its_own() -> None:
    reasons: list[Any] = []

    async def wait() -> None:
        try:
            await await_answer(Future())
        except asyncio.CancelledError as error:
            reasons.append(error.args)
            raise

    async def main() -> None:
        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        task.cancel("mine")
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert reasons == [("mine",)]


def test_an_answer_is_awaited() -> None:
    async def main() -> ToolAnswer:
        future: Future[ToolAnswer] = Future()
        asyncio.get_running_loop().call_soon(future.set_result, ToolAnswer(5))
        return await await_answer(future)

    assert asyncio.run(main()) == ToolAnswer(5)


# ── steps ────────────────────────────────────────────────────────────────────────────────────────


def test_calls_at_the_same_time_are_one_step() -> None:
    ctx = context()
    with ctx.open_batch() as first:
        with ctx.open_batch() as second:
            pass
        with ctx.open_batch() as third:
            pass
    with ctx.open_batch() as after:
        pass
    assert (first, second, third, after) == (1, 1, 1, 2)


def test_a_step_ends_with_its_last_call() -> None:
    ctx = context()
    one, two = ctx.open_batch(), ctx.open_batch()
    found = [one.__enter__(), two.__enter__()]
    one.__exit__(None, None, None)
    with ctx.open_batch() as batch:
        found.append(batch)
    two.__exit__(None, None, None)
    with ctx.open_batch() as batch:
        found.append(batch)
    assert found == [1, 1, 1, 2]


def test_a_step_that_fails_is_over() -> None:
    ctx = context()
    with pytest.raises(ValueError), ctx.open_batch():
        raise ValueError
    with ctx.open_batch() as batch:
        assert batch == 2


def test_gathered_calls_are_one_step() -> None:
    waiting: list[tuple[int, Future[ToolAnswer]]] = []

    def ask(_name: Any, _args: Any, batch: int) -> Future[ToolAnswer]:
        waiting.append((batch, Future()))
        if len(waiting) == 2:
            for number, (_, future) in enumerate(waiting):
                asyncio.get_running_loop().call_soon(future.set_result, ToolAnswer(number))
        return waiting[-1][1]

    ctx = context(ask)

    async def main() -> list[Any]:
        return list(await asyncio.gather(ctx.call_tool("a"), ctx.call_tool("b")))

    assert asyncio.run(main()) == [0, 1]
    assert [batch for batch, _ in waiting] == [1, 1]


# ── a loop that waits ────────────────────────────────────────────────────────────────────────────


def test_a_call_without_await_blocks_the_loop_it_stands_on() -> None:
    asked = Asked()
    ctx = context(asked)
    ctx.call_tool_sync("outside")

    async def main() -> None:
        await ctx.call_tool("awaited")
        ctx.call_tool_sync("on it")
        await asyncio.to_thread(ctx.call_tool_sync, "in a thread")

    asyncio.run(main())
    assert asked.blocked == [False, False, True, False]


def test_the_mark_ends_with_the_call_even_one_that_fails() -> None:
    found: list[bool] = []

    def fail() -> None:
        with mark_loop_blocked():
            found.append(is_loop_blocked())
            raise ValueError

    async def main() -> None:
        with pytest.raises(ValueError):
            fail()
        found.append(is_loop_blocked())

    asyncio.run(main())
    with pytest.raises(ValueError):
        fail()
    assert found == [True, False, False]


# ── what is known of the tools ───────────────────────────────────────────────────────────────────


def test_who_reads_the_list_of_tools_knows_no_others() -> None:
    ctx = context()
    assert ctx.has_listed_tools is False
    assert ctx.tools == TOOLS
    assert ctx.has_listed_tools is True
    assert context().has_listed_tools is False


def test_a_plain_context_answers_everything_from_the_scenario() -> None:
    asked = Asked()
    ctx = context(asked)
    assert (ctx.mocks("look"), ctx.passes_through("look")) == (False, False)
    assert ctx.request_known_call("look", {"a": 1}, 4).result() == ToolAnswer(1)
    assert asked.calls == [("look", {"a": 1}, 4)]
    with pytest.raises(NotImplementedError):
        ctx.request_passthrough("look", {}, 1, None)
    assert ctx.call_tool_sync("look") == 2  # nobody listens to direct calls
