"""Agents of any type with ``mcp: true``, which find their tools on a Model Context Protocol (MCP) server. The
server exposes the scenario's simulated tools."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from itertools import count
from typing import Any, TypeAlias

from agenteval.adapters.agents.mcp_server import (
    MCP_URL_VARIABLE,
    CallTool,
    McpAddress,
    McpHost,
    ServedTools,
    bind_mcp_url,
)
from agenteval.adapters.agents.python import AgentContext
from agenteval.adapters.bridge import addresses
from agenteval.agentside.targets.context import Context
from agenteval.agentside.targets.tool_proxy import PassthroughCall
from agenteval.agentside.world import ToolAnswer
from agenteval.conversation.deadlines import pause_deadlines
from agenteval.core.protocols import Agent, AgentFactory, AgentReply, AgentWrapper, TurnTools
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import Message


class McpServers:
    """The MCP server of a run.

    All targets in this process share the same environment. They therefore share one address and run one
    conversation at a time."""

    def __init__(self) -> None:
        self.host = McpHost()
        self._here: McpAddress | None = None
        self._only = asyncio.Lock()

    def in_process_address(self) -> McpAddress:
        """Return the address for targets in this process, and set it in the environment."""
        self._here = self._here or self.host.address()
        os.environ[MCP_URL_VARIABLE] = self._here.url
        addresses.announce(os.getpid(), self._here.url)
        return self._here

    def close(self) -> None:
        addresses.withdraw(os.getpid())
        self.host.close()

    def agents(self, factory: AgentFactory, *, in_process: bool) -> McpAgents:
        return McpAgents(factory, self.host, self._here if in_process else None, self._only)


class McpAgents:
    """The agents of a run, each with its own address. ``here`` is the address for agents in this process."""

    def __init__(
        self, factory: AgentFactory, host: McpHost, here: McpAddress | None, only: asyncio.Lock
    ) -> None:
        self._factory = factory
        self._host = host
        self._here = here
        self._only = only
        self.database_remedy: str | None = getattr(factory, "database_remedy", None)
        does = getattr(factory, "does", "")
        self.no_history = getattr(factory, "no_history", None)
        self.does = f"{does}; its tools are served by an MCP server ({MCP_URL_VARIABLE})" if does else ""

    def make(self, sample: Sample) -> McpAgent:
        address, only = (self._here, self._only) if self._here else (self._host.address(), None)
        self._host.start()
        return McpAgent(self._factory.make(sample), sample, address, only)

    async def aclose(self) -> None:
        await self._factory.aclose()


class McpAgent(AgentWrapper):
    """The agent for one conversation. ``only`` is a lock that allows one conversation at a time."""

    def __init__(self, agent: Agent, sample: Sample, address: McpAddress, only: asyncio.Lock | None) -> None:
        super().__init__(agent)
        self._sample = sample
        self._address = address
        self._only = only
        self._has_turn = False
        self._batches = count(1)
        self._permits: dict[str, _Permitted] = {}

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        if self._only and not self._has_turn:
            with pause_deadlines():
                self._has_turn = await self._only.acquire()
        context = AgentContext(self._sample, tools, asyncio.get_running_loop(), self._batches)
        self._address.served = ServedTools(
            self._sample.scenario.tools,
            _tool_caller(context, self._batches),
            _TurnRealCalls(context, self._batches, self._permits),
            tools.list_asked,
        )
        with bind_mcp_url(self._address):
            return await self._agent.reply(messages, tools)

    def end_conversation(self) -> None:
        if self._only is None or self._has_turn:
            self._address.served = ServedTools()
        super().end_conversation()
        if self._only and self._has_turn:
            self._has_turn = False
            self._only.release()


def _tool_caller(context: Context, batches: Iterator[int]) -> CallTool:
    """Return the function that executes a tool call.

    Each call counts as a separate step, because arrival times do not show which calls a model requested
    together."""

    async def call(name: str, args: dict[str, Any]) -> ToolAnswer:
        batch = next(batches)
        if not context.passes_through(name):
            return await asyncio.wrap_future(context.request_call(name, args, batch))
        passthrough = PassthroughCall()  # the agent's own tool, which nothing here can carry out
        passthrough.done.set_result(ToolAnswer({"error": f"unknown tool '{name}'"}, is_error=True))
        return await asyncio.wrap_future(passthrough.begin(context, name, args, batch))

    return call


_Permitted: TypeAlias = tuple[PassthroughCall, Future[ToolAnswer]]
"""A permitted call and its record, which is complete once the call has returned."""


class _TurnRealCalls:
    """The calls to the real server's tools in one turn.

    ``permits`` contains the permits of the whole conversation, because a permitted call may end in a later
    turn."""

    def __init__(self, context: Context, batches: Iterator[int], permits: dict[str, _Permitted]) -> None:
        self._context = context
        self._batches = batches
        self._permits = permits

    async def begin(self, name: str, args: dict[str, Any]) -> ToolAnswer | str:
        batch = next(self._batches)
        if not self._context.passes_through(name):
            return await asyncio.wrap_future(self._context.request_known_call(name, args, batch))
        passthrough = PassthroughCall()
        recorded = passthrough.begin(self._context, name, args, batch)
        await asyncio.wrap_future(passthrough.go_ahead)
        permit = secrets.token_urlsafe(12)
        self._permits[permit] = passthrough, recorded
        return permit

    async def end(self, permit: str, answered: ToolAnswer) -> None:
        if permit not in self._permits:
            return
        passthrough, recorded = self._permits.pop(permit)
        with suppress(InvalidStateError):  # nobody waits any more
            passthrough.done.set_result(answered)
        await asyncio.wait([asyncio.wrap_future(recorded)])
