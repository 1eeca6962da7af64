"""What changes the meaning of a verdict, a line each: nobody is to read a green without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from agenteval.core.decision import Decision
from agenteval.core.errors import split_remedy
from agenteval.core.safe_text import one_line
from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.accepted import accepted_lines
from agenteval.reporters.terminal.cells import LABEL, UNDECIDED, advised, labelled, whole
from agenteval.reporters.terminal.gates import brief_error_rates, flaky_text
from agenteval.reporters.words.calls_seen import unseen_lines
from agenteval.reporters.words.failure import failures, gist
from agenteval.reporters.words.judge import (
    broken_judges,
    overridden_text,
    refusals,
    second_opinions_text,
    simulation_text,
)
from agenteval.reporters.words.score_cells import columns
from agenteval.reporters.words.selection import selectors
from agenteval.reporters.words.verdict import resolutions
from agenteval.verdict.report import Report

MOST = 5
"""Warnings, and of accepted failures; all of them are told with ``verbose``."""


def remarks(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    """Warnings, accepted failures, judges that failed, scripted replies, and what else a reader of the
    verdict must know."""
    told = list(_remarks(report, decision))
    for label, text in told:
        style = UNDECIDED if label in _LOUD else ""
        room = options.width - LABEL
        lines = advised(*split_remedy(text), room, _LINES) if label in _QUOTING else whole(text, room)
        for number, line in enumerate(lines):
            yield labelled(label if not number else "", line, style)
    if told:
        yield Text()


_LINES = 3
_QUOTING = ("lost", "no score")
"""Words of others may be cut; all else is ours."""
_LOUD = ("warning", "error", "accepted", "no score")


def _lost(report: Report, decision: Decision) -> Iterator[str]:
    """Conversations that were not decided and that the run passes without: its list does not have them."""
    if decision.verdict is Verdict.PASSED or decision.is_reported:
        names = selectors(report)
        for failure in failures(report, decision):
            if failure.tolerated and failure.verdict is Verdict.INCONCLUSIVE:
                yield f"{names[failure.scenario]}  {gist(failure.violations[0])}"


def _remarks(report: Report, decision: Decision) -> Iterator[tuple[str, str]]:
    notices = Counter((n.level, n.text, n.key) for n in report.notices if n.level != "info")
    yield from _few(
        (level, f"{text}{f' ({key})' if key else ''}{f' (×{times})' if times > 1 else ''}")
        for (level, text, key), times in notices.items()
    )
    yield from _few(("lost", line) for line in _lost(report, decision))
    yield from _few(("calls", line) for line in unseen_lines(report))
    yield from _few(("accepted", line) for line in accepted_lines(decision))
    for judge in broken_judges(report, together=True)[:MOST]:
        yield "no score", f"{judge.names}: {judge.message} ({judge.where})"
    if refusals(report):
        yield "user", simulation_text(report)
    if flaky := flaky_text(report, decision):
        yield "flaky", flaky
    if rates := brief_error_rates(report, decision):
        yield "error rates", rates
    scored = {column.name for column in columns(report)}
    if names := [one_line(name, 80) for name in decision.ungated if name not in scored]:
        yield "ungated", f"{', '.join(names)}: gates nothing"
    if not report.plan.corroborate and (told := second_opinions_text(report)):
        yield "judges", told
    if own := overridden_text(report):
        yield "note", own
    yield from (("to decide", line) for line in resolutions(decision))
    if report.scripted:
        yield "scripted", "no language model was called: fixed replies, which measure nothing"


def _few(lines: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    told = list(lines)
    yield from told[:MOST]
    if len(told) > MOST:
        yield told[MOST][0], f"… and {len(told) - MOST:,} more; -v lists them"


def mistakes(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    """The author's, in full: nothing is known before they are corrected."""
    for error in decision.author_errors:
        # Each line is indented: none of them can pass for one of ours.
        for number, line in enumerate(whole(error, options.width - LABEL)):
            yield labelled("" if number else "error", line, "red")
    if decision.author_errors:
        yield Text()
