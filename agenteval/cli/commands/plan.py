"""Implements ``agenteval plan`` (cost estimate, dry run): forecasts the calls and cost of a run and the error
rates of its gates. No model or agent is called."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from agenteval.adapters.traffic.middleware import RecordingOptions
from agenteval.cli.commands.output import make_report_options, write_report_text
from agenteval.cli.safe_output import print_err
from agenteval.core.config import ReporterChoice, parse_reporter
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.plurals import plural
from agenteval.core.selection import Filters, agents_of
from agenteval.planning import wiring
from agenteval.planning.forecast import Forecast, ForecastRow, Range, forecast
from agenteval.planning.request import Request
from agenteval.planning.run_preparation import PreparedRun, prepare
from agenteval.reporters.terminal.cells import NO_VALUE, clean_text, heading, indented
from agenteval.reporters.terminal.fitting_table import FittingTable
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.words.spending import amount
from agenteval.running.registries import REGISTRIES
from agenteval.verdict.gate_error_rates import describe_error_rates, gate_error_rates

SCHEMA_VERSION = 1
"""The version of the JSON report."""


def plan(request: Request, *, reports: Sequence[str] = ()) -> int:
    """Print the forecast, or write the forecast as JSON if ``reports`` contains a JSON report."""
    targets = [_json_target(text) for text in reports]
    with redirect_stdout(sys.stderr):
        prepared = prepare(replace(request, recording=RecordingOptions(calls_models=False)), REGISTRIES)
        for text in prepared.remarks:
            print_err(f"warning: {text}")
        made = forecast_of(prepared)
        chances = describe_error_rates(gate_error_rates(prepared.plan))
    for path in targets:
        write_report_text("json", json.dumps(as_json(made, chances), indent=2) + "\n", path)
    if None not in targets:
        options = make_report_options(ReporterChoice(name="terminal"), folder=Path())
        write_report_text("terminal", render_parts([*plan_parts(made), *gate_parts(chances)], options), None)
    return 0


def _json_target(text: str) -> Path | None:
    """Return the file named in ``--report json[=PATH]``, or None if the report is printed to stdout."""
    choice = parse_reporter(text)
    if choice.name != "json":
        what = f"--report {choice.name}: a plan can be written only as json"
        raise AuthorError(Problem(what, "use --report json=plan.json"))
    return Path.cwd() / choice.path if choice.path and choice.path != "-" else None


def forecast_of(prepared: PreparedRun) -> Forecast:
    config = prepared.suite.settings.config
    agents = agents_of(config, Filters())
    return forecast(
        prepared.plan,
        prepared.wired.scenarios,
        prepared.suite.settings.metrics,
        policies={name: wiring.policy_of(agent, config.root) for name, agent in agents.items()},
        uses_cache=config.cache is not False,
    )


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def plan_parts(made: Forecast) -> Iterator[RenderableType]:
    """Yield the table of calls, tokens and cost, followed by notes on costs that are not included in the
    table."""
    samples, turns = _counted(made.samples, "sample"), _counted(made.turns, "turn")
    agents = f" × {plural(made.agents, 'agent')}" if made.agents > 1 else ""
    yield Text(f"{samples} of {plural(made.scenarios, 'scenario')}{agents}, {turns}\n")
    figures = ("calls", "tokens", "tokens in", "tokens out", "cost (USD)")
    yield FittingTable(("role", "model", *figures), map(_cells, made.rows), numbers=figures)
    yield clean_text(f"\n{_sum(made.rows)}")
    for note in made.notes:
        yield clean_text(f"note: {note}")


def _cells(row: ForecastRow) -> tuple[Text, ...]:
    figures = (
        _range(row.calls, about="≈" if row.estimated else ""),
        _range(row.input_tokens + row.output_tokens, about="≈"),
        _range(row.input_tokens, about="≈"),
        _range(row.output_tokens, about="≈"),
        _cost(row.cost),
    )
    return (Text(row.role), clean_text(row.name or NO_VALUE), *map(Text, figures))


def gate_parts(chances: Sequence[str]) -> Iterator[RenderableType]:
    """Yield the error rates of each gate."""
    if chances:
        yield heading("\nHow often the gates are wrong")
    for sentence in chances:
        yield indented(clean_text(sentence))


def _counted(number: Range, noun: str) -> str:
    return plural(number.least, noun) if number.is_exact else f"{_range(number)} {noun}s"


def _range(number: Range, about: str = "") -> str:
    """Format a range, such as ``12``, ``12–20`` or ``12+``. Zero is never marked as an estimate."""
    if not number.least and number.is_exact:
        return "0"
    if number.most is None:
        return f"{about}{number.least:,}+"
    return f"{about}{number.least:,}" + ("" if number.is_exact else f"–{number.most:,}")


def _cost(cost: tuple[float, float] | None) -> str:
    if cost is None:
        return "unknown"
    low, high = map(amount, cost)
    if not any(cost):
        return "0"
    return f"≈{low}" if low == high else f"≈{low}–{high}"


def _sum(rows: Sequence[ForecastRow]) -> str:
    low, high = (sum(row.cost[end] for row in rows if row.cost) for end in (0, 1))
    without = list(dict.fromkeys(row.name or row.role for row in rows if row.cost is None and _asks(row)))
    left_out = f" (no price for {', '.join(without)}; set `prices`)" if without else ""
    if not high and without:
        return f"cost: unknown{left_out}"
    return f"cost: {_cost((low, high))} USD{left_out}"


def _asks(row: ForecastRow) -> bool:
    return row.calls.most != 0


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────


def as_json(made: Forecast, chances: Sequence[str]) -> dict[str, Any]:
    """Return the forecast as JSON. ``most`` is null if there is no upper bound. Token counts and costs are
    always estimates; call counts are estimates if ``estimated`` is true."""
    return {
        "schema_version": SCHEMA_VERSION,
        "scenarios": made.scenarios,
        "agents": made.agents,
        "samples": _pair(made.samples),
        "turns": _pair(made.turns),
        "rows": list(_rows(made.rows)),
        "notes": list(made.notes),
        "gates": list(chances),
    }


def _rows(rows: Sequence[ForecastRow]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield {
            "role": row.role,
            "name": row.name,
            "calls": _pair(row.calls),
            "estimated": row.estimated,
            "tokens": _pair(row.input_tokens + row.output_tokens),
            "input_tokens": _pair(row.input_tokens),
            "output_tokens": _pair(row.output_tokens),
            "cost": None if row.cost is None else {"least": row.cost[0], "most": row.cost[1]},
        }


def _pair(number: Range) -> dict[str, int | None]:
    return {"least": number.least, "most": number.most}
