"""Describe each failure, its location and the command to reproduce it, in the same words for all formats."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from agenteval.core.decision import Decision, GateRow, SampleDecision, ScenarioDecision, Violation
from agenteval.core.errors import split_remedy
from agenteval.core.event import RunStarted
from agenteval.core.plurals import join_first, plural
from agenteval.core.safe_text import (
    clean,
    neutralize_workflow_commands,
    one_line,
    one_line_message,
    shorten_message,
)
from agenteval.core.sample_report import SampleReport, ScenarioReport, numeric_value
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Finding, Verdict
from agenteval.reporters.words.places import shown_place, split_place
from agenteval.reporters.words.rerun_commands import (
    repro,
    rescore_sample_command,
    rescore_scenario_command,
    score_options,
)
from agenteval.reporters.words.score_cells import is_failure_free, judged_places, score_text
from agenteval.reporters.words.transcript_lines import TranscriptLine, transcript
from agenteval.verdict.report import Report

_REASON_LIMIT = 2000
_TEXT_LIMIT = 600
_MOST_FINDINGS, _MOST_REASONS, _MOST_SCORES = 20, 20, 3

SOME_FAILED = "did not pass every conversation"
NONE_PASSED = "passed no conversation"
"""The outcomes of a scenario that passed although some or all of its conversations failed."""
NEVER_RAN = SampleDecision(Verdict.INCONCLUSIVE, "interrupted")
"""The decision for a planned sample that was never started."""


@dataclass(frozen=True)
class ReportedFailure:
    """A sample, or a rule about all samples of a scenario, that did not pass."""

    scenario_report: ScenarioReport
    scenario: str
    agent: str
    key: SampleKey | None
    """The sample; ``None`` for a rule about all samples of the scenario."""
    title: str
    verdict: Verdict
    fault: str | None
    tolerated: bool
    """True if the failure does not affect the verdict of the scenario or of the run. This is the case if a
    pass rate or the fault tolerance covers the failure, or if ``is_reported`` is true."""
    where: str
    violations: tuple[Violation, ...]
    """The reasons for the failure, including failed checks. There is at least one reason."""
    repro: str
    """The command that runs the scenario again."""
    sample: SampleReport | None = None
    several_agents: bool = False
    is_reported: bool = False
    """True if the run scores a log in which individual conversations do not affect the verdict."""

    @property
    def why_tolerated(self) -> str:
        """The reason why the failure does not affect the verdict."""
        return "reported, not gated" if self.is_reported else "tolerated by a gate"

    @property
    def never_ran(self) -> bool:
        """True if no conversation of the scenario was started, in which case there is nothing to show."""
        return (
            bool(self.scenario_report.missing)
            and not self.scenario_report.samples
            and self.verdict is Verdict.INCONCLUSIVE
        )

    @property
    def epoch(self) -> int | None:
        return self.key.epoch if self.key else None

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        return tuple(reason(violation) for violation in self.violations)

    @cached_property
    def rules(self) -> tuple[BrokenRule, ...]:
        """The violations in short form."""
        return tuple(map(broken_rule, self.violations))

    @cached_property
    def evidence(self) -> tuple[str, ...]:
        """The findings of judges and detectors, one per line, worst first."""
        if self.sample is None:
            return lowest_scores(self.scenario_report, {v.metric for v in self.violations})
        found = sorted(self.sample.findings, key=lambda finding: -finding.severity.rank)
        return tuple(finding_text(finding) for finding in found[:_MOST_FINDINGS])

    @property
    def transcript(self) -> tuple[TranscriptLine, ...]:
        return transcript(self.sample) if self.sample else ()


def collect_failures(report: Report, decision: Decision) -> tuple[ReportedFailure, ...]:
    """Return all failures: everything that did not pass, in report order. The samples of a scenario come
    before the scenario's own rules."""
    several = report.has_several_agents
    bad = [row for row in decision.gates if row.verdict is not Verdict.PASSED]
    broken = frozenset((row.scenario, row.agent) for row in bad)
    return tuple(
        failure
        for scenario in report.scenarios
        for failure in _scenario_failures(scenario, decision, report.run, broken, several_agents=several)
    )


def _scenario_failures(
    scenario: ScenarioReport,
    decision: Decision,
    run: RunStarted,
    broken: Set[tuple[str, str]],
    *,
    several_agents: bool,
) -> Iterator[ReportedFailure]:
    """Yield the failures of one scenario. ``broken`` contains the (scenario, agent) pairs whose own gates did
    not pass. If the conversations of a log are only reported, only these gates affect the verdict."""
    verdict = scenario_decision(decision, scenario).verdict
    name = (scenario.scenario.id, scenario.agent)
    scenario_failure = ReportedFailure(
        scenario_report=scenario,
        scenario=scenario.scenario.id,
        agent=scenario.agent,
        key=None,
        title=title(scenario, None, several_agents=several_agents),
        verdict=verdict,
        fault=None,
        tolerated=Verdict.PASSED in (verdict, decision.verdict)
        or (decision.is_reported and name not in broken),
        where=scenario.scenario.where(),
        violations=scenario_violations(scenario, decision),
        repro=rescore_scenario_command(scenario, run.command)
        or repro(scenario, run, several_agents=several_agents),
        several_agents=several_agents,
        is_reported=decision.is_reported,
    )
    options = score_options(run.command)
    for key, sample in planned(scenario):
        decided = decision.samples.get(key, NEVER_RAN)
        if decided.verdict is not Verdict.PASSED:
            yield replace(
                scenario_failure,
                key=key,
                title=title(scenario, key, several_agents=several_agents),
                verdict=decided.verdict,
                fault=decided.fault,
                tolerated=decision.is_reported
                or scenario_failure.tolerated
                or (decided.verdict is Verdict.INCONCLUSIVE and decision.tolerates_losses(*name)),
                where=sample.record if sample and sample.record else scenario_failure.where,
                violations=sample_violations(sample, decided, scenario_failure.where),
                sample=sample,
                repro=rescore_sample_command(key, sample, options) or scenario_failure.repro,
            )
    if scenario_failure.violations:
        yield replace(scenario_failure, verdict=Verdict.worst(v.verdict for v in scenario_failure.violations))


def decisive_failures(failed: Iterable[ReportedFailure]) -> list[tuple[ReportedFailure, ...]]:
    """Return the failures that are not tolerated, grouped by scenario and agent. Failed groups come before
    undecided groups; otherwise, report order is preserved. The decisive failure comes first in each group.
    For a gate across repeated runs, this is the failure of the gate itself, not of a single conversation."""
    groups: dict[tuple[str, str], list[ReportedFailure]] = {}
    for failure in failed:
        if not failure.tolerated:
            groups.setdefault((failure.scenario, failure.agent), []).append(failure)
    ordered = [tuple(sorted(group, key=_after_what_decided)) for group in groups.values()]
    return sorted(ordered, key=lambda group: _is_undecided(group[0]))


def never_ran_text(groups: Iterable[Sequence[ReportedFailure]]) -> str:
    """Return a sentence with the number of scenarios that were never started and the first few of their
    names, such as ``17 scenarios never ran: …``. Return an empty string if all scenarios were started."""
    firsts = [group[0] for group in groups if group[0].never_ran]
    if not firsts:
        return ""
    names = [
        one_line(title(each.scenario_report, None, several_agents=each.several_agents), 100)
        for each in firsts
    ]
    names = list(dict.fromkeys(names))
    return f"{plural(len(names), 'scenario')} never ran: {join_first(names, _MOST_NEVER)}"


_MOST_NEVER = 5


def _after_what_decided(failure: ReportedFailure) -> tuple[bool, bool]:
    return _is_undecided(failure), failure.key is not None


def _is_undecided(failure: ReportedFailure) -> bool:
    return failure.verdict is not Verdict.FAILED


SAMPLE_GATES = frozenset(("every sample passes", "fault_tolerance", "fail_on_severity"))


def run_gates(decision: Decision) -> tuple[GateRow, ...]:
    """Return the run-level gates that did not pass. Gates that only count failed samples are excluded,
    because these samples are reported individually."""
    return tuple(
        gate
        for gate in decision.gates
        if not gate.scenario and gate.verdict is not Verdict.PASSED and gate.name not in SAMPLE_GATES
    )


def planned(scenario: ScenarioReport) -> tuple[tuple[SampleKey, SampleReport | None], ...]:
    """Return all planned samples, ordered by epoch, with ``None`` for each sample that never ran."""
    pairs: list[tuple[SampleKey, SampleReport | None]] = [(s.key, s) for s in scenario.samples]
    pairs += [(key, None) for key in scenario.missing]
    return tuple(sorted(pairs, key=lambda pair: (pair[0].epoch, pair[0].variant)))


def scenario_decision(decision: Decision, scenario: ScenarioReport) -> ScenarioDecision:
    """Return the decision on a scenario. If there is no decision, the scenario is inconclusive."""
    key = (scenario.scenario.id, scenario.agent)
    return decision.scenarios.get(key, ScenarioDecision(Verdict.INCONCLUSIVE))


def outcomes_by_scenario(report: Report, decision: Decision) -> dict[tuple[str, str], str]:
    """Return the outcome of each scenario with each agent."""
    return {(each.scenario.id, each.agent): _outcome(each, decision) for each in report.scenarios}


def _outcome(scenario: ScenarioReport, decision: Decision) -> str:
    """Return the outcome of a scenario. A gate across repeated runs may pass a scenario even though some or
    all of its conversations failed, because the gate only checks whether results got worse. Such outcomes
    have their own wording."""
    verdict = scenario_decision(decision, scenario).verdict
    decided = {
        sample_decision.verdict
        for sample in scenario.samples
        if (sample_decision := decision.samples.get(sample.key))
    }
    if verdict is Verdict.PASSED and Verdict.FAILED in decided:
        return SOME_FAILED if Verdict.PASSED in decided else NONE_PASSED
    return verdict.value


def scenario_violations(scenario: ScenarioReport, decision: Decision) -> tuple[Violation, ...]:
    """Return the violations of rules about all samples of the scenario, excluding violations in individual
    samples."""
    of_samples = {
        _identity(violation)
        for key, _ in planned(scenario)
        for violation in decision.samples.get(key, NEVER_RAN).violations
    }
    return tuple(
        violation
        for violation in scenario_decision(decision, scenario).violations
        if _identity(violation) not in of_samples
    )


def _identity(violation: Violation) -> tuple[object, ...]:
    return (violation.name, violation.detail, violation.where, violation.turn)


def sample_violations(
    sample: SampleReport | None, decided: SampleDecision, where: str
) -> tuple[Violation, ...]:
    """Return the reasons why a sample did not pass, or nothing if it passed. A failed check is added unless
    there is a violation with the same name, and there is always at least one reason. If the sample failed,
    the reasons for the failure come first."""
    if decided.verdict is Verdict.PASSED:
        return ()
    violations = decided.violations
    if sample is not None and decided.verdict is Verdict.FAILED:
        violations += tuple(_unreported_checks(sample, violations))
    if violations:
        return tuple(sorted(violations, key=lambda violation: violation.verdict is not decided.verdict))
    if sample is None:
        return (Violation("not_run", "planned but never ran", where, Verdict.INCONCLUSIVE),)
    detail = sample.stop.detail or str(sample.stop.reason) if sample.stop else "the conversation was cut off"
    return (Violation(decided.fault or "stop", detail, where, decided.verdict),)


def _unreported_checks(sample: SampleReport, reported: Sequence[Violation]) -> Iterator[Violation]:
    names = {violation.name for violation in reported}
    conversation_checks: tuple[tuple[int | None, tuple[Check, ...]], ...] = ((None, sample.checks),)
    for index, checks in (*((i, turn.checks) for i, turn in enumerate(sample.turns)), *conversation_checks):
        for check in checks:
            if check.passed is False and check.name not in names:
                yield Violation(check.name, check.detail, check.where, turn=index)


def reason(violation: Violation) -> str:
    """Format a violation as a reason, such as ``tool_calls (turn 2): missing: create_booking(…)``. Turns are
    counted from 1 for display."""
    turn = f" (turn {violation.turn + 1})" if violation.turn is not None else ""
    detail = neutralize_workflow_commands(shorten_message(violation.detail, _REASON_LIMIT)).strip()
    name = one_line(violation.name, 80)
    return f"{name}{turn}: {detail}" if detail else f"{name}{turn}"


_SPEAKS_FOR_ITSELF = ("fail_on_severity", "no_error", "answer", "infrastructure", "simulator")


def rule_name(violation: Violation) -> str:
    """Return the short name of the rule, or an empty string if there is a message that is clear without the
    name."""
    name = one_line(violation.name, 80)
    is_clear = name in _SPEAKS_FOR_ITSELF and clean(violation.detail).strip()
    return "" if is_clear else name.removeprefix("thresholds.")


def split_violation_remedy(violation: Violation, text: str) -> tuple[str, str]:
    """Split the text of a violation into the problem and its remedy. A failed rule only compares values, so
    its text contains no remedy."""
    compares = violation.verdict is Verdict.FAILED and violation.name != "no_error"
    return (text, "") if compares else split_remedy(text)


class BrokenRule(NamedTuple):
    """A violation in short form."""

    violation: Violation
    name: str
    """The name of the rule; empty if the message is clear without the name."""
    lines: tuple[tuple[str, str], ...]
    """The lines of the message. Each line has a remedy, which may be empty."""
    gist: str
    """The shortest description, on one line."""

    @property
    def remedy(self) -> str:
        """The first remedy, or an empty string if there is no remedy."""
        return next((remedy for _, remedy in self.lines if remedy), "")


def broken_rule(violation: Violation) -> BrokenRule:
    text, name = clean(violation.detail), rule_name(violation)
    lines = tuple(_advised_lines(violation, text))
    return BrokenRule(violation, name, lines, _gist(violation, name, text))


def _advised_lines(violation: Violation, text: str) -> list[tuple[str, str]]:
    """Split a violation's text into lines and their remedies. The message of a failed rule may quote an error
    that the agent raised, so each of its lines is split separately. In any other message, everything after
    the separator is the remedy, which is kept as written."""
    what, remedy = (text, "") if violation.verdict is Verdict.FAILED else split_remedy(text)
    lines = [split_violation_remedy(violation, line) for line in what.split("\n") if line.strip()]
    return [*lines[:-1], (lines[-1][0], remedy)] if remedy and lines else lines


_CONTEXT_PREFIXES = ("expected", "called: ", "not allowed: ")


def _gist(violation: Violation, name: str, text: str) -> str:
    """Format the shortest description of a violation, such as ``turn 2: missing: create_booking(…)``."""
    turn = f"turn {violation.turn + 1}: " if violation.turn is not None else ""
    lines = [line for line in text.split("\n") if line.strip()]
    at = next((n for n, line in enumerate(lines) if not line.startswith(_CONTEXT_PREFIXES)), 0)
    detail = neutralize_workflow_commands(one_line_message(lines[at], _REASON_LIMIT)) if lines else ""
    needs_no_name = not name or name.startswith(("output.", "tool_calls"))
    turn = "" if detail.startswith(turn) else turn
    if not detail:
        return turn + name if name else turn.removesuffix(": ")
    return turn + (detail if needs_no_name else f"{name}: {detail}")


def reason_lines(failure: ReportedFailure, root: str) -> tuple[str, ...]:
    """Return the reasons for a failure, each with the location of its rule, followed by the evidence."""
    lines = []
    for violation in failure.violations[:_MOST_REASONS]:
        lines.append(reason(violation))
        if split_place(violation.where)[0]:
            lines.append(f"  at {shown_place(violation.where, root)}")
    left_out = len(failure.violations) - _MOST_REASONS
    lines += [f"… and {left_out} more"] if left_out > 0 else []
    return (*lines, *failure.evidence)


def finding_text(finding: Finding) -> str:
    """Format a finding, such as ``high: false information (turn 2, judge): nothing was booked — "Booked!"``.
    If both code and a judge reported the finding, both are named."""
    turn = f"turn {finding.turn + 1}, " if finding.turn is not None else ""
    head = f"{finding.severity}: {one_line(finding.label, 80)} ({turn}{one_line(finding.found_by, 100)})"
    return head + reason_suffix(finding.explanation, finding.evidence)


def lowest_scores(scenario: ScenarioReport, metrics: Collection[str]) -> tuple[str, ...]:
    """Return the lowest scores for ``metrics`` with their reasons. These scores lowered a mean or a rate."""
    scores = [
        (numeric_value(score), score, f"epoch {sample.key.epoch + 1}" + turn_words(place.turn))
        for sample in scenario.samples
        for place in judged_places(sample)
        for score in place.scores
        if score.metric in metrics and not is_failure_free(score) and not score.is_open
    ]
    mean = sum(value for value, *_ in scores) / max(1, len(scores))
    low = [entry for entry in scores if entry[0] <= mean]
    lowest = sorted(low, key=lambda entry: entry[0])[:_MOST_SCORES]
    return tuple(
        f"{one_line(score.metric, 80)} {score_text(score)} ({place})"
        + reason_suffix(score.reason, score.evidence)
        for _, score, place in lowest
    )


def turn_words(turn: int | None) -> str:
    """Format a turn as ``, turn 2``, counted from 1 for display. Return an empty string if there is no turn,
    which means the whole conversation."""
    return f", turn {turn + 1}" if turn is not None else ""


def reason_suffix(reason: str, evidence: str, *, limit: int = _TEXT_LIMIT) -> str:
    """Return a suffix such as ``: the reason — "the evidence"``, or an empty string if there is neither a
    reason nor evidence."""
    why = f": {one_line(reason, limit)}" if reason.strip() else ""
    return why + (f' — "{one_line(evidence, limit)}"' if evidence.strip() else "")


def title(scenario: ScenarioReport, key: SampleKey | None, *, several_agents: bool) -> str:
    """Return the display name of a sample: the id of the scenario, followed by the variant if the sample has
    one, the agent if the run has several agents, and the epoch if the scenario has several samples."""
    parts = [one_line(scenario.scenario.id, 120)]
    if key is not None and key.variant:
        parts[0] += f" [{one_line(key.variant, 60)}]"
    if several_agents:
        parts.append(one_line(scenario.agent, 60))
    if key is not None and len(scenario.samples) + len(scenario.missing) > 1:
        parts.append(f"epoch {key.epoch + 1}")
    return " · ".join(parts)
