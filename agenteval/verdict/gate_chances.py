"""How often the gates of a run will be wrong, told before it: pure arithmetic over its epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agenteval.core.config import Config
from agenteval.core.decision import EVERY_SAMPLE
from agenteval.core.scenario import EpochRange, Sample, Scenario
from agenteval.scoring import metrics
from agenteval.scoring.goals import GOAL
from agenteval.verdict.run_gates import chances_of_gates
from agenteval.verdict.run_gates.chance import GateChances, chances_by_count
from agenteval.verdict.statistics import CountRule, share_rule


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
    return chances_by_count(EVERY_SAMPLE, [CountRule(n, n) for n in epochs], "default", advice)


def _rows(
    config: Config, epochs: Sequence[EpochRange], scenarios: Sequence[tuple[Scenario, EpochRange]]
) -> Iterable[GateChances]:
    if not config.gates:
        yield luck_of([planned.min for planned in epochs])
    yield from chances_of_gates(config, epochs)
    yield from _goal_thresholds(config, scenarios)


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
        yield chances_by_count(f"thresholds.{GOAL}", designs, config.where(f"thresholds.{GOAL}"), advice)


def sentences(rows: Sequence[GateChances]) -> tuple[str, ...]:
    """Each gate in words, coins marked."""
    return tuple(row.sentence for row in rows)
