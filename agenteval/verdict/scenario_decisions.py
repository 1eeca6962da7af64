"""Decide one scenario × agent, based on its samples and on the gate rows that apply to it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from agenteval.core.decision import GateRow, SampleDecision, ScenarioDecision, Violation
from agenteval.core.number_format import format_number
from agenteval.core.plan import Pairing
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Verdict
from agenteval.verdict.counted_findings import list_counted_findings
from agenteval.verdict.report import Report
from agenteval.verdict.run_gates import replaces_every_sample
from agenteval.verdict.sample_decisions import is_never_tolerated


@dataclass(frozen=True)
class RunEvidence:
    """Facts about a run that are known when the outcomes of its scenarios are decided."""

    report: Report
    samples: Mapping[SampleKey, SampleDecision]
    rows: Mapping[Pairing, Sequence[GateRow]]
    """The gate rows, keyed by the scenario and agent that they apply to."""
    counted: Set[SampleKey]
    """The samples whose failures are decided by the share gates that count them."""
    lost: Set[Pairing]
    """The scenarios in which most samples errored."""
    tolerates_losses: bool
    """True if errored samples are tolerated in the run as a whole."""
    is_open_for_all: bool
    """True if a gate on all scenarios is undecided."""


def decide_scenario(scenario: ScenarioReport, run: RunEvidence) -> ScenarioDecision:
    """Decide the outcome of a scenario. With gates across repeated runs, a sample may fail unless the failure
    is critical; the scenario is then decided by its own gate rows, and all of its samples must have been run.
    """
    rows = run.rows.get((scenario.scenario.id, scenario.agent), ())
    keys = (*(sample.key for sample in scenario.samples), *scenario.missing)
    verdicts = [Verdict.PASSED if key in run.counted else run.samples[key].verdict for key in keys]
    if replaces_every_sample(run.report.plan.suite.gates):
        verdicts = [_decide_repeated_runs(verdicts, scenario, rows, run)]
    elif run.tolerates_losses and not _is_lost(scenario, run):
        verdicts = [verdict for verdict in verdicts if verdict is not Verdict.INCONCLUSIVE] or verdicts
    verdicts += [row.verdict for row in rows]
    violations = [violation for key in keys for violation in run.samples[key].violations]
    violations += [_row_violation(row) for row in rows if row.verdict is not Verdict.PASSED]
    return ScenarioDecision(Verdict.worst(verdicts or [Verdict.INCONCLUSIVE]), tuple(violations))


def _is_lost(scenario: ScenarioReport, run: RunEvidence) -> bool:
    return (scenario.scenario.id, scenario.agent) in run.lost


def _decide_repeated_runs(
    verdicts: Sequence[Verdict], scenario: ScenarioReport, rows: Sequence[GateRow], run: RunEvidence
) -> Verdict:
    findings = list_counted_findings((scenario,), run.samples, run.report)
    if any(is_never_tolerated(finding, run.report.plan) for finding in findings):
        return Verdict.FAILED
    return Verdict.PASSED if _is_known(verdicts, scenario, rows, run) else Verdict.INCONCLUSIVE


def _is_known(
    verdicts: Sequence[Verdict], scenario: ScenarioReport, rows: Sequence[GateRow], run: RunEvidence
) -> bool:
    """Check whether enough of the scenario was run for it to pass, apart from its own gate rows."""
    is_undecided = all(verdict is Verdict.INCONCLUSIVE for verdict in verdicts)
    if is_undecided or _is_lost(scenario, run) or _is_incomplete(scenario):
        return False
    if run.is_open_for_all and Verdict.FAILED in verdicts:
        # Only a gate row of the scenario itself can tolerate the failure; the others are still open.
        return any(row.verdict is Verdict.PASSED and not row.metric for row in rows)
    return True


def _is_incomplete(scenario: ScenarioReport) -> bool:
    """Check whether some samples were planned but did not run to the end."""
    return bool(scenario.missing) or any(s.stop is None or s.stop.is_cut_short for s in scenario.samples)


def _row_violation(row: GateRow) -> Violation:
    value = "no score" if row.value is None else row.value
    value = value if isinstance(value, str) else format_number(value, row.bound)
    bound = row.bound if isinstance(row.bound, str) else f"at least {row.bound:g}"
    return Violation(
        row.name, f"{value}, expected {bound} ({row.basis})", row.where, row.verdict, metric=row.metric
    )
