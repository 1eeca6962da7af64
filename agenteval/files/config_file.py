"""Loads the configuration file (``agenteval.yaml`` or ``pyproject.toml``): finds the file in a folder or the
nearest parent folder, parses the file, merges the layers (defaults, file, environment variables, flags; later
layers take precedence) and validates the result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from agenteval.core.config import AgentConfig, Config, ProfileSelection
from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.core.marked_secrets import UnknownSecret, mistake_in, placeholders_of, replace_secrets
from agenteval.core.protocols import AgentAdapter
from agenteval.core.registry import Registry
from agenteval.files.accepted_file import load_accepted
from agenteval.files.agent_entries import (
    iter_agents,
    map_agents,
    normalize_options,
    replace_agents,
    resolve_agents,
)
from agenteval.files.config_checks import Registries, config_problems
from agenteval.files.environment import (
    expand_variables,
    find_config_secrets,
    has_unset_variable,
    mask_config,
    read_variable_overrides,
    referenced_variables,
    unwrap_expanded,
)
from agenteval.files.located_value import LocatedValue, empty_mapping
from agenteval.files.profiles import layer_profile, parse_profiles
from agenteval.files.redaction import MASK, Mask, redactor, register_author_text, register_marked_secrets
from agenteval.files.regular_files import read_file, wrap_read_errors
from agenteval.files.scenario_files import CONFIG_NAMES, display_path
from agenteval.files.toml_source import parse_toml
from agenteval.files.validation import find_unsupported_keys, keep_scalar_text, validate
from agenteval.files.value_parts import Loc, value_at
from agenteval.files.yaml_scalars import display_value
from agenteval.files.yaml_source import MAX_BYTES, Mark, SourceDocument, parse_yaml, unlocated_mark

PYPROJECT = "pyproject.toml"
Model = TypeVar("Model", bound=BaseModel)

_TEXT_KEYS = frozenset(
    ("accepted", "name", "now", "custom_metrics", "detectors", "metrics", "include", "exclude", "secrets")
)
_TEXT_MAPS = frozenset(("headers",))
_OPAQUE_KEYS = frozenset(("body", "extra", "options", "request"))


class LoadedConfig(NamedTuple):
    """A configuration in two forms: one for running, and one that may be stored and displayed."""

    config: Config
    """The configuration for running."""
    public: Config
    """The same configuration with environment variables unexpanded and literal secrets masked."""
    secrets: tuple[str, ...]
    """The strings that must not be shown, longest first."""

    def without_thresholds(self) -> LoadedConfig:
        update: dict[str, Any] = {"thresholds": {}}
        config, public = (each.model_copy(update=update) for each in (self.config, self.public))
        return self._replace(config=config, public=public)


def find_config(start: Path) -> Path | None:
    """Find the configuration file (config discovery) in a folder or its nearest parent that contains one.
    Raise ``AuthorError`` if a folder contains two configurations."""
    here = Path(os.path.abspath(start))
    for folder in (here, *here.parents):
        found = [folder / name for name in CONFIG_NAMES if (folder / name).is_file()]
        if len(found) > 1:
            what = f"{folder} contains both {found[0].name} and {found[1].name}"
            raise AuthorError(Problem(what, "remove one of them"))
        if found:
            return found[0]
        if _has_section(folder / PYPROJECT):
            return folder / PYPROJECT
    return None


def profile_names(path: Path) -> list[str]:
    """Return the names of a configuration's profiles. Raise ``AuthorError`` if the file cannot be read."""
    return list(parse_profiles(_read(path, Path.cwd())))


def _has_section(path: Path) -> bool:
    """Check whether a ``pyproject.toml`` configures agenteval. A file that cannot be parsed is assumed to do
    so if it mentions the section."""
    try:
        data = read_file(path)
        return b"agenteval" in data and parse_toml(data, path.name) is not None
    except OSError:
        return False
    except AuthorError:
        return b"[tool.agenteval" in data


def load_config(
    path: Path | None,
    known: Registries,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, Any],
    overrides: Mapping[str, Any] = MappingProxyType({}),
    agent: Mapping[str, Any] | None = None,
    cwd: Path | None = None,
    profile: str | None = None,
) -> LoadedConfig:
    """Load configuration settings from a file (``None`` means an empty configuration). The file is overridden
    by the selected profile, then by the ``AGENTEVAL_*`` environment variables, then by ``overrides``, and
    then by ``flags``. ``agent`` replaces the agents of the file. The remaining profiles are validated as
    well.

    ``known`` contains the names that the configuration may refer to. ``flags`` and ``overrides`` have the
    same structure as the file; values that are ``None`` are ignored. ``path`` is relative to ``cwd`` (by
    default, the working directory). Raise ``AuthorError`` with every problem."""
    cwd = cwd or Path.cwd()
    problems: list[Problem] = []
    file = _read(cwd / path, cwd) if path else empty_mapping()
    profiles = parse_profiles(file)
    profiled, selection = layer_profile(file, profile, profiles)
    if agent is not None:
        profiled = replace_agents(profiled, LocatedValue(agent, unlocated_mark(agent, "agent")))
    merged = expand_variables(profiled, environ, problems, skip=_unsupported_locations(profiled.value))
    mentioned = set(referenced_variables(profiled.value))
    for layer in (
        read_variable_overrides(environ, mentioned=mentioned, problems=problems),
        LocatedValue(overrides, _override_mark(overrides)),
        _flag_layer(flags),
    ):
        merged = _layer_over(layer, merged)
    assembled = _assemble(merged, problems, known, environ)
    others = {name: each for name, each in profiles.items() if name != profile}
    _check_other_profiles(file, others, known, environ)
    source_facts = _source_facts(path, cwd, assembled.resolved.mark)
    # A path is not a secret, even if a variable such as CACHE_KEY contains it.
    register_author_text(lambda: str(source_facts["root"]))
    config = assembled.config.model_copy(
        update={**source_facts, "profile": profile or "", "selection": selection}
    )
    if config.accepted:
        named_at = assembled.resolved.mark.find(("accepted",)).place
        accepted = load_accepted(Path(config.root) / config.accepted, cwd, named_at=named_at)
        config = config.model_copy(update={"accepted_failures": accepted})
    public = _public_config(assembled.resolved.value, config, known.agents)
    config = config.model_copy(update=_parsed_agents(config, config, known.agents))
    return LoadedConfig(config, public, assembled.secrets)


def _source_facts(path: Path | None, cwd: Path, mark: Mark) -> dict[str, Any]:
    """Return the location of a configuration and the location of each key in it."""
    file = Path(os.path.abspath(cwd / path)) if path else None
    return {
        "source": display_path(cwd / path, cwd) if path else "",
        "root": str(file.parent if file else Path(os.path.abspath(cwd))),
        "lines": {name: at.line for name, at in _marks_in_file(mark, mark.path)},
        "columns": {name: at.column for name, at in _marks_in_file(mark, mark.path)},
        "origins": dict(_origins(mark)),
    }


class _AssembledConfig(NamedTuple):
    """A validated configuration together with the value that it was built from."""

    config: Config
    resolved: LocatedValue
    """The value with variables expanded and inherited agent settings filled in."""
    secrets: tuple[str, ...]
    """The strings that must not be shown, longest first."""


def _assemble(
    merged: LocatedValue,
    problems: list[Problem],
    known: Registries,
    environ: Mapping[str, str],
    *,
    is_other: bool = False,
) -> _AssembledConfig:
    """Build the configuration from ``merged``, which contains all layers with variables expanded.
    ``problems`` contains the problems found so far. If ``is_other`` is true, this configuration is an
    unselected profile, not the configuration of the run. Raise ``AuthorError`` with every problem."""
    merged = normalize_options(merged, known.agents, problems)
    secrets = find_config_secrets(merged.value)
    register_marked_secrets(_marked_secret_texts(merged.value), also=is_other)
    resolved = resolve_agents(merged, problems)
    value = unwrap_expanded(_add_unknown_secrets(resolved, environ).value)
    return _AssembledConfig(
        _validate_config(LocatedValue(value, resolved.mark), problems, known, secrets), resolved, secrets
    )


def _check_other_profiles(
    file: LocatedValue,
    profiles: Mapping[str, Mapping[str, Any]],
    known: Registries,
    environ: Mapping[str, str],
) -> None:
    """Raise ``AuthorError`` for mistakes in the profiles that are not selected. For example, a mistake in the
    nightly profile is found before the nightly run. A profile that refers to unset variables is skipped,
    because the variables may be set on another machine."""
    problems: list[Problem] = []
    for name in profiles:
        try:
            profiled = layer_profile(file, name, profiles).config
            unset: list[Problem] = []
            expanded = expand_variables(profiled, environ, unset, skip=_unsupported_locations(profiled.value))
            if not unset:
                _assemble(expanded, unset, known, environ, is_other=True)
        except AuthorError as error:
            problems += error.problems
    if problems:
        raise AuthorError(*dict.fromkeys(problems))


def _unsupported_locations(value: Any) -> frozenset[Loc]:
    """Return the locations of unsupported keys. An unset variable there would only lead to a second
    problem."""
    return frozenset(found.loc for found in find_unsupported_keys(value, "config"))


_FLAGS = {"models": "--model", "metrics": "--metric"}
"""The flags whose names differ from the keys that they set."""


def _flag_layer(flags: Mapping[str, Any]) -> LocatedValue:
    """Return the values set by command-line flags (command-line overrides), with the flags as their
    locations."""
    values = {key: flag for key, flag in flags.items() if flag is not None}
    return LocatedValue(
        values, Mark("", children={key: _flag_mark(key, flag) for key, flag in values.items()})
    )


def _override_mark(overrides: Mapping[str, Any]) -> Mark:
    return Mark("", children={key: unlocated_mark(item, "overrides") for key, item in overrides.items()})


def _flag_mark(key: str, value: Any) -> Mark:
    name = _FLAGS.get(key) or f"--{key.replace('_', '-')}"
    children = {k: Mark(name) for k in value} if isinstance(value, Mapping) else None
    return Mark(name, children=children)


def _layer_over(layer: LocatedValue, config: LocatedValue) -> LocatedValue:
    """Merge variables or flags over the configuration so far. The result keeps the location of the
    configuration, at which missing keys are reported."""
    merged = _normalize_default_model(layer, config).merge_over(config)
    return LocatedValue(merged.value, config.mark.with_children(merged.mark.children))


_DEFAULT = ("models", "default")


def _normalize_default_model(layer: LocatedValue, config: LocatedValue) -> LocatedValue:
    """Replace a bare model name in a layer with a mapping if the file configures a different model from the
    same provider. The address, key and limits in the file then still apply. For a different provider, these
    settings would be meaningless."""
    chosen, name = value_at(layer.value, _DEFAULT), value_at(config.value, (*_DEFAULT, "model"))
    if not isinstance(chosen, str) or not isinstance(name, str):
        return layer
    if chosen.partition("/")[0] != name.partition("/")[0]:
        return layer
    chosen_mark = layer.mark.find(_DEFAULT).without_children
    at = config.mark.find(_DEFAULT).with_children({"model": chosen_mark})
    models = config.mark.find(("models",)).with_children({"default": at})
    return layer.replace_at(("models",), LocatedValue({"default": {"model": chosen}}, models))


def _marked_secret_texts(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield the strings that agents mark as secret."""
    for _, agent in iter_agents(value):
        listed = agent.get("secrets")
        for each in listed if isinstance(listed, list) else [listed]:
            if isinstance(each, str) and not mistake_in(each):
                yield str(each)


def _add_unknown_secrets(config: LocatedValue, environ: Mapping[str, str]) -> LocatedValue:
    """Replace marked secrets whose variable is not set with ``UnknownSecret``, because a replay needs no
    secrets."""

    def replace_unset(_loc: Loc, agent: LocatedValue) -> LocatedValue:
        listed = agent.value.get("secrets")
        if not isinstance(listed, list):
            return agent
        secrets = [UnknownSecret(each) if has_unset_variable(each, environ) else each for each in listed]
        return LocatedValue({**agent.value, "secrets": secrets}, agent.mark)

    return map_agents(config, replace_unset)


def _read(path: Path, cwd: Path) -> LocatedValue:
    shown_as = display_path(path, cwd)
    with wrap_read_errors("the configuration", Place(shown_as)):
        data = read_file(path, MAX_BYTES + 1)
    register_author_text(lambda: data.decode("utf-8", "replace"))
    document = _parse_document(data, shown_as, is_toml=path.suffix.lower() == ".toml")
    value = keep_scalar_text(document, texts=_TEXT_KEYS, text_maps=_TEXT_MAPS, opaque=_OPAQUE_KEYS)
    if isinstance(value, dict):
        return LocatedValue(value, document.mark)
    what = f"expected a mapping, got {display_value(value)}"
    raise AuthorError(
        Problem(what, "use, for example, agent: {target: my_agent.py:agent}", document.mark.place)
    )


def _parse_document(data: bytes, shown_as: str, *, is_toml: bool) -> SourceDocument:
    if not is_toml:
        return parse_yaml(data, shown_as)
    document = parse_toml(data, shown_as)
    if document is None:
        raise AuthorError(Problem("the file has no [tool.agenteval] table", "add it", Place(shown_as)))
    return document


def _validate_config(
    config: LocatedValue, problems: list[Problem], known: Registries, secrets: tuple[str, ...]
) -> Config:
    unset = {problem.place for problem in problems}  # an unset variable is not also reported as empty
    found = (problem for problem in config_problems(*config, known) if problem.place not in unset)
    problems = [*problems, *found]
    validated, wrong = validate(
        Config, *config, kind="config", skip=ProfileSelection.model_fields, found=problems
    )
    problems += wrong
    if validated is None or problems:
        ordered = sorted(_deduplicate_problems(problems), key=attrgetter("order"))
        mask = redactor(secrets)
        raise AuthorError(*(_masked_problem(problem, mask) for problem in ordered))
    return validated


def _deduplicate_problems(problems: list[Problem]) -> list[Problem]:
    """Drop repeated problems. A mistake in ``agent`` is not repeated for the entries of ``compare`` that
    inherit the mistake."""
    unique = dict.fromkeys(problems)
    for problem in problems:
        if "`compare." in problem.what:
            original = problem._replace(what=problem.what.replace("`compare.", "`agent.", 1))
            if original in unique:
                unique.pop(problem, None)
    return list(unique)


def _masked_problem(problem: Problem, mask: Mask) -> Problem:
    return problem._replace(what=mask(problem.what), remedy=mask(problem.remedy))


# ── the public form, and places of keys ──────────────────────────────────────────────────────────


def _public_config(resolved: Mapping[str, Any], config: Config, adapters: Registry[AgentAdapter]) -> Config:
    """Return the configuration with variables unexpanded and literal secrets replaced by placeholders. Gates
    contain only numbers and keywords, so a variable in a gate is shown with its value."""
    public = _validate_public(Config, mask_config(resolved), unwrap_expanded(resolved)) or Config()
    internal = {name: getattr(config, name) for name in Config.INTERNAL}
    public = public.model_copy(update={**internal, "gates": config.gates})
    public = public.model_copy(update=_parsed_agents(public, config, adapters))
    marked = placeholders_of([s for agent in config.all_agents for s in agent.secrets if MASK not in s])

    def mask_secrets(agent: AgentConfig, _real: AgentConfig) -> AgentConfig:
        return agent.model_copy(update={"secrets": tuple(replace_secrets(s, marked) for s in agent.secrets)})

    return public.model_copy(update=_changed_agents(public, public, mask_secrets)) if marked else public


def _parsed_agents(config: Config, real: Config, adapters: Registry[AgentAdapter]) -> dict[str, Any]:
    """Return the agents in ``config`` with the options of built-in adapters in parsed form. Options of
    adapters from other packages are left as written, because the models of those packages may produce values
    that are not plain data."""

    def read(agent: AgentConfig, real_agent: AgentConfig) -> AgentConfig:
        if real_agent.kind not in adapters.built_in:
            return agent
        options = _validate_public(
            adapters.get(real_agent.kind).options, agent.adapter_options, real_agent.adapter_options
        )
        return agent.model_copy(update=options.model_dump()) if options else agent

    return _changed_agents(config, real, read)


def _changed_agents(
    config: Config, real: Config, change: Callable[[AgentConfig, AgentConfig], AgentConfig]
) -> dict[str, Any]:
    """Apply ``change`` to each agent in ``config`` and its counterpart in ``real``. Return the results."""
    return {
        "agent": change(config.agent, real.agent) if config.agent and real.agent else None,
        "agents": {name: change(agent, real.agents[name]) for name, agent in config.agents.items()},
        "compare": tuple(map(change, config.compare, real.compare)),
    }


def _validate_public(model: type[Model], shown_value: Any, real: Any) -> Model | None:
    """Validate ``shown_value`` against a model. Where only the ``real`` value has the right type (a number or
    a choice), use the real value, which cannot be a secret. Return ``None`` if the value remains invalid."""
    for _ in range(3):
        try:
            return model.model_validate(shown_value)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                shown_value = _with_real_value(shown_value, real, list(detail["loc"]))
    return None


def _with_real_value(shown_value: Any, real: Any, loc: list[str | int]) -> Any:
    """Return ``shown_value`` with the real value inserted at ``loc``, or at the nearest existing parent
    location."""
    if loc and isinstance(shown_value, dict) and loc[0] in shown_value:
        key, rest = str(loc[0]), loc[1:]
        return {**shown_value, key: _with_real_value(shown_value[key], real[key], rest)}
    if loc and isinstance(shown_value, list) and isinstance(loc[0], int):
        items = list(shown_value)
        items[loc[0]] = _with_real_value(items[loc[0]], real[loc[0]], loc[1:])
        return items
    return real


def _marks_in_file(mark: Mark, path: str, prefix: str = "") -> Iterator[tuple[str, Mark]]:
    """Yield the dotted key and the mark of each value that appears in the file itself."""
    for key, below in mark.pairs():
        name = f"{prefix}{key}"
        if below.path == path:
            yield name, below
        yield from _marks_in_file(below, path, f"{name}.")


def _origins(mark: Mark, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each dotted key with the variable or flag that sets it. A mapping is included only if it is
    empty."""
    for key, below in mark.pairs():
        name = f"{prefix}{key}"
        if not below.line and below.children is None:
            yield name, below.path
        yield from _origins(below, f"{name}.")
