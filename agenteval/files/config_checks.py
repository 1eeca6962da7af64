"""Checks of a configuration that its models cannot make, each at its place: agents that can be
reached, names that exist. They look at what was written, so that they run beside the models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel

from agenteval.core.config import PROVIDERS, parse_reporter
from agenteval.core.errors import Problem, did_you_mean
from agenteval.core.expressions import expression
from agenteval.core.registry import Registry
from agenteval.core.secrets import keys_in
from agenteval.files.validation import NOT_YET, part_problems, unknown_key
from agenteval.files.yaml_source import Mark

_NEEDS = {"http": "endpoint", "python": "target"}
_HTTP_KEYS = (*("endpoint", "headers", "body", "streaming", "send_tools", "observed_messages", "max_wait_s"),)
_FOREIGN = {"http": ("target",), "python": _HTTP_KEYS}
_EXAMPLE = {
    "http": "endpoint: http://localhost:3000/v1/chat/completions",
    "python": "target: my_agent.py:agent",
}
_HEADER_NAME = expression(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BAD_HEADER_VALUE = expression(r"[\x00-\x08\x0a-\x1f\x7f]")
_VARIABLE_NAME = expression(r"[A-Za-z_][A-Za-z0-9_]*")

Found: TypeAlias = Iterator[Problem]


class Known(NamedTuple):
    """What a configuration may name that is registered in rooms above this one; the command line hands it in.
    ``gates``: by name, what an author writes there."""

    gates: Mapping[str, type[BaseModel]]
    reporters: Registry[Any]


def config_problems(value: Mapping[str, Any], mark: Mark, known: Known) -> Found:
    for loc, agent in _agents(value):
        yield from _agent_problems(agent, mark.find(loc))
    yield from _twice(value, mark)
    models = value.get("models")
    for role, model in (models if isinstance(models, Mapping) else {}).items():
        yield from _model_problems(model, mark.find(("models", role)))
    reporters = value.get("reporters")
    for index, item in enumerate(reporters if isinstance(reporters, list) else ()):
        yield from _reporter_problems(item, mark.find(("reporters", index)), known.reporters)
    yield from _gate_problems(value.get("gates"), mark, known.gates)


def _agents(value: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    agents, compare = value.get("agents"), value.get("compare")
    found: list[tuple[tuple[str | int, ...], Any]] = [(("agent",), value.get("agent"))]
    found += [(("agents", k), agent) for k, agent in (agents if isinstance(agents, Mapping) else {}).items()]
    found += [(("compare", i), agent) for i, agent in enumerate(compare if isinstance(compare, list) else ())]
    yield from ((loc, agent) for loc, agent in found if isinstance(agent, Mapping))


def _twice(value: Mapping[str, Any], mark: Mark) -> Found:
    """One name for two agents. With ``compare`` the primary agent is in it and not counted again."""
    first: dict[str, Mark] = {}
    for loc, agent in _agents(value):
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
    given = [kind for kind, key in _NEEDS.items() if agent.get(key)]
    return given[0] if len(given) == 1 else ""


def _agent_problems(agent: Mapping[str, Any], mark: Mark) -> Found:
    kind = kind_of(agent)
    if not kind:
        yield from _no_kind(agent, mark)
    elif kind in _NEEDS:
        yield from _misfits(agent, kind, mark)
    elif kind in NOT_YET["agent type"]:
        remedy = NOT_YET["agent type"][kind]
        yield Problem(f"the agent type '{kind}' is not supported yet", remedy, mark.find(("type",)).place)
    elif not _is_plugin("agents", kind):
        remedy = did_you_mean(kind, _NEEDS)
        yield Problem(f"no agent type is named '{kind}'", remedy, mark.find(("type",)).place)
    yield from _endpoint_problems(agent.get("endpoint"), mark.find(("endpoint",)))
    headers = agent.get("headers")
    for name, value in (headers if isinstance(headers, Mapping) else {}).items():
        yield from _header_problems(name, value, mark.find(("headers", name)))


def _no_kind(agent: Mapping[str, Any], mark: Mark) -> Found:
    if agent.get("endpoint") and agent.get("target"):
        what = "the agent has both an endpoint and a target"
        yield Problem(what, "keep one, or say type: http or type: python", mark.find(("target",)).place)
        return
    if empty := next((key for key in ("endpoint", "target") if agent.get(key) == ""), ""):
        kind = "http" if empty == "endpoint" else "python"
        yield Problem(f"the agent's {empty} is empty", f"write {_EXAMPLE[kind]}", mark.find((empty,)).place)
        return
    remedy = f"write {_EXAMPLE['python']} (Python) or {_EXAMPLE['http']}"
    yield Problem("the agent has neither a target nor an endpoint", remedy, mark.place)


def _misfits(agent: Mapping[str, Any], kind: str, mark: Mark) -> Found:
    needed = _NEEDS[kind]
    if agent.get(needed) == "":
        what = f"the agent's {needed} is empty"
        yield Problem(what, f"write {_EXAMPLE[kind]}", mark.find((needed,)).place)
    elif not agent.get(needed):
        what = f"an agent of type {kind} needs {needed}"
        yield Problem(what, f"write {_EXAMPLE[kind]}", mark.find((needed,)).place)
    for key in _FOREIGN[kind]:
        if agent.get(key) is not None:
            what = f"an agent of type {kind} has no '{key}'"
            yield Problem(what, "drop it, or change type", mark.find((key,)).place)
    target = agent.get("target")
    if kind == "python" and isinstance(target, str) and target:
        location, colon, attribute = target.rpartition(":")
        if not (location and colon and attribute):
            remedy = "write file.py:name or package.module:name"
            yield Problem("the target names no attribute", remedy, mark.find(("target",)).place)


def _endpoint_problems(url: Any, mark: Mark) -> Found:
    """The address itself is not shown: it may hold a secret."""
    if isinstance(url, str) and url and not _is_http(url):
        yield Problem("not an http or https address", "write for example http://localhost:3000/…", mark.place)


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _header_problems(name: str, value: Any, mark: Mark) -> Found:
    if not _HEADER_NAME.fullmatch(name):
        yield Problem(f"{name!r} is no name of a header", "use letters, digits and dashes", mark.place)
    if isinstance(value, str) and _BAD_HEADER_VALUE.search(value):
        what = f"the header '{name}' holds a line break or control character"
        yield Problem(what, "remove it; a variable read from a file may end in one", mark.place)


def _model_problems(model: Any, mark: Mark) -> Found:
    spec = model if isinstance(model, Mapping) else {"model": model}
    name = spec.get("model")
    provider = name.partition("/")[0] if isinstance(name, str) and "/" in name else None
    if provider and provider not in PROVIDERS and not _is_plugin("models", provider):
        where = mark.find(("model",)).place
        yield Problem(f"no provider is named '{provider}'", did_you_mean(provider, PROVIDERS), where)
    if isinstance(name, str) and any(keys_in(name)):
        # It would be sent to whoever has the model, and stand in every report.
        remedy = "write PROVIDER/MODEL, and the key into the environment (OPENAI_API_KEY, api_key_env)"
        yield Problem("a key stands where a model's name belongs", remedy, mark.find(("model",)).place)
    yield from _endpoint_problems(spec.get("base_url"), mark.find(("base_url",)))
    variable = spec.get("api_key_env")
    if isinstance(variable, str) and not _VARIABLE_NAME.fullmatch(variable):
        # Most likely the key itself, which must not be shown.
        remedy = "write the name of the environment variable that holds the key, never the key"
        yield Problem("api_key_env is no variable's name", remedy, mark.find(("api_key_env",)).place)


def _gate_problems(gates: Any, mark: Mark, known: Mapping[str, type[BaseModel]]) -> Found:
    for name, written in (gates if isinstance(gates, Mapping) else {}).items():
        if name in known:
            yield from (
                part_problems(known[name], written, mark, ("gates", name)) if written is not None else ()
            )
        elif f"gates.{name}" not in NOT_YET["config"]:
            yield unknown_key(name, known, mark.find(("gates", name)))


def _reporter_problems(item: Any, mark: Mark, known: Registry[Any]) -> Found:
    if isinstance(item, str):
        item = {"name": parse_reporter(item).name}
    name = item.get("name") if isinstance(item, Mapping) else None
    if not isinstance(name, str):
        return
    if name in NOT_YET["reporter"]:
        yield Problem(f"'{name}' is not supported yet", NOT_YET["reporter"][name], mark.place)
    elif name not in known:
        yield known.unknown(name, mark.place)


def _is_plugin(kind: str, name: str) -> bool:
    names: Iterable[str] = (entry.name for entry in entry_points(group=f"agenteval.{kind}"))
    return name in names


# ── compare ──────────────────────────────────────────────────────────────────────────────────────


def is_whole_agent(entry: Mapping[str, Any], agent: Mapping[str, Any]) -> bool:
    """Whether an entry of ``compare`` stands on its own: it brings what another type needs, or it says
    its type and what that needs. Such an entry inherits nothing, credentials least of all."""
    brought = [key for key in _NEEDS.values() if entry.get(key)]
    own = _NEEDS.get(kind_of(agent))
    if any(key != own for key in brought):
        return True
    said = entry.get("type")
    return bool(said) and (said != kind_of(agent) or bool(brought))
