"""Render the comparison of two runs (``diff``) as one HTML file."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.safe_text import one_line
from agenteval.reporters.html.document import View, make_page
from agenteval.reporters.html.markup import Markup, element
from agenteval.reporters.html.sections import MARKS, section_to_html
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.comparison import VERDICT_WORDS, sections, verdict_line
from agenteval.verdict.comparison import RunComparison


def render(comparison: RunComparison, options: ReportOptions) -> str:
    """Render the comparison of two runs as a page."""
    tables = tuple(section_to_html(section, options.root) for section in sections(comparison))
    title = f"{one_line(comparison.after, 60)} against {one_line(comparison.before, 60)}"
    return make_page(title, _header(comparison), [View("", "Comparison", tables)])


def _header(comparison: RunComparison) -> Iterator[Markup]:
    verdict = comparison.verdict
    word = element("span", f"{MARKS[verdict]} {VERDICT_WORDS[verdict]}", class_=f"verdict {verdict}")
    yield element("h1", word, f" {verdict_line(comparison)}")
