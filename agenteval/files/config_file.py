"""The configuration: found upward, read, layered (defaults < file < environment < flags), checked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from agenteval.core.config import AgentConfig, Config, ProfileSelection, deep_merge
from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.core.marked_secrets import UnknownSecret, mistake_in, placeholders_of, replaced
from agenteval.core.protocols import AgentAdapter
from agenteval.core.registry import Registry
from agenteval.files.accepted_file import load_accepted
from agenteval.files.agent_checks import agents_in, is_whole_agent, with_options_in_place
from agenteval.files.config_checks import Known, config_problems
from agenteval.files.environment import (
    expand,
    from_variables,
    is_unknown,
    plain,
    secrets_in,
    variables_in,
    written,
)
from agenteval.files.plain_files import read_file
from agenteval.files.profiles import layered, profiles_in, without_profiles
from agenteval.files.redact import MASK, Mask, know_marked, know_written, redactor
from agenteval.files.scenario_files import CONFIG_NAMES, shown_path
from agenteval.files.toml_source import parse_toml
from agenteval.files.validation import Loc, as_written, merge_marks, not_built_in, validate
from agenteval.files.yaml_scalars import shown
from agenteval.files.yaml_source import MAX_BYTES, Document, Mark, parse

PYPROJECT = "pyproject.toml"
Model = TypeVar("Model", bound=BaseModel)

_TEXT_KEYS = frozenset(
    ("accepted", "name", "now", "custom_metrics", "detectors", "metrics", "include", "exclude", "secrets")
)
_TEXT_MAPS = frozenset(("headers",))
_OPAQUE_KEYS = frozenset(("body", "extra", "options", "request"))


class LoadedConfig(NamedTuple):
    """``public`` is ``config`` as it may be written down: variables unexpanded, literal secrets masked.
    ``secrets`` are the texts that must not be shown, longest first."""

    config: Config
    public: Config
    secrets: tuple[str, ...]

    def without_thresholds(self) -> LoadedConfig:
        update: dict[str, Any] = {"thresholds": {}}
        config, public = (each.model_copy(update=update) for each in (self.config, self.public))
        return self._replace(config=config, public=public)


def find_config(start: Path) -> Path | None:
    """The nearest configuration at or above a folder. Raises ``AuthorError`` where two lie side by side."""
    here = Path(os.path.abspath(start))
    for folder in (here, *here.parents):
        found = [folder / name for name in CONFIG_NAMES if (folder / name).is_file()]
        if len(found) > 1:
            what = f"{folder} contains both {found[0].name} and {found[1].name}"
            raise AuthorError(Problem(what, "keep one"))
        if found:
            return found[0]
        if _has_section(folder / PYPROJECT):
            return folder / PYPROJECT
    return None


def profile_names(path: Path) -> list[str]:
    """The profiles of a configuration. Raises ``AuthorError`` for what cannot be read."""
    return list(profiles_in(*_read(path, Path.cwd())))


def _has_section(path: Path) -> bool:
    """Whether a ``pyproject.toml`` is ours to read. One that is broken is, if it names the section."""
    try:
        data = read_file(path)
        return b"agenteval" in data and parse_toml(data, path.name) is not None
    except OSError:
        return False
    except AuthorError:
        return b"[tool.agenteval" in data


def load_config(
    path: Path | None,
    known: Known,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, Any],
    cwd: Path | None = None,
    profile: str | None = None,
) -> LoadedConfig:
    """The configuration of a file (``None``: of none), with a ``profile`` of it, ``AGENTEVAL_*`` and then
    ``flags`` over it. Its other profiles are checked as well.

    ``known``: what it may name. ``flags`` has the shape of the file; ``None`` values count as not given.
    ``path`` starts at ``cwd`` (the working directory). Raises ``AuthorError`` with every problem.
    """
    cwd = cwd or Path.cwd()
    problems: list[Problem] = []
    value, mark = _read(cwd / path, cwd) if path else ({}, Mark("", children={}))
    named = profiles_in(value, mark)
    whole, whole_mark = value, mark
    value, mark = without_profiles(value, mark)
    selection = ProfileSelection()
    if profile is not None:
        value, mark, selection = layered(whole, whole_mark, profile, named)
    mentioned = set(variables_in(value))
    value = expand(value, mark, environ, problems, skip=_not_built(value))
    given = {key: flag for key, flag in flags.items() if flag is not None}
    by_flags = Mark("", children={key: _flag_mark(key, flag) for key, flag in given.items()})
    for high, marks in (
        from_variables(environ, mentioned=mentioned, problems=problems),
        (given, by_flags),
    ):
        layer, marks = _with_model_in_place(high, marks, value, mark)
        mark = _at_file(merge_marks(mark, marks, value, layer), mark)
        value = deep_merge(value, layer)
    value, mark = with_options_in_place(value, mark, known.agents, problems)
    secrets = secrets_in(value)
    know_marked(_marked_in(value))
    value, mark = _whole_agents(value, mark, problems)
    config = _checked(plain(_with_unknown(value, environ)), mark, problems, known, secrets)
    _require_sound((whole, whole_mark), [name for name in named if name != profile], known, environ)
    update: dict[str, Any] = {
        "profile": profile or "",
        "selection": selection,
        "source": shown_path(cwd / path, cwd) if path else "",
        "root": str(Path(os.path.abspath(cwd / path)).parent if path else Path(os.path.abspath(cwd))),
        "lines": {name: at.line for name, at in _written(mark, mark.path)},
        "columns": {name: at.column for name, at in _written(mark, mark.path)},
        "origins": dict(_origins(mark)),
    }
    # A path is no secret, though a variable such as CACHE_KEY may hold it.
    know_written(lambda: str(update["root"]))
    if config.accepted:
        file = Path(update["root"]) / config.accepted
        update["accepted_failures"] = load_accepted(file, cwd, named_at=mark.find(("accepted",)).place)
    shown = _public(value)
    # Gates are numbers and words to decide by, and no secrets: a variable there is shown with its value.
    agents = _agents_read(shown, config, known.agents)
    public = _unmarked(shown.model_copy(update={**update, **agents, "gates": config.gates}), config)
    update |= _agents_read(config, config, known.agents)
    return LoadedConfig(config.model_copy(update=update), public, secrets)


def _require_sound(
    file: tuple[dict[str, Any], Mark], names: Sequence[str], known: Known, environ: Mapping[str, str]
) -> None:
    """Raises ``AuthorError`` with what is wrong in profiles that are not taken now: a mistake in the nightly
    one is not to show at night. Where a variable of one is not set, that is a matter of another machine."""
    problems: list[Problem] = []
    for name in names:
        try:
            value, mark, _ = layered(*file, name, profiles_in(*file))
            unset: list[Problem] = []
            value = expand(value, mark, environ, unset, skip=_not_built(value))
            if not unset:
                value, mark = with_options_in_place(value, mark, known.agents, unset)
                secrets = secrets_in(value)
                know_marked(_marked_in(value), also=True)
                value, mark = _whole_agents(value, mark, unset)
                _checked(plain(_with_unknown(value, environ)), mark, unset, known, secrets)
        except AuthorError as error:
            problems += error.problems
    if problems:
        raise AuthorError(*dict.fromkeys(problems))


def _not_built(value: Any) -> frozenset[Loc]:
    """Where a variable that is not set would be a second message."""
    return frozenset(found.loc for found in not_built_in(value, "config"))


_FLAGS = {"models": "--model", "metrics": "--metric"}
"""Flags that are not called as the key that they set."""


def _flag_mark(key: str, value: Any) -> Mark:
    name = _FLAGS.get(key) or f"--{key.replace('_', '-')}"
    children = {k: Mark(name) for k in value} if isinstance(value, Mapping) else None
    return Mark(name, children=children)


def _with_model_in_place(
    high: Mapping[str, Any], marks: Mark, low: Mapping[str, Any], below: Mark
) -> tuple[Mapping[str, Any], Mark]:
    """``high`` with its PROVIDER/MODEL in place of the model's name alone, where the file describes another
    model of that provider: its address, key and limits stay. They are nothing to another provider."""
    chosen, described = _default_model(high), _default_model(low)
    name = described.get("model") if isinstance(described, Mapping) else None
    if not isinstance(chosen, str) or not isinstance(name, str):
        return high, marks
    if chosen.partition("/")[0] != name.partition("/")[0]:
        return high, marks
    models, default = below.find(("models",)), below.find(("models", "default"))
    by = Mark(marks.find(("models", "default")).path)
    in_it = Mark(default.path, default.line, default.column, {"model": by})
    around = Mark(models.path, models.line, models.column, {"default": in_it})
    layer = {**high, "models": {"default": {"model": chosen}}}
    return layer, Mark(marks.path, children={**dict(marks.pairs()), "models": around})


def _default_model(value: Mapping[str, Any]) -> Any:
    models = value.get("models")
    return models.get("default") if isinstance(models, Mapping) else None


def _at_file(merged: Mark, file: Mark) -> Mark:
    """Layers over the file do not move its beginning, where whatever is missing is missed."""
    return Mark(file.path, file.line, file.column, merged.children)


def _marked_in(value: Mapping[str, Any]) -> Iterator[str]:
    """What is marked as a secret, as far as it is text."""
    for _, agent in agents_in(value):
        listed = agent.get("secrets")
        for each in listed if isinstance(listed, list) else [listed]:
            if isinstance(each, str) and not mistake_in(each):
                yield str(each)


def _with_unknown(value: dict[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """``value`` with those secrets as such of which a variable is not known: a replay needs none."""

    def seen(agent: Any) -> Any:
        if not isinstance(agent, Mapping) or not isinstance(listed := agent.get("secrets"), list):
            return agent
        return {
            **agent,
            "secrets": [UnknownSecret(each) if is_unknown(each, environ) else each for each in listed],
        }

    agents, compare = value.get("agents"), value.get("compare")
    return {
        **value,
        **({"agent": seen(value["agent"])} if "agent" in value else {}),
        **({"agents": {k: seen(v) for k, v in agents.items()}} if isinstance(agents, Mapping) else {}),
        **({"compare": [seen(each) for each in compare]} if isinstance(compare, list) else {}),
    }


def _unmarked(public: Config, config: Config) -> Config:
    """``public`` with placeholders for the secrets that are written there as they are."""
    marked = placeholders_of([s for agent in config.all_agents for s in agent.secrets if MASK not in s])
    if not marked:
        return public

    def shown(agent: AgentConfig) -> AgentConfig:
        return agent.model_copy(update={"secrets": tuple(replaced(s, marked) for s in agent.secrets)})

    update = {
        "agent": shown(public.agent) if public.agent else None,
        "agents": {name: shown(agent) for name, agent in public.agents.items()},
        "compare": tuple(map(shown, public.compare)),
    }
    return public.model_copy(update=update)


def _read(path: Path, cwd: Path) -> tuple[dict[str, Any], Mark]:
    shown_as = shown_path(path, cwd)
    try:
        data = read_file(path, MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        what = f"the configuration cannot be read: {reason}"
        raise AuthorError(Problem(what, "", Place(shown_as))) from error
    know_written(lambda: data.decode("utf-8", "replace"))
    document = _parsed(data, shown_as, is_toml=path.suffix.lower() == ".toml")
    value = as_written(document, texts=_TEXT_KEYS, text_maps=_TEXT_MAPS, opaque=_OPAQUE_KEYS)
    if isinstance(value, dict):
        return value, document.mark
    what = f"expected a mapping, got {shown(value)}"
    raise AuthorError(
        Problem(what, "write for example agent: {target: my_agent.py:agent}", document.mark.place)
    )


def _parsed(data: bytes, shown_as: str, *, is_toml: bool) -> Document:
    if not is_toml:
        return parse(data, shown_as)
    document = parse_toml(data, shown_as)
    if document is None:
        raise AuthorError(Problem("there is no [tool.agenteval] table", "add it", Place(shown_as)))
    return document


def _checked(
    value: dict[str, Any], mark: Mark, problems: list[Problem], known: Known, secrets: tuple[str, ...]
) -> Config:
    unset = {problem.place for problem in problems}  # what is not there yet is not called empty, too
    found = (problem for problem in config_problems(value, mark, known) if problem.place not in unset)
    problems = [*problems, *found]
    config, wrong = validate(
        Config, value, mark, kind="config", skip=ProfileSelection.model_fields, found=problems
    )
    problems += wrong
    if config is None or problems:
        ordered = sorted(_told_once(problems), key=_by_place)
        mask = redactor(secrets)
        raise AuthorError(*(_without(problem, mask) for problem in ordered))
    return config


def _told_once(problems: list[Problem]) -> list[Problem]:
    """Without repetition; a mistake in ``agent`` is not a second one where ``compare`` inherits it."""
    kept = dict.fromkeys(problems)
    for problem in problems:
        if problem.what.startswith("compare."):
            original = problem._replace(what=f"agent.{problem.what.removeprefix('compare.')}")
            if original in kept:
                kept.pop(problem, None)
    return list(kept)


def _by_place(problem: Problem) -> tuple[int, int]:
    return (problem.place.line, problem.place.column) if problem.place else (0, 0)


def _without(problem: Problem, mask: Mask) -> Problem:
    return problem._replace(what=mask(problem.what), remedy=mask(problem.remedy))


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


def _whole_agents(value: dict[str, Any], mark: Mark, problems: list[Problem]) -> tuple[dict[str, Any], Mark]:
    """``agents`` named by their keys, and ``compare`` as whole agents, the primary one first. What has not
    the right shape is left for the model to refuse."""
    value = {**value, **_named(value, mark, problems)}
    agent, entries = value.get("agent"), value.get("compare")
    if not isinstance(entries, list) or not entries or not all(isinstance(e, Mapping) for e in entries):
        return value, mark
    primary = agent if isinstance(agent, Mapping) else None
    secrets: tuple[dict[str, Any], Mark] = ({}, Mark("", children={}))
    if primary is not None and "secrets" in primary:  # whoever answers is not to say them
        at_secrets = mark.find(("agent", "secrets"))
        secrets = {"secrets": primary["secrets"]}, Mark("", children={"secrets": at_secrets})
    wholes, marks = [], []
    for index, entry in enumerate(entries):
        where = mark.find(("compare", index))
        if not entry.get("name"):
            problems.append(Problem("an agent in compare needs a name", "add name:", where.place))
        inherits = primary is not None and not is_whole_agent(entry, primary)
        low, low_mark = (primary or {}, mark.find(("agent",))) if inherits else secrets
        whole = deep_merge(low, entry)
        wholes.append(whole if entry.get("name") else {**whole, "name": f"compare.{index}"})
        marks.append(merge_marks(low_mark, where, low, entry))
    if primary is not None:
        wholes.insert(0, dict(primary))
        marks.insert(0, mark.find(("agent",)))
    at = mark.find(("compare",))
    children = dict(mark.children) if isinstance(mark.children, dict) else {}
    children["compare"] = Mark(at.path, at.line, at.column, marks)
    return {**value, "compare": wholes}, Mark(mark.path, mark.line, mark.column, children)


def _named(value: Mapping[str, Any], mark: Mark, problems: list[Problem]) -> dict[str, Any]:
    agents = value.get("agents")
    if not isinstance(agents, Mapping):
        return {}
    named: dict[str, Any] = {}
    for name, agent in agents.items():
        if isinstance(agent, Mapping) and agent.get("name", name) != name:
            what = f"the agent is named '{name}' by its key and '{agent['name']}' by name:"
            problems.append(Problem(what, "remove name:", mark.find(("agents", name, "name")).place))
        named[name] = {**agent, "name": name} if isinstance(agent, Mapping) else agent
    return {"agents": named}


# ── what may be written down, and where it was written ───────────────────────────────────────────


def _public(value: dict[str, Any]) -> Config:
    """The configuration with variables unexpanded."""
    return _fitting(Config, written(value), plain(value)) or Config()


def _agents_read(config: Config, real: Config, adapters: Registry[AgentAdapter]) -> dict[str, Any]:
    """The agents of ``config``, options of the adapters that are built in as these read them. Of other
    packages' they stay as they were written: what their models make of them may not be data."""

    def read(agent: AgentConfig, like: AgentConfig) -> AgentConfig:
        if like.kind not in adapters.built_in:
            return agent
        options = _fitting(adapters.get(like.kind).options, agent.own, like.own)
        return agent.model_copy(update=options.model_dump()) if options else agent

    return {
        "agent": read(config.agent, real.agent) if config.agent and real.agent else None,
        "agents": {name: read(agent, real.agents[name]) for name, agent in config.agents.items()},
        "compare": tuple(map(read, config.compare, real.compare)),
    }


def _fitting(model: type[Model], shown_value: Any, real: Any) -> Model | None:
    """``shown_value`` as a model. Where only the ``real`` value has the right type (a number, a choice), that
    stays: it is not a secret."""
    for _ in range(3):
        try:
            return model.model_validate(shown_value)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                shown_value = _patched(shown_value, real, list(detail["loc"]))
    return None


def _patched(shown_value: Any, real: Any, loc: list[str | int]) -> Any:
    """``shown_value`` with the real value at ``loc``, as far as there is such a place."""
    if loc and isinstance(shown_value, dict) and loc[0] in shown_value:
        key, rest = str(loc[0]), loc[1:]
        return {**shown_value, key: _patched(shown_value[key], real[key], rest)}
    if loc and isinstance(shown_value, list) and isinstance(loc[0], int):
        items = list(shown_value)
        items[loc[0]] = _patched(items[loc[0]], real[loc[0]], loc[1:])
        return items
    return real


def _written(mark: Mark, path: str, prefix: str = "") -> Iterator[tuple[str, Mark]]:
    """Dotted key to its mark, of what the file itself says."""
    for key, below in mark.pairs():
        name = f"{prefix}{key}"
        if below.path == path:
            yield name, below
        yield from _written(below, path, f"{name}.")


def _origins(mark: Mark, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted key to the variable or flag that set it; a mapping only where nothing else is in it."""
    for key, below in mark.pairs():
        name = f"{prefix}{key}"
        if not below.line and below.children is None:
            yield name, below.path
        yield from _origins(below, f"{name}.")
