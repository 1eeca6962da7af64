"""The agents of one run beside each other, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from agenteval.core.decision import Decision
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import free, heading, indented, mark
from agenteval.reporters.terminal.fitting import FittingTable
from agenteval.reporters.words.agents import columns, rows, sentences
from agenteval.verdict.report import Report
from agenteval.verdict.side_by_side import side_by_side


def agents_compared(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    both = side_by_side(report, decision)
    if both is None:
        return
    yield heading("Agents compared")
    lines = ((mark(sign) if sign else Text(), *map(Text, cells)) for sign, cells in rows(both))
    yield indented(FittingTable(("", *columns(both)), lines, head=3))
    for sentence in sentences(both):
        yield indented(free(sentence))
    yield Text()
