"""The calls and the cost of a run, before it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.config import Config
from agenteval.core.plan import Plan, ScenarioRules
from agenteval.core.scenario import EpochRange, Sample, SampleKey, Scenario
from agenteval.files.prompts import SHIPPED_PROMPTS
from agenteval.planning import forecast as forecasts
from agenteval.planning.forecast import (
    AGAIN,
    ANSWER_TOKENS,
    GATING,
    OPINION_TOKENS,
    REPLY_TOKENS,
    CallEstimate,
    Forecast,
    ForecastRow,
    Range,
    RoleEstimate,
    forecast,
)
from agenteval.planning.judge_setup import Metrics, load_metrics
from agenteval.planning.plan_resolution import make_plan, suite_policy
from agenteval.scoring.issues import MAX_CHARACTERS
from agenteval.scoring.judges.corroboration import SAMPLING_INTERVAL

M = "openai/m"


def configured(**more: Any) -> Config:
    agent = {"name": "bot", "target": "a:b"}
    return Config.model_validate({"agent": agent, "metrics": [], **more})


def scenario(id: str = "a", **fields: Any) -> Scenario:
    return Scenario.model_validate({"id": id, "source": f"s/{id}.yaml:2", **fields})


def planned(
    config: Config,
    metrics: Metrics,
    scenarios: Sequence[Scenario],
    *,
    agents: Sequence[str],
    epochs: int,
    ranges: Mapping[str, EpochRange],
    no_judge: bool,
) -> Plan:
    samples = [
        Sample(key=SampleKey(scenario=each.id, agent=agent, epoch=n), scenario=each)
        for each in scenarios
        for agent in agents
        for n in range(epochs)
    ]
    suite = suite_policy(config, metrics.available.values(), metrics.selected, no_judge=no_judge)
    return make_plan(suite, config, samples, ranges)


def made(
    *scenarios: Scenario,
    agents: Sequence[str] = ("bot",),
    epochs: int = 1,
    ranges: Mapping[str, EpochRange] | None = None,
    no_judge: bool = False,
    policies: Mapping[str, str] | None = None,
    uses_cache: bool = False,
    **config: Any,
) -> Forecast:
    settings = configured(**config)
    metrics = load_metrics(settings)
    plan = planned(
        settings, metrics, scenarios, agents=agents, epochs=epochs, ranges=ranges or {}, no_judge=no_judge
    )
    return forecast(plan, scenarios, metrics, policies=policies or {}, uses_cache=uses_cache)


def row(found: Forecast, role: str) -> ForecastRow:
    (one,) = [each for each in found.rows if each.role == role]
    return one


def calls(found: Forecast) -> dict[str, tuple[int, int | None]]:
    return {each.role: (each.calls.least, each.calls.most) for each in found.rows}


SCRIPT = ["hi", "and?"]
MODELS = {"default": M}
PRICE = {"input": 1.0, "output": 2.0}


def test_what_is_assumed() -> None:
    assert dict(REPLY_TOKENS) == {"user": 60, "judge": 120, "dedup": 600, "agent": 100}
    assert (ANSWER_TOKENS, GATING, OPINION_TOKENS, SAMPLING_INTERVAL) == (100, 20, 200, 10)


# ── ranges ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("one", "other", "total"),
    [
        (Range(1, 2), Range(3, 5), Range(4, 7)),
        (Range(1, None), Range(3, 5), Range(4, None)),
        (Range(1, 2), Range(3, None), Range(4, None)),
        (Range(0, 0), Range(0, 0), Range(0, 0)),
    ],
)
def test_a_sum_of_ranges(one: Range, other: Range, total: Range) -> None:
    assert one + other == total


def test_a_range_in_several_epochs() -> None:
    epochs = EpochRange(min=2, max=5)
    assert Range(1, 3).times(epochs) == Range(2, 15)
    assert Range(1, None).times(epochs) == Range(2, None)
    assert [Range(1, 1).is_exact, Range(1, 2).is_exact, Range(0, None).is_exact] == [True, False, False]


# ── one conversation ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "config", "turns", "found"),
    [
        ({"turns": SCRIPT}, {}, (2, 2), {"agent": (2, 2)}),
        # A simulated user: from its first message to the last it may send.
        ({"max_turns": 5}, {"models": {"user": M}}, (1, 5), {"agent": (1, 5), "user": (1, 5)}),
        ({}, {"max_turns": 4, "models": {"user": M}}, (1, 4), {"agent": (1, 4), "user": (1, 4)}),
        (
            {"turns": ["hi", {"simulate": 3}], "max_turns": 8},
            {"models": {"user": M}},
            (2, 4),
            {"agent": (2, 4), "user": (1, 3)},
        ),
        (
            {"turns": [{"simulate": 3}, "hi", {"simulate": 3}], "max_turns": 4},
            {"models": {"user": M}},
            (3, 5),
            {"agent": (3, 5), "user": (2, 4)},
        ),
        (
            {"turns": [{"simulate": 3}, {"simulate": 3}], "max_turns": 2},
            {"models": {"user": M}},
            (2, 3),  # each has at least one turn
            {"agent": (2, 3), "user": (2, 3)},
        ),
        # An agent that leaves its calls to agenteval is called again, nobody knows how often.
        ({"turns": SCRIPT, "tools": {"t": {"returns": 1}}}, {}, (2, 2), {"agent": (2, None)}),
        ({"turns": SCRIPT}, {"unmocked_tools": "empty"}, (2, 2), {"agent": (2, None)}),
        ({"turns": SCRIPT}, {"unmocked_tools": "passthrough"}, (2, 2), {"agent": (2, None)}),
    ],
)
def test_calls_of_agents_and_users(fields: Any, config: Any, turns: Any, found: Any) -> None:
    made_ = made(scenario(**fields), no_judge=True, **config)
    assert (made_.turns.least, made_.turns.most) == turns
    assert calls(made_) == found


@pytest.mark.parametrize(
    ("metrics", "fields", "config", "judged"),
    [
        (["helpfulness"], {"turns": SCRIPT}, {}, (2, 2)),
        (["helpfulness", "coherence"], {"turns": SCRIPT}, {}, (4, 4)),
        (["helpfulness", "coherence"], {"turns": SCRIPT}, {"judge": {"calls": "shared"}}, (2, 2)),
        (["goal_completion"], {"turns": SCRIPT}, {}, None),
        (["goal_completion"], {"turns": SCRIPT, "goal": "Get it."}, {}, (1, 1)),
        (["policy_adherence"], {"turns": SCRIPT}, {}, (0, 0)),
        ([], {"turns": SCRIPT, "expect": {"criteria": ["x", "y"]}}, {}, (2, 2)),
        (
            [],
            {"turns": SCRIPT, "expect": {"criteria": ["x", "y"]}},
            {"judge": {"calls": "shared"}},
            (1, 1),
        ),
        ([], {"turns": ["hi", {"user": "x", "expect": {"criteria": ["x"]}}]}, {}, (1, 1)),
        # With a simulated user, its review may be one more.
        (["helpfulness"], {"max_turns": 3}, {}, (1, 4)),
        # Tools that no scenario declares may be called.
        (["tool_call_behavior_failure"], {"turns": SCRIPT}, {}, (0, 2)),
        (["tool_call_behavior_failure"], {"turns": SCRIPT, "tools": {"t": {"returns": 1}}}, {}, (2, 2)),
    ],
)
def test_calls_of_judges(metrics: list[str], fields: Any, config: Any, judged: Any) -> None:
    found = made(
        scenario(**fields), metrics=metrics, models=MODELS, **{"judge": {"corroborate": False}, **config}
    )
    expected = judged or (0, 0)
    assert calls(found)["judge"] == expected


LABELS = ["agent_behavior_failure", "tool_call_behavior_failure"]
REVIEWED = {"models": MODELS, "judge": {"calls": "review"}}


@pytest.mark.parametrize(
    ("metrics", "fields", "judged"),
    [
        (LABELS, {"turns": SCRIPT, "tools": {"t": {"returns": 1}}}, (1, 1)),
        (LABELS, {"turns": SCRIPT}, (1, 1)),  # calls of other tools are judged in the same call
        (LABELS[1:], {"turns": SCRIPT}, (0, 1)),
        ([*LABELS, "helpfulness"], {"turns": SCRIPT}, (3, 3)),
        (LABELS, {"max_turns": 3}, (1, 2)),  # and whether a failure was the simulated user's fault
    ],
)
def test_a_review_is_one_call_for_all_turns(metrics: list[str], fields: Any, judged: Any) -> None:
    found = made(scenario(**fields), metrics=metrics, **REVIEWED)
    assert calls(found)["judge"] == judged
    assert any("upper bound" in note for note in found.notes) is (metrics == LABELS[1:])


def test_a_review_contains_the_record_once_and_draws_one_clean_verdict() -> None:
    long = scenario(turns=["word " * 500] * 10, tools={"t": {"returns": 1}})
    separate = made(long, metrics=LABELS, models=MODELS, epochs=10)
    review = made(long, metrics=LABELS, epochs=10, **REVIEWED)
    ratio = row(review, "judge").input_tokens.least / row(separate, "judge").input_tokens.least
    assert 0.05 < ratio < 0.12  # one record of ten turns, for twenty of one to ten turns
    verdicts = 10 * 10 * 2
    assert row(separate, AGAIN).calls.least == verdicts / SAMPLING_INTERVAL + verdicts / GATING
    assert row(review, AGAIN).calls.least == 10 / SAMPLING_INTERVAL + verdicts / GATING


def test_a_policy_is_judged_where_the_agent_has_one() -> None:
    more: dict[str, Any] = {"metrics": ["policy_adherence"], "models": MODELS}
    one = scenario(turns=SCRIPT)
    assert calls(made(one, policies={"bot": "Be kind."}, **more))["judge"] == (1, 1)
    assert calls(made(one, policies={"bot": " "}, **more))["judge"] == (0, 0)
    assert calls(made(one, policies={"other": "Be kind."}, **more))["judge"] == (0, 0)


def test_without_judges_nothing_is_judged_or_grouped() -> None:
    found = made(scenario(turns=SCRIPT), metrics=["helpfulness"], models=MODELS, no_judge=True)
    assert calls(found) == {"agent": (2, 2)}


def test_findings_are_grouped_once_for_each_agent_at_most() -> None:
    one = made(scenario(turns=SCRIPT), models=MODELS)
    two = made(scenario(turns=SCRIPT), models=MODELS, agents=("x", "y"))
    assert calls(one)["dedup"] == (0, 1)
    assert calls(two)["dedup"] == (0, 2)
    assert row(two, "dedup").output_tokens == Range(0, 2 * REPLY_TOKENS["dedup"])
    assert row(one, "dedup").input_tokens == Range(0, MAX_CHARACTERS // 4 + 500)
    assert row(two, "dedup").input_tokens.most == 2 * (row(one, "dedup").input_tokens.most or 0)
    assert "dedup" not in calls(made(scenario(turns=SCRIPT), models={"judge": M}))


# ── tokens and cost ──────────────────────────────────────────────────────────────────────────────


def test_each_turn_sends_the_conversation_again() -> None:
    one = row(made(scenario(turns=["hi"]), no_judge=True), "agent")
    two = row(made(scenario(turns=["hi", "hi"]), no_judge=True), "agent")
    assert one.input_tokens.is_exact
    first = one.input_tokens.least
    assert two.input_tokens.least == first + (first + ANSWER_TOKENS + first)
    assert one.output_tokens == Range(REPLY_TOKENS["agent"], REPLY_TOKENS["agent"])
    assert two.output_tokens.least == 2 * REPLY_TOKENS["agent"]


def test_a_shared_call_contains_the_record_once() -> None:
    more: dict[str, Any] = {"metrics": ["helpfulness", "coherence"], "models": MODELS}
    long = scenario(turns=["word " * 500])
    separate = row(made(long, **more), "judge")
    shared = row(made(long, judge={"calls": "shared"}, **more), "judge")
    assert separate.input_tokens.least - shared.input_tokens.least > 500
    assert shared.output_tokens.least == REPLY_TOKENS["judge"]


@pytest.mark.parametrize(
    ("prices", "has_cost"), [({}, False), ({"bot": PRICE}, True), ({"other": PRICE}, False)]
)
def test_a_cost_is_known_by_a_price(prices: Any, has_cost: bool) -> None:
    found = row(made(scenario(turns=SCRIPT), no_judge=True, prices=prices), "agent")
    assert (found.cost is not None) is has_cost
    if found.cost:
        dollars = (found.input_tokens.least + 2 * found.output_tokens.least) / 1e6
        assert found.cost == pytest.approx((dollars, dollars))


def test_the_least_and_the_most_cost() -> None:
    found = row(made(scenario(max_turns=4), no_judge=True, prices={"bot": PRICE}), "agent")
    assert found.cost is not None
    assert found.cost[0] < found.cost[1]
    assert found.cost[1] == pytest.approx(
        ((found.input_tokens.most or 0) + 2 * (found.output_tokens.most or 0)) / 1e6
    )


# ── second opinions ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("metric", "threshold", "parts"),
    [
        ("helpfulness", None, 0),
        ("helpfulness", 3, SAMPLING_INTERVAL),
        ("agent_behavior_failure", None, GATING + SAMPLING_INTERVAL),
        ("goal_completion", None, GATING + SAMPLING_INTERVAL),
        ("criteria", None, SAMPLING_INTERVAL),
    ],
)
def test_the_share_of_verdicts_that_need_a_second_opinion(metric: str, threshold: Any, parts: int) -> None:
    thresholds = {} if threshold is None else {metric: {"rule": threshold, "where": ""}}
    rules = ScenarioRules.model_validate({"thresholds": thresholds})
    assert forecasts._second_opinion_parts(SHIPPED_PROMPTS.rubric(metric), rules) == parts


PARTS = SAMPLING_INTERVAL * GATING


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (Range(0, 0), Range(0, 0)),
        (Range(1, PARTS), Range(1, 1)),
        (Range(PARTS, PARTS + 1), Range(1, 2)),
        (Range(0, 2 * PARTS), Range(0, 2)),
    ],
)
def test_fractions_of_calls_are_rounded_up(parts: Range, expected: Range) -> None:
    found = forecasts._estimate_second_opinions(RoleEstimate(parts, parts, parts))
    assert found.calls == found.output_tokens == expected
    assert found.input_tokens == expected + Range(
        expected.least * OPINION_TOKENS, (expected.most or 0) * OPINION_TOKENS
    )


@pytest.mark.parametrize(
    ("metrics", "config", "has_row"),
    [
        (["agent_behavior_failure"], {}, True),
        (["helpfulness"], {}, False),
        (["helpfulness"], {"thresholds": {"helpfulness": 3}}, True),
        (["agent_behavior_failure"], {"judge": {"corroborate": False}}, False),
        (["agent_behavior_failure"], {"models": {"default": "scripted/m.yaml"}}, False),
    ],
)
def test_when_second_opinions_are_expected(metrics: list[str], config: Any, has_row: bool) -> None:
    found = made(scenario(turns=SCRIPT), metrics=metrics, **{"models": MODELS, **config})
    assert (AGAIN in calls(found)) is has_row
    assert [each.role for each in found.rows if each.estimated] == [AGAIN] * has_row


# ── the run ──────────────────────────────────────────────────────────────────────────────────────


def test_the_numbers_of_a_run() -> None:
    found = made(
        scenario("a", turns=SCRIPT), scenario("b", turns=["hi"]), agents=("x", "y"), epochs=3, no_judge=True
    )
    assert (found.scenarios, found.agents, found.samples, found.turns) == (2, 2, Range(12, 12), Range(18, 18))
    assert [(each.role, each.name, each.calls.least) for each in found.rows] == [
        ("agent", "x", 9),
        ("agent", "y", 9),
    ]


def test_a_range_of_epochs() -> None:
    gates = {"pass_rate": {"at_least": 0.9, "reject_below": 0.5}}
    found = made(
        scenario(turns=SCRIPT), ranges={"a": EpochRange(min=2, max=7)}, no_judge=True, gates=gates, epochs=2
    )
    assert (found.samples, found.turns) == (Range(2, 7), Range(4, 14))
    assert calls(found) == {"agent": (4, 14)}


def test_rows_by_role() -> None:
    found = made(scenario(), metrics=["agent_behavior_failure"], models={"default": M, "user": "openai/u"})
    assert [each.role for each in found.rows] == ["agent", "user", "judge", AGAIN, "dedup"]
    assert [each.name for each in found.rows] == ["bot", "openai/u", M, M, M]
    agents = made(scenario(turns=SCRIPT), agents=("y", "x", "z"), no_judge=True)
    assert [each.name for each in agents.rows] == ["x", "y", "z"]


CLASS = """
from agenteval import QualitativeMetric, QualResult

class Tone(QualitativeMetric):
    name = "tone"

    def evaluate(self, input):
        return QualResult("no failure")
"""


def test_metrics_that_are_classes_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "tone.py").write_text(CLASS)
    found = made(
        scenario(turns=SCRIPT),
        metrics=["tone", "helpfulness"],
        custom_metrics=["tone.py:Tone"],
        root=str(tmp_path),
        models={"judge": M},
    )
    assert calls(found) == {"agent": (2, 2), "judge": (2, 2)}
    (note,) = found.notes
    assert "tone" in note
    assert "helpfulness" not in note


# ── notes ────────────────────────────────────────────────────────────────────────────────────────


def notes(*scenarios: Scenario, **more: Any) -> int:
    return len(made(*(scenarios or (scenario(turns=SCRIPT),)), **more).notes)


@pytest.mark.parametrize(
    ("fields", "more", "number"),
    [
        ({"turns": SCRIPT}, {}, 0),
        ({"turns": SCRIPT}, {"uses_cache": True}, 1),
        ({"turns": SCRIPT, "tools": {"t": {"returns": 1}}}, {}, 1),
        ({}, {"models": {"user": M}}, 1),
        ({"turns": SCRIPT}, {"models": MODELS, "metrics": ["agent_behavior_failure"]}, 1),
        ({"turns": SCRIPT}, {"models": MODELS, "metrics": ["helpfulness"]}, 0),
        ({"turns": SCRIPT}, {"metrics": ["tool_call_behavior_failure"], "no_judge": True}, 0),
    ],
)
def test_what_the_rows_do_not_include(fields: Any, more: Any, number: int) -> None:
    assert notes(scenario(**fields), **more) == number


def test_tools_that_no_scenario_declares_are_noted() -> None:
    more: dict[str, Any] = {
        "models": {"judge": M},
        "metrics": ["tool_call_behavior_failure"],
        "judge": {"corroborate": False},
    }
    bare, with_tool = scenario("a", turns=SCRIPT), scenario("b", turns=SCRIPT, tools={"t": {"returns": 1}})
    assert notes(bare, **more) == 1
    assert notes(with_tool, **more) == 1  # its agent may be called again
    assert notes(bare, with_tool, **more) == 2


@pytest.mark.parametrize(
    ("budget", "keys"),
    [
        ({"max_calls": 2}, []),
        ({"max_calls": 1}, ["budget.max_calls"]),
        ({"max_tokens": 1}, ["budget.max_tokens"]),
        ({"max_tokens": 100_000}, []),
        ({"max_cost": 1e-9}, ["budget.max_cost"]),
        ({"max_cost": 1}, []),
        ({"by_role": {"agent": {"max_calls": 1}}}, ["budget.by_role.agent.max_calls"]),
        ({"by_role": {"agent": {"max_calls": 2}}}, []),
        ({"by_role": {"judge": {"max_calls": 1}}}, []),
    ],
)
def test_a_budget_that_the_run_needs_more_than(budget: Any, keys: list[str]) -> None:
    found = made(scenario(turns=SCRIPT), no_judge=True, budget=budget, prices={"bot": PRICE})
    assert [next((key for key in keys if note.startswith(f"`{key}` ")), note) for note in found.notes] == keys


def test_calls_that_are_only_estimated_do_not_exceed_a_budget() -> None:
    config: dict[str, Any] = {"metrics": ["agent_behavior_failure"], "models": {"judge": M}}
    assert calls(made(scenario(turns=SCRIPT), **config)) == {"agent": (2, 2), "judge": (2, 2), AGAIN: (1, 1)}
    over = made(scenario(turns=SCRIPT), budget={"max_calls": 3}, **config)
    within = made(scenario(turns=SCRIPT), budget={"max_calls": 4}, **config)
    assert len(over.notes) - len(within.notes) == 1


def test_estimates_of_calls_add_up() -> None:
    assert CallEstimate(1, 20) + CallEstimate(2, 5) == CallEstimate(3, 25)
