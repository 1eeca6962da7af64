"""Finds the files on which a run is based. Reports must not overwrite these files, and their hashes ensure
that a run is not resumed with a different agent."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeGuard

from agenteval.core.config import Config
from agenteval.core.scenario import Scenario
from agenteval.files.redaction import MASK
from agenteval.verdict.resumption import RESULT_NEUTRAL_KEYS, VARIABLES_SUFFIX

_LIBRARIES = frozenset(("site-packages", "dist-packages"))
_PACKAGE = Path(__file__).parents[1]


def file_hashes(
    config: Config, public: Config, scenarios: Sequence[Scenario], secrets: Sequence[str]
) -> dict[str, str]:
    """Return the SHA-256 hash of each file, keyed by file name. For a model file, the size and modification
    time are used instead of a hash. The result also contains a hash of the value of each configuration key
    with variables, keyed by ``KEY: ${…}``. Secrets and server addresses are removed from the value before
    hashing. Call this function only after everything is loaded, because the author's modules are found among
    the imported modules."""
    root = Path(config.root)
    found = {_display_name(path, root): _hash(path.read_bytes()) for path in _files(config, scenarios, root)}
    for path in _model_files(config, root):
        found[_display_name(path, root)] = f"{path.stat().st_size} bytes, {path.stat().st_mtime_ns}"
    return dict(sorted(found.items())) | dict(_variable_hashes(config, public, secrets))


def is_unchanged_file(path: Path, root: str, sources: Mapping[str, str]) -> bool:
    """Check whether a file is byte-for-byte identical to the file that a run read. ``root`` is the folder of
    the run's configuration, and ``sources`` is the result of ``file_hashes`` for that run."""
    found = path.resolve()
    return sources.get(_display_name(found, Path(root))) == _hash(found.read_bytes())


def find_secrets_in_files(
    secrets: Sequence[str], config: Config, scenarios: Sequence[Scenario], *, cwd: str
) -> frozenset[str]:
    """Return the secrets that the author wrote into a scenario or another file used by the run, such as the
    agent's module. Such secrets are the same in every environment. The configuration is not searched, because
    it contains only the names of secrets. ``cwd`` is the working directory in which the scenarios were
    loaded."""
    if not secrets:
        return frozenset()
    root = Path(config.root)
    paths = {*_scenario_files(scenarios, cwd), *_files(config, scenarios, root)}
    files = [path.read_bytes() for path in paths if path.is_file()]
    return frozenset(each for each in secrets if any(os.fsencode(each) in data for data in files))


def list_input_files(config: Config, scenarios: Iterable[Scenario], *, cwd: str) -> Iterator[Path]:
    """Yield the configuration, the scenarios, and all other known input files. Only Python modules that have
    been imported are included. ``cwd`` is the working directory in which the scenarios were loaded."""
    root, scenarios = Path(config.root), tuple(scenarios)
    if config.source:
        yield root / Path(config.source).name
    yield from _scenario_files(scenarios, cwd)
    yield from _files(config, scenarios, root)


def _scenario_files(scenarios: Iterable[Scenario], cwd: str) -> set[Path]:
    places = {place for scenario in scenarios for place in (scenario.source, scenario.row) if place}
    return {Path(cwd, place.rpartition(":")[0]) for place in places}


def config_files(config: Config) -> Iterator[Path]:
    """Yield the files that the configuration names, such as prompts, policies and the modules of agents, and
    the configuration itself."""
    root = Path(config.root)
    if config.source:
        yield (root / Path(config.source).name).resolve()
    yield from _existing(root / name for name in _named_files(config) if _may_be_path(name))


def _files(config: Config, scenarios: Sequence[Scenario], root: Path) -> Iterator[Path]:
    yield from _existing(root / name for name in _named_files(config) if _may_be_path(name))
    tools = [tool for scenario in scenarios for tool in scenario.every_tool.values()]
    mocks = [(tool.base, target) for tool in tools for target in tool.functions.values()]
    yield from _existing(Path(base) / file_of_target(target) for base, target in mocks)
    yield from _existing(Path(s.base) / file_of_target(s.world) for s in scenarios if s.world)
    yield from _existing(path for s in scenarios if s.state for path in s.state.files)
    checks = [
        (s.base, target)
        for s in scenarios
        for _, expect in s.with_waived.expectations
        for target in expect.python
    ]
    yield from _existing(Path(base) / file_of_target(target) for base, target in checks)
    yield from _existing(Path(s.base, s.user_prompt) for s in scenarios if s.user_prompt)
    hooks = [(s.base, target) for s in scenarios for target in (s.setup, s.teardown) if target]
    yield from _existing(Path(base) / file_of_target(target) for base, target in hooks)
    yield from _author_modules(root.resolve())


def _named_files(config: Config) -> Iterator[str | None]:
    """Yield the strings in the configuration that may name a file relative to the configuration's folder."""
    yield from (agent.policy for agent in config.all_agents)
    yield from config.custom_metrics
    yield from config.prompts.values()
    yield config.accepted
    yield from _models(config, "scripted")
    targets = (*_option_texts(agent.adapter_options for agent in config.all_agents), *config.custom_metrics)
    yield from (file_of_target(target) or target for target in targets)


def _may_be_path(name: str | None) -> TypeGuard[str]:
    return name is not None and name != "" and "\n" not in name and len(name) < 500


def file_of_target(target: str) -> str:
    """Return the file part of a target, such as ``agent.py`` for ``agent.py:agent``."""
    return target.rpartition(":")[0]


def _option_texts(options: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the strings in agents' options. Any of these strings may refer to code, such as
    ``agent.py:agent`` or ``[node, bot.js]``."""
    for value in (value for adapter_options in options for value in adapter_options.values()):
        listed = value if isinstance(value, list | tuple) else [value]
        yield from (text for text in listed if isinstance(text, str))


def _author_modules(root: Path) -> Iterator[Path]:
    """Yield the author's own modules: imported modules below the configuration's folder, except libraries."""
    named = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    beneath = os.path.join(root, "")
    for name in named:
        if not name or not name.endswith(".py"):
            continue
        found = _resolve_module_path(name)
        if not found.startswith(beneath):
            continue
        path = Path(found)
        is_library = path.is_relative_to(_PACKAGE) or _LIBRARIES & set(path.relative_to(root).parts)
        if not is_library and path.is_file():
            yield path


@cache
def _resolve_module_path(name: str) -> str:
    """Return the real path of a module. Results are cached, because about a thousand modules in about fifty
    folders are resolved repeatedly."""
    if os.path.islink(name):
        return os.path.realpath(name)
    folder, file = os.path.split(name)
    return os.path.join(_resolved_folder(folder), file)


_resolved_folder = cache(os.path.realpath)


def _existing(paths: Iterable[Path]) -> Iterator[Path]:
    yield from (path.resolve() for path in paths if os.path.isfile(path))


def _models(config: Config, provider: str) -> list[str]:
    return [model.name for model in config.models.all if model.provider == provider]


def _model_files(config: Config, root: Path) -> Iterator[Path]:
    yield from _existing(root / name for name in _models(config, "local"))


def _variable_hashes(config: Config, public: Config, secrets: Sequence[str]) -> Iterator[tuple[str, str]]:
    filled, written = (
        each.model_dump(mode="json", exclude=set(RESULT_NEUTRAL_KEYS)) for each in (config, public)
    )
    for key, value in filled.items():
        if value != written[key]:
            text = json.dumps(_without_addresses(value, written[key]), ensure_ascii=False, sort_keys=True)
            for secret in secrets:
                text = text.replace(json.dumps(secret, ensure_ascii=False)[1:-1], MASK)
            yield f"{key}{VARIABLES_SUFFIX}", _hash(text.encode("utf-8", "surrogatepass"))


def _without_addresses(value: Any, written: Any) -> Any:
    """Remove server addresses. They may differ from run to run, and any change that matters should be visible
    in the configuration's text."""
    if isinstance(value, Mapping) and isinstance(written, Mapping):
        keys = [key for key in value if key not in ("endpoint", "base_url")]
        return {key: _without_addresses(value[key], written.get(key)) for key in keys}
    return value


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def _display_name(path: Path, root: Path) -> str:
    resolved = root.resolve()
    return (path.relative_to(resolved) if path.is_relative_to(resolved) else path).as_posix()
