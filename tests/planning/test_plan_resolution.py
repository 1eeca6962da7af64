"""Which rules apply to a scenario, and which apply to nothing that is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agenteval.adapters.traffic.middleware import RecordingOptions
from agenteval.core.config import (
    AcceptedFailure,
    AgentConfig,
    BudgetConfig,
    Config,
    DeadlinesConfig,
    GatesConfig,
    Price,
)
from agenteval.core.marked_secrets import MarkedSecrets
from agenteval.core.plan import Plan, SuitePolicy
from agenteval.core.scenario import EpochRange, Sample, SampleKey, Scenario
from agenteval.core.tool_visibility import KnownVisibility, VisibilitySource
from agenteval.core.trajectory import ToolVisibility
from agenteval.planning.judge_setup import Metrics
from agenteval.planning.plan_resolution import (
    NOT_SELECTED,
    ScenarioRulesCache,
    find_unapplied_thresholds,
    find_unused_thresholds,
    has_policy,
    has_threshold,
    known_visibility,
    make_plan,
    redact_plan,
    resolve,
    rules_for,
    suite_policy,
)
from agenteval.planning.request import Request
from agenteval.planning.sample_selection import SelectedSamples
from agenteval.planning.suite import Settings, Suite
from tests.support.verdict_runs import BEHAVIOR, GOAL, GOALS, LABELS, RULES, STARS, TOOL_USE

SPECS = (LABELS, GOALS, STARS, RULES, TOOL_USE)
NAMES = tuple(spec.name for spec in SPECS)


def configured(**more: Any) -> Config:
    return Config.model_validate({"agent": {"name": "bot", "target": "a:b"}, **more})


def policy(judged: Sequence[str] = NAMES, **more: Any) -> SuitePolicy:
    return suite_policy(configured(**more), SPECS, [spec for spec in SPECS if spec.name in judged])


def scenario(**more: Any) -> Scenario:
    return Scenario.model_validate({"id": "a", "source": "s/a.yaml:2", **more})


WITH_GOAL = scenario(id="goal", goal="Get it.")
WITHOUT = scenario(id="none")
REMOVED = scenario(id="removed", goal="Get it.", thresholds={GOAL: None})
ACCEPTED = {"fingerprint": "0" * 12, "owner": "o", "reason": "r", "expires": "9999-12-31"}


# ── the suite ────────────────────────────────────────────────────────────────────────────────────


def test_the_defaults_of_a_suite() -> None:
    suite = suite_policy(Config())
    assert (suite.judged, suite.metrics, suite.by_flag, suite.no_judge) == ((), (), False, False)
    assert (suite.fault_tolerance, suite.on_undecided, suite.fail_on_severity) == (0.0, "fail", "critical")
    assert (suite.corroborate, suite.skips_failed_judges, suite.shares_calls) == (True, False, False)
    assert (suite.models, suite.policies, suite.detectors) == ({}, (), None)
    assert set(suite.places) == {"fail_on_severity", "fault_tolerance", "deadlines.run_s"}


@pytest.mark.parametrize(
    ("config", "field", "value"),
    [
        ({"seed": 7}, "seed", 7),
        ({"profile": "ci"}, "profile", "ci"),
        ({"severities": {"repetition": "high"}}, "severities", {"repetition": "high"}),
        ({"deadlines": {"run_s": 5}}, "deadlines", DeadlinesConfig(run_s=5)),
        ({"budget": {"max_calls": 5}}, "budget", BudgetConfig(max_calls=5)),
        ({"prices": {"m": {"input": 1, "output": 2}}}, "prices", {"m": Price(input=1, output=2)}),
        ({"fail_on_severity": "low"}, "fail_on_severity", "low"),
        ({"prompts": {"helpfulness": "h.md"}}, "prompts", {"helpfulness": "h.md"}),
        ({"gates": {"robustness": 0.9}}, "gates", GatesConfig.model_validate({"robustness": 0.9})),
        ({"accepted_failures": [ACCEPTED]}, "accepted", (AcceptedFailure.model_validate(ACCEPTED),)),
        ({"code_only": True}, "code_only", True),
        ({"fault_tolerance": 0.2}, "fault_tolerance", 0.2),
        ({"on_undecided": "neutral"}, "on_undecided", "neutral"),
        ({"severity_from": "model"}, "severity_from", "model"),
        ({"judge": {"corroborate": False}}, "corroborate", False),
        ({"judge": {"on_failure": "skip"}}, "skips_failed_judges", True),
        ({"judge": {"on_failure": "undecided"}}, "skips_failed_judges", False),
        ({"judge": {"calls": "shared"}}, "shares_calls", True),
        ({"judge": {"calls": "separate"}}, "shares_calls", False),
        ({"judge": {"calls": "shared"}, "models": {"judge": "openai/m"}}, "shares_calls", True),
        ({"judge": {"calls": "shared"}, "models": {"judge": "scripted/m.yaml"}}, "shares_calls", False),
        ({"max_turns": 3}, "max_turns", 3),
        ({"unmocked_tools": "empty"}, "unmocked_tools", "empty"),
        ({"now": "2026-01-01"}, "now", "2026-01-01"),
        ({"detectors": []}, "detectors", ()),
        ({"agents": {"x": {"name": "x", "policy": "Be kind."}}}, "policies", ("x",)),
        ({"agents": {"x": {"name": "x", "policy": "  "}}}, "policies", ()),
    ],
)
def test_what_the_configuration_sets(config: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(suite_policy(configured(**config)), field) == value


def test_models_by_role() -> None:
    suite = suite_policy(configured(models={"default": "openai/d", "judge": "openai/j"}))
    assert {role: model.model for role, model in suite.models.items()} == {
        "user": "openai/d",
        "judge": "openai/j",
        "dedup": "openai/d",
    }


def test_thresholds_of_the_suite_without_those_that_are_removed() -> None:
    suite = policy(thresholds={"stars": 3, GOAL: None, BEHAVIOR: {"min": 1}})
    assert {name: each.rule.numbers for name, each in suite.thresholds.items()} == {
        "stars": (3,),
        BEHAVIOR: (1,),
    }


def test_the_places_of_gates_and_budgets() -> None:
    suite = policy(
        gates={"pass_rate": {"at_least": 0.9, "reject_below": 0.5}, "robustness": 0.9},
        budget={"max_calls": 5, "by_role": {"judge": {"max_cost": 1}}},
    )
    assert set(suite.places) >= {
        "gates.pass_rate",
        "gates.pass_rate.at_least",
        "gates.pass_rate.reject_below",
        "gates.robustness",
        "budget.max_calls",
        "budget.by_role.judge.max_cost",
    }
    assert "budget.max_cost" not in suite.places


# ── one scenario ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "agent", "unjudged"),
    [
        ({}, "bot", {GOAL, "policy_adherence", "tool_use"}),
        ({"goal": "Get it."}, "bot", {"policy_adherence", "tool_use"}),
        ({"goal": "  "}, "bot", {GOAL, "policy_adherence", "tool_use"}),
        ({"tools": {"t": {"returns": 1}}}, "bot", {GOAL, "policy_adherence"}),
        ({"policy": "Be kind."}, "bot", {GOAL, "tool_use"}),
        ({"policy": " "}, "bot", {GOAL, "policy_adherence", "tool_use"}),
        ({}, "kind", {GOAL, "tool_use"}),
        ({}, None, {GOAL, "tool_use"}),
    ],
)
def test_metrics_that_may_remain_unjudged(fields: Any, agent: str | None, unjudged: set[str]) -> None:
    suite = policy(agents={"kind": {"name": "kind", "policy": "Be kind."}})
    assert set(rules_for(scenario(**fields), suite, agent).unjudged) == unjudged


def test_only_requested_metrics_remain_unjudged() -> None:
    assert rules_for(scenario(), policy(judged=(GOAL,)), "bot").unjudged == (GOAL,)
    assert rules_for(scenario(), policy(judged=()), "bot").unjudged == ()


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {"stars": (3, True), GOAL: (0.5, False)}),
        ({"stars": 4}, {"stars": (4, True), GOAL: (0.5, False)}),
        ({"stars": None}, {GOAL: (0.5, False)}),
        ({GOAL: 1}, {"stars": (3, True), GOAL: (1, True)}),  # the scenario itself sets it
        ({"tool_use": None}, {"stars": (3, True), GOAL: (0.5, False)}),
    ],
)
def test_a_threshold_of_the_scenario_replaces_that_of_the_suite(own: Any, expected: Any) -> None:
    suite = policy(thresholds={"stars": 3, GOAL: 0.5})
    rules = rules_for(scenario(thresholds=own), suite, "bot")
    assert {name: (each.bar, each.is_sure) for name, each in rules.thresholds.items()} == expected


def test_a_threshold_is_sure_where_its_metric_is_sure_to_be_judged() -> None:
    suite = policy(thresholds={GOAL: 0.5, "unknown": 1, "tool_use": 2}, judged=())
    rules = rules_for(scenario(goal="Get it."), suite, "bot")
    assert {name: each.is_sure for name, each in rules.thresholds.items()} == {
        GOAL: True,
        "unknown": False,
        "tool_use": False,
    }


def test_where_a_threshold_was_written() -> None:
    own = scenario(thresholds={"stars": 4}, lines={"thresholds.stars": 9})
    assert rules_for(own, policy(), "bot").thresholds["stars"].where == "s/a.yaml:9"


@pytest.mark.parametrize(("own", "turns"), [(None, 5), (2, 2), (9, 9)])
def test_the_number_of_turns(own: int | None, turns: int) -> None:
    assert rules_for(scenario(max_turns=own), policy(max_turns=5)).max_turns == turns


def test_an_agent_has_a_policy_by_itself_or_by_the_scenario() -> None:
    suite = policy(agents={"kind": {"name": "kind", "policy": "Be kind."}})
    assert [has_policy(scenario(), suite, agent) for agent in ("kind", "bot", None)] == [True, False, True]
    assert has_policy(scenario(policy="Be kind."), suite, "bot") is True
    assert has_policy(scenario(), policy(), None) is False


# ── the plan ─────────────────────────────────────────────────────────────────────────────────────


def planned(*names: str, config: Config | None = None, ranges: Any = None, **fields: Any) -> Plan:
    """``names``: ``scenario/agent``, once for each epoch."""
    samples, seen = [], dict.fromkeys(names, 0)
    for name in names:
        id, agent = name.split("/")
        key = SampleKey(scenario=id, agent=agent, epoch=seen[name])
        samples.append(Sample(key=key, scenario=scenario(id=id, **fields)))
        seen[name] += 1
    config = config or configured()
    return make_plan(suite_policy(config, SPECS), config, samples, ranges or {})


def test_epochs_are_counted_for_each_scenario_and_agent() -> None:
    plan = planned("a/x", "a/x", "a/y", "b/x")
    found = {(id, agent): plan.rules_for_pairing(id, agent).epochs for id in "ab" for agent in "xy"}
    assert found == {("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 1, ("b", "y"): 1}
    assert list(plan.scenarios) == ["a", "b"]
    assert len(plan.rule_sets) == 2  # equal rules are stored once


def test_a_range_of_epochs_replaces_their_number() -> None:
    ranges = {"a": EpochRange(min=2, max=5)}
    plan = planned("a/x", "a/x", "b/x", ranges=ranges)
    assert plan.ranges == ranges
    assert plan.rules_for_pairing("b", "x").epochs == 1


@pytest.mark.parametrize(
    ("written", "ranges", "share"),
    [
        (None, False, 0.0),
        (None, True, 0.05),
        (0.0, True, 0.0),
        (0.3, True, 0.3),
        (0.3, False, 0.3),
    ],
)
def test_how_many_errored_samples_are_tolerated(written: float | None, ranges: bool, share: float) -> None:
    config = configured(**({} if written is None else {"fault_tolerance": written}))
    plan = planned("a/x", config=config, ranges={"a": EpochRange(min=1, max=5)} if ranges else {})
    assert plan.suite.fault_tolerance == share
    assert (plan.suite.where("fault_tolerance") == "default") is not ranges or written is not None


def test_what_a_plan_carries_by_default() -> None:
    plan = planned("a/x")
    assert (plan.unapplied, plan.needs_model, plan.secrets, plan.visibility) == ({}, (), {}, {})
    assert plan.default == rules_for(Scenario(), plan.suite, "")


def test_rules_of_a_conversation_are_none_where_those_of_the_suite_apply() -> None:
    plan = planned("a/x")
    cache = ScenarioRulesCache(plan)
    assert cache(scenario(), "x") is None
    own = cache(scenario(max_turns=2), "x")
    assert own is not None
    assert own.max_turns == 2
    assert cache(scenario(max_turns=2), "x") is own


def test_a_public_plan_has_the_public_values() -> None:
    config = configured(models={"default": "openai/secret"}, now="secret", detectors=["leak"])
    public = configured(models={"default": "openai/x"}, now="x", detectors=["repetition"])
    plan = redact_plan(planned("a/x", config=config), public).suite
    assert {model.model for model in plan.models.values()} == {"openai/x"}
    assert (plan.now, plan.detectors) == ("x", ("repetition",))


# ── from the suite and the selection ─────────────────────────────────────────────────────────────


def suite_of(*scenarios: Scenario, request: Request | None = None, **more: Any) -> Suite:
    config = configured(**more)
    marked = MarkedSecrets({}, {"bot": ("<secret>",)})
    rules = suite_policy(config, SPECS, SPECS)
    settings = Settings(config, config, (), Metrics({}, ()), rules, RecordingOptions(), None, marked)
    return Suite(settings, request or Request(), scenarios, scenarios)


def selected(*scenarios: Scenario, agent: Any = None, **more: Any) -> SelectedSamples:
    samples = tuple(Sample(key=SampleKey(scenario=each.id, agent="bot"), scenario=each) for each in scenarios)
    agents = {"bot": AgentConfig.model_validate({"name": "bot", "target": "a:b", **(agent or {})})}
    return SelectedSamples(samples, scenarios, agents, **more)


ROBUST = scenario(id="robust", category="robustness")
ALL = KnownVisibility(calls=ToolVisibility.ALL)
RANGED = {"epochs": {"min": 2, "max": 9}, "gates": {"pass_rate": {"at_least": 0.9, "reject_below": 0.2}}}


def test_rules_that_apply_only_to_other_scenarios_are_left_out() -> None:
    suite = suite_of(WITHOUT, gates={"robustness": 0.9, "output_accuracy": 0.9}, thresholds={GOAL: 0.5})
    found = resolve(suite, selected(WITHOUT, unselected_scenarios=(WITHOUT, ROBUST, WITH_GOAL)))
    assert found.unapplied == {"gates.robustness": NOT_SELECTED, f"thresholds.{GOAL}": NOT_SELECTED}
    assert list(found.suite.gates.configured_gates) == ["output_accuracy"]
    every = resolve(suite, selected(WITHOUT, unselected_scenarios=None))
    assert set(every.unapplied) == {"gates.robustness", "gates.output_accuracy", f"thresholds.{GOAL}"}
    assert resolve(suite, selected(WITHOUT, unselected_scenarios=(WITHOUT,))).unapplied == {}


def test_what_the_selection_and_the_settings_bring() -> None:
    found = resolve(suite_of(WITHOUT), selected(WITHOUT, needs_model=("x",)))
    assert (found.needs_model, found.secrets) == (("x",), {"bot": ("<secret>",)})


@pytest.mark.parametrize(("epochs", "has_range"), [(None, True), (5, False)])
def test_a_number_of_epochs_on_the_command_line_replaces_a_range(epochs: int | None, has_range: bool) -> None:
    found = resolve(suite_of(WITHOUT, request=Request(epochs=epochs), **RANGED), selected(WITHOUT))
    assert bool(found.ranges) is has_range


def test_which_visibility_is_used() -> None:
    earlier = {"bot": ALL, "other": ALL}
    unseen = {"calls": "unseen"}
    by_author = resolve(suite_of(WITHOUT), selected(WITHOUT, earlier_visibility=earlier, agent=unseen))
    assert by_author.visibility["bot"].calls is ToolVisibility.DECLARED_UNSEEN
    assert by_author.visibility["other"] == ALL
    resumed = suite_of(WITHOUT, request=Request(visibility={"bot": ALL}))
    found = resolve(resumed, selected(WITHOUT, earlier_visibility=earlier, agent=unseen))
    assert found.visibility == {"bot": ALL}


# ── visibility ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("agent", "calls", "source"),
    [
        ({"calls": "all", "target": "a:b"}, ToolVisibility.ALL, VisibilitySource.AUTHOR),
        ({"calls": "unseen", "mcp": True}, ToolVisibility.DECLARED_UNSEEN, VisibilitySource.AUTHOR),
        ({"mcp": True, "target": "a:b"}, None, None),
    ],
)
def test_visibility_that_is_known_before_a_run(agent: Any, calls: Any, source: Any) -> None:
    found = known_visibility({"bot": AgentConfig.model_validate({"name": "bot", **agent})}, [])
    expected = {} if calls is None else {"bot": KnownVisibility(calls=calls, source=source)}
    assert found == expected


# ── thresholds that apply to nothing ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("selected", "others", "unapplied"),
    [
        ([WITH_GOAL], [], set()),
        ([WITHOUT], [], set()),  # nothing else may have a goal
        ([WITHOUT], [WITH_GOAL], {f"thresholds.{GOAL}"}),
        ([WITHOUT], [WITHOUT, WITH_GOAL], {f"thresholds.{GOAL}"}),
        ([WITHOUT], [WITHOUT], set()),
        ([WITHOUT], None, {f"thresholds.{GOAL}"}),
        ([WITH_GOAL], None, set()),
        ([REMOVED], [WITH_GOAL], {f"thresholds.{GOAL}"}),
        ([REMOVED], [REMOVED], set()),
        ([WITHOUT, WITH_GOAL], [WITH_GOAL], set()),
    ],
)
def test_thresholds_that_apply_only_to_other_scenarios(
    selected: list[Scenario], others: Any, unapplied: set[str]
) -> None:
    suite = policy(thresholds={GOAL: 0.5, "stars": 3})
    found = find_unapplied_thresholds(suite, selected, others)
    assert found == dict.fromkeys(unapplied, NOT_SELECTED)


@pytest.mark.parametrize(
    ("scenarios", "unused"),
    [
        ([WITH_GOAL], ["tool_use", "unknown"]),
        ([WITHOUT], [GOAL, "tool_use", "unknown"]),
        ([scenario(tools={"t": {"returns": 1}})], [GOAL, "unknown"]),
        ([], [GOAL, "tool_use", "stars", "unknown"]),
    ],
)
def test_thresholds_that_no_scenario_uses(scenarios: list[Scenario], unused: list[str]) -> None:
    suite = policy(thresholds={GOAL: 0.5, "tool_use": 2, "stars": 3, "unknown": 1})
    assert find_unused_thresholds(suite, scenarios) == unused


@pytest.mark.parametrize(
    ("suite", "own", "has"),
    [
        ({"stars": 3}, {}, True),
        ({}, {"stars": 3}, True),
        ({}, {}, False),
        ({"stars": 3}, {"stars": None}, False),
        ({GOAL: 0.5}, {}, False),  # it has no goal
        ({"tool_use": 2}, {}, True),  # tools may become known
        ({"unknown": 1}, {}, False),
        ({"policy_adherence": 1}, {}, False),
    ],
)
def test_whether_a_scenario_has_any_threshold(suite: Any, own: Any, has: bool) -> None:
    assert has_threshold(scenario(thresholds=own), policy(thresholds=suite)) is has
