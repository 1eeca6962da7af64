"""Checks a configuration for mistakes that its models cannot find, such as unreachable agents and unknown
names, and reports the location of each mistake. The checks use the values as written so that they can run
alongside model validation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel

from agenteval.core.config import parse_reporter
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.providers import PROVIDERS
from agenteval.core.registry import Registry
from agenteval.core.secrets import is_key
from agenteval.core.unsupported_keys import UNSUPPORTED_KEYS as NOT_YET
from agenteval.files.agent_checks import Adapters, agent_problems
from agenteval.files.validation import part_problems, strict_problems, unknown_key
from agenteval.files.value_parts import Loc, mapping_at, value_at
from agenteval.files.yaml_source import Mark

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Problems: TypeAlias = Iterator[Problem]


class Registries(NamedTuple):
    """The names that a configuration may use and that higher-level packages register. The command line
    provides the registries."""

    agents: Adapters
    gates: Mapping[str, type[BaseModel]]
    """The model for each gate's value, keyed by the gate's name."""
    reporters: Registry[Any]


def config_problems(value: Mapping[str, Any], mark: Mark, known: Registries) -> Problems:
    yield from agent_problems(value, mark, known.agents)
    for role, model in mapping_at(value, "models").items():
        yield from _model_problems(model, mark, ("models", role))
    reporters = value.get("reporters")
    for index, item in enumerate(reporters if isinstance(reporters, list) else [reporters]):
        yield from _reporter_problems(item, mark.find(("reporters", index)), known.reporters)
    yield from _gate_problems(mapping_at(value, "gates"), mark, known.gates)


def _endpoint_problems(url: Any, mark: Mark) -> Problems:
    """Check a provider's address without including it in messages, because it may contain a secret."""
    if isinstance(url, str) and url and not _is_http(url):
        yield Problem(
            "expected an http or https URL", "use, for example, http://localhost:3000/…", mark.place
        )


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _model_problems(model: Any, file: Mark, at: Loc) -> Problems:
    mark = file.find(at)
    spec = model if isinstance(model, Mapping) else {"model": model}
    name = spec.get("model")
    provider = name.partition("/")[0] if isinstance(name, str) and "/" in name else None
    if provider and provider not in PROVIDERS:
        yield PROVIDERS.unknown(provider, mark.find(("model",)).place)
    elif provider:
        yield from _extra_problems(provider, spec.get("extra", {}), file, at)
    if isinstance(name, str) and is_key(name):
        # A key would be sent to the provider as the name of a model, and appear in every report.
        remedy = "use PROVIDER/MODEL, and set the key in the environment (OPENAI_API_KEY, api_key_env)"
        yield Problem("this is an API key, not a model name", remedy, mark.find(("model",)).place)
    yield from _endpoint_problems(spec.get("base_url"), mark.find(("base_url",)))
    variable = spec.get("api_key_env")
    if isinstance(variable, str) and not _VARIABLE_NAME.fullmatch(variable):
        # Most likely the key itself, which must not be shown.
        remedy = "use the name of the environment variable that contains the key, not the key itself"
        yield Problem("`api_key_env` is not a variable name", remedy, mark.find(("api_key_env",)).place)


def _extra_problems(provider: str, extra: Any, file: Mark, at: Loc) -> Problems:
    """Check the options of a provider that defines a model for its options."""
    try:
        options = PROVIDERS.get(provider).options
    except AuthorError as error:
        where = file.find((*at, "model")).place
        yield from (problem._replace(place=where) for problem in error.problems)
        return
    if options is not None and isinstance(extra, Mapping):
        yield from strict_problems(options, extra, file, (*at, "extra"))


def _gate_problems(gates: Mapping[str, Any], mark: Mark, known: Mapping[str, type[BaseModel]]) -> Problems:
    for name, gate in gates.items():
        if name not in known:
            if f"gates.{name}" not in NOT_YET["config"]:
                yield unknown_key(name, known, mark.find(("gates", name)))
        elif gate is not None:
            yield from part_problems(known[name], gate, mark, ("gates", name))


def _reporter_problems(item: Any, mark: Mark, known: Registry[Any]) -> Problems:
    name = parse_reporter(item).name if isinstance(item, str) else value_at(item, ("name",))
    if isinstance(name, str) and ":" not in name and name not in known:
        yield known.unknown(name, mark.place)
