"""Who passed: pure rules over a report. See "Who fails what" in ``docs/verdicts.md``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agenteval.config import Config
from agenteval.report import Report, SampleReport, ScenarioReport
from agenteval.scenario import SampleKey
from agenteval.score import Check, Finding, ScoreItem, Severity, Verdict
from agenteval.trajectory import Stop


@dataclass(frozen=True)
class GateRow:
    """One line of "what gated this run": a rule, its value and bound, what it rests on, its place.

    ``scenario`` and ``agent`` are empty for a rule over the whole run."""

    name: str
    value: float | str | None
    bound: float | str
    rests_on: str
    where: str
    verdict: Verdict
    scenario: str = ""
    agent: str = ""


@dataclass(frozen=True)
class Violation:
    """A broken (or undecided) rule of a scenario: its name, a sentence, its place, its turn."""

    name: str
    detail: str
    where: str
    verdict: Verdict = Verdict.FAILED
    epoch: int | None = None
    turn: int | None = None


@dataclass(frozen=True)
class SampleDecision:
    """``fault``: ``agent``, ``infrastructure``, ``simulator``, ``judge``, ``author``, ``interrupted``
    or ``None`` (a sample that passed, or that failed an expectation)."""

    verdict: Verdict
    fault: str | None = None
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True)
class ScenarioDecision:
    verdict: Verdict
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True)
class Decision:
    """The verdict of a run, and of all its parts. ``scenarios`` is keyed by (scenario id, agent).

    ``ungated`` names what was judged or measured and gates nothing; ``author_errors`` are mistakes
    that showed only while running (exit code 2)."""

    verdict: Verdict
    exit_code: int
    gates: tuple[GateRow, ...]
    samples: Mapping[SampleKey, SampleDecision]
    scenarios: Mapping[tuple[str, str], ScenarioDecision]
    ungated: tuple[str, ...] = ()
    author_errors: tuple[str, ...] = ()


_NOT_THE_AGENTS = ("infrastructure", "simulator", "author", "interrupted", "budget")


def decide(report: Report) -> Decision:
    """The verdict of a report under the configuration that the run was made with."""
    samples = {
        sample.key: decide_sample(sample, scenario, report)
        for scenario in report.scenarios
        for sample in scenario.samples
    }
    for scenario in report.scenarios:
        samples.update({key: _never_run(key) for key in scenario.missing})
    scenarios = {
        (scenario.scenario.id, scenario.agent): _decide_scenario(scenario, samples)
        for scenario in report.scenarios
    }
    gates = tuple(_run_gates(report, samples))
    verdict = Verdict.worst(gate.verdict for gate in gates)
    author_errors = _author_errors(report)
    return Decision(
        verdict=verdict,
        exit_code=_exit_code(report, verdict, author_errors),
        gates=gates,
        samples=samples,
        scenarios=scenarios,
        author_errors=author_errors,
    )


def sample_failed(items: Sequence[ScoreItem], stop: Stop, config: Config) -> bool:
    """Whether a sample is sure to fail, from what its scorers said (for ``--fail-fast``)."""
    if stop.fault in _NOT_THE_AGENTS:
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
    if fault in _NOT_THE_AGENTS:
        detail = sample.stop.detail if sample.stop else "the sample did not finish"
        at = len(sample.trajectory.turns)
        violation = Violation(
            str(fault), detail, source, Verdict.INCONCLUSIVE, sample.key.epoch, at if sample.stop else None
        )
        return SampleDecision(Verdict.INCONCLUSIVE, fault, (violation,))
    violations = [*_broken_checks(sample, source), *_severe_findings(sample, source, report.run.config)]
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


def _never_run(key: SampleKey) -> SampleDecision:
    violation = Violation("interrupted", "the sample was not run", "", Verdict.INCONCLUSIVE, key.epoch)
    return SampleDecision(Verdict.INCONCLUSIVE, "interrupted", (violation,))


def _decide_scenario(
    scenario: ScenarioReport, samples: Mapping[SampleKey, SampleDecision]
) -> ScenarioDecision:
    keys = [sample.key for sample in scenario.samples] + list(scenario.missing)
    violations = tuple(violation for key in keys for violation in samples[key].violations)
    verdict = Verdict.worst(samples[key].verdict for key in keys)
    return ScenarioDecision(verdict if keys else Verdict.INCONCLUSIVE, violations)


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
    counted = [s for s in report.samples if samples[s.key].fault not in _NOT_THE_AGENTS]
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
        if sample.stop and sample.stop.fault == "author":
            met.setdefault(sample.stop.detail, f"{sample.stop.detail}\n  (met in {sample.key})")
    return tuple(met.values())


def _exit_code(report: Report, verdict: Verdict, author_errors: Sequence[str]) -> int:
    if report.finished and report.finished.outcome == "interrupted":
        return 130
    if author_errors:
        return 2
    return {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.INCONCLUSIVE: 3}[verdict]
