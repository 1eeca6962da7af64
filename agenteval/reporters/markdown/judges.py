"""The sections of a Markdown report that tell of judgements: scores, issues, what broke."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.core.decision import Decision
from agenteval.core.safe_text import markdown, one_line
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.score import Verdict
from agenteval.reporters.markdown.table import MARKS, Extent, more, table
from agenteval.reporters.words.failure import scenario_decision
from agenteval.reporters.words.issue import IssueText, grouped_by, issues_text, not_asked_text
from agenteval.reporters.words.judge import (
    BrokenJudge,
    Lack,
    broken_judges,
    overridden_text,
    refusals,
    scripted_text,
    second_opinions_text,
    simulation_text,
)
from agenteval.reporters.words.score_cells import (
    NEITHER_WAY,
    NO_SCORE,
    NOT_APPLICABLE,
    SCRIPTED,
    UNCALIBRATED,
    Cell,
    Column,
    columns,
    is_scored,
    scenario_cells,
    threshold_marks,
)
from agenteval.verdict.report import Report

_THRESHOLD_MARKS = {Verdict.PASSED: "✓", Verdict.FAILED: "✗", Verdict.INCONCLUSIVE: "?"}
_QUOTED = 300


def judging_notes(report: Report) -> Iterator[str]:
    """That the project's own prompts were sent, and what no language model said."""
    if told := overridden_text(report):
        yield f"**Judging**: {markdown(told)}"
    if report.scripted:
        yield f"**Scripted replies**: {markdown(scripted_text(report))}, which measure nothing."


def scores(report: Report, decision: Decision, extent: Extent) -> Iterator[str]:
    """A table of all scenarios with a column for each judged metric; those that did not pass first."""
    known = columns(report)
    if not known:
        return
    marks = threshold_marks(decision)
    ranked = sorted(report.scenarios, key=lambda s: -_rank(s, decision))
    rows = [(s, scenario_cells(s, known, report, marks)) for s in ranked[: extent.rows]]
    used = [n for n, _ in enumerate(known) if any(cells[n].text != NOT_APPLICABLE for _, cells in rows)]
    if not used:
        return
    told = [cells[n] for _, cells in rows for n in used]
    yield "## Scores (uncalibrated)" if any(map(is_scored, told)) else "## Scores"
    several = len({scenario.agent for scenario in report.scenarios}) > 1
    head = ["", "scenario", *(["agent"] if several else []), *(markdown(_heading(known[n])) for n in used)]
    lines = (
        [
            MARKS[scenario_decision(decision, scenario).verdict],
            scenario.scenario.id,
            *([scenario.agent] if several else []),
            *(_cell(cells[n]) for n in used),
        ]
        for scenario, cells in rows
    )
    yield table(head, lines)
    yield from filter(None, [more(len(ranked) - extent.rows, "scenario"), _legend(told)])
    if again := second_opinions_text(report):
        yield f"Judges: {markdown(again)}."


def _rank(scenario: ScenarioReport, decision: Decision) -> int:
    return list(Verdict).index(scenario_decision(decision, scenario).verdict)


def _heading(column: Column) -> str:
    return one_line(column.name, 60).replace("_", " ") or "?"


def _cell(cell: Cell) -> str:
    text = cell.text + ("ˢ" if cell.scripted else "")
    text += f" {_THRESHOLD_MARKS[cell.verdict]}" if cell.verdict and is_scored(cell) else ""
    text += f" !{cell.missing}" if cell.missing else ""
    return f"{text} ~{cell.open}" if cell.open else text


def _legend(cells: Sequence[Cell]) -> str:
    parts = [UNCALIBRATED] if any(map(is_scored, cells)) else []
    parts += ["2/3: turns without a failure, goals reached"] if any("/" in c.text for c in cells) else []
    parts += ["✓ ✗ ?: threshold"] if any(c.verdict and is_scored(c) for c in cells) else []
    parts += [NO_SCORE] if any(c.missing for c in cells) else []
    parts += [f"~1: {NEITHER_WAY}"] if any(c.open for c in cells) else []
    parts += [f"ˢ {SCRIPTED}"] if any(c.scripted for c in cells) else []
    return f"{markdown('; '.join(parts))}." if parts else ""


def issues(report: Report, decision: Decision, extent: Extent) -> Iterator[str]:
    """The root causes behind all findings, the worst first."""
    texts = issues_text(report, decision)
    if texts:
        yield "## Issues"
        yield "\n".join(_issue(text) for text in texts[: extent.failures])
        yield from filter(None, [more(len(texts) - extent.failures, "issue"), not_asked_text(report)])


def _issue(text: IssueText) -> str:
    fails = " **fails the run**" if text.fails else ""
    lines = [f"- **{text.severity}**: {markdown(text.title)} ({markdown(text.extent)}){fails}"]
    if text.explanation:
        lines.append(f"why: {markdown(text.explanation)}")
    quoted = f' — "{text.evidence}"' if text.evidence else ""
    lines.append(markdown(f"examples: {'; '.join(text.examples)}{quoted}"))
    lines.append(markdown("; ".join([*text.remarks, f"grouped by {grouped_by(text.issue)}"])))
    return "\n  - ".join(lines)


def broken(report: Report, extent: Extent) -> Iterator[str]:
    """Judges and detectors that failed, what was not clear, and messages that were no user's: nothing of it
    is the agent's fault."""
    judges = broken_judges(report)
    for lack in Lack:
        if told := [judge for judge in judges if judge.lack is lack]:
            yield f"## ⚠️ {lack}"
            yield f"{lack.remark[0].upper()}{lack.remark[1:]}."
            yield from _broken(told, extent)
    if simulation := simulation_text(report):
        yield f"**Simulated user**: {markdown(simulation)}."
        refused = [f"- {markdown(f'{place}: {fault}')}" for place, fault in refusals(report)]
        yield from ["\n".join(refused[: extent.failures])] if refused else []


def _broken(judges: Sequence[BrokenJudge], extent: Extent) -> Iterator[str]:
    lines = []
    for judge in judges[: extent.failures]:
        said = f" — said: {one_line(judge.raw, _QUOTED)}" if judge.raw.strip() else ""
        lines.append(f"- {markdown(f'{judge.names}: {judge.message} ({judge.where}){said}')}")
    yield "\n".join(lines)
    yield from filter(None, [more(len(judges) - extent.failures, "message")])
