"""List issues, and failures that are not the agent's fault: failures of judges, detectors and the simulated
user."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.safe_text import one_line
from agenteval.core.score import Severity
from agenteval.reporters.sections.section import Item, Section, StyledText, Tone
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.issue import IssueText, extent_text, grouped_by, issues_text, not_asked_text
from agenteval.reporters.words.judge import (
    FailedJudge,
    MissingScore,
    failed_judges,
    is_scripted_model,
    refusals,
    simulation,
    simulation_text,
)
from agenteval.verdict.report import Report

TONES = {
    Severity.CRITICAL: Tone.WORST,
    Severity.HIGH: Tone.BAD,
    Severity.MEDIUM: Tone.OPEN,
    Severity.LOW: Tone.QUIET,
}


def issues(facts: Facts) -> Iterator[Section]:
    """Yield the section on issues: the root causes of all findings, worst first, including issues that do not
    cause a failure."""
    report, texts = facts.report, issues_text(facts.report, facts.decision)
    groupers = {grouped_by(text.issue) for text in texts}
    items = tuple(_item(text, names_grouper=len(groupers) > 1) for text in texts)
    if items:
        same = [f"grouped by {next(iter(groupers))}"] if len(groupers) == 1 else []
        remarks = (StyledText(text, Tone.QUIET) for text in filter(None, (*same, not_asked_text(report))))
        yield Section("Issues", notes=(*items, *remarks))
    elif ungrouped := tuple(_ungrouped(report)):
        yield Section("Issues (not grouped: the run ended first)", notes=ungrouped)


def _item(text: IssueText, *, names_grouper: bool) -> Item:
    remarks = list(text.remarks)
    if names_grouper:
        remarks.append(f"grouped by {grouped_by(text.issue)}")
    if text.issue.scripted and not is_scripted_model(text.issue.by):
        remarks.append("scripted")
    quoted = [
        f'{place}: "{evidence}"' if evidence else f"{place}: (nothing quoted)"
        for place, evidence in dict.fromkeys(text.quotations)
    ]
    fails = [StyledText("  fails the run", Tone.BAD)] if text.fails else []
    return Item(
        head=(
            _severity(text.severity),
            StyledText(f" {text.title}", Tone.STRONG),
            f" ({text.extent})",
            *fails,
        ),
        below=(text.explanation, *(StyledText(line, Tone.QUIET) for line in (*quoted, "; ".join(remarks)))),
    )


def _severity(severity: Severity) -> StyledText:
    return StyledText(f"[{severity}]", TONES[severity])


def _ungrouped(report: Report) -> Iterator[Item]:
    """Yield the labels of all findings, for a run that was interrupted before its findings were grouped."""
    samples: dict[tuple[Severity, str], list[tuple[str, str]]] = {}
    for scenario in report.scenarios:
        for sample in scenario.samples:
            for finding in sample.findings:
                place = (scenario.scenario.id, str(sample.key))
                samples.setdefault((finding.severity, finding.label), []).append(place)
    for (severity, label), places in sorted(samples.items(), key=lambda item: -item[0][0].rank):
        extent = extent_text(len(places), len(set(places)), len({scenario for scenario, _ in places}))
        yield Item((_severity(severity), f" {one_line(label, 120)} ({extent})"))


def failures_outside_agent(facts: Facts) -> Iterator[Section]:
    """Yield sections on judges and detectors that failed, questions that were not clear to a judge, and
    faults of the simulated user."""
    report = facts.report
    judges = failed_judges(report)
    for kind in MissingScore:
        if items := tuple(_judge_item(judge) for judge in judges if judge.missing_score is kind):
            yield Section(f"{kind} ({kind.remark})", notes=items)
    if text := simulation_text(report):
        who = "Simulated user" if simulation(report.samples).messages else "Users"
        faults = (f"{place}: {fault}" for place, fault in refusals(report, fatal=False))
        yield Section(f"{who}: {text}", notes=tuple(StyledText(fault, Tone.QUIET) for fault in faults))


def _judge_item(judge: FailedJudge) -> Item:
    reply = (StyledText(f"said: {one_line(judge.raw, 250)}", Tone.QUIET),) if judge.raw.strip() else ()
    names, where = StyledText(judge.names, Tone.STRONG), StyledText(f"  ({judge.where})", Tone.QUIET)
    return Item((StyledText("! ", Tone.OPEN), names, f": {judge.message}", where), reply)
