"""Who passed: pure rules over a report. See "Who fails what" in ``docs/verdicts.md``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agenteval.config import Config
from agenteval.decision import Decision, GateRow, SampleDecision, ScenarioDecision, Violation
from agenteval.report import GOAL, Report, SampleReport, ScenarioReport
from agenteval.scenario import SampleKey
from agenteval.score import Check, Finding, ScoreFailure, ScoreItem, Severity, Verdict
from agenteval.severity import of_label
from agenteval.thresholds import NOT_THE_AGENTS, threshold_gates
from agenteval.trajectory import Stop


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
    scenarios = {
        (scenario.scenario.id, scenario.agent): _decide_scenario(scenario, samples, thresholds)
        for scenario in report.scenarios
    }
    gates = (*_run_gates(report, samples), *thresholds)
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
    )


def sample_failed(items: Sequence[ScoreItem], stop: Stop, config: Config) -> bool:
    """Whether a sample is sure to fail, from what its scorers said (for ``--fail-fast``)."""
    if stop.fault in NOT_THE_AGENTS:
        return False
    return stop.fault == "agent" or any(
        (isinstance(item, Check) and item.passed is False)
        or (isinstance(item, Finding) and _is_severe(item, config))
        for item in items
    )


def _is_severe(finding: Finding, config: Config) -> bool:
    bound = config.fail_on_severity
    return isinstance(bound, Severity) and finding.severity.rank >= bound.rank


def decide_sample(sample: SampleReport, scenario: ScenarioReport, report: Report) -> SampleDecision:
    """Failed: an expectation does not hold, the agent broke, or a finding is severe. Inconclusive: a
    fault that is not the agent's, or a check that could not be decided."""
    fault = sample.stop.fault if sample.stop else "interrupted"
    source = scenario.scenario.source
    if fault in NOT_THE_AGENTS:
        detail = sample.stop.detail if sample.stop else "the sample did not finish"
        at = len(sample.trajectory.turns)
        violation = Violation(
            str(fault), detail, source, Verdict.INCONCLUSIVE, sample.key.epoch, at if sample.stop else None
        )
        return SampleDecision(Verdict.INCONCLUSIVE, fault, (violation,))
    violations = [
        *_broken_checks(sample, source),
        *_severe_findings(sample, source, report.run.config),
        *_broken_judges(sample, scenario, report),
    ]
    if fault == "agent" and not any(v.name == "no_error" for v in violations):
        detail = sample.stop.detail if sample.stop else ""
        violations.insert(0, Violation("no_error", detail, source, epoch=sample.key.epoch))
    verdict = Verdict.worst(violation.verdict for violation in violations)
    if verdict is Verdict.INCONCLUSIVE:
        fault = "judge"
    return SampleDecision(verdict, fault, tuple(violations))


def _broken_checks(sample: SampleReport, source: str) -> Iterable[Violation]:
    places: list[tuple[int | None, Check]] = [(None, check) for check in sample.checks]
    places += [(index, check) for index, turn in enumerate(sample.turns) for check in turn.checks]
    told_whole = {check.name for check in sample.checks if check.passed is False}
    for turn, check in places:
        # An empty answer is told by the turn and, for the reader of the sample alone, by the whole.
        if check.passed is True or (turn is not None and check.name == "answer" in told_whole):
            continue
        verdict = Verdict.FAILED if check.passed is False else Verdict.INCONCLUSIVE
        if check.name == "no_error":
            turn = len(sample.trajectory.turns)
        yield Violation(check.name, check.detail, check.where or source, verdict, sample.key.epoch, turn)


def _severe_findings(sample: SampleReport, source: str, config: Config) -> Iterable[Violation]:
    for finding in sample.findings:
        if _is_severe(finding, config):
            told = finding.explanation or finding.evidence
            detail = f"{finding.severity} finding: {finding.label} ({finding.detector}): {told}"
            yield Violation("fail_on_severity", detail, source, epoch=sample.key.epoch, turn=finding.turn)


def _broken_judges(sample: SampleReport, scenario: ScenarioReport, report: Report) -> Iterable[Violation]:
    """A judge that broke hides what it would have found. Labels gate through their severity, a missed
    goal where it is severe, or would be the last of all epochs; one that the author broke, always."""
    config = report.run.config
    gating = {spec.name for spec in report.run.metrics if spec.is_label}
    if config.fail_on_severity == "none":
        gating = set()
    elif _goal_may_gate(scenario, config):
        gating.add(GOAL)
    places: list[tuple[int | None, ScoreFailure]] = [(None, f) for f in sample.score_failures]
    places += [(index, f) for index, turn in enumerate(sample.turns) for f in turn.score_failures]
    for turn, failure in places:
        if failure.author or failure.metric in gating:
            detail = f"the judge of {failure.metric} broke: {failure.message}"
            source = scenario.scenario.source
            yield Violation("judge", detail, source, Verdict.INCONCLUSIVE, sample.key.epoch, turn)


def _goal_may_gate(scenario: ScenarioReport, config: Config) -> bool:
    """Whether a goal that nobody could judge might have been severe."""
    bound = config.fail_on_severity
    if not isinstance(bound, Severity):
        return False
    if of_label("goal not completed", config.severities).rank >= bound.rank:
        return True
    reached = any(s.value for sample in scenario.samples for s in sample.scores if s.metric == GOAL)
    never = of_label("goal never completed", config.severities)
    return not reached and len(scenario.samples) >= 2 and never.rank >= bound.rank


def _never_run(key: SampleKey) -> SampleDecision:
    violation = Violation("interrupted", "the sample was not run", "", Verdict.INCONCLUSIVE, key.epoch)
    return SampleDecision(Verdict.INCONCLUSIVE, "interrupted", (violation,))


def _decide_scenario(
    scenario: ScenarioReport, samples: Mapping[SampleKey, SampleDecision], thresholds: Sequence[GateRow]
) -> ScenarioDecision:
    keys = [sample.key for sample in scenario.samples] + list(scenario.missing)
    violations = [violation for key in keys for violation in samples[key].violations]
    verdicts = [samples[key].verdict for key in keys]
    for gate in thresholds:
        if (gate.scenario, gate.agent) == (scenario.scenario.id, scenario.agent):
            verdicts.append(gate.verdict)
            if gate.verdict is not Verdict.PASSED:
                violations.append(_threshold_violation(gate))
    return ScenarioDecision(Verdict.worst(verdicts or [Verdict.INCONCLUSIVE]), tuple(violations))


def _threshold_violation(gate: GateRow) -> Violation:
    value = "no score" if gate.value is None else f"{gate.value:.3g}"
    detail = f"{value}, expected at least {gate.bound:g} ({gate.rests_on})"
    return Violation(gate.name, detail, gate.where, gate.verdict)


def _ungated(report: Report, thresholds: Sequence[GateRow]) -> tuple[str, ...]:
    """What was judged and can fail nothing: numbers without a threshold, and labels where no severity
    fails."""
    gated = {gate.name.removeprefix("thresholds.") for gate in thresholds}
    judged = {score.metric for sample in report.samples for score in sample.all_scores}
    by_severity = {spec.name for spec in report.run.metrics if spec.is_label}
    if report.run.config.fail_on_severity != "none":
        gated |= by_severity | {GOAL}
    return tuple(sorted(judged - gated))


def _run_gates(report: Report, samples: Mapping[SampleKey, SampleDecision]) -> Iterable[GateRow]:
    config = report.run.config
    verdicts = [decision.verdict for decision in samples.values()]
    lost = verdicts.count(Verdict.INCONCLUSIVE)
    rests_on = f"{len(verdicts)} samples of {len(report.scenarios)} scenarios"
    # Tolerated losses decide nothing, but of a run that is all losses nothing is known.
    tolerated = bool(verdicts) and lost < len(verdicts) and lost / len(verdicts) <= config.fault_tolerance
    every = Verdict.worst(v for v in verdicts if v is not Verdict.INCONCLUSIVE)
    yield GateRow(
        name="every sample passes",
        value=verdicts.count(Verdict.PASSED) / len(verdicts) if verdicts else None,
        bound=1.0,
        rests_on=rests_on if not lost else f"{rests_on}, {lost} inconclusive",
        where="default",
        verdict=every if every is Verdict.FAILED or tolerated else Verdict.worst(verdicts),
    )
    yield GateRow(
        name="fault_tolerance",
        value=lost / len(verdicts) if verdicts else None,
        bound=config.fault_tolerance,
        rests_on=f"{lost} inconclusive of {len(verdicts)} samples",
        where=config.where("fault_tolerance"),
        verdict=Verdict.PASSED if tolerated else Verdict.INCONCLUSIVE,
    )
    if config.fail_on_severity != "none":
        yield _severity_gate(report, samples)


def _severity_gate(report: Report, samples: Mapping[SampleKey, SampleDecision]) -> GateRow:
    config = report.run.config
    counted = [s for s in report.samples if samples[s.key].fault not in NOT_THE_AGENTS]
    findings = [finding for sample in counted for finding in sample.findings]
    worst = max((finding.severity for finding in findings), key=lambda s: s.rank, default=None)
    severe = any(_is_severe(finding, config) for finding in findings)
    return GateRow(
        name="fail_on_severity",
        value=str(worst) if worst else "no finding",
        bound=f"below {config.fail_on_severity}",
        rests_on=f"{len(findings)} findings in {len(counted)} samples",
        where=config.where("fail_on_severity"),
        verdict=Verdict.FAILED if severe else Verdict.PASSED,
    )


def _author_errors(report: Report) -> tuple[str, ...]:
    """Mistakes of the author that showed only while running, each once, with where it was met."""
    met: dict[str, str] = {}
    for sample in report.samples:
        told = [sample.stop.detail] if sample.stop and sample.stop.fault == "author" else []
        told += [failure.message for failure in sample.all_failures if failure.author]
        for detail in told:
            met.setdefault(detail, f"{detail}\n  (met in {sample.key})")
    for failure in report.issue_failures:
        if failure.author:
            met.setdefault(failure.message, failure.message)
    return tuple(met.values())


def _exit_code(report: Report, verdict: Verdict, author_errors: Sequence[str]) -> int:
    if report.finished and report.finished.outcome == "interrupted":
        return 130
    if author_errors:
        return 2
    return {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.INCONCLUSIVE: 3}[verdict]
