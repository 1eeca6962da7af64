"""``mcp: true``: any kind of agent that finds its tools at an MCP server, which is the scenario's world."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from itertools import count
from typing import Any, TypeAlias

from agenteval.adapters.agents.mcp_server import VARIABLE, Address, CallTool, McpHost, Served, told
from agenteval.adapters.agents.python import AgentContext
from agenteval.adapters.bridge import addresses
from agenteval.agentside.targets.context import Context
from agenteval.agentside.targets.own_calls import Own
from agenteval.agentside.world import Answer
from agenteval.conversation.deadlines import waiting
from agenteval.core.protocols import Agent, AgentFactory, AgentReply, AroundAgent, TurnTools
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import Message


class McpServers:
    """The server of a run. Targets in this process all read one environment: they have one address between
    them, and one conversation at a time."""

    def __init__(self) -> None:
        self.host = McpHost()
        self._here: Address | None = None
        self._only = asyncio.Lock()

    def here(self) -> Address:
        """The address of the targets in this process, which is in the environment from now on."""
        self._here = self._here or self.host.address()
        os.environ[VARIABLE] = self._here.url
        addresses.announce(os.getpid(), self._here.url)
        return self._here

    def close(self) -> None:
        addresses.withdraw(os.getpid())
        self.host.close()

    def agents(self, factory: AgentFactory, *, is_here: bool) -> McpAgents:
        return McpAgents(factory, self.host, self._here if is_here else None, self._only)


class McpAgents:
    """The agents of a run, with what each finds at its address. ``here``: of those in this process."""

    def __init__(
        self, factory: AgentFactory, host: McpHost, here: Address | None, only: asyncio.Lock
    ) -> None:
        self._factory = factory
        self._host = host
        self._here = here
        self._only = only
        does = getattr(factory, "does", "")
        self.does = f"{does}; its tools are at an MCP server, {VARIABLE}" if does else ""

    def make(self, sample: Sample) -> McpAgent:
        address, only = (self._here, self._only) if self._here else (self._host.address(), None)
        self._host.start()
        return McpAgent(self._factory.make(sample), sample, address, only)

    async def aclose(self) -> None:
        await self._factory.aclose()


class McpAgent(AroundAgent):
    """One conversation's agent. ``only``: held by the one conversation that there may be at a time."""

    def __init__(self, agent: Agent, sample: Sample, address: Address, only: asyncio.Lock | None) -> None:
        super().__init__(agent)
        self._sample = sample
        self._address = address
        self._only = only
        self._has_it = False
        self._batches = count(1)
        self._permits: dict[str, _Permitted] = {}

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        if self._only and not self._has_it:
            with waiting():
                self._has_it = await self._only.acquire()
        context = AgentContext(self._sample, tools, asyncio.get_running_loop(), self._batches)
        self._address.served = Served(
            self._sample.scenario.tools,
            _calls(context, self._batches),
            _RealCalls(context, self._batches, self._permits),
            tools.list_asked,
        )
        with told(self._address):
            return await self._agent.reply(messages, tools)

    def end_conversation(self) -> None:
        if self._only is None or self._has_it:
            self._address.served = Served()
        super().end_conversation()
        if self._only and self._has_it:
            self._has_it = False
            self._only.release()


def _calls(context: Context, batches: Iterator[int]) -> CallTool:
    """Each call is a step: which ones a model asked for together does not show in when they arrive."""

    async def call(name: str, args: dict[str, Any]) -> Answer:
        batch = next(batches)
        if not context.leaves(name):
            return await asyncio.wrap_future(context.ask(name, args, batch))
        own = Own()  # the agent's own business, but it has come here, where nothing carries it out
        own.done.set_result(Answer({"error": f"unknown tool '{name}'"}, is_error=True))
        return await asyncio.wrap_future(own.begin(context, name, args, batch))

    return call


_Permitted: TypeAlias = tuple[Own, Future[Answer]]
"""A call, and its record, which is complete once the call is done."""


class _RealCalls:
    """Those of one turn. ``permits``: of the conversation; what was permitted may end in a later turn."""

    def __init__(self, context: Context, batches: Iterator[int], permits: dict[str, _Permitted]) -> None:
        self._context = context
        self._batches = batches
        self._permits = permits

    async def begin(self, name: str, args: dict[str, Any]) -> Answer | str:
        batch = next(self._batches)
        if not self._context.leaves(name):
            return await asyncio.wrap_future(self._context.ask_known(name, args, batch))
        own = Own()
        recorded = own.begin(self._context, name, args, batch)
        await asyncio.wrap_future(own.go)
        permit = secrets.token_urlsafe(12)
        self._permits[permit] = own, recorded
        return permit

    async def end(self, permit: str, answered: Answer) -> None:
        if permit not in self._permits:
            return
        own, recorded = self._permits.pop(permit)
        with suppress(InvalidStateError):  # nobody waits for it any more
            own.done.set_result(answered)
        await asyncio.wait([asyncio.wrap_future(recorded)])
