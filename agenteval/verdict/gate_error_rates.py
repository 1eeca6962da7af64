"""How often the gates of a run will be wrong, told before it: pure arithmetic over its epochs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenteval.core.decision import EVERY_SAMPLE
from agenteval.core.plan import Plan, ScenarioRules
from agenteval.core.scenario import EpochRange
from agenteval.scoring.goals import GOAL
from agenteval.verdict.run_gates import replaces_every_sample, run_gate_error_rates
from agenteval.verdict.run_gates.error_rates import GateErrorRates, count_error_rates
from agenteval.verdict.statistics import CountRule, share_rule


def gate_error_rates(plan: Plan) -> tuple[GateErrorRates, ...]:
    """A row for each gate of the run whose verdict is a matter of chance and whose chances can be known:
    not for thresholds on means, whose spread nobody knows beforehand."""
    return tuple(_rows(plan, _all_that_apply(plan)))


def configured_gate_error_rates(plan: Plan) -> tuple[GateErrorRates, ...]:
    """Those of the gates that the configuration asks for: rules of chance, whose error rates were the reason
    to write them."""
    return tuple(run_gate_error_rates(plan, _epochs(_all_that_apply(plan))))


def _all_that_apply(plan: Plan) -> list[ScenarioRules]:
    return [plan.rule_sets[kind] for agents in plan.scenarios.values() for kind in agents.values()]


def _epochs(applies: Sequence[ScenarioRules]) -> list[EpochRange]:
    return [EpochRange(min=each.least, max=each.most) for each in applies]


def every_sample_error_rates(epochs: Sequence[int]) -> GateErrorRates:
    """What "every sample passes" is worth in a run; ``epochs``: of each scenario × agent."""
    advice = "gates: {pass_rate: …} tolerates a failure now and then, with known error rates"
    return count_error_rates(EVERY_SAMPLE, [CountRule(n, n) for n in epochs], "default", advice)


def _rows(plan: Plan, applies: Sequence[ScenarioRules]) -> Iterable[GateErrorRates]:
    epochs = [EpochRange(min=each.least, max=each.most) for each in applies]
    if not replaces_every_sample(plan.suite.gates):
        yield every_sample_error_rates([planned.min for planned in epochs])
    yield from run_gate_error_rates(plan, epochs)
    yield from _goal_thresholds(plan, applies)


def _goal_thresholds(plan: Plan, applies: Sequence[ScenarioRules]) -> Iterable[GateErrorRates]:
    """A share of conversations is a count, so its chances are known."""
    designs = []
    for each in applies:
        held = each.thresholds.get(GOAL)
        if held and held.is_sure and held.rule.at_least:
            designs.append(share_rule(held.rule.at_least, each.least))
    if designs:
        advice = "more epochs, or a gate with known error rates (gates: {pass_rate: …}) instead"
        where = plan.suite.thresholds[GOAL].where if GOAL in plan.suite.thresholds else "default"
        yield count_error_rates(f"thresholds.{GOAL}", designs, where, advice)


def describe_error_rates(rows: Sequence[GateErrorRates]) -> tuple[str, ...]:
    """Each gate in words, coins marked."""
    return tuple(row.sentence for row in rows)
