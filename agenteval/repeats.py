"""What the epochs of a run say together: pass^k, pass@k, rates with intervals, who is flaky. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.decision import Decision
from agenteval.report import GOAL, Report, SampleReport, ScenarioReport
from agenteval.score import Verdict
from agenteval.statistics import (
    Estimate,
    Interval,
    Stability,
    Tally,
    mean_pass_hat_k,
    pass_at_k,
    stability,
    these_scenarios,
    users_like_these,
    wilson,
)


@dataclass(frozen=True)
class ScenarioRepeats:
    """One scenario × agent: its epochs, the 95 % score interval of its rate (Wilson 1927; for display, it
    gates nothing), and whether all epochs ended alike."""

    tally: Tally
    interval: Interval
    stability: Stability


@dataclass(frozen=True)
class Repeats:
    """``pass_hat_k`` and ``pass_at_k``: by k, averaged over scenarios, for each k that every scenario has
    decided epochs for. ``rates``: the mean success rate of these scenarios, and of scenarios like these."""

    scenarios: Mapping[tuple[str, str], ScenarioRepeats]
    pass_hat_k: Mapping[int, float]
    pass_at_k: Mapping[int, float]
    rates: Mapping[str, Estimate]


def repeats_of(report: Report, decision: Decision) -> Repeats:
    """The statistics of a run. A sample succeeds if it passed and its goal, where judged, was completed;
    one that is inconclusive or never ran is missing."""
    entries = {(s.scenario.id, s.agent): repeats_of_scenario(s, decision) for s in report.scenarios}
    tallies = [entry.tally for entry in entries.values()]
    decided = [tally for tally in tallies if tally.decided]
    rates: dict[str, Estimate] = {}
    if decided:
        rates["these_scenarios"] = these_scenarios(decided)
        rates["users_like_these"] = users_like_these([float(tally.rate or 0) for tally in decided])
    most = min((tally.decided for tally in tallies), default=0)
    hat = {k: mean_pass_hat_k(tallies, k) for k in range(1, most + 1)}
    return Repeats(
        scenarios=entries,
        pass_hat_k={k: b.estimate for k, b in hat.items() if b is not None and b.estimate is not None},
        pass_at_k={k: _mean_pass_at_k(tallies, k) for k in range(1, most + 1)},
        rates=rates,
    )


def repeats_of_scenario(scenario: ScenarioReport, decision: Decision) -> ScenarioRepeats:
    """The epochs of one scenario × agent together."""
    outcomes = [_succeeded(sample, decision) for sample in scenario.samples]
    tally = Tally.of([*outcomes, *(None for _ in scenario.missing)])
    return ScenarioRepeats(tally, wilson(tally.successes, tally.decided), stability(tally))


def _succeeded(sample: SampleReport, decision: Decision) -> bool | None:
    told = decision.samples.get(sample.key)
    if told is None or told.verdict is Verdict.INCONCLUSIVE:
        return None
    reached = all(score.value for score in sample.scores if score.metric == GOAL)
    return told.verdict is Verdict.PASSED and reached


def _mean_pass_at_k(tallies: Sequence[Tally], k: int) -> float:
    values = [pass_at_k(tally.decided, tally.successes, k) for tally in tallies]
    return sum(value or 0.0 for value in values) / len(values)
