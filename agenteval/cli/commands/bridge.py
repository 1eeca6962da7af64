"""Implements ``agenteval tools serve --stdio-bridge``: a process that an agent starts instead of an MCP
server (stdio transport).

The module has few imports because each conversation waits for this process to start."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from agenteval.adapters.bridge import addresses
from agenteval.adapters.bridge.bridge_server import serve
from agenteval.core.errors import AuthorError, Problem

_NAME = "agenteval tools serve --stdio-bridge"
_NEEDS = "pip install 'agenteval-runner[mcp]'"


def bridge(
    command: Sequence[str], *, is_bridge: bool, only: str | None, has_real: bool, has_others: bool
) -> int:
    """Serve the tools of the current run over stdio (MCP ``tools/list`` and ``tools/call``) until the input
    ends. ``command`` is the command that starts the real server if ``has_real`` is True. ``has_others`` is
    True if other options were given. Raise ``AuthorError`` if the options are invalid or no run is found."""
    names = _names(only)
    if not is_bridge:
        raise AuthorError(Problem("--only and --else are for --stdio-bridge", f"write {_NAME}"))
    if has_others:
        what = f"{_NAME} takes only --only and --else: the run chooses the scenario"
        raise AuthorError(Problem(what, "remove the other options"))
    if has_real and not command:
        what = "--else: the command of the real server is missing"
        raise AuthorError(Problem(what, f"write {_NAME} --else -- COMMAND…"))
    if command and not has_real:
        what = f"{_NAME} takes no paths ({' '.join(command)}): the run chooses the scenario"
        raise AuthorError(Problem(what, "write a real server's command after --else --"))
    url = _url()
    try:
        import anyio
        import mcp
    except ImportError as error:
        raise AuthorError(Problem(f"{_NAME} needs the package mcp, version 2 ({error})", _NEEDS)) from error
    del mcp
    anyio.run(lambda: serve(url, only=names, real=command))
    return 0


def _names(only: str | None) -> tuple[str, ...]:
    if only is None:
        return ()
    names = tuple(name.strip() for name in only.split(",") if name.strip())
    if not names:
        raise AuthorError(Problem("--only names no tool", "write --only get_order,cancel_order"))
    return names


def _url() -> str:
    """Return the URL of the conversation to which this process belongs. Raise ``AuthorError`` if there is no
    such conversation."""
    if url := os.environ.get(addresses.MCP_URL_VARIABLE):
        return url
    if sys.platform == "win32":
        what = f"{_NAME} cannot search for its run on Windows, and {addresses.MCP_URL_VARIABLE} is not set"
        remedy = (
            f"pass {addresses.MCP_URL_VARIABLE} on, in the env of the server's configuration (docs/mcp.md)"
        )
        raise AuthorError(Problem(what, remedy))
    found = addresses.find_address()
    if found and found.url:
        return found.url
    if found:
        what = f"{_NAME}: the agent that started it ({found.name}) gets no tools from an MCP server"
        raise AuthorError(Problem(what, "set mcp: true for the agent in agenteval.yaml"))
    what = (
        f"{_NAME} replaces an MCP server while agenteval run plays an agent with mcp: true;"
        " no parent process of this one is such an agent"
    )
    raise AuthorError(Problem(what, "outside a run, start the real server (docs/mcp.md)"))
