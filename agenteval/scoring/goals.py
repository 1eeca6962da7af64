"""Evaluates goals (task success) across all conversations in a scenario, for facts that no single
conversation reveals. All functions are pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agenteval.core.event import Event, Scored
from agenteval.core.plan import SuitePolicy
from agenteval.core.sample_report import SampleReport
from agenteval.core.score import EXCUSES, NOT_CLEAR, REACHED, Finding, Score, Severity
from agenteval.core.severity import NEVER_COMPLETED, NOT_COMPLETED, severity_of

GOAL = "goal_completion"


def get_goal_scores(sample: SampleReport) -> tuple[Score, ...]:
    """Return the goal scores of a sample."""
    return tuple(score for score in sample.scores if score.metric == GOAL)


def list_goal_scores(samples: Iterable[SampleReport]) -> list[Score]:
    """Return the goal scores of several samples."""
    return [goal for sample in samples for goal in get_goal_scores(sample)]


def count_open_goals(samples: Iterable[SampleReport], *outcomes: str) -> int:
    """Count the open goals whose outcome is one of ``outcomes``. An open goal counts neither for nor against
    the agent."""
    return sum(goal.is_open and goal.label in outcomes for goal in list_goal_scores(samples))


def has_reached(sample: SampleReport) -> bool:
    """Check whether a goal that the agent was expected to reach was reached."""
    return any(goal.label == REACHED and goal.value for goal in get_goal_scores(sample))


def failed_to_refuse(sample: SampleReport) -> bool:
    """Check whether the goal was reached although the author requires the agent to refuse it."""
    return any(goal.label == REACHED and goal.value == 0 for goal in get_goal_scores(sample))


# ── never completed ──────────────────────────────────────────────────────────────────────────────


def raise_missed_goals(samples: tuple[SampleReport, ...], suite: SuitePolicy) -> tuple[SampleReport, ...]:
    """Raise the severity of missed goals if no conversation reached the goal, even if there is only one
    conversation.

    Conversations that errored, and conversations in which the goal was ruled out or withdrawn, count neither
    for nor against the agent. If a judge failed, a goal is unclear, or some conversations have yet to run,
    the severities stay unchanged."""
    goals = list_goal_scores(samples)
    if any(goal.value for goal in goals) or not all(map(_is_goal_known, samples)):
        return samples
    severity = severity_of(NEVER_COMPLETED, suite.severities)
    end = "refuse" if any(map(failed_to_refuse, samples)) else "complete"
    none = f"the scenario's only conversation did not {end} the goal"
    if len(goals) > 1:
        none = f"the goal was {end}d in none of {len(goals)} conversations"
    return tuple(_raise_findings(sample, severity, f" ({none})") for sample in samples)


def _is_goal_known(sample: SampleReport) -> bool:
    """Check whether the conversation finished and a judge decided the outcome of its goal."""
    if sample.stop is None or sample.stop.is_cut_short:
        return False
    has_failed = any(failure.metric == GOAL for failure in sample.score_failures)
    return not has_failed and all(goal.label != NOT_CLEAR for goal in get_goal_scores(sample))


def _raise_findings(sample: SampleReport, severity: Severity, why: str) -> SampleReport:
    def is_raised(finding: Finding) -> bool:
        return finding.metric == GOAL and finding.severity.rank < severity.rank

    if not any(map(is_raised, sample.findings)):
        return sample
    findings = tuple(
        finding.model_copy(update={"severity": severity, "explanation": f"{finding.explanation}{why}"})
        if is_raised(finding)
        else finding
        for finding in sample.findings
    )
    return replace(sample, findings=findings)


def may_gate_unjudged(samples: Sequence[SampleReport], suite: SuitePolicy) -> bool:
    """Check whether a goal that could not be judged might have been severe."""
    bound = suite.fail_on
    if bound is None:
        return False
    if severity_of(NOT_COMPLETED, suite.severities).rank >= bound.rank:
        return True
    reached = any(goal.value for goal in list_goal_scores(samples))
    return not reached and severity_of(NEVER_COMPLETED, suite.severities).rank >= bound.rank


def decides_all_others(samples: Sequence[SampleReport], suite: SuitePolicy) -> bool:
    """Check whether an unclear goal decides the severity of the other goals, all of which were missed.

    If the unclear goal was also missed, no conversation reached the goal. This is severe, although a single
    miss is not."""
    bound = suite.fail_on
    if bound is None:
        return False
    goals = list_goal_scores(samples)
    if any(goal.value for goal in goals) or all(goal.is_open for goal in goals):
        return False
    one, none = (severity_of(label, suite.severities) for label in (NOT_COMPLETED, NEVER_COMPLETED))
    return one.rank < bound.rank <= none.rank


def is_goal_excused(event: Event) -> bool:
    """Check whether an event reports that a goal was ruled out or withdrawn."""
    if not isinstance(event, Scored) or event.turn is not None:
        return False
    scores = (item for item in event.items if isinstance(item, Score))
    return any(score.metric == GOAL and score.label in EXCUSES and score.is_open for score in scores)
