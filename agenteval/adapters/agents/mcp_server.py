"""Serve a scenario's simulated tools over the Model Context Protocol (MCP: ``tools/list``, ``tools/call``),
using the official SDK (the extra ``mcp``).

One server handles all conversations of a run, in a thread with its own event loop. An agent that blocks its
own loop or the run's loop therefore cannot block the server that it is waiting for. Each conversation has its
own address."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from agenteval.adapters.bridge import addresses
from agenteval.adapters.bridge.bridge_server import HAS_REAL, OUTCOME, PERMIT
from agenteval.agentside.targets.context import CONVERSATION_OVER
from agenteval.agentside.world import ToolAnswer
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.json_text import as_text
from agenteval.core.scenario import Tool

if TYPE_CHECKING:
    import mcp_types as types

CallTool = Callable[[str, dict[str, Any]], Awaitable[ToolAnswer]]
"""Calls a tool in one conversation. The call is cancelled if the conversation is over."""

MCP_URL_VARIABLE = addresses.MCP_URL_VARIABLE

_ANY = {"type": "object"}
_OVER = ToolAnswer({"error": CONVERSATION_OVER}, is_error=True)
_ENDING_S = 3.0
_NEEDS = "pip install 'agenteval-runner[mcp]'"


def require_sdk(what: str) -> None:
    """Raise ``AuthorError`` if the extra that ``what`` requires is not installed."""
    try:
        import mcp.server.lowlevel
        import uvicorn

        del mcp, uvicorn
    except ImportError as error:
        raise AuthorError(
            Problem(f"{what} requires the package `mcp`, version 2 ({error})", _NEEDS)
        ) from error


class RealServerCalls(Protocol):
    """Calls to tools that are also provided by the real server behind a bridge."""

    async def begin(self, name: str, args: dict[str, Any]) -> ToolAnswer | str:
        """Return the scenario's answer, or a permit to call the real server. The call is cancelled in the
        same cases as ``CallTool``."""

    async def end(self, permit: str, answered: ToolAnswer) -> None:
        """Record the real server's answer, and return after it has been recorded."""


@dataclass
class ServedTools:
    """The tools available at an address, and the function that calls them, which is ``None`` while no
    conversation is active."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    call: CallTool | None = None
    real: RealServerCalls | None = None
    on_tools_listed: Callable[[], None] = lambda: None
    """The function that is called when the agent requests the list of tools (``tools/list``)."""


def mcp_server(served: Callable[[Any], ServedTools | None]) -> Any:
    """Create the SDK's MCP server.

    ``served(request)`` returns the tools that an HTTP request refers to; ``request`` may be ``None``."""
    from mcp.server.lowlevel import Server

    async def list_tools(ctx: Any, _params: Any) -> types.ListToolsResult:
        return _list_result(served(ctx.request) or ServedTools())

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await _call_result(served(ctx.request) or ServedTools(), params)

    return Server("agenteval", on_list_tools=list_tools, on_call_tool=call_tool)


def _list_result(found: ServedTools) -> types.ListToolsResult:
    import mcp_types as types

    found.on_tools_listed()
    return types.ListToolsResult(tools=[_tool(name, tool) for name, tool in found.tools.items()])


def _tool(name: str, tool: Tool) -> types.Tool:
    import mcp_types as types

    schema = dict(tool.parameters) if tool.parameters is not None else _ANY
    return types.Tool(name=name, description=tool.description, input_schema={"type": "object", **schema})


async def _call_result(found: ServedTools, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Answer a tool call (``tools/call``) with the scenario's result. For a bridge to a real server, perform
    the step that the bridge requests."""
    if found.call is None:
        return _result(_OVER)
    args = dict(params.arguments or {})
    meta: Mapping[str, Any] = {**params.meta} if params.meta else {}
    if found.real and OUTCOME in meta:
        outcome = ToolAnswer(args.get("value"), args.get("is_error") is True)
        return await _record_outcome(found.real, str(meta[OUTCOME]), outcome)
    try:
        if found.real and HAS_REAL in meta:
            return await _begin_call(found.real, params.name, args)
        return _result(await found.call(params.name, args))
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) and task.cancelling():
            raise
        return _result(_OVER)


async def _begin_call(real: RealServerCalls, name: str, args: dict[str, Any]) -> types.CallToolResult:
    """Return the scenario's answer, or a permit to call the real server."""
    import mcp_types as types

    begun = await real.begin(name, args)
    if isinstance(begun, ToolAnswer):
        return _result(begun)
    return types.CallToolResult(content=[], _meta={PERMIT: begun})


async def _record_outcome(real: RealServerCalls, permit: str, outcome: ToolAnswer) -> types.CallToolResult:
    import mcp_types as types

    await real.end(permit, outcome)
    return types.CallToolResult(content=[])


def _result(answered: ToolAnswer) -> types.CallToolResult:
    import mcp_types as types

    value = answered.value
    text = as_text(value)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=value if isinstance(value, dict) and not answered.is_error else None,
        is_error=answered.is_error,
    )


class McpAddress:
    """One address of the server. No tools are available at this address before or after a conversation."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.served = ServedTools()


_URL: ContextVar[str] = ContextVar("agenteval_mcp_url", default="")


def mcp_url() -> str:
    """Return the address for the current conversation, or an empty string for an agent without ``mcp``.

    While agents are being created, the address does not answer requests yet."""
    return _URL.get()


def environ_with_mcp_url(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for an agent's process, including the address of its conversation.

    If the address belongs to another agent, which runs in this process, it is removed."""
    if url := mcp_url():
        return {**env, MCP_URL_VARIABLE: url}
    here = addresses.announced_url(os.getpid())
    return {name: text for name, text in env.items() if not (name == MCP_URL_VARIABLE and text == here)}


@contextmanager
def bind_mcp_url(address: McpAddress) -> Iterator[None]:
    """Make the address available to all code in the context that starts processes or sends requests."""
    token = _URL.set(address.url)
    try:
        yield
    finally:
        _URL.reset(token)


class McpHost:
    """The MCP server of a run, reached over streamable HTTP on this machine.

    Its port is bound at once; requests are handled after the first call to ``start``."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0) -> None:
        """Bind the port. Raise ``OSError`` if the port is in use."""
        self._socket = socket.create_server((host, port))
        self._base = f"http://{host}:{self._socket.getsockname()[1]}"
        self._addresses: dict[str, McpAddress] = {}
        self._server: Any = None
        self._thread: threading.Thread | None = None

    def address(self, path: str = "") -> McpAddress:
        """Create an address with an unguessable name, or at the given ``path``."""
        name = path or f"/{secrets.token_urlsafe(12)}/mcp"
        self._addresses[name] = made = McpAddress(f"{self._base}{name}")
        return made

    def start(self) -> None:
        """Start the server, and block until it accepts requests."""
        if self._thread is not None:
            return
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True, name="agenteval-mcp")
        self._thread.start()
        ready.wait()

    def wait(self) -> None:
        if self._thread:
            while self._thread.is_alive():  # with a timeout, so that Ctrl-C gets through
                self._thread.join(0.5)

    def close(self) -> None:
        for address in self._addresses.values():
            address.served = ServedTools()
        if self._thread is None:
            self._socket.close()
        elif self._server is not None:
            self._server.should_exit = True
            self._thread.join(_ENDING_S)

    def _serve(self, ready: threading.Event) -> None:
        import uvicorn
        from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
        from starlette.applications import Starlette
        from starlette.routing import Mount

        # Without sessions, each request's path identifies its conversation, and a client created before the
        # conversation works as well as one created during it.
        manager = StreamableHTTPSessionManager(mcp_server(self._served), stateless=True)
        app = Starlette(
            routes=[Mount("/", app=StreamableHTTPASGIApp(manager))], lifespan=lambda _app: manager.run()
        )
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=1
        )

        class ReadyNotifyingServer(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                ready.set()

        self._server = ReadyNotifyingServer(config)
        try:
            self._server.run(sockets=[self._socket])
        finally:
            ready.set()

    def _served(self, request: Any) -> ServedTools | None:
        found = self._addresses.get(request.url.path) if request is not None else None
        return found.served if found else None


async def serve_stdio(served: ServedTools) -> None:
    """Serve MCP over stdio until the input ends."""
    from mcp.server.stdio import stdio_server

    server = mcp_server(lambda _request: served)
    async with stdio_server() as (lines, out):
        await server.run(lines, out, server.create_initialization_options())
