"""Show the gates of a run, fitted to the width of the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections import gates as sections
from agenteval.reporters.sections.section import Section
from agenteval.reporters.terminal.cells import plain_table, style_of
from agenteval.reporters.terminal.sections import render_section
from agenteval.reporters.words.facts import Facts

WIDE = 70
"""The terminal width below which each gate is shown on several lines instead of in a table row."""
VERY_WIDE = 110
"""The minimum terminal width at which all information about a gate fits in one row."""
_FIGURE_LIMIT = 16


def gates(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    if not (facts.decision.gates or facts.decision.ungated):
        return
    for section in sections.gates(facts):
        yield from render_section(section, options, _rows if options.width >= WIDE else _lines)


def _rows(section: Section, rows: Sequence[Sequence[Text]], options: ReportOptions) -> RenderableType:
    """Format the gates as a table. In a very wide terminal, the basis and the location of each rule are shown
    in separate columns."""
    wide = options.width >= VERY_WIDE
    table = plain_table()
    table.add_column("", width=1)
    table.add_column(section.columns[1], overflow="fold", ratio=None if wide else 1)
    for n in (2, 3):
        longest = max(len(row[n]) for row in rows)
        table.add_column(section.columns[n], overflow="fold", width=max(5, min(longest, _FIGURE_LIMIT)))
    for title in section.columns[4:] if wide else ():
        table.add_column(title, overflow="fold")
    verdicts = _verdicts(section)
    table.add_column("verdict", no_wrap=True, width=max(7, *map(len, verdicts)))
    for (sign, rule, value, bound, *details), verdict in zip(rows, verdicts, strict=True):
        name = rule if wide else _stacked(rule, details)
        table.add_row(
            sign, name, value, bound, *(details if wide else ()), Text(verdict, style=style_of(verdict))
        )
    return table


def _verdicts(section: Section) -> list[Verdict]:
    return [cell for cell, *_ in section.rows if isinstance(cell, Verdict)]


def _stacked(rule: Text, details: Sequence[Text]) -> Text:
    """Return the rule, with its basis and location on a line below."""
    below = Text("; ").join(filter(None, details))
    below.stylize("dim")
    return Text("\n").join([rule, below]) if below else rule


def _lines(section: Section, rows: Sequence[Sequence[Text]], options: ReportOptions) -> RenderableType:
    table = plain_table(show_header=False)
    table.add_column(width=1)
    table.add_column(overflow="fold")
    for (sign, rule, value, bound, *details), verdict in zip(rows, _verdicts(section), strict=True):
        below = "; ".join(part.plain for part in details if part)
        words = f"{rule}: {verdict}, value {value}, bound {bound}"
        table.add_row(sign, f"{words} ({below})" if below else words)
    return table
