"""Reads the rows of data sets (test case rows in CSV, JSON Lines, JSON or YAML) from which scenarios are
generated, with the location of each row."""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import PurePath
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.core.json_text import STRICT_AS_WRITTEN, WrittenNumber
from agenteval.core.plurals import plural
from agenteval.files.located_value import LocatedValue
from agenteval.files.yaml_scalars import display_value
from agenteval.files.yaml_source import Mark, decode, parse_yaml

_DELIMITERS = ",;\t"
_QUOTED_CELL = re.compile(r'(?:^|(?<=[,;\t]))"(?:[^"]|"")*(?:"|$)')
EXCEL_SEPARATOR = "sep="
"""The beginning of a line that Excel writes above the header of a CSV file. It names the delimiter."""
LARGEST_CELL = 1 << 26


class Table(NamedTuple):
    """The rows in a data file or a list."""

    columns: tuple[str, ...]
    """All column names, in the order of their first occurrence."""
    rows: tuple[LocatedValue, ...]
    mark: Mark
    is_text: bool = False
    """True if all values are strings because the format has no types."""


def read_table(data: bytes, path: str) -> Table:
    """Read the rows of a data set from a CSV, JSON Lines, JSON or YAML file. ``path`` is the name shown in
    messages; its suffix determines the format. Raise ``AuthorError`` with every problem and its line."""
    read = _READERS.get(PurePath(path).suffix.lower())
    if read is None:
        what = f"rows can only be read from {', '.join(_READERS)}"
        raise AuthorError(Problem(what, "save the file in one of these formats", Place(path)))
    table = read(data, path)
    if not table.rows:
        raise AuthorError(
            Problem(
                "the file contains no rows", "add a row, or remove the reference to the file", Place(path)
            )
        )
    return table


def table_from_list(values: Sequence[Any], mark: Mark) -> Table:
    """Create a table from a list of rows. Raise ``AuthorError`` for items that are not mappings."""
    invalid = [(n, value) for n, value in enumerate(values) if not isinstance(value, Mapping)]
    problems = [
        Problem(f"expected a mapping, got {display_value(value)}", "use {name: value}", mark.find((n,)).place)
        for n, value in invalid
    ]
    if problems:
        raise AuthorError(*problems)
    rows = tuple(LocatedValue(value, mark.find((n,))) for n, value in enumerate(values))
    return Table(_columns(rows), rows, mark)


def _columns(rows: Sequence[LocatedValue]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for row in rows for name in row.value))


# ── CSV ──────────────────────────────────────────────────────────────────────────────────────────


def find_delimiter(header: str) -> str:
    """Return the character that separates the names in the first line: the most frequent one outside of
    quotes."""
    return max(_DELIMITERS, key=_QUOTED_CELL.sub("", header.rstrip("\r\n")).count)


def csv_problem(error: csv.Error, at: int, begins: int) -> str:
    """Describe the error in a CSV row that starts at line ``begins`` and was read up to line ``at``."""
    text = str(error)
    if "unexpected end of data" in text:
        return f"a double quote opened in this row is not closed by the end of the file (line {at})"
    if "field larger" in text:
        return f"{text}; a double quote may not be closed"
    return f"{text}{f' (line {at})' if at != begins else ''}"


def _from_csv(data: bytes, path: str) -> Table:
    text = decode(data, path)
    csv.field_size_limit(LARGEST_CELL)
    first = next((line for line in StringIO(text) if line.strip()), "")
    is_tsv = PurePath(path).suffix.lower() == ".tsv" and "\t" in first
    lines = _read_rows(text, "\t" if is_tsv else find_delimiter(first), path)
    written_lines = (row for row in lines if row[2].strip())
    number, names, _ = next(written_lines, (1, [], ""))
    if first.startswith(EXCEL_SEPARATOR):
        number, names, _ = next(written_lines, (1, [], ""))
    columns = [unicodedata.normalize("NFC", name.strip("\ufeff \t")) for name in names]
    if duplicate := next((name for name in columns if name and columns.count(name) > 1), ""):
        raise AuthorError(Problem(f"two columns are named '{duplicate}'", "rename one", Place(path, number)))
    problems: list[Problem] = []
    rows = []
    for line, cells, written in lines:
        if mistake := _row_mistake(cells, columns, written):
            problems.append(Problem(*mistake, Place(path, line)))
            continue
        values = {name: cell for name, cell in zip(columns, cells, strict=True) if name}
        rows.append(
            LocatedValue(values, Mark(path, line, children={name: Mark(path, line) for name in values}))
        )
    if problems:
        raise AuthorError(*problems)
    return Table(tuple(filter(None, columns)), tuple(rows), Mark(path, number), is_text=True)


def _row_mistake(cells: Sequence[str], columns: Sequence[str], written: str) -> tuple[str, str] | None:
    """Describe the mistake in a row and its correction, or return ``None`` if the row is valid. ``written``
    is the row as it appears in the file."""
    if len(cells) != len(columns):
        cell_count, column_count = plural(len(cells), "cell"), plural(len(columns), "column")
        what = f"the row has {cell_count}, but the first line has {column_count}"
        return what, "put values that contain a comma, a quote or a line break in double quotes"
    for number, (name, cell) in enumerate(zip(columns, cells, strict=True), 1):
        if not name and cell.strip():
            return f"column {number} has a value here, but no name", "name the column in the first line"
        is_quoted = cell.replace('"', '""') in written
        if cell[:1].isspace() and cell.lstrip().startswith('"') and not is_quoted:
            return f"there is a space before the opening quote in column {number}", "remove the space"
    return None


def _read_rows(text: str, delimiter: str, path: str) -> Iterator[tuple[int, list[str], str]]:
    """Yield the line on which each non-blank row starts, the cells of the row, and its original text."""
    written: list[str] = []

    def read_lines() -> Iterator[str]:
        for line in StringIO(text, newline=""):
            written.append(line)
            yield line

    reader = csv.reader(read_lines(), delimiter=delimiter, strict=True)
    while True:
        begins = reader.line_num + 1
        written.clear()
        try:
            cells = next(reader, None)
        except csv.Error as error:
            what = f"not valid CSV: {csv_problem(error, reader.line_num, begins)}"
            remedy = 'close the quote, and double any quote inside a quoted value ("")'
            raise AuthorError(Problem(what, remedy, Place(path, begins))) from None
        if cells is None:
            return
        if any(cell.strip() for cell in cells) or len(cells) == 1:
            yield begins, cells, "".join(written)


# ── JSON and YAML ────────────────────────────────────────────────────────────────────────────────


def parse_json_at(text: str, at: Mark) -> LocatedValue:
    """Parse the JSON in a line or a cell, and use one location for all values in it. Numbers keep their
    spelling. Raise ``ValueError`` for invalid JSON."""
    try:
        value = STRICT_AS_WRITTEN.decode(text.strip())
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("an unpaired surrogate escape is not allowed") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return _with_marks(value, at)


def _with_marks(value: Any, at: Mark) -> LocatedValue:
    if isinstance(value, WrittenNumber):
        return LocatedValue(float(value), at.with_text(value.text))
    if isinstance(value, dict):
        return LocatedValue.from_mapping(
            {key: _with_marks(item, at) for key, item in value.items()}, at.without_children
        )
    if isinstance(value, list):
        return LocatedValue.from_list([_with_marks(item, at) for item in value], at.without_children)
    return LocatedValue(value, at.without_children)


def _from_json_lines(data: bytes, path: str) -> Table:
    problems: list[Problem] = []
    rows = []
    for number, line in enumerate(decode(data, path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = parse_json_at(line, Mark(path, number))
        except ValueError as error:
            what = f"not valid JSON: {getattr(error, 'msg', error)}"
            place = Place(path, number, getattr(error, "colno", 0))
            problems.append(Problem(what, "use one object per line", place))
            continue
        if isinstance(row.value, dict):
            rows.append(row)
        else:
            what = f"expected an object, got {display_value(row.value)}"
            problems.append(
                Problem(what, "use one object per line, or rename the file to .json", Place(path, number))
            )
    if problems:
        raise AuthorError(*problems)
    return Table(_columns(rows), tuple(rows), Mark(path, 1))


def _from_yaml(data: bytes, path: str) -> Table:
    document = parse_yaml(data, path)
    if not isinstance(document.value, list):
        what = f"expected a list of rows, got {display_value(document.value)}"
        remedy = "use [{…}, {…}]" if path.lower().endswith(".json") else "start each row with '- '"
        raise AuthorError(Problem(what, remedy, document.mark.place))
    return table_from_list(document.value, document.mark)


_READERS: Mapping[str, Callable[[bytes, str], Table]] = {
    **dict.fromkeys((".csv", ".tsv"), _from_csv),
    **dict.fromkeys((".jsonl", ".ndjson"), _from_json_lines),
    **dict.fromkeys((".yaml", ".yml", ".json"), _from_yaml),
}
