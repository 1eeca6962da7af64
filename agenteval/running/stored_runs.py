"""Loads a stored run from its journal and decides its verdict, even if the run was interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import anyio

from agenteval.core.decision import Decision
from agenteval.files import config_file, runs
from agenteval.planning.run_files import list_input_files
from agenteval.scoring.issues import find_issues
from agenteval.verdict import gates
from agenteval.verdict.report import Fold, Report, fold_run


class DecidedRun(NamedTuple):
    """The report of a run, its decision, and the folder of the run."""

    report: Report
    decision: Decision
    folder: Path


def load_decided_run(name: str) -> DecidedRun:
    """Load the run called ``name`` from its journal, and decide the verdict of the run. Raise ``AuthorError``
    if there is no such run."""
    return decide_stored_run(runs.find_run(name, runs_root()))


def decide_stored_run(path: Path) -> DecidedRun:
    """Load a run from its folder or its journal, and decide its verdict. Raise ``AuthorError`` if the journal
    cannot be read."""
    report = fold_with_issues(runs.StoredRun(path)).report()
    return DecidedRun(report, gates.decide(report), path if path.is_dir() else path.parent)


def list_run_inputs(kept: DecidedRun) -> Iterator[Path]:
    """Yield the journal and the input files of a run."""
    yield kept.folder / runs.JOURNAL_FILE
    run = kept.report.run
    cwd = run.request.get("cwd", run.config.root)  # the journal of a score does not contain it
    yield from list_input_files(run.config, run.scenarios, cwd=cwd)


def runs_root() -> Path:
    """Return the folder whose runs are used. It is the folder of the nearest configuration in the working
    directory or its parents, or the working directory itself if there is no configuration."""
    found = config_file.find_config(Path.cwd())
    return found.parent if found else Path.cwd()


def fold_with_issues(run: runs.StoredRun) -> Fold:
    """Take in the events of a run, and group its findings if it was killed before they were grouped. They are
    grouped by code alone, as in a run without a model."""
    fold = fold_run(run)
    if fold.lacks_issues:
        report = fold.report()
        if any(sample.findings for sample in report.samples):
            found = anyio.run(find_issues, report.scenarios)
            assert found is not None  # there is a finding
            fold.add(found)
    return fold
