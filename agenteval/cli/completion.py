"""Shell completion (TAB): suggests scenario ids, run ids, and names from the configuration. If a file is
broken, only names that could be read are suggested; the command itself reports the error.

The program starts again each time TAB is pressed. A large suite is therefore cached in ``.agenteval`` until
one of its files changes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agenteval.cli.options import ProposedKind
from agenteval.files.scenario_files import CONFIG_NAMES, find_scenario_files

CACHE_FILE = ".agenteval/completion.json"
_CACHE_LIFETIME_S = 600
"""The lifetime of the cache in seconds. A limit is needed because some names come from sources that have no
file modification time."""

Options = Mapping[str, Any]
"""The parameters already given on the command line, keyed by name."""


def proposed_names(kind: ProposedKind, options: Options, incomplete: str) -> list[str]:
    """Return the names of the given kind that start with ``incomplete``."""
    try:
        found = _candidates(kind, options, incomplete)
        return [text for text in found if text.startswith(incomplete) and "\n" not in text]
    except (Exception, SystemExit):  # an error would garble the line that is being typed
        return []


def _candidates(kind: ProposedKind, options: Options, incomplete: str) -> Iterable[str]:
    match kind:
        case "scenarios" | "files" if "::" in incomplete:
            file, _, _ = incomplete.partition("::")
            return (f"{file}::{id}" for id in _ids_in(file, options))
        case "scenarios":
            return (id for _, id in _suite(options)["scenarios"])
        case "files":  # the shell itself completes file names
            return ()
        case "categories":
            from agenteval.core.scenario import Category

            return Category
        case "reports":
            from agenteval.reporters import REPORTERS

            return (name for name in REPORTERS if name != "terminal")
        case "runs":
            return _runs()
        case "conversations":
            return [*_conversations(), *_runs()]
        case _:
            names: list[str] = _suite(options)[kind]
            return names


def _runs() -> list[str]:
    """Return ``latest`` and ``previous``, followed by the run ids, newest first."""
    from agenteval.files.runs import find_run_folders
    from agenteval.running.stored_runs import runs_root

    return ["latest", "previous", *(folder.name for folder in find_run_folders(runs_root())[::-1])]


def _conversations() -> list[str]:
    """Return the scenario ids of the latest run. The ids are read from the first line of the journal, which
    is fast. Conversations of a ``score`` run are not listed in that line and are therefore not included."""
    from agenteval.files.runs import JOURNAL_FILE, find_run
    from agenteval.running.stored_runs import runs_root

    with (find_run("latest", runs_root()) / JOURNAL_FILE).open(encoding="utf-8") as file:
        return list(json.loads(file.readline())["plan"]["scenarios"])


def _ids_in(file: str, options: Options) -> Iterator[str]:
    path = os.path.abspath(file)
    for scenario_file, id in _suite(options)["scenarios"]:
        if scenario_file == path or Path(scenario_file).as_posix().endswith(f"/{file}"):
            yield id


# ── what a suite holds ───────────────────────────────────────────────────────────────────────────


def _suite(options: Options) -> dict[str, Any]:
    """Return the names in the suite: ``scenarios`` (pairs of file and id), ``tags``, ``agents``, ``metrics``
    and ``profiles``."""
    config, profile = options.get("config"), options.get("profile")
    cached = _load_cached_suite() if config is profile is None else None
    return cached or _load_suite(config, profile)


def _load_cached_suite() -> dict[str, Any] | None:
    """Return the cached suite, or None if a file has been changed, added or deleted since the suite was
    cached."""
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / CACHE_FILE).is_file()), None)
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        if root is None:
            return None
        found = json.loads((root / CACHE_FILE).read_text(encoding="utf-8"))
        if (
            time.time() - found["read_at"] > _CACHE_LIFETIME_S
            or _file_state(root, found["patterns"]) != found["state"]
        ):
            return None
        suite: dict[str, Any] = found["suite"]
        return suite
    return None


def _file_state(root: Path, patterns: Mapping[str, list[str]]) -> list[list[Any]]:
    """Return the modification time and size of each file of the suite, of its data tables, and of the
    configurations from the working directory upward."""
    here = Path.cwd()
    folders = [folder for folder in (here, *here.parents) if folder.is_relative_to(root)]
    known = [folder / name for folder in folders for name in (*CONFIG_NAMES, "pyproject.toml")]
    found = find_scenario_files(root, patterns["include"], patterns["exclude"])
    known += [*found, *map(Path, patterns["tables"])]
    stats = [(str(path), path.stat()) for path in known if path.is_file()]
    return [[path, stat.st_mtime_ns, stat.st_size] for path, stat in stats]


def _load_suite(config_file: str | None, profile: str | None) -> dict[str, Any]:
    from agenteval.core.selection import scenario_file
    from agenteval.files.scenario_loader import PartlyReadError
    from agenteval.planning.request import Request
    from agenteval.planning.suite import load_config, load_scenarios
    from agenteval.running.registries import REGISTRIES

    request = Request(config=config_file, profile=profile)
    config = load_config(request, REGISTRIES).config
    try:
        found, is_whole = load_scenarios(request, config).loaded, config_file is profile is None
    except PartlyReadError as error:
        found, is_whole = error.scenarios, False
    suite = {
        "scenarios": [[os.path.abspath(scenario_file(each)), each.id] for each in found],
        "tags": sorted({tag for each in found for tag in each.tags}),
        "agents": list(dict.fromkeys(agent.name for agent in config.all_agents)),
        "metrics": _metrics(config),
        "profiles": _profiles(Path(config.source)) if config.source else [],
    }
    if is_whole:
        tables = {os.path.abspath(each.row.rpartition(":")[0]) for each in found if each.row}
        patterns = {"include": [*config.include], "exclude": [*config.exclude], "tables": sorted(tables)}
        _save_suite(suite, Path(config.root), patterns)
    return suite


def _metrics(config: Any) -> list[str]:
    from agenteval.planning.judge_setup import load_metrics

    with suppress(Exception):  # one broken rubric must not prevent proposals of ids
        return list(load_metrics(config).available)
    return []


def _profiles(path: Path) -> list[str]:
    from agenteval.files.config_file import profile_names

    return profile_names(path)


def _save_suite(suite: Mapping[str, Any], root: Path, patterns: Mapping[str, list[str]]) -> None:
    """Cache the suite. Nothing is cached before the first run has been stored, because pressing TAB should
    not create a folder."""
    with suppress(OSError, ValueError):
        cached = {
            "read_at": time.time(),
            "patterns": patterns,
            "state": _file_state(root, patterns),
            "suite": suite,
        }
        if (root / CACHE_FILE).parent.is_dir():
            temporary = root / f"{CACHE_FILE}.{os.getpid()}"
            temporary.write_text(json.dumps(cached), encoding="utf-8")
            temporary.replace(root / CACHE_FILE)
