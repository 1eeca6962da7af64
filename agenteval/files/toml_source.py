"""Reads ``[tool.agenteval]`` in a ``pyproject.toml``, with the line number of every key that a text search
can find.

Python's TOML parser does not report locations. Searching for ``key =`` in the right table finds nearly all
keys; any remaining key is given the location of its nearest parent key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.files.yaml_source import MAX_BYTES, MAX_DEPTH, Mark, SourceDocument

SECTION = ("tool", "agenteval")
_HEADER = re.compile(r"^\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_ASSIGNMENT = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_AT = re.compile(r"^(.*?) \(at line (\d+), column (\d+)\)$", re.DOTALL)


def parse_toml(data: bytes, path: str) -> SourceDocument | None:
    """Return the ``[tool.agenteval]`` section of a ``pyproject.toml``, or ``None`` if there is no such
    section. Raise ``AuthorError`` for invalid TOML."""
    if len(data) > MAX_BYTES:
        raise AuthorError(Problem("the file is too large", "", Place(path)))
    try:
        text = data.decode("utf-8")
        section: Any = tomllib.loads(text)
    except UnicodeDecodeError as error:
        place = Place(path, data.count(b"\n", 0, error.start) + 1)
        raise AuthorError(Problem("the file is not valid UTF-8", "save it as UTF-8", place)) from None
    except (ValueError, RecursionError) as error:
        raise AuthorError(_syntax_problem(error, path)) from None
    for name in SECTION:
        section = section.get(name) if isinstance(section, Mapping) else None
    if section is None:
        return None
    if _is_deep(section):
        raise AuthorError(_syntax_problem(RecursionError(), path))
    file = _File.of(text)
    at = file.places.get(SECTION, (1, 1))
    return SourceDocument(_dates_to_text(section), _build_mark(section, SECTION, Mark(path, *at), file))


def _syntax_problem(error: Exception, path: str) -> Problem:
    if isinstance(error, RecursionError):
        return Problem("not valid TOML: nested too deeply", "", Place(path))
    match = _AT.match(str(error))
    if match:
        return Problem(f"not valid TOML: {match[1]}", "", Place(path, int(match[2]), int(match[3])))
    return Problem(f"not valid TOML: {error}", "", Place(path))


def _is_deep(section: Any) -> bool:
    """Check whether a value is nested more deeply than YAML files may be. Dotted keys in TOML allow unlimited
    nesting."""
    level = [section]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for outer in level
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _dates_to_text(value: Any) -> Any:
    """Convert dates and times to strings, as the YAML reader does."""
    if isinstance(value, dict):
        return {key: _dates_to_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_dates_to_text(item) for item in value]
    return value.isoformat() if isinstance(value, date | datetime | time) else value


def _split_key(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _places(text: str) -> dict[tuple[str | int, ...], tuple[int, int]]:
    """Return the line and column of every table and every ``key =``. The items in an array of tables are
    identified by their index."""
    found: dict[tuple[str | int, ...], tuple[int, int]] = {}
    counts: dict[tuple[str, ...], int] = {}
    table: tuple[str | int, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            name = _split_key(header[1])
            table = name
            found.setdefault(table, (number, line.index("[") + 1))
            if line.lstrip().startswith("[["):
                table = (*name, counts.get(name, 0))
                counts[name] = counts.get(name, 0) + 1
                found[table] = (number, line.index("[") + 1)
        elif assignment := _ASSIGNMENT.match(line):
            parts = _split_key(assignment[1])
            for end in range(1, len(parts) + 1):
                found.setdefault((*table, *parts[:end]), (number, assignment.start(1) + 1))
    return found


class _File(NamedTuple):
    """The text of a file, and where its tables and assignments stand."""

    lines: Sequence[str]
    places: Mapping[tuple[str | int, ...], tuple[int, int]]
    starts: Collection[int]
    """The lines on which tables and assignments begin."""

    @classmethod
    def of(cls, text: str) -> _File:
        places = _places(text)
        return cls(text.splitlines(), places, frozenset(line for line, _ in places.values()))


class _InlineKeys:
    """Finds the keys of the inline tables of one assignment, in the order in which they stand there."""

    def __init__(self, file: _File, line: int, column: int) -> None:
        self._file = file
        self._first = self._line = line
        self._start = file.lines[line - 1].find("=", column - 1) + 1  # behind the assignment's own key

    def find(self, key: str) -> tuple[int, int] | None:
        """Find a key behind the one that was found last, up to the next table or assignment."""
        pattern = re.compile(rf"""(?<![\w-])["']?{re.escape(key)}["']?\s*=(?!=)""")
        for number in range(self._line, len(self._file.lines) + 1):
            if number in self._file.starts and number != self._first:
                break
            start = self._start if number == self._line else 0
            if found := pattern.search(self._file.lines[number - 1], start):
                self._line, self._start = number, found.end()
                return number, found.start() + 1
        return None


def _build_mark(
    value: Any,
    loc: tuple[str | int, ...],
    mark: Mark,
    file: _File,
    inline: _InlineKeys | None = None,
) -> Mark:
    """Give each key and item its location. ``inline`` finds the keys of the assignment that contains the
    value."""
    inline = inline or _InlineKeys(file, mark.line, mark.column)

    def child(part: str | int, item: Any) -> Mark:
        if at := file.places.get((*loc, part)):
            return _build_mark(item, (*loc, part), Mark(mark.path, *at), file)
        at = inline.find(part) if isinstance(part, str) else None
        found = Mark(mark.path, *(at or (mark.line, mark.column)))
        return _build_mark(item, (*loc, part), found, file, inline)

    if isinstance(value, dict):
        mark.children = {key: child(key, item) for key, item in value.items()}
    elif isinstance(value, list):
        mark.children = [child(index, item) for index, item in enumerate(value)]
    return mark
