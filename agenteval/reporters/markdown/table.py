"""Render tables as Markdown, and define the limits on the length of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agenteval.core.decision import REPORTED, Decision
from agenteval.core.plurals import plural
from agenteval.core.safe_text import escape_markdown, one_line_message
from agenteval.core.score import Verdict

MARKS = {Verdict.PASSED: "✅", Verdict.INCONCLUSIVE: "⚠️", Verdict.FAILED: "❌"}
CELL = 160
"""The maximum number of characters shown in each cell."""


def verdict_sign(decision: Decision) -> str:
    """Return the symbol for the verdict, or a neutral symbol if the run had no expectations."""
    return "📋" if decision.verdict_label == REPORTED else MARKS[decision.verdict]


class ReportExtent(NamedTuple):
    """The limits on the length of a report. If rows or failures are omitted, the report states how many."""

    rows: int
    """The maximum number of rows in a table."""
    failures: int
    """The maximum number of failures shown in full."""
    characters: int
    """The maximum total number of characters for all failures."""
    passed: bool = True
    """True if rows that passed are shown."""


FULL_EXTENT = ReportExtent(rows=100_000, failures=100_000, characters=100_000_000)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a Markdown table. The entries of ``head`` must already be Markdown; the cells of ``rows`` may
    contain arbitrary text, which is escaped."""
    lines = [head, ["---"] * len(head)]
    cells = [f"| {' | '.join(line)} |" for line in lines]
    cells += [
        f"| {' | '.join(escape_markdown(one_line_message(cell, CELL)) for cell in row)} |" for row in rows
    ]
    return "\n".join(cells)


def more_line(count: int, noun: str) -> str:
    return f"… and {plural(count, noun)} more." if count > 0 else ""
