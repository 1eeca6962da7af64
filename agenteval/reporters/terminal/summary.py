"""The summary of the dimensions: each metric with its value, by agent, and what it is based on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agenteval.core.decision import Decision
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import Spread, p95_is_highest
from agenteval.core.scenario import Category
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import (
    NOTHING,
    free_line,
    heading,
    indented,
    number,
    percent,
    plain_table,
    same_or_each,
)
from agenteval.verdict.report import Dimension, Report

_RATES = {
    Category.CAPABILITY: {
        "tool_accuracy": "Tool call accuracy",
        "task_completion": "Task completion rate",
        "checks_passed": "All checks passed",
    },
    Category.EFFICIENCY: {"checks_passed": "All checks passed"},
    Category.ROBUSTNESS: {"robustness_pass": "Pass rate", "checks_passed": "All checks passed"},
}

_SPREADS = (
    ("steps", "mean", "Avg steps per task"),
    ("tool_calls", "mean", "Avg tool calls per task"),
    ("input_tokens", "mean", "Avg tokens in per task"),
    ("output_tokens", "mean", "Avg tokens out per task"),
    ("latency_ms", "mean", "Avg latency ms"),
    ("latency_ms", "p50", "p50 latency ms"),
    ("latency_ms", "p95", "p95 latency ms"),
)


_TITLE_LIMIT = 24


class _Value(NamedTuple):
    text: str
    n: int


class _Line(NamedTuple):
    """A line of the summary; a value per agent, ``None`` where it has none."""

    category: Category
    metric: str
    values: list[_Value | None]


def summary_table(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    """Dimension, metric, value and how many samples it is based on. Agents stand side by side if there is
    room for them, else below each other."""
    agents = list(report.dimensions)
    lines = [line for line in _summary_lines(report) if any(line.values)]
    if not lines:
        return
    if len(agents) > 1 and _width(agents, lines) > options.width:
        for index, agent in enumerate(agents):
            own = [line._replace(values=line.values[index : index + 1]) for line in lines]
            yield heading("Summary: ").append(one_line(agent, 60))
            yield indented(_table(["Value"], [line for line in own if any(line.values)]))
    else:
        yield heading("Summary")
        yield indented(_table(agents if len(agents) > 1 else ["Value"], lines))
    if any("≈" in value.text for line in lines for value in line.values if value):
        yield indented(Text("≈ estimated: not every reply reported its usage", style="dim"))
    yield Text()


def _table(titles: Sequence[str], lines: Sequence[_Line]) -> Table:
    table = plain_table()
    table.add_column("Dimension", no_wrap=True)
    table.add_column("Metric")
    for title in titles:
        table.add_column(free_line(title, _TITLE_LIMIT), justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    for category, metric, values in lines:
        cells = [value.text if value else NOTHING for value in values]
        known = [f"{value.n:,}" for value in values if value]
        table.add_row(category.capitalize(), metric, *cells, same_or_each(known))
    return table


def _width(agents: Sequence[str], lines: Sequence[_Line]) -> int:
    """Of the table with a column for each agent, about."""
    metric = max(len(line.metric) for line in lines)
    return 2 + 12 + metric + 2 + sum(max(9, min(_TITLE_LIMIT, len(agent)) + 2) for agent in agents) + 8


def _summary_lines(report: Report) -> Iterator[_Line]:
    by_agent = [{d.category: d for d in dimensions} for dimensions in report.dimensions.values()]
    present = {category for dimensions in by_agent for category in dimensions}
    # What it costs is the matter of efficiency; a run without that dimension shows it for the others.
    costly = {Category.EFFICIENCY} if Category.EFFICIENCY in present else present
    for category in Category:
        dimensions = [of_agent.get(category) for of_agent in by_agent]
        for name, metric in _RATES[category].items():
            if not _repeats(category, name, dimensions):
                yield _Line(category, metric, [_rate(d, name) for d in dimensions])
        if category in costly:
            estimates = _estimates(report, category)
            for name, statistic, metric in _SPREADS:
                pairs = zip(dimensions, estimates, strict=True)
                yield _Line(category, metric, [_spread(d, name, statistic, about=e) for d, e in pairs])


def _rate(dimension: Dimension | None, name: str) -> _Value | None:
    rate = dimension.rates.get(name) if dimension else None
    return _Value(percent(rate.value), rate.n) if rate else None


def _repeats(category: Category, name: str, dimensions: Sequence[Dimension | None]) -> bool:
    """Whether a row would say the pass rate of robustness a second time."""
    return (
        category is Category.ROBUSTNESS
        and name == "checks_passed"
        and all(d is None or d.rates.get("robustness_pass") == d.rates.get(name) for d in dimensions)
    )


def _spread(dimension: Dimension | None, name: str, statistic: str, *, about: str = "") -> _Value | None:
    if dimension is None or not dimension.spreads:
        return None
    spread: Spread | None = dimension.spreads.get(name)
    if spread is None:
        return _Value(NOTHING, 0)
    is_token = name.endswith("_tokens")
    value = getattr(spread, statistic)
    if statistic == "p95" and p95_is_highest(spread.n):
        about += "max "
    text = number(round(value) if is_token else value)
    return _Value(about + text if is_token else text, spread.n)


def _estimates(report: Report, category: Category) -> list[str]:
    return [estimates_of(report, category, agent) for agent in report.dimensions]


def estimates_of(report: Report, category: Category, agent: str) -> str:
    """The sign of an estimate, if any tokens of the agent in that dimension were not reported."""
    is_estimated = any(
        sample.trajectory.usage.estimated
        for scenario in report.scenarios
        if scenario.agent == agent and scenario.scenario.category is category
        for sample in scenario.samples
    )
    return "≈" if is_estimated else ""
