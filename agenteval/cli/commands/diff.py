"""Implements ``agenteval diff``, the command to compare runs scenario by scenario. The exit code indicates a
regression."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from agenteval.cli.commands.output import (
    parse_reporters_with,
    refuse_overwriting_inputs,
    resolve_targets,
    write_rendered,
)
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError
from agenteval.files import runs
from agenteval.running.stored_runs import DecidedRun, list_run_inputs, load_decided_run, runs_root
from agenteval.verdict import gates
from agenteval.verdict.accepted_failures import apply_accept_list
from agenteval.verdict.comparison import MARGIN, FailureState, RunComparison, compare_runs
from agenteval.verdict.digest import failures_in, summary_of
from agenteval.verdict.report import Report, fold_run

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
    runs_compared = load_decided_run(before), load_decided_run(after)
    refuse_overwriting_inputs(targets, chain.from_iterable(map(list_run_inputs, runs_compared)))
    compared = compare(*runs_compared, margin=margin)
    is_written = write_rendered(targets, "comparison", compared, detail="verbose" if verbose else "usual")
    return compared.exit_code if is_written or compared.exit_code else 3


def compare(before: DecidedRun, after: DecidedRun, *, margin: float) -> RunComparison:
    """Compare two runs. Runs before the baseline are searched for earlier occurrences of new failures."""
    baseline = apply_accept_list(before.report, after.report.run)
    first = summary_of(baseline, gates.decide(baseline))
    second = summary_of(after.report, after.decision)
    compared = compare_runs(first, second, margin=margin)
    new = {
        failure.fingerprint
        for agent in compared.agents
        for failure in agent.failures
        if failure.state is FailureState.NEW
    }
    earlier = _find_earlier_failures(new, before.report) if new else {}
    return compare_runs(first, second, margin=margin, earlier=earlier) if earlier else compared


def _find_earlier_failures(names: set[str], baseline: Report) -> dict[str, str]:
    """Return the latest run before the baseline in which each failure occurred, keyed by the failure's
    fingerprint. Unreadable runs (from an older version or partly deleted) are skipped."""
    found: dict[str, str] = {}
    began = baseline.run.started_at
    older = [folder for folder in runs.find_run_folders(runs_root()) if runs.read_start_time(folder) < began]
    for folder in reversed(older[-MOST_EARLIER:]):
        try:
            report = fold_run(runs.StoredRun(folder)).report()
        except AuthorError:
            continue
        for scenario in report.scenarios:
            for failure in failures_in(scenario.samples, scenario.scenario):
                if failure.fingerprint in names:
                    found.setdefault(failure.fingerprint, report.run.run_id)
        if len(found) == len(names):
            break
    return found
