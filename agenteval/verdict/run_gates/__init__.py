"""Gates over repeated runs (statistical quality gates), each implemented as one object. Pure; the arithmetic
is in ``agenteval.verdict.statistics``. ``docs/gates.md`` describes what each gate guarantees.

To add a gate, define its settings and its ``RunGate`` in a module of this package, add it to ``RUN_GATES``,
and write a test. ``agenteval.verdict.run_gates.gate`` lists everything that a gate defines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agenteval.core.config import GatesConfig
from agenteval.core.decision import MERGE, GateRow, SampleDecision
from agenteval.core.plan import Pairing, Plan
from agenteval.core.plurals import plural
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import EpochRange, SampleKey, Scenario
from agenteval.core.score import RULED_OUT, WITHDRAWN, Verdict
from agenteval.scoring.goals import count_open_goals
from agenteval.verdict.epochs import EpochOutcomes
from agenteval.verdict.report import Report
from agenteval.verdict.run_gates.error_rates import GateErrorRates
from agenteval.verdict.run_gates.gate import Evidence, PlannedRun, RunGate
from agenteval.verdict.run_gates.no_regression import NO_REGRESSION
from agenteval.verdict.run_gates.numbers import NUMBERS
from agenteval.verdict.run_gates.pass_hat_k import PASS_HAT_K
from agenteval.verdict.run_gates.pass_rate import PASS_RATE
from agenteval.verdict.run_gates.shares import SHARES
from agenteval.verdict.thresholds import CONTINUE_REMEDY, REFUSAL_REMEDY

RUN_GATES: tuple[RunGate[Any], ...] = (PASS_RATE, PASS_HAT_K, NO_REGRESSION, *SHARES, *NUMBERS)
"""All gates, in the order in which results list them."""


def _configured_gates(gates: GatesConfig) -> list[tuple[RunGate[Any], Any]]:
    return [(gate, settings) for gate in RUN_GATES if (settings := gate.parse_settings(gates)) is not None]


def gates_over_runs(
    report: Report, epochs: Mapping[Pairing, EpochOutcomes], samples: Mapping[SampleKey, SampleDecision]
) -> Iterable[GateRow]:
    """Yield a row for each configured gate, and a row for each scenario × agent that the gate examines
    separately. ``samples`` contains the decision about each sample."""
    configured = _configured_gates(report.plan.suite.gates)
    deciding = [gate for gate, settings in configured if gate.decides_each(settings)]
    for gate, settings in configured:
        where = report.plan.suite.where(f"gates.{gate.name}")
        if report.plan.shard and not gate.decides_each(settings):
            yield GateRow(
                gate.name, None, "", "all shards together", where, Verdict.INCONCLUSIVE, resolution=MERGE
            )
            continue
        others_decide = any(other is not gate for other in deciding)
        rows = gate.rows(settings, Evidence(report, epochs, samples, where, others_decide))
        yield from (_with_excused_goals(row, report) for row in rows) if gate.replaces_every_sample else rows


def _with_excused_goals(row: GateRow, report: Report) -> GateRow:
    """Add a note to the row that goals were ruled out or withdrawn. The affected epochs are missing, and
    another run would not supply them."""
    counted = [
        s for s in report.scenarios if row.scenario in ("", s.scenario.id) and row.agent in ("", s.agent)
    ]
    for outcome, remedy in ((WITHDRAWN, CONTINUE_REMEDY), (RULED_OUT, REFUSAL_REMEDY)):
        number = sum(count_open_goals(each.samples, outcome) for each in counted)
        if row.verdict is Verdict.INCONCLUSIVE and number:
            what = f"the goal was {outcome} in {plural(number, 'conversation')}"
            basis = f"{row.basis}; {what}, which {_ARE[number > 1]} missing ({remedy})"
            row = replace(row, basis=basis, resolution=remedy)
    return row


_ARE = ("counts as", "count as")


def replaces_every_sample(gates: GatesConfig) -> bool:
    """Check whether a configured gate replaces the rule "every sample passes" and sets how many samples may
    fail."""
    # This runs for every finding, so it does not parse what is written under the names.
    return any(gate.replaces_every_sample and gate.name in gates.configured_gates for gate in RUN_GATES)


def reads_baseline(gates: GatesConfig) -> bool:
    """Check whether a configured gate compares the run with ``--baseline``."""
    return any(gate.reads_baseline(settings) for gate, settings in _configured_gates(gates))


def is_counted(sample: SampleReport, scenario: Scenario, decided: SampleDecision, gates: GatesConfig) -> bool:
    """Check whether every rule that a failed sample broke is counted by a gate that measures exactly that
    rule, such as which tools the agent called or what it answered."""
    counting = [gate for gate, _ in _configured_gates(gates) if not gate.replaces_every_sample]
    return decided.verdict is Verdict.FAILED and all(
        any(gate.counts(sample, scenario, violation) for gate in counting) for violation in decided.violations
    )


def without_concern(
    gates: GatesConfig, selected: Sequence[Scenario], suite: Sequence[Scenario] | None
) -> list[str]:
    """Return the gates that do not apply to any selected scenario but may apply to another part of ``suite``.
    If ``suite`` is ``None``, the rest of the suite is unknown."""
    missed = [gate for gate, _ in _configured_gates(gates) if not any(map(gate.concerns, selected))]
    return [gate.name for gate in missed if suite is None or any(map(gate.concerns, suite))]


def run_gate_error_rates(plan: Plan, epochs: Sequence[EpochRange]) -> Iterable[GateErrorRates]:
    """Yield the error rates of each configured gate. ``epochs`` contains a range per scenario × agent."""
    for gate, settings in _configured_gates(plan.suite.gates):
        yield gate.estimate_error_rates(settings, PlannedRun(epochs, plan.suite.where(f"gates.{gate.name}")))


def unapplied(gates: GatesConfig, *, repeats: bool) -> dict[str, str]:
    """Return the gates that recorded conversations can never satisfy, keyed by name, with the reason.
    ``repeats`` is true if several conversations may be epochs of one scenario."""
    reasons = {
        gate.name: gate.unapplied(settings, repeats=repeats) for gate, settings in _configured_gates(gates)
    }
    return {name: reason for name, reason in reasons.items() if reason}
