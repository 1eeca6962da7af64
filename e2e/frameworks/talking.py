"""A conversation with an agent of a framework, with a stand-in for the scenario: for the tests here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from agenteval.agentside import hooks
from agenteval.agentside.frameworks import recognize_object
from agenteval.agentside.world import ToolAnswer, World
from agenteval.messages.reported_usage import read_usage

hooks.install()  # before any framework is used, as a run does

RAN: list[Any] = []
"""The marks of real tools."""


def failed(text: str) -> ToolAnswer:
    return ToolAnswer(text, True)


class Scenario:
    """Answers tools by their names. Those in ``own`` are left to the agent."""

    def __init__(self, own: Sequence[str] = (), **tools: Any) -> None:
        self.tools, self.own = tools, own
        self.seen: list[tuple[str, Any]] = []
        self.left: list[str] = []

    def _answer(self, name: str, args: Any) -> ToolAnswer:
        self.seen.append((name, json.loads(args) if isinstance(args, str) else args))
        answer = self.tools[name]
        return answer if isinstance(answer, ToolAnswer) else ToolAnswer(answer)

    def mocks(self, name: str) -> bool:
        return name in self.tools

    async def call(self, name: str, args: Any, own: Any) -> ToolAnswer:
        await asyncio.sleep(0)
        if name in self.own:
            self.left.append(name)
            return ToolAnswer(await own())
        return self._answer(name, args)

    def call_sync(self, name: str, args: Any, own: Any) -> ToolAnswer:
        if name in self.own:
            self.left.append(name)
            return ToolAnswer(own())
        return self._answer(name, args)

    async def record(self, name: str, args: Any, own: Any) -> Any:
        self.seen.append((name, "itself"))
        return await own()

    def record_sync(self, name: str, args: Any, own: Any) -> Any:
        self.seen.append((name, "itself"))
        return own()


class Talk:
    def __init__(self, framework: Any, agent: Any, scenario: Scenario, deps: Any = None) -> None:
        self.world, self.scenario, self.fault = World(), scenario, ""
        self.conversation = framework.open(agent, self.world, "session", deps)

    async def say(self, text: str) -> dict[str, Any]:
        try:
            with self.world.turn(self.scenario):
                told: dict[str, Any] = await self.conversation.reply(text)
                return told
        finally:
            self.fault = self.world.take_fault()

    async def end(self) -> None:
        self.world.close()
        await self.conversation.close()


async def saying(
    framework: Any, agent: Any, scenario: Scenario, *said: str, deps: Any = None
) -> list[dict[str, Any]]:
    """What an agent replies."""
    talk = Talk(framework, agent, scenario, deps)
    try:
        return [await talk.say(each) for each in said]
    finally:
        await talk.end()


def say(framework: Any, agent: Any, scenario: Scenario, *said: str, deps: Any = None) -> list[dict[str, Any]]:
    return asyncio.run(saying(framework, agent, scenario, *said, deps=deps))


def answer(reply: dict[str, Any]) -> Any:
    return reply["messages"][-1]["content"]


def calls(reply: dict[str, Any]) -> list[tuple[str, Any, str]]:
    """The calls that a reply lists, each with its result."""
    results = {m["tool_call_id"]: m["content"] for m in reply["messages"] if m["role"] == "tool"}
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]), results.get(call["id"], "none"))
        for message in reply["messages"]
        for call in message.get("tool_calls") or ()
    ]


# ── what is known of the calls of a turn ─────────────────────────────────────────────────────────


def replies(agent: Any, scenario: Scenario, *messages: str, deps: Any = None) -> list[dict[str, Any]]:
    """What agenteval gets of each turn with an agent as it is: of a turn that broke, what it kept."""
    known = recognize_object(agent)
    assert known

    async def talk() -> list[dict[str, Any]]:
        world = World()
        opened = known.opened("session", (lambda: deps) if deps is not None else None, world)
        found = []
        for each in messages:
            try:
                with world.turn(scenario):
                    found.append(await opened.reply(each))
            except Exception as error:
                found.append(error.agenteval_partial)  # type: ignore[attr-defined]
        await opened.close()
        world.close()
        return found

    return asyncio.run(talk())


def agent_of(code: str) -> Any:
    """What the code calls ``agent``."""
    space: dict[str, Any] = {"__name__": "agent"}
    exec(compile(code, "agent.py", "exec", dont_inherit=True), space)  # its annotations are its own
    return space["agent"]


def made(reply: dict[str, Any]) -> list[tuple[str, Any]]:
    """The calls of a turn that were made, or that somebody carried out, with their arguments."""
    return [(call["function"]["name"], _args(call)) for call in _calls(reply) if "attempted" not in call]


def attempted(reply: dict[str, Any]) -> list[str]:
    """The calls that reached no tool."""
    return [call["function"]["name"] for call in _calls(reply) if call.get("attempted")]


def _calls(reply: dict[str, Any]) -> list[dict[str, Any]]:
    return [call for message in reply["messages"] for call in message.get("tool_calls") or ()]


def _args(call: dict[str, Any]) -> Any:
    return json.loads(call["function"]["arguments"])


def used(reply: dict[str, Any]) -> tuple[int, int, int, int]:
    """What the models of a turn took: requests, tokens in, tokens out, and those of the first that were
    cached."""
    usage = read_usage(reply["usage"])
    assert usage is not None
    return usage.calls, usage.input_tokens, usage.output_tokens, usage.cached_tokens
