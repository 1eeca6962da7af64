"""Show the history of a suite in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.console import RenderableType

from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.history import sections
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.terminal.sections import render_section
from agenteval.verdict.history import RunHistory


def render(history: RunHistory, options: ReportOptions) -> str:
    """Render the history as text that ends with a newline. Every run is shown, because the number of runs was
    chosen on the command line."""
    return render_parts(_parts(history, replace(options, verbose=True)), options)


def _parts(history: RunHistory, options: ReportOptions) -> Iterator[RenderableType]:
    for section in sections(history):
        yield from render_section(section, options)
