"""Parts of the results for programs: what was checked, judged, found and accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agenteval.core.decision import AcceptedUse, Violation
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Finding, References, Score, ScoreFailure, Vote
from agenteval.core.trajectory import Usage
from agenteval.reporters.results import shape
from agenteval.reporters.words.issue import IssueText
from agenteval.scoring.findings import sample_of
from agenteval.verdict.fingerprints import Failure, SampleFailures, failures_of
from agenteval.verdict.report import Report


def failures_by_sample(report: Report) -> dict[SampleKey, SampleFailures]:
    """The failures of each sample, by which the next run knows them again."""
    return {
        sample.key: failures_of(sample, scenario.scenario)
        for scenario in report.scenarios
        for sample in scenario.samples
        if sample.findings
    }


def of_checks(checks: Iterable[Check], found: SampleFailures, *, turn: int | None) -> list[shape.CheckShape]:
    told = []
    for place, check in enumerate(checks):
        failures = found.checks.get((turn, place), ())
        told.append(
            shape.CheckShape(
                name=check.name,
                passed=check.passed,
                detail=check.detail,
                where=check.where,
                **({} if check.arose else {"arose": False}),
                **({"by": check.by, "scripted": check.scripted, "calibrated": False} if check.by else {}),
                **({"votes": of_votes(check.votes)} if check.votes else {}),
                **({"fingerprints": [failure.fingerprint for failure in failures]} if failures else {}),
                **({"covers": [failure.what for failure in failures]} if failures else {}),
            )
        )
    return told


def of_scores(scores: Iterable[Score]) -> dict[str, shape.ScoreShape]:
    return {
        score.metric: shape.ScoreShape(
            value=score.value,
            label=score.label,
            ok=score.ok,
            reason=score.reason,
            evidence=score.evidence,
            by=score.by,
            scripted=score.scripted,
            calibrated=False,  # no judge is, until there are people's labels to compare with
            **({"references": found} if (found := of_references(score.references)) else {}),
            **({"votes": of_votes(score.votes)} if score.votes else {}),
        )
        for score in scores
    }


def of_references(references: References) -> dict[str, Any]:
    """Those that there are."""
    return {name: value for name, value in references if value not in (None, "")}


def of_votes(votes: Iterable[Vote]) -> list[shape.VoteShape]:
    return [
        shape.VoteShape(
            verdict=vote.verdict,
            against=vote.against,
            reason=vote.reason,
            evidence=vote.evidence,
            references=of_references(vote.references),
        )
        for vote in votes
    ]


def of_score_failures(failures: Iterable[ScoreFailure]) -> list[shape.ScoreFailureShape]:
    return [
        shape.ScoreFailureShape(
            metric=failure.metric, message=failure.message, raw=failure.raw, not_asked=failure.refused
        )
        for failure in failures
    ]


def of_finding(finding: Finding, issue: str | None, failure: Failure) -> shape.FindingShape:
    return shape.FindingShape(
        detector=finding.detector,
        metric=finding.metric,
        label=finding.label,
        severity=finding.severity.value,
        turn=finding.turn,
        call=finding.call,
        evidence=finding.evidence,
        explanation=finding.explanation,
        issue=issue,
        fingerprint=failure.fingerprint,
        covers=failure.what,
        scripted=finding.scripted,
        **({"kind": finding.rule_kind.value} if finding.rule_kind else {}),
        **({"criterion": finding.criterion} if finding.criterion else {}),
        **({"span": finding.span} if finding.span else {}),
        **({"also": list(finding.also)} if finding.also else {}),
        **({"references": found} if (found := of_references(finding.references)) else {}),
    )


def of_issue(text: IssueText, failures: Mapping[SampleKey, SampleFailures]) -> shape.IssueShape:
    issue = text.issue
    fingerprints = {
        failures[key].findings[index].fingerprint
        for occurrence in issue.occurrences
        if (key := sample_of(occurrence)) in failures
        for index in occurrence.findings
        if index < len(failures[key].findings)
    }
    return shape.IssueShape(
        id=issue.id,
        agent=issue.agent,
        title=issue.title,
        explanation=issue.explanation,
        severity=text.severity.value,
        proposed_severity=issue.proposed_severity.value if issue.proposed_severity else None,
        not_the_agents_fault=issue.not_the_agents_fault,
        labels=list(issue.labels),
        metrics=list(issue.metrics),
        tools=list(issue.tools),
        findings=issue.findings,
        samples=issue.samples,
        scenarios=issue.scenarios,
        fingerprints=sorted(fingerprints),
        examples=[shape.IssueExampleShape(**dict(example)) for example in issue.examples],
        by=issue.by,
        scripted=issue.scripted,
    )


def of_accepted(use: AcceptedUse) -> shape.AcceptedShape:
    entry = use.entry
    return shape.AcceptedShape(
        fingerprint=entry.fingerprint,
        state=use.state.value,
        samples=use.samples,
        owner=entry.owner,
        reason=entry.reason,
        expires=entry.expires,
        scenario=entry.scenario,
        what=entry.what,
        where=entry.where,
    )


def of_usage(usage: Usage) -> shape.UsageShape:
    return shape.UsageShape(**dict(usage))


def of_violation(violation: Violation, epoch: int | None) -> shape.ViolationShape:
    return shape.ViolationShape(
        name=violation.name,
        detail=violation.detail,
        where=violation.where,
        verdict=violation.verdict.value,
        epoch=epoch,
        turn=violation.turn,
        fingerprints=list(violation.fingerprints),
        covers=list(violation.covers),
    )
