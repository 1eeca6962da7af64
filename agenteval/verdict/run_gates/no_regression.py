"""``gates.no_regression``: a regression test that requires the run to be no worse than the baseline run given
by ``--baseline``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from agenteval.core.decision import GateRow
from agenteval.core.event import Baseline
from agenteval.core.plan import Pairing
from agenteval.core.plurals import join_first, plural
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.score import Verdict
from agenteval.core.value import Number, Value
from agenteval.verdict.epochs import EpochOutcomes
from agenteval.verdict.run_gates.error_rates import GOOD, GateErrorRates
from agenteval.verdict.run_gates.gate import (
    BASELINE,
    VERDICT_OF,
    Evidence,
    PlannedRun,
    RunGate,
    explain_no_baseline,
)
from agenteval.verdict.statistics import (
    Margins,
    NonInferiority,
    Pair,
    StatisticalOutcome,
    Tally,
    drop_interval,
    no_regression_chances,
    non_inferiority,
)

_MOST_NAMED = 8
SCENARIO_MARGIN = 0.3
"""The default for the largest uncertain drop in one scenario that does not count as a regression."""


class NoRegressionGate(Value):
    """Requires that, compared with ``--baseline``, the mean success rate certainly dropped by less than
    ``margin``, no scenario certainly dropped, and no scenario was observed to drop by more than
    ``scenario_margin``."""

    EXAMPLE: ClassVar[str] = "{margin: 0.05}"

    margin: Annotated[Number, Field(gt=0, lt=1)]
    """Largest drop in the mean success rate that is not a regression."""
    scenario_margin: Annotated[Number, Field(gt=0, le=1)] = SCENARIO_MARGIN
    """Largest drop in one scenario's success rate that is not a regression."""


def pairs_of(baseline: Baseline, epochs: Mapping[Pairing, EpochOutcomes]) -> dict[str, tuple[Pairing, Pair]]:
    """Pair the results of each scenario in the baseline and in this run. The agents are matched by name; if
    each run has only one agent, the two are matched. The result is keyed by the pair's name in the
    comparison."""
    agents = {agent for _, agent in epochs}
    pairs = {}
    for (scenario, agent), outcomes in epochs.items():
        known = baseline.outcomes.get(agent)
        if known is None and len(agents) == len(baseline.outcomes) == 1:
            (known,) = baseline.outcomes.values()
        if known and scenario in known:
            name = f"{scenario}\0{agent}"
            pairs[name] = ((scenario, agent), Pair(name, Tally.of(known[scenario]), Tally.of(outcomes.fixed)))
    return pairs


def _rows(gate: NoRegressionGate, evidence: Evidence) -> Iterable[GateRow]:
    report, epochs, where = evidence.report, evidence.epochs, evidence.where
    baseline = report.run.baseline
    bound = f"below {gate.margin:g}"
    pairs = pairs_of(baseline, epochs) if baseline else {}
    if baseline is None or not pairs:
        basis = explain_no_baseline(report)
        undecided = Verdict.INCONCLUSIVE
        yield GateRow("no_regression", None, bound, basis, where, undecided, resolution=BASELINE)
        return
    result = non_inferiority([pair for _, pair in pairs.values()], Margins(gate.margin, gate.scenario_margin))
    compared = {pairing for pairing, _ in pairs.values()}
    apart = [s for s in report.scenarios if (s.scenario.id, s.agent) not in compared]
    basis = f"{plural(len(pairs), 'scenario')}, against {baseline.run_id}:"
    basis += f" {_describe_drop(result, [pair for _, pair in pairs.values()])}"
    basis += _format_names("not compared", [scenario.scenario.id for scenario in apart])
    basis += _format_names("removed", baseline.gone)
    verdict, ends = VERDICT_OF[result.outcome], _resolution(result)
    yield GateRow("no_regression", result.drop, bound, basis, where, verdict, resolution=ends)
    for name in result.dropped:
        yield _drop_row(*pairs[name], "no drop", "significantly dropped", where, Verdict.FAILED)
    for name in result.perhaps:
        low, high = drop_interval(pairs[name][1])
        basis = f"possibly dropped: 90 % interval from {low:.2g} to {high:.2g}"
        bound = f"no drop above {gate.scenario_margin:g}"
        yield _drop_row(*pairs[name], bound, basis, where, Verdict.INCONCLUSIVE)
    for scenario in apart:
        yield _uncompared_row(scenario, baseline, evidence)


def _resolution(result: NonInferiority) -> str:
    if result.outcome is not StatisticalOutcome.UNDECIDED:
        return ""
    enough = result.epochs_to_decide
    return f"epochs: {enough} in both runs" if enough else "set a larger `margin` in `gates.no_regression`"


def _drop_row(
    pairing: Pairing, pair: Pair, bound: str, description: str, where: str, verdict: Verdict
) -> GateRow:
    before, after = pair.before, pair.after
    lost = f", {after.missing} errored" if after.missing else ""
    return GateRow(
        name="no_regression",
        value=None if pair.difference is None else -float(pair.difference),
        bound=bound,
        basis=f"{after.successes} of {after.decided} epochs succeeded{lost},"
        f" {before.successes} of {before.decided} in the baseline: {description}",
        where=where,
        verdict=verdict,
        scenario=pairing[0],
        agent=pairing[1],
    )


def _uncompared_row(scenario: ScenarioReport, baseline: Baseline, evidence: Evidence) -> GateRow:
    """Return the row for a scenario that is missing from the baseline or differs there. The scenario passes
    as it would without a gate across repeated runs, unless another of these gates examines it separately."""
    id, agent = scenario.scenario.id, scenario.agent
    changed = baseline.changed.get(agent, {}).get(id)
    why = f"changed since the baseline: {changed}" if changed else "new: not in the baseline"
    verdicts = [
        evidence.samples[key].verdict for key in (*(s.key for s in scenario.samples), *scenario.missing)
    ]
    passed = verdicts.count(Verdict.PASSED)
    addition = ""
    if evidence.others_decide:
        verdict, addition = Verdict.PASSED, "; another gate decides"
    else:
        # Errored samples are left to ``fault_tolerance``, unless nothing else is known.
        known = [verdict for verdict in verdicts if verdict is not Verdict.INCONCLUSIVE]
        verdict = Verdict.worst(known or [Verdict.INCONCLUSIVE])
    return GateRow(
        name="no_regression",
        value=f"{passed} of {len(verdicts)}",
        bound="its own checks",
        basis=f"{why}{addition}",
        where=evidence.where,
        verdict=verdict,
        scenario=id,
        agent=agent,
    )


def _describe_drop(result: NonInferiority, pairs: Sequence[Pair]) -> str:
    """Describe the drop. A run that is no worse than a bad run may be equally bad, so scenarios that failed
    in every epoch are reported first."""
    text = f"drop in the mean: {result.surely_above:.2g} to {result.surely_below:.2g}"
    never = [pair for pair in pairs if pair.after.decided and not pair.after.successes]
    if never:
        before = ", as before" if not any(pair.before.successes for pair in never) else ""
        text = f"{len(never)} of {len(pairs)} failed in every epoch{before}; {text}"
    if all((pair.difference or 0) >= 0 for pair in pairs) and result.outcome is StatisticalOutcome.ACCEPT:
        text = f"nothing got worse; {text}"
    if result.outcome is not StatisticalOutcome.UNDECIDED:
        return text
    text += f", {len(result.perhaps)} possibly dropped" if result.perhaps else ""
    if result.epochs_to_decide is None:
        return f"{text}: no number of epochs would decide at these rates"
    return f"{text}: about {result.epochs_to_decide} epochs in each run would decide"


def _format_names(what: str, names: Sequence[str]) -> str:
    return f"; {what}: {join_first(names, _MOST_NAMED)}" if names else ""


def _estimate_error_rates(gate: NoRegressionGate, planned_run: PlannedRun) -> GateErrorRates:
    n = min(planned.min for planned in planned_run.epochs)
    rate = max(GOOD, 2 * gate.margin)
    margins = Margins(gate.margin, gate.scenario_margin)
    before, worse = [rate] * len(planned_run.epochs), rate - 2 * gate.margin
    same = no_regression_chances(before, before, n, margins)
    fallen = no_regression_chances(before, [worse] * len(planned_run.epochs), n, margins)
    # The bad agent is one for which all scenarios dropped by twice the margin.
    row = GateErrorRates(
        "no_regression",
        rate,
        worse,
        same.reject,
        fallen.accept,
        same.accept,
        planned_run.where,
        bad_where="everywhere",
    )
    return row._replace(advice="use more epochs in both runs") if row.is_uninformative else row


def _unapplied(_gate: NoRegressionGate, *, repeats: bool) -> str:
    return "`agenteval score` has no baseline; use `agenteval diff A B`"


NO_REGRESSION = RunGate(
    "no_regression",
    "How much success rates may drop compared with --baseline.",
    NoRegressionGate,
    _rows,
    _estimate_error_rates,
    unapplied=_unapplied,
    reads_baseline=lambda _: True,
)
