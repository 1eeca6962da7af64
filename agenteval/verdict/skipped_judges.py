"""``judge: {on_failure: skip}``: which failed judges decide nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.plan import Plan
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.score import Check, ScoreFailure
from agenteval.files.prompts import CRITERIA, USER_REVIEW
from agenteval.verdict.report import Report


def skipped_judges(sample: SampleReport, scenario: ScenarioReport, plan: Plan) -> tuple[ScoreFailure, ...]:
    """Return the judges of a sample that failed and are skipped: no threshold names their metric, and they
    had given no verdict that would gate. The author's mistakes are never skipped, nor are answers that the
    record does not contain."""
    if not plan.suite.skips_failed_judges:
        return ()
    judged = {CRITERIA, USER_REVIEW, *(spec.name for spec in plan.suite.metrics)}
    return tuple(
        failure
        for failure in sample.all_failures
        if failure.metric in judged - scenario.rules.thresholds.keys()
        and not (failure.author or failure.unclear or failure.is_verdict)
    )


def skips_criteria(sample: SampleReport, failures: tuple[ScoreFailure, ...]) -> bool:
    """Check whether the criteria of a sample that were not judged are skipped. It is all or none of them,
    because a check does not name the failure that it belongs to."""
    criteria_failures = [failure for failure in sample.all_failures if failure.metric == CRITERIA]
    return bool(criteria_failures) and all(
        any(each is failure for each in failures) for failure in criteria_failures
    )


def is_unjudged(check: Check) -> bool:
    """Check whether it is a criterion without an answer from a judge; *not clear* is an answer."""
    return check.name == CRITERIA and check.passed is None and not check.by


def all_skipped_judges(report: Report) -> Iterator[ScoreFailure]:
    """Yield all judges that are skipped in a run."""
    for scenario in report.scenarios:
        for sample in scenario.samples:
            yield from skipped_judges(sample, scenario, report.plan)
