"""Connects to a real MCP server, lists its tools and calls them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from agenteval.adapters.bridge.bridge_server import list_mcp_tools
from agenteval.conversation.real_tools import RealAnswer, UncallableError
from agenteval.core.errors import AuthorError, Problem, innermost

READ_S = 60.0
"""The time in seconds that a server may take for an answer."""


@asynccontextmanager
async def connect_mcp(command: Sequence[str]) -> AsyncIterator[Any]:
    """Yield a client of a server. ``command`` is the server's URL or the command that starts the server."""
    from mcp import Client, StdioServerParameters

    is_address = len(command) == 1 and command[0].startswith(("http://", "https://"))
    server: Any = command[0] if is_address else StdioServerParameters(command=command[0], args=[*command[1:]])
    async with Client(server, read_timeout_seconds=READ_S) as client:
        yield client


def hints_of_tool(tool: Any) -> Mapping[str, Any]:
    """Return the hints about a tool's effects (``annotations``)."""
    return tool.annotations.model_dump(by_alias=True) if tool.annotations else {}


class McpTools:
    """The tools of a real MCP server."""

    def __init__(self, client: Any, tools: Sequence[Any]) -> None:
        self._client = client
        self._tools = {tool.name: tool for tool in tools}

    @classmethod
    async def of_server(cls, client: Any) -> McpTools:
        """Ask a server for its tools."""
        return cls(client, await list_mcp_tools(client))

    def has_tool(self, name: str) -> bool:
        return name in self._tools

    def hints(self, name: str) -> Mapping[str, Any]:
        return hints_of_tool(self._tools[name]) if name in self._tools else {}

    async def call(self, name: str, args: Mapping[str, Any]) -> RealAnswer:
        """Call the tool. Raise ``UncallableError`` if the server cannot be reached, or if its answer has
        parts that are not text."""
        try:
            result = await self._client.call_tool(name, dict(args))
        except Exception as error:
            raise UncallableError(f"the server gave no answer: {innermost(error)}") from error
        data = result.structured_content
        if not result.is_error and data and [*data] != ["result"]:  # the wrapper of what is no object
            return RealAnswer(data)
        if others := sorted({block.type for block in result.content} - {"text"}):
            raise UncallableError(f"its answer has parts that are not text: {', '.join(others)}")
        return RealAnswer("\n".join(block.text for block in result.content), is_error=bool(result.is_error))


def unreachable_server(command: Sequence[str], error: Exception) -> AuthorError:
    """Return the error for a server whose tools cannot be listed."""
    what = f"the tools of the MCP server {' '.join(command)} cannot be listed: {innermost(error)}"
    return AuthorError(Problem(what, "check that it is running, and that this is its address or command"))
