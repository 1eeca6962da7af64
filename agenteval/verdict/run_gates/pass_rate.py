"""``gates.pass_rate``: a gate (pass rate threshold) on each scenario's true success rate, decided by a
statistical test that is planned before the first epoch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from agenteval.core.decision import RERUN_FAILED, RESUME, GateRow
from agenteval.core.plurals import plural
from agenteval.core.value import Number, Value
from agenteval.verdict.epochs import EpochOutcomes
from agenteval.verdict.run_gates.error_rates import GateErrorRates, count_error_rates
from agenteval.verdict.run_gates.gate import ONE_EACH, VERDICT_OF, Evidence, PlannedRun, RunGate
from agenteval.verdict.statistics import (
    PassRateRule,
    RateTest,
    SequentialDecision,
    StatisticalOutcome,
    epochs_for_green,
    epochs_to_decide,
    least_epochs,
    rate_test,
)


class PassRateGate(Value):
    """A test of each scenario's true success rate. The probability of accepting a rate of ``reject_below`` or
    less is at most ``1 - confidence``, and so is the probability (for a whole run) of rejecting a rate of
    ``at_least`` or more."""

    EXAMPLE: ClassVar[str] = "{at_least: 0.9, reject_below: 0.7}"

    at_least: Annotated[Number, Field(gt=0, le=1)]
    """Success rate at or above which a scenario counts as good, so a failed run is unlikely."""
    reject_below: Annotated[Number, Field(gt=0, lt=1)]
    """Success rate at or below which a scenario counts as bad, so a passed run is unlikely."""
    confidence: Annotated[Number, Field(ge=0.5, lt=1)] = 0.95
    """Confidence of a verdict; with 0.95, the verdict is wrong in at most 5 of 100 runs."""

    @model_validator(mode="after")
    def _in_order(self) -> PassRateGate:
        if self.reject_below >= self.at_least:
            raise ValueError(
                f"`reject_below` ({self.reject_below:g}) must be less than `at_least` ({self.at_least:g});"
                " for rates between the two, either verdict is acceptable"
            )
        return self


def rule_of(gate: PassRateGate, scenarios: int) -> PassRateRule:
    return PassRateRule(gate.at_least, gate.reject_below, gate.confidence, scenarios)


def planned_test(gate: PassRateGate, epochs: EpochOutcomes, scenarios: int) -> RateTest:
    """Return the test that was planned before the first epoch: a sequential test, or an exact test if the
    number of epochs is fixed."""
    return rate_test(rule_of(gate, scenarios), max(1, epochs.planned_min), max(1, epochs.planned_max))


def _rows(gate: PassRateGate, evidence: Evidence) -> Iterable[GateRow]:
    epochs = evidence.epochs
    # A log is not planned, and a shard has only some of the scenarios over which the gate is corrected.
    pairings = max(len(epochs), evidence.report.plan.pairings)
    rule = rule_of(gate, pairings)
    for (scenario, agent), outcomes in epochs.items():
        test = planned_test(gate, outcomes, pairings)
        decision = test.decide(outcomes.outcomes)
        decided = decision.epochs - decision.missing
        yield GateRow(
            name="pass_rate",
            value=decision.successes / decided if decided else None,
            bound=gate.at_least,
            basis=_basis(decision, outcomes, rule),
            where=evidence.where,
            verdict=VERDICT_OF[decision.outcome],
            scenario=scenario,
            agent=agent,
            resolution=_resolution(decision, outcomes, rule),
        )


def _basis(decision: SequentialDecision, outcomes: EpochOutcomes, rule: PassRateRule) -> str:
    decided = decision.epochs - decision.missing
    text = f"{decision.successes} of {decided} epochs succeeded"
    if decision.missing:
        text += f", {decision.missing} errored"
    if outcomes.replaced:
        text += f", {len(outcomes.replaced)} errored and replaced"
    match decision.outcome:
        case StatisticalOutcome.ACCEPT:
            return f"{text}: significantly above {rule.reject_below:g}"
        case StatisticalOutcome.REJECT:
            return f"{text}: significantly below {rule.at_least:g}"
        case _:
            return f"{text}: not decided; {_what_would_decide(decision, outcomes, rule)}"


def _resolution(decision: SequentialDecision, outcomes: EpochOutcomes, rule: PassRateRule) -> str:
    """Return the next step that would decide the scenario: a configuration line or a command to run."""
    decided = decision.epochs - decision.missing
    if outcomes.planned_max < least_epochs(rule):
        return f"epochs: {least_epochs(rule)}"
    if decision.outcome is StatisticalOutcome.CONTINUE and decision.epochs < outcomes.planned_max:
        return RESUME
    more = epochs_to_decide(decision.successes, decided, rule) if decided else 0
    if more is None:
        return "set `at_least` and `reject_below` further apart in `gates.pass_rate`"
    return f"epochs: {outcomes.planned_max + more}" if more else RERUN_FAILED


def _what_would_decide(decision: SequentialDecision, outcomes: EpochOutcomes, rule: PassRateRule) -> str:
    decided = decision.epochs - decision.missing
    if outcomes.planned_max < least_epochs(rule):
        least = plural(least_epochs(rule), "epoch")
        return f"needs at least {least} without a failure; planned: {outcomes.planned_max}"
    if decision.outcome is StatisticalOutcome.CONTINUE and decision.epochs < outcomes.planned_max:
        return "the run ended early"
    more = epochs_to_decide(decision.successes, decided, rule)
    if more is None:
        between = f"between {rule.reject_below:g} and {rule.at_least:g}"
        return f"a rate {between} may stay undecided" if decided else "no epoch was decided"
    if more == 0:
        return "the errored epochs could have decided either way"
    return f"about {more} more would decide at this rate"


def _estimate_error_rates(gate: PassRateGate, planned_run: PlannedRun) -> GateErrorRates:
    rule = rule_of(gate, len(planned_run.epochs))
    # An agent exactly at the bound is red as often as allowed, so the good one has half its failure rate.
    good = (1 + gate.at_least) / 2
    designs = [rate_test(rule, planned.min, planned.max) for planned in planned_run.epochs]
    most = max(planned.max for planned in planned_run.epochs)
    if most < least_epochs(rule):
        advice = (
            f"no run can be green, because that takes {plural(least_epochs(rule), 'epoch')} without a failure"
        )
    else:
        ranged = any(planned.min < planned.max for planned in planned_run.epochs)
        least = min(planned.min for planned in planned_run.epochs) if ranged else None
        enough = epochs_for_green(rule, good, min_epochs=least)
        written = f"{{min: {least}, max: {enough}}}" if ranged else f"{enough}"
        advice = (
            f"`epochs: {written}` would make a rate of {good:.3g} green in 8 of 10 runs" if enough else ""
        )
    return count_error_rates(
        "pass_rate", designs, planned_run.where, advice, good=good, bad=gate.reject_below
    )


def _unapplied(gate: PassRateGate, *, repeats: bool) -> str:
    return ONE_EACH if not repeats and least_epochs(rule_of(gate, 1)) > 1 else ""


PASS_RATE = RunGate(
    "pass_rate",
    "The true success rate of each scenario, from repeated runs.",
    PassRateGate,
    _rows,
    _estimate_error_rates,
    unapplied=_unapplied,
    decides_each=lambda _: True,
)
