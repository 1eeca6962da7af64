"""Show a terminal table for each dimension, with a row for each scenario and agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from agenteval.core.decision import Decision
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import Category
from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import (
    NARROW,
    NO_VALUE,
    clean_line,
    heading,
    indented,
    mark,
    not_shown,
    number,
    percent,
    plain_table,
    tools_called,
    yes_no,
)
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import NEVER_RAN, scenario_decision
from agenteval.reporters.words.row_groups import fold_rows
from agenteval.verdict.report import Report

_NAME_LIMIT = 200
_GAP = 2
_LEAST = 12


class ScenarioRow(NamedTuple):
    """A scenario with one agent, and the decision on the scenario."""

    scenario: ScenarioReport
    verdict: Verdict
    decision: Decision

    def deciding_sample(self) -> SampleReport | None:
        """Return the sample to show when there is room for only one sample: the first sample that did not
        pass, or the first sample if all passed."""
        samples = self.scenario.samples
        return next((s for s in samples if self.sample_verdict(s) is not Verdict.PASSED), None) or (
            samples[0] if samples else None
        )

    def sample_verdict(self, sample: SampleReport) -> Verdict:
        return self.decision.samples.get(sample.key, NEVER_RAN).verdict


class _TableColumn(NamedTuple):
    title: str
    cell: Callable[[ScenarioRow], str | Text]
    is_number: bool = False
    is_flexible: bool = False
    """True for the columns that share the width left by the other columns. They are dropped if there is too
    little room."""


def dimension_tables(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield a table for each dimension of the run. All data rows of a scenario are combined into one table
    row."""
    report, decision = fold_rows(facts.report, facts.decision)
    for category in Category:
        rows = [row for row in all_rows(report, decision) if row.scenario.scenario.category is category]
        if rows:
            yield heading(category.capitalize())
            yield from _dimension(category, rows, report, options)
            yield Text()


def all_rows(report: Report, decision: Decision) -> list[ScenarioRow]:
    return [
        ScenarioRow(scenario, scenario_decision(decision, scenario).verdict, decision)
        for scenario in _side_by_side(report.scenarios)
    ]


def _side_by_side(scenarios: Sequence[ScenarioReport]) -> list[ScenarioReport]:
    """Sort the scenarios so that the agents of each scenario are next to each other. The order of the
    scenarios is preserved."""
    first = {s.scenario.id: index for index, s in reversed(list(enumerate(scenarios)))}
    return sorted(scenarios, key=lambda s: first[s.scenario.id])


def _dimension(
    category: Category, rows: Sequence[ScenarioRow], report: Report, options: ReportOptions
) -> Iterator[RenderableType]:
    columns = _columns(category, rows, agents=len(report.dimensions), width=options.width)
    yield from map(indented, _table(rows, columns, options.width))


def _table(
    rows: Sequence[ScenarioRow], columns: Sequence[_TableColumn], width: int
) -> Iterator[RenderableType]:
    """Yield a table that fits the width. The rich library would narrow every column; this function narrows
    the flexible columns first and then drops the last columns."""
    cells = {column: [_as_text(column.cell(row)) for row in rows] for column in columns}
    names = [clean_line(row.scenario.scenario.id, _NAME_LIMIT) for row in rows]
    natural = max(name.cell_len for name in [*names, Text("scenario")])
    name_width = min(natural, max(12, width * 2 // 5))
    shown, widths = _fitting(cells, width - (1 + _GAP) - (name_width + _GAP) - _GAP)
    table = plain_table()
    table.add_column("", width=1)
    table.add_column("scenario", overflow="fold", width=name_width)
    for column in shown:
        table.add_column(
            column.title,
            justify="right" if column.is_number else "left",
            no_wrap=True,
            overflow="ellipsis",
            max_width=widths.get(column),
        )
    for index, (row, name) in enumerate(zip(rows, names, strict=True)):
        table.add_row(mark(row.verdict), name, *(cells[column][index] for column in shown))
    yield table
    if left := [column.title for column in columns if column not in shown]:
        yield not_shown(left)


def _fitting(
    cells: Mapping[_TableColumn, Sequence[Text]], width: int
) -> tuple[list[_TableColumn], dict[_TableColumn, int]]:
    """Return the columns that fit, and the width of each flexible column among them."""
    fixed = [column for column in cells if not column.is_flexible]
    while (room := width - sum(_natural(c, cells[c]) + _GAP for c in fixed)) < 0 and len(fixed) > 1:
        fixed.pop()
    flexible = [column for column in cells if column.is_flexible]
    while flexible and room < len(flexible) * (_LEAST + _GAP) - _GAP:
        flexible.pop()
    widths: dict[_TableColumn, int] = {}
    for left, column in zip(range(len(flexible), 0, -1), flexible, strict=True):
        widths[column] = min(_natural(column, cells[column]), (room - (left - 1) * _GAP) // left)
        room -= widths[column] + _GAP
    return [column for column in cells if column in fixed or column in widths], widths


def _as_text(cell: str | Text) -> Text:
    return Text(cell) if isinstance(cell, str) else cell


def _natural(column: _TableColumn, cells: Sequence[Text]) -> int:
    return max(len(column.title), *(cell.cell_len for cell in cells))


def _columns(
    category: Category, rows: Sequence[ScenarioRow], *, agents: int, width: int
) -> list[_TableColumn]:
    columns = (
        [_TableColumn("agent", lambda row: clean_line(row.scenario.agent, max(8, width // 4)))]
        if agents > 1
        else []
    )
    if any(len(row.scenario.samples) + len(row.scenario.missing) > 1 for row in rows):
        columns.append(_TableColumn("passed", _samples_passed, is_number=True))
    category_columns = {
        Category.CAPABILITY: _capability,
        Category.EFFICIENCY: _efficiency,
        Category.ROBUSTNESS: _robustness,
    }[category](width, _note_column(rows))
    return columns + category_columns


def _capability(width: int, note: Sequence[_TableColumn]) -> list[_TableColumn]:
    accuracy, output = ("acc.", "ok") if width < NARROW else ("tool accuracy", "output ok")
    return [
        *_tools_column(),
        _TableColumn(accuracy, lambda row: _accuracy(row), is_number=True),
        _TableColumn(output, lambda row: yes_no(row.scenario.aggregates.get("output_correct"))),
        _TableColumn("checks", _checks, is_number=True),
        *note,
    ]


def _efficiency(width: int, note: Sequence[_TableColumn]) -> list[_TableColumn]:
    return [
        *_tools_column(),
        _TableColumn("steps", lambda row: _mean(row, lambda s: s.trajectory.steps), is_number=True),
        _TableColumn("calls", lambda row: _mean(row, lambda s: len(s.trajectory.tool_calls)), is_number=True),
        _TableColumn("ms" if width < NARROW else "latency ms", _latency, is_number=True),
        _TableColumn("tokens", lambda row: _tokens(row, "tokens"), is_number=True),
        _TableColumn("tokens in", lambda row: _tokens(row, "input_tokens"), is_number=True),
        _TableColumn("out", lambda row: _tokens(row, "output_tokens"), is_number=True),
        *note,
    ]


def _robustness(_width: int, note: Sequence[_TableColumn]) -> list[_TableColumn]:
    return [
        _TableColumn("pass", lambda row: yes_no(row.scenario.aggregates.get("robustness_pass"))),
        *note,
        _TableColumn("answer or reason", _answer, is_flexible=True),
    ]


def _tools_column() -> list[_TableColumn]:
    return [_TableColumn("tools called", _tools, is_flexible=True)]


def _note_column(rows: Sequence[ScenarioRow]) -> list[_TableColumn]:
    """Return the column for the notes of the scenarios. It is left out if no scenario has one."""
    has_note = any((row.scenario.scenario.note or "").strip() for row in rows)
    return [_TableColumn("note", _note, is_flexible=True)] if has_note else []


def _note(row: ScenarioRow) -> Text:
    return clean_line(row.scenario.scenario.note or "", _NAME_LIMIT)


def _samples_passed(row: ScenarioRow) -> str:
    samples = row.scenario.samples
    passed = sum(row.sample_verdict(sample) is Verdict.PASSED for sample in samples)
    return f"{passed}/{len(samples) + len(row.scenario.missing)}"


def _tools(row: ScenarioRow) -> Text:
    sample = row.deciding_sample()
    return tools_called(call.name for call in sample.trajectory.tool_calls) if sample else Text(NO_VALUE)


def _accuracy(row: ScenarioRow) -> str:
    rate = row.scenario.aggregates.get("tool_accuracy")
    return percent(rate.value, digits=0) if rate else NO_VALUE


def _checks(row: ScenarioRow) -> str:
    checks = [check for sample in row.scenario.samples for check in sample.all_checks]
    return f"{sum(check.passed is True for check in checks)}/{len(checks)}" if checks else NO_VALUE


def _ended_well(row: ScenarioRow) -> list[SampleReport]:
    """Return the samples with meaningful measurements, excluding samples that were interrupted by a fault."""
    return [s for s in row.scenario.samples if s.stop is not None and s.stop.fault is None]


def _mean(row: ScenarioRow, measure: Callable[[SampleReport], float]) -> str:
    values = [measure(sample) for sample in _ended_well(row)]
    return number(sum(values) / len(values)) if values else NO_VALUE


def _latency(row: ScenarioRow) -> str:
    return _mean(row, lambda sample: sample.trajectory.latency_ms)


def _tokens(row: ScenarioRow, side: str) -> str:
    usages = [sample.trajectory.usage for sample in _ended_well(row)]
    reported = [usage for usage in usages if usage.tokens]
    if not reported or (side != "tokens" and any(usage.unsplit for usage in reported)):
        return NO_VALUE
    about = "≈" if any(usage.estimated for usage in reported) else ""
    return about + number(sum(getattr(usage, side) for usage in reported) / len(reported))


def _answer(row: ScenarioRow) -> Text:
    """Return the reason why the scenario did not pass. If it passed, return the beginning of the answer."""
    sample = row.deciding_sample()
    if sample is None:
        return Text("did not run", style="dim")
    if row.verdict is not Verdict.PASSED:
        return clean_line(_first_reason(row, sample), _NAME_LIMIT)
    answers = [turn.turn.answer for turn in sample.in_full.turns]
    return clean_line(answers[-1] if answers else "", _NAME_LIMIT, "dim")


def _first_reason(row: ScenarioRow, sample: SampleReport) -> str:
    decided = row.decision.samples.get(sample.key, NEVER_RAN)
    of_scenario = scenario_decision(row.decision, row.scenario)
    violations = (*decided.violations, *of_scenario.violations)
    if violations:
        return violations[0].detail
    return sample.stop.detail if sample.stop else "did not finish"
