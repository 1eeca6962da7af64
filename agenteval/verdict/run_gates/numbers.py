"""``gates.latency_ms``, ``tokens``, ``steps``, ``tool_calls``, ``cost``: limits on the resources that the
agent used in its conversations. Values are compared with fixed numbers and with the baseline run given by
``--baseline``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isinf
from typing import Annotated, ClassVar, NamedTuple

from pydantic import Field, model_validator

from agenteval.core.decision import RERUN_FAILED, GateRow
from agenteval.core.event import Baseline
from agenteval.core.plurals import plural
from agenteval.core.sample_report import ScenarioReport, p95_is_highest, spread_of
from agenteval.core.score import Verdict
from agenteval.core.value import Number, Value
from agenteval.verdict.resource_usage import MEASURES, UNITS, Measurement, describe_unknown, format_measure
from agenteval.verdict.run_gates.error_rates import GateErrorRates, unknown_error_rates
from agenteval.verdict.run_gates.gate import (
    BASELINE,
    VERDICT_OF,
    Evidence,
    PlannedRun,
    RunGate,
    explain_no_baseline,
)
from agenteval.verdict.statistics import StatisticalOutcome
from agenteval.verdict.statistics.ratios import (
    Ratio,
    RatioPair,
    Side,
    ratio_of,
    scatter_decided,
    scenarios_to_decide,
)
from agenteval.verdict.thresholds import is_errored

_ROUNDING = 1e-9
_MOST_NAMED = 3
_PAIRED = "no_worse_than"


class NumberGate(Value):
    """Upper bounds on the resources that conversations use. Percentiles use the nearest-rank method."""

    EXAMPLE: ClassVar[str] = "{mean: 1500}"

    mean: Annotated[Number, Field(ge=0)] | None = None
    """Highest acceptable mean."""
    p50: Annotated[Number, Field(ge=0)] | None = None
    """Highest acceptable median."""
    p95: Annotated[Number, Field(ge=0)] | None = None
    """Highest acceptable 95th percentile."""
    max: Annotated[Number, Field(ge=0)] | None = None
    """Highest acceptable value of any conversation."""
    no_worse_than: Annotated[Number, Field(gt=0, le=100)] | None = None
    """Highest acceptable ratio to the baseline; 1.2 allows an increase of one fifth."""

    @model_validator(mode="after")
    def _asks_something(self) -> NumberGate:
        if not self.bounds and self.no_worse_than is None:
            raise ValueError(
                "no bound is set; set `mean`, `p50`, `p95`, `max` or `no_worse_than` to a number"
            )
        return self

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds that apply to this run alone, keyed by statistic."""
        named = {"mean": self.mean, "p50": self.p50, "p95": self.p95, "max": self.max}
        return {name: bound for name, bound in named.items() if bound is not None}


class _MeasuredConversation(NamedTuple):
    """A conversation and its measurement."""

    scenario: str
    measurement: Measurement
    broke: bool
    """True if the agent failed and thereby ended the conversation."""


def _rows(name: str, gate: NumberGate, evidence: Evidence) -> Iterable[GateRow]:
    agents = tuple(dict.fromkeys(scenario.agent for scenario in evidence.report.scenarios))
    for agent in agents:
        scenarios = [scenario for scenario in evidence.report.scenarios if scenario.agent == agent]
        label = agent if len(agents) > 1 else ""
        played = [one for scenario in scenarios for one in _measure_conversations(name, scenario, evidence)]
        lost = sum(len(scenario.samples) + len(scenario.missing) for scenario in scenarios) - len(played)
        for statistic, bound in gate.bounds.items():
            yield _row(name, statistic, bound, played, lost, evidence, agent=label)
        if gate.no_worse_than is not None:
            yield _baseline_row(name, gate.no_worse_than, scenarios, evidence, agent=label)


def _measure_conversations(
    name: str, scenario: ScenarioReport, evidence: Evidence
) -> list[_MeasuredConversation]:
    """Measure all conversations that ended, including those that ended because the agent failed. If the
    number of epochs depended on their success, use only the first epochs so that early failures do not carry
    more weight."""
    measure, spec = MEASURES[name], scenario.scenario
    measured = [
        _MeasuredConversation(
            spec.id, measure(sample, spec, evidence.report.plan), bool(sample.stop and sample.stop.fault)
        )
        for sample in scenario.samples
        if not is_errored(sample)
    ]
    return measured[: scenario.rules.least] if scenario.rules.range else measured


# ── against a number ─────────────────────────────────────────────────────────────────────────────

_STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: spread_of(values).mean,
    "p50": lambda values: spread_of(values).p50,
    "p95": lambda values: spread_of(values).p95,
    "max": max,
}


def _row(
    name: str,
    statistic: str,
    bound: float,
    played: Sequence[_MeasuredConversation],
    lost: int,
    evidence: Evidence,
    *,
    agent: str,
) -> GateRow:
    """Compare a statistic with its bound. The true value of an unknown number may be the observed part or any
    larger value. This matters only if different possible values lead to different results."""
    of = _STATISTICS[statistic]
    most = bound + _ROUNDING * max(1.0, bound)
    value: float | None = None
    verdict, basis = Verdict.INCONCLUSIVE, "no conversation was completed"
    if played:
        low = of([one.measurement.value for one in played])
        high = of([inf if one.measurement.unknown_reason else one.measurement.value for one in played])
        verdict = Verdict.PASSED if high <= most else Verdict.FAILED if low > most else verdict
        known = [one.measurement.value for one in played if not one.measurement.unknown_reason]
        value = low if verdict is not Verdict.INCONCLUSIVE else (of(known) if known else None)
        basis = _basis(name, played, verdict)
        basis += (
            "; with so few, p95 is the maximum" if statistic == "p95" and p95_is_highest(len(played)) else ""
        )
    return GateRow(
        name=f"{name}.{statistic}",
        value=value,
        bound=f"at most {format_bound(name, bound)}",
        basis=basis + (f"; {lost} errored" if lost else ""),
        where=evidence.place(name, statistic),
        verdict=verdict,
        agent=agent,
        resolution=_resolution(played) if verdict is Verdict.INCONCLUSIVE else "",
    )


def _resolution(played: Sequence[_MeasuredConversation]) -> str:
    return next(
        (one.measurement.unknown_reason for one in played if one.measurement.unknown_reason), RERUN_FAILED
    )


def format_bound(name: str, bound: float) -> str:
    """Format a bound as specified in the configuration, such as ``1,500 ms``."""
    unit = format_measure(name, 0.0).removeprefix("0")
    return f"{bound:,.10g}{unit}"


def _basis(name: str, played: Sequence[_MeasuredConversation], verdict: Verdict) -> str:
    text = plural(len(played), "conversation") + _notes(played)
    if verdict is Verdict.INCONCLUSIVE:
        reasons = Counter(one.measurement.unknown_reason for one in played if one.measurement.unknown_reason)
        return f"{text}; {describe_unknown(reasons, len(played))}"
    return f"{text}{_highest(name, played)}" if verdict is Verdict.FAILED else text


def _notes(played: Sequence[_MeasuredConversation]) -> str:
    notes = ", tokens estimated" if any(one.measurement.is_estimated for one in played) else ""
    broke = sum(one.broke for one in played)
    return notes + (f", {broke} ended by an agent error" if broke else "")


def _highest(name: str, played: Sequence[_MeasuredConversation]) -> str:
    """List the scenarios with the highest averages."""
    of_each: dict[str, list[float]] = {}
    for one in played:
        of_each.setdefault(one.scenario, []).append(one.measurement.value)
    means = {scenario: sum(values) / len(values) for scenario, values in of_each.items()}
    named = sorted(means, key=lambda scenario: (-means[scenario], scenario))[:_MOST_NAMED]
    return f"; highest: {', '.join(f'{each} {format_measure(name, means[each])}' for each in named)}"


# ── against the baseline ─────────────────────────────────────────────────────────────────────────


def _baseline_row(
    name: str, bound: float, scenarios: Sequence[ScenarioReport], evidence: Evidence, *, agent: str
) -> GateRow:
    baseline = evidence.report.run.baseline
    pairs, unknown = _baseline_pairs(name, scenarios, baseline, evidence)
    outcome, value, ends = StatisticalOutcome.UNDECIDED, None, ""
    if baseline is None:
        basis, ends = explain_no_baseline(evidence.report), BASELINE
    elif unknown:
        ends = unknown[0]
        basis = f"against {baseline.run_id}: {'; '.join(unknown)}"
    elif not pairs:
        basis = f"against {baseline.run_id}: no scenario is the same in both runs"
    else:
        found = ratio_of(pairs)
        outcome, value = found.against(bound), found.value
        ends = _ratio_resolution(found, bound) if outcome is StatisticalOutcome.UNDECIDED else ""
        apart = len(scenarios) - len(pairs)
        basis = f"against {baseline.run_id}: {_describe_ratio(name, found, pairs, outcome, bound)}"
        basis += _notes(
            [one for scenario in scenarios for one in _measure_conversations(name, scenario, evidence)]
        )
        basis += f"; {plural(apart, 'scenario')} not compared" if apart else ""
    return GateRow(
        name=f"{name}.{_PAIRED}",
        value=value,
        bound=f"at most × {bound:g}",
        basis=basis,
        where=evidence.place(name, _PAIRED),
        verdict=VERDICT_OF[outcome],
        agent=agent,
        resolution=ends,
    )


def _baseline_pairs(
    name: str, scenarios: Sequence[ScenarioReport], baseline: Baseline | None, evidence: Evidence
) -> tuple[list[RatioPair], list[str]]:
    """Return each scenario that is identical in both runs, and the reasons for missing numbers. Scenarios
    with unknown numbers are not left out silently, because they might be the ones that got worse."""
    pairs, unknown = [], []
    for scenario in scenarios:
        known = _baseline_values(scenario, baseline)
        if known is None:
            continue
        before = known.get(name, ())
        played = _measure_conversations(name, scenario, evidence)
        if not played:
            unknown.append(f"no conversation of {scenario.scenario.id} was completed")
        elif reason := next(
            (one.measurement.unknown_reason for one in played if one.measurement.unknown_reason), ""
        ):
            unknown.append(f"{scenario.scenario.id}: {reason}")
        elif not before:
            unknown.append(f"{scenario.scenario.id}: the baseline has no value")
        else:
            after = tuple(one.measurement.value for one in played)
            pairs.append(RatioPair(scenario.scenario.id, Side(before), Side(after)))
    more = [f"and {len(unknown) - _MOST_NAMED} more"] if len(unknown) > _MOST_NAMED else []
    return pairs, [*unknown[:_MOST_NAMED], *more]


def _baseline_values(
    scenario: ScenarioReport, baseline: Baseline | None
) -> Mapping[str, tuple[float, ...]] | None:
    """Return the numbers of the same scenario in the baseline, or ``None`` if the scenario is missing or not
    identical."""
    if baseline is None:
        return None
    return baseline.effort.get(scenario.agent, {}).get(scenario.scenario.id)


def _describe_ratio(
    name: str, found: Ratio, pairs: Sequence[RatioPair], outcome: StatisticalOutcome, bound: float
) -> str:
    before = sum(pair.before.mean for pair in pairs) / len(pairs)
    after = sum(pair.after.mean for pair in pairs) / len(pairs)
    means = f"mean {format_measure(name, before)} before and {format_measure(name, after)} now"
    text = f"{plural(len(pairs), 'scenario')}, {means}"
    if isinf(found.high):
        return f"{text}; at least 2 scenarios are needed to estimate the spread of the ratios"
    text += f"; ratio {found.value:.3g}, 90 % interval {found.low:.3g} to {found.high:.3g}"
    if outcome is not StatisticalOutcome.UNDECIDED:
        return text
    enough = scenarios_to_decide(found, bound)
    would = f"about {enough} scenarios, or more epochs, would decide" if enough else "too close to decide"
    return f"{text}: {would}"


def _ratio_resolution(found: Ratio, bound: float) -> str:
    enough = scenarios_to_decide(found, bound)
    return f"use about {enough} scenarios, or more epochs in both runs" if enough else f"relax `{_PAIRED}`"


# ── the gates ────────────────────────────────────────────────────────────────────────────────────


def _estimate_error_rates(name: str, gate: NumberGate, planned_run: PlannedRun) -> GateErrorRates:
    sentences = (
        ["compares the values of this run with the bound, so it has no error rate"] if gate.bounds else []
    )
    if gate.no_worse_than is not None:
        sentences.append(_describe_paired_error_rates(gate.no_worse_than, len(planned_run.epochs)))
    return unknown_error_rates(name, planned_run.where, "; ".join(sentences))


def _describe_paired_error_rates(bound: float, scenarios: int) -> str:
    scatter = scatter_decided(scenarios, bound)
    if scatter is None:
        return f"{_PAIRED} cannot be decided with one scenario; it needs at least 2"
    wrong = f"{_PAIRED}: a true ratio of {bound:g} is green in about 5 % of runs"
    if not scatter:
        return f"{wrong}; an unchanged agent is not"
    return (
        f"{wrong}; an unchanged agent is green in half of them if the scenario ratios vary by"
        f" {scatter:.0%}, and mostly undecided if they vary more"
    )


def _unapplied(gate: NumberGate, *, repeats: bool) -> str:
    return "" if gate.bounds else "`agenteval score` has no baseline; use `agenteval diff A B`"


def _gate(name: str) -> RunGate[NumberGate]:
    return RunGate(
        name,
        f"Highest acceptable {name} of conversations{UNITS.get(name, '').replace(' ', ', in ')}.",
        NumberGate,
        lambda settings, seen: _rows(name, settings, seen),
        lambda settings, ahead: _estimate_error_rates(name, settings, ahead),
        unapplied=_unapplied,
        replaces_every_sample=False,
        reads_baseline=lambda settings: settings.no_worse_than is not None,
    )


NUMBERS = tuple(map(_gate, MEASURES))
