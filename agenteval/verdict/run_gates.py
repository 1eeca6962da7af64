"""Gates over repeated runs: ``pass_rate``, ``pass_hat_k``, ``no_regression``. Pure; the arithmetic is that of
``agenteval.verdict.statistics``. What each promises is written in ``docs/gates.md``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from agenteval.core.config import NoRegressionGate, PassHatKGate, PassRateGate
from agenteval.core.decision import GateRow, SampleDecision
from agenteval.core.event import Baseline, RunStarted
from agenteval.core.plurals import plural
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import OUTCOME, Verdict
from agenteval.scoring.goals import GOAL
from agenteval.verdict.report import Report
from agenteval.verdict.statistics import (
    Bounds,
    Margins,
    NonInferiority,
    Outcome,
    Pair,
    PassRateRule,
    RateTest,
    SequentialDecision,
    Tally,
    drop_interval,
    epochs_to_decide,
    in_epoch_order,
    least_epochs,
    mean_pass_hat_k,
    non_inferiority,
    pass_hat_k_bounds,
    rate_test,
)

Pairing: TypeAlias = tuple[str, str]
"""A scenario's id and an agent's name."""

_MOST_NAMED = 8

VERDICT_OF = {
    Outcome.ACCEPT: Verdict.PASSED,
    Outcome.REJECT: Verdict.FAILED,
    Outcome.CONTINUE: Verdict.INCONCLUSIVE,
    Outcome.UNDECIDED: Verdict.INCONCLUSIVE,
}


def succeeded(sample: SampleReport, verdict: Verdict) -> bool | None:
    """Whether a sample counts as a success: it passed and its goal, where judged, was completed. ``None``
    where that is not known: it is inconclusive, its goal was ruled out or is not clear, or the judge of it
    broke. Of a recorded conversation that did not fail, the known outcome decides."""
    if verdict is Verdict.FAILED:
        return False
    for check in sample.checks:
        if check.name == OUTCOME:
            return check.passed
    if verdict is Verdict.INCONCLUSIVE:
        return None
    goals = [score for score in sample.scores if score.metric == GOAL]
    if any(not goal.is_open and not goal.value for goal in goals):
        return False
    unknown = any(goal.is_open for goal in goals)
    unknown |= any(failure.metric == GOAL for failure in sample.score_failures)
    return None if unknown else True


@dataclass(frozen=True)
class Epochs:
    """The epochs of one scenario × agent. ``outcomes``: in epoch order, a lost one replaced where it was;
    ``replaced``: which were. ``wanted``: how many there were to be at least; ``most``: at most."""

    outcomes: tuple[bool | None, ...]
    wanted: int
    most: int
    replaced: frozenset[int] = frozenset()

    @property
    def tally(self) -> Tally:
        """All of them, for display: where success decided how many there are, no estimate may rest on it."""
        unfinished = max(0, self.wanted - len(self.outcomes))
        return Tally.of([*self.outcomes, *[None] * unfinished])

    @property
    def fixed(self) -> tuple[bool | None, ...]:
        """The first ones, whose number was settled beforehand: what estimates rest on."""
        known = self.outcomes[: self.wanted]
        return (*known, *[None] * (self.wanted - len(known)))


def epochs_of(scenario: ScenarioReport, outcomes: Sequence[bool | None], run: RunStarted) -> Epochs:
    """``outcomes``: of ``scenario.samples``, one each."""
    ranged = run.epochs.get(scenario.scenario.id)
    if ranged is None:
        wanted = len(outcomes) + len(scenario.missing)
        return Epochs((*outcomes, *(None for _ in scenario.missing)), wanted, wanted)
    finished = {
        sample.key.epoch: outcome
        for sample, outcome in zip(scenario.samples, outcomes, strict=True)
        if sample.stop is not None
    }
    ordered = in_epoch_order(finished, ranged.max)
    replaced = frozenset(
        epoch for epoch, outcome in enumerate(ordered) if outcome is not None and finished[epoch] is None
    )
    return Epochs(ordered, ranged.min, ranged.max, replaced)


def rule_of(gate: PassRateGate, scenarios: int) -> PassRateRule:
    return PassRateRule(gate.at_least, gate.reject_below, gate.confidence, scenarios)


def planned_test(gate: PassRateGate, epochs: Epochs, scenarios: int) -> RateTest:
    """The test that was planned before the first epoch: sequential, or the exact one of a fixed number."""
    return rate_test(rule_of(gate, scenarios), max(1, epochs.wanted), max(1, epochs.most))


_Samples: TypeAlias = Mapping[SampleKey, SampleDecision]


def gates_over_runs(report: Report, epochs: Mapping[Pairing, Epochs], samples: _Samples) -> Iterable[GateRow]:
    """A row for each gate, and for each scenario × agent that it looks at by itself. ``samples``: what was
    decided of each."""
    gates = report.run.config.gates
    if gates.pass_rate:
        yield from _pass_rate(gates.pass_rate, report, epochs)
    if gates.pass_hat_k:
        yield from _pass_hat_k(gates.pass_hat_k, report, epochs)
    if gates.no_regression:
        yield from _no_regression(gates.no_regression, report, epochs, samples)


# ── pass_rate ────────────────────────────────────────────────────────────────────────────────────


def _pass_rate(gate: PassRateGate, report: Report, epochs: Mapping[Pairing, Epochs]) -> Iterable[GateRow]:
    where = report.run.config.where("gates.pass_rate")
    rule = rule_of(gate, len(epochs))
    for (scenario, agent), own in epochs.items():
        test = planned_test(gate, own, len(epochs))
        decision = test.decide(own.outcomes)
        decided = decision.epochs - decision.missing
        yield GateRow(
            name="pass_rate",
            value=decision.successes / decided if decided else None,
            bound=gate.at_least,
            rests_on=_why(decision, own, rule),
            where=where,
            verdict=VERDICT_OF[decision.outcome],
            scenario=scenario,
            agent=agent,
        )


def _why(decision: SequentialDecision, own: Epochs, rule: PassRateRule) -> str:
    decided = decision.epochs - decision.missing
    told = f"{decision.successes} of {decided} epochs succeeded"
    if decision.missing:
        told += f", {decision.missing} lost"
    if own.replaced:
        told += f", {len(own.replaced)} lost and replaced"
    match decision.outcome:
        case Outcome.ACCEPT:
            return f"{told}: surely above {rule.reject_below:g}"
        case Outcome.REJECT:
            return f"{told}: surely below {rule.at_least:g}"
        case _:
            return f"{told}: not decided; {_what_would_decide(decision, own, rule)}"


def _what_would_decide(decision: SequentialDecision, own: Epochs, rule: PassRateRule) -> str:
    decided = decision.epochs - decision.missing
    if own.most < least_epochs(rule):
        return f"even without a failure it takes {least_epochs(rule)} epochs, and {own.most} were planned"
    if decision.outcome is Outcome.CONTINUE and decision.epochs < own.most:
        return "the run ended early"
    more = epochs_to_decide(decision.successes, decided, rule)
    if more is None:
        between = f"between {rule.reject_below:g} and {rule.at_least:g}"
        return f"a rate {between} may stay undecided" if decided else "no epoch was decided"
    if more == 0:
        return "the lost epochs could have decided either way"
    return f"about {more} more would decide at this rate"


# ── pass_hat_k ───────────────────────────────────────────────────────────────────────────────────


def _pass_hat_k(gate: PassHatKGate, report: Report, epochs: Mapping[Pairing, Epochs]) -> Iterable[GateRow]:
    where = report.run.config.where("gates.pass_hat_k")
    if gate.over == "suite":
        tallies = [Tally.of(own.fixed) for own in epochs.values()]
        least = min((tally.planned for tally in tallies), default=0)
        found = mean_pass_hat_k(tallies, gate.k)
        yield _hat_row(gate, found, where, rests_on=f"the mean of {len(tallies)} scenarios", epochs=least)
        return
    for (scenario, agent), own in epochs.items():
        tally = Tally.of(own.fixed)
        rests_on = f"{tally.successes} of {tally.decided} epochs succeeded"
        rests_on += f", {tally.missing} missing" if tally.missing else ""
        found = pass_hat_k_bounds(tally, gate.k)
        row = _hat_row(gate, found, where, rests_on=rests_on, epochs=tally.planned)
        yield replace(row, scenario=scenario, agent=agent)


def _hat_row(gate: PassHatKGate, found: Bounds | None, where: str, *, rests_on: str, epochs: int) -> GateRow:
    if found is None:
        outcome = Outcome.UNDECIDED
        rests_on = f"not estimable from {epochs} epochs: k is {gate.k}, so set epochs: {gate.k} or more"
    else:
        outcome = found.compare(gate.at_least)
        if outcome is Outcome.UNDECIDED:
            rests_on += f": from {found.low:.3g} to {found.high:.3g}, as the missing epochs would have it"
    return GateRow(
        name="pass_hat_k",
        value=found.estimate if found else None,
        bound=gate.at_least,
        rests_on=rests_on,
        where=where,
        verdict=VERDICT_OF[outcome],
    )


# ── no_regression ────────────────────────────────────────────────────────────────────────────────


def pairs_of(baseline: Baseline, epochs: Mapping[Pairing, Epochs]) -> dict[str, tuple[Pairing, Pair]]:
    """Each scenario before and now, of one agent: that of the same name, or the only one there is. By the
    name that the pair has in the comparison."""
    agents = {agent for _, agent in epochs}
    pairs = {}
    for (scenario, agent), own in epochs.items():
        known = baseline.outcomes.get(agent)
        if known is None and len(agents) == len(baseline.outcomes) == 1:
            (known,) = baseline.outcomes.values()
        if known and scenario in known:
            name = f"{scenario}\0{agent}"
            pairs[name] = ((scenario, agent), Pair(name, Tally.of(known[scenario]), Tally.of(own.fixed)))
    return pairs


def _no_regression(
    gate: NoRegressionGate, report: Report, epochs: Mapping[Pairing, Epochs], samples: _Samples
) -> Iterable[GateRow]:
    baseline, where = report.run.baseline, report.run.config.where("gates.no_regression")
    bound = f"below {gate.margin:g}"
    pairs = pairs_of(baseline, epochs) if baseline else {}
    if baseline is None or not pairs:
        told = "nothing to compare with: run with --baseline RUN"
        yield GateRow("no_regression", None, bound, told, where, Verdict.INCONCLUSIVE)
        return
    result = non_inferiority([pair for _, pair in pairs.values()], Margins(gate.margin, gate.scenario_margin))
    compared = {pairing for pairing, _ in pairs.values()}
    apart = [s for s in report.scenarios if (s.scenario.id, s.agent) not in compared]
    told = f"{plural(len(pairs), 'scenario')}, against {baseline.run_id}:"
    told += f" {_drop_words(result, [pair for _, pair in pairs.values()])}"
    told += _listed("not compared", [scenario.scenario.id for scenario in apart])
    told += _listed("no longer there", baseline.gone)
    yield GateRow("no_regression", result.drop, bound, told, where, VERDICT_OF[result.outcome])
    for name in result.dropped:
        yield _dropped(*pairs[name], "no drop", "surely dropped", where, Verdict.FAILED)
    for name in result.perhaps:
        low, high = drop_interval(pairs[name][1])
        told = f"perhaps dropped: 90 % interval from {low:.2g} to {high:.2g}"
        bound = f"no drop above {gate.scenario_margin:g}"
        yield _dropped(*pairs[name], bound, told, where, Verdict.INCONCLUSIVE)
    for scenario in apart:
        yield _on_its_own(scenario, baseline, report, samples)


def _dropped(pairing: Pairing, pair: Pair, bound: str, told: str, where: str, verdict: Verdict) -> GateRow:
    before, after = pair.before, pair.after
    lost = f", {after.missing} lost" if after.missing else ""
    return GateRow(
        name="no_regression",
        value=None if pair.difference is None else -float(pair.difference),
        bound=bound,
        rests_on=f"{after.successes} of {after.decided} epochs succeeded{lost},"
        f" {before.successes} of {before.decided} in the baseline: {told}",
        where=where,
        verdict=verdict,
        scenario=pairing[0],
        agent=pairing[1],
    )


def _on_its_own(scenario: ScenarioReport, baseline: Baseline, report: Report, samples: _Samples) -> GateRow:
    """A scenario that the baseline does not have, or not so: it passes as it would without a gate over
    repeated runs, unless another one of these looks at it by itself."""
    id, agent = scenario.scenario.id, scenario.agent
    changed = baseline.changed.get(agent, {}).get(id)
    why = f"changed since the baseline: {changed}" if changed else "new: not in the baseline"
    gates = report.run.config.gates
    verdicts = [samples[key].verdict for key in (*(s.key for s in scenario.samples), *scenario.missing)]
    passed = verdicts.count(Verdict.PASSED)
    told = ""
    if gates.pass_rate or (gates.pass_hat_k and gates.pass_hat_k.over == "scenario"):
        verdict, told = Verdict.PASSED, "; another gate decides"
    else:
        # What is lost is the matter of ``fault_tolerance``, unless nothing else is known.
        known = [verdict for verdict in verdicts if verdict is not Verdict.INCONCLUSIVE]
        verdict = Verdict.worst(known or [Verdict.INCONCLUSIVE])
    return GateRow(
        name="no_regression",
        value=f"{passed} of {len(verdicts)}",
        bound="its own checks",
        rests_on=f"{why}{told}",
        where=report.run.config.where("gates.no_regression"),
        verdict=verdict,
        scenario=id,
        agent=agent,
    )


def _drop_words(result: NonInferiority, pairs: Sequence[Pair]) -> str:
    """A run that is no worse than another may be as bad: that is told first."""
    told = f"fall of the mean: {result.surely_above:.2g} to {result.surely_below:.2g}"
    never = [pair for pair in pairs if pair.after.decided and not pair.after.successes]
    if never:
        before = ", as before" if not any(pair.before.successes for pair in never) else ""
        told = f"{len(never)} of {len(pairs)} failed in every epoch{before}; {told}"
    if all((pair.difference or 0) >= 0 for pair in pairs) and result.outcome is Outcome.ACCEPT:
        told = f"nothing got worse; {told}"
    if result.outcome is not Outcome.UNDECIDED:
        return told
    told += f", {len(result.perhaps)} perhaps dropped" if result.perhaps else ""
    if result.epochs_to_decide is None:
        return f"{told}: no number of epochs would decide at these rates"
    return f"{told}: about epochs: {result.epochs_to_decide} in each run would decide"


def _listed(what: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"; {what}: {', '.join(names[:_MOST_NAMED])}{more}" if names else ""
