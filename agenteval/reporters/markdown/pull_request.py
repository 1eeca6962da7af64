"""Render the pull request comment: the failures that the change introduced or fixed, and the certainty of
each difference.

With ``--baseline``, scenarios are listed as newly failing, still failing, fixed or undecided. Without a
baseline, the comment lists everything that did not pass. The program that posts the comment uses ``MARKER``
to find its previous comment and replaces that comment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.core.decision import Decision
from agenteval.core.plurals import plural
from agenteval.core.safe_text import escape_markdown, one_line_message
from agenteval.reporters.markdown.sections import caveats_to_markdown
from agenteval.reporters.markdown.table import MARKS, more_line, table, verdict_sign
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.baseline_changes import (
    FAILING,
    FIXED,
    KINDS,
    NEW,
    NOT_THERE,
    SIGNIFICANCE_NOTE,
    STILL,
    UNDECIDED,
    WORSE,
    ChangeRow,
    baseline_changes,
)
from agenteval.reporters.sections.gates import format_figures
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import run_gates
from agenteval.reporters.words.spending import brief_sum
from agenteval.reporters.words.verdict import ends_text
from agenteval.verdict.report import Report

MARKER = "<!-- agenteval -->"
MOST = 20
"""The maximum number of scenarios listed for each kind of change."""

_SIGNS = {NEW: "❌", WORSE: "❌", NOT_THERE: "❌", UNDECIDED: "⚠️", STILL: "❌", FAILING: "❌", FIXED: "✅"}


def render(report: Report, decision: Decision, options: ReportOptions) -> str:
    return "\n\n".join((MARKER, *_parts(Facts(report, decision)))) + "\n"


def _parts(facts: Facts) -> Iterator[str]:
    report, decision = facts.report, facts.decision
    rows = list(baseline_changes(facts))
    yield f"### {verdict_sign(decision)} agenteval: {decision.verdict_label}{_kind_counts(rows)}"
    yield " · ".join(filter(None, _figures(facts)))
    if decision.author_errors:
        yield "\n".join(
            f"- {escape_markdown(one_line_message(text, 500))}" for text in decision.author_errors
        )
    for kind in KINDS:
        yield from _kind_section(kind, [row for row in rows if row.kind == kind], bool(report.run.baseline))
    yield from _gates(decision)
    yield from caveats_to_markdown(facts)
    if report.run.baseline:
        yield f"Baseline: {escape_markdown(report.run.baseline.run_id)}. {SIGNIFICANCE_NOTE}"
    else:
        why = (
            f" ({escape_markdown(one_line_message(report.run.no_baseline, 300))})"
            if report.run.no_baseline
            else ""
        )
        yield f"No baseline{why}: this comment shows what does not pass now, not the effect of the change."


def _kind_counts(rows: Sequence[ChangeRow]) -> str:
    counts = {kind: sum(row.rows for row in rows if row.kind == kind) for kind in KINDS}
    listed = ", ".join(f"{count} {kind.lower()}" for kind, count in counts.items() if count)
    return f" — {listed}" if listed else ""


def _figures(facts: Facts) -> Iterator[str]:
    report, decision = facts.report, facts.decision
    yield escape_markdown(ends_text(facts))
    yield f"exit code {decision.exit_code}"
    if report.finished:
        yield f"{report.finished.elapsed_s:.0f} s"
    if report.finished is None or report.finished.outcome != "complete":
        yield "**not complete**"
    yield escape_markdown(brief_sum(report))


def _kind_section(kind: str, rows: Sequence[ChangeRow], has_baseline: bool) -> Iterator[str]:
    if not rows:
        return
    yield f"**{_SIGNS[kind]} {kind}** ({sum(row.rows for row in rows)})"
    head = ("scenario", "before", "now", "why") if has_baseline else ("scenario", "now", "why")
    shows_confidence = has_baseline and kind in (NEW, WORSE, FIXED)
    cells = [
        (
            row.name,
            *((row.before,) if has_baseline else ()),
            row.after,
            row.why,
            *((row.confidence,) * shows_confidence),
        )
        for row in rows[:MOST]
    ]
    yield table((*head, *(("confidence",) if shows_confidence else ())), cells)
    if left := more_line(len(rows) - MOST, "scenario"):
        yield left


def _gates(decision: Decision) -> Iterator[str]:
    """Render a table of the run-level gates that did not pass."""
    rows = [
        (MARKS[gate.verdict], gate.name, *format_figures(gate), gate.basis) for gate in run_gates(decision)
    ]
    if rows:
        yield f"**{plural(len(rows), 'gate')} over the whole run**"
        yield table(("", "gate", "value", "bound", "based on"), rows[:MOST])
