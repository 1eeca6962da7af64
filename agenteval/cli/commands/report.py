"""Implements ``agenteval report``: writes the reports of a run again from its journal, even if the run was
interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio

from agenteval.cli.commands.output import refuse_overwriting_inputs, resolve_targets, write_reports
from agenteval.core.config import Config, ReporterChoice
from agenteval.core.decision import Decision
from agenteval.core.event import Event, IssuesFound, RunResumed
from agenteval.files import config_file, runs
from agenteval.planning.run_files import list_input_files
from agenteval.reporters.options import Detail
from agenteval.scoring.issues import find_issues
from agenteval.verdict import gates
from agenteval.verdict import report as reporting
from agenteval.verdict.report import Report


class LoadedRun(NamedTuple):
    """A run loaded from its journal."""

    report: Report
    decision: Decision
    folder: Path


def report(name: str, *, reports: Sequence[ReporterChoice] = (), detail: Detail = "usual") -> int:
    """Write the reports of a run, or only the terminal report if ``reports`` is empty. Return the exit code
    of the run. For an interrupted run, this is the exit code at the point of interruption. Raise
    ``AuthorError`` if there is no such run or a report cannot be written."""
    kept = load_decided_run(name)
    targets = resolve_targets(Config(reporters=()), reports or (ReporterChoice(name="terminal"),))
    refuse_overwriting_inputs(targets, list_run_inputs(kept))
    called = runs.run_reference(kept.folder, runs_root())
    return write_reports(kept.report, kept.decision, targets, folder=kept.folder, detail=detail, name=called)


def list_run_inputs(kept: LoadedRun) -> Iterator[Path]:
    """Yield the journal and the input files of a run."""
    yield kept.folder / runs.JOURNAL_FILE
    yield from list_input_files(kept.report.run.config, kept.report.run.scenarios)


def load_decided_run(name: str) -> LoadedRun:
    """Load the run called ``name`` from its journal, and decide the verdict of the run. Raise ``AuthorError``
    if there is no such run."""
    path = runs.find_run(name, runs_root())
    folded = reporting.build_report(add_missing_issues(runs.load_run(path)))
    return LoadedRun(folded, gates.decide(folded), path if path.is_dir() else path.parent)


def runs_root() -> Path:
    """Return the folder whose runs are used. It is the folder of the nearest configuration in the working
    directory or its parents, or the working directory itself if there is no configuration."""
    found = config_file.find_config(Path.cwd())
    return found.parent if found else Path.cwd()


def add_missing_issues(events: Sequence[Event]) -> Sequence[Event]:
    """Group the findings of a run that was killed before its findings were grouped. The findings are grouped
    by code alone, as in a run without a model."""
    marks = [event for event in events if isinstance(event, IssuesFound | RunResumed)]
    if marks and isinstance(marks[-1], IssuesFound):
        return events
    found = anyio.run(find_issues, reporting.build_report(events).scenarios)
    return (*events, found) if found else events
