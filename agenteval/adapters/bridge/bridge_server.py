"""Bridge MCP over stdio, on the agent's side, to the MCP server of the run and, if the bridge replaces a real
server, also to that server.

A call to a tool that the real server also provides is sent to the run with ``HAS_REAL``. If the run leaves
the call to the real server, the run answers with a ``PERMIT``. The bridge then reports the result of the call
with an ``OUTCOME``."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from agenteval.core.errors import AuthorError, Problem, innermost

HAS_REAL, PERMIT, OUTCOME = "agenteval/has-real", "agenteval/permit", "agenteval/outcome"
"""The keys in ``_meta`` of a call, of the run's answer, and of the call that reports the outcome."""
_CONNECT_S = 10.0
_CALL_S = 24 * 3600.0
"""A timeout that is effectively unlimited. The run limits the duration of a call, and the agent limits its
own waiting time."""
_ANY = {"type": "object"}
_GONE = "the agenteval run no longer responds, so no tool can be called"


async def serve(url: str, *, only: Collection[str], real: Sequence[str]) -> None:
    """Serve the tools of the run at ``url`` over stdio until the input ends.

    ``only`` lists the names of the tools to offer; if it is empty, all tools are offered. ``real`` is the
    command that starts the real server, if the bridge replaces one. Raise ``AuthorError`` if the run or the
    real server does not respond."""
    import httpx2
    from mcp import Client, StdioServerParameters
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    async with AsyncExitStack() as stack:
        # The run is on this machine, so proxies of the environment do not apply.
        timeout = httpx2.Timeout(_CALL_S, connect=_CONNECT_S)
        http = await stack.enter_async_context(httpx2.AsyncClient(timeout=timeout, trust_env=False))
        run = _RunClient(url, http)
        await run.require()
        behind = None
        if real:
            program, *arguments = real
            parameters = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
            try:
                behind = await stack.enter_async_context(Client(parameters, cache=None))
            except Exception as error:
                what = f"the real server ({' '.join(real)}) failed to start: {innermost(error)}"
                raise AuthorError(Problem(what, "run the command by itself to see why")) from error
        bridge = _Bridge(run, behind, frozenset(only))
        server: Any = Server(
            "agenteval",
            instructions=behind.instructions if behind else None,
            on_list_tools=bridge.list_tools,
            on_call_tool=bridge.call_tool,
        )
        async with stdio_server() as (lines, out):
            await server.run(lines, out, server.create_initialization_options())


class _RunClient:
    """A client of the run's MCP server.

    Each request uses a new MCP client, because a client that loses its server cancels all surrounding tasks.
    """

    def __init__(self, url: str, http: Any) -> None:
        self._url = url
        self._http = http
        self._mode = "auto"

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Any]:
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        transport = streamable_http_client(self._url, http_client=self._http)
        async with Client(transport, cache=None, mode=self._mode, read_timeout_seconds=_CONNECT_S) as client:
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                self._mode = client.protocol_version  # which needs no handshake
            yield client

    async def require(self) -> None:
        """Raise ``AuthorError`` if the run does not respond."""
        try:
            async with self.connected():
                pass
        except Exception as error:
            what = f"the run at {self._url} does not respond: {innermost(error)}"
            remedy = "check that the run is still in progress; a bridge serves one of its conversations"
            raise AuthorError(Problem(what, remedy)) from error

    async def list_tools(self) -> Sequence[Any]:
        async with self.connected() as client:
            return await list_mcp_tools(client)

    async def call(self, name: str, arguments: dict[str, Any], meta: dict[str, Any] | None) -> Any:
        async with self.connected() as client:
            return await _call(client, name, arguments, meta)


class _Bridge:
    def __init__(self, run: _RunClient, real: Any, only: frozenset[str]) -> None:
        self._run = run
        self._real = real
        self._only = only
        self._real_names: frozenset[str] = frozenset()

    async def list_tools(self, _ctx: Any, _params: Any) -> Any:
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        try:
            declared = {tool.name: tool for tool in await self._run.list_tools()}
        except Exception as error:
            raise MCPError(types.INTERNAL_ERROR, f"{_GONE}: {innermost(error)}") from error
        found = [_merge_listing(declared.pop(tool.name, None), tool) for tool in await self._list_real()]
        tools = (*found, *declared.values())
        return types.ListToolsResult(
            tools=[tool for tool in tools if not self._only or tool.name in self._only]
        )

    async def call_tool(self, _ctx: Any, params: Any) -> Any:
        name, arguments = params.name, params.arguments or {}
        has_real = await self._has_real(name)
        try:
            answer = await self._run.call(name, arguments, {HAS_REAL: True} if has_real else None)
        except Exception as error:
            return _error_result(f"{_GONE}: {innermost(error)}")
        permit = (answer.meta or {}).get(PERMIT)
        return answer if permit is None else await self._call_real_tool(permit, name, arguments)

    async def _call_real_tool(self, permit: str, name: str, arguments: dict[str, Any]) -> Any:
        """Call the tool on the real server, and report the outcome to the run before the agent receives the
        answer."""
        from mcp.shared.exceptions import MCPError

        try:
            result = await _call(self._real, name, arguments, None)
        except MCPError as error:
            await self._report(permit, name, {"error": error.message}, is_error=True)
            raise
        except Exception as error:
            result = _error_result(innermost(error))
        await self._report(permit, name, _recorded_value(result), is_error=bool(result.is_error))
        return result

    async def _report(self, permit: str, name: str, value: Any, *, is_error: bool) -> None:
        outcome = {"value": value, "is_error": is_error}
        with suppress(Exception):  # the run is over: nobody judges the call
            await self._run.call(name, outcome, {OUTCOME: permit})

    async def _list_real(self) -> Sequence[Any]:
        tools = await list_mcp_tools(self._real) if self._real else ()
        self._real_names = frozenset(tool.name for tool in tools)
        return tools

    async def _has_real(self, name: str) -> bool:
        if self._real and name not in self._real_names:
            with suppress(Exception):  # it has ended; the scenario still answers
                await self._list_real()
        return name in self._real_names


async def list_mcp_tools(client: Any) -> Sequence[Any]:
    """Return all tools of a server (``tools/list``)."""
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            return found


async def _call(client: Any, name: str, arguments: dict[str, Any], meta: dict[str, Any] | None) -> Any:
    """Call a tool as ``Client.call_tool`` does, but return the result unchanged.

    The agent's own client validates the result against the tool's schema, and tools are listed only when the
    agent requests the list."""
    import mcp_types as types

    params = types.CallToolRequestParams(name=name, arguments=arguments, _meta=meta)
    return await client.session.send_request(
        types.CallToolRequest(params=params), types.CallToolResult, request_read_timeout_seconds=_CALL_S
    )


def _merge_listing(declared: Any, real: Any) -> Any:
    """Merge two descriptions of a tool. The scenario's declaration takes precedence, and the real server's
    description fills any gaps.

    The output schema is omitted, because the scenario's answers need not have the same form as real answers.
    """
    if declared is None:
        return real
    schema = declared.input_schema if declared.input_schema != _ANY else real.input_schema
    return real.model_copy(
        update={
            "description": declared.description or real.description,
            "input_schema": schema,
            "output_schema": None,
        }
    )


def _recorded_value(result: Any) -> Any:
    """Return the value to record for a result that the agent receives."""
    if result.structured_content is not None:
        return result.structured_content
    blocks = result.content
    if all(block.type == "text" for block in blocks):
        return "\n".join(block.text for block in blocks)
    return [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in blocks]


def _error_result(text: str) -> Any:
    import mcp_types as types

    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
