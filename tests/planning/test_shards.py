"""How a plan is cut into shards, and how its limits are divided."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from agenteval.core.config import BudgetConfig, Config
from agenteval.core.errors import AuthorError
from agenteval.core.plan import Plan, ScenarioRules, Shard
from agenteval.planning.shards import ShardNumber, cut, find_shard, own_limits


def plan_of(sizes: list[int]) -> Plan:
    """A scenario for each number of epochs."""
    kinds = sorted(set(sizes))
    return Plan(
        rule_sets=tuple(ScenarioRules(epochs=size) for size in kinds),
        scenarios={f"s{n}": {"bot": kinds.index(size)} for n, size in enumerate(sizes)},
    )


def shards_of(plan: Plan, count: int) -> list[Shard]:
    cuts = [cut(plan, ShardNumber(number, count)).shard for number in range(1, count + 1)]
    return [shard for shard in cuts if shard]


@pytest.mark.parametrize("seed", range(40))
def test_each_scenario_is_in_one_shard_and_the_sizes_differ_by_one_scenario_at_most(seed: int) -> None:
    draw = random.Random(seed)
    sizes = [draw.randint(1, 9) for _ in range(draw.randint(1, 30))]
    plan, count = plan_of(sizes), draw.randint(1, 12)
    shards = shards_of(plan, count)
    assert sorted(name for shard in shards for name in shard.scenarios) == sorted(plan.scenarios)
    assert sum(shard.samples for shard in shards) == sum(sizes)
    assert max(s.samples for s in shards) - min(s.samples for s in shards) <= max(sizes)
    keys = Counter(key for s in shards for key in plan.model_copy(update={"shard": s}).samples)
    assert keys == Counter(plan.samples)


def test_the_cut_does_not_depend_on_the_order_of_files() -> None:
    plan = plan_of([1, 2, 3, 4, 5, 6, 7])
    turned = plan.model_copy(update={"scenarios": dict(reversed(plan.scenarios.items()))})
    found, again = shards_of(plan, 3), shards_of(turned, 3)
    assert [set(shard.scenarios) for shard in found] == [set(shard.scenarios) for shard in again]


def test_a_shard_knows_the_rules_of_the_whole_run() -> None:
    plan = plan_of([3] * 10)
    part = cut(plan, ShardNumber(2, 4))
    assert part.pairings == 10
    assert part.whole == plan
    assert len(part.samples) < len(plan.samples)


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_limits_add_up(seed: int) -> None:
    draw = random.Random(seed)
    plan = plan_of([draw.randint(1, 9) for _ in range(draw.randint(1, 30))])
    calls, cost, judged = draw.randint(1, 500), draw.uniform(0.1, 90), draw.randint(1, 70)
    budget = BudgetConfig.model_validate(
        {"max_calls": calls, "max_cost": cost, "by_role": {"judge": {"max_tokens": judged}}}
    )
    parts = [shard.budget_from(budget) for shard in shards_of(plan, draw.randint(1, 8))]
    assert sum(part.max_calls or 0 for part in parts) == calls
    assert sum(part.max_cost or 0 for part in parts) == pytest.approx(cost)
    assert sum(part.by_role.judge.max_tokens or 0 for part in parts) == judged


def test_what_a_shard_needs_to_go_on_is_never_divided_away() -> None:
    config = Config.model_validate(
        {
            "concurrency": 2,
            "agent_concurrency": 8,
            "agent": {"target": "a.py:a", "requests_per_minute": 3},
            "models": {"default": {"model": "openai/x", "requests_per_minute": 100, "tokens_per_minute": 10}},
        }
    )
    parts = [own_limits(config, shard) for shard in shards_of(plan_of([1] * 8), 4)]
    assert [part.concurrency for part in parts] == [1] * 4
    assert [part.agent_concurrency for part in parts] == [2] * 4
    assert all(part.agent and part.agent.requests_per_minute == 1 for part in parts[:1])
    models = [part.models.default for part in parts]
    assert [model and model.requests_per_minute for model in models] == [25] * 4
    assert sum(model.tokens_per_minute or 0 for model in models if model) == 10


def test_the_option_overrules_the_environment() -> None:
    environ = {"AGENTEVAL_SHARD": "2/3"}
    assert find_shard(None, environ) == (2, 3)
    assert find_shard("1/4", environ) == (1, 4)
    assert find_shard(None, {"AGENTEVAL_SHARD": " "}) is None
    with pytest.raises(AuthorError):
        find_shard("4/3", environ)
