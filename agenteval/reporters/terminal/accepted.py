"""Accepted failures; with ``verbose``, what would accept the others."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.accepted import to_accept
from agenteval.reporters.terminal.cells import heading, unbroken
from agenteval.reporters.words.facts import Facts


def acceptable(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """What to paste to accept the failures of this run."""
    entries = to_accept(facts.report, facts.decision)
    if entries:
        yield heading("To accept a failure for a while, add its entry to the accept list")
        yield from (unbroken(f"    {line}") for line in entries.split("\n"))
        yield Text()
