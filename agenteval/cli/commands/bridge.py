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
        raise AuthorError(Problem("--only and --else require --stdio-bridge", f"use `{_NAME}`"))
    if has_others:
        what = f"`{_NAME}` accepts only --only and --else, because the run selects the scenario"
        raise AuthorError(Problem(what, "remove the other options"))
    if has_real and not command:
        what = "--else requires the command of the real server"
        raise AuthorError(Problem(what, f"use `{_NAME} --else -- COMMAND…`"))
    if command and not has_real:
        what = f"`{_NAME}` does not accept paths ({' '.join(command)}), because the run selects the scenario"
        raise AuthorError(Problem(what, "put the command of a real server after --else --"))
    url = _url()
    try:
        import anyio
        import mcp
    except ImportError as error:
        raise AuthorError(
            Problem(f"`{_NAME}` requires the package `mcp`, version 2 ({error})", _NEEDS)
        ) from error
    del mcp
    anyio.run(lambda: serve(url, only=names, real=command))
    return 0


def _names(only: str | None) -> tuple[str, ...]:
    if only is None:
        return ()
    names = tuple(name.strip() for name in only.split(",") if name.strip())
    if not names:
        raise AuthorError(
            Problem("--only contains no tool name", "use, for example, --only get_order,cancel_order")
        )
    return names


def _url() -> str:
    """Return the URL of the conversation to which this process belongs. Raise ``AuthorError`` if there is no
    such conversation."""
    if url := os.environ.get(addresses.MCP_URL_VARIABLE):
        return url
    if sys.platform == "win32":
        what = f"`{_NAME}` cannot find its run on Windows, because {addresses.MCP_URL_VARIABLE} is not set"
        remedy = f"pass {addresses.MCP_URL_VARIABLE} on in `env` of the server configuration (docs/mcp.md)"
        raise AuthorError(Problem(what, remedy))
    found = addresses.find_address()
    if found and found.url:
        return found.url
    if found:
        what = (
            f"`{_NAME}`: the agent that started it ({found.name}) does not get its tools from an MCP server"
        )
        raise AuthorError(Problem(what, "set `mcp: true` for the agent in agenteval.yaml"))
    what = (
        f"`{_NAME}` works only inside an agent with `mcp: true` that was started by `agenteval run`,"
        " but no parent process is such an agent"
    )
    raise AuthorError(Problem(what, "outside a run, start the real server (docs/mcp.md)"))
