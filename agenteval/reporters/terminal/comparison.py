"""Two runs compared, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from agenteval.core.safe_text import one_line
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import UNDECIDED, free, heading, indented, mark, style_of
from agenteval.reporters.terminal.fitting import FittingTable
from agenteval.reporters.terminal.screen import painted
from agenteval.reporters.words.comparison import (
    APART_COLUMNS,
    FAILURE_COLUMNS,
    MARKS,
    MEAN_COLUMNS,
    SCENARIO_COLUMNS,
    WORDS,
    apart_cells,
    apart_counts,
    counts,
    failure_cells,
    left_out_lines,
    listed_apart,
    mean_cells,
    mean_line,
    scenario_cells,
    verdict_line,
)
from agenteval.verdict.comparison import AgentComparison, RunComparison
from agenteval.verdict.statistics import Change

MOST_ROWS = 30
"""Of each table, unless the report is to be verbose."""


def render(comparison: RunComparison, options: ReportOptions) -> str:
    """The whole comparison as text, ending in a newline. Colours only if ``options.color``."""
    return painted(_parts(comparison, options), options)


def _parts(comparison: RunComparison, options: ReportOptions) -> Iterator[RenderableType]:
    yield heading(f"{one_line(comparison.after, 60)} against {one_line(comparison.before, 60)}")
    for before, after in comparison.renamed:
        yield indented(free(f"the agent was '{one_line(before, 60)}' and is now '{one_line(after, 60)}'"))
    for text in left_out_lines(comparison):
        yield indented(free(f"left out: {text}", UNDECIDED))
    yield Text()
    for agent in comparison.agents:
        if len(comparison.agents) > 1:
            yield heading(f"Agent {one_line(agent.after, 60)}")
        yield from _agent(agent, comparison.margin, options)
    rows = [list(map(Text, apart_cells(each, comparison))) for each in listed_apart(comparison)]
    if rows:
        yield Text()
        yield from _table(f"Not compared: {apart_counts(comparison)}", APART_COLUMNS, rows, options)
    line = Text(f"{WORDS[comparison.verdict]}: ", style=f"bold {style_of(comparison.verdict)}")
    yield line.append(verdict_line(comparison), style="not bold default")


def _agent(agent: AgentComparison, margin: float, options: ReportOptions) -> Iterator[RenderableType]:
    rows = [[_sign(scenario.change), *map(Text, scenario_cells(scenario))] for scenario in agent.scenarios]
    yield from _table(f"Scenarios: {counts(agent)}", ("", *SCENARIO_COLUMNS), rows, options)
    scores = [list(map(Text, mean_cells(change))) for change in agent.scores]
    yield from _table("Scores", MEAN_COLUMNS, scores, options)
    effort = [list(map(Text, mean_cells(change))) for change in agent.effort]
    yield from _table("Effort of the agent, per conversation", MEAN_COLUMNS, effort, options)
    failures = [list(map(Text, failure_cells(failure))) for failure in agent.failures]
    yield from _table("Failures", FAILURE_COLUMNS, failures, options)
    yield free(mean_line(agent, margin))


def _sign(change: Change) -> Text:
    verdict = MARKS[change]
    return mark(verdict) if verdict else Text("=", style="dim")


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Text]], options: ReportOptions
) -> Iterator[RenderableType]:
    if not rows:
        return
    yield heading(title)
    shown = rows if options.verbose else rows[:MOST_ROWS]
    yield indented(FittingTable(columns, shown, head=1 if columns[0] or columns == MEAN_COLUMNS else 2))
    if len(rows) > len(shown):
        yield indented(Text(f"… and {len(rows) - len(shown):,} more; --verbose lists them", style="dim"))
    yield Text()
