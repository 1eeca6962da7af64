"""Thresholds: a least mean or rate for each metric, per scenario, honest about what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import fsum
from typing import NamedTuple

from agenteval.core.decision import GateRow
from agenteval.core.plan import Plan, Threshold
from agenteval.core.plurals import plural
from agenteval.core.sample_report import SampleReport, ScenarioReport, numeric
from agenteval.core.scenario import ThresholdRule
from agenteval.core.score import RULED_OUT, MetricSpec, Verdict
from agenteval.verdict.report import Report

NOT_THE_AGENTS = ("infrastructure", "simulator", "author", "recording", "interrupted", "budget")
"""Faults that leave a sample undecided."""
_ROUNDING = 1e-9  # of a mean of decimals


def is_lost(sample: SampleReport) -> bool:
    """Whether a fault that is not the agent's ended the sample, so that nothing is known of it."""
    return sample.stop is None or sample.stop.fault in NOT_THE_AGENTS


def threshold_gates(report: Report) -> Iterable[GateRow]:
    """A row for each threshold and each scenario × agent that it applies to; a threshold that applies
    nowhere in the suite is a row of its own, and violated."""
    plan = report.plan
    if plan.code_only:
        return  # what only a judge could tell is not asked for
    known = plan.specs
    applied: set[str] = set()
    for scenario in report.scenarios:
        for name, threshold in scenario.applies.thresholds.items():
            spec = known.get(name)
            if spec and (threshold.is_sure or _scores(name, scenario).any):
                applied.add(name)
                yield from _gates(spec, threshold, scenario, plan)
    for name, threshold in plan.thresholds.items():
        switched_off = all(name not in scenario.applies.thresholds for scenario in report.scenarios)
        is_elsewhere = f"thresholds.{name}" in plan.unapplied
        if name not in applied and not switched_off and not is_elsewhere:
            left_out = _left_out(name, plan)
            yield GateRow(
                name=f"thresholds.{name}",
                value=None,
                bound=_first_bound(threshold.rule),
                basis=left_out or "no scenario that it applies to",
                where=threshold.where,
                verdict=Verdict.INCONCLUSIVE if left_out else Verdict.FAILED,
                metric=name,
            )


def _left_out(metric: str, plan: Plan) -> str:
    """Why the command line had a metric judged nowhere; empty if it did not."""
    if plan.no_judge:
        return "not judged (--no-judge)"
    if plan.by_flag and metric not in plan.judged:
        return "not judged (--metric)"
    return ""


class _Scores(NamedTuple):
    """What is known of a metric in a scenario. ``broken``: how many scores could not be had, since a judge
    broke; ``unclear`` and ``ruled_out``: how many are there and have no value."""

    values: tuple[float, ...] = ()
    broken: int = 0
    unclear: int = 0
    ruled_out: int = 0

    @property
    def any(self) -> bool:
        return any((self.values, self.broken, self.unclear, self.ruled_out))

    def ends(self, spec: MetricSpec) -> tuple[Sequence[float], Sequence[float]]:
        """All values at the worst that could be, and at the best. A goal that was ruled out was not reached,
        or is none that could be. A policy counts only where it is clear whether it was kept."""
        missing = self.broken + (0 if spec.is_label else self.unclear)
        low, high = ((*self.values, *[extreme] * missing) for extreme in spec.scale)
        return (*low, *[0.0] * self.ruled_out), high


def _scores(name: str, scenario: ScenarioReport) -> _Scores:
    decided = [
        sample
        for sample in scenario.samples
        if sample.stop is not None and sample.stop.fault not in NOT_THE_AGENTS
    ]
    scores = [score for sample in decided for score in sample.all_scores if score.metric == name]
    ruled_out = sum(score.is_open and score.label == RULED_OUT for score in scores)
    return _Scores(
        values=tuple(numeric(score) for score in scores if not score.is_open),
        broken=sum(failure.metric == name for sample in decided for failure in sample.all_failures),
        unclear=sum(score.is_open for score in scores) - ruled_out,
        ruled_out=ruled_out,
    )


class _Bound(NamedTuple):
    """One bound of a rule. ``name`` is what follows the metric's in the configuration; ``of`` gives the
    figure that is bounded, and ``holds`` says whether a figure is within."""

    name: str
    bound: float | str
    of: Callable[[Sequence[float]], float]
    holds: Callable[[float], bool]


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


def _first_bound(rule: ThresholdRule) -> float | str:
    return next(bound.bound for bound in _bounds(rule))


def _gates(spec: MetricSpec, threshold: Threshold, scenario: ScenarioReport, plan: Plan) -> Iterable[GateRow]:
    path = f"thresholds.{spec.name}"
    scores = _scores(spec.name, scenario)
    for bound in _bounds(threshold.rule):
        verdict, why = _verdict(
            spec, bound, scores, lost=_all_lost(scenario), left_out=_left_out(spec.name, plan)
        )
        if verdict is Verdict.FAILED and not scores.values and spec.name not in plan.judged:
            why = f"{why}: it is not among the metrics"
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
    if left_out := _left_out(spec.name, plan):
        return f"the same without {left_out.partition('(')[2].rstrip(')')}"
    return "agenteval report latest --rejudge" if scores.broken else ""


def _all_lost(scenario: ScenarioReport) -> bool:
    return all(s.stop is None or s.stop.fault in NOT_THE_AGENTS for s in scenario.samples)


def _verdict(
    spec: MetricSpec, bound: _Bound, scores: _Scores, *, lost: bool, left_out: str
) -> tuple[Verdict, str]:
    """The verdict, and a sentence where it is not just a figure beside its bound."""
    if not scores.any:
        if left_out:
            return Verdict.INCONCLUSIVE, left_out
        if lost:
            return Verdict.INCONCLUSIVE, "every sample was lost to a fault that is not the agent's"
        return Verdict.FAILED, "nothing was judged"
    if not scores.values and not scores.ruled_out:
        return Verdict.INCONCLUSIVE, _never_told(scores)
    # Without any value a bound holds: what is left out breaks none.
    low, high = (bound.holds(bound.of(values)) if values else True for values in scores.ends(spec))
    if low == high:
        return (Verdict.PASSED if low else Verdict.FAILED), ""
    return Verdict.INCONCLUSIVE, _could_decide(spec, bound, scores)


def _never_told(scores: _Scores) -> str:
    if not scores.unclear:
        return f"the judge broke every time ({scores.broken})"
    broke = f"; the judge broke {plural(scores.broken, 'time')}" if scores.broken else ""
    return f"not clear in each of {plural(scores.unclear, 'conversation')}{broke}"


def _could_decide(spec: MetricSpec, bound: _Bound, scores: _Scores) -> str:
    """What has no value, and could decide either way."""
    told = [plural(len(scores.values), "score")]
    if scores.broken:
        told.append(f"{scores.broken} on which the judge broke could decide it")
    if scores.unclear and not spec.is_label:
        told.append(f"{scores.unclear} not clear could decide it")
    if scores.ruled_out:
        low, high = ((f"{bound.of(values):.3g}" if values else "no score") for values in scores.ends(spec))
        told.append(
            f"{scores.ruled_out} ruled out: {low} if that counts as missed, {high} if left out;"
            " goal_outcome: refused means that refusing is right"
        )
    return "; ".join(told)


def _basis(spec: MetricSpec, scenario: ScenarioReport, scores: _Scores) -> str:
    unit = "turn" if spec.scope == "turn" else "conversation"
    text = f"{plural(len(scores.values), unit)} of {plural(len(scenario.samples), 'sample')}"
    told = ((scores.broken, "missing"), (scores.unclear, "not clear"), (scores.ruled_out, "ruled out"))
    return ", ".join([text, *(f"{count} {word}" for count, word in told if count)])
