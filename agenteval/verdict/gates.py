"""Who passed: pure rules over a report. See "Who fails what" in ``docs/verdicts.md``."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from agenteval.core.decision import (
    AGAIN,
    EVERY_SAMPLE,
    MENDED,
    RESUME,
    TOLERANCE,
    AcceptedUse,
    Decision,
    GateRow,
    SampleDecision,
    ScenarioDecision,
    Violation,
)
from agenteval.core.figures import figure
from agenteval.core.plan import Plan
from agenteval.core.plurals import few, plural
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import (
    NOT_CLEAR,
    OUTCOME,
    Check,
    Finding,
    ScoreFailure,
    ScoreItem,
    Severity,
    Verdict,
)
from agenteval.core.trajectory import Stop
from agenteval.files.prompts import CRITERIA, USER_REVIEW
from agenteval.scoring.detectors.table import DETECTORS
from agenteval.scoring.goals import GOAL, decides_all_others, goals_of
from agenteval.scoring.questions import is_open
from agenteval.verdict.abstentions import is_any_decided, named, never_arose, nothing_decided
from agenteval.verdict.accepted import in_force, uses_of, waive
from agenteval.verdict.counted import counted, gates_by_severity, may_hide
from agenteval.verdict.epochs import Epochs, epochs_of, succeeded
from agenteval.verdict.fingerprints import SampleFailures, agent_broke, failures_of
from agenteval.verdict.limit_gates import budget_gates, deadline_gates
from agenteval.verdict.max_rates import MAX_RATE, max_rate_rows
from agenteval.verdict.recorded_logs import (
    SEVERE,
    is_unreadable,
    is_without_scenarios,
    names_severity,
    readable_row,
)
from agenteval.verdict.report import Report
from agenteval.verdict.run_gates import gates_over_runs, is_counted, reads_baseline, replaces_every_sample
from agenteval.verdict.run_gates.no_regression import NO_REGRESSION
from agenteval.verdict.skipped import is_unjudged, skipped, skips_criteria
from agenteval.verdict.thresholds import NOT_THE_AGENTS, threshold_gates


def decide(report: Report) -> Decision:
    """The verdict of a report under the configuration that the run was made with."""
    samples = {
        sample.key: decide_sample(sample, scenario, report)
        for scenario in report.scenarios
        for sample in scenario.samples
    }
    for scenario in report.scenarios:
        samples.update({key: _never_run(key) for key in scenario.missing})
    thresholds = tuple(threshold_gates(report))
    undecided = tuple(nothing_decided(report, thresholds))
    epochs = {(s.scenario.id, s.agent): _epochs(s, samples) for s in report.scenarios}
    over_runs = tuple(gates_over_runs(report, epochs, samples))
    lost = lost_most(report, samples)
    replaced = sum(len(own.replaced) for own in epochs.values())
    without_scenarios = is_without_scenarios(report)
    is_reported = without_scenarios and not names_severity(report.plan)
    tolerance = tuple(_tolerance_gates(report, samples, replaced, lost, unreadable_apart=without_scenarios))
    own: dict[tuple[str, str], list[GateRow]] = {}
    for gate in (*over_runs, *tolerance, *undecided, *thresholds):
        own.setdefault((gate.scenario, gate.agent), []).append(gate)
    open_for_all = any(not gate.scenario and gate.verdict is Verdict.INCONCLUSIVE for gate in over_runs)
    counted = frozenset(_counted_by_gates(report, samples))
    scenarios = {
        (name := (scenario.scenario.id, scenario.agent)): _decide_scenario(
            scenario,
            samples,
            own.get(name, ()),
            report,
            open_for_all,
            counted,
            is_lost=name in lost,
            tolerated=tolerance[0].verdict is Verdict.PASSED,
        )
        for scenario in report.scenarios
    }
    again = shlex.join(["agenteval", *report.run.command])
    of_log = (
        *([readable_row(report)] if without_scenarios else ()),
        *max_rate_rows(report, samples, again),
    )
    if is_reported:
        gates = (*over_runs, *of_log, *_ends_gates(report), *thresholds)
    else:
        gates = (
            *over_runs,
            *_run_gates(report, samples, tolerance, counted),
            *of_log,
            *undecided,
            *thresholds,
        )
    if report.run.command[:1] == ("score",):
        gates = tuple(_of_records(row, report, samples) for row in gates)
    elif report.finished and report.finished.outcome == "fail_fast":  # which is gone on with by nothing
        again = "the same run without --fail-fast"
        gates = tuple(replace(row, resolution=row.resolution.replace(RESUME, again)) for row in gates)
    verdict = Verdict.worst(gate.verdict for gate in gates)
    author_errors = _author_errors(report)
    return Decision(
        verdict=verdict,
        exit_code=_exit_code(report, verdict, author_errors),
        gates=gates,
        samples=samples,
        scenarios=scenarios,
        ungated=_ungated(report, thresholds),
        author_errors=author_errors,
        accepted=_accepted(report),
        without_scenarios=without_scenarios,
        is_reported=is_reported,
    )


def _counted_by_gates(report: Report, samples: Mapping[SampleKey, SampleDecision]) -> Iterable[SampleKey]:
    """The failed samples whose failures the shares alone decide of; with a gate in the place of "every sample
    passes" that decides."""
    if report.plan.suite.gates and not replaces_every_sample(report.plan.suite.gates):
        for scenario in report.scenarios:
            for sample in scenario.samples:
                if is_counted(sample, scenario.scenario, samples[sample.key], report.plan.suite.gates):
                    yield sample.key


def _accepted(report: Report) -> tuple[AcceptedUse, ...]:
    if not report.plan.suite.accepted:
        return ()
    met = [
        (scenario.scenario.id, failures_of(sample, scenario.scenario).names)
        for scenario in report.scenarios
        for sample in scenario.samples
    ]
    return uses_of(report.run, met)


def _epochs(scenario: ScenarioReport, samples: Mapping[SampleKey, SampleDecision]) -> Epochs:
    outcomes = [succeeded(sample, samples[sample.key].verdict) for sample in scenario.samples]
    return epochs_of(scenario, outcomes)


def sample_failed(items: Sequence[ScoreItem], stop: Stop, plan: Plan) -> bool:
    """Whether a sample is likely to fail the run, from what its scorers said alone."""
    if any(isinstance(item, Finding) and _never_tolerated(item, plan) for item in items):
        return True
    broke = stop.fault == "agent" or any(
        (isinstance(item, Check) and item.passed is False)
        or (isinstance(item, Finding) and is_severe(item, plan))
        for item in items
    )
    return broke and not replaces_every_sample(plan.suite.gates)


def fails_alone(report: Report) -> bool:
    """Whether the only sample of a report is sure to fail its run. With a gate over repeated runs, that is by
    a critical finding alone."""
    (scenario,) = report.scenarios
    (sample,) = scenario.samples
    decided = decide_sample(sample, scenario, report)
    if not replaces_every_sample(report.plan.suite.gates):
        is_decided_elsewhere = is_counted(sample, scenario.scenario, decided, report.plan.suite.gates)
        return decided.verdict is Verdict.FAILED and not is_decided_elsewhere
    findings = counting((scenario,), {sample.key: decided}, report)
    return any(_never_tolerated(finding, report.plan) for finding in findings)


def is_severe(finding: Finding, plan: Plan) -> bool:
    """Whether a finding fails its sample. A question that nobody has answered leaves it undecided."""
    return (
        plan.suite.fail_on is not None
        and finding.severity.rank >= plan.suite.fail_on.rank
        and not is_open(finding)
    )


def _never_tolerated(finding: Finding, plan: Plan) -> bool:
    """A gate over repeated runs tolerates failed samples, but nothing critical."""
    tolerant = replaces_every_sample(plan.suite.gates)
    return is_severe(finding, plan) and (not tolerant or finding.severity is Severity.CRITICAL)


def decide_sample(sample: SampleReport, scenario: ScenarioReport, report: Report) -> SampleDecision:
    """Failed: an expectation does not hold, the agent broke, or a finding is severe. Inconclusive: a
    fault that is not the agent's, or a check that could not be decided. What the turns before such a fault
    prove stands: a sample that has failed by then is not lost."""
    fault = sample.stop.fault if sample.stop else "interrupted"
    source = sample.record or scenario.scenario.source
    failures = failures_of(sample, scenario.scenario)
    names = in_force(report.run, scenario.scenario.id)
    left_out = skipped(sample, scenario, report.plan)
    unclear = _gates_nothing(sample, left_out, code_only=report.plan.suite.code_only)
    violations = [
        *_broken_checks(sample, source, failures, names, unclear),
        *_severe_findings(sample, source, report.plan, failures, names),
        *_broken_judges(sample, scenario, report, left_out),
        *_goal_that_decides_others(sample, scenario, report.plan),
    ]
    if fault in NOT_THE_AGENTS:
        proven = [violation for violation in violations if _stands(violation, sample)]
        kept, accepted = waive(proven, names)
        verdict = Verdict.FAILED if kept else Verdict.INCONCLUSIVE
        loss = _loss(sample, str(fault), source)
        return SampleDecision(verdict, None if kept else fault, (*kept, loss), accepted)
    if fault == "agent" and not any(v.name == "no_error" for v in violations):
        detail = sample.stop.detail if sample.stop else ""
        end = agent_broke(sample, scenario.scenario)
        broken = Violation(
            "no_error",
            detail,
            source,
            epoch=sample.key.epoch,
            turn=sample.trajectory.broken_turn,
            fingerprints=(end.fingerprint,),
            covers=(end.what,),
        )
        violations.insert(0, broken)
    kept, accepted = waive(violations, names)
    verdict = Verdict.worst(violation.verdict for violation in kept)
    if verdict is Verdict.INCONCLUSIVE:
        # Nobody broke where nobody was asked: the sample lacks what a rule is based on.
        broke = any(violation.name == "judge" for violation in kept) or (
            not report.plan.suite.no_judge and any(map(is_unjudged, sample.all_checks))
        )
        fault = "judge" if broke else "undecided"
    return SampleDecision(verdict, None if verdict is Verdict.PASSED else fault, kept, accepted)


def _gates_nothing(
    sample: SampleReport, left_out: tuple[ScoreFailure, ...], *, code_only: bool
) -> Callable[[Check], bool]:
    """Which checks gate nothing: with ``code_only`` the criteria that no judge was asked about, if anything
    else of the sample was decided; those whose judges failed and are ``left_out``. Of what nothing is known,
    nothing is green."""
    if (code_only and is_any_decided(sample)) or skips_criteria(sample, left_out):
        return is_unjudged
    return lambda check: False


def _stands(violation: Violation, sample: SampleReport) -> bool:
    """Whether it is a failure that a finished turn proves, or that no later turn could have undone: of a
    conversation that was lost scorers tell no others, and of the lost turn only the recorded calls."""
    turn, finished = violation.turn, len(sample.trajectory.turns)
    is_proven = turn is None or turn < finished or violation.name == "tool_calls"
    return violation.verdict is Verdict.FAILED and is_proven


def _loss(sample: SampleReport, fault: str, source: str) -> Violation:
    detail = sample.stop.detail if sample.stop else "the sample did not finish"
    # What could not be read has no turn, and a sample that was cut off did not say where.
    at = len(sample.trajectory.turns) if sample.stop and fault != "recording" else None
    if sample.review and sample.review.decides:
        at = sample.review.turn
    return Violation(fault, detail, source, Verdict.INCONCLUSIVE, sample.key.epoch, at)


def _broken_checks(
    sample: SampleReport,
    source: str,
    failures: SampleFailures,
    names: Set[str],
    gates_nothing: Callable[[Check], bool],
) -> Iterable[Violation]:
    places: list[tuple[int | None, int, Check]] = [(None, i, check) for i, check in enumerate(sample.checks)]
    places += [(i, place, c) for i, turn in enumerate(sample.turns) for place, c in enumerate(turn.checks)]
    told_whole = {check.name for check in sample.checks if check.passed is False}
    for turn, place, check in places:
        # An empty answer is told by the turn and, for the reader of the sample alone, by the whole.
        if check.passed is True or (turn is not None and check.name == "answer" in told_whole):
            continue
        if check.name == OUTCOME and check.passed is None:
            continue  # an outcome that nobody recorded is reported, and is not a fault of this run
        if gates_nothing(check):
            continue
        verdict = Verdict.FAILED if check.passed is False else Verdict.INCONCLUSIVE
        told = failures.checks.get((turn, place), ())
        yield Violation(
            check.name,
            check.detail,
            check.where or source,
            verdict,
            sample.key.epoch,
            turn=sample.trajectory.broken_turn if check.name == "no_error" else _turn_of(check, turn),
            fingerprints=tuple(failure.name_in(names) for failure in told),
            covers=tuple(failure.what for failure in told),
        )


def _turn_of(check: Check, turn: int | None) -> int | None:
    return check.turn if turn is None else turn


def _severe_findings(
    sample: SampleReport, source: str, plan: Plan, failures: SampleFailures, names: Set[str]
) -> Iterable[Violation]:
    for finding, failure in zip(sample.findings, failures.findings, strict=True):
        if is_severe(finding, plan):
            told = finding.explanation or finding.evidence
            detail = f"{finding.severity} finding: {finding.label} ({finding.found_by}): {told}"
            yield Violation(
                SEVERE,
                detail,
                source,
                epoch=sample.key.epoch,
                turn=finding.turn,
                fingerprints=(failure.name_in(names),),
                covers=(failure.what,),
            )


def _broken_judges(
    sample: SampleReport, scenario: ScenarioReport, report: Report, left_out: Sequence[ScoreFailure]
) -> Iterable[Violation]:
    """A judge that failed hides what it would have found, and so does a detector; those ``left_out`` are of
    no account. Labels gate through their severity, if the worst of them could fail the sample, a missed goal
    where it is severe, or would be the last of all epochs; one that the author broke, and a check in code,
    always."""
    judged = {*DETECTORS, *(spec.name for spec in report.plan.suite.metrics), CRITERIA, USER_REVIEW}
    places: list[tuple[int | None, ScoreFailure]] = [(None, f) for f in sample.score_failures]
    places += [(index, f) for index, turn in enumerate(sample.turns) for f in turn.score_failures]
    for turn, failure in places:
        if any(each is failure for each in left_out):
            continue
        in_code = failure.metric not in judged
        if failure.author or in_code or may_hide(failure, scenario, report.plan):
            who = "detector" if failure.metric in DETECTORS else "check" if in_code else "judge of"
            what = "could not decide" if failure.unclear else "broke" if who == "check" else "failed"
            detail = f"the {who} {failure.metric} {what}: {failure.message}"
            source = sample.record or scenario.scenario.source
            yield Violation("judge", detail, source, Verdict.INCONCLUSIVE, sample.key.epoch, turn)


def failed_below_gate(report: Report) -> int:
    """How many judges of labels and goals failed, and could have found nothing that fails their sample."""
    return sum(
        not (failure.unclear or failure.author or failure.refused or report.plan.suite.skips_failed_judges)
        and (failure.metric == GOAL or gates_by_severity(failure.metric, report.plan))
        and not may_hide(failure, each, report.plan)
        for each in report.scenarios
        for sample in each.samples
        for failure in sample.all_failures
    )


def _goal_that_decides_others(
    sample: SampleReport, scenario: ScenarioReport, plan: Plan
) -> Iterable[Violation]:
    """A goal that is not clear gates nothing by itself."""
    unclear = [goal for goal in goals_of(sample) if goal.label == NOT_CLEAR]
    if unclear and decides_all_others(scenario.samples, plan):
        detail = "not clear; if it was missed here too, none of the scenario's conversations reached it"
        detail += f": {unclear[0].reason}" if unclear[0].reason.strip() else ""
        source = sample.record or scenario.scenario.source
        yield Violation(GOAL, detail, source, Verdict.INCONCLUSIVE, sample.key.epoch)


def _never_run(key: SampleKey) -> SampleDecision:
    violation = Violation("interrupted", "the sample was not run", "", Verdict.INCONCLUSIVE, key.epoch)
    return SampleDecision(Verdict.INCONCLUSIVE, "interrupted", (violation,))


def _decide_scenario(
    scenario: ScenarioReport,
    samples: Mapping[SampleKey, SampleDecision],
    gates: Sequence[GateRow],
    report: Report,
    open_for_all: bool,
    counted: Set[SampleKey],
    *,
    is_lost: bool,
    tolerated: bool,
) -> ScenarioDecision:
    """With gates over repeated runs a sample may fail, unless critically; what its own ``gates`` say counts,
    and that all of it was run. ``open_for_all``: a gate over all scenarios is not decided. ``counted``: the
    samples whose failures are decided by the shares that they lower. ``is_lost``: most of its samples are;
    ``tolerated``: so many losses are, in all of the run."""
    keys = (*(sample.key for sample in scenario.samples), *scenario.missing)
    violations = [violation for key in keys for violation in samples[key].violations]
    verdicts = [Verdict.PASSED if key in counted else samples[key].verdict for key in keys]
    plan = report.plan
    if replaces_every_sample(plan.suite.gates):
        severe = any(_never_tolerated(f, plan) for f in counting((scenario,), samples, report))
        known = not is_lost and not _is_half_run(scenario)
        known = known and any(v is not Verdict.INCONCLUSIVE for v in verdicts)
        if open_for_all and Verdict.FAILED in verdicts:  # that is tolerated by a gate of its own, or not yet
            known = known and any(gate.verdict is Verdict.PASSED and not gate.metric for gate in gates)
        verdicts = [Verdict.FAILED if severe else Verdict.PASSED if known else Verdict.INCONCLUSIVE]
    elif tolerated and not is_lost:
        verdicts = [verdict for verdict in verdicts if verdict is not Verdict.INCONCLUSIVE] or verdicts
    for gate in gates:
        verdicts.append(gate.verdict)
        if gate.verdict is not Verdict.PASSED:
            violations.append(_gate_violation(gate))
    return ScenarioDecision(Verdict.worst(verdicts or [Verdict.INCONCLUSIVE]), tuple(violations))


def _is_half_run(scenario: ScenarioReport) -> bool:
    """Whether samples were planned and not run to their end."""
    return bool(scenario.missing) or any(s.stop is None or s.stop.is_cut_short for s in scenario.samples)


def _gate_violation(gate: GateRow) -> Violation:
    value = "no score" if gate.value is None else gate.value
    value = value if isinstance(value, str) else figure(value, gate.bound)
    bound = gate.bound if isinstance(gate.bound, str) else f"at least {gate.bound:g}"
    detail = f"{value}, expected {bound} ({gate.basis})"
    return Violation(gate.name, detail, gate.where, gate.verdict, metric=gate.metric)


def _ungated(report: Report, thresholds: Sequence[GateRow]) -> tuple[str, ...]:
    """What was judged and can fail nothing: numbers without a threshold, labels where no severity fails,
    and gates that do not apply."""
    held = {gate.metric for gate in thresholds}
    judged = {score.metric for sample in report.samples for score in sample.all_scores}
    by_severity = {spec.name for spec in report.plan.suite.metrics if spec.is_label}
    gated = held if report.plan.suite.fail_on is None else held | by_severity | {GOAL}
    if report.run.baseline and not reads_baseline(report.plan.suite.gates):
        judged.add(f"{NO_REGRESSION.name} (--baseline, without gates.no_regression)")
    unapplied = report.plan.unapplied.items()
    judged |= {f"{name} ({why})" for name, why in unapplied if name.removeprefix("thresholds.") not in held}
    for scenario in report.scenarios:
        if criteria := never_arose(scenario):
            where = f"did not arise in any conversation of {scenario.scenario.id}"
            judged.add(f"criteria ({where}: {named(criteria)})")
    return tuple(sorted(judged - gated))


def _run_gates(
    report: Report,
    samples: Mapping[SampleKey, SampleDecision],
    tolerance: Sequence[GateRow],
    counted: Set[SampleKey],
) -> Iterable[GateRow]:
    """``counted``: failed samples that shares decide of. ``tolerance``: the rows of lost samples."""
    plan = report.plan
    if not replaces_every_sample(plan.suite.gates):
        tolerated = all(row.verdict is Verdict.PASSED for row in tolerance)
        yield _every_sample(report, samples, counted, tolerated=tolerated)
    yield from tolerance
    if plan.suite.fail_on is not None:
        yield _severity_gate(report, samples)
    yield from _ends_gates(report)


def _ends_gates(report: Report) -> Iterable[GateRow]:
    """Of how the run ended."""
    yield from budget_gates(report)
    yield from deadline_gates(report)
    if report.finished is None:
        yield _cut_off(report)
    elif report.finished.unmet:
        yield _unmet(report.finished.unmet)


def _way_out(samples: Iterable[SampleReport], decisions: Mapping[SampleKey, SampleDecision]) -> str:
    """What would decide the samples that are not: to play them again, unless each lacks what no repetition
    brings; then what the first one lacks."""
    open_ = [each for each in samples if decisions[each.key].verdict is Verdict.INCONCLUSIVE]
    lost = [decisions[each.key] for each in open_]
    faults = {one.fault for one in lost} - {"undecided"}
    if faults:
        stops = [each.stop for each in open_ if decisions[each.key].fault == "infrastructure"]
        is_final = all(stop is not None and stop.is_final for stop in stops)
        return MENDED if faults <= {"infrastructure", "judge"} and is_final else AGAIN
    details = (v.detail for each in lost for v in each.violations if v.verdict is Verdict.INCONCLUSIVE)
    return next(details, AGAIN).removeprefix("not decided: ")


def _of_records(row: GateRow, report: Report, samples: Mapping[SampleKey, SampleDecision]) -> GateRow:
    """The row with a resolution for recorded conversations: nothing can be played again. Judges are asked
    again by the same command; what a record lacks only another record brings."""
    again = shlex.join(["agenteval", *report.run.command])
    if row.resolution in (AGAIN, MENDED):
        lost = [each for each in report.samples if samples[each.key].verdict is Verdict.INCONCLUSIVE]
        lost = [each for each in lost if row.scenario in ("", each.key.scenario)]
        broken = [each for each in lost if samples[each.key].fault in ("recording", "infrastructure")]
        if broken and broken[0].stop:
            more = f", and {len(broken) - 1:,} more" if len(broken) > 1 else ""
            place = broken[0].stop.detail.partition(": ")[0]
            return replace(row, resolution=f"a record that can be read in place of {place}{more}")
        return replace(row, resolution=again)
    if row.resolution.startswith(_EPOCHS):
        number = row.resolution.removeprefix(_EPOCHS)
        return replace(row, resolution=f"{number} recorded conversations of each scenario")
    return replace(row, resolution=row.resolution.replace(RESUME, again))


_EPOCHS = "epochs: "


def _tolerance_gates(
    report: Report,
    samples: Mapping[SampleKey, SampleDecision],
    replaced: int,
    lost_scenarios: Set[tuple[str, str]],
    *,
    unreadable_apart: bool,
) -> Iterable[GateRow]:
    """What of lost samples is tolerated: a share of all of them, and at most half of each scenario's.
    ``replaced``: how many have a further one in their place. They count as lost: an agent whose failures look
    like faults of the network would else be measured by its successes alone. What was never begun is not a
    share of anything, and tolerated by nothing. ``unreadable_apart``: of what could not be read a row of its
    own speaks."""
    plan = report.plan
    counting = report.samples
    if unreadable_apart:
        counting = tuple(sample for sample in counting if not is_unreadable(sample))
    verdicts = [samples[sample.key].verdict for sample in counting]
    lost, bound = verdicts.count(Verdict.INCONCLUSIVE), plan.suite.fault_tolerance
    never = len(samples) - len(report.samples)
    tolerated = not never and is_tolerated(lost, len(verdicts), bound)
    also = f", {replaced} of them replaced" if replaced else ""
    also += f"; {never} more never started" if never else ""
    yield GateRow(
        name=TOLERANCE,
        value=lost / len(verdicts) if verdicts else None,
        bound=bound,
        basis=f"{lost} inconclusive of {plural(len(verdicts), 'sample')}{also}",
        where=plan.suite.where(TOLERANCE),
        verdict=Verdict.PASSED if tolerated else Verdict.INCONCLUSIVE,
        resolution="" if tolerated else RESUME if never else _way_out(counting, samples),
    )
    if tolerated:  # else the samples say all there is to say
        for scenario in report.scenarios:
            if (scenario.scenario.id, scenario.agent) in lost_scenarios:
                yield _lost_scenario(scenario, samples, plan)


def _lost_scenario(
    scenario: ScenarioReport, samples: Mapping[SampleKey, SampleDecision], plan: Plan
) -> GateRow:
    begun = len(scenario.samples)
    lost = _count_lost(scenario, samples)
    return GateRow(
        name=TOLERANCE,
        value=lost / begun,
        bound="at most half",
        basis=f"{lost} of {plural(begun, 'sample')} inconclusive",
        where=plan.suite.where(TOLERANCE),
        verdict=Verdict.INCONCLUSIVE,
        scenario=scenario.scenario.id,
        agent=scenario.agent,
        resolution=_way_out(scenario.samples, samples),
    )


def lost_most(report: Report, samples: Mapping[SampleKey, SampleDecision]) -> frozenset[tuple[str, str]]:
    """The scenarios (id and agent) of which more than half of the samples that began are inconclusive: too
    little is known of them, whatever is tolerated. A recorded conversation that stands for itself alone is no
    scenario: of those the share of all is bounded."""
    written = {scenario.id for scenario in report.run.scenarios}
    return frozenset(
        (scenario.scenario.id, scenario.agent)
        for scenario in report.scenarios
        if scenario.scenario.id in written or scenario.scenario.lines or len(scenario.samples) > 1
        if 2 * _count_lost(scenario, samples) > len(scenario.samples)
    )


def _count_lost(scenario: ScenarioReport, samples: Mapping[SampleKey, SampleDecision]) -> int:
    decided = (samples.get(sample.key) for sample in scenario.samples)
    return sum(one is None or one.verdict is Verdict.INCONCLUSIVE for one in decided)


def is_tolerated(lost: int, begun: int, bound: float) -> bool:
    """Whether so many losses decide nothing. Of a run that is all losses nothing is known."""
    return lost < begun and lost / begun <= bound


def _cut_off(report: Report) -> GateRow:
    """A run that was killed is never green, whatever is tolerated: what it would have found is not known."""
    done, planned = len(report.samples), sum(len(s.samples) + len(s.missing) for s in report.scenarios)
    return GateRow(
        name="complete run",
        value="cut off",
        bound="ended by itself",
        basis=f"{done} of {plural(planned, 'sample')} started; agenteval run --resume continues",
        where="default",
        verdict=Verdict.INCONCLUSIVE,
        resolution=RESUME,
    )


def _unmet(unmet: Mapping[str, str]) -> GateRow:
    """Expectations that were held against nothing are not met, whatever is tolerated."""
    return GateRow(
        name="every scenario met",
        value=f"{len(unmet):,} without one",
        bound="a conversation for each",
        basis=f"no recorded conversation matches {few(list(unmet), _MOST_NAMED)}",
        where=next(iter(unmet.values())),
        verdict=Verdict.INCONCLUSIVE,
    )


_MOST_NAMED = 5


def _every_sample(
    report: Report,
    samples: Mapping[SampleKey, SampleDecision],
    counted: Set[SampleKey],
    *,
    tolerated: bool,
) -> GateRow:
    verdicts = [Verdict.PASSED if key in counted else each.verdict for key, each in samples.items()]
    lost = verdicts.count(Verdict.INCONCLUSIVE)
    basis = f"{plural(len(verdicts), 'sample')} of {plural(len(report.scenarios), 'scenario')}"
    basis += f", {len(counted)} that failed left to the shares" if counted else ""
    every = Verdict.worst(v for v in verdicts if v is not Verdict.INCONCLUSIVE)
    return GateRow(
        name=EVERY_SAMPLE,
        value=verdicts.count(Verdict.PASSED) / len(verdicts) if verdicts else None,
        bound=1.0,
        basis=basis if not lost else f"{basis}, {lost} inconclusive",
        where="default",
        verdict=every if every is Verdict.FAILED or tolerated else Verdict.worst(verdicts),
    )


def _severity_gate(report: Report, samples: Mapping[SampleKey, SampleDecision]) -> GateRow:
    plan = report.plan
    counted = [s for s in report.samples if samples[s.key].fault not in NOT_THE_AGENTS]
    found = [finding for sample in counted for finding in sample.findings]
    findings = counting(report.scenarios, samples, report)
    accepted = len(found) - len(findings)
    also = f", {accepted} more accepted" if accepted else ""
    worst = max((finding.severity for finding in findings), key=lambda s: s.rank, default=None)
    severe = any(_never_tolerated(finding, plan) for finding in findings)
    suite = plan.suite
    least = Severity.CRITICAL if replaces_every_sample(suite.gates) else suite.fail_on_severity
    return GateRow(
        name=SEVERE,
        value=str(worst) if worst else "no finding",
        bound=f"below {least}",
        basis=f"{plural(len(findings), 'finding')} in {plural(len(counted), 'sample')}{also}",
        where=plan.suite.where("fail_on_severity"),
        verdict=Verdict.FAILED if severe else Verdict.PASSED,
    )


def counting(
    scenarios: Iterable[ScenarioReport], samples: Mapping[SampleKey, SampleDecision], report: Report
) -> list[Finding]:
    """The findings of samples that were not lost, but for those that are accepted."""
    return [finding for _, _, finding in counted(scenarios, samples, report)]


def failing_findings(report: Report, decision: Decision) -> frozenset[tuple[SampleKey, int]]:
    """The findings that fail the run, by sample and place among its own. There are none in a run that has
    passed."""
    plan = report.plan
    found = counted(report.scenarios, decision.samples, report)
    if decision.is_reported:
        broken = [severity for severity in plan.suite.max_rates if _is_broken(severity, decision)]
        least = min((severity.rank for severity in broken), default=len(Severity))
        return frozenset((key, place) for key, place, finding in found if finding.severity.rank >= least)
    return frozenset((key, place) for key, place, finding in found if _never_tolerated(finding, plan))


def _is_broken(severity: Severity, decision: Decision) -> bool:
    name = f"{MAX_RATE} {severity}"
    return any(row.name == name and row.verdict is Verdict.FAILED for row in decision.gates)


def _author_errors(report: Report) -> tuple[str, ...]:
    """Mistakes of the author that showed only while running, each once, with where it was met."""
    met: dict[str, str] = {}
    for sample in report.samples:
        told = [sample.stop.detail] if sample.stop and sample.stop.fault == "author" else []
        told += [failure.message for failure in sample.all_failures if failure.author]
        for detail in told:
            met.setdefault(detail, f"{detail}\n  (in {sample.key})")
    for failure in report.issue_failures:
        if failure.author:
            met.setdefault(failure.message, failure.message)
    return tuple(met.values())


def _exit_code(report: Report, verdict: Verdict, author_errors: Sequence[str]) -> int:
    if report.finished and report.finished.outcome == "interrupted":
        return 130
    if author_errors:
        return 2
    # A run that was killed has not ended: it is not called undecided.
    if verdict is Verdict.INCONCLUSIVE and is_neutral(report) and report.finished:
        return 0
    return {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.INCONCLUSIVE: 3}[verdict]


def is_neutral(report: Report) -> bool:
    """Whether an undecided run ends as one that has passed does."""
    return report.plan.suite.on_undecided == "neutral"
