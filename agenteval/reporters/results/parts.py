"""Build parts of the results for programs: checks, findings and issues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Finding
from agenteval.reporters.results import shape
from agenteval.reporters.words.issue import IssueText
from agenteval.scoring.findings import get_sample_key
from agenteval.verdict.fingerprints import FingerprintedFailure, SampleFailures, failures_of
from agenteval.verdict.report import Report


def failures_by_sample(report: Report) -> dict[SampleKey, SampleFailures]:
    """Return the failures of each sample with findings. Their fingerprints identify them in the next run."""
    return {
        sample.key: failures_of(sample, scenario.scenario)
        for scenario in report.scenarios
        for sample in scenario.samples
        if sample.findings
    }


def check_shapes(
    checks: Iterable[Check], found: SampleFailures, *, turn: int | None
) -> list[shape.CheckShape]:
    return [_check(check, found.checks.get((turn, place), ())) for place, check in enumerate(checks)]


def _check(check: Check, failures: Sequence[FingerprintedFailure]) -> shape.CheckShape:
    is_judged = bool(check.by)
    return shape.CheckShape.from_value(
        check,
        arose=None if check.arose else False,
        scripted=check.scripted if is_judged else None,
        calibrated=False if is_judged else None,
        fingerprints=[failure.fingerprint for failure in failures],
        covers=[failure.what for failure in failures],
    )


def finding_shape(finding: Finding, issue: str | None, failure: FingerprintedFailure) -> shape.FindingShape:
    return shape.FindingShape.from_value(
        finding,
        issue=issue,
        fingerprint=failure.fingerprint,
        covers=failure.what,
        kind=finding.rule_kind,
    )


def issue_shape(text: IssueText, failures: Mapping[SampleKey, SampleFailures]) -> shape.IssueShape:
    issue = text.issue
    fingerprints = {
        failures[key].findings[index].fingerprint
        for occurrence in issue.occurrences
        if (key := get_sample_key(occurrence)) in failures
        for index in occurrence.findings
        if index < len(failures[key].findings)
    }
    return shape.IssueShape.from_value(issue, severity=text.severity, fingerprints=sorted(fingerprints))
