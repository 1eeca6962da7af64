"""Two runs compared, for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.core.safe_text import markdown, one_line
from agenteval.reporters.markdown.table import MARKS as SIGNS
from agenteval.reporters.markdown.table import more, table
from agenteval.reporters.options import ReportOptions
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

MOST_ROWS = 100


def render(comparison: RunComparison, options: ReportOptions) -> str:
    return "\n\n".join(_parts(comparison, options)) + "\n"


def _parts(comparison: RunComparison, options: ReportOptions) -> Iterator[str]:
    sign, word = SIGNS[comparison.verdict], WORDS[comparison.verdict]
    yield f"# {sign} {word.capitalize()}"
    yield markdown(f"{verdict_line(comparison)}.")
    yield f"{_name(comparison.after)} against {_name(comparison.before)}."
    for before, after in comparison.renamed:
        yield f"The agent was {_name(before)} and is now {_name(after)}."
    if left_out := left_out_lines(comparison):
        items = [f"- {markdown(one_line(text, 300))}" for text in left_out]
        yield "\n".join(["Left out:", "", *items])
    for agent in comparison.agents:
        yield from _agent(agent, comparison, options)
    rows = [apart_cells(each, comparison) for each in listed_apart(comparison)]
    yield from _table(f"Not compared: {apart_counts(comparison)}", APART_COLUMNS, rows, options)


def _name(text: str) -> str:
    return markdown(one_line(text, 80))


def _agent(agent: AgentComparison, comparison: RunComparison, options: ReportOptions) -> Iterator[str]:
    if len(comparison.agents) > 1:
        yield f"## Agent {_name(agent.after)}"
    yield markdown(f"{mean_line(agent, comparison.margin)}.")
    rows = [(_sign(scenario.change), *scenario_cells(scenario)) for scenario in agent.scenarios]
    yield from _table(f"Scenarios: {counts(agent)}", ("", *SCENARIO_COLUMNS), rows, options)
    yield from _table("Scores", MEAN_COLUMNS, list(map(mean_cells, agent.scores)), options)
    yield from _table("Effort of the agent", MEAN_COLUMNS, list(map(mean_cells, agent.effort)), options)
    yield from _table("Failures", FAILURE_COLUMNS, list(map(failure_cells, agent.failures)), options)


def _sign(change: Change) -> str:
    verdict = MARKS[change]
    return SIGNS[verdict] if verdict else ""


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], options: ReportOptions
) -> Iterator[str]:
    if not rows:
        return
    shown = rows if options.verbose else rows[:MOST_ROWS]
    yield f"### {title}"
    yield table(columns, shown)
    if left_out := more(len(rows) - len(shown), "row"):
        yield left_out
