"""Cuts a run into shards. The run is planned as a whole and then cut by scenario, so each shard knows the
rules of the entire run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from agenteval.core.config import RATES, Config
from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.core.plan import Plan, Shard
from agenteval.files.environment import SHARD_VARIABLE

if TYPE_CHECKING:
    from agenteval.planning.suite import Suite

_SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


class ShardNumber(NamedTuple):
    """Shard ``number`` (from 1) of ``total``."""

    number: int
    total: int


def find_shard(option: str | None, environ: Mapping[str, str]) -> ShardNumber | None:
    """Return the shard named by ``--shard`` or, without that option, by the environment. Raise
    ``AuthorError`` if there is no such shard."""
    if option is not None:
        return parse_shard(option, "--shard")
    text = environ.get(SHARD_VARIABLE, "").strip()
    return parse_shard(text, SHARD_VARIABLE) if text else None


def parse_shard(text: str, where: str) -> ShardNumber:
    """Parse the number of a shard, such as ``2/4``. Raise ``AuthorError``, which names ``where``."""
    match = _SHARD.fullmatch(text.strip())
    shard = ShardNumber(int(match[1]), int(match[2])) if match else None
    if shard is None or not 1 <= shard.number <= shard.total:
        remedy = "use i/n with i from 1 to n (at most 999999), such as 2/4 for the second of four shards"
        raise AuthorError(Problem(f"'{text[:40]}' is not the number of a shard", remedy, Place(where)))
    return shard


def cut(plan: Plan, shard: ShardNumber, together: Mapping[str, str] = MappingProxyType({})) -> Plan:
    """Return the plan with one of its shards. The same plan is cut in the same way on every machine:
    scenarios with many samples come first, equal ones in the order of a hash of their ids, and each goes to
    the shard that has the fewest samples so far. ``together`` names the scenarios that must be in the same
    shard as another one."""
    sizes: Counter[str] = Counter()
    for scenario, agents in plan.scenarios.items():
        unit = together.get(scenario, scenario)
        sizes[unit] += sum(plan.rule_sets[kind].least for kind in agents.values())
    totals = [0] * shard.total
    placed: dict[str, int] = {}
    for scenario in sorted(sizes, key=lambda each: (-sizes[each], sha256(each.encode()).digest())):
        placed[scenario] = number = totals.index(min(totals))
        totals[number] += sizes[scenario]
    index = shard.number - 1
    played = tuple(
        scenario for scenario in plan.scenarios if placed[together.get(scenario, scenario)] == index
    )
    part = Shard(
        number=shard.number,
        count=shard.total,
        scenarios=played,
        before=sum(totals[:index]),
        samples=totals[index],
        all_samples=sum(totals),
    )
    return plan.model_copy(update={"shard": part})


# ── limits that all shards share ─────────────────────────────────────────────────────────────────


def with_own_limits(suite: Suite, plan: Plan) -> Suite:
    """Return the suite with this shard's part of the limits that apply to the run as a whole: the budget, the
    numbers of concurrent calls and conversations, and the rates of requests and tokens."""
    if plan.shard is None:
        return suite
    config = own_limits(suite.settings.config, plan.shard)
    return replace(suite, settings=replace(suite.settings, config=config))


def own_limits(config: Config, shard: Shard) -> Config:
    """Return the configuration with the shard's part of each limit of the run."""
    models = {
        name: _own_pace(getattr(config.models, name), shard) for name in type(config.models).model_fields
    }
    return config.model_copy(
        update={
            "budget": shard.budget_from(config.budget),
            "concurrency": shard.pace_from(config.concurrency),
            "agent_concurrency": config.agent_concurrency and shard.pace_from(config.agent_concurrency),
            "models": config.models.model_copy(update=models),
            "agent": _own_pace(config.agent, shard),
            "agents": {name: _own_pace(each, shard) for name, each in config.agents.items()},
            "compare": tuple(_own_pace(each, shard) for each in config.compare),
        }
    )


def _own_pace(paced: Any, shard: Shard) -> Any:
    """Return an agent or a model with the shard's part of its rates."""
    rates = {
        name: shard.pace_from(rate) for name in RATES if (rate := getattr(paced, name, None)) is not None
    }
    return paced.model_copy(update=rates) if rates else paced
