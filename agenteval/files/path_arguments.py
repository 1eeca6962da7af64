"""Resolves the path arguments on the command line: files, folders, and ``FILE::ID`` for a single scenario in
a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, NothingSelectedError, Problem
from agenteval.core.scenario import Scenario
from agenteval.core.selection import (
    ID_SEPARATOR,
    describe_unknown_id,
    path_ends_with,
    scenario_file,
    split_id,
)
from agenteval.files.scenario_files import display_path, find_files_under, find_scenario_files


@dataclass(frozen=True)
class PathSelection:
    """The files selected by path arguments, with the scenario ids selected in each file."""

    files: tuple[Path, ...]
    """The files that contain the selected scenarios."""
    ids_by_file: dict[str, tuple[str, ...]]
    """The ids selected in each file, keyed by the file's real path. All scenarios are selected in files that
    are not listed here."""

    def select_scenarios(self, scenarios: Iterable[Scenario]) -> tuple[Scenario, ...]:
        """Return the selected scenarios. Raise ``NothingSelectedError`` for an id that does not exist in its
        file."""
        loaded = tuple(scenarios)
        in_files: dict[str, dict[str, Scenario]] = {file: {} for file in self.ids_by_file}
        for scenario in loaded if self.ids_by_file else ():
            in_files.setdefault(os.path.realpath(scenario_file(scenario)), {})[scenario.id] = scenario
        problems = [
            describe_unknown_id(display_path(Path(file), Path.cwd()), name, in_files[file])
            for file, names in self.ids_by_file.items()
            for name in names
            if name not in in_files[file]
        ]
        if problems:
            raise NothingSelectedError(*problems)
        left_out = {
            id for file, names in self.ids_by_file.items() for id in in_files[file] if id not in names
        }
        return tuple(scenario for scenario in loaded if scenario.id not in left_out)


def resolve_path_arguments(paths: Sequence[str], config: Config, cwd: Path) -> PathSelection:
    """Resolve path arguments to files and scenario ids. Without ``paths``, use the files that the
    configuration includes. The ``FILE`` in ``FILE::ID`` may be only the end of an included file's path, as
    shown in reports. Raise ``AuthorError`` for a path that does not exist."""
    root = Path(config.root)
    if not paths:
        return PathSelection(tuple(find_scenario_files(root, config.include, config.exclude)), {})
    unrestricted: list[str | Path] = []
    ids_by_path: dict[str, dict[str, None]] = {}
    arguments: list[str | Path] = []
    for path in paths:
        file, name = _split(path, cwd)
        found: Sequence[str | Path] = [file]
        if name and not os.path.exists(cwd / file):
            included = find_scenario_files(root, config.include, config.exclude)
            found = [each for each in included if path_ends_with(str(each), file)] or [file]
        arguments += found
        if not name:
            unrestricted += found
            continue
        if os.path.isdir(cwd / file):
            what = f"{path}: {file} is a folder"
            raise AuthorError(Problem(what, f"specify the file, or use `{file} -s ID`"))
        for each in found:
            ids_by_path.setdefault(os.path.realpath(cwd / each), {})[name] = None
    files = find_files_under(arguments, cwd)
    read_in_full = {
        os.path.realpath(each) for each in (find_files_under(unrestricted, cwd) if unrestricted else ())
    }
    return PathSelection(
        tuple(files), {file: tuple(ids) for file, ids in ids_by_path.items() if file not in read_in_full}
    )


def _split(path: str, cwd: Path) -> tuple[str, str]:
    """Split an argument into a file and an id. The id is empty for a plain path."""
    file, name = split_id(path)
    return (file, name) if name and not os.path.exists(cwd / path) else (path, "")


def absolute_path_argument(path: str, cwd: str) -> str:
    """Make a path argument absolute so that it does not depend on the working directory."""
    file, name = _split(path, Path(cwd))
    if not name:
        return os.path.abspath(Path(cwd, path))
    here = Path(cwd, file)
    return f"{os.path.abspath(here) if os.path.exists(here) else file}{ID_SEPARATOR}{name}"
