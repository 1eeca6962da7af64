"""Thresholds: a minimum mean or rate for each metric and scenario, taking missing scores into account."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import fsum
from typing import NamedTuple

from agenteval.core.decision import RERUN_FAILED, GateRow
from agenteval.core.plan import Plan, Threshold
from agenteval.core.plurals import plural
from agenteval.core.sample_report import SampleReport, ScenarioReport, numeric_value
from agenteval.core.scenario import ThresholdRule
from agenteval.core.score import RULED_OUT, WITHDRAWN, MetricSpec, Verdict
from agenteval.verdict.report import Report

NOT_THE_AGENTS = ("infrastructure", "simulator", "author", "recording", "interrupted", "budget")
"""Faults that are not the agent's and leave a sample undecided."""
_ROUNDING = 1e-9  # of a mean of decimals


def is_errored(sample: SampleReport) -> bool:
    """Check whether a fault that is not the agent's ended the sample, which means that nothing is known about
    the sample."""
    return sample.stop is None or sample.stop.fault in NOT_THE_AGENTS


def threshold_gates(report: Report) -> Iterable[GateRow]:
    """Yield a row for each threshold and each scenario × agent to which it applies. A threshold that applies
    nowhere in the suite has a single row, which is violated."""
    plan = report.plan
    if plan.suite.code_only:
        return  # nothing that only a judge can decide is required
    known = plan.suite.specs
    applied: set[str] = set()
    for scenario in report.scenarios:
        for name, threshold in scenario.rules.thresholds.items():
            spec = known.get(name)
            if spec and (threshold.is_sure or _scores(name, scenario).any):
                applied.add(name)
                yield from _gates(spec, threshold, scenario, plan)
    for name, threshold in plan.suite.thresholds.items():
        switched_off = all(name not in scenario.rules.thresholds for scenario in report.scenarios)
        is_elsewhere = f"thresholds.{name}" in plan.unapplied
        if name not in applied and not switched_off and not is_elsewhere and not plan.shard:
            left_out = _unjudged_reason(name, plan)
            yield GateRow(
                name=f"thresholds.{name}",
                value=None,
                bound=next(bound.bound for bound in _bounds(threshold.rule)),
                basis=left_out or "it does not apply to any scenario",
                where=threshold.where,
                verdict=Verdict.INCONCLUSIVE if left_out else Verdict.FAILED,
                metric=name,
            )


def _unjudged_reason(metric: str, plan: Plan) -> str:
    """Explain why the command line left a metric unjudged in all scenarios. Return an empty string if it did
    not."""
    if plan.suite.no_judge:
        return "not judged (--no-judge)"
    if plan.suite.by_flag and metric not in plan.suite.judged:
        return "not judged (--metric)"
    return ""


class _Scores(NamedTuple):
    """The known values of a metric in a scenario, and the counts of unknown values."""

    values: tuple[float, ...] = ()
    """The known values."""
    broken: int = 0
    """The number of values that are unknown because a judge failed."""
    unclear: int = 0
    """The number of values that are unknown because the record does not settle them."""
    ruled_out: int = 0
    """The number of goals that were ruled out."""
    withdrawn: int = 0
    """The number of goals that were withdrawn."""
    lost: int = 0
    """The number of conversations that errored."""
    unjudged: int = 0
    """1 if nothing was judged in any conversation, otherwise 0."""

    @property
    def any(self) -> bool:
        """True if anything was judged."""
        return any((self.values, self.broken, self.unclear, self.ruled_out, self.withdrawn))

    @property
    def unknown(self) -> int:
        return sum((self.broken, self.unclear, self.ruled_out, self.withdrawn, self.lost, self.unjudged))

    def extremes(self, spec: MetricSpec) -> tuple[Sequence[float], Sequence[float]]:
        """Return two lists of all values: one with unknown values at their worst, and one with unknown values
        at their best."""
        low, high = ((*self.values, *[extreme] * self.unknown) for extreme in spec.scale)
        return low, high


def _scores(name: str, scenario: ScenarioReport) -> _Scores:
    """Collect the scores for a metric in a scenario. An errored conversation counts as one unknown value,
    regardless of what was found in its turns."""
    known_samples = [sample for sample in scenario.samples if not is_errored(sample)]
    scores = [score for sample in known_samples for score in sample.all_scores if score.metric == name]
    broken = sum(failure.metric == name for sample in known_samples for failure in sample.all_failures)
    open_ = [score.label for score in scores if score.is_open]
    ruled_out, withdrawn = open_.count(RULED_OUT), open_.count(WITHDRAWN)
    found = _Scores(
        values=tuple(numeric_value(score) for score in scores if not score.is_open),
        broken=broken,
        unclear=len(open_) - ruled_out - withdrawn,
        ruled_out=ruled_out,
        withdrawn=withdrawn,
        lost=_count_errored(scenario),
    )
    return found if found.any or found.lost else found._replace(unjudged=1)


def _count_errored(scenario: ScenarioReport) -> int:
    """Count the conversations that errored or never took place. If a gate decides the number of
    conversations, count only those that no additional conversation replaced."""
    known_samples = sum(not is_errored(sample) for sample in scenario.samples)
    if scenario.rules.range:
        return max(0, scenario.rules.least - known_samples)
    return len(scenario.samples) + len(scenario.missing) - known_samples


class _Bound(NamedTuple):
    """One bound of a rule."""

    name: str
    """The part of the configuration key that follows the metric's name."""
    bound: float | str
    of: Callable[[Sequence[float]], float]
    """Computes the number that the bound applies to."""
    holds: Callable[[float], bool]
    """Checks whether a number is within the bound."""


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _bounds(rule: ThresholdRule) -> Iterable[_Bound]:
    if (at_least := rule.at_least) is not None:
        yield _Bound("", at_least, _mean, lambda mean: mean >= at_least - _ROUNDING)
    if (lowest := rule.min) is not None:
        yield _Bound(".min", lowest, min, lambda value: value >= lowest - _ROUNDING)
    for score, share in (rule.share_below or {}).items():
        yield _share_below(score, share)


def _share_below(score: float, most: float) -> _Bound:
    def share(values: Sequence[float]) -> float:
        return sum(value < score - _ROUNDING for value in values) / len(values)

    bound = f"at most {most:g}"
    return _Bound(f".share_below.{score:g}", bound, share, lambda found: found <= most + _ROUNDING)


def _gates(spec: MetricSpec, threshold: Threshold, scenario: ScenarioReport, plan: Plan) -> Iterable[GateRow]:
    path = f"thresholds.{spec.name}"
    scores = _scores(spec.name, scenario)
    for bound in _bounds(threshold.rule):
        verdict, why = _verdict(spec, bound, scores, plan)
        yield GateRow(
            name=path + bound.name,
            value=bound.of(scores.values) if scores.values else None,
            bound=bound.bound,
            basis=why or _basis(spec, scenario, scores),
            where=threshold.where,
            verdict=verdict,
            scenario=scenario.scenario.id,
            agent=scenario.agent,
            metric=spec.name,
            resolution=_resolution(spec, scores, plan) if verdict is Verdict.INCONCLUSIVE else "",
        )


def _resolution(spec: MetricSpec, scores: _Scores, plan: Plan) -> str:
    """Return the steps that would decide the threshold, with the most certain step first."""
    if left_out := _unjudged_reason(spec.name, plan):
        return f"repeat the run without {left_out.partition('(')[2].rstrip(')')}"
    if scores.broken:
        return "agenteval report latest --rejudge"
    if scores.ruled_out:
        return REFUSAL_REMEDY
    return RERUN_FAILED if scores.lost else CONTINUE_REMEDY if scores.withdrawn else ""


def _verdict(spec: MetricSpec, bound: _Bound, scores: _Scores, plan: Plan) -> tuple[Verdict, str]:
    """Return the verdict, with a sentence if the verdict needs more explanation than a number and its bound.
    Unknown values do not matter if their worst and best cases lead to the same verdict."""
    if not scores.any:
        if left_out := _unjudged_reason(spec.name, plan):
            return Verdict.INCONCLUSIVE, left_out
        if spec.name not in plan.suite.judged:
            return Verdict.FAILED, "nothing was judged, because it is not listed in `metrics`"
    if not scores.values:  # nothing passes if nothing is known
        return Verdict.INCONCLUSIVE, _describe_known(scores)
    low, high = (bound.of(values) for values in scores.extremes(spec))
    if bound.holds(low) == bound.holds(high):
        return (Verdict.PASSED if bound.holds(low) else Verdict.FAILED), ""
    return (
        Verdict.INCONCLUSIVE,
        f"{_describe_known(scores)}, so between {min(low, high):.3g} and {max(low, high):.3g}",
    )


REFUSAL_REMEDY = "set `goal_outcome: refused` in the scenario if refusing is correct"
CONTINUE_REMEDY = "use a goal or profile that makes the user continue, because a withdrawn goal never counts"


def _describe_known(scores: _Scores) -> str:
    """Describe which values are known and which are not."""
    unknown = "; ".join(_describe_unknown(scores))
    return f"{plural(len(scores.values), 'score')}; unknown: {unknown}" if scores.values else unknown


def _describe_unknown(scores: _Scores) -> Iterable[str]:
    if scores.unjudged:
        yield "nothing was judged"
    if scores.broken:
        yield f"the judge failed {plural(scores.broken, 'time')}"
    if scores.unclear:
        yield f"not clear in {plural(scores.unclear, 'conversation')}"
    if scores.ruled_out:
        yield f"ruled out in {plural(scores.ruled_out, 'conversation')} ({REFUSAL_REMEDY})"
    if scores.withdrawn:
        yield f"withdrawn by the user in {plural(scores.withdrawn, 'conversation')} ({CONTINUE_REMEDY})"
    if scores.lost:
        yield f"{plural(scores.lost, 'conversation')} errored"


def _basis(spec: MetricSpec, scenario: ScenarioReport, scores: _Scores) -> str:
    unit = "turn" if spec.scope == "turn" else "conversation"
    text = f"{plural(len(scores.values), unit)} of {plural(len(scenario.samples), 'sample')}"
    counts = (
        (scores.broken, "missing"),
        (scores.unclear, "not clear"),
        (scores.ruled_out, "ruled out"),
        (scores.withdrawn, "withdrawn"),
        (scores.lost, "errored"),
    )
    return ", ".join([text, *(f"{count} {word}" for count, word in counts if count)])
