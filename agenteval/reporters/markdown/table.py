"""A table in Markdown, and how much of a report is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agenteval.core.decision import REPORTED, Decision
from agenteval.core.plurals import plural
from agenteval.core.safe_text import brief, escape_markdown
from agenteval.core.score import Verdict

MARKS = {Verdict.PASSED: "✅", Verdict.INCONCLUSIVE: "⚠️", Verdict.FAILED: "❌"}
CELL = 160
"""Characters of a cell."""


def verdict_sign(decision: Decision) -> str:
    """Of the verdict; of what nothing was to pass, none that reads as green."""
    return "📋" if decision.verdict_label == REPORTED else MARKS[decision.verdict]


class ReportExtent(NamedTuple):
    """How much is shown: rows of a table, failures in full, characters of all failures together.

    A row or a failure that is left out is counted in words."""

    rows: int
    failures: int
    characters: int
    passed: bool = True


FULL_EXTENT = ReportExtent(rows=100_000, failures=100_000, characters=100_000_000)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """``head`` must be Markdown already; the cells of ``rows`` are any text."""
    lines = [head, ["---"] * len(head)]
    cells = [f"| {' | '.join(line)} |" for line in lines]
    cells += [f"| {' | '.join(escape_markdown(brief(cell, CELL)) for cell in row)} |" for row in rows]
    return "\n".join(cells)


def more_line(count: int, noun: str) -> str:
    return f"… and {plural(count, noun)} more." if count > 0 else ""
