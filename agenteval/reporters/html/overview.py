"""Render the first view of the page: the verdict, what decided it, the worst issues, and the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from agenteval.core.decision import GateRow
from agenteval.core.plurals import plural
from agenteval.core.safe_text import clean, one_line, one_line_message
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Verdict
from agenteval.reporters.html.links import conversation_link, filter_link
from agenteval.reporters.html.markup import Markup, element, join
from agenteval.reporters.html.scenario_rows import ListedScenario
from agenteval.reporters.html.sections import MARKS, rest, section_to_html, table, verdict_mark
from agenteval.reporters.sections.baseline_changes import KINDS, ChangeRow
from agenteval.reporters.sections.faults import faults
from agenteval.reporters.sections.gates import COLUMNS, gate_cells
from agenteval.reporters.sections.message_variants import message_variants
from agenteval.reporters.sections.remarks import caveats
from agenteval.reporters.sections.section import Cell
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure_rates import COLUMNS as COLUMNS_OF_RATES
from agenteval.reporters.words.failure_rates import (
    HEAD,
    quotation_place,
    quotation_text,
    rate_cells,
    unknown_lines,
)
from agenteval.reporters.words.issue import IssueText
from agenteval.reporters.words.run_line import judges_text, run_parts
from agenteval.reporters.words.verdict import verdict_line
from agenteval.verdict.failure_rates import FailureRate

MOST_STATIC_ROWS = 200
"""The maximum number of scenarios that are listed without the script."""
_MOST_GATES, _MOST_ISSUES, _MOST_MISTAKES = 20, 5, 100
_SIGNS = {
    "failed": "✗",
    "inconclusive": "?",
    "passed": "✓",
    "tolerated": "○",
    "flaky": "≈",
    "accepted": "○",
    "finding": "!",
    "partly-read": "?",
}
_STATES = ("failed", "inconclusive", "flaky", "accepted", "tolerated", "passed")


def header(facts: Facts) -> Iterator[Markup]:
    """Yield the verdict in a sentence, and a line that describes the run."""
    word, text = verdict_line(facts)
    label = facts.decision.verdict_label
    sign = MARKS.get(facts.decision.verdict, "") if label != "reported" else "•"
    yield element("h1", element("span", f"{sign} {word}", class_=f"verdict {label}"), f" {text}")
    run = facts.report.run
    commit = f"commit {run.commit[:12]}{', changed since' if run.dirty else ''}" if run.commit else ""
    parts = (*run_parts(facts), judges_text(facts.report), f"run {run.run_id}", run.started_at, commit)
    yield element("p", " · ".join(one_line(part, 200) for part in parts if part), class_="ran")
    for label, caveat in caveats(facts):
        if label != "with":  # the sentence contains it
            yield element("p", element("b", label.capitalize()), f": {caveat}", class_="caveat")


def overview(
    facts: Facts,
    rows: Sequence[ListedScenario],
    texts: Sequence[IssueText],
    changes: Sequence[ChangeRow],
    root: str,
) -> Iterator[Markup]:
    """Yield the parts of the first view, in the order of their importance."""
    yield from _counts(rows, is_log=facts.decision.is_reported)
    if mistakes := facts.decision.author_errors:
        lines = (element("li", one_line_message(text, 1000)) for text in mistakes[:_MOST_MISTAKES])
        yield element("h2", "To fix in the scenarios or the configuration")
        yield element("ul", *lines)
        yield from rest(len(mistakes), _MOST_MISTAKES, "mistake")
    yield from _gates(facts, root)
    yield from _changes(facts, changes)
    yield from _rates(facts)
    for section in (*faults(facts), *message_variants(facts)):
        yield section_to_html(section, root)
    yield from _issues(texts)
    yield from _list(facts, rows)


def _counts(rows: Sequence[ListedScenario], *, is_log: bool) -> Iterator[Markup]:
    """Yield the number of scenarios in each state. Each number is a link that filters the list."""
    found = Counter(state for row in rows for state in row.states)
    states = ("finding", "failed", "inconclusive", "partly-read") if is_log else _STATES
    links = [
        element(
            "a", f"{_SIGNS.get(state, '!')} {found[state]:,} {_word(state)}", href=filter_link(f"v:{state}")
        )
        for state in states
        if found[state]
    ]
    everything = element("a", f"{len(rows):,} in total", href=filter_link(""))
    yield element("p", *links, everything, class_="counts")


def _word(state: str) -> str:
    return {"finding": "with findings", "partly-read": "not fully read"}.get(state, state)


def _gates(facts: Facts, root: str) -> Iterator[Markup]:
    bad = [row for row in facts.decision.gates if row.verdict is not Verdict.PASSED]
    bad.sort(key=lambda row: -row.verdict.rank)
    if bad:
        yield element("h2", "Gates that did not pass")
        yield table(COLUMNS, [linked_gate(row) for row in bad[:_MOST_GATES]], root=root, words=True)
    held = len(facts.decision.gates) - len(bad)
    more = f"{plural(len(bad) - _MOST_GATES, 'more gate')} not passed; " if len(bad) > _MOST_GATES else ""
    if facts.decision.gates:
        link = element("a", f"{more}{plural(held, 'gate')} passed", href="#/gates")
        yield element("p", link, class_="quiet")


def linked_gate(row: GateRow) -> tuple[Cell | Markup, ...]:
    """Return the cells of a gate. The rule of a scenario is a link to the first conversation."""
    verdict, rule, *others = gate_cells(row)
    if row.scenario:
        key = SampleKey(scenario=row.scenario, agent=row.agent)
        rule = element("a", str(rule), href=conversation_link(key))
    return (verdict, rule, *others)


def _changes(facts: Facts, changes: Sequence[ChangeRow]) -> Iterator[Markup]:
    baseline = facts.report.run.baseline
    if baseline is None:
        return
    counts = Counter[str]()
    for row in changes:
        counts[row.kind] += row.rows
    summary = (
        ", ".join(f"{counts[kind]:,} {kind.lower()}" for kind in KINDS if counts[kind]) or "nothing changed"
    )
    text = f"Against {one_line(baseline.run_id, 60)}: {summary}"
    yield element("p", element("a", text, href="#/compare"), class_="baseline")


def _rates(facts: Facts) -> Iterator[Markup]:
    """Yield how often each failure occurs in a log without scenarios, with links to three conversations each,
    and what the reader of the log left out."""
    rates = facts.rates
    if rates is None:
        return
    yield element("h2", HEAD)
    if rates.rows:
        yield table(
            (*COLUMNS_OF_RATES, "for example"),
            [(*rate_cells(row), _examples(row)) for row in rates.rows],
            root=".",
        )
    else:
        count = plural(rates.conversations, "conversation")
        yield element("p", f"No known kind of failure was found in {count}")
    if unknown := list(unknown_lines(rates)):
        yield element("p", "; ".join(unknown), class_="caveat")


def _examples(row: FailureRate) -> Markup:
    return join(
        element(
            "div",
            element("a", quotation_place(each), href=conversation_link(each.key, each.turn)),
            f" {quotation_text(each)}",
        )
        for each in row.quotations
    )


def _issues(texts: Sequence[IssueText]) -> Iterator[Markup]:
    if texts:
        yield element("h2", "Issues")
        yield element(
            "ol", *(element("li", issue_head(text)) for text in texts[:_MOST_ISSUES]), class_="issues"
        )
    if len(texts) > _MOST_ISSUES:
        yield element("p", element("a", f"all {len(texts):,} issues", href="#/issues"), class_="quiet")


def issue_head(text: IssueText) -> Markup:
    """Return the severity, the title and the extent of an issue. The title is a link to the conversations in
    which the issue occurs."""
    link = element("a", text.title, href=filter_link(f"issue:{text.issue.id}"))
    fails = element("b", " fails the run", class_="failed") if text.fails else ""
    return join(severity_badge(str(text.severity)), " ", link, f" ({text.extent})", fails)


def severity_badge(severity: str) -> Markup:
    return element("span", severity, class_=f"severity {severity}")


# ── the list ─────────────────────────────────────────────────────────────────────────────────────


def _list(facts: Facts, rows: Sequence[ListedScenario]) -> Iterator[Markup]:
    """Yield the list as the page shows it without its script: what did not pass. The script replaces it."""
    noun = "record" if facts.decision.without_scenarios else "scenario"
    state = "severity" if facts.decision.is_reported else "verdict"
    if facts.decision.is_reported:
        shown = [row for row in rows if row.worst or row.verdict is not Verdict.PASSED]
    else:
        shown = [row for row in rows if row.verdict is not Verdict.PASSED]
    yield element("h2", f"{noun.capitalize()}s", id="list-title")
    yield element("div", id="list-tools", hidden=True)
    head = element("tr", *(element("th", title, scope="col") for title in (state, noun, "agent", "reason")))
    body = (
        element(
            "tr",
            element("td", _row_mark(row, is_log=facts.decision.is_reported)),
            element("td", element("a", _shown_id(row), href=conversation_link(_first(row)))),
            element("td", row.report.agent),
            element("td", row.reason, element("div", row.where, class_="quiet"), class_="reason"),
        )
        for row in shown[:MOST_STATIC_ROWS]
    )
    yield element(
        "div", element("table", element("thead", head), element("tbody", *body), id="list"), class_="wide"
    )
    rest = len(shown) - MOST_STATIC_ROWS
    more = f"… and {plural(rest, f'more {noun}')} that did not pass. " if rest > 0 else ""
    text = (
        f"{more}This list contains only what did not pass; with JavaScript, the page shows all conversations."
    )
    yield element("p", text, id="list-more", class_="quiet")


def _shown_id(row: ListedScenario) -> str:
    name = row.report.scenario.id
    return name if clean(name).strip() else "(no visible id)"


def _row_mark(row: ListedScenario, *, is_log: bool) -> Markup:
    if is_log and row.worst:
        return severity_badge(str(row.worst.severity))
    return verdict_mark(row.verdict.value)


def _first(row: ListedScenario) -> SampleKey:
    """Return the first sample that did not pass, or the first sample of a scenario that passed."""
    bad = (each.key for each in row.epochs if each.decided.verdict is not Verdict.PASSED)
    first = next(bad, None) or next((each.key for each in row.epochs), None)
    return first or SampleKey(scenario=row.report.scenario.id, agent=row.report.agent)
