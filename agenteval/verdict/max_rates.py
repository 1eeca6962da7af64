"""``score --max-rate high=1%``: limit the observed share of conversations with a finding at or above a
severity. Pure. If the result for a conversation is unknown, both the worst and the best case are considered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from fractions import Fraction
from typing import NamedTuple

from agenteval.core.decision import GateRow, SampleDecision, Violation
from agenteval.core.plan import Plan
from agenteval.core.plurals import join_first, plural
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Severity, Verdict
from agenteval.core.tool_visibility import unplaced_text
from agenteval.scoring.detectors.table import DETECTORS
from agenteval.scoring.questions import is_open_question
from agenteval.verdict.counted_findings import gates_by_severity, locate_counted_findings, may_hide
from agenteval.verdict.recorded_logs import SEVERE, is_unreadable
from agenteval.verdict.report import Report

MAX_RATE = "--max-rate"
_MOST_NAMED = 3


class Shares(NamedTuple):
    """The conversations that contain a finding at or above a severity, and related counts."""

    conversations: int
    """The total number of conversations."""
    bad: tuple[SampleReport, ...]
    """The conversations that contain a finding at or above the severity."""
    unknown: tuple[SampleReport, ...]
    """The conversations for which it is unknown whether they contain a finding at or above the severity."""
    by_checks: int
    """The number of conversations in ``bad`` in which only a check failed."""
    remedies: Mapping[str, int]
    """Maps each remedy for unknown conversations to the number of conversations that it would settle."""


def max_rate_rows(
    report: Report, samples: Mapping[SampleKey, SampleDecision], again: str
) -> Iterator[GateRow]:
    """Yield a row for each ``--max-rate``. ``again`` is the command line that runs the judges again."""
    for severity, bound in report.plan.suite.max_rates.items():
        yield _row(severity, bound, shares_of(report, samples, severity, again))


def _row(severity: Severity, bound: float, shares: Shares) -> GateRow:
    # As written: 0.29 of 100 conversations is exactly 29, not slightly less.
    most = Fraction(repr(bound)) * shares.conversations
    bad, unknown = len(shares.bad), len(shares.unknown)
    verdict = Verdict.INCONCLUSIVE
    if bad > most:
        verdict = Verdict.FAILED
    elif bad + unknown <= most and shares.conversations:
        verdict = Verdict.PASSED
    what = f"a finding of {severity} severity{'' if severity is Severity.CRITICAL else ' or above'}"
    basis = f"{bad:,} of {plural(shares.conversations, 'conversation')} with {what}"
    basis += " or a failed check" if shares.by_checks else ""
    basis += f": {_places(shares.bad)}" if bad else ""
    basis += f"; unknown for {unknown:,} more: {_places(shares.unknown)}" if unknown else ""
    return GateRow(
        name=f"{MAX_RATE} {severity}",
        value=bad / shares.conversations if shares.conversations else None,
        bound=bound,
        basis=basis,
        where=MAX_RATE,
        verdict=verdict,
        resolution=_resolution(shares) if verdict is Verdict.INCONCLUSIVE else "",
    )


def _resolution(shares: Shares) -> str:
    remedies = [f"{remedy} ({plural(n, 'conversation')})" for remedy, n in shares.remedies.items()]
    return "; ".join(remedies) or "use records in which the agent answers"


def _places(samples: Sequence[SampleReport]) -> str:
    return join_first([sample.record or str(sample.key) for sample in samples], _MOST_NAMED)


def shares_of(
    report: Report, samples: Mapping[SampleKey, SampleDecision], severity: Severity, again: str = ""
) -> Shares:
    """Count the conversations in the records that could be read. Unreadable records are covered by the gate
    ``readable records``."""
    plan = report.plan.with_suite(fail_on_severity=severity)
    found = {
        key
        for key, _, finding in locate_counted_findings(report.scenarios, samples, report)
        if finding.severity.rank >= severity.rank and not is_open_question(finding)
    }
    bad: list[SampleReport] = []
    unknown: list[SampleReport] = []
    remedies: Counter[str] = Counter()
    total = 0
    for scenario in report.scenarios:
        for sample in scenario.samples:
            if is_unreadable(sample):
                continue
            total += 1
            if is_bad(sample.key, samples, found):
                bad.append(sample)
            elif remedy := _find_remedy(sample, scenario, samples[sample.key], plan, again):
                unknown.append(sample)
                remedies[remedy] += 1
    by_checks = sum(sample.key not in found for sample in bad)
    return Shares(total, tuple(bad), tuple(unknown), by_checks, remedies)


def is_bad(key: SampleKey, samples: Mapping[SampleKey, SampleDecision], found: Set[SampleKey]) -> bool:
    """Check whether a conversation counts against the limit. A failed check always counts, regardless of
    severity; a detector's finding counts only if it is severe enough (``found``)."""
    return key in found or any(failed_checks(samples[key]))


def failed_checks(decided: SampleDecision) -> Iterator[str]:
    """Yield the names of the rules that a conversation broke, excluding those that are also reported as
    findings."""
    for violation in decided.violations:
        if violation.verdict is Verdict.FAILED and violation.name not in (SEVERE, *DETECTORS):
            yield violation.name


def _find_remedy(
    sample: SampleReport, scenario: ScenarioReport, decided: SampleDecision, plan: Plan, again: str
) -> str:
    """Return the action that would settle whether the conversation contains a finding of at least this
    severity. Return an empty string if this is already known."""
    if sample.stop is None or sample.stop.fault is not None:
        if sample.review is not None and sample.review.decides:
            return "use conversations in which the user is not at fault"
        return "use records in which the agent answers"
    if unplaced := unplaced_text([each.turn for each in sample.turns]):
        return f"use --no-calls-in KEY if there is no call in {unplaced}"
    failures = [failure for failure in sample.all_failures if may_hide(failure, scenario, plan)]
    if failures:
        return _failure_remedy(failures[0].metric, failures[0].message, again)
    if any(score.is_open and gates_by_severity(score.metric, plan) for score in sample.all_scores):
        return "use a judge that can decide (another model, or -m again)"
    details = (v.detail.removeprefix("not decided: ") or v.name for v in _undecided_checks(decided))
    return next(details, "")


def _failure_remedy(metric: str, message: str, again: str) -> str:
    return (message if metric in DETECTORS else again) or metric


def _undecided_checks(decided: SampleDecision) -> Iterator[Violation]:
    return (v for v in decided.violations if v.verdict is Verdict.INCONCLUSIVE and v.name != "judge")
