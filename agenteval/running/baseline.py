"""Implements ``--baseline RUN`` (baseline comparison, regression testing): compares the new run with an
earlier run if the two runs are comparable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from agenteval.core.decision import Decision
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import Baseline, RunStarted
from agenteval.core.run_summary import RunSummary
from agenteval.core.sample_report import SampleReport
from agenteval.files.runs import StoredRun, find_run
from agenteval.running.baseline_store import find_merge_base_run, is_merge_base
from agenteval.scoring.goals import GOAL, has_reached
from agenteval.verdict import gates, report
from agenteval.verdict.accepted_failures import apply_accept_list
from agenteval.verdict.comparability import match_agents, why_not_comparable
from agenteval.verdict.digest import summary_of
from agenteval.verdict.epochs import epoch_outcomes
from agenteval.verdict.reliability import outcomes_of
from agenteval.verdict.report import Report


def attach_baseline(started: RunStarted, name: str, root: Path, *, selected: bool) -> RunStarted:
    """Return ``started`` with the results of the baseline run ``name`` added. ``selected`` is True if the
    command line selected only some scenarios or agents. In that case, the baseline may contain scenarios and
    agents that were not selected. Raise ``AuthorError`` if there is no such run or if nothing in the run is
    comparable, and ``NoBaselineError`` if no run exists for the commit."""
    if is_merge_base(name):
        found = find_merge_base_run(name, root, started.plan.suite.profile)
    else:
        found = find_run(name, root)
    before = report.fold_run(StoredRun(found)).report()
    if shard := before.plan.shard:
        what = f"--baseline: the run {before.run.run_id} is only shard {shard} of a run"
        raise AuthorError(Problem(what, "merge the shards, and name the merged run"))
    decision = gates.decide(apply_accept_list(before, started))
    old = summary_of(before, decision)
    new = summary_of(report.build_report([started]), None)
    if problems := why_not_comparable(old, new):
        raise AuthorError(*(problem._replace(what=f"--baseline: {problem.what}") for problem in problems))
    agents, _ = match_agents(old, new)
    known = _outcomes(before, decision)
    baseline = Baseline(
        run_id=before.run.run_id,
        outcomes={
            both.after: {now.id: known[both.before][then.id] for then, now in both.pairs} for both in agents
        },
        changed={
            both.after: {each.scenario: each.differing for each in both.unmatched_scenarios if each.parts}
            for both in agents
        },
        gone=() if selected else _gone(old, new),
        reached=tuple(
            dict.fromkeys(
                now.id
                for both in agents
                for then, now in both.pairs
                if any(then.scores.get(GOAL, ()))  # its value is 0 or 1
            )
        ),
        effort={both.after: {now.id: then.effort for then, now in both.pairs} for both in agents},
    )
    return started.model_copy(update={"baseline": baseline})


def find_baseline_successes(baseline: Baseline | None, root: str) -> Callable[[str], SampleReport | None]:
    """Return a function that maps a scenario to a baseline conversation that reached the goal. Only scenarios
    that are the same in both runs are mapped. The baseline is read on the first call. If the baseline no
    longer exists, the function returns None."""
    known = frozenset(baseline.reached if baseline else ())

    @cache
    def samples() -> dict[str, SampleReport]:
        try:
            stored = StoredRun(find_run(baseline.run_id if baseline else "", Path(root)))
            before = report.fold_run(stored).report()
        except AuthorError:
            return {}
        return {sample.key.scenario: sample for sample in reversed(before.samples) if has_reached(sample)}

    return lambda scenario: samples().get(scenario) if scenario in known else None


def _gone(old: RunSummary, new: RunSummary) -> tuple[str, ...]:
    kept = {scenario.id for scenario in new.scenarios}
    return tuple(dict.fromkeys(scenario.id for scenario in old.scenarios if scenario.id not in kept))


def _outcomes(before: Report, decision: Decision) -> Mapping[str, dict[str, tuple[bool | None, ...]]]:
    outcomes: dict[str, dict[str, tuple[bool | None, ...]]] = {}
    for scenario in before.scenarios:
        epochs = epoch_outcomes(scenario, outcomes_of(scenario, decision))
        outcomes.setdefault(scenario.agent, {})[scenario.scenario.id] = epochs.fixed
    return outcomes
