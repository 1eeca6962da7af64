"""Estimate before a run how often its gates will be wrong (false positives and false negatives). Pure
arithmetic based on the number of epochs."""

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
    """Return a row for each gate of the run whose verdict depends on chance and whose error rates can be
    computed. Thresholds on means are left out, because the spread of their values is not known in advance."""
    return tuple(_rows(plan, _all_rules(plan)))


def configured_gate_error_rates(plan: Plan) -> tuple[GateErrorRates, ...]:
    """Return the rows for the configured gates: statistical rules that were chosen for their error rates."""
    return tuple(run_gate_error_rates(plan, _epoch_ranges(_all_rules(plan))))


def _all_rules(plan: Plan) -> list[ScenarioRules]:
    return [plan.rule_sets[kind] for agents in plan.scenarios.values() for kind in agents.values()]


def _epoch_ranges(rules: Sequence[ScenarioRules]) -> list[EpochRange]:
    return [EpochRange(min=each.least, max=each.most) for each in rules]


def every_sample_error_rates(epochs: Sequence[int]) -> GateErrorRates:
    """Return the error rates of the rule "every sample passes". ``epochs`` contains the number of epochs for
    each scenario × agent."""
    advice = "`gates: {pass_rate: …}` tolerates occasional failures, with known error rates"
    return count_error_rates(EVERY_SAMPLE, [CountRule(n, n) for n in epochs], "default", advice)


def _rows(plan: Plan, rules: Sequence[ScenarioRules]) -> Iterable[GateErrorRates]:
    epochs = [EpochRange(min=each.least, max=each.most) for each in rules]
    if not replaces_every_sample(plan.suite.gates):
        yield every_sample_error_rates([planned.min for planned in epochs])
    yield from run_gate_error_rates(plan, epochs)
    yield from _goal_thresholds(plan, rules)


def _goal_thresholds(plan: Plan, rules: Sequence[ScenarioRules]) -> Iterable[GateErrorRates]:
    """Yield the thresholds on goals. Their error rates are known, because a share of conversations is a
    count."""
    designs = []
    for each in rules:
        threshold = each.thresholds.get(GOAL)
        if threshold and threshold.is_sure and threshold.rule.at_least:
            designs.append(share_rule(threshold.rule.at_least, each.least))
    if designs:
        advice = "use more epochs, or a gate with known error rates (`gates: {pass_rate: …}`)"
        where = plan.suite.thresholds[GOAL].where if GOAL in plan.suite.thresholds else "default"
        yield count_error_rates(f"thresholds.{GOAL}", designs, where, advice)


def describe_error_rates(rows: Sequence[GateErrorRates]) -> tuple[str, ...]:
    """Describe the error rates of each gate in a sentence, and mark uninformative gates."""
    return tuple(row.sentence for row in rows)
