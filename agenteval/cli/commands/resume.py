"""Implements ``agenteval run --resume RUN``: continues an interrupted run from its journal (checkpoint), in
the same folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from pathlib import Path

from agenteval import __version__
from agenteval.cli.commands.baseline_store import save_baseline
from agenteval.cli.commands.execution import execute, make_run_started, redact_run_started, utc_timestamp
from agenteval.cli.commands.interrupt import finish_on_interrupt
from agenteval.cli.commands.output import refuse_overwriting_inputs, resolve_targets, write_reports
from agenteval.cli.commands.report import runs_root
from agenteval.cli.registries import REGISTRIES
from agenteval.cli.safe_output import print_err
from agenteval.core.config import ReporterChoice
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import CallsSeen, Event, RunResumed, RunStarted
from agenteval.core.trajectory import CallEvidence
from agenteval.files import runs
from agenteval.files.journal import Journal, lock_run
from agenteval.files.runs import JOURNAL_FILE
from agenteval.planning.request import Request, restore_request
from agenteval.planning.run_files import list_input_files
from agenteval.planning.run_preparation import PreparedRun, prepare
from agenteval.reporters.options import Detail
from agenteval.verdict import gates
from agenteval.verdict import report as reporting
from agenteval.verdict.resumption import finished_samples, is_complete, list_changes

_MOST_REASONS = 12
_MAY_DIFFER = ("--resume", "--concurrency", "--report", "--verbose", "--quiet")
"""The options that do not affect the results of a run."""
_UNDO_OR_RESTART = "undo the change, or start a new run"


def resume(request: Request, *, reports: Sequence[ReporterChoice] = (), detail: Detail = "usual") -> int:
    """Resume an interrupted run from its journal (checkpoint) and return the exit code of the whole run.
    Raise ``AuthorError`` before anything is called if the resumed run would measure something different."""
    _refuse_settings(request)
    reports = [_with_absolute_path(choice) for choice in reports]
    folder = _folder(request.resume or "")
    with ExitStack() as ending:
        with redirect_stdout(sys.stderr), lock_run(folder):
            events = runs.load_run(folder)
            run = _require_resumable(events)
            prepared = None if is_complete(events) else _prepare_remaining(run, request, events)
            config = prepared.suite.settings.config if prepared else run.config
            scenarios = prepared.wired.scenarios if prepared else run.scenarios
            targets = resolve_targets(config, reports)
            refuse_overwriting_inputs(targets, (folder / JOURNAL_FILE, *list_input_files(config, scenarios)))
            if prepared is None:
                print_err(f"the run {run.run_id} is complete, so only its reports are rewritten")
                finished = reporting.build_report(events)
                decision = gates.decide(finished)
            else:
                _announce_resume(prepared, events)
                ending.enter_context(finish_on_interrupt())
                with Journal.reopen(folder / JOURNAL_FILE) as journal:
                    begin = RunResumed(at=utc_timestamp(), budget=prepared.suite.settings.public.budget)
                    finished, decision = execute(prepared, journal, begin, events)
                if prepared.suite.request.keep_baseline:
                    save_baseline(finished, folder, Path(config.root))
        called = runs.run_reference(folder, folder.parents[2])
        return write_reports(finished, decision, targets, folder=folder, detail=detail, name=called)


def _refuse_settings(request: Request) -> None:
    """Raise ``AuthorError`` for options that would change the run. These options are fixed when the run
    starts."""
    given = [name for name in request.options_given if name not in _MAY_DIFFER]
    if given:
        what = f"--resume uses the options of the run, so {', '.join(given)} cannot be set"
        raise AuthorError(Problem(what, "remove them, or start a new run"))


def _with_absolute_path(choice: ReporterChoice) -> ReporterChoice:
    """Make a report's path absolute before the run continues in its original working directory."""
    if not choice.path or choice.path == "-":
        return choice
    return choice.model_copy(update={"path": os.path.abspath(choice.path)})


def _folder(name: str) -> Path:
    found = runs.find_run(name, runs_root())
    if not found.is_dir() or not (found / JOURNAL_FILE).is_file():
        what = f"{found} is not a run folder"
        raise AuthorError(
            Problem(what, f"specify the run's id, or the folder that contains its {JOURNAL_FILE}")
        )
    return found.absolute()


def _require_resumable(events: Sequence[Event]) -> RunStarted:
    run = events[0]
    assert isinstance(run, RunStarted)
    if not run.request:
        what = f"the journal of the run {run.run_id} contains no request"
        raise AuthorError(
            Problem(what, "only runs started by this version of `agenteval run` can be resumed")
        )
    begun_by = run.versions.get("agenteval")
    if begun_by != __version__:
        what = f"the run {run.run_id} was started by agenteval {begun_by}, but this is {__version__}"
        raise AuthorError(Problem(what, "resume with that version, or start a new run"))
    return run


def _restore_working_directory(run: RunStarted) -> None:
    """Change to the original working directory of the run so that the agent finds its files."""
    try:
        os.chdir(run.request["cwd"])
    except OSError as error:
        what = f"the working directory of the run, {run.request['cwd']}, cannot be used: {error.strerror}"
        raise AuthorError(Problem(what, "start a new run")) from None


def _prepare_remaining(run: RunStarted, request: Request, events: Sequence[Event]) -> PreparedRun:
    """Prepare the rest of the run. Raise ``AuthorError`` with a list of changes if anything has changed since
    the run started."""
    _restore_working_directory(run)
    wanted = restore_request(run)
    wanted = replace(wanted, flags={**wanted.flags, **request.flags}, visibility=dict(run.plan.visibility))
    prepared = prepare(wanted, REGISTRIES)
    # The journal has no secrets, so that they must not count as changes here.
    reasons = list_changes(run, redact_run_started(prepared, make_run_started(prepared)))
    if reasons:
        problems = [Problem(f"the run {run.run_id} cannot be resumed: {reasons[0]}", _UNDO_OR_RESTART)]
        problems += [Problem(f"also: {reason}") for reason in reasons[1:_MOST_REASONS]]
        if len(reasons) > _MOST_REASONS:
            problems.append(Problem(f"and {len(reasons) - _MOST_REASONS} more"))
        raise AuthorError(*problems)
    return _with_evidence(prepared, events)


def _with_evidence(prepared: PreparedRun, events: Sequence[Event]) -> PreparedRun:
    """Add the evidence of tool-call visibility that the finished part of the run collected."""
    evidence: dict[str, set[CallEvidence]] = {}
    for event in events:
        if isinstance(event, CallsSeen):
            evidence.setdefault(event.agent, set()).add(event.evidence)
    wired = prepared.wired
    return replace(prepared, wired=replace(wired, runtime=replace(wired.runtime, evidence=evidence)))


def _announce_resume(prepared: PreparedRun, events: Sequence[Event]) -> None:
    run = _require_resumable(events)
    done, planned = len(finished_samples(events)), len(prepared.wired.samples)
    print_err(f"resuming {run.run_id}: {done:,} of {max(done, planned):,} samples are done")
    if run.request["record"]:
        print_err(f"agenteval: the recording ends where the run was interrupted: {run.request['record']}")
    if ledger := prepared.wired.resources.traffic.ledger:
        for line in reporting.build_report(events).ledger:
            ledger.carry_over(line.usage, line.role)
