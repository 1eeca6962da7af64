"""Reliability statistics over the epochs of a run: pass^k, pass@k, success rates with confidence intervals,
flakiness. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from agenteval.core.decision import Decision
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.trajectory import StopReason
from agenteval.verdict.epochs import epoch_outcomes, sample_success
from agenteval.verdict.report import Report
from agenteval.verdict.statistics import (
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
    """The epochs of one scenario × agent."""

    tally: Tally
    fixed: Tally
    """The epochs whose number was fixed in advance. If the number of epochs depended on their success,
    estimates across scenarios use only these epochs."""
    interval: Interval
    """The 95% score interval of the rate (Wilson 1927), for display only; no gate uses this interval."""
    stability: Stability
    """The stability of the scenario: ``stable`` if all epochs had the same outcome, ``flaky`` if not, or
    ``unknown``."""


@dataclass(frozen=True)
class Repeats:
    """The statistics of a run across its scenarios."""

    scenarios: Mapping[tuple[str, str], ScenarioRepeats]
    pass_hat_k: Mapping[int, float]
    """The average of pass^k across scenarios, keyed by k. It contains each k for which every scenario has
    enough decided epochs."""
    pass_at_k: Mapping[int, float]
    """The average of pass@k across scenarios, keyed by k, as for ``pass_hat_k``."""
    rates: Mapping[str, Estimate]
    """The mean success rate for these scenarios and for other scenarios of the same kind."""


def repeats_of(report: Report, decision: Decision) -> Repeats:
    """Compute the reliability statistics of a run. A sample succeeds if it passed and its goal, if judged,
    was completed. A sample that is inconclusive or never ran counts as missing."""
    entries = {(s.scenario.id, s.agent): repeats_of_scenario(s, decision) for s in report.scenarios}
    unreadable = {(s.scenario.id, s.agent) for s in report.scenarios if _is_unreadable(s)}
    tallies = [entry.fixed for key, entry in entries.items() if key not in unreadable]
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


def _is_unreadable(scenario: ScenarioReport) -> bool:
    """Check whether all samples are unreadable records. The real scenario of such a record is unknown, so the
    record is not an epoch of any scenario."""
    stops = [sample.stop for sample in scenario.samples]
    return bool(stops) and all(stop and stop.reason is StopReason.UNREADABLE for stop in stops)


def repeats_of_scenario(scenario: ScenarioReport, decision: Decision) -> ScenarioRepeats:
    """Compute the reliability statistics of one scenario × agent."""
    epochs = epoch_outcomes(scenario, outcomes_of(scenario, decision))
    tally = epochs.tally
    interval = wilson(tally.successes, tally.decided)
    return ScenarioRepeats(tally, Tally.of(epochs.fixed), interval, stability(tally))


def outcomes_of(scenario: ScenarioReport, decision: Decision) -> tuple[bool | None, ...]:
    """Return, for each sample of a scenario, whether the sample succeeded, or ``None`` if this is unknown."""
    decisions = (decision.samples.get(sample.key) for sample in scenario.samples)
    return tuple(
        sample_success(sample, one.verdict) if one else None
        for sample, one in zip(scenario.samples, decisions, strict=True)
    )


def means_over_scenarios(scenarios: Sequence[ScenarioReport]) -> dict[str, float]:
    """Return the mean of each metric. Values are averaged within each conversation, then across
    conversations, then across scenarios, so every scenario has the same weight, regardless of the length of
    its conversations."""
    means: dict[str, list[float]] = {}
    for scenario in scenarios:
        for metric, aggregate in scenario.aggregates.items():
            if aggregate.of_samples is not None:
                means.setdefault(metric, []).append(aggregate.of_samples)
    return {metric: fsum(known) / len(known) for metric, known in sorted(means.items())}


def _mean_pass_at_k(tallies: Sequence[Tally], k: int) -> float:
    values = [pass_at_k(tally.decided, tally.successes, k) for tally in tallies]
    return sum(value or 0.0 for value in values) / len(values)
