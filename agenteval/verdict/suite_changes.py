"""Find what changed between two runs of a suite other than the agent: the scenarios, the judges, the rules. A
step in the results between such runs need not be caused by the agent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from agenteval.core.decision import Decision
from agenteval.core.plan import Pairing
from agenteval.core.plurals import join_first, plural
from agenteval.core.run_summary import RunSummary
from agenteval.core.safe_text import one_line
from agenteval.core.scenario import ThresholdRule
from agenteval.verdict.comparability import MatchedAgents, UnmatchedScenario, find_differences
from agenteval.verdict.digest import summary_of
from agenteval.verdict.report import Report

_MOST_NAMED = 5


class RunBasis(NamedTuple):
    """What a run measured, and the rules by which it was decided."""

    summary: RunSummary
    thresholds: Mapping[Pairing, Mapping[str, ThresholdRule]]
    """The thresholds that apply, keyed by scenario and agent, and by metric."""
    gates: Mapping[str, Any]
    """The gates, and the settings that determine how they treat what is not decided."""
    accepted: frozenset[tuple[str, str]]
    """The fingerprints of the failures that were accepted on the day of the run, each with the scenario to
    which the entry is limited."""
    version: str
    """The version of agenteval, whose detectors decide which failures are found."""


def basis_of(report: Report, decision: Decision) -> RunBasis:
    """Return what a run measured, and the rules by which it was decided."""
    run, suite = report.run, report.plan.suite
    return RunBasis(
        summary=summary_of(report, decision),
        thresholds={
            (each.scenario.id, each.agent): {name: one.rule for name, one in each.rules.thresholds.items()}
            for each in report.scenarios
        },
        gates={
            **suite.gates.configured_gates,
            "fault_tolerance": suite.fault_tolerance,
            "on_undecided": suite.on_undecided,
        },
        accepted=frozenset(
            (each.fingerprint, each.scenario) for each in suite.accepted if each.holds_on(run.started_at[:10])
        ),
        version=run.versions.get("agenteval", "unknown"),
    )


def changes_between(before: RunBasis, after: RunBasis) -> tuple[str, ...]:
    """Return a sentence for each change. If there is none, only the agent or chance can have caused a
    difference between the results."""
    found = find_differences(before.summary, after.summary)
    texts = [] if found.agents else ["no agent is in both runs"]
    texts += _scenario_changes({each.scenario: each for each in found.unmatched_scenarios}.values())
    return (*texts, *found.setup, *_rule_changes(before, after, found.agents))


def _scenario_changes(unmatched: Iterable[UnmatchedScenario]) -> Iterator[str]:
    changes: dict[str, list[str]] = {"added": [], "removed": [], "changed": []}
    for each in unmatched:
        name = one_line(each.scenario, 60)
        if each.before is None:
            changes["added"].append(name)
        elif each.after is None:
            changes["removed"].append(name)
        else:
            changes["changed"].append(f"{name} ({', '.join(each.parts)})")
    for change, names in changes.items():
        if names:
            yield f"{plural(len(names), 'scenario')} {change}: {join_first(names, _MOST_NAMED)}"


def _rule_changes(before: RunBasis, after: RunBasis, agents: Iterable[MatchedAgents]) -> Iterator[str]:
    if any(
        before.thresholds[one.id, agent.before] != after.thresholds[one.id, agent.after]
        for agent in agents
        for one, _ in agent.pairs
    ):
        yield "the thresholds differ"
    if before.gates != after.gates:
        yield "the gates differ"
    if before.accepted != after.accepted:
        yield "the accept list differs"
    if before.version != after.version:
        yield f"the version of agenteval differs: {before.version} and {after.version}"
