"""Checks the agents in a configuration: the adapter of each agent, and the options that the adapter accepts.
The checks use the values as written so that they can run alongside model validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeAlias

from agenteval.core.config import KIND_BY_KEY
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.protocols import AgentAdapter
from agenteval.core.registry import Registry
from agenteval.files.agent_entries import COMMON_AGENT_KEYS, OPTIONS_KEY, adapter_type, iter_agents
from agenteval.files.validation import known_keys, part_problems, unknown_key
from agenteval.files.value_parts import Loc, mapping_at
from agenteval.files.yaml_source import Mark

Adapters: TypeAlias = Registry[AgentAdapter]
Problems: TypeAlias = Iterator[Problem]

_WITH_ARTICLE = {"endpoint": "an endpoint", "target": "a target", "command": "a command"}


def agent_problems(value: Mapping[str, Any], mark: Mark, adapters: Adapters) -> Problems:
    for loc, agent in iter_agents(value):
        yield from _adapter_problems(agent, mark, loc, adapters)
    yield from _duplicate_names(value, mark)


def _duplicate_names(value: Mapping[str, Any], mark: Mark) -> Problems:
    """Find names that are used by more than one agent. If ``compare`` is set, the primary agent is also an
    entry of ``compare`` and is not counted twice."""
    first: dict[str, Mark] = {}
    for loc, agent in iter_agents(value):
        if loc[0] == "agent" and value.get("compare"):
            continue
        name, where = str(agent.get("name", "agent")), mark.find((*loc, "name"))
        if name in first:
            remedy = "give each agent a different name"
            yield Problem(
                f"the agent name '{name}' is already used at {first[name].place}", remedy, where.place
            )
        first.setdefault(name, where)


def _adapter_problems(agent: Mapping[str, Any], mark: Mark, loc: Loc, adapters: Adapters) -> Problems:
    kind, at_type = adapter_type(agent), mark.find((*loc, "type")).place
    if not kind:
        yield from _missing_type_problems(agent, mark.find(loc), adapters)
    elif kind not in adapters:
        yield adapters.unknown(kind, at_type)
    else:
        try:
            adapter = adapters.get(kind)
        except AuthorError as error:
            yield from (problem._replace(place=at_type) for problem in error.problems)
            return
        at = loc if kind in adapters.built_in else (*loc, OPTIONS_KEY)
        yield from _option_problems(
            _adapter_options(agent, kind, adapters),
            mark,
            at,
            adapter,
            lambda: _other_adapters_options(kind, adapters),
        )
        return
    yield from _unknown_adapter_problems(agent, mark, loc, adapters)


def _adapter_options(agent: Mapping[str, Any], kind: str, adapters: Adapters) -> Mapping[str, Any]:
    """Return the options of an agent's adapter from the location where ``normalize_options`` put them."""
    if kind in adapters.built_in:
        return {key: value for key, value in agent.items() if key not in COMMON_AGENT_KEYS}
    return mapping_at(agent, OPTIONS_KEY)


def _other_adapters_options(kind: str, adapters: Adapters) -> dict[str, str]:
    """Return a message for each option that only a different adapter accepts. This loads all built-in
    adapters, so it is called only for an option that the agent's own adapter does not accept."""
    others = (adapters.get(other) for other in adapters if other != kind)
    names = (name for other in others for name in known_keys(other.options))
    return {name: f"an agent of type {kind} does not support '{name}'" for name in names}


def _option_problems(
    options: Mapping[str, Any],
    mark: Mark,
    at: Loc,
    adapter: AgentAdapter,
    load_others: Callable[[], Mapping[str, str]],
) -> Problems:
    names = known_keys(adapter.options)
    foreign = [key for key in options if key not in names]
    of_others = load_others() if foreign else {}
    for key in foreign:
        where = mark.find((*at, key))
        if key in of_others and options[key] is not None:
            yield Problem(of_others[key], "remove it, or change `type`", where.place)
        elif key not in of_others:
            # ``options`` is not suggested for a built-in adapter: its options are usually written without it.
            others = names | (COMMON_AGENT_KEYS if OPTIONS_KEY in at else COMMON_AGENT_KEYS - {OPTIONS_KEY})
            yield _former_key_problem(key, options[key], where) or unknown_key(key, others, where)
    places = set()
    for mistake in adapter.mistakes(options):
        place = mark.find((*at, *mistake.path)).place
        places.add(place)
        yield Problem(mistake.what, mistake.remedy, place)
    known = {key: value for key, value in options.items() if key in names}
    found = part_problems(adapter.options, known, mark, at)
    yield from (problem for problem in found if problem.place not in places)


def _unknown_adapter_problems(agent: Mapping[str, Any], mark: Mark, loc: Loc, adapters: Adapters) -> Problems:
    """Find options that no adapter accepts if the agent's adapter is unknown."""
    known = [adapters.get(name) for name in adapters]
    names = {name for adapter in known for name in known_keys(adapter.options)}
    for key in agent:
        if key not in names | COMMON_AGENT_KEYS:
            where = mark.find((*loc, key))
            yield _former_key_problem(key, agent[key], where) or unknown_key(
                key, (names | COMMON_AGENT_KEYS) - {OPTIONS_KEY}, where
            )
    for adapter in known:
        options = {key: value for key, value in agent.items() if key in known_keys(adapter.options)}
        yield from part_problems(adapter.options, options, mark, loc, is_whole=False)


def _former_key_problem(key: str, value: Any, where: Mark) -> Problem | None:
    """Return a problem that states the replacement for the former key ``tools``, or ``None`` for any other
    key."""
    if key != "tools":
        return None
    remedy = {"visible": "use `calls: all`", "none": "use `calls: unseen`"}
    return Problem(
        "an agent has no key `tools`",
        remedy.get(str(value), "use `calls: all` or `calls: unseen` (tools are declared in scenarios)"),
        where.place,
    )


def _missing_type_problems(agent: Mapping[str, Any], mark: Mark, adapters: Adapters) -> Problems:
    if len(type_keys := [key for key in KIND_BY_KEY if agent.get(key)]) > 1:
        one, other = type_keys[:2]
        what = f"the agent has both {_WITH_ARTICLE[one]} and {_WITH_ARTICLE[other]}"
        remedy = f"keep one, or set `type: {KIND_BY_KEY[one]}` or `type: {KIND_BY_KEY[other]}`"
        yield Problem(what, remedy, mark.find((other,)).place)
        return
    empty = (key for key in KIND_BY_KEY if agent.get(key) in ("", [], {}))
    if key := next(empty, ""):
        example = adapters.get(KIND_BY_KEY[key]).example
        yield Problem(f"the agent's `{key}` is empty", f"set {example}", mark.find((key,)).place)
        return
    if any(_resembles_type_key(key) for key in agent):
        return  # the misspelt key is reported as unknown, with a suggestion
    python, http, program = (adapters.get(kind).example for kind in ("python", "http", "command"))
    remedy = f"set {python} (Python), {http} or {program}"
    yield Problem("the agent has no target, endpoint or command", remedy, mark.place)


def _resembles_type_key(key: str) -> bool:
    return key not in KIND_BY_KEY and bool(get_close_matches(key.lower(), KIND_BY_KEY, n=1, cutoff=0.6))
