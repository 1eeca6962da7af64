"""Select the findings that count: those in samples that did not error, excluding accepted findings. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from agenteval.core.decision import SampleDecision
from agenteval.core.plan import Plan
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Finding, ScoreFailure, Severity
from agenteval.scoring.detectors.table import DETECTORS
from agenteval.scoring.goals import GOAL, may_gate_unjudged
from agenteval.verdict.accepted_failures import accepted_fingerprints
from agenteval.verdict.fingerprints import failures_of
from agenteval.verdict.report import Report
from agenteval.verdict.thresholds import NOT_THE_AGENTS

CountedFinding: TypeAlias = tuple[SampleKey, int, Finding]
"""A sample, the index of a finding in the sample, and the finding itself."""


def locate_counted_findings(
    scenarios: Iterable[ScenarioReport], samples: Mapping[SampleKey, SampleDecision], report: Report
) -> Iterable[CountedFinding]:
    """Yield the findings that count, with their sample and index."""
    for each in scenarios:
        names = (
            accepted_fingerprints(report.run, each.scenario.id) if report.plan.suite.accepted else frozenset()
        )
        for sample in each.samples:
            decided = samples.get(sample.key)
            if decided is None or decided.fault in NOT_THE_AGENTS:
                continue
            failures = failures_of(sample, each.scenario).findings if names else ()
            for place, finding in enumerate(sample.findings):
                if not names or failures[place].name_in(names) not in names:
                    yield sample.key, place, finding


def list_counted_findings(
    scenarios: Iterable[ScenarioReport], samples: Mapping[SampleKey, SampleDecision], report: Report
) -> list[Finding]:
    """Return only the findings that count, without samples or indexes."""
    return [finding for _, _, finding in locate_counted_findings(scenarios, samples, report)]


def may_hide(failure: ScoreFailure, scenario: ScenarioReport, plan: Plan) -> bool:
    """Check whether the failed judge or detector could have found something that fails the sample."""
    if plan.suite.fail_on is None:
        return False
    if failure.metric == GOAL:
        return may_gate_unjudged(scenario.samples, plan.suite)
    if failure.worst is None:
        return gates_by_severity(failure.metric, plan)
    proposed = Severity.CRITICAL if plan.suite.severity_from == "model" else None
    worst = failure.worst.raised_towards(proposed)
    return worst.rank >= plan.suite.fail_on.rank and gates_by_severity(failure.metric, plan)


def gates_by_severity(metric: str, plan: Plan) -> bool:
    """Check whether the results of the metric have a severity. Labels from judges and findings from detectors
    have one."""
    return metric in {*DETECTORS, *(spec.name for spec in plan.suite.metrics if spec.is_label)}


def failed_below_gate(report: Report) -> int:
    """Count the label and goal judges that failed but could not have found anything that fails a sample."""
    plan = report.plan
    return sum(
        not (failure.unclear or failure.author or failure.refused or plan.suite.skips_failed_judges)
        and (failure.metric == GOAL or gates_by_severity(failure.metric, plan))
        and not may_hide(failure, each, plan)
        for each in report.scenarios
        for sample in each.samples
        for failure in sample.all_failures
    )
