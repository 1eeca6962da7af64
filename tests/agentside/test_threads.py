"""Calls that are carried out in threads reach the scenario in the order in which these were started."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agenteval.agentside import threads, world
from agenteval.agentside.world import ToolAnswer

threads.install()


class Calls:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def call_sync(self, name: str, args: Any, own: Callable[[], Any]) -> ToolAnswer:
        world.call_in_start_order(lambda: self.seen.append(name))
        return ToolAnswer(len(self.seen))


def play(first: Callable[[world.World], Any], second: Callable[[world.World], Any]) -> list[str]:
    calls, mine = Calls(), world.World()
    with mine.turn(calls), ThreadPoolExecutor(2) as pool:  # type: ignore[arg-type]
        for job in [pool.submit(first, mine), pool.submit(second, mine)]:
            job.result(20)
    mine.close()
    return calls.seen


def call(mine: world.World, name: str) -> None:
    mine.call_sync(name, {}, lambda: None)


def test_the_second_waits_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "LONGEST_WAIT_S", 10)
    is_there = threading.Event()

    def late(mine: world.World) -> None:
        is_there.wait(10)
        call(mine, "first")

    def early(mine: world.World) -> None:
        is_there.set()
        call(mine, "second")

    assert play(late, early) == ["first", "second"]


def test_one_that_ends_without_a_call_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "LONGEST_WAIT_S", 10)
    assert play(lambda _: None, lambda mine: call(mine, "second")) == ["second"]


def test_one_that_waits_for_the_second_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "LONGEST_WAIT_S", 0.01)
    has_called = threading.Event()

    def after(mine: world.World) -> None:
        assert has_called.wait(10)
        call(mine, "first")

    def before(mine: world.World) -> None:
        call(mine, "second")
        has_called.set()

    assert play(after, before) == ["second", "first"]
