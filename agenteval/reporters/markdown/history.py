"""Render the history of a suite as Markdown, for example for a step summary or a wiki."""

from __future__ import annotations

from agenteval.reporters.markdown.sections import section_to_markdown
from agenteval.reporters.markdown.table import FULL_EXTENT
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.history import sections
from agenteval.verdict.history import RunHistory


def render(history: RunHistory, options: ReportOptions) -> str:
    """Render the history as a Markdown document."""
    parts = (text for section in sections(history) for text in section_to_markdown(section, FULL_EXTENT))
    return "\n\n".join(parts) + "\n"
