"""Two runs compared as JSON for programs: the fields of ``RunComparison``."""

from __future__ import annotations

from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results.document import readable
from agenteval.verdict.comparison import RunComparison


def render(comparison: RunComparison, options: ReportOptions) -> str:
    """Render every field of the comparison as JSON. ``docs/comparing.md`` documents the fields."""
    return readable(comparison.model_dump_json(indent=2))
