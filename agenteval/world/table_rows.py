"""Reads the rows of a start state's tables with the place of each value, and gives the values types."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.core.json_text import STRICT_DECODER, to_json
from agenteval.files.data_rows import Table, read_table
from agenteval.files.redaction import register_author_text
from agenteval.files.regular_files import read_file, wrap_read_errors
from agenteval.files.scenario_files import display_path, near_file
from agenteval.files.yaml_scalars import display_value
from agenteval.files.yaml_source import MAX_BYTES
from agenteval.world.start_state import is_boolean_type, is_json_type

PlaceOf = Callable[[tuple[str | int, ...]], Place | None]
"""Returns the place of a part of the author's ``state``, such as ``("tables", "orders", 3, "total")``."""


class SourceRow(NamedTuple):
    """A row as the author wrote it."""

    values: Mapping[str, Any]
    place_of: Callable[[tuple[str, ...]], Place | None]
    """Returns the place of the row, for ``()``, or of a column."""


class SourceTable(NamedTuple):
    """The rows that an author wrote for a table, in the scenario or in a file."""

    name: str
    rows: tuple[SourceRow, ...]
    types: Mapping[str, str]
    """The types that the author gives to columns."""
    is_text: bool
    """True if all values are texts, and an empty one is NULL (CSV)."""
    place: Place | None

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order of their first occurrence."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.values))


class StateFiles(NamedTuple):
    """Finds the files that a state names."""

    base: Path
    """The folder to which their paths are relative: that of the scenario's file."""
    cwd: Path

    def find(self, path: str, place: Place | None) -> tuple[Path, str]:
        """Return the full path of a file, and its path for messages. Raise ``AuthorError``."""
        full_path = self.base / path
        if not path.strip() or not full_path.exists():
            what = f"the file '{path}' does not exist (paths are relative to this file)"
            raise AuthorError(Problem(what, near_file(full_path), place))
        return full_path, display_path(full_path, self.cwd)

    def read(self, path: str, place: Place | None) -> tuple[bytes, str]:
        """Return the content of a file, and its path for messages. Raise ``AuthorError``."""
        full_path, shown_as = self.find(path, place)
        with wrap_read_errors(f"'{path}'", place):
            data = read_file(full_path, MAX_BYTES + 1)
        register_author_text(lambda: data.decode("utf-8", "replace"))
        return data, shown_as


def read_source(name: str, source: Any, files: StateFiles, place_of: PlaceOf) -> SourceTable:
    """Read a table: a list of rows, the path of a file, or ``{file, types}``. Raise ``AuthorError``."""
    loc: tuple[str | int, ...] = ("tables", name)
    if isinstance(source, str):
        return _from_file(name, source, {}, files, place_of(loc))
    if isinstance(source, Mapping):
        return _from_mapping(name, source, files, place_of)
    if not isinstance(source, list | tuple):
        what = f"expected rows or a file, got {display_value(source)}"
        raise AuthorError(Problem(what, "use [{id: 1}], or orders.csv", place_of(loc)))
    _check_rows(source, loc, place_of)
    rows = tuple(
        SourceRow(row, lambda column, index=index: place_of((*loc, index, *column)))  # type: ignore[misc]
        for index, row in enumerate(source)
    )
    return SourceTable(name, rows, {}, is_text=False, place=place_of(loc))


def _check_rows(source: Sequence[Any], loc: tuple[str | int, ...], place_of: PlaceOf) -> None:
    wrong = [(index, row) for index, row in enumerate(source) if not isinstance(row, Mapping)]
    if wrong:
        what, remedy = "expected a mapping, got {}", "use {column: value}"
        problems = (Problem(what.format(display_value(row)), remedy, place_of((*loc, i))) for i, row in wrong)
        raise AuthorError(*problems)


def _from_mapping(name: str, source: Mapping[str, Any], files: StateFiles, place_of: PlaceOf) -> SourceTable:
    loc = ("tables", name)
    path, types = source.get("file"), source.get("types", {})
    if not isinstance(path, str) or not isinstance(types, Mapping) or source.keys() - {"file", "types"}:
        remedy = "use {file: a.csv, types: {age: integer}}, or a list of rows"
        raise AuthorError(Problem("expected a file and types", remedy, place_of(loc)))
    table = _from_file(name, path, types, files, place_of((*loc, "file")))
    if problems := [*_type_problems(table, loc, place_of)]:
        raise AuthorError(*problems)
    return table


def _type_problems(table: SourceTable, loc: tuple[str, ...], place_of: PlaceOf) -> list[Problem]:
    problems = []
    for column, kind in table.types.items():
        at = place_of((*loc, "types", column))
        if column not in table.columns:
            what = f"the file has no column '{column}'"
            problems.append(Problem(what, did_you_mean(str(column), table.columns), at))
        if kind not in DECLARED_TYPES:
            what = f"unknown type {display_value(kind)}"
            problems.append(Problem(what, did_you_mean(str(kind), DECLARED_TYPES), at))
    return problems


def _from_file(
    name: str, path: str, types: Mapping[str, str], files: StateFiles, place: Place | None
) -> SourceTable:
    table: Table = read_table(*files.read(path, place))
    rows = tuple(
        SourceRow(row.value, lambda column, mark=row.mark: mark.find(column).place)  # type: ignore[misc]
        for row in table.rows
    )
    return SourceTable(name, rows, types, is_text=table.is_text, place=place)


# ── types ────────────────────────────────────────────────────────────────────────────────────────

DECLARED_TYPES = {
    "integer": "INTEGER",
    "real": "REAL",
    "text": "TEXT",
    "boolean": "BOOLEAN",
    "json": "JSON TEXT",  # JSON alone would turn the text 25.0 into a number
}
"""The types that an author may give to a column, with their declarations in SQL."""
_INTEGER = re.compile(r"[+-]?[0-9]+")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def infer_type(values: Sequence[Any]) -> str:
    """Return the type of a column by its values. A column with values of several types has none, so that a
    text '25' is not taken for a number. Raise ``ValueError`` if booleans could not be told from numbers."""
    kinds = {type(value) for value in values if value is not None}
    if kinds & {list, tuple, dict}:
        return "json"
    if bool in kinds and len(kinds) > 1:
        raise ValueError("some values are true or false, and others are not")
    if kinds == {int, float}:
        return "real"
    return _TYPE_NAMES.get(next(iter(kinds)), "") if len(kinds) == 1 else ""


_TYPE_NAMES: dict[type, str] = {bool: "boolean", int: "integer", float: "real", str: "text"}


def type_in_schema(declared_type: str, *, is_text: bool) -> str:
    """Return the type to which a schema's declaration converts the values of a row. SQLite converts all but
    booleans and JSON itself, and leaves a text that is no number as it is; in CSV, that is a mistake."""
    if is_boolean_type(declared_type):
        return "boolean"
    if is_json_type(declared_type):
        return "json"
    upper = declared_type.upper() if is_text else ""
    if "INT" in upper:
        return "integer"
    return "real" if any(part in upper for part in ("REAL", "FLOA", "DOUB")) else ""


def to_stored(value: Any, kind: str, *, is_text: bool) -> Any:
    """Return a value of a row as SQLite stores it. Raise ``ValueError`` if it is not of the given type."""
    if value is None or (is_text and value == ""):
        return None
    if kind == "json":
        return to_json(_parse_json(value) if is_text else value)
    convert = _CONVERTERS.get(kind, _plain)
    converted = convert(value)
    if isinstance(converted, int) and not -(1 << 63) <= converted < 1 << 63:
        raise ValueError("an integer has at most 63 bits")
    if isinstance(converted, float) and not math.isfinite(converted):
        raise ValueError("expected a finite number")
    return converted


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return to_json(value) if isinstance(value, Mapping | list | tuple) else value


def _integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()) and len(value) < _MOST_DIGITS:
        return int(value)
    raise ValueError(f"expected an integer, got {display_value(value)}")


_MOST_DIGITS = 100


def _real(value: Any) -> float:
    try:
        if not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"expected a number, got {display_value(value)}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value)


def _boolean(value: Any) -> int:
    known = _BOOLEANS.get(_text(value).strip().lower())
    if known is None:
        raise ValueError(f"expected true or false, got {display_value(value)}")
    return int(known)


def _parse_json(text: str) -> Any:
    try:
        return STRICT_DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"expected JSON, got {display_value(text)}: {error.msg}") from None


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "integer": _integer,
    "real": _real,
    "text": _text,
    "boolean": _boolean,
}
