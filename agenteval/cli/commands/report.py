"""Implements ``agenteval report``: writes the reports of a run again from its journal, even if the run was
interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agenteval.cli.commands.output import refuse_overwriting_inputs, resolve_targets, write_reports
from agenteval.core.config import Config, ReporterChoice
from agenteval.files import runs
from agenteval.reporters.options import Detail
from agenteval.running.stored_runs import DecidedRun, list_run_inputs, load_decided_run, runs_root


def report(
    name: str, *, reports: Sequence[ReporterChoice] = (), detail: Detail = "usual", opens: bool = False
) -> int:
    """Write the reports of a run, or only the terminal report if ``reports`` is empty. Return the exit code
    of the run. For an interrupted run, this is the exit code at the point of interruption. Raise
    ``AuthorError`` if there is no such run or a report cannot be written."""
    kept = load_decided_run(name)
    config = Config(reporters=(), root=_find_root(kept))
    targets = resolve_targets(config, reports or (ReporterChoice(name="terminal"),))
    refuse_overwriting_inputs(targets, list_run_inputs(kept))
    called = runs.run_reference(kept.folder, runs_root())
    return write_reports(
        kept.report, kept.decision, targets, folder=kept.folder, detail=detail, name=called, opens=opens
    )


def _find_root(kept: DecidedRun) -> str:
    """Return the folder of the run's configuration, or the working directory if this folder does not exist,
    because the run was played on another machine."""
    root = kept.report.run.config.root
    return root if Path(root).is_dir() else str(Path.cwd())
