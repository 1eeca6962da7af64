"""Implements ``agenteval run`` (the run command): runs the test suite, writes the journal and the reports,
and returns the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from agenteval.cli.commands.baseline import attach_baseline
from agenteval.cli.commands.baseline_store import NoBaselineError, save_baseline
from agenteval.cli.commands.execution import execute, make_run_folder, make_run_started, redact_run_started
from agenteval.cli.commands.interrupt import finish_on_interrupt
from agenteval.cli.commands.output import refuse_overwriting_inputs, resolve_targets, write_reports
from agenteval.cli.commands.resume import resume
from agenteval.cli.registries import REGISTRIES
from agenteval.cli.safe_output import print_err
from agenteval.core.config import ReporterChoice
from agenteval.core.decision import Decision
from agenteval.core.event import RunStarted
from agenteval.files.journal import Journal, lock_run
from agenteval.files.runs import JOURNAL_FILE
from agenteval.planning.request import Request
from agenteval.planning.run_files import list_input_files
from agenteval.planning.run_preparation import PreparedRun, prepare
from agenteval.reporters.options import Detail
from agenteval.verdict.report import Report


def run(request: Request, *, reports: Sequence[ReporterChoice] = (), detail: Detail = "usual") -> int:
    """Run scenarios against the agent and return the exit code. Output printed by the author's code is
    redirected to stderr, because stdout is reserved for results."""
    if request.resume is not None:
        return resume(request, reports=reports, detail=detail)
    with redirect_stdout(sys.stderr):
        prepared = prepare(request, REGISTRIES)
        config = prepared.suite.settings.config
        targets = resolve_targets(config, reports)
        refuse_overwriting_inputs(targets, list_input_files(config, prepared.wired.scenarios))
        if profile := prepared.plan.suite.profile:
            print_err(f"profile {profile}")
        started = _with_baseline(prepared, make_run_started(prepared))
    with finish_on_interrupt():
        with redirect_stdout(sys.stderr):
            finished, decision, folder = _run(prepared, started)
            if prepared.suite.request.keep_baseline:
                save_baseline(finished, folder, Path(config.root))
        return write_reports(finished, decision, targets, folder=folder, detail=detail)


def _with_baseline(prepared: PreparedRun, started: RunStarted) -> RunStarted:
    """Add the results of the baseline run. The comparison uses the redacted event, because the baseline's
    journal does not contain secrets. Raise ``AuthorError`` if there is no such run."""
    request = prepared.suite.request
    if request.baseline is None:
        return started
    root = Path(started.config.root)
    try:
        written = redact_run_started(prepared, started)
        compared = attach_baseline(written, request.baseline, root, selected=started.is_selection)
        return started.model_copy(update={"baseline": compared.baseline})
    except NoBaselineError as missing:
        print_err(f"warning: {missing}")
        return started.model_copy(update={"no_baseline": str(missing)})


def _run(prepared: PreparedRun, run: RunStarted) -> tuple[Report, Decision, Path]:
    folder = make_run_folder(Path(prepared.suite.settings.config.root), run.run_id)
    with lock_run(folder), Journal(folder / JOURNAL_FILE) as journal:
        finished, decision = execute(prepared, journal, run)
    return finished, decision, folder
