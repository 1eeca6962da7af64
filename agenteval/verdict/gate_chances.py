"""How often the gates of a run will be wrong, told before it: pure arithmetic over its epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agenteval.core.config import Config, NoRegressionGate, PassHatKGate
from agenteval.core.decision import EVERY_SAMPLE
from agenteval.core.scenario import EpochRange, Sample, Scenario
from agenteval.scoring import metrics
from agenteval.scoring.goals import GOAL
from agenteval.verdict.run_gates import rule_of
from agenteval.verdict.statistics import (
    CountRule,
    Design,
    Margins,
    epochs_for_green,
    error_rates,
    least_epochs,
    mean_pass_hat_k_chance,
    no_regression_chances,
    pass_hat_k_rule,
    rate_test,
    share_rule,
)

GOOD, BAD = 0.95, 0.7
"""The success rates, of each scenario, of an agent that should be green and of one that should not be, where
the gate itself names none."""

COIN = 0.2
"""A gate that errs more often than this is called a coin."""


class GateChances(NamedTuple):
    """``false_red``: how often a run of an agent is red whose true rate is ``good`` in every scenario.
    ``false_green``: how often one is green that has ``bad`` in one scenario (for ``no_regression``: of which
    all scenarios dropped by twice the margin). ``green``: how often the good one is green; what is neither
    is not decided. ``None``: not estimable. ``advice`` says what would do better."""

    gate: str
    good: float
    bad: float
    false_red: float | None
    false_green: float | None
    green: float | None
    where: str = ""
    advice: str = ""

    @property
    def coin(self) -> bool:
        """Whether the gate is so often wrong, or so seldom says anything, that it tells little."""
        if self.false_red is None or self.false_green is None or self.green is None:
            return True
        return max(self.false_red, self.false_green, 1 - self.green - self.false_red) > COIN


def chances_of(
    config: Config, samples: Sequence[Sample], ranges: Mapping[str, EpochRange]
) -> tuple[GateChances, ...]:
    """A row for each gate of the run whose verdict is a matter of chance and whose chances can be known:
    not for thresholds on means, whose spread nobody knows beforehand."""
    epochs: dict[tuple[str, str], EpochRange] = {}
    scenarios: dict[tuple[str, str], Scenario] = {}
    for sample in samples:
        pairing = (sample.key.scenario, sample.key.agent)
        planned = epochs.get(pairing, EpochRange(min=1, max=1)).min + (pairing in epochs)
        epochs[pairing] = ranges.get(sample.key.scenario) or EpochRange(min=planned, max=planned)
        scenarios[pairing] = sample.scenario
    counts = list(epochs.values())
    return tuple(_rows(config, counts, [(s, epochs[p]) for p, s in scenarios.items()]))


def luck_of(epochs: Sequence[int]) -> GateChances:
    """What "every sample passes" is worth in a run; ``epochs``: of each scenario × agent."""
    advice = "gates: {pass_rate: …} tolerates a failure now and then, with known error rates"
    return _row(EVERY_SAMPLE, [CountRule(n, n) for n in epochs], "default", advice)


def _rows(
    config: Config, epochs: Sequence[EpochRange], scenarios: Sequence[tuple[Scenario, EpochRange]]
) -> Iterable[GateChances]:
    gates = config.gates
    if not gates:
        yield luck_of([planned.min for planned in epochs])
    if gates.pass_rate:
        yield _pass_rate(config, epochs)
    if gates.pass_hat_k:
        yield _pass_hat_k(gates.pass_hat_k, [planned.min for planned in epochs], config)
    if gates.no_regression:
        yield _no_regression(gates.no_regression, epochs, config)
    yield from _goal_thresholds(config, scenarios)


def _row(
    gate: str,
    designs: Sequence[Design],
    where: str,
    advice: str,
    *,
    good: float = GOOD,
    bad: float = BAD,
) -> GateChances:
    rates = error_rates(designs, good=good, bad=bad)
    row = GateChances(gate, good, bad, rates.false_red, rates.false_green, rates.green_when_good, where)
    return row._replace(advice=advice) if row.coin else row


def _pass_rate(config: Config, epochs: Sequence[EpochRange]) -> GateChances:
    gate = config.gates.pass_rate
    assert gate is not None
    rule = rule_of(gate, len(epochs))
    # An agent right at the bound is as often red as is allowed; one that is as good again is asked for.
    good = (1 + gate.at_least) / 2
    designs = [rate_test(rule, planned.min, planned.max) for planned in epochs]
    where = config.where("gates.pass_rate")
    most = max(planned.max for planned in epochs)
    if most < least_epochs(rule):
        advice = f"no run can be green: it takes {least_epochs(rule)} epochs, without a failure"
    else:
        ranged = any(planned.min < planned.max for planned in epochs)
        least = min(planned.min for planned in epochs) if ranged else None
        enough = epochs_for_green(rule, good, min_epochs=least)
        written = f"{{min: {least}, max: {enough}}}" if ranged else f"{enough}"
        advice = f"epochs: {written} would let {good:.3g} be green in 8 of 10 runs" if enough else ""
    return _row("pass_rate", designs, where, advice, good=good, bad=gate.reject_below)


def _pass_hat_k(gate: PassHatKGate, epochs: Sequence[int], config: Config) -> GateChances:
    name, where = f"pass_hat_k (k {gate.k}, {gate.over})", config.where("gates.pass_hat_k")
    if min(epochs) < gate.k:
        advice = f"not estimable from {min(epochs)} epochs: set epochs: {gate.k} or more"
        return GateChances(name, GOOD, BAD, None, None, None, where, advice)
    if gate.over == "suite":
        good = mean_pass_hat_k_chance(epochs, gate.k, gate.at_least, GOOD) or 0.0
        bad = mean_pass_hat_k_chance(epochs, gate.k, gate.at_least, BAD) or 0.0
        row = GateChances(name, GOOD, BAD, 1 - good, bad, good, where)
        return row._replace(advice="more epochs narrow both") if row.coin else row
    designs = [pass_hat_k_rule(gate.k, gate.at_least, n) for n in epochs]
    return _row(name, [d for d in designs if d is not None], where, "more epochs narrow both")


def _no_regression(gate: NoRegressionGate, epochs: Sequence[EpochRange], config: Config) -> GateChances:
    n, where = min(planned.min for planned in epochs), config.where("gates.no_regression")
    rate = max(GOOD, 2 * gate.margin)
    margins = Margins(gate.margin, gate.scenario_margin)
    before, worse = [rate] * len(epochs), rate - 2 * gate.margin
    same = no_regression_chances(before, before, n, margins)
    fallen = no_regression_chances(before, [worse] * len(epochs), n, margins)
    row = GateChances("no_regression", rate, worse, same.reject, fallen.accept, same.accept, where)
    return row._replace(advice="more epochs, in both runs, decide more often") if row.coin else row


def _goal_thresholds(
    config: Config, scenarios: Sequence[tuple[Scenario, EpochRange]]
) -> Iterable[GateChances]:
    """A share of conversations is a count, so its chances are known."""
    designs = []
    for scenario, planned in scenarios:
        held = metrics.thresholds_of(scenario, config.thresholds).get(GOAL)
        if held and held.rule.at_least and scenario.goal.strip():
            designs.append(share_rule(held.rule.at_least, planned.min))
    if designs:
        advice = "more epochs, or a gate with known error rates (gates: {pass_rate: …}) instead"
        yield _row(f"thresholds.{GOAL}", designs, config.where(f"thresholds.{GOAL}"), advice)


def sentences(rows: Sequence[GateChances]) -> tuple[str, ...]:
    """Each gate in words, coins marked."""
    return tuple(_sentence(row) for row in rows)


def _sentence(row: GateChances) -> str:
    mark = "a coin: " if row.coin else ""
    advice = f"; {row.advice}" if row.advice else ""
    if row.false_red is None or row.false_green is None or row.green is None:
        return f"{row.gate}: {mark}{row.advice}"
    undecided = max(0.0, 1 - row.green - row.false_red)
    open_too = f" and undecided in {_share(undecided)}" if undecided > 0.005 else ""
    where = "everywhere" if row.gate == "no_regression" else "in one scenario"
    return (
        f"{row.gate}: {mark}an agent that succeeds in {_share(row.good)} of conversations is red in"
        f" {_share(row.false_red)} of runs{open_too}; one that does in {_share(row.bad)} {where} is green"
        f" in {_share(row.false_green)}{advice}"
    )


def _share(chance: float) -> str:
    if 0 < chance < 0.001:
        return "under 0.1 %"
    return f"{chance:.1%}".replace("%", " %").replace(".0 ", " ")
