"""Implements ``agenteval run --resume RUN``: continues an interrupted run from its journal (checkpoint), in
the same folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.cli.commands.output import refuse_overwriting_inputs, resolve_targets, write_reports
from agenteval.cli.progress import TerminalObserver
from agenteval.conversation.exits import EXIT_UNDECIDED
from agenteval.core.config import ReporterChoice
from agenteval.core.errors import AuthorError, Problem
from agenteval.files import runs
from agenteval.files.runs import JOURNAL_FILE
from agenteval.planning.request import Request
from agenteval.planning.run_files import list_input_files
from agenteval.reporters.options import Detail
from agenteval.running.interrupt import finish_on_interrupt
from agenteval.running.live_run import Resumable, count_done, play_remaining, reopen
from agenteval.running.observer import Observer
from agenteval.running.stored_runs import runs_root

if TYPE_CHECKING:
    from agenteval.cli.commands.record_tools import ToolRecordingFile

_MAY_DIFFER = (
    *("--resume", "--concurrency", "--backend", "--report", "--open", "--verbose", "--quiet"),
    "--record-tools",
)
"""The options that do not affect the results of a run."""


def resume(
    request: Request,
    *,
    reports: Sequence[ReporterChoice] = (),
    detail: Detail = "usual",
    opens: bool = False,
    record_tools: Path | None = None,
) -> int:
    """Resume an interrupted run from its journal (checkpoint) and return the exit code of the whole run.
    ``record_tools`` is the file for the answers of the agent's own tools in the whole run. Raise
    ``AuthorError`` before anything is called if the resumed run would measure something different."""
    _refuse_settings(request)
    reports = [_with_absolute_path(choice) for choice in reports]
    folder = _folder(request.resume or "")
    observer = TerminalObserver()
    with ExitStack() as ending:
        with redirect_stdout(sys.stderr), reopen(folder, request.flags, request.backend) as resumable:
            targets = resolve_targets(resumable.config, reports)
            cwd = resumable.started.request["cwd"]
            inputs = list_input_files(resumable.config, resumable.scenarios, cwd=cwd)
            refuse_overwriting_inputs(targets, (folder / JOURNAL_FILE, *inputs))
            tools_file = _open_tool_recording(record_tools, resumable) if record_tools else None
            if tools_file:
                tools_file.refuse_reports(targets)
            _announce_resume(resumable, observer, records_tools=tools_file is not None)
            if resumable.prepared:
                ending.enter_context(finish_on_interrupt())
            with tools_file.written_at_end() if tools_file else nullcontext():
                also = (tools_file.recorder,) if tools_file else ()
                played = play_remaining(resumable, observer, also=also)
        called = runs.run_reference(folder, folder.parents[2])
        code = write_reports(
            played.report,
            played.decision,
            targets,
            folder=folder,
            detail=detail,
            name=called,
            opens=opens,
        )
        return code or (EXIT_UNDECIDED if tools_file and tools_file.has_failed else 0)


def _open_tool_recording(path: Path, resumable: Resumable) -> ToolRecordingFile:
    from agenteval.cli.commands.record_tools import ToolRecordingFile

    prepared = resumable.prepared  # None for a complete run, whose agents are not created again
    agent_tools = prepared.wired.resources.agent_tools if prepared else {}
    return ToolRecordingFile(path, resumable.config, resumable.started.plan.agents, agent_tools)


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


def _announce_resume(resumable: Resumable, observer: Observer, *, records_tools: bool) -> None:
    run = resumable.started
    if resumable.prepared is None:
        observer.show_line(f"the run {run.run_id} is complete, so only its reports are rewritten")
        return
    done, planned = count_done(resumable)
    observer.show_line(f"resuming {run.run_id}: {done:,} of {planned:,} samples are done")
    if run.request["record"]:
        observer.show_line(
            f"agenteval: the recording ends where the run was interrupted: {run.request['record']}"
        )
    if not records_tools and any(each.startswith("--record-tools") for each in run.command):
        observer.show_line(
            "agenteval: tools are no longer recorded; add --record-tools FILE for the whole run"
        )
