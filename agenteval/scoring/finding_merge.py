"""Merges findings about the same failure: if code proves a failure that a judge also found, a single finding
reports both."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agenteval.core.score import Finding, Severity
from agenteval.scoring.detectors.table import DETECTORS

JUDGE = "judge"


def merge_findings(
    findings: Iterable[Finding], confirmed: Callable[[Finding], Finding] = lambda finding: finding
) -> tuple[Finding, ...]:
    """Merge and deduplicate a sample's findings, in order: a judge's findings are merged into the findings
    that code has proven.

    A proven finding lists the judge's words in ``also`` and gets the higher of the two severities. If the
    judge uses the same label, the finding gets the severity of its effect (``confirmed``). If code does not
    prove everything that the judge found, the merged finding gets the judge's label. Findings match if they
    are in the same turn. When the judge names a call, they must also be about the same call. A finding with
    the judge's own label is preferred to a finding with an alternative label."""
    originals = list(findings)
    merged: list[Finding | None] = list(originals)
    for index, finding in enumerate(originals):
        if finding.detector != JUDGE or finding.turn is None or finding.criterion:
            continue
        place = _proof_of(finding, originals)
        if place is not None and (proof := merged[place]) is not None:
            rated = confirmed(proof) if proof.label == finding.label else proof
            merged[place] = _merge(proof, finding, rated.severity)
            merged[index] = None
    return tuple(finding for finding in merged if finding is not None)


def _proof_of(finding: Finding, findings: Iterable[Finding]) -> int | None:
    """Return the index of the finding that proves ``finding``, or ``None`` if there is none."""
    places = {
        place: proof.label == finding.label
        for place, proof in enumerate(findings)
        if proof.detector != JUDGE and is_same_failure(proof, finding)
    }
    return min(places, key=lambda place: (not places[place], place), default=None)


def proves(proof: Finding, finding: Finding) -> bool:
    """Check whether code has proven everything that a judge's finding states."""
    detector = DETECTORS.get(proof.detector)
    return bool(detector and detector.proves_label) and is_same_failure(proof, finding)


def is_same_failure(proof: Finding, finding: Finding) -> bool:
    """Check whether a judge's finding and a proof are about the same failure."""
    detector = DETECTORS.get(proof.detector)
    alternative_labels = detector.alternative_labels if detector else frozenset()
    return (
        proof.turn == finding.turn
        and (finding.call is None or proof.call is None or proof.call == finding.call)
        and (proof.label == finding.label or finding.label in alternative_labels)
    )


def _merge(proof: Finding, finding: Finding, confirmed: Severity) -> Finding:
    words = finding.explanation or finding.evidence
    detector = DETECTORS.get(proof.detector)
    is_of_judge = detector is not None and not detector.proves_label and finding.label != proof.label
    claimed = {name: getattr(finding, name) for name in _OF_THE_LABEL} if is_of_judge else {}
    return proof.model_copy(
        update={
            **claimed,
            "severity": max(proof.severity, finding.severity, confirmed, key=lambda severity: severity.rank),
            "also": (*proof.also, f"{finding.detector}: {words}" if words else finding.detector),
        }
    )


_OF_THE_LABEL = ("label", "metric", "evidence", "references", "span")
"""The fields that depend on a finding's label."""
