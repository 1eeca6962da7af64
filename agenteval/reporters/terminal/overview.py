"""Show the first lines of the screen: the size of the run, the outcome of each file, and a table of the
dimensions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rich import box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agenteval.core.decision import Decision, GateRow
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import ScenarioReport, p95_is_highest
from agenteval.core.scenario import Category
from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.gates import format_figures
from agenteval.reporters.sections.scenarios import estimates_of
from agenteval.reporters.terminal.cells import (
    LABEL,
    NO_VALUE,
    clean_line,
    labelled,
    mark,
    not_shown,
    number,
    percent,
    right_aligned,
    style_of,
    truncate,
)
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import NONE_PASSED, SAMPLE_GATES, SOME_FAILED
from agenteval.reporters.words.places import shown_place
from agenteval.reporters.words.run_line import judges_text, run_parts
from agenteval.reporters.words.selection import by_file
from agenteval.verdict.report import Dimension

MOST_FILES = 10

# ── what ran ─────────────────────────────────────────────────────────────────────────────────────


def head(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield the version, the agents, the size, the duration and the cost of the run, followed by the run id
    and the judges."""
    yield _wrap_parts(run_parts(facts), options.width, "bold")
    run_id = f"run {one_line(facts.report.run.run_id, 80)}"
    yield _wrap_parts((run_id, judges_text(facts.report)), options.width, "dim")


def _wrap_parts(parts: Iterable[str], width: int, style: str) -> Text:
    """Wrap the parts to as many lines as needed. All lines except the first are indented."""
    lines = [""]
    for part in filter(None, parts):
        longer = f"{lines[-1]} · {part}" if lines[-1].strip() else lines[-1] + part
        if cell_len(longer) <= width or not lines[-1].strip():
            lines[-1] = longer
        else:
            lines.append(f"  {part}")
    texts = [Text(line, style=style, no_wrap=True) for line in lines]
    for line in texts:
        line.truncate(width, overflow="ellipsis")
    return Text("\n").join(texts)


# ── how each file ended ──────────────────────────────────────────────────────────────────────────


class _FileOutcomes(NamedTuple):
    """A scenario file and the outcomes of its scenarios."""

    path: str
    ends: Counter[str]
    """The number of scenarios for each outcome."""

    @property
    def verdict(self) -> Verdict:
        bad = (verdict for verdict in (Verdict.FAILED, Verdict.INCONCLUSIVE) if self.ends[verdict.value])
        return next(bad, Verdict.PASSED)

    @property
    def words(self) -> str:
        """The outcomes in short form, such as ``2 of 6 failed, 1 undecided`` or ``23 passed``."""
        total = self.ends.total()
        found = [(self.ends[end], word) for end, word in _WORDS.items() if self.ends[end]]
        if not found:
            return f"{total:,} passed"
        (count, word), *rest = found
        return ", ".join([f"{count:,} of {total:,} {word}", *(f"{n:,} {word}" for n, word in rest)])


_WORDS = {
    Verdict.FAILED.value: "failed",
    Verdict.INCONCLUSIVE.value: "undecided",
    NONE_PASSED: "with no passing conversation",
    SOME_FAILED: "passed only some conversations",
}


def files(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield a line for each scenario file in which something did not pass, worst first, and a line with the
    number of remaining files."""
    if facts.decision.is_reported:
        return  # no scenario was expected to pass
    all_files = [
        _FileOutcomes(path, _ends(scenarios, facts))
        for path, scenarios in by_file(facts.report.scenarios).items()
    ]
    red = sorted((file for file in all_files if file.verdict is not Verdict.PASSED), key=_worst_first)
    for file in red[:MOST_FILES]:
        yield _file_line(file, shown_place(file.path, options.root) or "(no file)", options)
    if rest := red[MOST_FILES:]:
        yield _file_line(_merge_files(rest), plural(len(rest), "more file"), options)
    green = [file for file in all_files if file.verdict is Verdict.PASSED]
    if green:
        yield _file_line(_merge_files(green), _passed_files_name(green, options, is_rest=bool(red)), options)
    if all_files:
        yield Text()


def _ends(scenarios: Iterable[ScenarioReport], facts: Facts) -> Counter[str]:
    return Counter(facts.outcomes[each.scenario.id, each.agent] for each in scenarios)


def _merge_files(members: Sequence[_FileOutcomes]) -> _FileOutcomes:
    return _FileOutcomes("", sum((file.ends for file in members), Counter()))


def _worst_first(file: _FileOutcomes) -> tuple[int, int]:
    return -file.verdict.rank, -file.ends[file.verdict.value]


def _passed_files_name(green: Sequence[_FileOutcomes], options: ReportOptions, *, is_rest: bool) -> str:
    if len(green) == 1 and green[0].path:
        return shown_place(green[0].path, options.root)
    if len(green) == 1:
        return "1 more file" if is_rest else "(no file)"
    return f"{len(green):,} {'more ' if is_rest else ''}files"


def _file_line(file: _FileOutcomes, name: str, options: ReportOptions) -> Text:
    left = Text.assemble(mark(file.verdict), " ", clean_line(name, 200))
    right = Text(file.words, style="" if file.verdict is Verdict.PASSED else style_of(file.verdict))
    return right_aligned(left, right, options.width)


# ── the three dimensions ─────────────────────────────────────────────────────────────────────────


class _DimensionRow(NamedTuple):
    """The results for an agent in a dimension."""

    agent: str
    dimension: Dimension
    ends: Counter[str]
    about: str
    """The symbol that marks estimated token counts; empty if all token counts were reported."""


class _DimensionColumn(NamedTuple):
    """A table column. If there is not enough room, the last columns are dropped first."""

    wide: str
    """The title in a wide terminal."""
    short: str
    """The title in a narrow terminal."""
    cell: Callable[[_DimensionRow], str]


def _passed(row: _DimensionRow) -> str:
    return f"{row.ends[Verdict.PASSED.value]:,}/{row.ends.total():,}"


def _rate(name: str) -> Callable[[_DimensionRow], str]:
    def cell(row: _DimensionRow) -> str:
        rate = row.dimension.rates.get(name)
        return percent(rate.value) if rate else NO_VALUE

    return cell


def _spread(name: str, statistic: str) -> Callable[[_DimensionRow], str]:
    def cell(row: _DimensionRow) -> str:
        spread = row.dimension.spreads.get(name)
        return number(getattr(spread, statistic)) if spread else NO_VALUE

    return cell


def _tokens(row: _DimensionRow) -> str:
    spread = row.dimension.spreads.get("tokens")
    return f"{row.about}{number(round(spread.mean))}" if spread else NO_VALUE


def _p95_latency(row: _DimensionRow) -> str:
    """Return the 95th percentile (p95) of the latency. With only a few conversations, this is the maximum."""
    spread = row.dimension.spreads.get("latency_ms")
    text = _spread("latency_ms", "p95")(row)
    return f"max {text}" if spread and p95_is_highest(spread.n) else text


_COLUMNS = (
    _DimensionColumn("Passed", "Passed", _passed),
    _DimensionColumn("Tool calls", "Tools", _rate("tool_calls")),
    _DimensionColumn("Output", "Output", _rate("output")),
    _DimensionColumn("p50 ms", "p50 ms", _spread("latency_ms", "p50")),
    _DimensionColumn("p95 ms", "p95 ms", _p95_latency),
    _DimensionColumn("Avg steps", "Steps", _spread("steps", "mean")),
    _DimensionColumn("Avg tokens", "Tokens", _tokens),
    _DimensionColumn("Avg calls", "Calls", _spread("tool_calls", "mean")),
)
_PADDING = 3
"""The combined width of a column's padding and border."""


def dimensions(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield a table with a row for each dimension and agent: the pass rate, latency, steps, tokens and tool
    calls."""
    decision = facts.decision
    rows = [] if decision.is_reported else list(_rows(facts))
    if not rows:
        return
    limit = max(12, options.width // 3)
    names = [truncate(_name(row, several=facts.report.has_several_agents), limit) for row in rows]
    yield from _table(names, [[column.cell(row) for column in _COLUMNS] for row in rows], options.width)
    if decision.verdict is not Verdict.PASSED or decision.author_errors:
        yield Text()


def _table(names: Sequence[Text], cells: Sequence[Sequence[str]], width: int) -> Iterator[RenderableType]:
    """Yield a table with a row for each name. Columns in which every cell is empty are omitted."""
    used = [n for n in range(len(_COLUMNS)) if any(line[n] != NO_VALUE for line in cells)]
    room = width - 1 - max(len("Dimension"), *(name.cell_len for name in names)) - _PADDING
    shown, is_wide = _fitting(used, cells, room)
    table = Table(box=box.ROUNDED, header_style="bold", border_style="dim")
    table.add_column("Dimension", no_wrap=True)
    for n in shown:
        title = _COLUMNS[n].wide if is_wide else _COLUMNS[n].short
        table.add_column(title, justify="right", no_wrap=True)
    for name, line in zip(names, cells, strict=True):
        table.add_row(name, *(line[n] for n in shown))
    yield table
    if left := [_COLUMNS[n].wide for n in used if n not in shown]:
        yield not_shown(left)


def _fitting(used: Sequence[int], cells: Sequence[Sequence[str]], room: int) -> tuple[list[int], bool]:
    """Return the columns that fit, and whether they keep their full titles."""

    def width(columns: Sequence[int], *, wide: bool) -> int:
        titles = (_COLUMNS[n].wide if wide else _COLUMNS[n].short for n in columns)
        return sum(
            max(len(title), *(len(line[n]) for line in cells)) + _PADDING
            for n, title in zip(columns, titles, strict=True)
        )

    columns = list(used)
    if width(columns, wide=True) <= room:
        return columns, True
    while len(columns) > 1 and width(columns, wide=False) > room:
        columns.pop()
    return columns, False


def _rows(facts: Facts) -> Iterator[_DimensionRow]:
    report = facts.report
    by_place: dict[tuple[str, Category], list[ScenarioReport]] = {}
    for scenario in report.scenarios:
        by_place.setdefault((scenario.agent, scenario.scenario.category), []).append(scenario)
    for agent, measured in report.dimensions.items():
        for dimension in measured:
            ends = _ends(by_place[agent, dimension.category], facts)
            about = estimates_of(report, dimension.category, agent)
            yield _DimensionRow(agent, dimension, ends, about)


def _name(row: _DimensionRow, *, several: bool) -> str:
    name = row.dimension.category.capitalize()
    return f"{name} · {one_line(row.agent, 60)}" if several else name


# ── passing margins ──────────────────────────────────────────────────────────────────────────────


def passing_margins(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield the mean scores of a run that passed, and the gate that passed by the smallest margin."""
    decision = facts.decision
    if decision.verdict is not Verdict.PASSED or decision.author_errors or decision.is_reported:
        return
    scores = " · ".join(_means(facts))
    for label, text in (("scores", scores), ("gates", _gates(decision))):
        if text:
            yield labelled(label, truncate(text, options.width - LABEL))


def _means(facts: Facts) -> Iterator[str]:
    """Yield the mean of each metric across all scenarios, such as ``help 4.6`` or ``goal 7/8``."""
    scenarios = facts.report.scenarios
    for column in facts.columns:
        aggregates = [each.aggregates[column.name] for each in scenarios if column.name in each.aggregates]
        values = [(aggregate.value, aggregate.n) for aggregate in aggregates if aggregate.value is not None]
        count = sum(n for _, n in values)
        if not count:
            continue
        total = sum(value * n for value, n in values)
        yield f"{column.short} {f'{round(total)}/{count}' if column.is_rate else f'{total / count:.1f}'}"


def _distance(row: GateRow) -> float | None:
    """Return the distance between the value and its bound, as a fraction of the bound. Return ``None`` for a
    gate that only counts samples."""
    if (
        row.name in SAMPLE_GATES
        or not isinstance(row.value, float | int)
        or not isinstance(row.bound, float | int)
    ):
        return None
    return abs(row.value - row.bound) / abs(row.bound) if row.bound else None


def _gates(decision: Decision) -> str:
    """Return the number of passed rules, and the rule whose value is closest to its bound, such as ``10 rules
    passed; closest: thresholds.helpfulness 3.5, bound 3.5 (calls-per-day)``."""
    rows = [row for row in decision.gates if row.verdict is Verdict.PASSED]
    near = sorted((distance, n) for n, row in enumerate(rows) if (distance := _distance(row)) is not None)
    if not near:
        return f"{plural(len(rows), 'rule')} passed" if rows else ""
    row = rows[near[0][1]]
    value, bound = format_figures(row)
    place = f" ({one_line(row.scenario, 60)})" if row.scenario else ""
    closest = f"closest: {one_line(row.name, 60)} {value}, bound {bound}{place}"
    return f"{plural(len(rows), 'rule')} passed; {closest}"
