"""Render a table as Markdown, and define how much of a report is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agenteval.core.decision import REPORTED, Decision
from agenteval.core.plurals import plural
from agenteval.core.safe_text import escape_markdown, one_line_message
from agenteval.core.score import Verdict

MARKS = {Verdict.PASSED: "✅", Verdict.INCONCLUSIVE: "⚠️", Verdict.FAILED: "❌"}
CELL = 160
"""The number of characters shown of a cell."""


def verdict_sign(decision: Decision) -> str:
    """Return the sign of the verdict, or a neutral one if nothing was to pass."""
    return "📋" if decision.verdict_label == REPORTED else MARKS[decision.verdict]


class ReportExtent(NamedTuple):
    """The amount of a report that is shown. Rows and failures that are left out are counted in words."""

    rows: int
    """The number of rows of a table."""
    failures: int
    """The number of failures shown in full."""
    characters: int
    """The number of characters of all failures together."""
    passed: bool = True
    """True if rows that passed are shown."""


FULL_EXTENT = ReportExtent(rows=100_000, failures=100_000, characters=100_000_000)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table. ``head`` must be Markdown already; the cells of ``rows`` may be any text."""
    lines = [head, ["---"] * len(head)]
    cells = [f"| {' | '.join(line)} |" for line in lines]
    cells += [
        f"| {' | '.join(escape_markdown(one_line_message(cell, CELL)) for cell in row)} |" for row in rows
    ]
    return "\n".join(cells)


def more_line(count: int, noun: str) -> str:
    return f"… and {plural(count, noun)} more." if count > 0 else ""
