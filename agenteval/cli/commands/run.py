"""``agenteval run``: run the plan, keep the journal, decide, write the reports, say the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from agenteval.cli.commands.baseline import with_baseline
from agenteval.cli.commands.execution import as_written, execute, new_folder, started_of
from agenteval.cli.commands.interrupt import completing
from agenteval.cli.commands.kept_baselines import NoBaselineError, keep
from agenteval.cli.commands.output import require_apart, targets_of, write_reports
from agenteval.cli.commands.resume import resume
from agenteval.cli.known import KNOWN
from agenteval.cli.way_out import say
from agenteval.core.config import ReporterChoice
from agenteval.core.decision import Decision
from agenteval.core.event import RunStarted
from agenteval.files.journal import Journal, locked
from agenteval.files.runs import JOURNAL
from agenteval.planning.prepare import Prepared, prepare
from agenteval.planning.request import Request
from agenteval.planning.run_files import files_read
from agenteval.reporters.options import Detail
from agenteval.verdict.report import Report


def run(request: Request, *, reports: Sequence[ReporterChoice] = (), detail: Detail = "usual") -> int:
    """Returns the exit code. What the author's code prints goes to stderr: stdout is for results."""
    if request.resume is not None:
        return resume(request, reports=reports, detail=detail)
    with redirect_stdout(sys.stderr):
        prepared = prepare(request, KNOWN)
        config = prepared.suite.settings.config
        targets = targets_of(config, reports)
        require_apart(targets, files_read(config, prepared.wired.scenarios))
        if profile := prepared.plan.suite.profile:
            say(f"profile {profile}")
        started = _compared(prepared, started_of(prepared))
    with completing():
        with redirect_stdout(sys.stderr):
            finished, decision, folder = _run(prepared, started)
            if prepared.suite.request.keep_baseline:
                keep(finished, folder, Path(config.root))
        return write_reports(finished, decision, targets, folder=folder, detail=detail)


def _compared(prepared: Prepared, started: RunStarted) -> RunStarted:
    """With what is known of the baseline, whose journal has no secret. Raises ``AuthorError`` for one that is
    none."""
    request = prepared.suite.request
    if request.baseline is None:
        return started
    root = Path(started.config.root)
    try:
        written = as_written(prepared, started)
        compared = with_baseline(written, request.baseline, root, selected=started.is_selection)
        return started.model_copy(update={"baseline": compared.baseline})
    except NoBaselineError as missing:
        say(f"warning: {missing}")
        return started.model_copy(update={"no_baseline": str(missing)})


def _run(prepared: Prepared, run: RunStarted) -> tuple[Report, Decision, Path]:
    folder = new_folder(Path(prepared.suite.settings.config.root), run.run_id)
    with locked(folder), Journal(folder / JOURNAL) as journal:
        finished, decision = execute(prepared, journal, run)
    return finished, decision, folder
