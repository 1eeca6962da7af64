"""Methods of tools that are changed, without any framework."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agenteval.agentside.hooks.tool_methods import (
    HookedCall,
    as_async_patch,
    as_stream_patch,
    hook,
    patch_subclasses,
)
from agenteval.agentside.world import ToolAnswer, World

RAN: list[str] = []


class Mocks:
    """A scenario that answers every tool."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def mocks(self, name: str) -> bool:
        return True

    async def call(self, name: str, args: Any, own: Any) -> ToolAnswer:
        self.asked.append(name)
        return ToolAnswer("mocked")

    def call_sync(self, name: str, args: Any, own: Any) -> ToolAnswer:
        self.asked.append(name)
        return ToolAnswer("mocked")

    record: Any = None
    record_sync: Any = None


class Tool:
    async def run(self, key: str) -> str:
        RAN.append(key)
        return "real"

    async def stream(self, key: str) -> AsyncIterator[str]:
        RAN.append(key)
        yield "real"


def _read(tool: Any, args: Any, kwargs: Any) -> HookedCall:
    return HookedCall("look", {"key": args[0]}, argument_error="no such key" if args[0] == "misfit" else "")


CHANGE = hook("Toy", _read, lambda _tool, answer, _args, _kwargs: answer.failure)
patch_subclasses(Tool, ("run",), as_async_patch(CHANGE))
patch_subclasses(Tool, ("stream",), as_stream_patch(CHANGE))


class HandsOn(Tool):
    """Plain functions that return what is awaited and iterated."""

    def run(self, key: str) -> Any:
        return Tool().run(key)

    def stream(self, key: str) -> Any:
        return Tool().stream(key)


@pytest.mark.parametrize("kind", [Tool, HandsOn])
def test_a_method_is_met_once_whether_or_not_it_is_written_async(kind: type[Tool]) -> None:
    RAN.clear()

    async def play(world: World | None) -> tuple[list[Any], list[str]]:
        mocks, tool = Mocks(), kind()
        if world is None:
            return [await tool.run("a"), *[each async for each in tool.stream("b")]], mocks.asked
        with world.turn(mocks):  # type: ignore[arg-type]
            return [await tool.run("a"), *[each async for each in tool.stream("b")]], mocks.asked

    assert asyncio.run(play(None)) == (["real", "real"], [])
    assert RAN == ["a", "b"]
    assert asyncio.run(play(World())) == (["mocked", "mocked"], ["look", "look"])
    assert RAN == ["a", "b"]


def test_a_call_that_the_framework_refuses_is_asked_of_nobody_and_runs_nothing() -> None:
    RAN.clear()

    async def play() -> tuple[Any, list[str]]:
        mocks = Mocks()
        with World().turn(mocks):  # type: ignore[arg-type]
            return await Tool().run("misfit"), mocks.asked

    assert asyncio.run(play()) == ("no such key", [])
    assert not RAN
