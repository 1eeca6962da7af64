"""Collects the findings of a whole run: their locations, the causes that code can identify, and the effective
severities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from agenteval.core.folding import fold
from agenteval.core.safe_text import one_line
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Finding, Issue, IssueExample, Occurrence, Severity
from agenteval.core.trajectory import Trajectory
from agenteval.scoring.finding_merge import JUDGE
from agenteval.scoring.finding_severity import find_cited_calls


class Cause(NamedTuple):
    """The root cause, to the extent that code can identify it.

    A cause consists of names and labels only, never of a judge's prose, so that it stays the same in the next
    run."""

    metric: str
    label: str
    tool: str
    criterion: str
    rule: str = ""


@dataclass(frozen=True)
class LocatedFinding:
    """A finding with its location."""

    number: int
    """The finding's number in the run, from 1."""
    key: SampleKey
    index: int
    """The finding's index among the sample's findings."""
    finding: Finding
    tool: str = ""
    """The tool of the call that the finding is about, or the tool that was not called. Empty if there is
    neither."""

    @property
    def id(self) -> str:
        """The name by which a model refers to the finding."""
        return f"F{self.number}"

    @property
    def cause(self) -> Cause:
        finding = self.finding
        rule = fold(finding.references.rule).strip(" .,;:!?-\"'")
        return Cause(finding.metric, finding.label, self.tool, finding.criterion, rule)


def locate_findings(
    samples: Iterable[tuple[SampleKey, Trajectory, Sequence[Finding]]],
) -> tuple[LocatedFinding, ...]:
    """Return each finding with its location, numbered independently of the order of the samples."""
    placed = []
    for key, trajectory, findings in samples:
        turns = [turn.tool_calls for turn in trajectory.all_turns]
        for index, finding in enumerate(findings):
            call = next(iter(find_cited_calls(finding, turns)), None)
            tool = call.name if call else finding.references.tool
            placed.append(LocatedFinding(0, key, index, finding, tool))
    placed.sort(key=_sort_key)
    return tuple(replace(each, number=number) for number, each in enumerate(placed, 1))


def _sort_key(each: LocatedFinding) -> tuple[Any, ...]:
    key, finding = each.key, each.finding
    turn = -1 if finding.turn is None else finding.turn
    call = -1 if finding.call is None else finding.call
    sample = (key.agent, key.scenario, key.variant, key.epoch)
    return (
        *sample,
        turn,
        call,
        finding.detector,
        each.cause,
        finding.evidence,
        finding.explanation,
        each.index,
    )


def pick_varied_findings(members: Sequence[LocatedFinding], limit: int) -> list[LocatedFinding]:
    """Pick up to ``limit`` findings, in order. Prefer findings from different scenarios, and then from
    different samples."""
    scenarios: dict[str, dict[SampleKey, int]] = {}
    seen: Counter[SampleKey] = Counter()
    ranked = []
    for each in members:
        samples = scenarios.setdefault(each.key.scenario, {})
        sample = samples.setdefault(each.key, len(samples))
        ranked.append((seen[each.key], sample, each.number, each))
        seen[each.key] += 1
    ranked.sort(key=lambda item: item[:3])
    return sorted((item[3] for item in ranked[:limit]), key=lambda each: each.number)


def build_issue_example(each: LocatedFinding) -> IssueExample:
    """Return the finding as an example of an issue."""
    finding = each.finding
    evidence = one_line(finding.evidence, 200)
    return IssueExample(**each.key.model_dump(), turn=finding.turn, call=finding.call, evidence=evidence)


# ── severity ───────────────────────────────────────────────────────────────────────────────────────


def effective_severities(
    issues: Iterable[Issue],
    findings: Mapping[SampleKey, Sequence[Finding]],
    overrides: Mapping[str, Severity] | None = None,
) -> dict[SampleKey, tuple[Severity, ...]]:
    """Return the effective severity of each finding in each sample, in order, with ``severity_from: model``.

    If a higher severity was proposed for a finding's issue, the finding's own severity is raised by one
    level. A harmless finding therefore does not become critical because of the findings it is grouped with. A
    severity that the author sets (``overrides``) is never changed, and a detector's finding that no judge
    confirms is at most high."""
    counted = {
        key: [finding.severity for finding in sample_findings] for key, sample_findings in findings.items()
    }
    for issue in issues:
        for occurrence in issue.occurrences:
            key = get_sample_key(occurrence)
            severities = counted.get(key, [])
            for index in occurrence.findings:
                if index < len(severities):
                    finding = findings[key][index]
                    severities[index] = _raise_severity(
                        finding, severities[index], issue.proposed_severity, overrides or {}
                    )
    return {key: tuple(severities) for key, severities in counted.items()}


def _raise_severity(
    finding: Finding, severity: Severity, proposed: Severity | None, overrides: Mapping[str, Severity]
) -> Severity:
    if finding.label in overrides or f"{finding.label}.{finding.rule_kind}" in overrides:
        return severity
    raised = severity.raised_towards(proposed)
    is_proof_alone = finding.detector != JUDGE and not finding.also
    return severity if is_proof_alone and raised is Severity.CRITICAL else raised


def get_sample_key(place: Occurrence | IssueExample) -> SampleKey:
    """Return the key of the sample that contains an occurrence or an example."""
    return SampleKey(scenario=place.scenario, agent=place.agent, epoch=place.epoch, variant=place.variant)
