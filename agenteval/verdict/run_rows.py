"""The gate rows that concern all samples of a run, errored samples, or the end of the run. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from agenteval.core.decision import (
    EVERY_SAMPLE,
    RERUN_AFTER_FIX,
    RERUN_FAILED,
    RESUME,
    TOLERANCE,
    GateRow,
    SampleDecision,
    Violation,
)
from agenteval.core.plan import Pairing, Plan
from agenteval.core.plurals import join_first, plural
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Severity, Verdict
from agenteval.core.trajectory import Stop
from agenteval.verdict.counted_findings import list_counted_findings
from agenteval.verdict.limit_gates import budget_gates, deadline_gates
from agenteval.verdict.recorded_logs import SEVERE, is_unreadable
from agenteval.verdict.report import Report
from agenteval.verdict.run_gates import replaces_every_sample
from agenteval.verdict.sample_decisions import is_never_tolerated
from agenteval.verdict.shard_rows import resolve_in_shards, shard_rows
from agenteval.verdict.thresholds import NOT_THE_AGENTS

_MOST_NAMED = 5
_EPOCHS = "epochs: "


def run_rows(
    report: Report,
    samples: Mapping[SampleKey, SampleDecision],
    tolerance: Sequence[GateRow],
    counted: Set[SampleKey],
) -> Iterable[GateRow]:
    """Yield the gate rows of a run. ``counted`` contains the failed samples that are decided by share gates,
    and ``tolerance`` contains the rows about errored samples."""
    if not replaces_every_sample(report.plan.suite.gates):
        tolerated = all(row.verdict is Verdict.PASSED for row in tolerance)
        yield _every_sample_row(report, samples, counted, tolerated=tolerated)
    yield from tolerance
    if report.plan.suite.fail_on is not None:
        yield _severity_row(report, samples)
    yield from end_rows(report)


def _every_sample_row(
    report: Report,
    samples: Mapping[SampleKey, SampleDecision],
    counted: Set[SampleKey],
    *,
    tolerated: bool,
) -> GateRow:
    verdicts = [Verdict.PASSED if key in counted else each.verdict for key, each in samples.items()]
    lost = verdicts.count(Verdict.INCONCLUSIVE)
    basis = f"{plural(len(verdicts), 'sample')} of {plural(len(report.scenarios), 'scenario')}"
    basis += f", {len(counted)} failed and decided by the share gates" if counted else ""
    every = Verdict.worst(v for v in verdicts if v is not Verdict.INCONCLUSIVE)
    return GateRow(
        name=EVERY_SAMPLE,
        value=verdicts.count(Verdict.PASSED) / len(verdicts) if verdicts else None,
        bound=1.0,
        basis=basis if not lost else f"{basis}, {lost} inconclusive",
        where="default",
        verdict=every if every is Verdict.FAILED or tolerated else Verdict.worst(verdicts),
    )


def _severity_row(report: Report, samples: Mapping[SampleKey, SampleDecision]) -> GateRow:
    plan, suite = report.plan, report.plan.suite
    judged = [s for s in report.samples if samples[s.key].fault not in NOT_THE_AGENTS]
    findings = list_counted_findings(report.scenarios, samples, report)
    accepted = sum(len(sample.findings) for sample in judged) - len(findings)
    also = f", {accepted} more accepted" if accepted else ""
    worst = max((finding.severity for finding in findings), key=lambda s: s.rank, default=None)
    least = Severity.CRITICAL if replaces_every_sample(suite.gates) else suite.fail_on_severity
    severe = any(is_never_tolerated(finding, plan) for finding in findings)
    return GateRow(
        name=SEVERE,
        value=str(worst) if worst else "no finding",
        bound=f"below {least}",
        basis=f"{plural(len(findings), 'finding')} in {plural(len(judged), 'sample')}{also}",
        where=suite.where("fail_on_severity"),
        verdict=Verdict.FAILED if severe else Verdict.PASSED,
    )


# ── errored samples ──────────────────────────────────────────────────────────────────────────────


def tolerance_rows(
    report: Report,
    samples: Mapping[SampleKey, SampleDecision],
    lost: Set[Pairing],
    *,
    replaced: int,
    unreadable_apart: bool,
) -> Iterable[GateRow]:
    """Yield the rows about the fault tolerance for errored samples. The tolerance limits the overall share of
    errored samples, and allows at most half of each scenario's samples to error.

    ``lost`` contains the scenarios that exceed the limit of one half, and ``replaced`` is the number of
    samples that were replaced by an additional sample. Replaced samples count as errored; otherwise, an agent
    whose failures look like network faults would be measured by its successes alone. Samples that never began
    are not part of the share and are never tolerated. With ``unreadable_apart``, records that could not be
    read have a row of their own."""
    begun = report.samples
    never = len(samples) - len(begun)
    if unreadable_apart:
        begun = tuple(sample for sample in begun if not is_unreadable(sample))
    row = _run_tolerance_row(begun, samples, report.plan, replaced=replaced, never=never)
    yield row
    if row.verdict is Verdict.PASSED:  # otherwise the samples explain it already
        for scenario in report.scenarios:
            if (scenario.scenario.id, scenario.agent) in lost:
                yield _scenario_tolerance_row(scenario, samples, report.plan)


def _run_tolerance_row(
    begun: Sequence[SampleReport],
    samples: Mapping[SampleKey, SampleDecision],
    plan: Plan,
    *,
    replaced: int,
    never: int,
) -> GateRow:
    lost, bound = _count_lost(begun, samples), plan.suite.fault_tolerance
    # What was cut short or hides the rest of a log did not fail by itself: the rest of the run is unknown.
    is_ended = not any(_is_rest_unknown(sample.stop) for sample in begun)
    tolerated = not never and is_ended and is_tolerated(lost, len(begun), bound)
    also = f", {replaced} of them replaced" if replaced else ""
    also += f"; {never} more never started" if never else ""
    return GateRow(
        name=TOLERANCE,
        value=lost / len(begun) if begun else None,
        bound=bound,
        basis=f"{lost} inconclusive of {plural(len(begun), 'sample')}{also}",
        where=plan.suite.where(TOLERANCE),
        verdict=Verdict.PASSED if tolerated else Verdict.INCONCLUSIVE,
        resolution="" if tolerated else RESUME if never else _find_resolution(begun, samples),
    )


def _is_rest_unknown(stop: Stop | None) -> bool:
    return stop is None or stop.is_cut_short or stop.hides_rest


def _scenario_tolerance_row(
    scenario: ScenarioReport, samples: Mapping[SampleKey, SampleDecision], plan: Plan
) -> GateRow:
    begun = len(scenario.samples)
    lost = _count_lost(scenario.samples, samples)
    return GateRow(
        name=TOLERANCE,
        value=lost / begun,
        bound="at most half",
        basis=f"{lost} of {plural(begun, 'sample')} inconclusive",
        where=plan.suite.where(TOLERANCE),
        verdict=Verdict.INCONCLUSIVE,
        scenario=scenario.scenario.id,
        agent=scenario.agent,
        resolution=_find_resolution(scenario.samples, samples),
    )


def mostly_errored_scenarios(
    report: Report, samples: Mapping[SampleKey, SampleDecision]
) -> frozenset[Pairing]:
    """Return the scenarios (id and agent) in which more than half of the started samples are inconclusive.

    Too little is known about these scenarios, regardless of the fault tolerance. A recorded conversation that
    stands alone is not a scenario; for such conversations, only the share of all samples is limited."""
    written = {scenario.id for scenario in report.run.scenarios}
    return frozenset(
        (scenario.scenario.id, scenario.agent)
        for scenario in report.scenarios
        if scenario.scenario.id in written or scenario.scenario.lines or len(scenario.samples) > 1
        if 2 * _count_lost(scenario.samples, samples) > len(scenario.samples)
    )


def _count_lost(begun: Iterable[SampleReport], samples: Mapping[SampleKey, SampleDecision]) -> int:
    decided = (samples.get(sample.key) for sample in begun)
    return sum(one is None or one.verdict is Verdict.INCONCLUSIVE for one in decided)


def is_tolerated(lost: int, begun: int, bound: float) -> bool:
    """Check whether this number of errored samples is tolerated. If all samples errored, nothing is known
    about the run, so the errors are not tolerated."""
    return lost < begun and lost / begun <= bound


# ── how it ended ─────────────────────────────────────────────────────────────────────────────────


def end_rows(report: Report) -> Iterable[GateRow]:
    """Yield the rows about how the run ended."""
    yield from shard_rows(report)
    yield from budget_gates(report)
    yield from deadline_gates(report)
    if report.finished is None:
        yield _cut_off_row(report)
    elif report.finished.unmet:
        yield _unmet_row(report.finished.unmet)


def _cut_off_row(report: Report) -> GateRow:
    """Return the row for a run that was killed. Such a run never passes, regardless of the fault tolerance,
    because its remaining results are unknown."""
    done, planned = len(report.samples), sum(len(s.samples) + len(s.missing) for s in report.scenarios)
    return GateRow(
        name="complete run",
        value="cut off",
        bound="a complete run",
        basis=f"{done} of {plural(planned, 'sample')} started; agenteval run --resume continues",
        where="default",
        verdict=Verdict.INCONCLUSIVE,
        resolution=RESUME,
    )


def _unmet_row(unmet: Mapping[str, str]) -> GateRow:
    """Return the row for scenarios without a conversation. Expectations that were not evaluated are not met,
    regardless of the fault tolerance."""
    return GateRow(
        name="every scenario met",
        value=f"{len(unmet):,} unmatched",
        bound="a conversation for each",
        basis=f"no recorded conversation matches {join_first(list(unmet), _MOST_NAMED)}",
        where=next(iter(unmet.values())),
        verdict=Verdict.INCONCLUSIVE,
    )


# ── what would decide them ───────────────────────────────────────────────────────────────────────


def _find_resolution(begun: Iterable[SampleReport], samples: Mapping[SampleKey, SampleDecision]) -> str:
    """Return the next step that would decide the undecided samples: repeating them or, if repetition cannot
    help, supplying the data that the first of them lacks."""
    lost = [(each, decided) for each in begun if _is_open(decided := samples[each.key])]
    faults = {decided.fault for _, decided in lost} - {"undecided"}
    if faults:
        stops = [sample.stop for sample, decided in lost if decided.fault == "infrastructure"]
        is_final = all(stop is not None and stop.is_final for stop in stops)
        return RERUN_AFTER_FIX if faults <= {"infrastructure", "judge"} and is_final else RERUN_FAILED
    details = (v.detail for _, decided in lost for v in decided.violations if _is_open(v))
    return next(details, RERUN_FAILED).removeprefix("not decided: ")


def _is_open(decided: SampleDecision | Violation) -> bool:
    return decided.verdict is Verdict.INCONCLUSIVE


def command_of(report: Report) -> str:
    """Return the command line that runs the same run again."""
    return shlex.join(["agenteval", *report.run.command])


def resolve_with_next_steps(
    rows: Iterable[GateRow], report: Report, samples: Mapping[SampleKey, SampleDecision]
) -> tuple[GateRow, ...]:
    """Return the rows with next steps that are possible for this run."""
    if report.run.command[:1] == ("score",):
        return tuple(replace(row, resolution=_record_resolution(row, report, samples)) for row in rows)
    if report.finished and report.finished.outcome == "fail_fast":  # which cannot be resumed
        again = "repeat the run without --fail-fast"
        return tuple(replace(row, resolution=row.resolution.replace(RESUME, again)) for row in rows)
    return tuple(resolve_in_shards(rows, report))


def _record_resolution(row: GateRow, report: Report, samples: Mapping[SampleKey, SampleDecision]) -> str:
    """Return the next step for a row about recorded conversations. These cannot be repeated: the same command
    only runs the judges again, and whatever a record lacks can be supplied only by another record."""
    if row.resolution in (RERUN_FAILED, RERUN_AFTER_FIX):
        return _describe_unread_records(row.scenario, report, samples) or command_of(report)
    if row.resolution.startswith(_EPOCHS):
        number = row.resolution.removeprefix(_EPOCHS)
        return f"use {number} recorded conversations of each scenario"
    return row.resolution.replace(RESUME, command_of(report))


def _describe_unread_records(
    scenario: str, report: Report, samples: Mapping[SampleKey, SampleDecision]
) -> str:
    """Describe what to provide instead of the records that could not be read. Return an empty string if all
    records could be read. If ``scenario`` is empty, all scenarios are included."""
    lost = [
        (each, decided.fault)
        for each in report.samples
        if scenario in ("", each.key.scenario)
        if (decided := samples[each.key]).verdict is Verdict.INCONCLUSIVE
    ]
    stops = [each.stop for each, fault in lost if fault in ("recording", "infrastructure")]
    if not stops or not stops[0]:
        return ""
    place = stops[0].detail.partition(": ")[0]
    if len(stops) > 1:
        return f"replace {place} and {len(stops) - 1:,} more with readable records"
    return f"replace {place} with a readable record"
