"""Two runs compared, for programs: ``RunComparison`` as JSON."""

from __future__ import annotations

from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results.document import readable
from agenteval.verdict.comparison import RunComparison


def render(comparison: RunComparison, options: ReportOptions) -> str:
    """Every field of the comparison, documented in ``docs/comparing.md``."""
    return readable(comparison.model_dump_json(indent=2))
