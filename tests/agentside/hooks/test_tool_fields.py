"""A field of a tool that holds what carries it out: whatever holds it, and however it came there."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agenteval.agentside.hooks.tool_fields import patch_field
from agenteval.agentside.hooks.tool_methods import HookedCall, hook
from agenteval.agentside.world import ToolAnswer, World

RAN: list[str] = []


@pytest.fixture(autouse=True)
def no_marks() -> None:
    RAN.clear()


class Scenario:
    """Answers tools by their names. Those in ``own`` are left to the agent."""

    def __init__(self, own: str = "", **tools: Any) -> None:
        self.tools, self.own = tools, own
        self.seen: list[tuple[str, Any]] = []

    def mocks(self, name: str) -> bool:
        return name in self.tools

    async def call(self, name: str, args: Any, own: Any) -> ToolAnswer:
        self.seen.append((name, args))
        if name == self.own:
            return ToolAnswer(await own())
        answer = self.tools[name]
        return answer if isinstance(answer, ToolAnswer) else ToolAnswer(answer)


@dataclass
class Tool:
    name: str
    run: Callable[..., Any]


def read(tool: Any, args: Any, kwargs: Any) -> HookedCall:
    return HookedCall(tool.name, {"key": args[0]})


def give(tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    async def put() -> Any:
        return f"oh, {answer.failure}"

    return put() if answer.is_error else answer.value


patch_field(Tool, "run", hook("toys", read, give))


async def look(key: str) -> str:
    RAN.append(key)
    return "real"


def played(scenario: Scenario, *calls: Callable[[], Any]) -> list[Any]:
    async def talk() -> list[Any]:
        world = World()
        with world.turn(scenario):  # type: ignore[arg-type]
            given = await asyncio.gather(*(call() for call in calls))
        world.close()
        return list(given)

    return asyncio.run(talk())


class Bound(Tool):
    def __init__(self) -> None:
        super().__init__("look", self.run)

    async def run(self, key: str) -> str:
        return await look(key)


class Lazy(Tool):
    def __init__(self) -> None:
        self.name = "look"

    async def run(self, key: str) -> str:
        return await look(key)


class Sync(Tool):
    def __init__(self) -> None:
        super().__init__("look", self.at_once)

    def at_once(self, key: str) -> str:
        RAN.append(key)
        return "real"


@dataclass
class Default(Tool):
    run: Callable[..., Any] = look


MADE = {
    "a function": lambda: Tool("look", look),
    "a partial function": lambda: Tool("look", functools.partial(look)),
    "a method of the tool's class": Bound,
    "a method in the place of the field": Lazy,
    "a function that is not async": Sync,
    "a default": lambda: Default("look"),
    "a copy": lambda: copy.copy(Tool("look", look)),
    "a deep copy": lambda: copy.deepcopy(Tool("look", look)),
    "a copy of a tool that was used": lambda: replace(used()),
}


def used() -> Tool:
    tool = Tool("look", look)
    assert played(Scenario(look="x"), lambda: tool.run("a")) == ["x"]
    return tool


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_the_scenario_answers_and_the_tool_does_not_run(made: Callable[[], Any]) -> None:
    tool, scenario = made(), Scenario(look="mocked")
    assert played(scenario, lambda: tool.run("a"), lambda: tool.run("b")) == ["mocked", "mocked"]
    assert scenario.seen == [("look", {"key": "a"}), ("look", {"key": "b"})]
    assert RAN == []


def test_a_tool_that_is_left_to_the_agent_runs_once_also_where_it_was_wrapped() -> None:
    tool = Tool("look", look)
    inner = tool.run

    async def wrapped(key: str) -> str:
        return f"{await inner(key)}!"

    tool.run = wrapped
    assert played(Scenario(own="look"), lambda: tool.run("a")) == ["real!"]
    assert RAN == ["a"]


def test_an_error_may_be_awaited_and_nothing_is_asked_outside_of_a_turn() -> None:
    tool = Tool("look", look)
    assert played(Scenario(look=ToolAnswer({"error": "gone"}, is_error=True)), lambda: tool.run("a")) == [
        "oh, gone"
    ]
    assert asyncio.run(tool.run("b")) == "real"


def test_what_looks_at_the_field_sees_what_it_was_given() -> None:
    tool = Tool("look", look)
    assert inspect.iscoroutinefunction(tool.run)
    assert isinstance(Tool("look", functools.partial(look)).run, functools.partial)
    assert list(inspect.signature(tool.run).parameters) == ["key"]
    assert tool.run == look
    assert tool == Tool("look", look)
    assert tool.run is tool.run
    assert Tool("none", None).run is None  # type: ignore[arg-type]


class Editor:
    path = "shop.py"

    def write(self, key: str) -> str:
        RAN.append(key)
        return "real"


@dataclass
class Patch:
    name: str
    editor: Editor


patch_field(Patch, "editor", hook("toys", read, give), ("write",))


def test_methods_of_what_a_tool_holds_are_answered() -> None:
    tool = Patch("edit", Editor())
    assert played(Scenario(edit="done"), lambda: tool.editor.write("a")) == ["done"]
    assert RAN == []
    assert (tool.editor.path, isinstance(tool.editor, Editor)) == ("shop.py", True)
