"""Show the comparison of two runs in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.comparison import VERDICT_WORDS, sections, verdict_line
from agenteval.reporters.terminal.cells import style_of
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.terminal.sections import render_section
from agenteval.verdict.comparison import RunComparison


def render(comparison: RunComparison, options: ReportOptions) -> str:
    """Render the comparison as text that ends with a newline. Colors are used only if ``options.color`` is
    true."""
    return render_parts(_parts(comparison, options), options)


def _parts(comparison: RunComparison, options: ReportOptions) -> Iterator[RenderableType]:
    for section in sections(comparison):
        yield from render_section(section, options)
    line = Text(f"{VERDICT_WORDS[comparison.verdict]}: ", style=f"bold {style_of(comparison.verdict)}")
    yield line.append(verdict_line(comparison), style="not bold default")
