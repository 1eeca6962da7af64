"""The failures in recorded conversations, their frequencies, and three quoted examples of each. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agenteval.core.decision import Decision, SampleDecision
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Finding, Severity, Verdict
from agenteval.scoring.questions import is_open_question
from agenteval.verdict.counted_findings import locate_counted_findings
from agenteval.verdict.max_rates import failed_checks
from agenteval.verdict.recorded_logs import is_unreadable, unreadable_places
from agenteval.verdict.report import Report
from agenteval.verdict.statistics import Interval, wilson
from agenteval.verdict.thresholds import is_errored

QUOTATIONS = 3
"""The maximum number of quotations per row, in file order."""
_JUDGE, _CHECK = "judge", "check"
_LABELS = {"answer": "empty answer", "no_error": "agent error"}


@dataclass(frozen=True)
class Quotation:
    """A quotation from one conversation."""

    key: SampleKey
    where: str
    """The file and line of the log."""
    turn: int | None
    """The index of the turn, from 0; ``None`` for the conversation as a whole."""
    evidence: str
    explanation: str


@dataclass(frozen=True)
class FailureRate:
    """The frequency of a label, and the check, judge or detector that found it."""

    label: str
    found_by: str
    """The name of a detector, ``judge of METRIC`` or ``check NAME``."""
    metric: str
    conversations: int
    """The number of conversations with the label."""
    of: int
    """The number of conversations for which it is known whether the label applies."""
    unknown: int
    """The number of additional conversations for which it is not known whether the label applies."""
    severities: Mapping[Severity, int]
    """The number of conversations for each severity, counting only the worst severity in each conversation.
    Empty for a check, because a failed check fails its conversation."""
    quotations: tuple[Quotation, ...]

    @property
    def rate(self) -> float:
        return self.conversations / self.of

    @property
    def interval(self) -> Interval:
        """The 95% confidence interval of the rate."""
        return wilson(self.conversations, self.of)

    @property
    def severity(self) -> Severity | None:
        """The worst severity, or ``None`` for a check."""
        return max(self.severities, key=lambda each: each.rank, default=None)


@dataclass(frozen=True)
class FailureRates:
    """The failure rates in a log without scenarios."""

    records: int
    """The total number of records."""
    unreadable: tuple[str, ...]
    """The locations of the records that could not be read."""
    undecided: int
    """The number of conversations that could be read but are undecided."""
    unplaced: int
    """The number of conversations with content that no reader recognized."""
    rows: tuple[FailureRate, ...]
    """The rows, sorted by worst severity and then by frequency."""
    by_severity: Mapping[Severity, int] = field(default_factory=dict)
    """The number of conversations for each severity, counting only the worst severity in each
    conversation."""

    @property
    def conversations(self) -> int:
        """The number of conversations that could be read."""
        return self.records - len(self.unreadable)


def failure_rates(report: Report, decision: Decision) -> FailureRates | None:
    """Count the failures in a log. Return ``None`` if scenarios state the expected behavior, because
    conversations then pass or fail."""
    if not decision.without_scenarios:
        return None
    samples = {sample.key: sample for sample in report.samples}
    readable = [sample for sample in report.samples if not is_unreadable(sample)]
    found = [
        (_finding_row_key(finding), _finding_occurrence(samples[key], finding))
        for key, _, finding in locate_counted_findings(report.scenarios, decision.samples, report)
        if not is_open_question(finding)  # a question is not a failure: its conversation counts as undecided
    ]
    broken = [
        (_check_row_key(occurrence.name), occurrence)
        for sample in report.samples
        for occurrence in _check_occurrences(sample, decision.samples[sample.key])
    ]
    rows: dict[tuple[str, str, str], list[_Occurrence]] = {}
    for name, occurrence in (*found, *broken):
        rows.setdefault(name, []).append(occurrence)
    rates = [_rate(name, occurrences, readable) for name, occurrences in rows.items()]
    return FailureRates(
        records=len(report.samples),
        unreadable=unreadable_places(report),
        undecided=sum(decision.samples[s.key].verdict is Verdict.INCONCLUSIVE for s in readable),
        unplaced=sum(any(each.turn.unplaced for each in s.turns) for s in readable),
        rows=tuple(sorted(rates, key=_worst_first)),
        by_severity=_count_by_severity(_worst_severities(occurrence for _, occurrence in found), Severity),
    )


@dataclass(frozen=True)
class _Occurrence:
    """A label that was found in one conversation."""

    name: str
    severity: Severity | None
    """The severity, or ``None`` for a check."""
    quotation: Quotation


def _finding_row_key(finding: Finding) -> tuple[str, str, str]:
    is_judge = finding.detector == _JUDGE
    by = f"judge of {finding.metric}" if is_judge else finding.detector
    return finding.label, by, finding.metric if is_judge else finding.detector


def _check_row_key(name: str) -> tuple[str, str, str]:
    return _LABELS.get(name, name), f"{_CHECK} {name}", ""


def _finding_occurrence(sample: SampleReport, finding: Finding) -> _Occurrence:
    quoted = Quotation(sample.key, sample.record, finding.turn, finding.evidence, finding.explanation)
    return _Occurrence(finding.detector, finding.severity, quoted)


def _check_occurrences(sample: SampleReport, decided: SampleDecision) -> Iterator[_Occurrence]:
    broken = set(failed_checks(decided))
    for violation in decided.violations:
        if violation.name in broken and violation.verdict is Verdict.FAILED:
            quoted = Quotation(sample.key, sample.record, violation.turn, "", violation.detail)
            yield _Occurrence(violation.name, None, quoted)


def _worst_severities(occurrences: Iterable[_Occurrence]) -> dict[SampleKey, Severity | None]:
    """Return the worst severity found in each conversation."""
    worst: dict[SampleKey, Severity | None] = {}
    for each in occurrences:
        key, severity = each.quotation.key, each.severity
        known = worst.setdefault(key, severity)
        if known and severity and severity.rank > known.rank:
            worst[key] = severity
    return worst


def _count_by_severity(
    worst: Mapping[SampleKey, Severity | None], order: Iterable[Severity]
) -> dict[Severity, int]:
    count = Counter(worst.values())
    return {severity: count[severity] for severity in order if count[severity]}


def _rate(
    name: tuple[str, str, str], occurrences: Sequence[_Occurrence], readable: Sequence[SampleReport]
) -> FailureRate:
    label, by, metric = name
    worst = _worst_severities(occurrences)
    first: dict[SampleKey, Quotation] = {}
    for each in occurrences:
        first.setdefault(each.quotation.key, each.quotation)
    others = [sample for sample in readable if sample.key not in worst]
    unknown = sum(_is_unknown(sample, metric) for sample in others)
    # A judge that was not called for a conversation provides no information about it.
    is_judged = by.startswith(f"{_JUDGE} ")
    judged = [s for s in others if not is_judged or _is_judged(s, metric)]
    known_of = sum(not _is_unknown(sample, metric) for sample in judged)
    return FailureRate(
        label=label,
        found_by=by,
        metric=metric if is_judged else "",
        conversations=len(worst),
        of=len(worst) + known_of,
        unknown=unknown,
        severities=_count_by_severity(worst, reversed(Severity)),
        quotations=tuple(first.values())[:QUOTATIONS],
    )


def _is_unknown(sample: SampleReport, metric: str) -> bool:
    """Check whether the row's label might apply to a conversation in which the label was not found."""
    if is_errored(sample):
        return True
    failed = any(failure.metric == metric for failure in sample.all_failures)
    return failed or any(score.is_open and score.metric == metric for score in sample.all_scores)


def _is_judged(sample: SampleReport, metric: str) -> bool:
    return any(score.metric == metric for score in sample.all_scores)


def _worst_first(row: FailureRate) -> tuple[int, float, str, str]:
    """Return the sort key of a row: by severity, then by rate. A failed check ranks above the worst finding
    because it fails its conversation."""
    rank = len(Severity) if row.severity is None else row.severity.rank
    return -rank, -row.rate, row.label, row.found_by
