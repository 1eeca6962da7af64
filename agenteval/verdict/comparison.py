"""Compare two runs scenario by scenario (regression testing): regressed, improved, unchanged or undecided.
Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import fsum, sqrt
from typing import Literal

from agenteval.core.errors import AuthorError
from agenteval.core.run_summary import FailureSummary, RunSummary, ScenarioSummary
from agenteval.core.score import Severity, Verdict
from agenteval.core.value import Value
from agenteval.verdict.comparability import MatchedAgents, UnmatchedScenario, match_agents, why_not_comparable
from agenteval.verdict.run_gates.no_regression import SCENARIO_MARGIN
from agenteval.verdict.statistics import (
    Change,
    Comparison,
    Margins,
    NonInferiority,
    Pair,
    ScenarioComparison,
    StatisticalOutcome,
    Tally,
    compare,
    fisher_exact,
    non_inferiority,
)
from agenteval.verdict.statistics.distributions import student_t_quantile

MARGIN = 0.05
"""The default for the largest drop in the mean that does not count as a regression."""
CONFIDENCE = 0.95
_VERDICTS = {StatisticalOutcome.ACCEPT: Verdict.PASSED, StatisticalOutcome.REJECT: Verdict.FAILED}
_EXIT_CODES = {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.INCONCLUSIVE: 3}
_ORDER = (Change.REGRESSED, Change.UNDECIDED, Change.IMPROVED, Change.UNCHANGED)


class ScenarioChange(Value):
    """The change in one scenario between two runs."""

    id: str
    change: Change
    before: Tally
    after: Tally
    low: float
    """The lower bound of the change in the success rate (after minus before), assuming the worst outcome for
    missing epochs."""
    high: float
    """The upper bound of the change, assuming the best outcome for missing epochs."""
    p_drop: float
    """The p-value of Fisher's exact test for a drop, with Holm's correction across all scenarios."""
    p_rise: float
    """The p-value of Fisher's exact test for a rise, with the same correction."""
    epochs_to_decide: int | None = None
    """The approximate number of epochs that each run needs at the observed rates; ``None`` if the change is
    already decided or no number of epochs would decide it."""


class ScenarioState(StrEnum):
    """The reason why a scenario is not compared."""

    CHANGED = "changed"
    NEW = "new"
    REMOVED = "removed"
    NOT_SELECTED = "not selected"
    """The scenario is in only one run, because the command line of the other run selected specific
    scenarios."""


class UncomparedScenario(Value):
    """A scenario that is not compared because it differs between the runs or is missing from one of them."""

    id: str
    agent: str
    state: ScenarioState
    parts: tuple[str, ...] = ()
    """The parts that differ between the runs."""
    before: Verdict | None
    """The verdict of the first run on its own version of the scenario."""
    after: Verdict | None
    """The verdict of the second run on its own version of the scenario."""

    @property
    def got_worse(self) -> bool:
        """True if the scenario passed before and no longer passes, whether the edit or the agent is the
        cause."""
        return self.before is Verdict.PASSED and self.after not in (Verdict.PASSED, None)


class MeanChange(Value):
    """The change in a mean across the scenarios that have a value in both runs."""

    name: str
    before: float
    after: float
    change: float
    low: float | None = None
    """The lower bound of the t interval for the change. Each scenario is a cluster of epochs. ``None`` if
    there are fewer than two scenarios or there is no spread."""
    high: float | None = None
    """The upper bound of the same interval."""
    scenarios: int
    """The number of scenarios that have a value in both runs."""


class FailureState(StrEnum):
    """The state of a failure after two runs, such as new or fixed."""

    NEW = "new"
    BACK = "back again"
    KNOWN = "known"
    FIXED = "fixed"
    """The failure occurred in the first run but not in any epoch of the second run whose failures are
    known."""
    UNKNOWN = "not decided"
    """The failure occurred in the first run, and the second run has no epoch whose failures are known."""


class FailureChange(Value):
    """A failure, identified by its fingerprint, and its occurrences in two runs."""

    fingerprint: str
    state: FailureState
    scenario: str
    what: str
    severity: Severity | None
    met_before: int
    """The number of epochs in the first run in which the failure occurred."""
    known_before: int
    """The number of epochs in the first run whose failures are known."""
    met_after: int
    known_after: int
    sure: bool
    """True if Fisher's exact test at the 5% level shows that the frequency of the failure changed. Otherwise,
    a new failure may have existed before, and a fixed failure may still exist."""
    seen_in: str = ""
    """The run before the baseline in which the failure occurred, if the failure has reappeared."""


class AgentComparison(Value):
    """The comparison of a pair of agents, one from each run."""

    before: str
    """The name of the agent in the first run."""
    after: str
    """The name of the agent in the second run."""
    verdict: Verdict
    change: float | None
    """The change in the mean success rate across scenarios."""
    low: float
    """The lower bound of the change."""
    high: float
    """The upper bound of the change."""
    drop_above: float
    """A lower bound on the drop at the stated confidence."""
    drop_below: float
    """An upper bound on the drop at the stated confidence."""
    further_low: float | None
    """The lower bound of the change for other scenarios of the same kind, by the cluster bootstrap."""
    further_high: float | None
    """The upper bound of the change for other scenarios of the same kind."""
    p_changed: float | None
    """The p-value of the sign-flip test across scenarios."""
    p_mcnemar: float | None
    """The p-value of McNemar's test, if each scenario has exactly one epoch in each run."""
    dropped: tuple[str, ...]
    perhaps_dropped: tuple[str, ...]
    """Scenarios in which the drop was large but is not certain."""
    epochs_to_decide: int | None
    scenarios: tuple[ScenarioChange, ...]
    scores: tuple[MeanChange, ...]
    effort: tuple[MeanChange, ...]
    failures: tuple[FailureChange, ...]


class RunComparison(Value):
    """The comparison of two runs."""

    schema_version: Literal[2] = 2
    before: str
    after: str
    margin: float
    confidence: float
    verdict: Verdict
    """Passed if the mean drop is certainly below ``margin`` and no scenario certainly dropped. Failed if the
    mean drop certainly exceeds ``margin`` or a scenario certainly dropped. Otherwise inconclusive. With
    several agents, this is the worst verdict. A changed scenario that no longer passes makes a passed
    comparison inconclusive."""
    exit_code: int
    agents: tuple[AgentComparison, ...]
    apart: tuple[UncomparedScenario, ...] = ()
    """The scenarios that are not compared."""
    left_out: tuple[str, ...] = ()
    """Descriptions of the agents that only one run contains."""

    @property
    def worsened(self) -> tuple[str, ...]:
        """Changed scenarios that passed before and no longer pass."""
        return tuple(dict.fromkeys(each.id for each in self.apart if each.got_worse))

    @property
    def renamed(self) -> tuple[tuple[str, str], ...]:
        """Pairs of differently named agents that were compared because neither run has another agent."""
        return tuple((agent.before, agent.after) for agent in self.agents if agent.before != agent.after)


def compare_runs(
    before: RunSummary,
    after: RunSummary,
    *,
    margin: float = MARGIN,
    earlier: Mapping[str, str] | None = None,
) -> RunComparison:
    """Compare ``after`` with the baseline ``before``, using the scenarios that are identical in both runs.

    ``earlier`` maps the fingerprint of each failure in runs older than the baseline to its run. The order of
    samples and scenarios does not matter. Raise ``AuthorError`` with every reason why the two runs cannot be
    compared."""
    if problems := why_not_comparable(before, after):
        raise AuthorError(*problems)
    agents, lost = match_agents(before, after)
    compared = tuple(_compare_agent(agent, margin, earlier or {}) for agent in agents if agent.pairs)
    apart = tuple(
        _to_uncompared(each, agent.after, before, after)
        for agent in agents
        for each in agent.unmatched_scenarios
    )
    doubt = [Verdict.INCONCLUSIVE for each in apart if each.got_worse]
    verdict = Verdict.worst((*(agent.verdict for agent in compared), *doubt))
    return RunComparison(
        before=before.run_id,
        after=after.run_id,
        margin=margin,
        confidence=CONFIDENCE,
        verdict=verdict,
        exit_code=_EXIT_CODES[verdict],
        agents=compared,
        apart=tuple(sorted(apart, key=_by_state)),
        left_out=tuple(each.sentence for each in lost),
    )


def _to_uncompared(
    one: UnmatchedScenario, agent: str, before: RunSummary, after: RunSummary
) -> UncomparedScenario:
    state = ScenarioState.CHANGED
    if one.before is None:
        state = ScenarioState.NOT_SELECTED if before.is_selection else ScenarioState.NEW
    elif one.after is None:
        state = ScenarioState.NOT_SELECTED if after.is_selection else ScenarioState.REMOVED
    return UncomparedScenario(
        id=one.scenario,
        agent=agent,
        state=state,
        parts=one.parts,
        before=one.before.verdict if one.before else None,
        after=one.after.verdict if one.after else None,
    )


def _by_state(one: UncomparedScenario) -> tuple[bool, int, str, str]:
    return not one.got_worse, list(ScenarioState).index(one.state), one.id, one.agent


def _compare_agent(both: MatchedAgents, margin: float, earlier: Mapping[str, str]) -> AgentComparison:
    pairs = [Pair(old.id, _tally(old), _tally(new)) for old, new in both.pairs]
    margins = Margins(margin, SCENARIO_MARGIN)
    comparison, gate = compare(pairs, CONFIDENCE), non_inferiority(pairs, margins, CONFIDENCE)
    return AgentComparison(
        before=both.before,
        after=both.after,
        verdict=_VERDICTS.get(gate.outcome, Verdict.INCONCLUSIVE),
        **_agent_figures(comparison, gate),
        scenarios=tuple(sorted(map(_to_scenario_change, comparison.scenarios), key=_by_change)),
        scores=_compare_means([(old.scores, new.scores) for old, new in both.pairs]),
        effort=_compare_means([(old.effort, new.effort) for old, new in both.pairs]),
        failures=_compare_failures(both.pairs, earlier),
    )


def _agent_figures(
    comparison: Comparison, gate: NonInferiority
) -> dict[str, float | int | tuple[str, ...] | None]:
    further = comparison.users_like_these
    return {
        "change": comparison.change,
        "low": comparison.these_scenarios.low,
        "high": comparison.these_scenarios.high,
        "drop_above": gate.surely_above,
        "drop_below": gate.surely_below,
        "further_low": further.low if further else None,
        "further_high": further.high if further else None,
        "p_changed": comparison.sign_flip.value if comparison.sign_flip else None,
        "p_mcnemar": comparison.mcnemar,
        "dropped": tuple(sorted(gate.dropped)),
        "perhaps_dropped": tuple(sorted(gate.perhaps)),
        "epochs_to_decide": gate.epochs_to_decide,
    }


def _tally(scenario: ScenarioSummary) -> Tally:
    return Tally(scenario.successes, scenario.decided, scenario.planned)


def _to_scenario_change(comparison: ScenarioComparison) -> ScenarioChange:
    return ScenarioChange(
        id=comparison.pair.scenario,
        change=comparison.change,
        before=comparison.pair.before,
        after=comparison.pair.after,
        low=comparison.low,
        high=comparison.high,
        p_drop=comparison.p_drop,
        p_rise=comparison.p_rise,
        epochs_to_decide=comparison.epochs_to_decide,
    )


def _by_change(scenario: ScenarioChange) -> tuple[int, str]:
    return _ORDER.index(scenario.change), scenario.id


# ── means ────────────────────────────────────────────────────────────────────────────────────────

_Values = Mapping[str, tuple[float, ...]]


def _compare_means(pairs: Sequence[tuple[_Values, _Values]]) -> tuple[MeanChange, ...]:
    names = sorted({name for old, new in pairs for name in old.keys() & new.keys()})
    found = [_compare_mean(name, [(old.get(name), new.get(name)) for old, new in pairs]) for name in names]
    return tuple(change for change in found if change)


def _compare_mean(
    name: str, values: Sequence[tuple[tuple[float, ...] | None, tuple[float, ...] | None]]
) -> MeanChange | None:
    """Compare the means of one value. Each scenario has the same weight, regardless of its number of epochs.
    The interval follows Miller, E. (2024), "Adding error bars to evals", arXiv 2411.00640, on paired
    differences with clustered data."""
    both = [(fsum(old) / len(old), fsum(new) / len(new)) for old, new in values if old and new]
    if not both:
        return None
    before, after = (fsum(side) / len(both) for side in zip(*both, strict=True))
    reach = _interval_half_width([new - old for old, new in both])
    return MeanChange(
        name=name,
        before=before,
        after=after,
        change=after - before,
        low=None if reach is None else after - before - reach,
        high=None if reach is None else after - before + reach,
        scenarios=len(both),
    )


def _interval_half_width(differences: Sequence[float]) -> float | None:
    n = len(differences)
    mean = fsum(differences) / n
    spread = fsum((difference - mean) ** 2 for difference in differences)
    if n < 2 or spread < 1e-18:
        return None
    return student_t_quantile((1 + CONFIDENCE) / 2, n - 1) * sqrt(spread / (n - 1) / n)


# ── failures ─────────────────────────────────────────────────────────────────────────────────────


def _compare_failures(
    pairs: Sequence[tuple[ScenarioSummary, ScenarioSummary]], earlier: Mapping[str, str]
) -> tuple[FailureChange, ...]:
    found = [change for old, new in pairs for change in _compare_scenario_failures(old, new, earlier)]
    states = list(FailureState)
    return tuple(sorted(found, key=lambda f: (states.index(f.state), f.scenario, f.what, f.fingerprint)))


def _compare_scenario_failures(
    old: ScenarioSummary, new: ScenarioSummary, earlier: Mapping[str, str]
) -> list[FailureChange]:
    before = {failure.fingerprint: failure for failure in old.failures}
    after = {failure.fingerprint: failure for failure in new.failures}
    return [
        _to_failure_change(before.get(name), after.get(name), (old, new), earlier.get(name, ""))
        for name in sorted(before.keys() | after.keys())
    ]


def _to_failure_change(
    before: FailureSummary | None,
    after: FailureSummary | None,
    scenarios: tuple[ScenarioSummary, ScenarioSummary],
    seen_in: str,
) -> FailureChange:
    failure = after or before
    assert failure is not None
    old, new = scenarios
    state = _failure_state(before, after, new.known, seen_in)
    met_before, met_after = before.epochs if before else 0, after.epochs if after else 0
    p = fisher_exact(
        Tally(met_before, old.known, old.known), Tally(met_after, new.known, new.known), "either"
    )
    return FailureChange(
        fingerprint=failure.fingerprint,
        state=state,
        scenario=new.id,
        what=failure.what,
        severity=failure.severity,
        met_before=met_before,
        known_before=old.known,
        met_after=met_after,
        known_after=new.known,
        sure=p <= 1 - CONFIDENCE,
        seen_in=seen_in if state is FailureState.BACK else "",
    )


def _failure_state(
    before: FailureSummary | None, after: FailureSummary | None, known_after: int, seen_in: str
) -> FailureState:
    if after is None:
        return FailureState.FIXED if known_after else FailureState.UNKNOWN
    if before is not None:
        return FailureState.KNOWN
    return FailureState.BACK if seen_in else FailureState.NEW
