"""One failure, once: what code has proven and a judge has found, too, is one finding that names both."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agenteval.core.score import Finding, Severity
from agenteval.scoring.detectors.table import DETECTORS

JUDGE = "judge"


def merge_findings(
    findings: Iterable[Finding], confirmed: Callable[[Finding], Finding] = lambda finding: finding
) -> tuple[Finding, ...]:
    """The findings of a sample, in their order, without those of a judge that code has proven: the proven
    one has their words in ``also`` and the higher severity of the two; if the judge has its very label, that
    of its effect (``confirmed``). Where code does not prove all of it, the label is the judge's. They are of
    the same turn and, where the judge names one, the same call; a judge's own label goes before another word
    for it."""
    told = list(findings)
    kept: list[Finding | None] = list(told)
    for index, finding in enumerate(told):
        if finding.detector != JUDGE or finding.turn is None or finding.criterion:
            continue
        place = _proof_of(finding, told)
        if place is not None and (proof := kept[place]) is not None:
            rated = confirmed(proof) if proof.label == finding.label else proof
            kept[place] = _joined(proof, finding, rated.severity)
            kept[index] = None
    return tuple(finding for finding in kept if finding is not None)


def _proof_of(finding: Finding, told: Iterable[Finding]) -> int | None:
    """Where the finding is that proves ``finding``."""
    places = {
        place: proof.label == finding.label
        for place, proof in enumerate(told)
        if proof.detector != JUDGE and is_same(proof, finding)
    }
    return min(places, key=lambda place: (not places[place], place), default=None)


def proves(proof: Finding, finding: Finding) -> bool:
    """Whether code has proven all that a judge's finding says."""
    known = DETECTORS.get(proof.detector)
    return bool(known and known.proves_label) and is_same(proof, finding)


def is_same(proof: Finding, finding: Finding) -> bool:
    """Whether what a judge found is what code has proven."""
    known = DETECTORS.get(proof.detector)
    words = known.alternative_labels if known else frozenset()
    return (
        proof.turn == finding.turn
        and (finding.call is None or proof.call is None or proof.call == finding.call)
        and (proof.label == finding.label or finding.label in words)
    )


def _joined(proof: Finding, finding: Finding, confirmed: Severity) -> Finding:
    said = finding.explanation or finding.evidence
    known = DETECTORS.get(proof.detector)
    is_of_judge = known is not None and not known.proves_label and finding.label != proof.label
    claimed = {name: getattr(finding, name) for name in _OF_THE_LABEL} if is_of_judge else {}
    return proof.model_copy(
        update={
            **claimed,
            "severity": max(proof.severity, finding.severity, confirmed, key=lambda severity: severity.rank),
            "also": (*proof.also, f"{finding.detector}: {said}" if said else finding.detector),
        }
    )


_OF_THE_LABEL = ("label", "metric", "evidence", "references", "span")
"""What a finding says under its label, and with which words."""
