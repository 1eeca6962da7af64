"""Render a full report as GitHub Flavored Markdown (the Markdown report), or a short report for a step
summary.

Text written by an agent, a tool or a model is fenced or escaped, so that markup, HTML, links, images and
mentions in the text have no effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from agenteval.core.decision import Decision
from agenteval.core.plurals import plural
from agenteval.core.safe_text import escape_markdown, fence, one_line, one_line_message
from agenteval.reporters.markdown.sections import caveats_to_markdown, section_to_markdown
from agenteval.reporters.markdown.table import FULL_EXTENT, MARKS, ReportExtent, more_line, verdict_sign
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.failures import sort_failures
from agenteval.reporters.sections.report_sections import MEASURES, RESULTS
from agenteval.reporters.sections.section import Section
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import ReportedFailure, planned, reason_lines
from agenteval.reporters.words.places import shown_places
from agenteval.reporters.words.verdict import ends_text
from agenteval.verdict.report import Report

WHOLE = ReportExtent(rows=5000, failures=200, characters=5_000_000)
SUMMARY = ReportExtent(rows=50, failures=10, characters=300_000, passed=False)  # GitHub accepts at most 1 MiB


def render(report: Report, decision: Decision, options: ReportOptions) -> str:
    """Render the report as a Markdown document."""
    return document(report, decision, options, FULL_EXTENT if options.verbose else WHOLE)


def document(report: Report, decision: Decision, options: ReportOptions, extent: ReportExtent) -> str:
    """Render the sections that apply to the run, separated by empty lines."""
    facts = Facts(report, decision)
    sections = [
        *_head(facts),
        *_author_errors(decision),
        *_printed(RESULTS, facts, extent, options),
        *_failures(facts, options, extent),
        *_printed(MEASURES, facts, extent, options),
        *_notices(report, extent),
        *_foot(report, options),
    ]
    return "\n\n".join(sections) + "\n"


def _printed(
    makers: Iterable[Callable[[Facts], Iterator[Section]]],
    facts: Facts,
    extent: ReportExtent,
    options: ReportOptions,
) -> Iterator[str]:
    for make in makers:
        for section in make(facts):
            yield from section_to_markdown(section, extent, options.root)


def _head(facts: Facts) -> Iterator[str]:
    report, decision = facts.report, facts.decision
    yield f"# {verdict_sign(decision)} agenteval: {decision.verdict_label}"
    samples = sum(len(planned(scenario)) for scenario in report.scenarios)
    elapsed = f" · {report.finished.elapsed_s:.1f} s" if report.finished else ""
    many = f"{escape_markdown(ends_text(facts))} · {plural(samples, 'sample')}"
    yield f"{many} · exit code {decision.exit_code}{elapsed}"
    if profile := report.plan.suite.profile:
        yield f"Profile {escape_markdown(profile)}."
    missing = sum(len(scenario.missing) for scenario in report.scenarios)
    if report.finished is None or report.finished.outcome != "complete":
        why = report.finished.outcome if report.finished else "the run was cut off"
        yield f"**Not complete** ({escape_markdown(why)}): {plural(missing, 'planned sample')} never ran."
    yield from caveats_to_markdown(facts)


def _author_errors(decision: Decision) -> Iterator[str]:
    if decision.author_errors:
        yield "## To fix in the scenarios or the configuration"
        yield "\n".join(
            f"- {escape_markdown(one_line_message(text, 1000))}" for text in decision.author_errors
        )


def _failures(facts: Facts, options: ReportOptions, extent: ReportExtent) -> Iterator[str]:
    failed = sort_failures(facts)
    if not failed:
        return
    yield "## Failures"
    shown = size = 0
    for failure in failed[: extent.failures]:
        text = "\n\n".join(_failure(failure, options))
        size += len(text)
        if shown and size > extent.characters:
            break
        shown += 1
        yield text
    yield from filter(None, [more_line(len(failed) - shown, "failure")])


def _failure(failure: ReportedFailure, options: ReportOptions) -> Iterator[str]:
    tolerated = f" ({failure.why_tolerated})" if failure.tolerated else ""
    yield f"### {MARKS[failure.verdict]} {escape_markdown(failure.title)}: {failure.verdict}{tolerated}"
    places = shown_places((failure.where, failure.scenario_report.scenario.row), options.root)
    yield f"at {escape_markdown(places)}"
    if note := one_line(failure.scenario_report.scenario.note or "", 1000):
        yield f"Note: {escape_markdown(note)}"
    yield fence("\n".join(reason_lines(failure, options.root)))
    yield fence(failure.repro, "sh")
    if transcript := failure.transcript:
        yield "<details><summary>Transcript</summary>"
        yield fence("\n".join(map(str, transcript)))
        yield "</details>"


def _notices(report: Report, extent: ReportExtent) -> Iterator[str]:
    if report.notices:
        yield "## Notices"
        shown = report.notices[: extent.rows]
        yield "\n".join(
            f"- {notice.level}: {escape_markdown(one_line_message(notice.text, 1000))}" for notice in shown
        )
        yield from filter(None, [more_line(len(report.notices) - extent.rows, "notice")])


def _foot(report: Report, options: ReportOptions) -> Iterator[str]:
    facts = [f"run {report.run.run_id}", f"started {report.run.started_at}", f"seed {report.plan.suite.seed}"]
    if report.run.commit:
        facts.append(f"commit {report.run.commit[:12]}{', changed since' if report.run.dirty else ''}")
    facts += [f"{name} {version}" for name, version in report.run.versions.items()]
    facts += [f"journal {options.journal}"] if options.journal else []
    yield "---"
    yield " · ".join(escape_markdown(one_line(fact, 300)) for fact in facts)
