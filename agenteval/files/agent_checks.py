"""Checks of the agents in a configuration: which adapter each one is of, and what its adapter says of its
options. They look at what was written, so that they run beside the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeAlias

from agenteval.core.config import KIND_BY_KEY, AgentConfig
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.protocols import AgentAdapter
from agenteval.core.registry import Registry
from agenteval.files.validation import Loc, known_keys, part_problems, unknown_key
from agenteval.files.yaml_source import Mark

Adapters: TypeAlias = Registry[AgentAdapter]
Found: TypeAlias = Iterator[Problem]

_COMMON = frozenset(known_keys(AgentConfig))
_OPTIONS = "options"
_A = {"endpoint": "an endpoint", "target": "a target", "command": "a command"}


def agents_in(value: Mapping[str, Any]) -> Iterator[tuple[Loc, Mapping[str, Any]]]:
    agents, compare = value.get("agents"), value.get("compare")
    found: list[tuple[Loc, Any]] = [(("agent",), value.get("agent"))]
    found += [(("agents", k), agent) for k, agent in (agents if isinstance(agents, Mapping) else {}).items()]
    found += [(("compare", i), agent) for i, agent in enumerate(compare if isinstance(compare, list) else ())]
    yield from ((loc, agent) for loc, agent in found if isinstance(agent, Mapping))


def agent_problems(value: Mapping[str, Any], mark: Mark, adapters: Adapters) -> Found:
    for loc, agent in agents_in(value):
        yield from _problems_of(agent, mark, loc, adapters)
    yield from _twice(value, mark)


def _twice(value: Mapping[str, Any], mark: Mark) -> Found:
    """One name for two agents. With ``compare`` the primary agent is in it and not counted again."""
    first: dict[str, Mark] = {}
    for loc, agent in agents_in(value):
        if loc[0] == "agent" and value.get("compare"):
            continue
        name, where = str(agent.get("name", "agent")), mark.find((*loc, "name"))
        if name in first:
            remedy = "give each agent a name of its own"
            yield Problem(f"the agent '{name}' is already at {first[name].place}", remedy, where.place)
        first.setdefault(name, where)


def kind_of(agent: Mapping[str, Any]) -> str:
    """The adapter's name; empty when nothing says which, or when two do."""
    if agent.get("type"):
        return str(agent["type"])
    given = [kind for key, kind in KIND_BY_KEY.items() if agent.get(key)]
    return given[0] if len(given) == 1 else ""


def _problems_of(agent: Mapping[str, Any], mark: Mark, loc: Loc, adapters: Adapters) -> Found:
    kind, at_type = kind_of(agent), mark.find((*loc, "type")).place
    if not kind:
        yield from _no_kind(agent, mark.find(loc), adapters)
    elif kind not in adapters:
        yield adapters.unknown(kind, at_type)
    else:
        try:
            adapter = adapters.get(kind)
        except AuthorError as error:
            yield from (problem._replace(place=at_type) for problem in error.problems)
            return
        at = loc if kind in adapters.built_in else (*loc, _OPTIONS)
        yield from _option_problems(_own(agent, kind, adapters), mark, at, adapter, _unfit(kind, adapters))
        return
    yield from _of_any_adapter(agent, mark, loc, adapters)


def _own(agent: Mapping[str, Any], kind: str, adapters: Adapters) -> Mapping[str, Any]:
    """The options of its adapter, where ``with_options_in_place`` has put them."""
    if kind in adapters.built_in:
        return {key: value for key, value in agent.items() if key not in _COMMON}
    options = agent.get(_OPTIONS, {})
    return options if isinstance(options, Mapping) else {}


def _unfit(kind: str, adapters: Adapters) -> dict[str, str]:
    """What to say of options that only another adapter has, by their names."""
    others = (adapters.get(other) for other in adapters if other != kind)
    names = (name for other in others for name in known_keys(other.options))
    return {name: f"an agent of type {kind} has no '{name}'" for name in names}


def _option_problems(
    own: Mapping[str, Any], mark: Mark, at: Loc, adapter: AgentAdapter, unfit: Mapping[str, str]
) -> Found:
    names = known_keys(adapter.options)
    for key in own:
        where = mark.find((*at, key))
        if key in names:
            continue
        if key in unfit and own[key] is not None:
            yield Problem(unfit[key], "remove it, or change type", where.place)
        elif key not in unfit:
            # ``options`` may be written for any adapter; of one that is built in, beside is the usual way.
            others = names | (_COMMON if _OPTIONS in at else _COMMON - {_OPTIONS})
            yield _renamed(key, own[key], where) or unknown_key(key, others, where)
    places = set()
    for mistake in adapter.mistakes(own):
        place = mark.find((*at, *mistake.path)).place
        places.add(place)
        yield Problem(mistake.what, mistake.remedy, place)
    known = {key: value for key, value in own.items() if key in names}
    found = part_problems(adapter.options, known, mark, at)
    yield from (problem for problem in found if problem.place not in places)


def _of_any_adapter(agent: Mapping[str, Any], mark: Mark, loc: Loc, adapters: Adapters) -> Found:
    """Where nobody knows which adapter is meant: what none of them would take."""
    known = [adapters.get(name) for name in adapters]
    names = {name for adapter in known for name in known_keys(adapter.options)}
    for key in agent:
        if key not in names | _COMMON:
            where = mark.find((*loc, key))
            yield _renamed(key, agent[key], where) or unknown_key(key, (names | _COMMON) - {_OPTIONS}, where)
    for adapter in known:
        own = {key: value for key, value in agent.items() if key in known_keys(adapter.options)}
        yield from part_problems(adapter.options, own, mark, loc, is_whole=False)


def _renamed(key: str, value: Any, where: Mark) -> Problem | None:
    """What to write for ``tools: visible | none``, as the key was once called."""
    if key != "tools":
        return None
    remedy = {"visible": "write calls: all", "none": "write calls: unseen"}
    return Problem(
        "an agent has no key 'tools'",
        remedy.get(str(value), "calls: all | unseen says how its calls are seen; scenarios declare tools"),
        where.place,
    )


def _no_kind(agent: Mapping[str, Any], mark: Mark, adapters: Adapters) -> Found:
    if len(given := [key for key in KIND_BY_KEY if agent.get(key)]) > 1:
        one, other = given[:2]
        what = f"the agent has both {_A[one]} and {_A[other]}"
        remedy = f"keep one, or say type: {KIND_BY_KEY[one]} or type: {KIND_BY_KEY[other]}"
        yield Problem(what, remedy, mark.find((other,)).place)
        return
    empty = (key for key in KIND_BY_KEY if agent.get(key) in ("", [], {}))
    if key := next(empty, ""):
        example = adapters.get(KIND_BY_KEY[key]).example
        yield Problem(f"the agent's {key} is empty", f"write {example}", mark.find((key,)).place)
        return
    if any(_means_a_kind(key) for key in agent):
        return  # the key is unknown, and which one it means is said there
    python, http, program = (adapters.get(kind).example for kind in ("python", "http", "command"))
    remedy = f"write {python} (Python) or {http}, or {program}"
    yield Problem("the agent has neither a target nor an endpoint", remedy, mark.place)


def _means_a_kind(key: str) -> bool:
    return key not in KIND_BY_KEY and bool(get_close_matches(key.lower(), KIND_BY_KEY, n=1, cutoff=0.6))


# ── where options stand ──────────────────────────────────────────────────────────────────────────


def with_options_in_place(
    value: dict[str, Any], mark: Mark, adapters: Adapters, problems: list[Problem]
) -> tuple[dict[str, Any], Mark]:
    """Each agent with the options of its adapter in one place: of those that are built in beside the common
    keys, of other packages' under ``options``. An author may write them either way."""
    primary = value.get("agent")
    base = kind_of(primary) if isinstance(primary, Mapping) else ""

    def placed(agent: Any, at: Mark, inherited: str = "") -> tuple[Any, Mark]:
        kind = (kind_of(agent) or inherited) if isinstance(agent, Mapping) else ""
        if not kind or kind not in adapters or not isinstance(at.children, dict):
            return agent, at
        return _placed(agent, at, problems, are_beside=kind in adapters.built_in)

    changed, marks = dict(value), dict(mark.children) if isinstance(mark.children, dict) else {}
    if "agent" in value:
        changed["agent"], marks["agent"] = placed(primary, mark.find(("agent",)))
    agents, at = value.get("agents"), mark.find(("agents",))
    if isinstance(agents, Mapping) and agents:
        each = {name: placed(agent, at.find((name,))) for name, agent in agents.items()}
        changed["agents"] = {name: agent for name, (agent, _) in each.items()}
        marks["agents"] = _around(at, {str(name): found for name, (_, found) in each.items()})
    compare, at = value.get("compare"), mark.find(("compare",))
    if isinstance(compare, list) and compare:
        entries = [placed(entry, at.find((index,)), base) for index, entry in enumerate(compare)]
        changed["compare"] = [entry for entry, _ in entries]
        marks["compare"] = _around(at, [found for _, found in entries])
    return changed, _around(mark, marks)


def _placed(
    agent: Mapping[str, Any], at: Mark, problems: list[Problem], *, are_beside: bool
) -> tuple[dict[str, Any], Mark]:
    options = agent.get(_OPTIONS)
    if options is not None and not isinstance(options, Mapping):
        return dict(agent), at  # the model says what is wrong with it
    under = options or {}
    own = [key for key in agent if key not in _COMMON]
    for key in under:
        if key in own or (are_beside and key in _COMMON):
            remedy = "write it once" if key in own else "write it beside options"
            problems.append(
                Problem(f"options: '{key}' is a key of the agent", remedy, at.find((_OPTIONS, key)).place)
            )
    common = {key: item for key, item in agent.items() if key not in own and key != _OPTIONS}
    kept = {key: at.find((key,)) for key in common}
    options_of = {**{key: agent[key] for key in own}, **under}
    places = {**{key: at.find((key,)) for key in own}, **{key: at.find((_OPTIONS, key)) for key in under}}
    if are_beside:
        return {**options_of, **common}, _around(at, {**places, **kept})
    if not options_of and _OPTIONS not in agent:
        return common, _around(at, kept)
    where = at.find((_OPTIONS,)) if _OPTIONS in agent else at
    return {**common, _OPTIONS: options_of}, _around(at, {**kept, _OPTIONS: _around(where, places)})


def _around(mark: Mark, children: dict[str, Mark] | list[Mark]) -> Mark:
    return Mark(mark.path, mark.line, mark.column, children, text=mark.text)


# ── compare ──────────────────────────────────────────────────────────────────────────────────────


def is_whole_agent(entry: Mapping[str, Any], agent: Mapping[str, Any]) -> bool:
    """Whether an entry of ``compare`` stands on its own: it brings what another type needs, or it says
    its type and what that needs. Such an entry inherits nothing, credentials least of all, but what no agent
    is to say."""
    brought = [key for key in KIND_BY_KEY if entry.get(key)]
    own = kind_of(agent)
    if any(KIND_BY_KEY[key] != own for key in brought):
        return True
    said = entry.get("type")
    return bool(said) and (said != own or bool(brought))
