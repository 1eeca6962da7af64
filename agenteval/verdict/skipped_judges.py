"""``judge: {on_failure: skip}``: which judges that failed decide nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.plan import Plan
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.score import Check, ScoreFailure
from agenteval.files.prompts import CRITERIA, USER_REVIEW
from agenteval.verdict.report import Report


def skipped_judges(sample: SampleReport, scenario: ScenarioReport, plan: Plan) -> tuple[ScoreFailure, ...]:
    """The judges of a sample that failed and are skipped: no threshold names their metric, and they had given
    no verdict that would gate. A mistake of the author's is never skipped, and neither is an answer that the
    record does not tell."""
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
    """Whether the criteria of a sample that were not judged are among what is skipped: all of them, since a
    check does not say which failure it is of."""
    own = [failure for failure in sample.all_failures if failure.metric == CRITERIA]
    return bool(own) and all(any(each is failure for each in failures) for failure in own)


def is_unjudged(check: Check) -> bool:
    """Whether it is a criterion that no judge gave an answer to; *not clear* is one."""
    return check.name == CRITERIA and check.passed is None and not check.by


def all_skipped_judges(report: Report) -> Iterator[ScoreFailure]:
    """All that are skipped in a run."""
    for scenario in report.scenarios:
        for sample in scenario.samples:
            yield from skipped_judges(sample, scenario, report.plan)
