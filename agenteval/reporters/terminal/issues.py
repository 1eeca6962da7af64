"""Issues by severity; and, apart from what the agent did, the judges and the simulated user that broke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from agenteval.core.decision import Decision
from agenteval.core.safe_text import one_line
from agenteval.core.score import Severity, Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import UNDECIDED, free, heading, indented, labelled, right_aligned
from agenteval.reporters.words.issue import IssueText, extent_text, grouped_by, issues_text, not_asked_text
from agenteval.reporters.words.judge import (
    BrokenJudge,
    Lack,
    broken_judges,
    is_scripted_model,
    refusals,
    simulation_text,
)
from agenteval.verdict.report import Report

FEW_ISSUES = 5
"""So many are shown, where each has but a line."""

_STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: UNDECIDED,
    Severity.LOW: "dim",
}


def _below(what: RenderableType) -> Padding:
    return Padding(what, (0, 0, 0, 4))


def issues(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    """The root causes behind all findings, those that fail nothing included; the worst first."""
    texts = issues_text(report, decision)
    if not texts:
        yield from _ungrouped(report)
        return
    yield heading("Issues")
    several = len({grouped_by(text.issue) for text in texts}) > 1
    for text in texts:
        yield indented(_head(text))
        yield from (_below(line) for line in _lines(text, names_grouper=several))
    if not several:
        yield indented(Text(f"grouped by {grouped_by(texts[0].issue)}", style="dim"))
    if rest := not_asked_text(report):
        yield indented(Text(rest, style="dim"))
    yield Text()


def issue_lines(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    """Each root cause in a line, the worst first: how bad, what, where first, in how many conversations."""
    texts = issues_text(report, decision)
    if decision.is_reported and not any(text.issue.by for text in texts):
        return  # what code grouped is the table of what goes wrong
    few = FEW_ISSUES
    if decision.verdict is Verdict.PASSED:  # then only what is bad, and did not gate
        few = min(2, sum(text.severity.rank >= Severity.HIGH.rank for text in texts))
    for text in texts[:few]:
        severity = Text(f"{text.severity:<8}  ", style=_STYLES[text.severity])
        times = f" ({text.issue.samples:,}×)" if text.issue.samples > 1 else ""
        places = dict.fromkeys(one_line(example.scenario, 60) for example in text.issue.examples)
        right = Text(f"{next(iter(places), '')}{times}", style="dim")
        right.truncate(max(12, options.width * 2 // 5), overflow="ellipsis")
        yield right_aligned(
            severity.append_text(free(text.title, "not dim not bold default")), right, options.width
        )
    if len(texts) > few:
        rest = Counter(text.severity for text in texts[few:])
        counts = ", ".join(f"{count:,} {severity}" for severity, count in rest.items())
        if few:
            yield Text(f"… and {counts}; -v lists them", style="dim")
        else:
            yield labelled("issues", Text(f"{counts}; -v lists them"))
    if texts and decision.verdict is not Verdict.PASSED:
        yield Text()


def _head(text: IssueText) -> Text:
    line = Text(f"[{text.severity}]", style=_STYLES[text.severity])
    line.append_text(free(f" {text.title}", "not dim bold")).append_text(
        free(f" ({text.extent})", "not bold")
    )
    return line.append("  fails the run", style="red") if text.fails else line


def _lines(text: IssueText, *, names_grouper: bool) -> Iterator[Text]:
    if text.explanation:
        yield free(text.explanation)
    yield from (free(f"{place}: {_quoted(said)}", "dim") for place, said in dict.fromkeys(text.quotations))
    remarks = list(text.remarks)
    if names_grouper:
        remarks.append(f"grouped by {grouped_by(text.issue)}")
    if text.issue.scripted and not is_scripted_model(text.issue.by):
        remarks.append("scripted")
    if remarks:
        yield free("; ".join(remarks), "dim")


def _quoted(evidence: str) -> str:
    return f'"{evidence}"' if evidence else "(nothing quoted)"


def _ungrouped(report: Report) -> Iterator[RenderableType]:
    """Of a run that was cut off before its findings were grouped: their labels."""
    samples: dict[tuple[Severity, str], list[tuple[str, str]]] = {}
    for scenario in report.scenarios:
        for sample in scenario.samples:
            for finding in sample.findings:
                place = (scenario.scenario.id, str(sample.key))
                samples.setdefault((finding.severity, finding.label), []).append(place)
    if not samples:
        return
    yield heading("Issues (not grouped: the run ended before that)")
    for (severity, label), places in sorted(samples.items(), key=lambda item: -item[0][0].rank):
        extent = extent_text(len(places), len(set(places)), len({scenario for scenario, _ in places}))
        line = Text(f"[{severity}]", style=_STYLES[severity])
        yield indented(line.append_text(free(f" {one_line(label, 120)} ({extent})", "not dim not bold")))
    yield Text()


def broken(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    """Judges and detectors that failed, what was not clear, and messages that were no user's. Nothing of it
    is the agent's fault."""
    judges = broken_judges(report)
    refused = refusals(report)
    for lack in Lack:
        if told := [judge for judge in judges if judge.lack is lack]:
            yield heading(str(lack)).append(f" ({lack.remark})", style="not bold")
            yield from _judges(told)
            yield Text()
    if refused:
        yield heading("Simulated user").append(f": {simulation_text(report)}", style="not bold")
        repeated = refusals(report, fatal=False)
        yield from (indented(free(f"{place}: {fault}", "dim")) for place, fault in repeated)
        yield Text()


def _judges(judges: Sequence[BrokenJudge]) -> Iterator[RenderableType]:
    for judge in judges:
        line = Text.assemble(("! ", UNDECIDED), (judge.names, "bold"), f": {judge.message}")
        yield indented(line.append(f"  ({judge.where})", style="dim"))
        if judge.raw.strip():
            yield _below(free(f"said: {one_line(judge.raw, 250)}", "dim"))
