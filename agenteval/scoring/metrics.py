"""The table of known metrics, both built-in and custom, with each metric's scope and allowed values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Literal

from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.core.scenario import Scenario, ThresholdEntry, expand_threshold
from agenteval.core.score import MetricSpec
from agenteval.core.trajectory import Trajectory
from agenteval.files.prompts import BUILT_IN_METRICS, RESERVED_NAMES, SHIPPED_PROMPTS, Rubric

POLICY_ADHERENCE = "policy_adherence"
BEHAVIOR, TOOL_CALL_BEHAVIOR = "agent_behavior_failure", "tool_call_behavior_failure"
REVIEWED = (BEHAVIOR, TOOL_CALL_BEHAVIOR)
"""The metrics that one call judges in all turns of a conversation (``judge: {calls: review}``)."""
REVIEW = "review"
"""The metric of that call, wherever calls are counted, limited or answered by metric."""


def build_metric_spec(rubric: Rubric) -> MetricSpec:
    """Return the metric that a rubric defines. A scale of whole numbers from 0 to 1 is treated as a rate."""
    is_rate = rubric.scale is None or (rubric.whole and rubric.scale == (0, 1))
    return MetricSpec(
        name=rubric.metric,
        scope="conversation" if rubric.scope == "conversation" else "turn",
        kind="rate" if is_rate else "mean",
        scale=rubric.scale or (0.0, 1.0),
        labels=rubric.labels,
        ok=tuple(label for label in rubric.labels if label in rubric.ok),
        built_in=rubric.metric in BUILT_IN_METRICS,
        short=rubric.short,
        needs=rubric.needs,
    )


@cache
def built_in_metrics() -> tuple[MetricSpec, ...]:
    """Return the built-in metrics. They stay the same if a project replaces a metric's text."""
    return tuple(build_metric_spec(SHIPPED_PROMPTS.rubric(name)) for name in BUILT_IN_METRICS)


def build_metric_table(
    custom: Iterable[MetricSpec] = (), *, place_of: Callable[[str], Place | None] = lambda _: None
) -> dict[str, MetricSpec]:
    """Return all known metrics, keyed by name.

    Raise ``AuthorError`` for a custom metric with a built-in name, or for two metrics with the same name.
    ``place_of`` returns the location at which a custom metric is defined."""
    known = {spec.name: spec for spec in built_in_metrics()}
    problems = []
    for spec in custom:
        if spec.name in RESERVED_NAMES:
            what = f"a custom metric is named '{spec.name}', which is a built-in name"
            problems.append(Problem(what, "choose another name", place_of(spec.name)))
        elif spec.name in known:
            what = f"two custom metrics are named '{spec.name}'"
            problems.append(Problem(what, "rename one", place_of(spec.name)))
        known[spec.name] = spec
    if problems:
        raise AuthorError(*problems)
    return known


def select_metrics(
    requested: Literal["all"] | Sequence[str],
    known: Mapping[str, MetricSpec],
    *,
    place_of: Callable[[int], Place | None] = lambda _: None,
) -> tuple[MetricSpec, ...]:
    """Return the metrics selected by ``metrics`` or ``--metric``, each once, in the order of the table.

    Raise ``AuthorError`` for an unknown name. ``place_of`` returns the location of the name with a given
    index."""
    if requested == "all":
        return tuple(known.values())
    unknown = [name for name in dict.fromkeys(requested) if name not in known]
    if unknown:
        raise AuthorError(*(_unknown(name, known, place_of(requested.index(name))) for name in unknown))
    return tuple(spec for name, spec in known.items() if name in requested)


def _unknown(name: str, known: Iterable[str], place: Place | None) -> Problem:
    return Problem(f"unknown metric '{name}'", did_you_mean(name, known), place)


def threshold_problems(
    thresholds: Mapping[str, ThresholdEntry | None],
    known: Mapping[str, MetricSpec],
    place_of: Callable[[str], Place | None],
) -> list[Problem]:
    """Return the problems with thresholds: unknown metrics, and bounds outside the metric's scale."""
    problems = []
    for name, entry in thresholds.items():
        if name not in known:
            problems.append(_unknown(name, known, place_of(name)))
        elif entry is not None:
            low, high = known[name].scale
            for bound in expand_threshold(entry).numbers:
                if not low <= bound <= high:
                    what = f"the threshold of '{name}' is {bound:g}, but {_range(known[name])}"
                    remedy = f"use a number between {low:g} and {high:g}"
                    problems.append(Problem(what, remedy, place_of(name)))
    return problems


def _range(spec: MetricSpec) -> str:
    low, high = spec.scale
    if spec.kind == "rate":
        return "it must be a share between 0 and 1"
    return f"its scores are between {low:g} and {high:g}"


# ── where a metric applies ───────────────────────────────────────────────────────────────────────


def applies_to_scenario(spec: MetricSpec, scenario: Scenario, *, policy: bool) -> bool:
    """Check whether the metric is certain to be judged in a complete conversation in this scenario."""
    if spec.needs == "tools":
        return bool(scenario.tools)
    return may_apply_to_scenario(spec, scenario, policy=policy)


def may_apply_to_scenario(spec: MetricSpec, scenario: Scenario, *, policy: bool) -> bool:
    """Check whether the metric can be judged in this scenario at all.

    An agent may call undeclared tools, but an unspecified goal cannot be reached, and an unknown ``policy``
    cannot be followed."""
    if spec.needs == "goal":
        return bool(scenario.goal.strip())
    return policy or spec.needs != "policy"


def applies_to_trajectory(
    spec: MetricSpec, scenario: Scenario, trajectory: Trajectory, *, policy: bool = True
) -> bool:
    """Check whether to judge the last turn of a prefix or a whole conversation, depending on the metric's
    scope.

    ``policy`` is true if the agent has a policy.

    A turn that was interrupted is not judged, nor is a conversation that was ended by a fault that the agent
    did not cause. If a record ends with a call, such as a hand-over, its last turn has an error and no
    answer. Then only label metrics apply, because there is nothing to measure. Tool use is judged if calls
    were made, and also if tools were available, so that a missing call is noticed."""
    if spec.scope == "conversation":
        fault = trajectory.stop.fault if trajectory.stop else None
        ended = fault in (None, "agent") and bool(trajectory.all_turns)
        return ended and may_apply_to_scenario(spec, scenario, policy=policy)
    if not trajectory.turns or trajectory.unfinished or (trajectory.turns[-1].error and not spec.is_label):
        return False
    if spec.needs == "tools":
        return bool(trajectory.turns[-1].tool_calls or scenario.tools)
    return True
