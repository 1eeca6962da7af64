"""Caveats: facts that did not affect the verdict of a run but that matter to a reader who sees only the last
line. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agenteval.core.decision import TOLERANCE, AcceptedState, Decision
from agenteval.core.plan import Plan
from agenteval.core.plurals import join_first, join_names, plural
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import Tool
from agenteval.core.score import NOT_CLEAR, REACHED, RULED_OUT, WITHDRAWN, Finding, Severity, Verdict
from agenteval.core.tool_effects import ToolEffect, effect_of
from agenteval.core.trajectory import ToolVisibility
from agenteval.files.prompts import CRITERIA
from agenteval.scoring.detectors.table import DETECTORS
from agenteval.scoring.finding_severity import get_cited_tool, rate_finding
from agenteval.scoring.goals import GOAL, failed_to_refuse, get_goal_scores
from agenteval.scoring.metrics import BEHAVIOR, POLICY_ADHERENCE
from agenteval.scoring.questions import asks_judge, is_open_question, tools_of_unseen_calls
from agenteval.verdict.abstentions import NOT_ASKED_FOR, quote_names, unexercised_criteria
from agenteval.verdict.counted_findings import CountedFinding, failed_below_gate, locate_counted_findings
from agenteval.verdict.recorded_logs import (
    is_unreadable,
    named_places,
    undecided_in,
    unreadable_places,
)
from agenteval.verdict.report import Report
from agenteval.verdict.sample_decisions import is_severe
from agenteval.verdict.skipped_judges import all_skipped_judges
from agenteval.verdict.thresholds import NOT_THE_AGENTS

_MOST_NAMED = 3


@dataclass(frozen=True)
class Caveat:
    """A remark about something that had no effect on the verdict."""

    kind: str
    """A machine-readable key."""
    count: int
    """The number of things that the remark is about; 1 if nothing is counted."""
    text: str
    """The human-readable remark."""
    below_gate: bool = False
    """True if the remark is about a detected failure that is below ``fail_on_severity``."""


def list_caveats(report: Report, decision: Decision) -> tuple[Caveat, ...]:
    """Return the caveats of a run: everything that had no effect on the verdict, in a fixed order: findings
    below the gate; missed goals, goals that were reached instead of refused, and failed judges below the
    gate; tools that would affect the verdict if they were marked as writing; unknown parts of a log;
    abstentions; criteria that never arose; skipped judges; errored conversations that were repeated; errored
    samples that were tolerated; accepted failures; a replay; judges that were not called; agents whose calls
    were never seen; agents that never changed the database that they were given; faults of scenarios that
    no call had; unchecked claims of actions; agents whose claims are taken on trust; empty lists in test
    cases; logs in which nothing could have been found; scenarios of the baseline that are no
    longer in the suite."""
    found = (
        ()
        if decision.is_reported
        else tuple(locate_counted_findings(report.scenarios, decision.samples, report))
    )
    return (
        *(() if decision.is_reported else _below_gate(report, found)),
        *_unmarked_tools(report, found),
        *_log_caveats(report, decision),
        *_open_judgements(report, decision),
        *_open_criteria(report, decision),
        *_unexercised(report),
        *_skipped_judges(report),
        *_repeated_conversations(report),
        *_errored_samples(report, decision),
        *_accepted_failures(decision),
        *_replayed(report),
        *_uncalled_judges(report),
        *_calls_never_seen(report),
        *_databases_never_changed(report),
        *_faults_never_reached(report),
        *_unseen_claims(report, decision),
        *_goals_on_trust(report),
        *_empty_lists(report),
        *_nothing_to_prove(report),
        *_removed_scenarios(report),
    )


def _removed_scenarios(report: Report) -> Iterator[Caveat]:
    """Warn about removed scenarios, because a suite passes more easily as it shrinks."""
    gone = report.run.baseline.gone if report.run.baseline else ()
    if gone:
        names = join_first([one_line(name, 60) for name in gone], _MOST_NAMED)
        text = f"{plural(len(gone), 'baseline scenario')} no longer in the suite: {names}"
        yield Caveat("gone scenarios", len(gone), text)


def format_caveats(report: Report, decision: Decision) -> str:
    """Format the caveats in one line, such as ``3 findings of high severity and 1 goal missed below the gate;
    1 accepted failure``. Return an empty string if there are no caveats."""
    caveats = list_caveats(report, decision)
    below = [caveat.text for caveat in caveats if caveat.below_gate]
    first = [f"{join_names(below)} below the gate"] if below else []
    return "; ".join([*first, *(aside.text for aside in caveats if not aside.below_gate)])


def _below_gate(report: Report, found: Sequence[CountedFinding]) -> Iterator[Caveat]:
    """Yield findings below the gate. Accepted findings are reported as accepted, and the findings of errored
    samples are reported with those samples."""
    plan = report.plan
    below = [
        (key, each) for key, _, each in found if not is_severe(each, plan) and not is_open_question(each)
    ]
    for severity in (Severity.CRITICAL, Severity.HIGH):
        if count := sum(f.severity is severity and not _is_goal(f) for _, f in below):
            text = f"{plural(count, 'finding')} of {severity} severity"
            yield Caveat(f"findings_{severity}", count, text, below_gate=True)
    # A missed goal is reported once, as a goal: whatever its severity, a user did not get what they came for.
    of_goals = [key for key, finding in below if _is_goal(finding)]
    not_refused = {sample.key for sample in report.samples if failed_to_refuse(sample)}
    granted = sum(key in not_refused for key in of_goals)
    if missed := len(of_goals) - granted:
        yield Caveat("goals_missed", missed, f"{plural(missed, 'goal')} missed", below_gate=True)
    if granted:
        text = f"{plural(granted, 'goal')} reached instead of refused"
        yield Caveat("goals_not_refused", granted, text, below_gate=True)
    if failed := failed_below_gate(report):
        yield Caveat("judges_failed", failed, plural(failed, "failed judge"), below_gate=True)


def _is_goal(finding: Finding) -> bool:
    return finding.metric == GOAL


def _unmarked_tools(report: Report, found: Sequence[CountedFinding]) -> Iterator[Caveat]:
    """Yield a caveat about tools that are not known to write data. The caveat applies if a finding that cites
    a call to such a tool would fail the run if the tool writes data."""
    samples = {
        sample.key: (sample, each.scenario.tools) for each in report.scenarios for sample in each.samples
    }
    names = []
    for key, _, finding in found:
        sample, tools = samples[key]
        tool = get_cited_tool(finding, sample.trajectory)
        if not tool or effect_of(tool, tools.get(tool)) is not ToolEffect.UNKNOWN:
            continue
        as_marked = _rate_with_tools(finding, sample, {**tools, tool: Tool(writes=True)}, report.plan)
        if is_severe(as_marked, report.plan) and not is_severe(finding, report.plan):
            names.append(one_line(tool, 60))
    if names:
        unmarked = " or ".join(dict.fromkeys(names))
        text = f"{plural(len(names), 'finding')} would fail the run if {unmarked} writes"
        yield Caveat("tools_unmarked", len(names), f"{text}: mark it `writes: true` or `reads: true`")


def _rate_with_tools(
    finding: Finding, sample: SampleReport, tools: Mapping[str, Tool], plan: Plan
) -> Finding:
    """Rate the finding as if the scenario declared these tools, to the extent that code alone can do so."""
    confirmed = rate_finding(finding, sample.in_full.trajectory, tools, plan.suite.severities)
    detector = None if finding.also else DETECTORS.get(finding.detector)
    if detector is None:
        return confirmed
    severity = detector.severity_of(confirmed.severity, plan.suite.severities)
    return finding.model_copy(update={"severity": severity})


def _open_judgements(report: Report, decision: Decision) -> Iterator[Caveat]:
    """Yield abstentions, excluding those in errored samples, which are reported with the samples."""
    lost = {key for key, decided in decision.samples.items() if decided.fault in NOT_THE_AGENTS}
    open_ = Counter(
        (score.metric, score.label)
        for sample in report.samples
        if sample.key not in lost
        for score in sample.all_scores
        if score.is_open
    )
    for judgement, (kind, text_of) in _OPEN_JUDGEMENTS.items():
        if count := open_[judgement]:
            yield Caveat(kind, count, text_of(count))


_OPEN_JUDGEMENTS: dict[tuple[str, str], tuple[str, Callable[[int], str]]] = {
    (GOAL, RULED_OUT): ("goals_ruled_out", lambda n: f"{plural(n, 'goal')} ruled out"),
    (GOAL, WITHDRAWN): ("goals_withdrawn", lambda n: f"{plural(n, 'goal')} withdrawn by the user"),
    (GOAL, NOT_CLEAR): ("goals_not_clear", lambda n: f"{plural(n, 'goal')} not clear"),
    (POLICY_ADHERENCE, NOT_CLEAR): (
        "policy_not_clear",
        lambda n: f"{POLICY_ADHERENCE} not clear in {plural(n, 'conversation')}",
    ),
}
"""The kind and text of the caveat for each type of abstention, keyed by metric and label."""


def _open_criteria(report: Report, decision: Decision) -> Iterator[Caveat]:
    """Yield unclear criteria in the samples that passed. In all other samples, unclear criteria are among the
    reasons for the verdict."""
    if count := sum(
        check.name == CRITERIA and check.passed is None and bool(check.by)
        for sample in report.samples
        if (decided := decision.samples.get(sample.key)) and decided.verdict is Verdict.PASSED
        for check in sample.all_checks
    ):
        what = "criterion" if count == 1 else "criteria"
        yield Caveat("criteria_not_clear", count, f"{count:,} {what} not clear")


def _unexercised(report: Report) -> Iterator[Caveat]:
    criteria = [criterion for scenario in report.scenarios for criterion in unexercised_criteria(scenario)]
    if criteria:
        count = "1 criterion" if len(criteria) == 1 else f"{len(criteria):,} criteria"
        text = f"{count} that did not arise in any conversation: {quote_names(criteria)}"
        yield Caveat("never_arose", len(criteria), text)


def _skipped_judges(report: Report) -> Iterator[Caveat]:
    """Yield skipped judges. Judges that were not called are reported separately."""
    if count := sum(not failure.refused for failure in all_skipped_judges(report)):
        yield Caveat("judges_skipped", count, f"{plural(count, 'failed judge')} skipped")


def _repeated_conversations(report: Report) -> Iterator[Caveat]:
    """Yield the samples in which a conversation errored but succeeded when repeated. If the repetition
    errored too, the sample is reported as errored."""
    again = [
        sample
        for sample in report.samples
        if sample.lost_attempts and sample.stop and not (sample.stop.is_loss or sample.stop.is_cut_short)
    ]
    if again:
        several = {key.scenario for key in report.plan.samples if key.epoch}
        names = [
            f"{each.key.scenario}@{each.key.epoch + 1}" if each.key.scenario in several else each.key.scenario
            for each in again
        ]
        shown = join_first([one_line(name, 60) for name in names], _MOST_NAMED)
        text = f"{plural(len(again), 'errored conversation')} repeated ({shown})"
        yield Caveat("played_again", len(again), text)


def _errored_samples(report: Report, decision: Decision) -> Iterator[Caveat]:
    of_log = decision.without_scenarios  # unreadable records are reported separately
    unread = {each.key for each in report.samples if of_log and is_unreadable(each)}
    lost = sum(
        decided.verdict is Verdict.INCONCLUSIVE and decision.tolerates_losses(key.scenario, key.agent)
        for key, decided in decision.samples.items()
        if key not in unread
    )
    if lost:
        yield Caveat("samples_errored", lost, f"{plural(lost, 'sample')} errored within {TOLERANCE}")


def _log_caveats(report: Report, decision: Decision) -> Iterator[Caveat]:
    """Yield the caveats about a log without scenarios: the records that could not be read, and the
    conversations that are undecided."""
    if not decision.without_scenarios:
        return
    if places := unreadable_places(report):
        text = (
            f"{len(places):,} of {plural(len(report.samples), 'record')} unreadable ({named_places(places)})"
        )
        yield Caveat("records_unreadable", len(places), one_line(text, 300))
    if not decision.is_reported:
        return
    if open_ := undecided_in(report, decision.samples):
        yield Caveat("conversations_undecided", open_, f"{plural(open_, 'conversation')} not decided")
    if unplaced := sum(any(each_turn.turn.unplaced for each_turn in each.turns) for each in report.samples):
        yield Caveat("not_fully_seen", unplaced, f"{plural(unplaced, 'conversation')} not fully seen")


def _accepted_failures(decision: Decision) -> Iterator[Caveat]:
    if count := sum(use.state is AcceptedState.IN_FORCE for use in decision.accepted):
        yield Caveat("accepted", count, plural(count, "accepted failure"))


def _replayed(report: Report) -> Iterator[Caveat]:
    if played := report.run.request.get("replay"):
        name = str(played).replace("\\", "/").rpartition("/")[2]
        yield Caveat("replay", 1, f"a replay of {one_line(name, 80)}")


def _uncalled_judges(report: Report) -> Iterator[Caveat]:
    plan = report.plan
    if plan.suite.code_only:
        yield Caveat("code_only", len(plan.needs_model), _describe_code_only(report))
        return
    is_asked_for = bool(plan.suite.judged) or any(each.scenario.all_criteria for each in report.scenarios)
    if plan.suite.no_judge and is_asked_for:
        yield Caveat("not_judged", 1, "judges not called")
    elif count := sum(failure.refused for sample in report.samples for failure in sample.all_failures):
        yield Caveat("not_judged", count, f"{plural(count, 'judge call')} not made")


def _describe_code_only(report: Report) -> str:
    """Describe what is not covered when only code checks passed."""
    criteria = {text for each in report.scenarios for text in each.scenario.all_criteria}
    thresholds = {name for each in report.scenarios for name in each.rules.thresholds}
    parts = [f"{len(criteria):,} criteri{'on' if len(criteria) == 1 else 'a'} not judged"] if criteria else []
    parts += [f"{plural(len(thresholds), 'threshold')} not evaluated"] if thresholds else []
    left_out = len(report.plan.needs_model)
    parts += [f"{plural(left_out, 'scenario')} skipped without a model"] if left_out else []
    return f"code checks only{': ' if parts else ''}{', '.join(parts)}"


def _calls_never_seen(report: Report) -> Iterator[Caveat]:
    """Yield agents that declare tools but whose calls were never seen. Such an agent may call its tools in a
    way that agenteval cannot observe, in which case none of its calls are known."""
    declaring: dict[str, None] = {}
    calling = set()
    for each in report.scenarios:
        for sample in each.samples:
            if sample.trajectory.tool_calls:
                calling.add(each.agent)
            elif sample.trajectory.all_turns and each.scenario.tools:
                declaring[each.agent] = None
    if agents := [agent for agent in declaring if agent not in calling]:
        named_agents = f"agent{'s' * (len(agents) > 1)} {', '.join(map(repr, agents))}"
        text = f"no calls from {one_line(named_agents, 120)} recorded, even though tools are declared"
        yield Caveat("calls_never_seen", len(agents), text)


def _databases_never_changed(report: Report) -> Iterator[Caveat]:
    """Yield agents that changed no exposed database. Their tools may work on another one, so that a state in
    which nothing changed provides no evidence."""
    variables: dict[str, dict[str, None]] = {}
    changing = set()
    for each in report.scenarios:
        variable = each.scenario.state.expose if each.scenario.state else None
        if variable and any(sample.trajectory.all_turns for sample in each.samples):
            variables.setdefault(each.agent, {})[variable] = None
            if (each.scenario.id, each.agent) in report.changed_states:
                changing.add(each.agent)
    for agent, names in variables.items():
        if agent not in changing:
            text = f"agent '{one_line(agent, 60)}' changed no database in {', '.join(names)}"
            yield Caveat("databases_never_changed", 1, f"{text}: do its tools use it?")


def _faults_never_reached(report: Report) -> Iterator[Caveat]:
    """Yield the faults that a scenario gives to its tools and that no call had, so that nothing was tried.
    The faults of ``run --faults`` have a table of their own."""
    unreached = [
        f"'{one_line(name, 60)}' in {one_line(each.scenario.id, 60)}"
        for each in report.scenarios
        if not (each.scenario.variant and each.scenario.variant.fault)
        and any(sample.trajectory.all_turns for sample in each.samples)
        for name, tool in each.scenario.tools.items()
        if tool.faults and ((each.scenario.id, each.agent), name) not in report.faulty_tools
    ]
    if unreached:
        text = f"no call had the faults of {join_first(unreached, _MOST_NAMED)}"
        yield Caveat("faults_never_reached", len(unreached), text)


def _unseen_claims(report: Report, decision: Decision) -> Iterator[Caveat]:
    """Yield conversations that are not checked for claims of actions. If some of an agent's calls may not be
    seen, only a judge can tell whether the agent claims an action that it did not perform."""
    if asks_judge(report.plan.suite):
        return
    count = sum(
        decided.verdict is Verdict.PASSED and bool(tools_of_unseen_calls(each.scenario, sample.trajectory))
        for each in report.scenarios
        for sample in each.samples
        if (decided := decision.samples.get(sample.key))
    )
    if count:
        text = f"{plural(count, 'conversation')} not checked for false action claims"
        why = f"not all calls are recorded, and {BEHAVIOR} is not judged"
        yield Caveat("claims_not_checked", count, f"{text}: {why}")


def _goals_on_trust(report: Report) -> Iterator[Caveat]:
    """Yield the goals of agents whose claims the author chose to trust (``calls: unseen``)."""
    count = sum(
        goal.label == REACHED
        for sample in report.samples
        if sample.trajectory.visibility is ToolVisibility.DECLARED_UNSEEN
        for goal in get_goal_scores(sample)
    )
    if count:
        text = f"{plural(count, 'goal')} rel{'ies' if count == 1 else 'y'} on the agent's word alone"
        yield Caveat("on_their_word", count, text)


def _empty_lists(report: Report) -> Iterator[Caveat]:
    """Yield test cases with an empty list. An author who writes ``expected_tools: []`` may assume that it
    forbids all tools."""
    cases = {each.scenario.id: each.scenario.case for each in report.scenarios}
    found = [
        f"{' and '.join(case.empty_lists)} of {one_line(name, 60)}"
        for name, case in cases.items()
        if case is not None and case.empty_lists
    ]
    if found:
        what = f"{plural(len(found), 'test case')} with an empty list, which checks nothing"
        yield Caveat("empty_lists", len(found), f"{what}: {join_first(found, _MOST_NAMED)}")


def _nothing_to_prove(report: Report) -> Iterator[Caveat]:
    """Yield a caveat if no recorded conversation contains a call and nothing was expected or judged.

    Such conversations can hardly fail, so a pass provides no evidence about the agent. The calls may also be
    in a part of the record that the reader does not recognize."""
    samples = [each for each in report.samples if each.trajectory.all_turns]  # an unreadable record has none
    if any(scenario.scenario.tools for scenario in report.scenarios):
        return  # calls could have been made
    if samples and all(sample.record and _is_bare(sample) for sample in samples):
        text = f"nothing to verify: no tool calls in {plural(len(samples), 'conversation')}"
        yield Caveat("nothing_to_prove", len(samples), text)


def _is_bare(sample: SampleReport) -> bool:
    if sample.trajectory.tool_calls or sample.findings or sample.all_scores:
        return False
    return all(check.name in NOT_ASKED_FOR for check in sample.all_checks)
