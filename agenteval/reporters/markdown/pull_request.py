"""Render the pull request comment: the failures that the change introduced or fixed, and the certainty of
each difference.

With ``--baseline``, scenarios are listed as newly failing, still failing, fixed or undecided. Without a
baseline, the comment lists everything that did not pass. The program that posts the comment uses ``MARKER``
to find its previous comment and replaces that comment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agenteval.core.decision import Decision
from agenteval.core.plurals import plural
from agenteval.core.safe_text import escape_markdown, one_line_message
from agenteval.core.score import Verdict
from agenteval.core.selection import full_id
from agenteval.reporters.markdown.sections import caveats_to_markdown
from agenteval.reporters.markdown.table import MARKS, more_line, table, verdict_sign
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.gates import format_figures
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import ReportedFailure, run_gates, scenario_decision
from agenteval.reporters.words.row_groups import broken_rule_keys, template_key
from agenteval.reporters.words.spending import brief_sum
from agenteval.reporters.words.verdict import ends_text
from agenteval.verdict.digest import summary_of
from agenteval.verdict.report import Report
from agenteval.verdict.statistics import Change, Pair, Tally, compare

MARKER = "<!-- agenteval -->"
MOST = 20
"""The maximum number of scenarios listed for each kind of change."""

NEW, STILL, FIXED, UNDECIDED, FAILING = "Newly failing", "Still failing", "Fixed", "Undecided", "Failing"
NOT_THERE, WORSE = "Failing, and not in the baseline", "Passing, but significantly less often"
_ORDER = (NEW, WORSE, NOT_THERE, FAILING, UNDECIDED, STILL, FIXED)
_SIGNS = {NEW: "❌", WORSE: "❌", NOT_THERE: "❌", UNDECIDED: "⚠️", STILL: "❌", FAILING: "❌", FIXED: "✅"}


class ChangeRow(NamedTuple):
    """A scenario with an agent, or the first of several data rows of a scenario that all changed in the same
    way. ``rows`` is the number of such data rows."""

    kind: str
    name: str
    before: str
    """The number of successful epochs and the number of decided epochs in the baseline, such as ``2/3``."""
    after: str
    """The number of successful epochs and the number of decided epochs in this run, such as ``3/3``."""
    why: str
    confidence: str
    """The certainty of the change, such as ``significant``."""
    rows: int = 1


def render(report: Report, decision: Decision, options: ReportOptions) -> str:
    return "\n\n".join((MARKER, *_parts(Facts(report, decision)))) + "\n"


def _parts(facts: Facts) -> Iterator[str]:
    report, decision = facts.report, facts.decision
    rows = list(rows_of(facts))
    yield f"### {verdict_sign(decision)} agenteval: {decision.verdict_label}{_kind_counts(rows)}"
    yield " · ".join(filter(None, _figures(facts)))
    if decision.author_errors:
        yield "\n".join(
            f"- {escape_markdown(one_line_message(text, 500))}" for text in decision.author_errors
        )
    for kind in _ORDER:
        yield from _kind_section(kind, [row for row in rows if row.kind == kind], bool(report.run.baseline))
    yield from _gates(decision)
    yield from caveats_to_markdown(facts)
    if report.run.baseline:
        yield f"Baseline: {escape_markdown(report.run.baseline.run_id)}. {_SIGNIFICANCE_NOTE}"
    else:
        why = (
            f" ({escape_markdown(one_line_message(report.run.no_baseline, 300))})"
            if report.run.no_baseline
            else ""
        )
        yield f"No baseline{why}: this comment shows what does not pass now, not the effect of the change."


_SIGNIFICANCE_NOTE = (
    "*Significant*: Fisher's exact test at 5 %, corrected across all scenarios. Any other difference"
    " may be due to chance; run more epochs to find out."
)


def _kind_counts(rows: Sequence[ChangeRow]) -> str:
    counts = {kind: sum(row.rows for row in rows if row.kind == kind) for kind in _ORDER}
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


def rows_of(facts: Facts) -> Iterator[ChangeRow]:
    """Yield the scenarios that a reviewer of the change needs to know about. Passing scenarios whose results
    have not changed are omitted."""
    report, decision = facts.report, facts.decision
    baseline = report.run.baseline
    summary = summary_of(report, decision)
    after = {(s.agent, s.id): Tally(s.successes, s.decided, s.planned) for s in summary.scenarios}
    before = {
        (agent, name): Tally.of(outcomes)
        for agent, scenarios in (baseline.outcomes if baseline else {}).items()
        for name, outcomes in scenarios.items()
    }
    changes = _changes(before, after)
    groups = {(each[0].agent, each[0].scenario): each for each in facts.decisive}
    several = facts.report.has_several_agents
    grouped: dict[tuple[object, ...], list[ChangeRow]] = {}
    for scenario in report.scenarios:
        key = (scenario.agent, scenario.scenario.id)
        verdict = scenario_decision(decision, scenario).verdict
        old, new, change = before.get(key), after[key], changes.get(key)
        if kind := _kind(verdict, old, new, change, has_baseline=baseline is not None):
            name = full_id(scenario.scenario) + (f" · {scenario.agent}" if several else "")
            group = groups.get(key, ())
            why = _first_gist(group) if group else ""
            row = ChangeRow(kind, name, _rate(old), _rate(new), why, _confidence(change, old, new))
            grouped.setdefault((kind, template_key(scenario), broken_rule_keys(group)), []).append(row)
    for first, *others in grouped.values():
        more = f" and {plural(len(others), 'more row')}" if others else ""
        yield first._replace(name=first.name + more, rows=1 + len(others))


def _kind(
    verdict: Verdict, old: Tally | None, new: Tally, change: Change | None, *, has_baseline: bool
) -> str:
    """Return the kind of change, or an empty string if there is nothing to report. A scenario is fixed only
    if it succeeds more often than before, because a pass rate may tolerate failures in both runs."""
    if verdict is Verdict.INCONCLUSIVE:
        return UNDECIDED
    failed_before = old is not None and old.successes < old.decided
    if verdict is Verdict.PASSED:
        if change is Change.REGRESSED:
            return WORSE
        rose = old is not None and new.successes * old.decided > old.successes * new.decided
        return FIXED if rose else ""
    if not has_baseline:
        return FAILING
    if old is None:
        return NOT_THERE
    return STILL if failed_before and change is not Change.REGRESSED else NEW


def _changes(
    before: Mapping[tuple[str, str], Tally], after: Mapping[tuple[str, str], Tally]
) -> dict[tuple[str, str], Change]:
    """Classify the change in the success rate of each scenario that occurs in both runs. Significance is
    corrected for multiple comparisons."""
    keys = [key for key in before if key in after and before[key].planned and after[key].planned]
    if not keys:
        return {}
    pairs = [Pair("\0".join(key), before[key], after[key]) for key in keys]
    found = {each.pair.scenario: each.change for each in compare(pairs).scenarios}
    return {key: found["\0".join(key)] for key in keys}


def _first_gist(failures: Sequence[ReportedFailure]) -> str:
    return one_line_message(failures[0].rules[0].gist, 140)


def _rate(tally: Tally | None) -> str:
    return "–" if tally is None else f"{tally.successes}/{tally.decided}"


def _confidence(change: Change | None, old: Tally | None, new: Tally) -> str:
    if change in (Change.REGRESSED, Change.IMPROVED):
        return "significant"
    if old is None or not (old.decided and new.decided):
        return "unknown"
    return "may be chance"


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
