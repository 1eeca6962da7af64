"""Compare the agents of one run (A/B comparison): report which agent succeeds more often, costs less or is
faster, or that this cannot be determined. Pure. The comparison has no effect on the verdict, because the run
is gated by the samples of each agent. No judge compares two answers with each other (pairwise comparison)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import ceil, fsum

from agenteval.core.decision import Decision
from agenteval.core.run_summary import ScenarioSummary
from agenteval.core.value import Value
from agenteval.verdict.digest import summary_of
from agenteval.verdict.report import Report
from agenteval.verdict.statistics import Change, Pair, Tally, compare
from agenteval.verdict.statistics.ratios import Quotient, RatioPair, Side, ratio_of, ratio_of_quotients

CONFIDENCE = 0.95
COST_PER_SUCCESS = "cost per success"
_NUMBERS = ("cost", "latency_ms", "tokens", "steps", "tool_calls")
_MOST_EPOCHS = 10_000


class ReferenceVerdict(StrEnum):
    MORE = "more"
    LESS = "less"
    INDISTINGUISHABLE = "indistinguishable"


class ComparedNumber(Value):
    """The average of a measure over conversations, and the ratio of this average to that of the reference
    agent."""

    name: str
    value: float
    reference: float
    ratio: float | None = None
    """The ratio to the reference agent, or ``None`` if the ratio cannot be computed."""
    low: float | None = None
    """The lower bound of the ratio. ``None`` if there is no interval, because one agent has no value in some
    scenario or there is only one scenario."""
    high: float | None = None
    """The upper bound of the ratio."""

    @property
    def reference_verdict(self) -> ReferenceVerdict:
        if self.low is None or self.high is None:
            return ReferenceVerdict.INDISTINGUISHABLE
        return (
            ReferenceVerdict.LESS
            if self.high < 1
            else ReferenceVerdict.MORE
            if self.low > 1
            else ReferenceVerdict.INDISTINGUISHABLE
        )


class ComparedAgent(Value):
    """One agent compared with the reference agent, in the scenarios that both agents ran."""

    agent: str
    scenarios: int
    epochs: int
    success: float | None
    """The mean success rate across scenarios, or ``None`` if the rate is unknown."""
    reference: float | None
    change: float | None
    """The difference between the two success rates."""
    low: float
    """The lower bound of the difference, assuming the worst outcome for missing epochs."""
    high: float
    """The upper bound of the difference, assuming the best outcome for missing epochs."""
    better_in: tuple[str, ...] = ()
    """Scenarios with a higher success rate, by Fisher's exact test with Holm's correction."""
    worse_in: tuple[str, ...] = ()
    """Scenarios with a lower success rate, by Fisher's exact test with Holm's correction."""
    epochs_to_decide: int | None = None
    """The approximate number of epochs of each agent that would decide the comparison at the observed
    rates."""
    numbers: tuple[ComparedNumber, ...] = ()

    @property
    def reference_verdict(self) -> ReferenceVerdict:
        """The verdict on whether the agent succeeds more often than the reference agent."""
        return (
            ReferenceVerdict.MORE
            if self.low > 0
            else ReferenceVerdict.LESS
            if self.high < 0
            else ReferenceVerdict.INDISTINGUISHABLE
        )


class ReferenceComparison(Value):
    """The comparison of a run's agents with the first agent."""

    reference: str
    """The name of the first agent, which is the reference."""
    comparisons: int
    """The total number of intervals."""
    confidence: float
    """The joint confidence of all intervals (Bonferroni correction)."""
    agents: tuple[ComparedAgent, ...]


def compare_with_reference(report: Report, decision: Decision) -> ReferenceComparison | None:
    """Compare all other agents with the first agent. Return ``None`` if the run has only one agent or if the
    agents have no scenario in common."""
    if len({scenario.agent for scenario in report.scenarios}) < 2:
        return None
    of_agents: dict[str, dict[str, ScenarioSummary]] = {}
    for scenario in summary_of(report, decision).scenarios:
        of_agents.setdefault(scenario.agent, {})[scenario.id] = scenario
    reference, *others = of_agents
    shared = {
        agent: [
            (base, scenario_summary)
            for id, scenario_summary in of_agents[agent].items()
            if (base := of_agents[reference].get(id))
        ]
        for agent in others
    }
    shared = {agent: pairs for agent, pairs in shared.items() if pairs}
    comparisons = sum(1 + len(_known_measures(pairs)) for pairs in shared.values())
    if not shared:
        return None
    alpha = (1 - CONFIDENCE) / comparisons
    return ReferenceComparison(
        reference=reference,
        comparisons=comparisons,
        confidence=CONFIDENCE,
        agents=tuple(_compare_agent(agent, pairs, alpha) for agent, pairs in shared.items()),
    )


_Pairs = Sequence[tuple[ScenarioSummary, ScenarioSummary]]


def _known_measures(pairs: _Pairs) -> list[str]:
    """Return the measures that are known in every scenario for both agents."""
    efforts = [(old.effort, new.effort) for old, new in pairs]
    names = [name for name in _NUMBERS if all(old.get(name) and new.get(name) for old, new in efforts)]
    succeeded = any(old.successes for old, _ in pairs) and any(new.successes for _, new in pairs)
    succeeded = succeeded and all(old.decided and new.decided for old, new in pairs)
    return [COST_PER_SUCCESS, *names] if "cost" in names and succeeded else names


def _compare_agent(agent: str, pairs: _Pairs, alpha: float) -> ComparedAgent:
    tallies = [Pair(old.id, _tally(old), _tally(new)) for old, new in pairs]
    comparison = compare(tallies, 1 - alpha)
    before, after = (_mean_rate(each) for each in zip(*((p.before, p.after) for p in tallies), strict=True))
    low, high = comparison.these_scenarios
    return ComparedAgent(
        agent=agent,
        scenarios=len(pairs),
        epochs=sum(new.planned for _, new in pairs),
        success=after,
        reference=before,
        change=None if before is None or after is None else after - before,
        low=low,
        high=high,
        better_in=tuple(s.pair.scenario for s in comparison.scenarios if s.change is Change.IMPROVED),
        worse_in=tuple(s.pair.scenario for s in comparison.scenarios if s.change is Change.REGRESSED),
        epochs_to_decide=_epochs_to_decide(comparison.change, low, high, pairs),
        numbers=tuple(_compare_number(name, pairs, alpha) for name in _known_measures(pairs)),
    )


def _tally(scenario: ScenarioSummary) -> Tally:
    return Tally(scenario.successes, scenario.decided, scenario.planned)


def _mean_rate(tallies: Sequence[Tally]) -> float | None:
    rates = [tally.rate for tally in tallies]
    return None if None in rates else fsum(float(rate or 0) for rate in rates) / len(rates)


def _epochs_to_decide(change: float | None, low: float, high: float, pairs: _Pairs) -> int | None:
    """Estimate the number of epochs that would decide the comparison. An interval shrinks with the square
    root of the number of epochs."""
    if not change or low > 0 or high < 0:
        return None
    reach = change - low if change > 0 else high - change
    epochs = max(max(old.planned, new.planned) for old, new in pairs)
    enough = ceil(epochs * (reach / abs(change)) ** 2)
    return enough if enough <= _MOST_EPOCHS else None


def _compare_number(name: str, pairs: _Pairs, alpha: float) -> ComparedNumber:
    """Compare one measure. Each end of an interval gets half of the permitted error probability."""
    if name == COST_PER_SUCCESS:
        return _cost_per_success(pairs, alpha)
    sides = [RatioPair(old.id, Side(old.effort[name]), Side(new.effort[name])) for old, new in pairs]
    found = ratio_of(sides, 1 - alpha / 2)
    before, after = (
        fsum(each) / len(sides) for each in zip(*((s.before.mean, s.after.mean) for s in sides), strict=True)
    )
    has_interval = found.scenarios > 1
    return ComparedNumber(
        name=name,
        value=after,
        reference=before,
        ratio=found.value if before else None,
        low=found.low if has_interval else None,
        high=found.high if has_interval else None,
    )


def _cost_per_success(pairs: _Pairs, alpha: float) -> ComparedNumber:
    """Compare the cost per successful conversation. The cost includes failed conversations."""

    def side(scenario: ScenarioSummary) -> Quotient:
        costs = scenario.effort["cost"]
        rate = scenario.successes / scenario.decided if scenario.decided else 0.0
        return Quotient(fsum(costs) / len(costs), rate)

    found = ratio_of_quotients([(side(old), side(new)) for old, new in pairs], 1 - alpha / 2)
    return ComparedNumber(
        name=COST_PER_SUCCESS,
        value=found.after,
        reference=found.before,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
    )
