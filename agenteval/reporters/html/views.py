"""Render the other views of the page: issues, gates, the comparison with the baseline, figures, and the
run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line_message
from agenteval.core.scenario import SampleKey
from agenteval.core.score import IssueExample, Verdict
from agenteval.reporters.html.charts import BarRow, bar_chart
from agenteval.reporters.html.drawing import ChartText
from agenteval.reporters.html.links import conversation_link
from agenteval.reporters.html.markup import Markup, element
from agenteval.reporters.html.overview import issue_head, linked_gate
from agenteval.reporters.html.sections import MOST_ROWS, rest, section_to_html, table
from agenteval.reporters.sections import accepted, agents, gates, issues, scenarios, usage
from agenteval.reporters.sections.baseline_changes import KINDS, SIGNIFICANCE_NOTE, ChangeRow
from agenteval.reporters.sections.remarks import remarks
from agenteval.reporters.sections.section import Section
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import scenario_decision
from agenteval.reporters.words.issue import IssueText
from agenteval.reporters.words.judge import overridden_prompts
from agenteval.reporters.words.rerun_commands import command_of

_MOST_ISSUES = 200
_MOST_CHANGES = 500


def issue_view(facts: Facts, texts: Sequence[IssueText]) -> Iterator[Markup]:
    """Yield all issues with their quotations, and what failed outside the agent."""
    for text in texts[:_MOST_ISSUES]:
        yield element("article", *_issue(text), class_="issue")
    yield from rest(len(texts), _MOST_ISSUES, "issue")
    if not texts:
        yield from map(section_to_html, issues.issues(facts))
        yield element("p", "No issue: no finding of a judge or a detector was grouped.", class_="quiet")
    yield from map(section_to_html, issues.failures_outside_agent(facts))


def _issue(text: IssueText) -> Iterator[Markup]:
    yield element("h3", issue_head(text))
    if text.explanation:
        yield element("p", text.explanation)
    quotations = [
        element("li", element("a", place, href=_example_link(example)), ": ", element("q", quoted or "…"))
        for example, (place, quoted) in zip(text.issue.examples, text.quotations, strict=True)
    ]
    if quotations:
        yield element("ul", *quotations)
    if text.remarks:
        yield element("p", "; ".join(text.remarks), class_="quiet")


def _example_link(example: IssueExample) -> str:
    key = SampleKey(
        scenario=example.scenario, agent=example.agent, epoch=example.epoch, variant=example.variant
    )
    return conversation_link(key, example.turn)


def gate_view(facts: Facts, root: str) -> Iterator[Markup]:
    """Yield all gates and the accept list."""
    rows = sorted(facts.decision.gates, key=lambda row: -row.verdict.rank)
    if rows:
        cells = [linked_gate(row) for row in rows[:MOST_ROWS]]
        yield table(gates.COLUMNS, cells, root=root, words=True)
    yield from rest(len(rows), MOST_ROWS, "gate")
    for section in gates.gates(facts):
        if section.notes:
            yield element("ul", *(element("li", str(note)) for note in section.notes), class_="notes")
    for section in accepted.sections(facts):
        yield section_to_html(section, root)


def comparison_view(facts: Facts, changes: Sequence[ChangeRow]) -> Iterator[Markup]:
    """Yield what changed against the baseline, by kind, and what cannot be compared. Yield nothing without a
    baseline."""
    baseline = facts.report.run.baseline
    if baseline is None:
        return
    apart = [
        (name, agent, f"changed: {differences}")
        for agent, scenarios_ in baseline.changed.items()
        for name, differences in scenarios_.items()
    ]
    apart += [(name, "", "not in this run") for name in baseline.gone]
    counts = Counter[str]()
    for row in changes:
        counts[row.kind] += row.rows
    bars = [BarRow(kind, counts[kind], f"{counts[kind]:,}") for kind in KINDS if counts[kind]]
    bars += [BarRow("Not comparable", len(apart), f"{len(apart):,}")] if apart else []
    yield bar_chart(
        ChartText("chart-changes", "What changed", "Scenarios by kind of change.", "change"), bars
    )
    for kind in KINDS:
        rows = [row for row in changes if row.kind == kind]
        if rows:
            cells = [(_change_link(row), row.before, row.after, row.why, row.confidence) for row in rows]
            yield element("h3", f"{kind} ({counts[kind]:,})")
            columns = ("scenario", "before", "now", "why", "confidence")
            yield table(columns, cells[:_MOST_CHANGES], root=".")
            yield from rest(len(cells), _MOST_CHANGES, "scenario")
    if apart:
        yield element("h3", f"Not comparable ({len(apart):,})")
        yield table(("scenario", "agent", "why"), apart[:_MOST_CHANGES], root=".")
        yield from rest(len(apart), _MOST_CHANGES, "scenario")
    if not changes and not apart:
        yield element("p", "No scenario changed.")
    yield element("p", SIGNIFICANCE_NOTE.replace("*", ""), class_="quiet")


def _change_link(row: ChangeRow) -> str | Markup:
    if not row.scenario:
        return row.name
    return element("a", row.name, href=conversation_link(SampleKey(scenario=row.scenario, agent=row.agent)))


def measure_view(facts: Facts, pictures: Sequence[Markup], root: str) -> Iterator[Markup]:
    """Yield the pictures, and the tables of what was measured. Scenarios that were not decided are named
    first, because the figures do not contain them."""
    decisions = [scenario_decision(facts.decision, each).verdict for each in facts.report.scenarios]
    if undecided := decisions.count(Verdict.INCONCLUSIVE):
        of = plural(len(decisions), "result")
        yield element("p", f"{undecided:,} of {of} not decided, and not in all figures", class_="caveat")
    if pictures:
        yield element("div", *pictures, class_="charts")
    makers: tuple[Callable[[Facts], Iterator[Section]], ...] = (
        scenarios.dimensions,
        agents.sections,
        usage.usage,
    )
    for make in makers:
        for section in make(facts):
            yield section_to_html(section, root)


def run_view(facts: Facts) -> Iterator[Markup]:
    """Yield what the run consisted of: its remarks, models, versions, prompts and configuration."""
    report = facts.report
    run = report.run
    found = [element("li", element("b", label), f": {text}") for label, text in remarks(facts, most=50)]
    found += [
        element("li", element("b", notice.level), f": {one_line_message(notice.text, 1000)}")
        for notice in report.notices[:200]
        if notice.level == "info"
    ]
    if found:
        yield element("h3", "Remarks")
        yield element("ul", *found, class_="notes")
    ledger = [
        (line.role, line.name, f"{line.usage.calls:,}", _cost(line.usage.cost)) for line in report.ledger
    ]
    if ledger:
        yield element("h3", "Models and agents")
        yield table(("role", "name", "calls", "cost"), ledger, root=".", numbers=("calls", "cost"))
    yield element("h3", "Run")
    facts_of_run = {
        "run": run.run_id,
        "started": run.started_at,
        "command": command_of(["agenteval", *run.command]) if run.command else "",
        "seed": str(report.plan.suite.seed),
        "commit": f"{run.commit}{' (changed since)' if run.dirty else ''}" if run.commit else "",
        "versions": ", ".join(f"{name} {version}" for name, version in run.versions.items()),
        "prompts": ", ".join(f"{name} {digest[:12]}" for name, digest in run.prompts.items()),
        "prompts replaced": ", ".join(f"{a} by {b}" for a, b in overridden_prompts(report).items()),
    }
    terms = ((element("dt", name), element("dd", text)) for name, text in facts_of_run.items() if text)
    yield element("dl", *terms)
    config: dict[str, Any] = run.config.model_dump(
        mode="json", exclude={"root", "lines", "columns"}, exclude_defaults=True
    )
    text = json.dumps(config, indent=2, ensure_ascii=False, default=repr)
    yield element("details", element("summary", "Configuration"), element("pre", text))


def _cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:.4f} USD"
