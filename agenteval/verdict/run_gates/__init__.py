"""Gates over repeated runs, each one object. Pure; the arithmetic is ``agenteval.verdict.statistics``. What
each promises is written in ``docs/gates.md``.

To add one: its settings and its ``RunGate`` in a module here, a line in ``RUN_GATES``, its test. What it has
to say of itself is listed in ``agenteval.verdict.run_gates.gate``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agenteval.core.config import GatesConfig
from agenteval.core.decision import GateRow, SampleDecision
from agenteval.core.plan import Pairing, Plan
from agenteval.core.scenario import EpochRange, SampleKey
from agenteval.verdict.epochs import Epochs
from agenteval.verdict.report import Report
from agenteval.verdict.run_gates.chance import GateChances
from agenteval.verdict.run_gates.gate import Evidence, Prospect, RunGate
from agenteval.verdict.run_gates.no_regression import NO_REGRESSION
from agenteval.verdict.run_gates.pass_hat_k import PASS_HAT_K
from agenteval.verdict.run_gates.pass_rate import PASS_RATE

RUN_GATES: tuple[RunGate[Any], ...] = (PASS_RATE, PASS_HAT_K, NO_REGRESSION)
"""All of them, in the order in which results list them."""


def _asked(gates: GatesConfig) -> list[tuple[RunGate[Any], Any]]:
    return [(gate, settings) for gate in RUN_GATES if (settings := gate.of(gates)) is not None]


def gates_over_runs(
    report: Report, epochs: Mapping[Pairing, Epochs], samples: Mapping[SampleKey, SampleDecision]
) -> Iterable[GateRow]:
    """A row for each gate, and for each scenario × agent that it looks at by itself. ``samples``: what was
    decided of each."""
    asked = _asked(report.plan.gates)
    deciding = [gate for gate, settings in asked if gate.decides_each(settings)]
    for gate, settings in asked:
        where = report.plan.where(f"gates.{gate.name}")
        others_decide = any(other is not gate for other in deciding)
        yield from gate.rows(settings, Evidence(report, epochs, samples, where, others_decide))


def chances_of_gates(plan: Plan, epochs: Sequence[EpochRange]) -> Iterable[GateChances]:
    """How often each gate will be wrong. ``epochs``: of each scenario × agent."""
    for gate, settings in _asked(plan.gates):
        yield gate.chances(settings, Prospect(epochs, plan.where(f"gates.{gate.name}")))


def unapplied(gates: GatesConfig, *, repeats: bool) -> dict[str, str]:
    """The gates that no recorded conversations could satisfy, by name with the reason. ``repeats``: whether
    several conversations may be epochs of one scenario."""
    reasons = {gate.name: gate.unapplied(settings, repeats=repeats) for gate, settings in _asked(gates)}
    return {name: reason for name, reason in reasons.items() if reason}
