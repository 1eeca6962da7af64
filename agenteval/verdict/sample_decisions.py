"""Decide one sample by a list of rules, taking into account how the sample ended. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from agenteval.core.decision import SampleDecision, Violation
from agenteval.core.plan import Plan
from agenteval.core.sample_report import SampleReport, ScenarioReport, TurnReport
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
from agenteval.scoring.goals import GOAL, decides_all_others, get_goal_scores
from agenteval.scoring.questions import is_open_question
from agenteval.verdict.abstentions import is_any_decided
from agenteval.verdict.accepted_failures import accepted_fingerprints, waive_violations
from agenteval.verdict.counted_findings import list_counted_findings, may_hide
from agenteval.verdict.fingerprints import FingerprintedFailure, SampleFailures, agent_failure, failures_of
from agenteval.verdict.recorded_logs import SEVERE
from agenteval.verdict.report import Report
from agenteval.verdict.run_gates import is_counted, replaces_every_sample
from agenteval.verdict.skipped_judges import is_unjudged, skipped_judges, skips_criteria
from agenteval.verdict.thresholds import NOT_THE_AGENTS


def decide_samples(report: Report) -> dict[SampleKey, SampleDecision]:
    """Decide all samples of a run. Samples that were never run come last."""
    decided = {
        sample.key: decide_sample(sample, scenario, report)
        for scenario in report.scenarios
        for sample in scenario.samples
    }
    return decided | {key: _never_run(key) for scenario in report.scenarios for key in scenario.missing}


def decide_sample(sample: SampleReport, scenario: ScenarioReport, report: Report) -> SampleDecision:
    """Decide whether a sample passed, failed, or is inconclusive or errored.

    A sample fails if an expectation is not met, the agent failed, or a finding is severe. A sample is
    inconclusive if a fault occurred that is not the agent's or if a check could not be decided. Failures
    proven by the turns before such a fault still count: a sample that had already failed is not errored."""
    evidence = _SampleEvidence(
        sample=sample,
        scenario=scenario,
        plan=report.plan,
        failures=failures_of(sample, scenario.scenario),
        accepted=accepted_fingerprints(report.run, scenario.scenario.id),
        skipped=skipped_judges(sample, scenario, report.plan),
    )
    violations = [violation for rule in _RULES for violation in rule(evidence)]
    if evidence.fault in NOT_THE_AGENTS:
        return _decide_errored(evidence, violations)
    remaining, accepted = waive_violations(
        [*_unreported_agent_failure(evidence, violations), *violations], evidence.accepted
    )
    verdict = Verdict.worst(violation.verdict for violation in remaining)
    return SampleDecision(verdict, _decided_fault(verdict, remaining, evidence), remaining, accepted)


@dataclass(frozen=True)
class _SampleEvidence:
    """The data that the rules read."""

    sample: SampleReport
    scenario: ScenarioReport
    plan: Plan
    failures: SampleFailures
    accepted: Set[str]
    """The fingerprints of the failures accepted in the sample's scenario."""
    skipped: tuple[ScoreFailure, ...]
    """The failed judges that are ignored."""

    @property
    def fault(self) -> str | None:
        return self.sample.stop.fault if self.sample.stop else "interrupted"

    @property
    def source(self) -> str:
        return self.sample.record or self.scenario.scenario.source

    @cached_property
    def is_answer_missing(self) -> bool:
        """True if a check of the whole conversation reports an empty answer."""
        return any(check.name == "answer" and check.passed is False for check in self.sample.checks)

    @cached_property
    def ignores_unjudged(self) -> bool:
        """True if unjudged criteria do not affect the verdict. This is the case if the run is ``code_only``
        and at least one thing in the sample was decided, or if the judges of the criteria failed and are
        skipped. If nothing is known, nothing passes."""
        is_left_out = self.plan.suite.code_only and is_any_decided(self.sample)
        return is_left_out or skips_criteria(self.sample, self.skipped)

    def violation(
        self,
        name: str,
        detail: str,
        verdict: Verdict = Verdict.FAILED,
        *,
        where: str = "",
        turn: int | None = None,
        failures: Sequence[FingerprintedFailure] = (),
    ) -> Violation:
        """Return a violation that reports ``failures``. ``where`` is set for a rule that has a location of
        its own."""
        return Violation(
            name,
            detail,
            where or self.source,
            verdict,
            self.sample.key.epoch,
            turn,
            fingerprints=tuple(failure.name_in(self.accepted) for failure in failures),
            covers=tuple(failure.what for failure in failures),
        )


# ── the rules ────────────────────────────────────────────────────────────────────────────────────


def _broken_checks(evidence: _SampleEvidence) -> Iterator[Violation]:
    for turn, part in _parts(evidence.sample):
        for place, check in enumerate(part.checks):
            if _is_violated(check, turn, evidence):
                at = check.turn if turn is None else turn
                yield evidence.violation(
                    check.name,
                    check.detail,
                    Verdict.FAILED if check.passed is False else Verdict.INCONCLUSIVE,
                    where=check.where,
                    turn=evidence.sample.trajectory.broken_turn if check.name == "no_error" else at,
                    failures=evidence.failures.checks.get((turn, place), ()),
                )


def _parts(sample: SampleReport) -> Iterator[tuple[int | None, SampleReport | TurnReport]]:
    """Yield the parts that checks and judges can refer to: the whole conversation, then each turn with its
    index."""
    yield None, sample
    yield from enumerate(sample.turns)


def _is_violated(check: Check, turn: int | None, evidence: _SampleEvidence) -> bool:
    if check.passed is True or (is_unjudged(check) and evidence.ignores_unjudged):
        return False
    if check.name == OUTCOME:
        return check.passed is False  # an unrecorded one is only reported: it is not a fault of this run
    # The turn reports an empty answer, and so does the whole, for those who read only the sample.
    return not (check.name == "answer" and turn is not None and evidence.is_answer_missing)


def _severe_findings(evidence: _SampleEvidence) -> Iterator[Violation]:
    for finding, failure in zip(evidence.sample.findings, evidence.failures.findings, strict=True):
        if is_severe(finding, evidence.plan):
            what = f"{finding.severity} finding: {finding.label} ({finding.found_by})"
            detail = f"{what}: {finding.explanation or finding.evidence}"
            yield evidence.violation(SEVERE, detail, turn=finding.turn, failures=[failure])


def _failed_judges(evidence: _SampleEvidence) -> Iterator[Violation]:
    """Yield the judges and detectors that failed, because anything that they would have found is hidden.
    Skipped judges are ignored.

    A failed label judge affects the verdict if the label's worst value could fail the sample. A failed goal
    judge affects the verdict if a missed goal would be severe or would mean that every epoch missed the goal.
    A failure that the author caused and a failure of a check in code always affect the verdict."""
    judged = {*DETECTORS, *(spec.name for spec in evidence.plan.suite.metrics), CRITERIA, USER_REVIEW}
    for turn, part in _parts(evidence.sample):
        for failure in part.score_failures:
            in_code = failure.metric not in judged
            is_skipped = any(each is failure for each in evidence.skipped)
            hides = failure.author or in_code or may_hide(failure, evidence.scenario, evidence.plan)
            if hides and not is_skipped:
                detail = f"the {_describe_failure(failure, in_code=in_code)}: {failure.message}"
                yield evidence.violation("judge", detail, Verdict.INCONCLUSIVE, turn=turn)


def _describe_failure(failure: ScoreFailure, *, in_code: bool) -> str:
    source = "detector" if failure.metric in DETECTORS else "check" if in_code else "judge of"
    problem = "could not decide" if failure.unclear else "raised an error" if source == "check" else "failed"
    return f"{source} {failure.metric} {problem}"


def _goal_that_decides_others(evidence: _SampleEvidence) -> Iterator[Violation]:
    """Yield an unclear goal if it decides the scenario's other conversations. On its own, an unclear goal
    does not affect the verdict."""
    unclear = [goal for goal in get_goal_scores(evidence.sample) if goal.label == NOT_CLEAR]
    if unclear and decides_all_others(evidence.scenario.samples, evidence.plan.suite):
        detail = "not clear; if it was missed here too, none of the scenario's conversations reached it"
        detail += f": {unclear[0].reason}" if unclear[0].reason.strip() else ""
        yield evidence.violation(GOAL, detail, Verdict.INCONCLUSIVE)


_RULES: tuple[Callable[[_SampleEvidence], Iterable[Violation]], ...] = (
    _broken_checks,
    _severe_findings,
    _failed_judges,
    _goal_that_decides_others,
)


# ── how it ended ─────────────────────────────────────────────────────────────────────────────────


def _never_run(key: SampleKey) -> SampleDecision:
    violation = Violation("interrupted", "the sample was not run", "", Verdict.INCONCLUSIVE, key.epoch)
    return SampleDecision(Verdict.INCONCLUSIVE, "interrupted", (violation,))


def _decide_errored(evidence: _SampleEvidence, violations: Iterable[Violation]) -> SampleDecision:
    proven = [violation for violation in violations if _is_proven(violation, evidence.sample)]
    remaining, accepted = waive_violations(proven, evidence.accepted)
    verdict = Verdict.FAILED if remaining else Verdict.INCONCLUSIVE
    fault = None if remaining else evidence.fault
    return SampleDecision(verdict, fault, (*remaining, _error_violation(evidence)), accepted)


def _is_proven(violation: Violation, sample: SampleReport) -> bool:
    """Check whether the failure is proven by a finished turn or could not have been undone by a later one. In
    an errored conversation, scorers report no other failures; for the errored turn, they report only failures
    in the recorded calls."""
    turn, finished = violation.turn, len(sample.trajectory.turns)
    is_proven = turn is None or turn < finished or violation.name == "tool_calls"
    return violation.verdict is Verdict.FAILED and is_proven


def _error_violation(evidence: _SampleEvidence) -> Violation:
    sample = evidence.sample
    detail = sample.stop.detail if sample.stop else "the sample did not finish"
    # An unreadable record has no turn, and an interrupted sample does not report one.
    at = len(sample.trajectory.turns) if sample.stop and evidence.fault != "recording" else None
    if sample.review and sample.review.decides:
        at = sample.review.turn
    return evidence.violation(str(evidence.fault), detail, Verdict.INCONCLUSIVE, turn=at)


def _unreported_agent_failure(
    evidence: _SampleEvidence, violations: Iterable[Violation]
) -> Iterator[Violation]:
    """Yield the agent's failure if no check reports it."""
    sample = evidence.sample
    if evidence.fault == "agent" and not any(each.name == "no_error" for each in violations):
        detail = sample.stop.detail if sample.stop else ""
        end = agent_failure(sample, evidence.scenario.scenario)
        yield evidence.violation("no_error", detail, turn=sample.trajectory.broken_turn, failures=[end])


def _decided_fault(verdict: Verdict, remaining: Iterable[Violation], evidence: _SampleEvidence) -> str | None:
    if verdict is not Verdict.INCONCLUSIVE:
        return evidence.fault if verdict is Verdict.FAILED else None
    if any(violation.name == "judge" for violation in remaining):
        return "judge"
    # If no judge was called, none failed: the sample is missing what a rule is based on.
    is_unanswered = any(map(is_unjudged, evidence.sample.all_checks))
    return "judge" if is_unanswered and not evidence.plan.suite.no_judge else "undecided"


# ── severe, and before the run is over ───────────────────────────────────────────────────────────


def is_severe(finding: Finding, plan: Plan) -> bool:
    """Check whether a finding fails its sample. A finding that is an open question does not fail the sample
    but leaves it undecided."""
    return (
        plan.suite.fail_on is not None
        and finding.severity.rank >= plan.suite.fail_on.rank
        and not is_open_question(finding)
    )


def is_never_tolerated(finding: Finding, plan: Plan) -> bool:
    """Check whether a finding always fails the run. A gate across repeated runs tolerates failed samples but
    never a critical finding."""
    tolerant = replaces_every_sample(plan.suite.gates)
    return is_severe(finding, plan) and (not tolerant or finding.severity is Severity.CRITICAL)


def sample_failed(items: Sequence[ScoreItem], stop: Stop, plan: Plan) -> bool:
    """Check whether a sample is likely to fail the run, based only on the results of its scorers."""
    findings = [item for item in items if isinstance(item, Finding)]
    if any(is_never_tolerated(finding, plan) for finding in findings):
        return True
    broke = (
        stop.fault == "agent"
        or any(isinstance(item, Check) and item.passed is False for item in items)
        or any(is_severe(finding, plan) for finding in findings)
    )
    return broke and not replaces_every_sample(plan.suite.gates)


def fails_alone(report: Report) -> bool:
    """Check whether the only sample in a report is certain to fail its run. With a gate across repeated runs,
    only a critical finding is certain to do so."""
    (scenario,) = report.scenarios
    (sample,) = scenario.samples
    decided = decide_sample(sample, scenario, report)
    if not replaces_every_sample(report.plan.suite.gates):
        is_decided_elsewhere = is_counted(sample, scenario.scenario, decided, report.plan.suite.gates)
        return decided.verdict is Verdict.FAILED and not is_decided_elsewhere
    findings = list_counted_findings((scenario,), {sample.key: decided}, report)
    return any(is_never_tolerated(finding, report.plan) for finding in findings)
