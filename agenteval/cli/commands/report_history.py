"""Implements ``agenteval report --history``: shows the latest runs of the suite, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agenteval.cli.commands.output import (
    parse_reporters_with,
    refuse_overwriting_inputs,
    resolve_targets,
    write_rendered,
)
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Problem
from agenteval.reporters.sections.history import left_out_lines
from agenteval.running.garbage_collection import reduce_garbage_collection
from agenteval.running.run_history import MOST_RUNS, load_history
from agenteval.running.stored_runs import runs_root
from agenteval.verdict.history import RunHistory


def report_history(most: int = MOST_RUNS, *, reports: Sequence[str] = ()) -> int:
    """Write the history of the latest ``most`` runs. Return 0, because a history decides nothing, or 3 if a
    report cannot be written. Raise ``AuthorError`` if there is no run of the suite."""
    targets = resolve_targets(Config(reporters=()), parse_reporters_with("history", reports))
    root = runs_root()
    with reduce_garbage_collection():
        history, inputs = load_history(root, most)
    if not history.points:
        raise AuthorError(_no_runs(history, root))
    refuse_overwriting_inputs(targets, inputs)
    return 0 if write_rendered(targets, "history", history) else 3


def _no_runs(history: RunHistory, root: Path) -> Problem:
    place = root / ".agenteval" / "runs"
    if not history.left_out:
        return Problem(f"there is no history: {place} contains no runs", "start one with `agenteval run`")
    reasons = "; ".join(left_out_lines(history))
    what = f"there is no history: {place} contains no run of the whole suite ({reasons})"
    return Problem(what, "start one with `agenteval run`")
