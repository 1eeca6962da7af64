"""Implements ``agenteval run`` (the run command): runs the test suite, writes the journal and the reports,
and returns the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

from agenteval.cli.commands.output import refuse_overwriting_inputs, resolve_targets, write_reports
from agenteval.cli.commands.resume import resume
from agenteval.cli.progress import TerminalObserver
from agenteval.core.config import ReporterChoice
from agenteval.planning.request import Request
from agenteval.planning.run_files import list_input_files
from agenteval.planning.run_preparation import prepare
from agenteval.reporters.options import Detail
from agenteval.running.interrupt import finish_on_interrupt
from agenteval.running.live_run import plan_start, play
from agenteval.running.registries import REGISTRIES


def run(
    request: Request,
    *,
    reports: Sequence[ReporterChoice] = (),
    detail: Detail = "usual",
    opens: bool = False,
) -> int:
    """Run scenarios against the agent and return the exit code. If ``opens`` is True, the HTML report is
    opened in a browser. Output printed by the author's code is redirected to stderr, because stdout is
    reserved for results."""
    if request.resume is not None:
        return resume(request, reports=reports, detail=detail, opens=opens)
    observer = TerminalObserver()
    with redirect_stdout(sys.stderr):
        prepared = prepare(request, REGISTRIES)
        config = prepared.suite.settings.config
        # The modules of reporters do not affect the results, so they are loaded after the start of the run
        # is planned: a change in them does not prevent a resume.
        started = plan_start(prepared, observer)
        targets = resolve_targets(config, reports)
        inputs = list_input_files(config, prepared.wired.scenarios, cwd=request.cwd)
        refuse_overwriting_inputs(targets, inputs)
        if profile := prepared.plan.suite.profile:
            observer.show_line(f"profile {profile}")
    with finish_on_interrupt():
        with redirect_stdout(sys.stderr):
            played = play(prepared, started, observer)
        return write_reports(
            played.report, played.decision, targets, folder=played.folder, detail=detail, opens=opens
        )
