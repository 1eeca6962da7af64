"""Compute failure fingerprints. The fingerprint of a failure is stable across runs: it is a hash of the facts
that a report prints next to it, and never of a judge's prose. Accepting a failure accepts exactly what is
printed.

A finding from code is identified by its scenario, label, detector, location and values: the call with its
arguments, or the text that it quotes. A judge's finding is identified by its scenario, metric, label and
reference. The reference is the criterion or, if there is none, a call with its arguments, the tool that was
not called, or the rule. The fingerprint of a critical finding without any reference includes its quotation,
so that accepting one unsafe statement does not accept another. (A goal is an exception, because a scenario
has only one.) A failed check is identified by its scenario, its scripted turn, its name and the part of the
rule that failed (``Check.parts``). Each part is a separate failure, so accepting one missing call does not
cover a second. The agent and the epoch are not included: the same failure by another agent has the same
fingerprint."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple
from unicodedata import normalize

from agenteval.core.call_outcomes import format_call
from agenteval.core.safe_text import one_line_with_digest
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check, Finding, Severity
from agenteval.core.trajectory import ToolCall, Turn
from agenteval.files.prompts import CRITERIA
from agenteval.scoring.finding_merge import JUDGE
from agenteval.scoring.findings import LocatedFinding, locate_findings
from agenteval.scoring.goals import GOAL

LENGTH = 12
"""The number of hexadecimal digits. The probability of a collision among 10,000 failures is about one in 5
million."""
SHOWN = 320
"""The maximum number of characters to print from the content that a fingerprint covers. The rest is replaced
with a digest."""


class FingerprintedFailure(NamedTuple):
    """A failure with its fingerprint."""

    fingerprint: str
    what: str
    """A description of what the fingerprint covers, such as ``tool_calls: missing book(…)``."""
    metric: str
    """The metric of a finding, or the name of the check."""
    severity: Severity | None = None
    """The severity of a finding; ``None`` for a failed check."""
    quoted: str = ""
    """The fingerprint that a judge's finding would have if it were critical."""

    def name_in(self, names: Collection[str]) -> str:
        """Return the narrower fingerprint ``quoted`` if ``names`` contains it, otherwise ``fingerprint``.
        Accepting a critical finding therefore also accepts the same finding at a lower severity."""
        return self.quoted if self.quoted in names else self.fingerprint


@dataclass(frozen=True)
class SampleFailures:
    """The failures of one sample."""

    findings: tuple[FingerprintedFailure, ...]
    """The failures that the findings report, in the order of the sample."""
    checks: Mapping[tuple[int | None, int], tuple[FingerprintedFailure, ...]]
    """The failures that the checks report, keyed by turn (``None`` for the whole conversation) and index."""

    @property
    def all(self) -> tuple[FingerprintedFailure, ...]:
        """All failures without duplicates. A failure that both a check and a finding report belongs to the
        check, because the check fails the sample."""
        check_failures = [failure for failures in self.checks.values() for failure in failures]
        return tuple({failure.fingerprint: failure for failure in (*self.findings, *check_failures)}.values())

    @property
    def names(self) -> frozenset[str]:
        """Every fingerprint that an accept-list entry may use."""
        failures = [*self.findings, *self.all]
        return frozenset(
            name for failure in failures for name in (failure.fingerprint, failure.quoted) if name
        )

    def renamed(self, names: Mapping[str, Sequence[str]]) -> SampleFailures:
        """Return the failures with new names. If several failures have the same name, the first one gets the
        first new name, and so on."""
        occurrences: Counter[str] = Counter()

        def now(name: str) -> str:
            known = names.get(name, (name,))
            occurrences[name] += 1
            return known[min(occurrences[name], len(known)) - 1]

        def of(failures: Iterable[FingerprintedFailure]) -> tuple[FingerprintedFailure, ...]:
            return tuple(
                each._replace(fingerprint=now(each.fingerprint), quoted=each.quoted and now(each.quoted))
                for each in failures
            )

        return SampleFailures(
            of(self.findings), {place: of(failures) for place, failures in self.checks.items()}
        )


def names_between(
    before: SampleReport, shown: SampleReport, scenario: Scenario
) -> dict[str, tuple[str, ...]]:
    """Map the name of each failure in the sample ``shown`` to the failure's names in the sample ``before``.
    The names are in report order and exclude those that did not change.

    If two failures look the same, they cannot be told apart, so both keep the name in ``shown``."""
    failures_before, failures_shown = (
        _failures_as_shown(before, scenario),
        _failures_as_shown(shown, scenario),
    )
    ends = (_end_as_shown(before, scenario),), (_end_as_shown(shown, scenario),)
    checks = [
        (failures_before.checks.get(place, ()), failures) for place, failures in failures_shown.checks.items()
    ]
    groups = [(failures_before.findings, failures_shown.findings), *checks, ends]
    names: dict[str, list[str]] = {}
    for group_before, group_shown in groups:
        if [each.metric for each in group_before] != [each.metric for each in group_shown]:
            continue
        for failure_before, failure_shown in zip(group_before, group_shown, strict=True):
            names.setdefault(failure_shown.fingerprint, []).append(failure_before.fingerprint)
            if failure_shown.quoted:
                names.setdefault(failure_shown.quoted, []).append(failure_before.quoted)
    return {name: tuple(known) for name, known in names.items() if set(known) != {name}}


def _hash(*names: str) -> str:
    # As JSON, so that different lists of names never give the same text.
    return blake2b(json.dumps(names).encode(), digest_size=LENGTH // 2).hexdigest()


def failures_of(sample: SampleReport, scenario: Scenario) -> SampleFailures:
    """Return every failure in a sample with its fingerprint, whether or not the failure affects the verdict.
    Names do not depend on masked text.

    A check that findings describe in more detail (an unknown tool, a criterion) has the fingerprint of the
    finding. A turn's check belongs to the scripted turn, because a turn's number is meaningless if the user
    is simulated."""
    failures = _failures_as_shown(sample, scenario)
    return failures.renamed(sample.names) if sample.names else failures


def _failures_as_shown(sample: SampleReport, scenario: Scenario) -> SampleFailures:
    checks_by_turn = _checks_by_turn(sample)
    if not sample.findings and all(
        check.passed is not False for _, checks in checks_by_turn for check in checks
    ):
        return SampleFailures((), {})
    placed = {
        each.index: each for each in locate_findings([(sample.key, sample.trajectory, sample.findings)])
    }
    found = [placed[index] for index in sorted(placed)]
    failures = tuple(_fingerprint_finding(each, sample) for each in found)
    checks = {
        (turn, index): _fingerprint_check(
            check, turn, sample, scenario, list(zip(found, failures, strict=True))
        )
        for turn, turn_checks in checks_by_turn
        for index, check in enumerate(turn_checks)
        if check.passed is False
    }
    return SampleFailures(failures, checks)


def _checks_by_turn(sample: SampleReport) -> list[tuple[int | None, Sequence[Check]]]:
    by_turn: list[tuple[int | None, Sequence[Check]]] = [(None, sample.checks)]
    return by_turn + [(index, turn.checks) for index, turn in enumerate(sample.turns)]


def _fingerprint_finding(found: LocatedFinding, sample: SampleReport) -> FingerprintedFailure:
    if found.finding.detector != JUDGE:
        return _fingerprint_code_finding(found, sample)
    finding, scenario = found.finding, found.key.scenario
    about = _reference_of(found, sample)
    names = ("judged", scenario, finding.metric, finding.label, about)
    quoted = ""
    if not about and finding.metric != GOAL:
        # Line breaks in the quotation do not matter.
        quoted = " ".join(normalize("NFC", finding.evidence).split())
    is_quoted = finding.severity is Severity.CRITICAL and bool(quoted)
    narrow = _hash(*names, quoted) if quoted else ""
    return FingerprintedFailure(
        fingerprint=narrow if is_quoted else _hash(*names),
        what=_describe_finding(finding, f"“{quoted}”" if is_quoted else about),
        metric=finding.metric,
        severity=finding.severity,
        quoted=narrow,
    )


def _fingerprint_code_finding(found: LocatedFinding, sample: SampleReport) -> FingerprintedFailure:
    finding = found.finding
    call = _cited_call(finding, sample)
    place = "" if finding.turn is None else _place(finding.turn, sample)
    about = format_call(call) if call else f"“{' '.join(finding.evidence.split())}”"
    name = _hash("proven", found.key.scenario, finding.label, finding.detector, place, about)
    where = f"{finding.detector}{place and f', {place}'}"
    return FingerprintedFailure(
        name, _describe_finding(finding, f"{about} ({where})"), finding.metric, finding.severity
    )


def _reference_of(found: LocatedFinding, sample: SampleReport) -> str:
    """Return the first reference of a judge's finding, which identifies its subject."""
    finding = found.finding
    if finding.criterion:
        return finding.criterion
    if call := _cited_call(finding, sample):
        return format_call(call)
    rule = f"rule “{found.cause.rule}”" if found.cause.rule else ""
    return finding.references.tool or rule or found.tool


def _cited_call(finding: Finding, sample: SampleReport) -> ToolCall | None:
    calls = sample.trajectory.tool_calls
    return calls[finding.call] if finding.call is not None and finding.call < len(calls) else None


def _describe_finding(finding: Finding, about: str) -> str:
    label = finding.label or finding.metric
    return one_line_with_digest(f"{label}: {about}" if about else label, SHOWN)


def _fingerprint_check(
    check: Check,
    turn: int | None,
    sample: SampleReport,
    scenario: Scenario,
    found: Sequence[tuple[LocatedFinding, FingerprintedFailure]],
) -> tuple[FingerprintedFailure, ...]:
    matching = [
        failure._replace(severity=None)
        for each, failure in found
        if each.finding.detector == check.name or _is_criterion(check, each, turn)
    ]
    if matching:
        return tuple(dict.fromkeys(matching))
    if check.name == "answer" and turn is None:
        # Both the turn and the whole conversation report an empty answer: it is one failure.
        return tuple(_empty_answers(sample, scenario))
    parts = check.parts or (criterion_of(check, scenario),)
    place = _broken_place(sample) if check.name == "no_error" else _place(turn, sample)
    return tuple(
        FingerprintedFailure(
            _hash("check", scenario.id, place, check.name, part),
            one_line_with_digest(
                f"{check.name}{place and f' ({place})'}: {part}" if part else check.name, SHOWN
            ),
            check.name,
        )
        for part in parts
    )


def _empty_answers(sample: SampleReport, scenario: Scenario) -> Iterator[FingerprintedFailure]:
    for turn, turn_report in enumerate(sample.turns):
        for check in turn_report.checks:
            if check.name == "answer" and check.passed is False:
                yield from _fingerprint_check(check, turn, sample, scenario, ())


def _is_criterion(check: Check, found: LocatedFinding, turn: int | None) -> bool:
    finding = found.finding
    return (
        check.name == finding.metric == CRITERIA
        and finding.turn == turn
        and check.detail.startswith(f"{finding.criterion} — ")
    )


def criterion_of(check: Check, scenario: Scenario) -> str:
    """Return the criterion, in the author's words, that a check is about. The text after it was written by
    the judge."""
    if check.name != CRITERIA:
        return ""
    criteria = (c for c in scenario.all_criteria if check.detail.startswith(f"{c} — "))
    return max(criteria, key=len, default="")


def _place(turn: int | None, sample: SampleReport) -> str:
    if turn is None:
        return ""
    return _turn_name(sample.turns[turn].turn)


def _turn_name(turn: Turn) -> str:
    return "simulated turn" if turn.script is None else f"turn {turn.script + 1}"


def _broken_place(sample: SampleReport) -> str:
    """Return the turn in which the agent failed. Return an empty string if the agent failed before the first
    message or in a call after the last answer."""
    turns, at = sample.trajectory.all_turns, sample.trajectory.broken_turn
    turn = turns[at] if at < len(turns) else None
    return _turn_name(turn) if turn and turn.user else ""


def agent_failure(sample: SampleReport, scenario: Scenario) -> FingerprintedFailure:
    """Return the failure for a sample in which the agent failed before any check could report it."""
    end = _end_as_shown(sample, scenario)
    return end._replace(fingerprint=sample.names.get(end.fingerprint, (end.fingerprint,))[-1])


def _end_as_shown(sample: SampleReport, scenario: Scenario) -> FingerprintedFailure:
    cause = sample.stop.cause if sample.stop else ""
    check = Check(name="no_error", passed=False, parts=(cause,))
    return _fingerprint_check(check, None, sample, scenario, ())[0]
