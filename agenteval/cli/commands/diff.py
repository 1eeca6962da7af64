"""Implements ``agenteval diff``, the command to compare runs scenario by scenario. The exit code indicates a
regression."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agenteval.cli.commands.output import (
    parse_reporters_with,
    refuse_overwriting_inputs,
    resolve_targets,
    write_rendered,
)
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError
from agenteval.core.event import RunStarted
from agenteval.core.run_summary import RunSummary
from agenteval.files import runs
from agenteval.running.stored_runs import StoredReport, list_run_inputs, load_stored_report, runs_root
from agenteval.verdict import gates
from agenteval.verdict.accepted_failures import apply_accept_list
from agenteval.verdict.comparison import MARGIN, FailureState, RunComparison, compare_runs
from agenteval.verdict.digest import failures_in, summary_of
from agenteval.verdict.report import fold_run

MOST_EARLIER = 20
"""The number of runs before the baseline to search for earlier occurrences of each failure."""


def diff(
    before: str,
    after: str,
    *,
    margin: float = MARGIN,
    reports: Sequence[str] = (),
    verbose: bool = False,
) -> int:
    """Compare two runs and write the comparison. Return 0 if nothing regressed, 1 if there is a regression,
    and 3 if the result is undecided. Raise ``AuthorError`` if the two runs cannot be compared."""
    targets = resolve_targets(Config(reporters=()), parse_reporters_with("comparison", reports))
    first, second = summarize(before, after)
    refuse_overwriting_inputs(targets, (*first.inputs, *second.inputs))
    compared = compare(first, second, margin=margin)
    is_written = write_rendered(targets, "comparison", compared, detail="verbose" if verbose else "usual")
    return compared.exit_code if is_written or compared.exit_code else 3


class SummarizedRun(NamedTuple):
    """What is compared of a run, whose report is not kept: only one report at a time is in memory."""

    summary: RunSummary
    inputs: tuple[Path, ...]


def summarize(before: str, after: str) -> tuple[SummarizedRun, SummarizedRun]:
    """Summarize two runs under the accept list of the second one. Raise ``AuthorError`` if there is no such
    run."""
    folders = [runs.find_run(name, runs_root()) for name in (before, after)]
    found = load_stored_report(folders[1])
    second = _summarize_report(found)
    accepting = found.report.run.model_copy(update={"scenarios": ()})
    del found  # before another report is made
    return _summarize_report(load_stored_report(folders[0]), accepting), second


def _summarize_report(stored: StoredReport, accepting: RunStarted | None = None) -> SummarizedRun:
    report = apply_accept_list(stored.report, accepting) if accepting else stored.report
    return SummarizedRun(summary_of(report, gates.decide(report)), tuple(list_run_inputs(stored)))


def compare(first: SummarizedRun, second: SummarizedRun, *, margin: float) -> RunComparison:
    """Compare two runs. Runs before the baseline are searched for earlier occurrences of new failures."""
    compared = compare_runs(first.summary, second.summary, margin=margin)
    new = {
        failure.fingerprint
        for agent in compared.agents
        for failure in agent.failures
        if failure.state is FailureState.NEW
    }
    earlier = _find_earlier_failures(new, first.summary) if new else {}
    if not earlier:
        return compared
    return compare_runs(first.summary, second.summary, margin=margin, earlier=earlier)


def _find_earlier_failures(names: set[str], baseline: RunSummary) -> dict[str, str]:
    """Return the latest run before the baseline in which each failure occurred, keyed by the failure's
    fingerprint. Unreadable runs (from an older version or partly deleted) are skipped."""
    found: dict[str, str] = {}
    began = baseline.started_at
    older = [folder for folder in runs.find_run_folders(runs_root()) if runs.read_start_time(folder) < began]
    for folder in reversed(older[-MOST_EARLIER:]):
        try:
            run_id, failures = _read_failures(folder)
        except AuthorError:
            continue
        for name in names & failures:
            found.setdefault(name, run_id)
        if len(found) == len(names):
            break
    return found


def _read_failures(folder: Path) -> tuple[str, set[str]]:
    """Return the id of a run, and the fingerprints of its failures."""
    report = fold_run(runs.StoredRun(folder)).report()
    found = {
        failure.fingerprint
        for scenario in report.scenarios
        for failure in failures_in(scenario.samples, scenario.scenario)
    }
    return report.run.run_id, found
