"""Render annotations for GitHub Actions (GitHub annotations), and the step summary (job summary).

Annotations are workflow commands, so all values in them are encoded: text from an agent or a tool can neither
begin a new line nor end the command that contains it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from agenteval.core.decision import AcceptedState, AcceptedUse, Decision, Violation
from agenteval.core.plurals import plural
from agenteval.core.safe_text import github_data, github_property, one_line, shorten_message
from agenteval.core.score import Severity, Verdict
from agenteval.files.prompts import CRITERIA
from agenteval.reporters.markdown.document import SUMMARY, document
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.accepted import accepted_line
from agenteval.reporters.sections.gates import format_figures
from agenteval.reporters.sections.remarks import caveats
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import (
    ReportedFailure,
    finding_text,
    reason,
    run_gates,
    title,
)
from agenteval.reporters.words.failure_rates import format_rate, quotation_place, quotation_text
from agenteval.reporters.words.issue import issues_text
from agenteval.reporters.words.judge import describe_missing_score, failed_judges
from agenteval.reporters.words.places import relative_place, split_place
from agenteval.reporters.words.row_groups import template_key
from agenteval.verdict.failure_rates import FailureRates
from agenteval.verdict.report import Report
from agenteval.verdict.run_rows import mostly_errored_scenarios

MOST = 10
"""The maximum number of annotations per level that GitHub shows for a step."""

_MESSAGE_LIMIT = 1500
_TITLE_LIMIT = 150

Level = Literal["error", "warning", "notice"]
_LEVELS: tuple[Level, ...] = ("error", "warning", "notice")


class Annotation(NamedTuple):
    """A message that is attached to a line in a file."""

    level: Level
    title: str
    message: str
    where: str = ""
    rank: int = 0
    """The priority among annotations of the same level. The annotation with the highest rank comes first."""


def render(report: Report, decision: Decision, options: ReportOptions) -> str:
    """Render GitHub Actions annotations, one per line, most severe first. At most ten annotations of each
    level are printed. If there are more, the last annotation states how many are not shown."""
    lines = []
    found = list(_annotations(Facts(report, decision)))
    for level in _LEVELS:
        of_level = sorted((a for a in found if a.level == level), key=lambda a: -a.rank)
        lines += [_line(annotation, options.root) for annotation in _capped(of_level)]
    return "".join(f"{line}\n" for line in lines)


def step_summary(report: Report, decision: Decision, options: ReportOptions) -> str:
    """Render a short Markdown report for the step summary (the file that ``$GITHUB_STEP_SUMMARY`` names)."""
    return document(report, decision, options, SUMMARY)


def _annotations(facts: Facts) -> Iterator[Annotation]:
    report, decision = facts.report, facts.decision
    yield from (_author_error(text) for text in decision.author_errors)
    for gate in run_gates(decision):
        value, bound = format_figures(gate)
        text = f"{value}, bound {bound}, over {gate.basis}"
        yield Annotation(_level(gate.verdict), gate.name, text, gate.where, rank=50)
    yield from _failure_annotations(facts.failures, mostly_errored_scenarios(report, decision.samples))
    yield from _rate_annotations(facts.rates)
    yield from _low_issues(report, decision) if report.issues else _low_findings(report)
    yield from _failed_judge_annotations(report, decision)
    yield from map(_accepted_annotation, decision.accepted)
    for label, text in caveats(facts):
        title = f"{decision.verdict_label}, with" if label == "with" else label
        yield Annotation("notice", title, text, rank=100)
    has_cause = facts.failures or decision.author_errors or run_gates(decision)
    if decision.verdict is not Verdict.PASSED and not has_cause:
        text = f"the run is {decision.verdict}, exit code {decision.exit_code}"
        yield Annotation(_level(decision.verdict), "agenteval", text)


def _rate_annotations(rates: FailureRates | None) -> Iterator[Annotation]:
    """Yield an annotation for each failure rate in a log without scenarios, worst first. Each annotation is
    placed at the first quotation that illustrates the rate."""
    for number, row in enumerate(rates.rows if rates else ()):
        lines = [f"{quotation_place(each)}: {quotation_text(each)}" for each in row.quotations]
        where = row.quotations[0].where if row.quotations else ""
        text = "\n".join((format_rate(row), *lines))
        yield Annotation("notice", f"what goes wrong: {row.label}", text, where, rank=80 - number)


def _accepted_annotation(use: AcceptedUse) -> Annotation:
    is_wrong = use.elsewhere or use.state is AcceptedState.EXPIRED
    level: Level = "warning" if is_wrong else "notice"
    return Annotation(level, "accept list", accepted_line(use), use.entry.where, rank=90)


def _author_error(text: str) -> Annotation:
    """Return an annotation for an author error. Its location is taken from the ``path:line:column:`` prefix
    of the message."""
    found = re.match(r"(\S+?:\d+)(?::\d+)?: ", text)
    return Annotation("error", "to fix", text, found[1] if found else "", rank=100)


def _level(verdict: Verdict) -> Level:
    return "error" if verdict is Verdict.FAILED else "warning"


def _failure_annotations(
    failed: Iterable[ReportedFailure], lost: Collection[tuple[str, str]]
) -> Iterator[Annotation]:
    """Yield an annotation for each broken rule, listing the epochs and rows that broke the rule. ``lost``
    contains the scenarios in which more than half of the samples are inconclusive. Their annotations are
    errors instead of warnings, unless the failure is tolerated."""
    groups: dict[tuple[object, ...], list[tuple[ReportedFailure, Violation]]] = {}
    for failure in failed:
        occurrences: Counter[tuple[str, str]] = Counter()
        for violation in failure.violations:
            rule = (violation.name, violation.where)
            occurrences[rule] += 1  # equal names in one sample are separate rules
            key = (
                *template_key(failure.scenario_report),
                *rule,
                occurrences[rule],
                violation.verdict,
                failure.tolerated,
            )
            groups.setdefault(key, []).append((failure, violation))
    for group in groups.values():
        failure, violation = group[0]
        is_lost = any((other.scenario, other.agent) in lost for other, _ in group)
        several = _repeated([other for other, _ in group])
        yield _violation_annotation(failure, violation, several, is_lost=is_lost)


def _repeated(group: Sequence[ReportedFailure]) -> str:
    rows = list(dict.fromkeys(one_line(failure.scenario, 100) for failure in group))
    place = group[0].scenario_report.scenario.row
    epochs = sorted({failure.epoch for failure in group if failure.epoch is not None})
    if place:
        return f"\nin {plural(len(rows), 'row')} (first {place}): {', '.join(rows)}"
    return f"\nin epochs {', '.join(str(epoch + 1) for epoch in epochs)}" if len(epochs) > 1 else ""


def _violation_annotation(
    failure: ReportedFailure, violation: Violation, several: str, *, is_lost: bool
) -> Annotation:
    name = f"{failure.title}: {violation.name}{f' ({failure.why_tolerated})' if failure.tolerated else ''}"
    found = failure.sample.findings if failure.sample else ()
    return Annotation(
        level="notice" if failure.tolerated else "error" if is_lost else _level(violation.verdict),
        title=name,
        message=f"{shorten_message(reason(violation), _MESSAGE_LIMIT)}{several}\nre-run: {failure.repro}",
        where=violation.where if split_place(violation.where)[0] else failure.where,
        rank=10 + max((finding.severity.rank for finding in found), default=0),
    )


def _low_findings(report: Report) -> Iterator[Annotation]:
    """Yield an annotation for each finding below ``fail_on_severity``. Such findings do not make a sample
    fail; more severe findings are reported as violations."""
    bar = report.plan.suite.fail_on
    least = bar.rank if bar else len(Severity)
    several = report.has_several_agents
    for scenario in report.scenarios:
        for sample in scenario.samples:
            for finding in sample.findings:
                if finding.severity.rank < least:
                    yield Annotation(
                        level="notice" if finding.severity is Severity.LOW else "warning",
                        title=f"{title(scenario, sample.key, several_agents=several)}: {finding.label}",
                        message=finding_text(finding),
                        where=sample.record or scenario.scenario.source,
                        rank=finding.severity.rank,
                    )


def _low_issues(report: Report, decision: Decision) -> Iterator[Annotation]:
    """Yield one annotation for each issue that does not cause a failure, regardless of the number of turns in
    which the issue occurs."""
    places = {
        (each.key.scenario, each.key.agent, each.key.epoch, each.key.variant): each.record
        or s.scenario.source
        for s in report.scenarios
        for each in s.samples
    }
    for text in issues_text(report, decision):
        if not text.fails:
            issue = text.issue
            at = [
                (occurrence.scenario, occurrence.agent, occurrence.epoch, occurrence.variant)
                for occurrence in issue.occurrences
            ]
            quoted = f'"{text.evidence}"' if text.evidence else ""
            examples = f"examples: {'; '.join(text.examples)}" if text.examples else ""
            lines = (text.explanation, examples, quoted, *text.remarks)
            yield Annotation(
                level="notice" if text.severity is Severity.LOW else "warning",
                title=text.head,
                message="\n".join(line for line in lines if line) or text.title,
                where=next((places[place] for place in at if place in places), ""),
                rank=text.severity.rank,
            )


def _failed_judge_annotations(report: Report, decision: Decision) -> Iterator[Annotation]:
    """Yield one annotation for each cause of missing scores. Causes that a violation already reports are
    omitted."""
    reported_details = " ".join(
        violation.detail
        for decided in decision.samples.values()
        for violation in decided.violations
        if violation.name == "judge"
    )
    for judge in failed_judges(report):
        # A criterion that could not be judged is an undecided check, which has a violation of its own.
        if judge.full_message not in reported_details and judge.metrics != (CRITERIA,):
            reply_line = f"\nsaid: {one_line(judge.raw, 250)}" if judge.raw.strip() else ""
            yield Annotation(
                level="warning",
                title=f"{describe_missing_score(judge.missing_score)}: {judge.names}",
                message=f"{judge.message}\n{judge.where}; {judge.missing_score.remark}{reply_line}",
                where=judge.scenario.scenario.source if judge.scenario else "",
            )


def _capped(annotations: list[Annotation]) -> list[Annotation]:
    more = len(annotations) - MOST
    if more <= 0:
        return annotations
    level = annotations[0].level
    text = f"{more + 1} more {level} annotations are not shown; the step summary lists all failures."
    return [*annotations[: MOST - 1], Annotation(level, "agenteval", text)]


def _line(annotation: Annotation, root: str) -> str:
    file, line = relative_place(annotation.where, root)
    properties = {"file": file, "line": str(line) if line else "", "title": annotation.title}
    encoded = ",".join(
        f"{name}={github_property(value if name == 'file' else one_line(value, _TITLE_LIMIT))}"
        for name, value in properties.items()
        if value
    )
    message = shorten_message(annotation.message, _MESSAGE_LIMIT * 3)
    return f"::{annotation.level} {encoded}::{github_data(message)}"
