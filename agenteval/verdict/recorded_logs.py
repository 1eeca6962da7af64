"""Logs without scenarios: recorded conversations for which no expectations were written. Such logs do not
pass or fail; the report lists the kinds of failures and their frequencies. Pure. See "Without scenarios" in
``docs/score.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agenteval.core.decision import TOLERANCE, GateRow, SampleDecision
from agenteval.core.plan import Plan
from agenteval.core.plurals import join_first, plural
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import OUTCOME, Verdict
from agenteval.core.trajectory import StopReason
from agenteval.verdict.report import Report
from agenteval.verdict.thresholds import is_errored

READABLE = "readable records"
"""The name of the gate for a log without scenarios. Nothing is known about records that could not be read."""
MOST_UNREADABLE = 0.05
"""The share of records that may be unreadable, unless the configuration sets a different share
(``fault_tolerance``)."""
SEVERE = "fail_on_severity"
_MOST_NAMED = 3
_OF_RECORDS = (StopReason.RECORDED, StopReason.UNREADABLE, StopReason.INFRASTRUCTURE)


def is_without_scenarios(report: Report) -> bool:
    """Check whether these are recorded conversations without expectations: no scenario was written for any of
    them, none comes from an agenteval run, and no known outcome was recorded."""
    if report.run.request or report.run.scenarios or not report.samples:
        return False
    return all(map(_expects_nothing, report.scenarios))


def _expects_nothing(scenario: ScenarioReport) -> bool:
    is_written = bool(scenario.scenario.lines) or bool(scenario.missing)
    return not is_written and all(map(_is_record_alone, scenario.samples))


def _is_record_alone(sample: SampleReport) -> bool:
    stop = sample.stop
    is_recorded = stop is None or stop.is_cut_short or stop.reason in _OF_RECORDS
    # A user at fault ends a conversation with another reason, here as in a run.
    is_recorded = is_recorded or (sample.review is not None and sample.review.decides)
    return is_recorded and not any(check.name == OUTCOME for check in sample.checks)


def names_severity(plan: Plan) -> bool:
    """Check whether a configuration specifies which findings fail a conversation."""
    return plan.suite.where(SEVERE) != "default"


def is_unreadable(sample: SampleReport) -> bool:
    return sample.stop is not None and sample.stop.reason is StopReason.UNREADABLE


def unreadable_places(report: Report) -> tuple[str, ...]:
    return tuple(sample.record for sample in report.samples if is_unreadable(sample))


def readable_row(report: Report) -> GateRow:
    """Return the gate row for readable records. The row is undecided if more than a few records could not be
    read or if nothing is known about any record."""
    places, records = unreadable_places(report), len(report.samples)
    bound = report.plan.suite.fault_tolerance
    if report.plan.suite.where(TOLERANCE) == "default":
        bound = MOST_UNREADABLE
    is_anything_known = any(not is_errored(sample) for sample in report.samples)
    hidden = [each for each in report.samples if each.stop is not None and each.stop.hides_rest]
    is_decided = is_anything_known and not hidden and len(places) <= bound * records
    basis = f"{len(places):,} unreadable of {plural(records, 'record')}"
    basis += f": {named_places(places)}" if places else ""
    basis += f"; an unknown number of records follows {hidden[0].record}" if hidden else ""
    basis += "" if is_anything_known else "; no conversation with an answer"
    return GateRow(
        name=READABLE,
        value=len(places) / records if records else None,
        bound=bound,
        basis=basis,
        where=report.plan.suite.where(TOLERANCE),
        verdict=Verdict.PASSED if is_decided else Verdict.INCONCLUSIVE,
        resolution="" if is_decided else _resolution(places),
    )


def _resolution(places: Sequence[str]) -> str:
    if not places:
        return "use records in which the agent answers"
    return f"replace {named_places(places)} with readable records"


def named_places(places: Sequence[str]) -> str:
    return join_first(places, _MOST_NAMED)


def undecided_in(report: Report, samples: Mapping[SampleKey, SampleDecision]) -> int:
    """Count the readable conversations that are undecided."""
    return sum(
        samples[sample.key].verdict is Verdict.INCONCLUSIVE and not is_unreadable(sample)
        for sample in report.samples
    )
