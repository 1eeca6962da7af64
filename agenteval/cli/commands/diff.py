"""Implements ``agenteval diff``, the command to compare runs scenario by scenario. The exit code indicates a
regression."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from agenteval.cli.commands.output import (
    ReportTarget,
    make_report_options,
    refuse_overwriting_inputs,
    resolve_targets,
    write_report_text,
)
from agenteval.cli.commands.report import list_run_inputs
from agenteval.cli.safe_output import print_err
from agenteval.core.config import Config, ReporterChoice, parse_reporter
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.files import runs
from agenteval.reporters import REPORTERS, load_function
from agenteval.reporters.custom_reporters import RenderError
from agenteval.running.stored_runs import DecidedRun, load_decided_run, runs_root
from agenteval.verdict import gates
from agenteval.verdict import report as reporting
from agenteval.verdict.accepted_failures import apply_accept_list
from agenteval.verdict.comparison import MARGIN, FailureState, RunComparison, compare_runs
from agenteval.verdict.digest import failures_in, summary_of
from agenteval.verdict.report import Report

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
    targets = resolve_targets(Config(reporters=()), _parse_reporters(reports))
    runs_compared = load_decided_run(before), load_decided_run(after)
    refuse_overwriting_inputs(targets, chain.from_iterable(map(list_run_inputs, runs_compared)))
    compared = compare(*runs_compared, margin=margin)
    written = [_write(target, compared, verbose=verbose) for target in sorted(targets, key=_is_terminal)]
    return compared.exit_code if all(written) or compared.exit_code else 3


def _parse_reporters(texts: Sequence[str]) -> tuple[ReporterChoice, ...]:
    choices = tuple(map(parse_reporter, texts or ("terminal",)))
    for choice in choices:
        if choice.name not in REPORTERS or not REPORTERS.get(choice.name).comparison:
            known = (name for name in REPORTERS if REPORTERS.get(name).comparison)
            what = f"unknown comparison report '{choice.name}'"
            raise AuthorError(Problem(what, did_you_mean(choice.name, known)))
    return choices


def _is_terminal(target: ReportTarget) -> bool:
    return target.choice.name == "terminal"


def _write(target: ReportTarget, compared: RunComparison, *, verbose: bool) -> bool:
    choice, path, reporter = target
    render = load_function(reporter.comparison)
    options = make_report_options(choice, folder=Path(), detail="verbose" if verbose else "usual")
    try:
        write_report_text(choice.name, render(compared, options), path)
    except RenderError as error:
        print_err(f"agenteval: {error}")
        return False
    except OSError as error:
        print_err(f"agenteval: cannot write the {choice.name} report to {path or 'stdout'}: {error}")
        return False
    return True


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
            report = reporting.build_report(runs.load_run(folder))
        except AuthorError:
            continue
        for scenario in report.scenarios:
            for failure in failures_in(scenario.samples, scenario.scenario):
                if failure.fingerprint in names:
                    found.setdefault(failure.fingerprint, report.run.run_id)
        if len(found) == len(names):
            break
    return found
