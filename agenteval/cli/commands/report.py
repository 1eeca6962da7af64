"""``agenteval report``: every report of a run again, from its journal, whole or broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio

from agenteval.cli.commands.output import require_apart, targets_of, write_reports
from agenteval.core.config import Config, ReporterChoice
from agenteval.core.decision import Decision
from agenteval.core.event import Event, IssuesFound, RunResumed
from agenteval.files import config_file, runs
from agenteval.planning.run_files import files_read
from agenteval.reporters.options import Detail
from agenteval.scoring.issues import find_issues
from agenteval.verdict import gates
from agenteval.verdict import report as reporting
from agenteval.verdict.report import Report


class KeptRun(NamedTuple):
    """A run as its journal has it."""

    report: Report
    decision: Decision
    folder: Path


def report(name: str, *, reports: Sequence[ReporterChoice] = (), detail: Detail = "usual") -> int:
    """Write the reports (without any: the terminal's); returns the exit code that the run had, or would
    have had when it was cut off. Raises ``AuthorError``."""
    kept = kept_run(name)
    targets = targets_of(Config(reporters=()), reports or (ReporterChoice(name="terminal"),))
    require_apart(targets, read_by(kept))
    called = runs.name_of(kept.folder, runs_root())
    return write_reports(kept.report, kept.decision, targets, folder=kept.folder, detail=detail, name=called)


def read_by(kept: KeptRun) -> Iterator[Path]:
    """The journal, and the files that the run was made from."""
    yield kept.folder / runs.JOURNAL
    yield from files_read(kept.report.run.config, kept.report.run.scenarios)


def kept_run(name: str) -> KeptRun:
    """The run that ``name`` means, folded and decided. Raises ``AuthorError``."""
    path = runs.find_run(name, runs_root())
    folded = reporting.fold(with_issues(runs.load_run(path)))
    return KeptRun(folded, gates.decide(folded), path if path.is_dir() else path.parent)


def runs_root() -> Path:
    """The folder whose runs are meant: the configuration's, found upward, or the working directory."""
    found = config_file.find_config(Path.cwd())
    return found.parent if found else Path.cwd()


def with_issues(events: Sequence[Event]) -> Sequence[Event]:
    """A run that was killed never grouped its findings: here code does, as it does without a model."""
    marks = [event for event in events if isinstance(event, IssuesFound | RunResumed)]
    if marks and isinstance(marks[-1], IssuesFound):
        return events
    found = anyio.run(find_issues, reporting.fold(events).scenarios)
    return (*events, found) if found else events
