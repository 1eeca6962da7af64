"""Implements ``agenteval tools``: serves the mocked tools of a scenario as an MCP server, and prints the
tools of a real MCP server as YAML."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import yaml

from agenteval.adapters.agents.mcp_server import McpHost, ServedTools, require_sdk, serve_stdio
from agenteval.adapters.bridge.bridge_server import list_mcp_tools
from agenteval.agentside.world import ToolAnswer
from agenteval.cli.commands.mcp_client import (
    connect_mcp,
    hints_of_tool,
    unreachable_server,
)
from agenteval.cli.safe_output import clean_output, print_err, print_out
from agenteval.conversation.mocks import MockFunctions
from agenteval.conversation.python_world import PythonWorld
from agenteval.conversation.simulation import ToolWorld
from agenteval.core import selection
from agenteval.core.config import Config
from agenteval.core.digits import parse_digits
from agenteval.core.errors import AgentevalError, AuthorError, Problem
from agenteval.core.plurals import plural
from agenteval.core.scenario import Sample, SampleKey, Scenario, sample_seed
from agenteval.core.tool_effects import marks_from_hints
from agenteval.core.trajectory import ToolCall
from agenteval.planning.python_worlds import WorldResolver
from agenteval.planning.request import Request
from agenteval.planning.suite import load_config, load_scenarios
from agenteval.planning.wiring import make_database, open_world
from agenteval.running.registries import REGISTRIES

_MOCK_S = 60.0
_SHOWN = 8


def serve(request: Request, *, http: str | None) -> int:
    """Serve the mocked tools of the selected scenario as an MCP server until the input ends or Ctrl-C is
    pressed. ``http`` is ``PORT`` or ``HOST:PORT`` (Streamable HTTP), or None for standard input and output.
    Raise ``AuthorError`` if the number of selected scenarios is not exactly one, or if the scenario cannot be
    served."""
    require_sdk("agenteval tools serve")
    with redirect_stdout(
        sys.stderr
    ):  # the author's modules may print, and on stdio stdout carries the protocol
        config = load_config(request, REGISTRIES).config
        resolve = WorldResolver(config.now).resolve
        scenario = _require_one(load_scenarios(request, config, resolve=resolve).selected)
        mocks = MockFunctions(timeout_s=_MOCK_S)
        mocks.check(scenario)
    if not scenario.tools:
        print_err(f"warning: {scenario.id} declares no tools")
    world = _ServedWorld(scenario, config, mocks)
    try:
        world.print_database()
        return _serve(scenario, ServedTools(scenario.tools, world.call), http)
    finally:
        world.close()


def _serve(scenario: Scenario, served: ServedTools, http: str | None) -> int:
    if http is None:
        anyio.run(serve_stdio, served)
        return 0
    host = _parse_host(http)
    address = host.address("/mcp")
    address.served = served
    host.start()
    print_err(f"{scenario.id}: {plural(len(scenario.tools), 'tool')} at {address.url} (Ctrl-C to stop)")
    try:
        host.wait()
    finally:
        host.close()
    return 0


def _require_one(chosen: Sequence[Scenario]) -> Scenario:
    if len(chosen) == 1:
        return chosen[0]
    names = [selection.full_id(scenario) for scenario in chosen[:_SHOWN]]
    more = ", …" if len(chosen) > _SHOWN else ""
    what = f"{len(chosen)} scenarios are selected, but only one can be served: {', '.join(names)}{more}"
    raise AuthorError(Problem(what, "select one with -s ID"))


def _parse_host(written: str) -> McpHost:
    name, _, written_port = written.rpartition(":")
    port = parse_digits(written_port)
    if port is None or port > 65535:
        raise AuthorError(Problem(f"--http {written}: invalid port", "use --http 8000 or --http HOST:8000"))
    try:
        return McpHost(host=name or "127.0.0.1", port=port)
    except (OSError, UnicodeError) as error:  # the latter if a host cannot be a name
        number = getattr(error, "errno", None)
        if number == errno.EADDRNOTAVAIL or not _has_ipv4_address(name):
            what = f"--http {written}: '{name}' is not a host on this machine with an IPv4 address"
            raise AuthorError(
                Problem(what, "use --http 8000, or a name or IPv4 address of this machine")
            ) from error
        what = f"--http {written}: {os.strerror(number) if number else error}"
        raise AuthorError(Problem(what, "choose another port; 0 uses a free one")) from error


def _has_ipv4_address(name: str) -> bool:
    try:
        return bool(socket.getaddrinfo(name or None, 0, socket.AF_INET))
    except (OSError, UnicodeError):
        return False


class _ServedWorld:
    """The simulated tool world of one sample. An error in an author's mock is printed and is also returned to
    the caller as an error."""

    def __init__(self, scenario: Scenario, config: Config, mocks: MockFunctions) -> None:
        key = SampleKey(scenario=scenario.id, agent="agent")
        sample = Sample(key=key, scenario=scenario, seed=sample_seed(config.seed, key))
        database = make_database(sample, config.now)
        self._world = ToolWorld(sample, mocks, unmocked_tools=config.unmocked_tools, database=database)
        self._open: Callable[[], Awaitable[PythonWorld | None]] | None = None
        if scenario.world:
            self._open = partial(open_world, sample, database, now=config.now, timeout_s=_MOCK_S)
        self._opening = anyio.Lock()
        self._numbers = count(1)

    def print_database(self) -> None:
        """Print the variable with the path of the database, for an agent that whoever serves the tools
        starts."""
        if database := self._world.database_access:
            print_err(f"{database.variable}={database.path}")

    def close(self) -> None:
        self._world.close()

    async def call(self, name: str, args: dict[str, Any]) -> ToolAnswer:
        try:
            async with self._opening:
                if self._open is not None:
                    self._world.python_world, self._open = await self._open(), None
            result = await self._world.resolve(ToolCall(name=name, args=args), 0)
        except AgentevalError as error:
            print_err(f"call {next(self._numbers)}: {error}")
            return ToolAnswer({"error": str(error)}, is_error=True)
        print_err(f"call {next(self._numbers)}: {name} {args} → {result.text[:200]}")
        return ToolAnswer(result.value, result.is_error)


def schemas(command: Sequence[str], out: str | None) -> int:
    """Print the tools of a real MCP server (``tools/list``) in the format of a scenario's ``tools``.
    ``command`` is the server's URL or the command that starts the server. Raise ``AuthorError`` if the server
    does not list its tools, or if the file ``out`` cannot be written."""
    require_sdk("agenteval tools schemas")
    tools = anyio.run(_fetch_tools, command)
    text = yaml.safe_dump({"tools": tools}, sort_keys=False, allow_unicode=True, width=100)
    if out:
        try:
            Path(out).write_text(clean_output(text), encoding="utf-8")
        except OSError as error:
            what = f"{out} cannot be written: {error.strerror or error}"
            raise AuthorError(Problem(what, "choose another path with --out")) from error
        print_err(f"{len(tools)} tools: {out}")
    else:
        print_out(text)
    return 0


async def _fetch_tools(command: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    try:
        async with connect_mcp(command) as client:
            return {tool.name: _entry(tool) for tool in await list_mcp_tools(client)}
    except Exception as error:
        raise unreachable_server(command, error) from error


def _entry(tool: Any) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    marks = marks_from_hints(hints_of_tool(tool))
    return {**described, "parameters": tool.input_schema, **marks, "returns": {}}
