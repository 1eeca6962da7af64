"""``agenteval report``: the reports of a run once more, from its journal, even if the run was cut off."""

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
    """A run as its journal describes it."""

    report: Report
    decision: Decision
    folder: Path


def report(name: str, *, reports: Sequence[ReporterChoice] = (), detail: Detail = "usual") -> int:
    """Write the reports; without ``reports``, that of the terminal. Return the exit code that the run had, or
    would have had when it was cut off. Raise ``AuthorError`` if there is no such run or a report cannot be
    written."""
    kept = load_decided_run(name)
    targets = resolve_targets(Config(reporters=()), reports or (ReporterChoice(name="terminal"),))
    refuse_overwriting_inputs(targets, list_run_inputs(kept))
    called = runs.run_reference(kept.folder, runs_root())
    return write_reports(kept.report, kept.decision, targets, folder=kept.folder, detail=detail, name=called)


def list_run_inputs(kept: LoadedRun) -> Iterator[Path]:
    """Yield the journal and the files that the run was made from."""
    yield kept.folder / runs.JOURNAL_FILE
    yield from list_input_files(kept.report.run.config, kept.report.run.scenarios)


def load_decided_run(name: str) -> LoadedRun:
    """Load, fold and decide the run called ``name``. Raise ``AuthorError`` if there is none."""
    path = runs.find_run(name, runs_root())
    folded = reporting.build_report(add_missing_issues(runs.load_run(path)))
    return LoadedRun(folded, gates.decide(folded), path if path.is_dir() else path.parent)


def runs_root() -> Path:
    """Return the folder whose runs are used: that of the configuration, which is searched upward, or the
    working directory."""
    found = config_file.find_config(Path.cwd())
    return found.parent if found else Path.cwd()


def add_missing_issues(events: Sequence[Event]) -> Sequence[Event]:
    """Group the findings of a run that was killed before it could. Code does that here, as it does without a
    model."""
    marks = [event for event in events if isinstance(event, IssuesFound | RunResumed)]
    if marks and isinstance(marks[-1], IssuesFound):
        return events
    found = anyio.run(find_issues, reporting.build_report(events).scenarios)
    return (*events, found) if found else events
