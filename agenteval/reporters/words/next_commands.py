"""What to do when a run is over: the commands, ready to be pasted."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.score import Verdict
from agenteval.files.runs import brief_name
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.repeat_command import again, command_of
from agenteval.reporters.words.selection import is_recorded, show_command
from agenteval.verdict.report import Report

DETAILS = "Details"
_NOT_ITS_FAULT = ("infrastructure", "judge", "simulator")


def _can_go_on(report: Report) -> bool:
    """Whether it was cut off, so that nothing has to be run twice."""
    is_cut_off = report.finished is None or report.finished.outcome in ("interrupted", "budget", "deadline")
    return is_cut_off and bool(report.run.request)


def next_commands(facts: Facts, run: str = "") -> Iterator[tuple[str, str]]:
    """A word for what it does, and the command. ``run``: its name, if it is not the latest."""
    report, groups = facts.report, facts.decisive
    if facts.decision.verdict is Verdict.PASSED or not groups:
        if report.samples:
            yield DETAILS, command_of(["agenteval", "report", run or "latest", "-v"])
        return
    name = run if run not in ("", report.run.run_id) else brief_name(report.run.run_id)
    if _can_go_on(report):
        yield "Go on", command_of(["agenteval", "run", "--resume", name])
    else:
        yield "Re-run", groups[0][0].repro if is_recorded(report) else again(report.run, name)
    if all(failure.fault in _NOT_ITS_FAULT for group in groups for failure in group[:1]):
        yield "Check", "agenteval doctor"
    else:
        yield "Inspect", show_command(groups[0][0], run)
