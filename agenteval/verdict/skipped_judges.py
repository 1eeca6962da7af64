"""``judge: {on_failure: skip}``: determine which failed judges have no effect on the verdict. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.plan import Plan
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.score import Check, ScoreFailure
from agenteval.files.prompts import CRITERIA, USER_REVIEW
from agenteval.verdict.report import Report


def skipped_judges(sample: SampleReport, scenario: ScenarioReport, plan: Plan) -> tuple[ScoreFailure, ...]:
    """Return the sample's failed judges that are skipped: those whose metric has no threshold and that had
    not already given a verdict that would fail the sample. Failures caused by the author and answers missing
    from the record are never skipped."""
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
    """Check whether unjudged criteria in a sample are skipped. They are skipped all together or not at all,
    because a check does not indicate which failure it belongs to."""
    criteria_failures = [failure for failure in sample.all_failures if failure.metric == CRITERIA]
    return bool(criteria_failures) and all(
        any(each is failure for each in failures) for failure in criteria_failures
    )


def is_unjudged(check: Check) -> bool:
    """Check whether the check is a criterion that no judge answered. The answer *not clear* is an answer."""
    return check.name == CRITERIA and check.passed is None and not check.by


def all_skipped_judges(report: Report) -> Iterator[ScoreFailure]:
    """Yield all skipped judges in a run."""
    for scenario in report.scenarios:
        for sample in scenario.samples:
            yield from skipped_judges(sample, scenario, report.plan)
