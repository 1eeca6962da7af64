"""What became of goals, over all conversations of a scenario: what one of them alone does not tell. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from agenteval.core.event import RunStarted
from agenteval.core.plan import Plan
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import MISSED, NOT_CLEAR, REACHED, RULED_OUT, Finding, Score, Severity
from agenteval.core.severity import NEVER_COMPLETED, NOT_COMPLETED, severity_of

GOAL = "goal_completion"


def goals_of(sample: SampleReport) -> tuple[Score, ...]:
    """What was said of its goal."""
    return tuple(score for score in sample.scores if score.metric == GOAL)


def open_goals(samples: Iterable[SampleReport], outcome: str) -> int:
    """In how many of them the goal ended so and counts neither way."""
    return sum(goal.is_open and goal.label == outcome for sample in samples for goal in goals_of(sample))


def has_reached(sample: SampleReport) -> bool:
    """Whether its goal was reached, where it was to be."""
    return any(goal.label == REACHED and goal.value for goal in goals_of(sample))


# ── ruled out, and yet reached elsewhere ─────────────────────────────────────────────────────────


def held_against_others(
    samples: Mapping[SampleKey, SampleReport], run: RunStarted
) -> dict[SampleKey, SampleReport]:
    """The samples, and of each whose goal was ruled out, although another epoch, another agent or the
    baseline reached it, that it was missed: what one could do was not impossible."""
    reached = dict(_reached(samples, run))
    if not reached:
        return dict(samples)
    return {
        key: _as_missed(sample, where, run.plan)
        if (where := reached.get((key.scenario, key.variant))) and _is_ruled_out(sample)
        else sample
        for key, sample in samples.items()
    }


def _reached(
    samples: Mapping[SampleKey, SampleReport], run: RunStarted
) -> Iterator[tuple[tuple[str, str], str]]:
    """By scenario and variant, where its goal was reached; the first place counts last."""
    for scenario in run.baseline.reached if run.baseline else ():
        yield (scenario, ""), f"in the baseline {run.baseline.run_id if run.baseline else ''}"
    several = len({key.agent for key in samples}) > 1
    for key in sorted(samples, key=lambda key: (key.epoch, key.agent), reverse=True):
        if has_reached(samples[key]):
            by = f"by {key.agent} " if several else ""
            yield (key.scenario, key.variant), f"{by}in epoch {key.epoch + 1}"


def _is_ruled_out(sample: SampleReport) -> bool:
    return any(_counts_neither_way(goal) for goal in goals_of(sample))


def _counts_neither_way(score: Score) -> bool:
    return score.metric == GOAL and score.label == RULED_OUT and score.is_open


def _as_missed(sample: SampleReport, where: str, plan: Plan) -> SampleReport:
    scores, findings = [], []
    for score in sample.scores:
        if _counts_neither_way(score):
            reason = f"{score.reason} (the judge answered ruled out, but it was reached {where})".strip()
            score = score.model_copy(update={"label": MISSED, "value": 0.0, "reason": reason})
            findings.append(_finding(score, plan))
        scores.append(score)
    return replace(sample, scores=tuple(scores), findings=(*sample.findings, *findings))


def _finding(score: Score, plan: Plan) -> Finding:
    return Finding(
        detector="judge",
        metric=GOAL,
        label=NOT_COMPLETED,
        severity=severity_of(NOT_COMPLETED, plan.severities),
        evidence=score.evidence,
        explanation=score.reason,
        references=score.references,
        scripted=score.scripted,
    )


# ── never completed ──────────────────────────────────────────────────────────────────────────────


def raised_if_never_completed(samples: tuple[SampleReport, ...], plan: Plan) -> tuple[SampleReport, ...]:
    """Raise the severity of missed goals where none of the conversations reached it, be it the only one.
    Lost ones and those in which it was ruled out tell nothing, for or against; where a judge broke, a goal is
    not clear, or some conversations are still to be held, it is not known."""
    goals = [goal for sample in samples for goal in goals_of(sample)]
    unknown = any(failure.metric == GOAL for sample in samples for failure in sample.score_failures)
    unknown |= any(goal.label == NOT_CLEAR for goal in goals)
    unknown |= any(sample.stop is None or sample.stop.is_cut_short for sample in samples)
    if unknown or any(goal.value for goal in goals):
        return samples
    severity = severity_of(NEVER_COMPLETED, plan.severities)
    none = "the scenario's only conversation did not complete the goal"
    if len(goals) > 1:
        none = f"the goal was completed in none of {len(goals)} conversations"
    return tuple(_raised(sample, severity, f" ({none})") for sample in samples)


def _raised(sample: SampleReport, severity: Severity, why: str) -> SampleReport:
    findings = tuple(
        finding.model_copy(update={"severity": severity, "explanation": f"{finding.explanation}{why}"})
        if finding.metric == GOAL and finding.severity.rank < severity.rank
        else finding
        for finding in sample.findings
    )
    return replace(sample, findings=findings)


def may_gate_unjudged(samples: Sequence[SampleReport], plan: Plan) -> bool:
    """Whether a goal that nobody could judge might have been severe."""
    bound = plan.fail_on
    if bound is None:
        return False
    if severity_of(NOT_COMPLETED, plan.severities).rank >= bound.rank:
        return True
    reached = any(goal.value for sample in samples for goal in goals_of(sample))
    return not reached and severity_of(NEVER_COMPLETED, plan.severities).rank >= bound.rank


def decides_all_others(samples: Sequence[SampleReport], plan: Plan) -> bool:
    """Whether a goal that is not clear says how bad the others are: they were missed, and if it was, too,
    none was reached, which is severe where one miss is not."""
    bound = plan.fail_on
    if bound is None:
        return False
    goals = [goal for sample in samples for goal in goals_of(sample)]
    if any(goal.value for goal in goals) or all(goal.is_open for goal in goals):
        return False
    one, none = (severity_of(label, plan.severities) for label in (NOT_COMPLETED, NEVER_COMPLETED))
    return one.rank < bound.rank <= none.rank
