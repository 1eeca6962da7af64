"""A method that carries out a tool, changed so that the tool world is asked first."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.agentside.hooks.tool_methods import MCP_LAYER, HookedCall, hook, patch_subclasses
from agenteval.agentside.world import ToolAnswer, World


class Scenario:
    """Answers the tools that it mocks; all others are left to the agent."""

    def __init__(self, **mocks: Any) -> None:
        self.answers = mocks
        self.recorded: list[tuple[str, Any]] = []

    def mocks(self, name: str) -> bool:
        return name in self.answers

    def call_sync(self, name: str, args: Any, run_real: Any) -> ToolAnswer:
        self.recorded.append((name, args))
        return ToolAnswer(self.answers[name] if name in self.answers else run_real())

    async def call(self, name: str, args: Any, run_real: Any) -> ToolAnswer:
        raise NotImplementedError

    async def record(self, name: str, args: Any, run_real: Any) -> Any:
        raise NotImplementedError

    def record_sync(self, name: str, args: Any, run_real: Any) -> Any:
        self.recorded.append((name, args))
        return run_real()


def layer(name: str, **options: Any) -> tuple[Any, list[str]]:
    """A framework's class of tools, hooked, and the tools that really ran."""
    ran: list[str] = []

    class Tool:
        def __init__(self, name: str, within: Any = None, call_id: str = "") -> None:
            self.name, self.within, self.call_id = name, within, call_id

        def run(self, **args: Any) -> Any:
            ran.append(self.name)
            return self.within(**args) if self.within else f"real {self.name}"

    def read(tool: Any, args: Any, kwargs: Any) -> HookedCall:
        given = {key: value(tool) for key, value in options.items()}
        return HookedCall(tool.name, dict(kwargs), tool.call_id, **given)

    patch_subclasses(Tool, ("run",), hook(name, read, lambda tool, answer, args, kwargs: answer.value))
    return Tool, ran


def in_turn(scenario: Scenario, run: Any) -> tuple[Any, World]:
    world = World()
    try:
        with world.turn(scenario):
            return run(), world
    finally:
        world.close()


def test_a_mocked_tool_within_another_is_a_call_of_its_own_though_their_ids_are_alike() -> None:
    tool, ran = layer("one")
    inner = tool("look", call_id="t0")
    outer = tool("ask", lambda **_: inner.run(key="b"), call_id="t0")
    scenario = Scenario(look="x")
    assert in_turn(scenario, lambda: outer.run(key="a"))[0] == "x"
    assert (scenario.recorded, ran) == ([("ask", {"key": "a"}), ("look", {"key": "b"})], ["ask"])


@pytest.mark.parametrize("name", ["look", "shop_look", "Shop.look"])
def test_a_framework_s_tool_of_a_server_is_one_call(name: str) -> None:
    (tool, ran), (server, sent) = layer("one"), layer(MCP_LAYER)
    outer = tool(name, lambda **args: server("look").run(**args))
    scenario = Scenario()
    assert in_turn(scenario, lambda: outer.run(key="a"))[0] == "real look"
    assert (scenario.recorded, ran, sent) == ([(name, {"key": "a"})], [name], ["look"])


@pytest.mark.parametrize(("name", "args"), [("sync", {"key": "a"}), ("look", {"key": "b"})])
def test_another_call_of_a_server_is_another_call(name: str, args: dict[str, str]) -> None:
    (tool, _), (server, _) = layer("one"), layer(MCP_LAYER)
    outer = tool(name, lambda **_: server("look").run(**args))
    scenario = Scenario()
    in_turn(scenario, lambda: outer.run(key="a"))
    assert scenario.recorded == [(name, {"key": "a"}), ("look", args)]


def test_a_clients_own_task_sends_what_is_left_to_the_agent() -> None:
    (tool, _), (server, sent) = layer("one"), layer(MCP_LAYER)
    from contextvars import Context

    elsewhere = Context()  # made before any conversation
    outer = tool("look", lambda **args: elsewhere.run(server("look").run, **args))
    scenario = Scenario()
    value, world = in_turn(scenario, lambda: outer.run(key="a"))
    assert (value, scenario.recorded, sent) == ("real look", [("look", {"key": "a"})], ["look"])
    assert world.take_fault() == ""


def test_arguments_that_do_not_fit_ask_nobody() -> None:
    tool, ran = layer("one", argument_error=lambda _: "key is missing")
    scenario = Scenario(look="x")
    value, world = in_turn(scenario, lambda: tool("look").run())
    assert (value, scenario.recorded, ran) == ({"error": "key is missing"}, [], [])
    assert (world.calls_so_far, world.take_fault()) == ((), "")


def test_what_was_answered_is_known_with_whether_it_was_within_another_call() -> None:
    tool, _ = layer("one", is_agent=lambda tool: tool.name == "ask")
    outer = tool("ask", lambda **_: tool("look").run(key="b"))
    _, world = in_turn(Scenario(look={"y": 1}), lambda: outer.run(key="a"))
    assert [tuple(each) for each in world.take_answered_calls()] == [
        ("look", {"key": "b"}, '{"y": 1}', True),
        ("ask", {"key": "a"}, {"y": 1}, False),
    ]
