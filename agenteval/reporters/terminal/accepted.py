"""Accepted failures, told so that nobody overlooks them; with ``verbose``, what would accept the others."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from agenteval.core.decision import Decision
from agenteval.core.plurals import plural
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import UNDECIDED, free, heading, indented, unbroken
from agenteval.reporters.words.accepted import accepted_count, accepted_lines, to_accept
from agenteval.verdict.report import Report


def accepted(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    lines = accepted_lines(decision)
    if lines:
        count = accepted_count(decision)
        yield heading(f"{plural(count, 'accepted failure')}")
        for line in lines:
            yield indented(free(line, UNDECIDED))
        yield Text()
    entries = to_accept(report, decision)
    if entries:
        yield heading("To accept a failure for a while, add its entry to the accept list")
        yield from (unbroken(f"    {line}") for line in entries.split("\n"))
        yield Text()
