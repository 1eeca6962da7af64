"""Abstentions: judgments that count neither as a pass nor as a failure, and scenarios in which nothing else
was decided. Pure.

A criterion whose condition never arose passes. A goal that was ruled out, was withdrawn or is unclear has no
value. Neither may cause a run to fail, and a run must not pass on these judgments alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agenteval.core.decision import GateRow
from agenteval.core.plan import Plan
from agenteval.core.plurals import join_first, plural
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.score import NOT_CLEAR, RULED_OUT, WITHDRAWN, Check, Verdict
from agenteval.files.prompts import CRITERIA
from agenteval.scoring.goals import GOAL, count_open_goals, get_goal_scores
from agenteval.verdict.fingerprints import criterion_of
from agenteval.verdict.report import Report
from agenteval.verdict.skipped_judges import skipped_judges
from agenteval.verdict.thresholds import CONTINUE_REMEDY

DECIDED = "something decides"
"""The name of the gate for a scenario in which every judge abstained."""
NOT_ASKED_FOR = ("no_error", "answer")
"""Checks that run without being configured."""
_MOST_NAMED, _LONGEST = 3, 100


def unexercised_criteria(scenario: ScenarioReport) -> tuple[str, ...]:
    """Return the criteria whose condition did not arise in any of the scenario's conversations, in the
    author's words."""
    arose: dict[tuple[str, str], bool] = {}
    for check in _criteria(scenario.samples):
        name = (check.where, criterion_of(check, scenario.scenario))
        arose[name] = arose.get(name, False) or check.arose
    return tuple(criterion for (_, criterion), ever in arose.items() if not ever)


def _criteria(samples: Iterable[SampleReport]) -> Iterator[Check]:
    return (check for sample in samples for check in sample.all_checks if check.name == CRITERIA)


def is_any_decided(sample: SampleReport) -> bool:
    """Check whether at least one rule, label or goal configured by the author was decided. An answer from the
    agent is not enough."""
    return (
        any(
            check.passed is not None and check.arose and check.name not in NOT_ASKED_FOR
            for check in sample.all_checks
        )
        or any(score.ok is not None for score in sample.all_scores)
        or any(goal.value is not None for goal in get_goal_scores(sample))
    )


def undecided_scenario_rows(report: Report, thresholds: Sequence[GateRow]) -> Iterator[GateRow]:
    """Yield a row for each scenario × agent in which judges abstained or were skipped and nothing else was
    decided. Anything that only an errored conversation could have shown is covered by ``fault_tolerance``."""
    decided = {(gate.scenario, gate.agent) for gate in thresholds if gate.verdict is not Verdict.INCONCLUSIVE}
    for scenario in report.scenarios:
        why = _describe_abstentions(scenario, report.plan)
        if not why or (scenario.scenario.id, scenario.agent) in decided:
            continue
        if not any(is_any_decided(sample) for sample in scenario.samples):
            yield GateRow(
                name=DECIDED,
                value="nothing",
                bound="at least one check, label or goal",
                basis=why,
                where=scenario.scenario.where(),
                verdict=Verdict.INCONCLUSIVE,
                scenario=scenario.scenario.id,
                agent=scenario.agent,
            )


def _describe_abstentions(scenario: ScenarioReport, plan: Plan) -> str:
    """Describe which judgments were abstentions and what would turn them into decisions. Return an empty
    string if no judge abstained."""
    reasons = []
    if ruled_out := count_open_goals(scenario.samples, RULED_OUT):
        reasons.append(
            f"the goal was ruled out in {plural(ruled_out, 'conversation')}: if that is correct, set"
            " `goal_outcome: refused`"
        )
    if withdrawn := count_open_goals(scenario.samples, WITHDRAWN):
        count = plural(withdrawn, "conversation")
        reasons.append(f"the goal was withdrawn by the user in {count}: {CONTINUE_REMEDY}")
    if unclear := count_open_goals(scenario.samples, NOT_CLEAR):
        reasons.append(f"the goal is not clear in {plural(unclear, 'conversation')}")
    policies = sum(
        score.is_open and score.metric != GOAL for each in scenario.samples for score in each.all_scores
    )
    if policies:
        reasons.append(
            f"it is not clear in {plural(policies, 'conversation')} whether the policy was followed"
        )
    if failed := sum(bool(skipped_judges(sample, scenario, plan)) for sample in scenario.samples):
        reasons.append(f"judges failed in {plural(failed, 'conversation')} and were skipped")
    if criteria := unexercised_criteria(scenario):
        reasons.append(f"did not arise in any conversation: {quote_names(criteria)}")
    return "; ".join(reasons)


def quote_names(criteria: Sequence[str]) -> str:
    """Quote the first few criteria."""
    return join_first([f"“{one_line(text, _LONGEST)}”" for text in criteria], _MOST_NAMED)
