"""Finds the files that contain scenarios, using the configuration's glob patterns or the paths on the command
line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PurePath

from agenteval.core.errors import AuthorError, NothingSelectedError, Place, Problem, did_you_mean
from agenteval.files.regular_files import read_file

SUFFIXES = (".yaml", ".yml")
CONFIG_NAMES = ("agenteval.yaml", "agenteval.yml")
_SKIPPED_FOLDERS = frozenset(("node_modules", "__pycache__", "site-packages"))
_MAGIC = re.compile(r"[*?\[]")
_TOP_LEVEL_KEY = re.compile(rb"""^(?:\{\s*)?["']?([^\s#"':{\-%.][^\s:"']*)["']?\s*:""", re.MULTILINE)


def display_path(path: Path, cwd: Path) -> str:
    """Return ``path`` for display in messages. It is relative to the working directory if it is inside that
    directory."""
    absolute = os.path.abspath(path)
    try:
        return Path(absolute).relative_to(os.path.abspath(cwd)).as_posix()
    except ValueError:
        return absolute


def find_scenario_files(root: Path, include: Sequence[str], exclude: Sequence[str] = ()) -> list[Path]:
    """Find the scenario files that match the glob patterns, relative to ``root``. The result is sorted and
    contains no duplicates.

    ``**`` matches any folders except hidden folders and virtual environments. A pattern in ``exclude`` that
    matches a folder excludes everything below the folder."""
    root = Path(os.path.abspath(root))
    found = {path: None for pattern in include for path in _matching(root, pattern)}
    return _distinct(path for path in sorted(found) if not _is_excluded(path, root, exclude))


def glob_base(pattern: str) -> str:
    """Return the folder (or file) that contains all matches of a pattern."""
    return str(Path(*takewhile(lambda part: not _MAGIC.search(part), Path(pattern).parts)))


def is_pattern(path: str) -> bool:
    """Check whether a path contains a wildcard of a glob pattern."""
    return _MAGIC.search(path) is not None


def _matching(root: Path, pattern: str) -> Iterator[Path]:
    parts = Path(pattern).parts
    fixed = len(Path(glob_base(pattern)).parts)
    base = Path(os.path.normpath(root.joinpath(*parts[:fixed])))
    if fixed == len(parts):
        if os.path.isdir(base):
            yield from _scenario_files_below(base)
        elif os.path.exists(base):
            yield base
        return
    matches = _glob("/".join(parts[fixed:]))
    for path in _walk(base):
        if matches.fullmatch(path.relative_to(base).as_posix()) and _is_scenario_file(path):
            yield path


def _is_excluded(path: Path, root: Path, exclude: Sequence[str]) -> bool:
    name = Path(os.path.relpath(path, root)).as_posix()
    names = [name, *(parent.as_posix() for parent in Path(name).parents)]
    patterns = [_glob(PurePath(pattern).as_posix()) for pattern in exclude]
    return any(pattern.fullmatch(each) for pattern in patterns for each in names)


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    """Translate a glob pattern to a regular expression: ``*`` and ``?`` match within a name, ``[…]`` matches
    one of several characters, and ``**`` matches any number of nested folders."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[!?[^\]]+\])", pattern)
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    text = "".join(
        wild.get(piece) or (_character_set(piece) if index % 2 else re.escape(piece))
        for index, piece in enumerate(pieces)
    )
    return re.compile(text, re.DOTALL)


def _character_set(piece: str) -> str:
    inside = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
    inside = "^" + inside[1:] if inside.startswith("!") else inside.replace("^", "\\^")
    try:
        re.compile(f"[{inside}]")
    except re.error:
        return re.escape(piece)
    return f"[{inside}]"


def find_files_under(paths: Iterable[Path | str], cwd: Path) -> list[Path]:
    """Return the scenario files named on the command line. Files are returned as given, and folders are
    searched for YAML files, which are sorted. A glob pattern that names no file is expanded, because not
    every shell does so. Raise ``AuthorError`` for paths that do not exist, and
    ``NothingSelectedError`` for folders without scenario files."""
    found: list[Path] = []
    problems: list[Problem] = []
    empty: list[Problem] = []
    for argument in map(Path, paths):
        path = cwd / argument
        if os.path.isdir(path):
            below = _scenario_files_below(path)
            found += below
            if not below:
                empty.append(Problem("this folder contains no scenario file", "", Place(str(argument))))
        elif os.path.exists(path):
            found.append(path)
        elif is_pattern(str(argument)):
            matching = find_scenario_files(cwd, [str(argument)])
            found += matching
            if not matching:
                empty.append(Problem("this pattern matches no scenario file", "", Place(str(argument))))
        else:
            problems.append(_missing_path(argument, path))
    if problems:
        raise AuthorError(*problems)
    if empty:
        raise NothingSelectedError(*empty)
    return _distinct(found)


def unmatched_files(root: Path, include: Sequence[str], exclude: Sequence[str] = ()) -> list[str]:
    """Return the patterns that match no scenario file."""
    return [pattern for pattern in include if not find_scenario_files(root, [pattern], exclude)]


def near_file(path: Path) -> str:
    """Return a question that suggests a similarly named file in the same folder, or an empty string if there
    is no such file."""
    try:
        near = did_you_mean(path.name, [each.name for each in path.parent.iterdir() if each.is_file()])
    except OSError:
        return ""
    return near if near.startswith("did you") else ""


def _missing_path(argument: Path, path: Path) -> Problem:
    while not os.path.isdir(path.parent) and path != path.parent:
        path = path.parent
    try:
        names = [p.name for p in path.parent.iterdir() if p.is_dir() or _has_suffix(p)]
    except OSError:
        names = []
    near = did_you_mean(path.name, names)
    remedy = near if near.startswith("did you") else "specify a scenario file or a folder of scenario files"
    return Problem("no such file or folder", remedy, Place(str(argument)))


def _scenario_files_below(folder: Path) -> list[Path]:
    return sorted(path for path in _walk(folder) if _has_suffix(path) and _is_scenario_file(path))


def _walk(folder: Path) -> Iterator[Path]:
    """Yield everything below ``folder`` that is not a folder, including broken links and named pipes. The
    loader reports these so that a suite does not shrink unnoticed. A folder that is reached twice, for
    example through a circular link, is searched only once."""
    seen: set[str] = set()
    for here, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(here)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not _is_skipped(Path(here, name)))
        yield from (Path(here, name) for name in files if not name.startswith("."))


def _is_skipped(folder: Path) -> bool:
    name = folder.name
    return name.startswith(".") or name in _SKIPPED_FOLDERS or (folder / "pyvenv.cfg").exists()


def _has_suffix(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def _is_scenario_file(path: Path) -> bool:
    """Check whether a file that was not named explicitly is a scenario file, that is, neither a configuration
    nor a scripted model."""
    return path.name not in CONFIG_NAMES and not _is_scripted_model(path)


def _is_scripted_model(path: Path) -> bool:
    """Check whether the only top-level key is ``replies``. Return ``False`` for a file that cannot be read,
    so that the loader reports it."""
    try:
        data = read_file(path)
    except OSError:
        return False
    return b"replies" in data and set(_TOP_LEVEL_KEY.findall(data)) == {b"replies"}


def _distinct(paths: Iterable[Path]) -> list[Path]:
    """Return each file once, even if several paths lead to it."""
    kept: dict[str, Path] = {}
    for path in paths:
        kept.setdefault(os.path.realpath(path), path)
    return list(kept.values())
