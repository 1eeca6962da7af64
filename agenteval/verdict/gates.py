"""Decide the verdict by applying pure rules to a report. See "Who fails what" in ``docs/verdicts.md``.
Decisions about samples and scenarios and the gate rows of a run have their own modules; this module combines
them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agenteval.core.decision import AcceptedUse, Decision, GateRow, SampleDecision, ScenarioDecision
from agenteval.core.plan import Pairing
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Severity, Verdict
from agenteval.scoring.goals import GOAL
from agenteval.verdict.abstentions import quote_names, undecided_scenario_rows, unexercised_criteria
from agenteval.verdict.accepted_failures import accepted_uses
from agenteval.verdict.counted_findings import locate_counted_findings
from agenteval.verdict.epochs import EpochOutcomes, epoch_outcomes, sample_success
from agenteval.verdict.fingerprints import failures_of
from agenteval.verdict.max_rates import MAX_RATE, max_rate_rows
from agenteval.verdict.recorded_logs import is_without_scenarios, names_severity, readable_row
from agenteval.verdict.report import Report
from agenteval.verdict.run_gates import gates_over_runs, is_counted, reads_baseline, replaces_every_sample
from agenteval.verdict.run_gates.no_regression import NO_REGRESSION
from agenteval.verdict.run_rows import (
    command_of,
    end_rows,
    mostly_errored_scenarios,
    resolve_with_next_steps,
    run_rows,
    tolerance_rows,
)
from agenteval.verdict.sample_decisions import decide_samples, is_never_tolerated
from agenteval.verdict.scenario_decisions import RunEvidence, decide_scenario
from agenteval.verdict.thresholds import threshold_gates


def decide(report: Report) -> Decision:
    """Return the verdict on a report (passed, failed or inconclusive) under the configuration of the run."""
    samples = decide_samples(report)
    lost = mostly_errored_scenarios(report, samples)
    left_to_shares = frozenset(_counted_by_gates(report, samples))
    without_scenarios = is_without_scenarios(report)
    is_reported = without_scenarios and not names_severity(report.plan)
    rows = _build_rows(report, samples, lost, without_scenarios=without_scenarios)
    scenarios = _decide_scenarios(
        RunEvidence(
            report=report,
            samples=samples,
            rows=rows.by_pairing(),
            counted=left_to_shares,
            lost=lost,
            tolerates_losses=rows.tolerance[0].verdict is Verdict.PASSED,
            is_open_for_all=any(
                not row.scenario and row.verdict is Verdict.INCONCLUSIVE for row in rows.over_runs
            ),
        )
    )
    if is_reported:
        listed = (*rows.over_runs, *rows.of_log, *end_rows(report), *rows.thresholds)
    else:
        of_run = run_rows(report, samples, rows.tolerance, left_to_shares)
        listed = (*rows.over_runs, *of_run, *rows.of_log, *rows.undecided, *rows.thresholds)
    gates = resolve_with_next_steps(listed, report, samples)
    verdict = Verdict.worst(gate.verdict for gate in gates)
    author_errors = _author_errors(report)
    return Decision(
        verdict=verdict,
        exit_code=compute_exit_code(report, verdict, author_errors),
        gates=gates,
        samples=samples,
        scenarios=scenarios,
        ungated=_ungated(report, rows.thresholds),
        author_errors=author_errors,
        accepted=_accepted_uses(report),
        without_scenarios=without_scenarios,
        is_reported=is_reported,
    )


class _RunRows(NamedTuple):
    """The gate rows of a run, grouped by type."""

    over_runs: tuple[GateRow, ...]
    """Rows for gates across repeated runs."""
    tolerance: tuple[GateRow, ...]
    """Rows about errored samples."""
    undecided: tuple[GateRow, ...]
    """Rows for scenarios in which nothing was decided."""
    thresholds: tuple[GateRow, ...]
    """Rows for thresholds."""
    of_log: tuple[GateRow, ...]
    """Rows about recorded conversations."""

    def by_pairing(self) -> dict[Pairing, list[GateRow]]:
        """Group the rows that decide scenarios by their pairing of scenario and agent."""
        found: dict[Pairing, list[GateRow]] = {}
        for row in (*self.over_runs, *self.tolerance, *self.undecided, *self.thresholds):
            found.setdefault((row.scenario, row.agent), []).append(row)
        return found


def _build_rows(
    report: Report,
    samples: Mapping[SampleKey, SampleDecision],
    lost: frozenset[Pairing],
    *,
    without_scenarios: bool,
) -> _RunRows:
    epochs = {(s.scenario.id, s.agent): _scenario_epochs(s, samples) for s in report.scenarios}
    replaced = sum(len(outcomes.replaced) for outcomes in epochs.values())
    thresholds = tuple(threshold_gates(report))
    readable = (readable_row(report),) if without_scenarios else ()
    return _RunRows(
        over_runs=tuple(gates_over_runs(report, epochs, samples)),
        tolerance=tuple(
            tolerance_rows(report, samples, lost, replaced=replaced, unreadable_apart=without_scenarios)
        ),
        undecided=tuple(undecided_scenario_rows(report, thresholds)),
        thresholds=thresholds,
        of_log=(*readable, *max_rate_rows(report, samples, command_of(report))),
    )


def _scenario_epochs(scenario: ScenarioReport, samples: Mapping[SampleKey, SampleDecision]) -> EpochOutcomes:
    outcomes = [sample_success(sample, samples[sample.key].verdict) for sample in scenario.samples]
    return epoch_outcomes(scenario, outcomes)


def _decide_scenarios(run: RunEvidence) -> dict[Pairing, ScenarioDecision]:
    return {(each.scenario.id, each.agent): decide_scenario(each, run) for each in run.report.scenarios}


def _counted_by_gates(report: Report, samples: Mapping[SampleKey, SampleDecision]) -> Iterable[SampleKey]:
    """Yield the failed samples that only the share gates decide. If a gate replaces "every sample passes",
    that gate decides, and nothing is yielded."""
    if report.plan.suite.gates and not replaces_every_sample(report.plan.suite.gates):
        for scenario in report.scenarios:
            for sample in scenario.samples:
                if is_counted(sample, scenario.scenario, samples[sample.key], report.plan.suite.gates):
                    yield sample.key


def _accepted_uses(report: Report) -> tuple[AcceptedUse, ...]:
    if not report.plan.suite.accepted:
        return ()
    occurrences = [
        (scenario.scenario.id, failures_of(sample, scenario.scenario).names)
        for scenario in report.scenarios
        for sample in scenario.samples
    ]
    return accepted_uses(report.run, occurrences)


def _ungated(report: Report, thresholds: Sequence[GateRow]) -> tuple[str, ...]:
    """Return everything that was judged but cannot affect the verdict: numbers without a threshold, labels if
    no severity fails a sample, and gates that do not apply."""
    with_threshold = {gate.metric for gate in thresholds}
    judged = {score.metric for sample in report.samples for score in sample.all_scores}
    by_severity = {spec.name for spec in report.plan.suite.metrics if spec.is_label}
    gated = with_threshold if report.plan.suite.fail_on is None else with_threshold | by_severity | {GOAL}
    if report.run.baseline and not reads_baseline(report.plan.suite.gates):
        judged.add(f"{NO_REGRESSION.name} (--baseline, without gates.no_regression)")
    unapplied = report.plan.unapplied.items()
    judged |= {
        f"{name} ({why})" for name, why in unapplied if name.removeprefix("thresholds.") not in with_threshold
    }
    for scenario in report.scenarios:
        if criteria := unexercised_criteria(scenario):
            where = f"did not arise in any conversation of {scenario.scenario.id}"
            judged.add(f"criteria ({where}: {quote_names(criteria)})")
    return tuple(sorted(judged - gated))


def failing_findings(report: Report, decision: Decision) -> frozenset[tuple[SampleKey, int]]:
    """Return the findings that fail the run, with their sample and index. If the run passed, the result is
    empty."""
    plan = report.plan
    found = locate_counted_findings(report.scenarios, decision.samples, report)
    if decision.is_reported:
        broken = [severity for severity in plan.suite.max_rates if _is_broken(severity, decision)]
        least = min((severity.rank for severity in broken), default=len(Severity))
        return frozenset((key, place) for key, place, finding in found if finding.severity.rank >= least)
    return frozenset((key, place) for key, place, finding in found if is_never_tolerated(finding, plan))


def _is_broken(severity: Severity, decision: Decision) -> bool:
    name = f"{MAX_RATE} {severity}"
    return any(row.name == name and row.verdict is Verdict.FAILED for row in decision.gates)


def _author_errors(report: Report) -> tuple[str, ...]:
    """Return the author's mistakes that became apparent only at run time. Each mistake is returned once, with
    the sample in which it occurred."""
    texts: dict[str, str] = {}
    for sample in report.samples:
        details = [sample.stop.detail] if sample.stop and sample.stop.fault == "author" else []
        details += [failure.message for failure in sample.all_failures if failure.author]
        for detail in details:
            texts.setdefault(detail, f"{detail}\n  (in {sample.key})")
    for failure in report.issue_failures:
        if failure.author:
            texts.setdefault(failure.message, failure.message)
    return tuple(texts.values())


def compute_exit_code(report: Report, verdict: Verdict, author_errors: Sequence[str]) -> int:
    """Return the exit code of the process, which gates CI: 0 for a passed run, 1 for a failed run, 3 for an
    undecided run, 2 for mistakes of the author, and 130 for an interrupted run."""
    if report.finished and report.finished.outcome == "interrupted":
        return 130
    if author_errors:
        return 2
    # A run that was killed or lacks a shard has not ended, so it is not undecided.
    is_ended = report.finished is not None and not (report.run.merged and report.run.merged.incomplete)
    if verdict is Verdict.INCONCLUSIVE and is_neutral(report) and is_ended:
        return 0
    return {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.INCONCLUSIVE: 3}[verdict]


def is_neutral(report: Report) -> bool:
    """Check whether an undecided run exits with the same code as a passed run."""
    return report.plan.suite.on_undecided == "neutral"
