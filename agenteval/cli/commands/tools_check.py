"""Implements ``agenteval tools check``: calls real tools that only read, and compares their answers with
mocks."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from rich.console import RenderableType
from rich.text import Text

from agenteval.adapters.agents.mcp_server import require_sdk
from agenteval.cli.commands.mcp_client import McpTools, connect_mcp, unreachable_server
from agenteval.cli.commands.output import make_report_options, write_report_text
from agenteval.cli.safe_output import print_err
from agenteval.core.config import Config, ReporterChoice
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.json_text import to_json
from agenteval.core.plurals import plural
from agenteval.core.scenario import Scenario
from agenteval.files.config_file import LoadedConfig
from agenteval.files.mock_drift import (
    ABSENT,
    ComparableMock,
    Drift,
    DriftKind,
    IgnoredFields,
    OpaqueMock,
    json_type,
    mocks_of,
)
from agenteval.files.redaction import redact_text
from agenteval.files.yaml_source import Mark
from agenteval.planning.request import Request
from agenteval.planning.suite import load_config, load_scenarios
from agenteval.planning.wiring import Resources
from agenteval.reporters.terminal.cells import NO_VALUE, clean_line, clean_text, heading
from agenteval.reporters.terminal.fitting_table import FittingTable
from agenteval.reporters.terminal.screen import render_parts
from agenteval.running.mock_check import (
    FunctionTools,
    MockCheck,
    RealTools,
    check_mocks,
    count_by_reason,
    find_functions,
    writing_tools,
)
from agenteval.running.registries import REGISTRIES

_MOST_SHOWN = 20
"""The maximum number of differences of one mock that the table shows. JSON contains all of them."""


def check(request: Request, *, ignore: Sequence[str], mcp: str | None, as_json: bool) -> int:
    """Compare the mocks of the selected scenarios with the real tools, and return the exit code: 0 if all
    mocks that were compared agree, 1 if one differs, 3 if a tool gave no answer or nothing was compared.
    Raise ``AuthorError`` if there is no way to any real tool."""
    ignored = _parse_ignored(ignore)
    command = _parse_mcp(mcp)
    if command:
        require_sdk("agenteval tools check --mcp")
    with redirect_stdout(sys.stderr):  # the author's modules may print
        loaded = load_config(request, REGISTRIES)
        Resources(loaded.config, tuple(loaded.secrets))  # registers the secrets to mask
        mocks, scenarios = _load_mocks(request, loaded)
        _require_agent(request.filters.agent, loaded.config)
        functions = find_functions(loaded.config, request.filters.agent)
        comparable = [each for each in mocks if isinstance(each, ComparableMock)]
        functions.load({each.tool for each in comparable if functions.has_tool(each.tool)})
        found = anyio.run(_check, comparable, functions, command, writing_tools(scenarios), ignored)
    found.opaque = [each for each in mocks if isinstance(each, OpaqueMock)]
    for name in ignored.unused if found.agreeing or found.differing else ():
        print_err(f"warning: --ignore {name}: no compared answer has such a field")
    if as_json:
        payload = json.dumps(_to_json(found), ensure_ascii=False, indent=2)
        write_report_text("json", payload, None)
    else:
        options = make_report_options(ReporterChoice(name="terminal"), folder=Path.cwd())
        write_report_text("terminal", render_parts(_render(found), options), None)
    return found.exit_code


def _parse_ignored(fields: Sequence[str]) -> IgnoredFields:
    for each in fields:
        if not all(each.split(".")) or "[" in each:
            what = f"--ignore '{each}' is neither a name nor a dotted path"
            raise AuthorError(Problem(what, "use updated_at or order.items.price, without positions"))
    return IgnoredFields(fields)


def _parse_mcp(mcp: str | None) -> Sequence[str]:
    if mcp is None:
        return ()
    try:
        words = [mcp] if mcp.startswith(("http://", "https://")) else shlex.split(mcp)
    except ValueError as error:
        raise AuthorError(Problem(f"--mcp {mcp}: {error}", "close the quotation mark")) from None
    if not words:
        raise AuthorError(Problem("--mcp is empty", "use the server's URL, or the command that starts it"))
    return words


def _require_agent(name: str | None, config: Config) -> None:
    known = [agent.name for agent in config.all_agents]
    if name is not None and name not in known:
        raise AuthorError(Problem(f"--agent: unknown agent '{name}'", did_you_mean(name, known)))


class _LoadedMocks(NamedTuple):
    mocks: Sequence[ComparableMock | OpaqueMock]
    """The mocks of the selected scenarios, each once."""
    scenarios: Sequence[Scenario]
    """All scenarios of the requested files."""


def _load_mocks(request: Request, loaded: LoadedConfig) -> _LoadedMocks:
    by_scenario: dict[str, list[ComparableMock | OpaqueMock]] = {}

    def collect(scenario: Scenario, mark: Mark) -> Iterator[Problem]:
        by_scenario[scenario.id] = list(mocks_of(scenario, mark))
        return iter(())

    found = load_scenarios(request, loaded.config, collect, allows_only_defaults=True)
    mocks: dict[Any, ComparableMock | OpaqueMock] = {}
    for scenario in found.selected:
        for mock in by_scenario[scenario.id]:
            mocks.setdefault(mock.key if isinstance(mock, ComparableMock) else mock, mock)
    return _LoadedMocks(tuple(mocks.values()), found.loaded)


async def _check(
    mocks: Sequence[ComparableMock],
    functions: FunctionTools,
    command: Sequence[str],
    writing: frozenset[str],
    ignored: IgnoredFields,
) -> MockCheck:
    if not command:
        return await check_mocks(mocks, (functions,), writing, ignored, redact_text)
    sources: tuple[RealTools, ...] = ()
    try:
        async with connect_mcp(command) as client:
            sources = (await McpTools.of_server(client), functions)
            return await check_mocks(mocks, sources, writing, ignored, redact_text)
    except Exception as error:
        if sources:
            raise  # a defect, because failing calls raise nothing
        raise unreachable_server(command, error) from error


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def _render(found: MockCheck) -> Iterator[RenderableType]:
    if found.differing:
        rows = [row for mock, drifts in found.differing for row in _rows(mock, drifts)]
        yield FittingTable(("tool", "arguments", "kind", "path", "mock", "real", "at"), rows)
    for title, pairs in (
        ("not called", [(each.mock.tool, each.reason) for each in found.uncalled if each.may_write]),
        ("no answer", [(each.mock.tool, each.reason) for each in found.failed]),
        ("not comparable", [(each.tool, each.reason) for each in found.opaque]),
    ):
        if pairs:
            yield heading(f"{title}:")
            for tool, reason, count in count_by_reason(pairs):
                yield clean_text(f"  {tool} ({plural(count, 'mock')}): {reason}")
    yield Text(_summary(found))


def _rows(mock: ComparableMock, drifts: Sequence[Drift]) -> Iterator[Sequence[Text]]:
    for drift in drifts[:_MOST_SHOWN]:
        yield (
            clean_text(mock.tool),
            clean_line(to_json(mock.args), 60),
            Text(drift.kind.value, style="red"),
            clean_line(drift.path or NO_VALUE, 60),
            _value(drift.mock, drift),
            _value(drift.real, drift),
            clean_text(_at(mock)),
        )
    if len(drifts) > _MOST_SHOWN:
        more = f"… {len(drifts) - _MOST_SHOWN} more differences (--json lists them)"
        yield (clean_text(mock.tool), Text(more), *[Text("")] * 4, clean_text(_at(mock)))


def _at(mock: ComparableMock) -> str:
    return f"{mock.place.path}:{mock.place.line}"


def _value(value: Any, drift: Drift) -> Text:
    if value is ABSENT:
        return Text("missing", style="dim")
    text = to_json(value)
    return clean_line(f"{json_type(value)} {text}" if drift.kind is DriftKind.TYPES else text, 60)


def _summary(found: MockCheck) -> str:
    held = len(found.uncalled) - len(found.failed)
    parts = [
        f"{plural(len(found.agreeing), 'mock')} {'agrees' if len(found.agreeing) == 1 else 'agree'}",
        f"{len(found.differing)} {'differs' if len(found.differing) == 1 else 'differ'}",
        *([f"{held} not called"] if held else []),
        *([f"{len(found.failed)} without an answer"] if found.failed else []),
        *([f"{len(found.opaque)} not comparable"] if found.opaque else []),
    ]
    word = {0: "AGREE", 1: "DIFFER", 3: "NOT DECIDED"}[found.exit_code]
    return f"{word}: {', '.join(parts)} (exit {found.exit_code})"


def _to_json(found: MockCheck) -> dict[str, Any]:
    return {
        "exit_code": found.exit_code,
        "agree": [_mock(mock) for mock in found.agreeing],
        "differ": [
            {**_mock(mock), "differences": [_drift(drift) for drift in drifts]}
            for mock, drifts in found.differing
        ],
        "not_called": [
            {**_mock(each.mock), "reason": each.reason} for each in found.uncalled if each.may_write
        ],
        "no_answer": [{**_mock(each.mock), "reason": each.reason} for each in found.failed],
        "not_comparable": [
            {"tool": each.tool, "at": f"{each.place.path}:{each.place.line}", "reason": each.reason}
            for each in found.opaque
        ],
    }


def _mock(mock: ComparableMock) -> Mapping[str, Any]:
    return {"tool": mock.tool, "args": mock.args, "at": _at(mock)}


def _drift(drift: Drift) -> Mapping[str, Any]:
    sides = {"mock": drift.mock, "real": drift.real}
    return {
        "kind": drift.kind.value,
        "path": drift.path,
        **{name: value for name, value in sides.items() if value is not ABSENT},
    }
