"""Render two runs compared as Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.safe_text import escape_markdown
from agenteval.reporters.markdown.sections import section_to_markdown
from agenteval.reporters.markdown.table import FULL_EXTENT, MARKS, ReportExtent
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.comparison import VERDICT_WORDS, sections, verdict_line
from agenteval.verdict.comparison import RunComparison

_FEW = ReportExtent(rows=100, failures=100, characters=300_000)


def render(comparison: RunComparison, options: ReportOptions) -> str:
    return "\n\n".join(_parts(comparison, options)) + "\n"


def _parts(comparison: RunComparison, options: ReportOptions) -> Iterator[str]:
    yield f"# {MARKS[comparison.verdict]} {VERDICT_WORDS[comparison.verdict].capitalize()}"
    yield escape_markdown(f"{verdict_line(comparison)}.")
    for section in sections(comparison):
        yield from section_to_markdown(section, FULL_EXTENT if options.verbose else _FEW)
