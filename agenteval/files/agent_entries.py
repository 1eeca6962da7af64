"""Normalizes the agents in a configuration: locates the agents, collects the options of each agent in one
place, and completes the entries of ``compare``."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from agenteval.core.config import KIND_BY_KEY, AgentConfig
from agenteval.core.errors import Problem
from agenteval.core.protocols import AgentAdapter
from agenteval.core.registry import Registry
from agenteval.files.located_value import LocatedValue, empty_mapping
from agenteval.files.validation import known_keys
from agenteval.files.value_parts import Loc, list_at, mapping_at

COMMON_AGENT_KEYS = frozenset(known_keys(AgentConfig))
"""The keys that every agent accepts, regardless of its adapter."""
OPTIONS_KEY = "options"


def iter_agents(value: Mapping[str, Any]) -> Iterator[tuple[Loc, Mapping[str, Any]]]:
    """Yield each agent that is specified as a mapping, with its location."""
    found: list[tuple[Loc, Any]] = [(("agent",), value.get("agent"))]
    found += [(("agents", name), agent) for name, agent in mapping_at(value, "agents").items()]
    found += [(("compare", index), agent) for index, agent in enumerate(list_at(value, "compare"))]
    yield from ((loc, agent) for loc, agent in found if isinstance(agent, Mapping))


def map_agents(config: LocatedValue, change: Callable[[Loc, LocatedValue], LocatedValue]) -> LocatedValue:
    """Return the configuration with each agent replaced by the result of a function."""
    for loc, _ in tuple(iter_agents(config.value)):
        config = config.replace_at(loc, change(loc, config.at(*loc)))
    return config


def adapter_type(agent: Mapping[str, Any]) -> str:
    """Return the adapter's name, or an empty string if no adapter or more than one is named."""
    if agent.get("type"):
        return str(agent["type"])
    kinds = [kind for key, kind in KIND_BY_KEY.items() if agent.get(key)]
    return kinds[0] if len(kinds) == 1 else ""


# ── locations of options ──────────────────────────────────────────────────────────────────────────


def normalize_options(
    config: LocatedValue, adapters: Registry[AgentAdapter], problems: list[Problem]
) -> LocatedValue:
    """Collect the options of each agent's adapter in one place: next to the common keys for built-in
    adapters, or under ``options`` for adapters from other packages. Authors may specify the options in either
    place."""
    inherited = adapter_type(mapping_at(config.value, "agent"))

    def normalized(loc: Loc, agent: LocatedValue) -> LocatedValue:
        kind = adapter_type(agent.value) or (inherited if loc[0] == "compare" else "")
        if not kind or kind not in adapters:
            return agent
        return _normalize_agent(agent, problems, are_inline=kind in adapters.built_in)

    return map_agents(config, normalized)


def _normalize_agent(agent: LocatedValue, problems: list[Problem], *, are_inline: bool) -> LocatedValue:
    options_value = agent.value.get(OPTIONS_KEY)
    if options_value is not None and not isinstance(options_value, Mapping):
        return agent  # the model reports it
    at_options = agent.mark.find((OPTIONS_KEY,))
    under = (
        LocatedValue(options_value, at_options)
        if options_value
        else LocatedValue({}, at_options.with_children({}))
    )
    inline = agent.drop_keys(*COMMON_AGENT_KEYS)
    common = agent.select_keys(COMMON_AGENT_KEYS - {OPTIONS_KEY})
    problems += _misplaced_options(under, inline.value, COMMON_AGENT_KEYS if are_inline else ())
    options = under.merge_over(inline)
    if are_inline:
        return common.merge_over(options)
    if not options.value and OPTIONS_KEY not in agent.value:
        return common
    return common.replace_at((OPTIONS_KEY,), options)


def _misplaced_options(
    under: LocatedValue, inline: Container[str], common: Container[str]
) -> Iterator[Problem]:
    """Find keys under ``options`` that are also specified outside ``options``, or that belong outside it."""
    for key in under.value:
        if key in inline or key in common:
            remedy = "remove it from `options`" if key in inline else "move it out of options"
            yield Problem(
                f"'{key}' is a key of the agent, not an option", remedy, under.mark.find((key,)).place
            )


# ── complete agents ──────────────────────────────────────────────────────────────────────────────


def resolve_agents(config: LocatedValue, problems: list[Problem]) -> LocatedValue:
    """Name each agent in ``agents`` after its key, and complete the entries of ``compare``, with the primary
    agent first. Values of the wrong shape are left unchanged, so that the model reports them."""
    config = _name_by_keys(config, problems)
    entries = list_at(config.value, "compare")
    if not entries or not all(isinstance(each, Mapping) for each in entries):
        return config
    primary = config.at("agent") if isinstance(config.value.get("agent"), Mapping) else None
    agents = [
        _complete_entry(config.at("compare", index), index, primary, problems)
        for index in range(len(entries))
    ]
    if primary is not None:
        agents.insert(0, primary)
    return config.replace_at(("compare",), LocatedValue.from_list(agents, config.mark.find(("compare",))))


def replace_agents(config: LocatedValue, agent: LocatedValue) -> LocatedValue:
    """Return the configuration with ``agent`` as its only agent. An agent of the same type inherits the keys
    of the primary agent, as an entry of ``compare`` does."""
    primary = config.at("agent") if isinstance(config.value.get("agent"), Mapping) else None
    completed = agent.merge_over(_inherited(agent.value, primary))
    return config.drop_keys("agent", "agents", "compare").replace_at(("agent",), completed)


def _name_by_keys(config: LocatedValue, problems: list[Problem]) -> LocatedValue:
    def set_name(loc: Loc, agent: LocatedValue) -> LocatedValue:
        if loc[0] != "agents":
            return agent
        name, where = loc[1], agent.mark.find(("name",))
        if (inner_name := agent.value.get("name", name)) != name:
            what = f"the agent's key is '{name}', but its `name` is '{inner_name}'"
            problems.append(Problem(what, "remove `name`", where.place))
        return LocatedValue({**agent.value, "name": name}, agent.mark)

    return map_agents(config, set_name)


def _complete_entry(
    entry: LocatedValue, index: int, primary: LocatedValue | None, problems: list[Problem]
) -> LocatedValue:
    """Return an entry of ``compare`` together with the keys that it inherits. An entry without a name is
    reported as a problem and given a placeholder name."""
    completed = entry.merge_over(_inherited(entry.value, primary))
    if entry.value.get("name"):
        return completed
    problems.append(Problem("an agent in `compare` needs a name", "add `name`", entry.mark.place))
    return LocatedValue({**completed.value, "name": f"compare.{index}"}, completed.mark)


def _inherited(entry: Mapping[str, Any], primary: LocatedValue | None) -> LocatedValue:
    """Return the keys that an entry of ``compare`` inherits from the primary agent: only the common keys if
    the entry is a complete agent itself, otherwise all keys."""
    if primary is None:
        return empty_mapping()
    if is_whole_agent(entry, primary.value):
        return primary.select_keys(("secrets",))
    return primary


def is_whole_agent(entry: Mapping[str, Any], agent: Mapping[str, Any]) -> bool:
    """Check whether an entry of ``compare`` is a complete agent: it contains the required key of a different
    type, or it names its type and contains the required key of that type. Such an entry inherits only the
    common keys, and never credentials."""
    type_keys = [key for key in KIND_BY_KEY if entry.get(key)]
    primary_type = adapter_type(agent)
    if any(KIND_BY_KEY[key] != primary_type for key in type_keys):
        return True
    entry_type = entry.get("type")
    return bool(entry_type) and (entry_type != primary_type or bool(type_keys))
