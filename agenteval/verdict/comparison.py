"""Two runs, scenario by scenario: regressed, improved, unchanged, not decided. Pure."""

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
"""A mean drop that is still taken for no regression, unless the author says otherwise."""
CONFIDENCE = 0.95
_VERDICTS = {StatisticalOutcome.ACCEPT: Verdict.PASSED, StatisticalOutcome.REJECT: Verdict.FAILED}
_EXIT_CODES = {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.INCONCLUSIVE: 3}
_ORDER = (Change.REGRESSED, Change.UNDECIDED, Change.IMPROVED, Change.UNCHANGED)


class ScenarioChange(Value):
    """``low`` and ``high`` bound the change of the success rate (after minus before), missing epochs in the
    worst case. ``p_drop`` and ``p_rise``: Fisher's exact tests, corrected over scenarios by Holm.
    ``epochs_to_decide``: of each run, about, at the rates seen; ``None``: decided, or no number would."""

    id: str
    change: Change
    before: Tally
    after: Tally
    low: float
    high: float
    p_drop: float
    p_rise: float
    epochs_to_decide: int | None = None


class ScenarioState(StrEnum):
    """``NOT_SELECTED``: one run has it, and the command line of the other chose what it ran."""

    CHANGED = "changed"
    NEW = "new"
    REMOVED = "removed"
    NOT_SELECTED = "not selected"


class UncomparedScenario(Value):
    """A scenario that is not compared, since it is not the same in both runs: ``parts`` of it differ, or one
    run does not have it. ``before`` and ``after`` are its verdicts; each run decided its own."""

    id: str
    agent: str
    state: ScenarioState
    parts: tuple[str, ...] = ()
    before: Verdict | None
    after: Verdict | None

    @property
    def got_worse(self) -> bool:
        """Whether it passed before and does not now: by its edit or by the agent, which nobody knows."""
        return self.before is Verdict.PASSED and self.after not in (Verdict.PASSED, None)


class MeanChange(Value):
    """A mean over ``scenarios`` that have it in both runs. ``low`` and ``high``: the t interval of the change
    over scenarios, each a cluster of its epochs; ``None`` where there are fewer than two or no spread."""

    name: str
    before: float
    after: float
    change: float
    low: float | None = None
    high: float | None = None
    scenarios: int


class FailureState(StrEnum):
    """``FIXED``: met before, and in no known epoch since; ``UNKNOWN``: no epoch since is known."""

    NEW = "new"
    BACK = "back again"
    KNOWN = "known"
    FIXED = "fixed"
    UNKNOWN = "not decided"


class FailureChange(Value):
    """A failure by its fingerprint. ``met_before`` of ``known_before`` epochs, and since. ``sure``: Fisher's
    exact test at 5 % says that its frequency changed; else a new one may have been there, and a fixed one may
    be. ``seen_in``: the run that had it before the baseline, where it is back again."""

    fingerprint: str
    state: FailureState
    scenario: str
    what: str
    severity: Severity | None
    met_before: int
    known_before: int
    met_after: int
    known_after: int
    sure: bool
    seen_in: str = ""


class AgentComparison(Value):
    """``before`` and ``after`` name the agent. ``change`` is that of the mean success rate over scenarios,
    ``low`` and ``high`` bound it. ``drop_above`` and ``drop_below``: what the fall surely exceeds, and surely
    stays below. ``perhaps_dropped``: scenarios whose drop was large and is not sure. ``further_low`` and
    ``further_high``: for scenarios like these, by the cluster bootstrap. ``p_changed``: sign-flip test over
    scenarios; ``p_mcnemar`` where each has one epoch in each run."""

    before: str
    after: str
    verdict: Verdict
    change: float | None
    low: float
    high: float
    drop_above: float
    drop_below: float
    further_low: float | None
    further_high: float | None
    p_changed: float | None
    p_mcnemar: float | None
    dropped: tuple[str, ...]
    perhaps_dropped: tuple[str, ...]
    epochs_to_decide: int | None
    scenarios: tuple[ScenarioChange, ...]
    scores: tuple[MeanChange, ...]
    effort: tuple[MeanChange, ...]
    failures: tuple[FailureChange, ...]


class RunComparison(Value):
    """``verdict``: passed if the mean drop is surely below ``margin`` and no scenario surely dropped, failed
    if it surely exceeds it or one surely dropped, else inconclusive; the worst of all agents. A changed
    scenario that no longer passes leaves it inconclusive. ``apart``: scenarios that are not compared;
    ``left_out``: agents that one run alone has, in words."""

    schema_version: Literal[2] = 2
    before: str
    after: str
    margin: float
    confidence: float
    verdict: Verdict
    exit_code: int
    agents: tuple[AgentComparison, ...]
    apart: tuple[UncomparedScenario, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def worsened(self) -> tuple[str, ...]:
        """Changed scenarios that passed before and do not now."""
        return tuple(dict.fromkeys(each.id for each in self.apart if each.got_worse))

    @property
    def renamed(self) -> tuple[tuple[str, str], ...]:
        """Agents of two names that were compared because each run has no other."""
        return tuple((agent.before, agent.after) for agent in self.agents if agent.before != agent.after)


def compare_runs(
    before: RunSummary,
    after: RunSummary,
    *,
    margin: float = MARGIN,
    earlier: Mapping[str, str] | None = None,
) -> RunComparison:
    """``after`` against the baseline ``before``: the scenarios that are in both and equal. ``earlier``:
    failures of runs older than the baseline, by fingerprint the run. The order of samples and scenarios does
    not matter. Raises ``AuthorError`` with every reason why the two cannot be compared."""
    if problems := why_not_comparable(before, after):
        raise AuthorError(*problems)
    agents, lost = match_agents(before, after)
    compared = tuple(_agent(agent, margin, earlier or {}) for agent in agents if agent.pairs)
    apart = tuple(
        _apart(each, agent.after, before, after) for agent in agents for each in agent.unmatched_scenarios
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


def _apart(one: UnmatchedScenario, agent: str, before: RunSummary, after: RunSummary) -> UncomparedScenario:
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


def _agent(both: MatchedAgents, margin: float, earlier: Mapping[str, str]) -> AgentComparison:
    pairs = [Pair(old.id, _tally(old), _tally(new)) for old, new in both.pairs]
    margins = Margins(margin, SCENARIO_MARGIN)
    said, gate = compare(pairs, CONFIDENCE), non_inferiority(pairs, margins, CONFIDENCE)
    return AgentComparison(
        before=both.before,
        after=both.after,
        verdict=_VERDICTS.get(gate.outcome, Verdict.INCONCLUSIVE),
        **_figures(said, gate),
        scenarios=tuple(sorted(map(_scenario, said.scenarios), key=_by_change)),
        scores=_means([(old.scores, new.scores) for old, new in both.pairs]),
        effort=_means([(old.effort, new.effort) for old, new in both.pairs]),
        failures=_failures(both.pairs, earlier),
    )


def _figures(said: Comparison, gate: NonInferiority) -> dict[str, float | int | tuple[str, ...] | None]:
    further = said.users_like_these
    return {
        "change": said.change,
        "low": said.these_scenarios.low,
        "high": said.these_scenarios.high,
        "drop_above": gate.surely_above,
        "drop_below": gate.surely_below,
        "further_low": further.low if further else None,
        "further_high": further.high if further else None,
        "p_changed": said.sign_flip.value if said.sign_flip else None,
        "p_mcnemar": said.mcnemar,
        "dropped": tuple(sorted(gate.dropped)),
        "perhaps_dropped": tuple(sorted(gate.perhaps)),
        "epochs_to_decide": gate.epochs_to_decide,
    }


def _tally(scenario: ScenarioSummary) -> Tally:
    return Tally(scenario.successes, scenario.decided, scenario.planned)


def _scenario(said: ScenarioComparison) -> ScenarioChange:
    return ScenarioChange(
        id=said.pair.scenario,
        change=said.change,
        before=said.pair.before,
        after=said.pair.after,
        low=said.low,
        high=said.high,
        p_drop=said.p_drop,
        p_rise=said.p_rise,
        epochs_to_decide=said.epochs_to_decide,
    )


def _by_change(scenario: ScenarioChange) -> tuple[int, str]:
    return _ORDER.index(scenario.change), scenario.id


# ── means ────────────────────────────────────────────────────────────────────────────────────────

_Values = Mapping[str, tuple[float, ...]]


def _means(pairs: Sequence[tuple[_Values, _Values]]) -> tuple[MeanChange, ...]:
    names = sorted({name for old, new in pairs for name in old.keys() & new.keys()})
    found = [_mean(name, [(old.get(name), new.get(name)) for old, new in pairs]) for name in names]
    return tuple(change for change in found if change)


def _mean(
    name: str, values: Sequence[tuple[tuple[float, ...] | None, tuple[float, ...] | None]]
) -> MeanChange | None:
    """Each scenario counts once, however many epochs it had. The interval: Miller, E. (2024), "Adding error
    bars to evals", arXiv 2411.00640, paired differences of clusters."""
    both = [(fsum(old) / len(old), fsum(new) / len(new)) for old, new in values if old and new]
    if not both:
        return None
    before, after = (fsum(side) / len(both) for side in zip(*both, strict=True))
    reach = _reach([new - old for old, new in both])
    return MeanChange(
        name=name,
        before=before,
        after=after,
        change=after - before,
        low=None if reach is None else after - before - reach,
        high=None if reach is None else after - before + reach,
        scenarios=len(both),
    )


def _reach(differences: Sequence[float]) -> float | None:
    n = len(differences)
    mean = fsum(differences) / n
    spread = fsum((difference - mean) ** 2 for difference in differences)
    if n < 2 or spread < 1e-18:
        return None
    return student_t_quantile((1 + CONFIDENCE) / 2, n - 1) * sqrt(spread / (n - 1) / n)


# ── failures ─────────────────────────────────────────────────────────────────────────────────────


def _failures(
    pairs: Sequence[tuple[ScenarioSummary, ScenarioSummary]], earlier: Mapping[str, str]
) -> tuple[FailureChange, ...]:
    found = [change for old, new in pairs for change in _failures_of(old, new, earlier)]
    states = list(FailureState)
    return tuple(sorted(found, key=lambda f: (states.index(f.state), f.scenario, f.what, f.fingerprint)))


def _failures_of(
    old: ScenarioSummary, new: ScenarioSummary, earlier: Mapping[str, str]
) -> list[FailureChange]:
    before = {failure.fingerprint: failure for failure in old.failures}
    after = {failure.fingerprint: failure for failure in new.failures}
    return [
        _failure(before.get(name), after.get(name), (old, new), earlier.get(name, ""))
        for name in sorted(before.keys() | after.keys())
    ]


def _failure(
    before: FailureSummary | None,
    after: FailureSummary | None,
    scenarios: tuple[ScenarioSummary, ScenarioSummary],
    seen_in: str,
) -> FailureChange:
    told = after or before
    assert told is not None
    old, new = scenarios
    state = _state(before, after, new.known, seen_in)
    met_before, met_after = before.epochs if before else 0, after.epochs if after else 0
    p = fisher_exact(
        Tally(met_before, old.known, old.known), Tally(met_after, new.known, new.known), "either"
    )
    return FailureChange(
        fingerprint=told.fingerprint,
        state=state,
        scenario=new.id,
        what=told.what,
        severity=told.severity,
        met_before=met_before,
        known_before=old.known,
        met_after=met_after,
        known_after=new.known,
        sure=p <= 1 - CONFIDENCE,
        seen_in=seen_in if state is FailureState.BACK else "",
    )


def _state(
    before: FailureSummary | None, after: FailureSummary | None, known_after: int, seen_in: str
) -> FailureState:
    if after is None:
        return FailureState.FIXED if known_after else FailureState.UNKNOWN
    if before is not None:
        return FailureState.KNOWN
    return FailureState.BACK if seen_in else FailureState.NEW
