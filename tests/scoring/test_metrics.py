"""Known metrics: their scales and kinds, which may be selected, and where each applies."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.errors import AuthorError, Place
from agenteval.core.scenario import Scenario
from agenteval.core.score import MetricSpec
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, Trajectory, Turn
from agenteval.files.prompts import Rubric
from agenteval.scoring.metrics import (
    applies_to_scenario,
    applies_to_trajectory,
    build_metric_spec,
    build_metric_table,
    built_in_metrics,
    may_apply_to_scenario,
    select_metrics,
    threshold_problems,
)

KNOWN = build_metric_table()
NUMBERS = ("helpfulness", "coherence", "relevance", "faithfulness", "verbosity")
RATES = ("goal_completion", "policy_adherence", "agent_behavior_failure", "tool_call_behavior_failure")


@pytest.mark.parametrize(
    ("rubric", "kind", "scale", "scope"),
    [
        ({"scale": (1, 5), "whole": True}, "mean", (1, 5), "turn"),
        ({"scale": (0, 1), "whole": True}, "rate", (0, 1), "turn"),
        ({"scale": (0, 1), "whole": False}, "mean", (0, 1), "turn"),
        ({"scale": (0, 2), "whole": True}, "mean", (0, 2), "turn"),
        ({"labels": ("ok", "bad")}, "rate", (0, 1), "turn"),
        ({"scope": "conversation"}, "rate", (0, 1), "conversation"),
    ],
)
def test_the_kind_and_the_scale_of_a_rubric(
    rubric: dict[str, Any], kind: str, scale: tuple[float, float], scope: str
) -> None:
    spec = build_metric_spec(Rubric(**{"metric": "mine", "scope": "turn", "text": "t", **rubric}))
    assert (spec.kind, spec.scale, spec.scope) == (kind, scale, scope)
    assert (spec.name, spec.built_in) == ("mine", False)


def test_labels_that_are_no_failure_keep_the_order_of_the_labels() -> None:
    labels = ("bad", "fine", "good")
    rubric = Rubric("mine", "turn", "t", labels=labels, ok=frozenset({"good", "fine"}), needs="tools")
    spec = build_metric_spec(rubric)
    assert (spec.labels, spec.ok, spec.needs, spec.is_label) == (labels, ("fine", "good"), "tools", True)


def test_the_built_in_metrics() -> None:
    table = {spec.name: spec for spec in built_in_metrics()}
    assert tuple(table) == NUMBERS + RATES
    assert all(spec.built_in for spec in table.values())
    assert {name: table[name].kind for name in table} == dict.fromkeys(NUMBERS, "mean") | dict.fromkeys(
        RATES, "rate"
    )
    assert {name: spec.needs for name, spec in table.items() if spec.needs} == {
        "goal_completion": "goal",
        "policy_adherence": "policy",
        "tool_call_behavior_failure": "tools",
    }
    assert [name for name, spec in table.items() if spec.scope == "conversation"] == list(RATES[:2])


# ── the table ────────────────────────────────────────────────────────────────────────────────────


def custom(name: str) -> MetricSpec:
    return MetricSpec(name=name, scope="turn", kind="mean", scale=(1, 5))


def places(error: AuthorError) -> list[Place | None]:
    return [problem.place for problem in error.problems]


@pytest.mark.parametrize(
    ("names", "wrong"),
    [
        (("mine", "yours"), []),
        (("mine", "mine"), ["mine"]),
        (("mine", "mine", "mine"), ["mine", "mine"]),
        (("helpfulness",), ["helpfulness"]),
        (("criteria", "tool_accuracy"), ["criteria", "tool_accuracy"]),
        (("output_correct", "mine", "mine"), ["output_correct", "mine"]),
    ],
)
def test_names_of_custom_metrics(names: tuple[str, ...], wrong: list[str]) -> None:
    specs = [custom(name) for name in names]
    if not wrong:
        assert tuple(build_metric_table(specs)) == (*NUMBERS, *RATES, *names)
        return
    with pytest.raises(AuthorError) as raised:
        build_metric_table(specs, place_of=lambda name: Place(name, 1))
    assert places(raised.value) == [Place(name, 1) for name in wrong]


def test_all_metrics_or_those_requested_in_the_order_of_the_table() -> None:
    assert select_metrics("all", KNOWN) == tuple(KNOWN.values())
    chosen = select_metrics(["goal_completion", "coherence", "goal_completion"], KNOWN)
    assert [spec.name for spec in chosen] == ["coherence", "goal_completion"]
    assert select_metrics([], KNOWN) == ()


def test_an_unknown_metric_is_reported_once_where_it_first_stands() -> None:
    with pytest.raises(AuthorError) as raised:
        select_metrics(["coherence", "x", "y", "x"], KNOWN, place_of=lambda index: Place("f", index))
    assert places(raised.value) == [Place("f", 1), Place("f", 2)]
    with pytest.raises(AuthorError) as raised:
        select_metrics(["cohrence"], KNOWN)
    assert "coherence" in str(raised.value)


@pytest.mark.parametrize(
    ("thresholds", "wrong"),
    [
        ({"helpfulness": 1.0}, []),
        ({"helpfulness": 5.0}, []),
        ({"helpfulness": 0.99}, ["helpfulness"]),
        ({"helpfulness": 5.01}, ["helpfulness"]),
        ({"goal_completion": 0.0, "policy_adherence": 1.0}, []),
        ({"goal_completion": 1.5, "policy_adherence": -0.1}, ["goal_completion", "policy_adherence"]),
        ({"unknown": 3.0}, ["unknown"]),
        ({"helpfulness": None}, []),
        ({"unknown": None}, ["unknown"]),
        ({"helpfulness": {"at_least": 6, "min": 0}}, ["helpfulness", "helpfulness"]),
        ({"helpfulness": {"min": 2, "share_below": {"9": 0.1}}}, ["helpfulness"]),
        ({"helpfulness": {"share_below": {"2": 0.1}}}, []),
    ],
)
def test_bounds_outside_the_scale(thresholds: dict[str, Any], wrong: list[str]) -> None:
    entries = Scenario.model_validate({"id": "s", "thresholds": thresholds}).thresholds
    problems = threshold_problems(entries, KNOWN, lambda name: Place(name))
    assert [problem.place for problem in problems] == [Place(name) for name in wrong]


# ── where a metric applies ───────────────────────────────────────────────────────────────────────

TOOLS = {"look": {"returns": 1}}


def scenario(**more: Any) -> Scenario:
    return Scenario.model_validate({"id": "s", **more})


@pytest.mark.parametrize(
    ("metric", "more", "policy", "certain", "possible"),
    [
        ("helpfulness", {}, False, True, True),
        ("goal_completion", {"goal": "g"}, False, True, True),
        ("goal_completion", {}, True, False, False),
        ("goal_completion", {"goal": "  "}, True, False, False),
        ("policy_adherence", {}, True, True, True),
        ("policy_adherence", {}, False, False, False),
        ("tool_call_behavior_failure", {"tools": TOOLS}, False, True, True),
        ("tool_call_behavior_failure", {}, False, False, True),  # the agent may have tools of its own
    ],
)
def test_where_a_metric_applies(
    metric: str, more: dict[str, Any], policy: bool, certain: bool, possible: bool
) -> None:
    spec, asked = KNOWN[metric], scenario(**more)
    assert applies_to_scenario(spec, asked, policy=policy) is certain
    assert may_apply_to_scenario(spec, asked, policy=policy) is possible


ANSWERED = Turn(user="u", steps=(Step(text="a"),))
WITH_CALL = Turn(user="u", steps=(Step(tool_calls=(ToolCall(name="look", args={}),)), Step(text="a")))
BROKEN = Turn(user="u", steps=(Step(tool_calls=(ToolCall(name="look", args={}),)),), error="no answer")


@pytest.mark.parametrize(
    ("metric", "turns", "unfinished", "tools", "applies"),
    [
        ("helpfulness", (ANSWERED,), None, None, True),
        ("helpfulness", (), None, None, False),
        ("helpfulness", (ANSWERED,), BROKEN, None, False),
        ("helpfulness", (ANSWERED, BROKEN), None, None, False),
        ("helpfulness", (BROKEN, ANSWERED), None, None, True),
        ("agent_behavior_failure", (BROKEN,), None, None, True),
        ("agent_behavior_failure", (ANSWERED,), BROKEN, None, False),
        ("tool_call_behavior_failure", (BROKEN,), None, None, True),
        ("tool_call_behavior_failure", (ANSWERED,), None, None, False),
        ("tool_call_behavior_failure", (ANSWERED,), None, TOOLS, True),
        ("tool_call_behavior_failure", (WITH_CALL,), None, None, True),
        ("tool_call_behavior_failure", (WITH_CALL, ANSWERED), None, None, False),
    ],
)
def test_turns_that_are_judged(
    metric: str,
    turns: tuple[Turn, ...],
    unfinished: Turn | None,
    tools: dict[str, Any] | None,
    applies: bool,
) -> None:
    talk = Trajectory(turns=turns, unfinished=unfinished)
    asked = scenario(tools=tools or {})
    assert applies_to_trajectory(KNOWN[metric], asked, talk) is applies


@pytest.mark.parametrize(
    ("stop", "turns", "unfinished", "applies"),
    [
        (None, (ANSWERED,), None, True),
        (StopReason.USER_DONE, (ANSWERED,), None, True),
        (StopReason.AGENT_ERROR, (ANSWERED,), BROKEN, True),
        (StopReason.AGENT_ERROR, (), BROKEN, True),
        (StopReason.USER_DONE, (), None, False),
        (StopReason.INFRASTRUCTURE, (ANSWERED,), None, False),
        (StopReason.SIMULATOR, (ANSWERED,), None, False),
        (StopReason.INTERRUPTED, (ANSWERED,), None, False),
        (StopReason.RECORDED, (ANSWERED,), None, True),
    ],
)
def test_conversations_that_are_judged(
    stop: StopReason | None, turns: tuple[Turn, ...], unfinished: Turn | None, applies: bool
) -> None:
    talk = Trajectory(turns=turns, unfinished=unfinished, stop=stop and Stop(reason=stop))
    assert applies_to_trajectory(KNOWN["goal_completion"], scenario(goal="g"), talk) is applies
    assert not applies_to_trajectory(KNOWN["goal_completion"], scenario(), talk)
    assert applies_to_trajectory(KNOWN["policy_adherence"], scenario(), talk) is applies
    assert not applies_to_trajectory(KNOWN["policy_adherence"], scenario(), talk, policy=False)
