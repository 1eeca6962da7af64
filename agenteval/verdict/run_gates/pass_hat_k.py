"""``gates.pass_hat_k``: a gate on pass^k, the probability that ``k`` epochs in a row succeed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agenteval.core.decision import RERUN_FAILED, GateRow
from agenteval.core.plurals import plural
from agenteval.core.value import Count, Number, Value
from agenteval.verdict.run_gates.error_rates import BAD, GOOD, GateErrorRates, count_error_rates
from agenteval.verdict.run_gates.gate import ONE_EACH, VERDICT_OF, Evidence, PlannedRun, RunGate
from agenteval.verdict.statistics import (
    Bounds,
    StatisticalOutcome,
    Tally,
    mean_pass_hat_k,
    mean_pass_hat_k_chance,
    pass_hat_k_bounds,
    pass_hat_k_rule,
)


class PassHatKGate(Value):
    """The probability that ``k`` epochs in a row succeed, by the unbiased estimator: for each ``scenario``,
    or the mean over the ``suite``."""

    EXAMPLE: ClassVar[str] = "{k: 3, at_least: 0.5}"

    k: Annotated[Count, Field(ge=1)]
    """Number of epochs in a row that must succeed."""
    at_least: Annotated[Number, Field(gt=0, le=1)]
    """Lowest acceptable probability."""
    over: Literal["scenario", "suite"] = "scenario"
    """What the gate applies to: each scenario, or the mean over the suite."""


def _rows(gate: PassHatKGate, evidence: Evidence) -> Iterable[GateRow]:
    epochs, where = evidence.epochs, evidence.where
    if gate.over == "suite":
        tallies = [Tally.of(outcomes.fixed) for outcomes in epochs.values()]
        least = min((tally.planned for tally in tallies), default=0)
        found = mean_pass_hat_k(tallies, gate.k)
        basis = f"the mean of {plural(len(tallies), 'scenario')}"
        yield _hat_row(gate, found, where, basis=basis, epochs=least)
        return
    for (scenario, agent), outcomes in epochs.items():
        tally = Tally.of(outcomes.fixed)
        basis = f"{tally.successes} of {tally.decided} epochs succeeded"
        basis += f", {tally.missing} missing" if tally.missing else ""
        found = pass_hat_k_bounds(tally, gate.k)
        row = _hat_row(gate, found, where, basis=basis, epochs=tally.planned)
        yield replace(row, scenario=scenario, agent=agent)


def _hat_row(gate: PassHatKGate, found: Bounds | None, where: str, *, basis: str, epochs: int) -> GateRow:
    resolution = RERUN_FAILED
    if found is None:
        outcome = StatisticalOutcome.UNDECIDED
        resolution = f"epochs: {gate.k}"
        basis = f"cannot be estimated from {plural(epochs, 'epoch')} because k is {gate.k};"
        basis += f" set `epochs` to at least {gate.k}"
    else:
        outcome = found.compare(gate.at_least)
        if outcome is StatisticalOutcome.UNDECIDED:
            basis += f": from {found.low:.3g} to {found.high:.3g}, depending on the missing epochs"
    return GateRow(
        name="pass_hat_k",
        value=found.estimate if found else None,
        bound=gate.at_least,
        basis=basis,
        where=where,
        verdict=VERDICT_OF[outcome],
        resolution=resolution if outcome is StatisticalOutcome.UNDECIDED else "",
    )


def _estimate_error_rates(gate: PassHatKGate, planned_run: PlannedRun) -> GateErrorRates:
    epochs, where = [planned.min for planned in planned_run.epochs], planned_run.where
    name = f"pass_hat_k (k {gate.k}, {gate.over})"
    if min(epochs) < gate.k:
        advice = f"cannot be estimated from {plural(min(epochs), 'epoch')}; set `epochs` to at least {gate.k}"
        return GateErrorRates(name, GOOD, BAD, None, None, None, where, advice)
    if gate.over == "suite":
        good = mean_pass_hat_k_chance(epochs, gate.k, gate.at_least, GOOD) or 0.0
        bad = mean_pass_hat_k_chance(epochs, gate.k, gate.at_least, BAD) or 0.0
        row = GateErrorRates(name, GOOD, BAD, 1 - good, bad, good, where)
        return row._replace(advice="more epochs narrow both") if row.is_uninformative else row
    designs = [pass_hat_k_rule(gate.k, gate.at_least, n) for n in epochs]
    return count_error_rates(name, [d for d in designs if d is not None], where, "more epochs narrow both")


def _unapplied(gate: PassHatKGate, *, repeats: bool) -> str:
    return ONE_EACH if not repeats and gate.k > 1 else ""


PASS_HAT_K = RunGate(
    "pass_hat_k",
    "The probability that k epochs in a row succeed.",
    PassHatKGate,
    _rows,
    _estimate_error_rates,
    unapplied=_unapplied,
    decides_each=lambda gate: gate.over == "scenario",
)
