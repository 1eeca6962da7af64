"""Show scores: a table for all scenarios, and the scores of a single conversation for each turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agenteval.core.decision import Decision
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import UNDECIDED_STYLE, clean_text, heading, indented, mark
from agenteval.reporters.terminal.tables import ScenarioRow, all_rows
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import reason_suffix
from agenteval.reporters.words.judge import classify_missing_score, describe_missing_score
from agenteval.reporters.words.row_groups import fold_rows
from agenteval.reporters.words.score_cells import (
    NOT_APPLICABLE,
    NOT_JUDGED,
    JudgedPlace,
    ScoreCell,
    ScoreColumn,
    is_scored,
    judged_places,
    legend,
    scenario_cells,
    score_text,
    shortened_names,
    threshold_marks,
)
from agenteval.verdict.report import Report

_GAP = 2
_INDENT = 2
_MARK = 3
_LEAST_NAME = 12
_COMFORTABLE_NAME = 24
_LONGEST = 2000
"""The maximum number of characters shown for each reason, and for its evidence."""

# ── the table ────────────────────────────────────────────────────────────────────────────────────


class _ScoreLine(NamedTuple):
    """A scenario and its cells, in the order of the columns."""

    row: ScenarioRow
    name: str
    cells: tuple[ScoreCell, ...]


def score_table(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield a table with a row for each scenario and agent, and a column for each judged metric. Columns that
    do not fit are shown in another table below, which repeats the names."""
    report, decision = fold_rows(facts.report, facts.decision)
    columns = facts.columns
    lines = _lines(all_rows(report, decision), columns, report, decision)
    used = [n for n, _ in enumerate(columns) if any(line.cells[n].text != NOT_APPLICABLE for line in lines)]
    if not used:
        return
    lines = [line._replace(cells=tuple(line.cells[n] for n in used)) for line in lines]
    table = _ScoreTable([columns[n] for n in used], lines, options.width)
    scored = any(is_scored(cell) for line in lines for cell in line.cells)
    yield heading("Scores (uncalibrated)" if scored else "Scores")
    yield indented(Text("\n").join(table.render()))
    yield indented(Text("; ".join(_legend(table, report)), style="dim"))
    yield Text()


def _lines(
    rows: Sequence[ScenarioRow], columns: Sequence[ScoreColumn], report: Report, decision: Decision
) -> list[_ScoreLine]:
    marks = threshold_marks(decision)
    several = report.has_several_agents
    return [
        _ScoreLine(
            row,
            _name(row.scenario, several_agents=several),
            scenario_cells(row.scenario, columns, report, marks),
        )
        for row in rows
    ]


def _name(scenario: ScenarioReport, *, several_agents: bool) -> str:
    name = one_line(scenario.scenario.id, 200)
    return f"{name} · {one_line(scenario.agent, 60)}" if several_agents else name


def _legend(table: _ScoreTable, report: Report) -> Iterator[str]:
    cells = [cell for line in table.lines for cell in line.cells]
    yield from legend(cells)
    if report.plan.suite.no_judge and any(cell.text == NOT_JUDGED for cell in cells):
        yield "not judged: --no-judge"
    for short, full in shortened_names(table.columns):
        yield f"{short}: {full}"


class _ScoreTable:
    """A table that is split into as many blocks as the width requires. Tables from the rich library do not
    allow text to span columns, and they narrow figures until the figures become unreadable."""

    def __init__(self, columns: Sequence[ScoreColumn], lines: Sequence[_ScoreLine], width: int) -> None:
        self.columns = columns
        self.lines = lines
        self._values = [max((cell_len(_value(line, n)) for line in lines), default=0) for n in self._all]
        self._suffixes = [max((cell_len(_suffix(line, n)) for line in lines), default=0) for n in self._all]
        room = max(1, width - _INDENT - _MARK)
        natural = max(cell_len(name) for name in ["scenario", *(line.name for line in lines)])
        for least in (_COMFORTABLE_NAME, _LEAST_NAME):
            left = room - self._total(self._widths(self._all)) - _GAP
            self._name_width = min(natural, max(least, left))
            if self._name_width <= left:
                break
        self._blocks = self._fitting(room - self._name_width - _GAP)

    @property
    def _all(self) -> range:
        return range(len(self.columns))

    def _widths(self, block: Sequence[int]) -> dict[int, int]:
        """Return the column widths in a block, with enough room to print ``not judged`` across adjacent
        columns."""
        widths = {n: max(cell_len(self.columns[n].short), self._values[n] + self._suffixes[n]) for n in block}
        for line in self.lines:
            for judged, run in groupby(block, key=lambda n, line=line: _is_judged(line, n)):  # type: ignore[misc]
                together = list(run)
                if not judged:
                    widths[together[-1]] += max(
                        0, len(NOT_JUDGED) - self._total({n: widths[n] for n in together})
                    )
        return widths

    def _total(self, widths: dict[int, int]) -> int:
        return sum(widths.values()) + _GAP * (len(widths) - 1)

    def _fitting(self, room: int) -> list[list[int]]:
        blocks: list[list[int]] = []
        for n in self._all:
            if blocks and self._total(self._widths([*blocks[-1], n])) <= room:
                blocks[-1].append(n)
            else:
                blocks.append([n])
        return blocks

    def render(self) -> Iterator[Text]:
        for index, block in enumerate(self._blocks):
            widths = self._widths(block)
            if index:
                yield Text()
            head = " " * _MARK + _padded("scenario", self._name_width)
            titles = (_padded(self.columns[n].short, widths[n], right=True) for n in block)
            yield Text((head + "".join(" " * _GAP + title for title in titles)).rstrip(), style="dim")
            for line in self.lines:
                yield from self._row(line, block, widths)

    def _row(self, line: _ScoreLine, block: Sequence[int], widths: dict[int, int]) -> Iterator[Text]:
        first, *rest = chop_cells(line.name, self._name_width) or [""]
        text = Text.assemble(mark(line.row.verdict), "  ", _padded(first, self._name_width))
        for judged, run in groupby(block, key=lambda n: _is_judged(line, n)):
            together = list(run)
            if judged:
                for n in together:
                    text.append(" " * _GAP).append_text(self._cell(line, n, widths[n]))
            else:
                room = self._total({n: widths[n] for n in together})
                text.append(" " * _GAP).append(NOT_JUDGED.center(room), style="dim")
        text.rstrip()
        yield text
        yield from (Text(" " * _MARK + part) for part in rest)

    def _cell(self, line: _ScoreLine, n: int, width: int) -> Text:
        """Format a cell as a right-aligned figure followed by its symbols, which are aligned separately."""
        cell = line.cells[n]
        figure = _padded(_value(line, n), width - self._suffixes[n], right=True)
        text = Text(figure, style="dim" if cell.text == NOT_APPLICABLE else "")
        text.append("ˢ" if cell.scripted else "")
        if cell.verdict:
            text.append_text(mark(cell.verdict))
        text.append(f"!{cell.missing:,}" if cell.missing else "", style=UNDECIDED_STYLE)
        text.append(f"~{cell.open:,}" if cell.open else "", style=UNDECIDED_STYLE)
        return text.append(" " * max(0, width - text.cell_len))


def _is_judged(line: _ScoreLine, n: int) -> bool:
    """Check whether the cell has a value of its own to show. An undecided threshold is shown in the section
    on gates."""
    return line.cells[n].text != NOT_JUDGED


def _value(line: _ScoreLine, n: int) -> str:
    return line.cells[n].text if _is_judged(line, n) else ""


def _suffix(line: _ScoreLine, n: int) -> str:
    cell = line.cells[n]
    if not _is_judged(line, n):
        return ""
    return (
        ("ˢ" if cell.scripted else "")
        + ("✓" if cell.verdict else "")
        + (f"!{cell.missing:,}" if cell.missing else "")
        + (f"~{cell.open:,}" if cell.open else "")
    )


def _padded(text: str, width: int, *, right: bool = False) -> str:
    blanks = " " * max(0, width - cell_len(text))
    return blanks + text if right else text + blanks


# ── one conversation ─────────────────────────────────────────────────────────────────────────────


def conversation_scores(sample: SampleReport, columns: Sequence[ScoreColumn]) -> RenderableType | None:
    """Return the scores of a conversation with their reasons, turn by turn, or ``None`` if nothing was
    judged."""
    places = list(judged_places(sample))
    if not places:
        return None
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for place in places:
        name = "whole" if place.turn is None else f"turn {place.turn + 1}"
        for line in _place_lines(place, columns):
            table.add_row(name, line)
            name = ""
    is_scored = any(place.scores for place in places)
    return Group(Text("scores (uncalibrated)" if is_scored else "scores", style="dim"), table)


def _place_lines(place: JudgedPlace, columns: Sequence[ScoreColumn]) -> Iterator[Text]:
    order = [column.name for column in columns]
    missing = dict.fromkeys((failure.metric, classify_missing_score(failure)) for failure in place.failures)
    parts = [f"{one_line(name, 40)}: {describe_missing_score(kind)}" for name, kind in missing]
    yield from [clean_text(" · ".join(parts))] if parts else []
    for score in sorted(place.scores, key=lambda score: order.index(score.metric)):
        why = reason_suffix(score.reason, score.evidence, limit=_LONGEST)
        yield clean_text(
            f"{one_line(score.metric, 60)} {score_text(score)}{why or ': no reason given'}", "dim"
        )
