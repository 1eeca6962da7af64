"""Two runs compared, for a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.safe_text import markdown
from agenteval.reporters.markdown.sections import printed
from agenteval.reporters.markdown.table import ALL, MARKS, Extent
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.comparison import WORDS, sections, verdict_line
from agenteval.verdict.comparison import RunComparison

_FEW = Extent(rows=100, failures=100, characters=300_000)


def render(comparison: RunComparison, options: ReportOptions) -> str:
    return "\n\n".join(_parts(comparison, options)) + "\n"


def _parts(comparison: RunComparison, options: ReportOptions) -> Iterator[str]:
    yield f"# {MARKS[comparison.verdict]} {WORDS[comparison.verdict].capitalize()}"
    yield markdown(f"{verdict_line(comparison)}.")
    for section in sections(comparison):
        yield from printed(section, ALL if options.verbose else _FEW)
