"""Expands ``rows`` and ``matrix`` in an entry (parameterized, data-driven tests, like pytest's
``parametrize``) into a scenario for each row and combination, before anything in the entry is validated.
``${row.NAME}`` may be used in any string and any key of the entry.

A value that was inserted from a row has the location of the row, so that mistakes in the value are reported
there."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import isfinite, prod
from typing import Any, NamedTuple, TypeAlias, get_origin

from agenteval.core.digits import parse_digits
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.json_text import to_json_or_repr
from agenteval.core.plurals import join_first
from agenteval.core.scenario import RowsSpec
from agenteval.core.value import Value
from agenteval.files.data_rows import Table, parse_json_at, table_from_list
from agenteval.files.located_value import LocatedValue
from agenteval.files.validation import members_of, validate
from agenteval.files.value_parts import iter_items, leaves
from agenteval.files.yaml_scalars import canonical_text, display_value, parse_scalar
from agenteval.files.yaml_source import Mark, SourceDocument

ROW_KEYS = ("rows", "matrix", "types")
MAX_ROW_SCENARIOS = 100_000
"""The maximum number of scenarios from one entry. A larger number is probably a mistake in a matrix."""

_REFERENCE = re.compile(r"(?P<escape>\$)?\$\{(?P<name>[^}]*)(?P<end>\}?)")
_ANSWERS = frozenset({"returns", "error", "sequence", "rules"})
_NEVER_BLANK = frozenset({"id", "expect", "expected_tools", "expected_output_contains"})
"""Keys below which inserting a blank value would change the meaning of a string."""
_LITERAL = "or $${ for a literal ${"


class ScenarioEntry(NamedTuple):
    """A scenario or case as written, merged with ``defaults``."""

    value: dict[str, Any]
    mark: Mark
    is_case: bool
    written_at: Mark
    """The location of the entry."""
    row: Mark | None = None
    """The row from which the entry was made, if any."""
    pattern: str = ""
    """The pattern matched by the ids of the scenarios from all rows."""


ReadTable: TypeAlias = Callable[[str, Mark], Table]
"""A function that returns the table at a path. The mark is the location at which the path is written. Raises
``AuthorError`` if the table cannot be read."""
AsWritten: TypeAlias = Callable[[SourceDocument], Any]
"""A function that returns the value of a document. Numbers keep their spelling where a string is expected."""


def expand_rows(entry: ScenarioEntry, read: ReadTable, as_written: AsWritten) -> Iterator[ScenarioEntry]:
    """Expand a data-driven (parameterized) entry: yield a scenario for each row, or the entry itself if it
    has no rows. Raise ``AuthorError`` for mistakes in the rows, the matrix or the references to rows."""
    row_keys = {key: entry.value[key] for key in ROW_KEYS if key in entry.value}
    if not row_keys:
        _refuse_references(entry.value, entry.mark)
        yield entry
        return
    spec, problems = validate(RowsSpec, row_keys, entry.mark, kind="rows")
    if spec is None:
        raise AuthorError(*problems)
    table = _read_rows(spec, entry.mark, read)
    rows = _combine_rows(table, spec, entry.mark)
    value = {key: item for key, item in entry.value.items() if key not in ROW_KEYS}
    id_builder = _IdBuilder(
        value, entry.mark, table.rows if table else (), spec.matrix if len(rows) > 1 else {}
    )
    found: dict[Problem, None] = {}
    entries = []
    for row in rows:
        filler = _RowFiller(row, rows, found)
        filled, mark = filler.fill(value, entry.mark)
        if filler.has_original_text:
            filled = as_written(SourceDocument(filled, mark, has_original_text=True))
        filled = id_builder.add_id(filled, row)
        entries.append(entry._replace(value=filled, mark=mark, row=row.mark, pattern=id_builder.pattern))
    if found:
        raise AuthorError(*found)
    yield from entries


# ── rows and combinations ────────────────────────────────────────────────────────────────────────


def _read_rows(spec: RowsSpec, mark: Mark, read: ReadTable) -> Table | None:
    where = mark.find(("rows",))
    if isinstance(spec.rows, str):
        table = read(spec.rows, where)
    elif spec.rows is not None:
        if not spec.rows:
            raise AuthorError(
                Problem("`rows` is an empty list, which produces no scenario", "add a row", where.place)
            )
        table = table_from_list(spec.rows, where)
    else:
        table = None
    if spec.types:
        table = _apply_types(table, spec.types, mark.find(("types",)))
    return table


def _apply_types(table: Table | None, types: Mapping[str, str], mark: Mark) -> Table:
    if table is None or not table.is_text:
        what = "`types` applies only to CSV files, because other formats already have typed values"
        raise AuthorError(Problem(what, "remove `types`", mark.place))
    problems = []
    for name in (name for name in types if name not in table.columns):
        what = f"`types`: the rows have no column '{name}'"
        problems.append(Problem(what, did_you_mean(name, table.columns), mark.find((name,)).place))
    rows = []
    for row in table.rows:
        cells = row.items
        for name in (name for name in types if name in cells):
            try:
                cells[name] = _TYPES[types[name]](cells[name])
            except ValueError as error:
                why = f" ({getattr(error, 'msg', error)})" if str(error) else ""
                got = display_value(cells[name].value)
                what = f"'{name}': expected {_TYPE_NAMES[types[name]]} (see `types`), got {got}{why}"
                problems.append(
                    Problem(what, "fix the cell, or remove the column from `types`", row.mark.place)
                )
        rows.append(LocatedValue.from_mapping(cells, row.mark))
    if problems:
        raise AuthorError(*problems)
    return table._replace(rows=tuple(rows))


def _scalar(*kinds: type) -> Callable[[LocatedValue], LocatedValue]:
    def read(cell: LocatedValue) -> LocatedValue:
        text = cell.value.strip()
        value = parse_scalar(text)
        if type(value) not in kinds or (isinstance(value, float) and not isfinite(value)):
            raise ValueError
        return LocatedValue(value, cell.mark if text == canonical_text(value) else cell.mark.with_text(text))

    return read


_TYPES: Mapping[str, Callable[[LocatedValue], LocatedValue]] = {
    "string": lambda cell: cell,
    "integer": _scalar(int),
    "number": _scalar(int, float),
    "boolean": _scalar(bool),
    "json": lambda cell: parse_json_at(*cell),
}
_TYPE_NAMES = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "json": "JSON",
}


def _combine_rows(table: Table | None, spec: RowsSpec, mark: Mark) -> list[LocatedValue]:
    """Return each row combined with each combination of the matrix, or only the combinations if there are no
    rows."""
    where = mark.find(("matrix",))
    rows, columns = (table.rows, table.columns) if table else ((LocatedValue({}, where),), ())
    problems = [*_matrix_problems(spec.matrix, columns, where)]
    count = len(rows) * prod(map(len, spec.matrix.values()))
    if count > MAX_ROW_SCENARIOS:
        what = (
            f"`rows` and `matrix` produce {count:,} scenarios, but at most {MAX_ROW_SCENARIOS:,} are allowed"
        )
        problems.append(Problem(what, "remove some of them", (where if spec.matrix else mark).place))
    if not (table or spec.matrix):
        problems.append(_no_rows_problem(mark))
    if problems:
        raise AuthorError(*problems)
    axes = [[(name, n) for n in range(len(values))] for name, values in spec.matrix.items()]
    matrix = LocatedValue(spec.matrix, where)
    return [_combination(row, chosen, matrix) for row in rows for chosen in product(*axes)]


def _matrix_problems(
    matrix: Mapping[str, Sequence[Any]], columns: Sequence[str], mark: Mark
) -> Iterator[Problem]:
    for name in (name for name, values in matrix.items() if not values):
        yield Problem(f"`matrix`: '{name}' has no values", "use a list of values", mark.find((name,)).place)
    for name in (name for name in columns if name in matrix):
        what = f"'{name}' in `matrix` is also a column of the rows"
        yield Problem(what, "rename one of them", mark.find((name,)).place)


def _no_rows_problem(mark: Mark) -> Problem:
    if at := mark.child("matrix"):
        return Problem("`matrix` has no value", "use {name: [values]}", at.place)
    return Problem("`rows` has no value", "use a list or a file name", mark.find(("rows",)).place)


def _combination(row: LocatedValue, chosen: Sequence[tuple[str, int]], matrix: LocatedValue) -> LocatedValue:
    return LocatedValue.from_mapping(
        {**row.items, **{name: matrix.at(name, n) for name, n in chosen}}, row.mark
    )


# ── filling in ───────────────────────────────────────────────────────────────────────────────────


class _RowFiller:
    """Inserts the values of one row into a scenario. Inserted values are not themselves searched for
    references."""

    def __init__(self, row: LocatedValue, rows: Sequence[LocatedValue], found: dict[Problem, None]) -> None:
        self._row = row
        self._rows = rows
        self._found = found
        self.has_original_text = False

    def fill(self, value: Any, mark: Mark, path: tuple[str, ...] = ()) -> tuple[Any, Mark]:
        """Return the value with references filled in, and its marks. If nothing was inserted, the same
        objects are returned."""
        if isinstance(value, str):
            return self._fill_text(value, mark, path) if "${" in value else (value, mark)
        if isinstance(value, dict):
            return self._fill_mapping(value, mark, path)
        if isinstance(value, list):
            made = [self.fill(item, mark.find((n,)), path) for n, item in enumerate(value)]
            if all(new is old for (new, _), old in zip(made, value, strict=True)):
                return value, mark
            return [item for item, _ in made], mark.with_children([at for _, at in made])
        return value, mark

    def _fill_mapping(self, value: dict[str, Any], mark: Mark, path: tuple[str, ...]) -> tuple[Any, Mark]:
        items: dict[str, Any] = {}
        marks = dict(mark.by_key)
        for key, item in value.items():
            at = mark.find((key,))
            name = self._fill_references(key, at, (*path, key)) if "${" in key else key
            if name in items:
                problem = Problem(
                    f"the key '{name}' appears twice", "remove one of them", self._row.mark.place
                )
                self._found.setdefault(problem)
            items[name], marks[name] = self.fill(item, at, (*path, name))
        if items.keys() == value.keys() and all(items[key] is item for key, item in value.items()):
            return value, mark
        return items, mark.with_children(marks)

    def _fill_text(self, text: str, mark: Mark, path: tuple[str, ...]) -> tuple[Any, Mark]:
        reference = _REFERENCE.fullmatch(text)
        if reference and not reference["escape"] and _is_of_row(reference):
            value, at = self._resolve(reference, mark)
            self.has_original_text |= at.text is not None or at.children is not None
            return (_escape_references(value) if _is_template(path) else value), at
        made = self._fill_references(text, mark, path)
        return made, mark if made == text else self._row.mark.without_children

    def _fill_references(self, text: str, mark: Mark, path: tuple[str, ...]) -> str:
        """Fill in the references to rows in a string. Because references in a tool's answer are filled in
        again when the tool is called, all other references in an answer are kept, and inserted values are
        escaped."""
        is_template = _is_template(path)

        def replacement(match: re.Match[str]) -> str:
            if match["escape"]:
                return match[0] if is_template else match[0][1:]
            if _is_of_row(match):
                value = self._text_to_insert(match, mark, path)
                return value.replace("${", "$${") if is_template else value
            if path[:1] != ("tools",):  # references in tools are checked later
                what = f"'{match[0][:40]}' is not a valid reference here"
                self._found.setdefault(Problem(what, f"use ${{row.NAME}}, {_LITERAL}", mark.place))
            return match[0]

        return _REFERENCE.sub(replacement, text)

    def _text_to_insert(self, match: re.Match[str], mark: Mark, path: tuple[str, ...]) -> str:
        value, at = self._resolve(match, mark)
        text = as_text(value, at)
        if value is None or (not text.strip() and _is_never_blank(path)):
            empty = "null" if value is None else "empty"
            what = f"'{match[0]}' is {empty} in this row, but is part of a longer text"
            self._found.setdefault(Problem(what, "set a value", at.place))
        return text

    def _resolve(self, match: re.Match[str], mark: Mark) -> LocatedValue:
        """Return the value that a reference refers to, and the location of that value."""
        path = unicodedata.normalize("NFC", match["name"].strip().removeprefix("row").removeprefix("."))
        if not match["end"] or not path:
            what = f"'{match[0][:40]}' is not a valid row reference"
            self._found.setdefault(Problem(what, f"use ${{row.NAME}}, {_LITERAL}", mark.place))
            return LocatedValue("?", mark)
        found = _look_up(self._row, path)
        if found is None:
            self._found.setdefault(self._missing(path, match[0], mark))
            return LocatedValue("?", mark)
        return found

    def _missing(self, path: str, reference: str, mark: Mark) -> Problem:
        if any(_look_up(row, path) for row in self._rows):
            what = f"this row has no '{path}', which '{reference}' at {mark.place} refers to"
            return Problem(what, "add it", self._row.mark.place)
        what = f"'{reference}' refers to a value that no row has"
        first = path.partition(".")[0]
        if first in self._row.value and first != path:
            value = self._row.value[first]
            known = ", ".join(map(str, value)) if isinstance(value, Mapping) else display_value(value)
            return Problem(what, f"'{first}' contains {known}", mark.place)
        known_names = dict.fromkeys(name for row in self._rows for name in row.value)
        return Problem(what, did_you_mean(path, known_names), mark.place)


def _is_of_row(match: re.Match[str]) -> bool:
    name = match["name"].strip()
    return name == "row" or name.startswith("row.")


def _is_never_blank(path: tuple[str, ...]) -> bool:
    return path[0] in _NEVER_BLANK or path[:2] == ("turns", "expect")


def _is_template(path: tuple[str, ...]) -> bool:
    return path[:1] == ("tools",) and not _ANSWERS.isdisjoint(path[2:3])


def _look_up(row: LocatedValue, path: str) -> LocatedValue | None:
    first, *rest = [path] if path in row.value else path.split(".")
    if first not in row.value:
        return None
    value, mark = row.at(first)
    for part in rest:
        index = parse_digits(part) if isinstance(value, list) else None
        key: str | int = part if index is None else index
        below = dict(iter_items(value))
        if key not in below:
            return None
        value, mark = below[key], mark.child(key) or mark.without_children
    return LocatedValue(value, mark)


def _escape_references(value: Any) -> Any:
    """Escape references in a value, so that a tool's answer contains the value unchanged."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {key: _escape_references(item) for key, item in value.items()}
    return [_escape_references(item) for item in value] if isinstance(value, list | tuple) else value


def as_text(value: Any, mark: Mark) -> str:
    """Format a value for use in a string: numbers as written, other values as JSON."""
    return value if isinstance(value, str) else mark.text or to_json_or_repr(value)


def _refuse_references(value: Any, mark: Mark) -> None:
    """Raise ``AuthorError`` for a reference to a row in an entry that has no rows."""
    texts = ((loc, text) for loc, text in leaves(value) if isinstance(text, str) and "${" in text)
    for loc, text in texts:
        for match in _REFERENCE.finditer(text):
            if not match["escape"] and match["name"].strip().startswith("row."):
                what = f"'{match[0][:40]}' refers to a row, but there is no `rows` or `matrix`"
                raise AuthorError(
                    Problem(what, "add `rows`, or use $${ for a literal ${", mark.find(loc).place)
                )


def merge_row_problems(
    found: Iterable[tuple[Problem, ScenarioEntry]], entries: Counter[Mark]
) -> Iterator[Problem]:
    """Merge a problem that occurs in many rows into a single problem. The merged problem lists the affected
    rows, unless all rows are affected. ``entries`` contains the number of rows for each scenario, keyed by
    the scenario's location."""
    groups: dict[tuple[Mark, Problem], list[tuple[Problem, Mark]]] = {}
    for problem, entry in found:
        row = entry.row or entry.written_at
        is_at_row = problem.place is not None and problem.place[:2] == row.place[:2]
        key = problem._replace(place=None) if is_at_row else problem
        groups.setdefault((entry.written_at, key), []).append((problem, row))
    for (at, key), ((first, row), *others) in groups.items():
        lines = list(dict.fromkeys(str(mark.line) for _, mark in others if mark.line != row.line))
        also = (
            f"also on {'line' if len(lines) == 1 else 'lines'} {join_first(lines, _MOST_LINES)}"
            if lines
            else ""
        )
        if key.place is not None:  # the place is in the scenario, not in the row
            of_row = f"in the row at {row.path}:{row.line}"
            is_in_all = 1 + len(others) == entries[at] > 1
            also = "" if is_in_all else "; ".join(filter(None, (of_row, also)))
        yield first._replace(what=f"{first.what} ({also})") if also else first


_MOST_LINES = 8

# ── ids ──────────────────────────────────────────────────────────────────────────────────────────


class _IdBuilder:
    """Builds an id for each row. The template must refer to a column of the rows; otherwise, rows could no
    longer be told apart after a row is added. Matrix values that the template does not refer to are appended.
    """

    def __init__(
        self, value: Mapping[str, Any], mark: Mark, rows: Sequence[LocatedValue], axes: Mapping[str, Any]
    ) -> None:
        key = "id" if value.get("id") else "name"
        template = value.get(key)
        template_text = template if isinstance(template, str) else "" if template is None else str(template)
        found = (match for match in _REFERENCE.finditer(template_text) if not match["escape"])
        used = {match["name"].strip().removeprefix("row.").partition(".")[0] for match in found}
        self._added = [axis for axis in axes if axis not in used]
        if template_text and used <= axes.keys() and len(rows) > 1:
            column = next((name for name in rows[0].value if _is_unique_column(name, rows)), "NAME")
            what = f"`{key}` '{template_text}' is the same for every row"
            remedy = f"use id: {slug(template_text) or 'row'}-${{row.{column}}}"
            raise AuthorError(Problem(what, remedy, mark.find((key,)).place))
        self.pattern = "-".join((_REFERENCE.sub("*", template_text), *("*" for _ in self._added)))

    def add_id(self, scenario: dict[str, Any], row: LocatedValue) -> dict[str, Any]:
        if not self._added:
            return scenario
        own_id = scenario.get("id") or slug(str(scenario.get("name") or ""))
        ends = (slug(as_text(*row.at(axis))) for axis in self._added)
        return {**scenario, "id": "-".join(map(str, (own_id, *ends)))}


def _is_unique_column(name: str, rows: Sequence[LocatedValue]) -> bool:
    texts = {as_text(row.value.get(name), row.mark) for row in rows}
    return len(texts) == len(rows) and all(texts)


def slug(name: str) -> str:
    """Create an id (slug) from a name: letters and digits in any script, in lower case, with a dash in place
    of everything between them."""
    text = unicodedata.normalize("NFC", name).lower()
    letters = "".join(c if unicodedata.category(c)[0] in "LMN" else "-" for c in text)
    return re.sub("-+", "-", letters).strip("-")


# ── cases in a file ──────────────────────────────────────────────────────────────────────────────


def case_from_row(
    row: LocatedValue, fields: Mapping[str, Any], as_written: AsWritten, *, is_text: bool
) -> LocatedValue:
    """Create a case from a row whose columns have the names of a case's keys. In CSV (``is_text``), an empty
    cell omits the key, and a cell for a key that accepts lists, mappings or numbers is parsed accordingly.
    ``fields`` contains the type of each key. Raise ``AuthorError`` if a cell cannot be parsed."""
    problems: list[Problem] = []
    cells = row.items
    if is_text:
        cells = {name: cell for name, cell in cells.items() if cell.value.strip()}
    for name, cell in cells.items() if is_text else ():
        try:
            cells[name] = _parse_cell(cell, fields.get(name))
        except ValueError as error:
            reason = getattr(error, "msg", error)
            what = f"'{name}': {display_value(cell.value)} looks like JSON, but is not valid JSON: {reason}"
            remedy = (
                'use a JSON list such as ["one", "two"], even for a single string that begins with a bracket'
            )
            problems.append(Problem(what, remedy, row.mark.place))
    if problems:
        raise AuthorError(*problems)
    value, mark = LocatedValue.from_mapping(cells, row.mark)
    return LocatedValue(as_written(SourceDocument(value, mark, has_original_text=True)), mark)


def _parse_cell(cell: LocatedValue, expected: Any) -> LocatedValue:
    kinds = members_of(expected)
    takes_list = any(get_origin(kind) is tuple for kind in kinds)
    takes_mapping = any(
        get_origin(kind) is dict or (isinstance(kind, type) and issubclass(kind, Value)) for kind in kinds
    )
    text = cell.value.strip()
    if (takes_list and text[0] == "[") or (takes_mapping and text[0] == "{"):
        return parse_json_at(text, cell.mark)
    return cell._replace(value=parse_scalar(text)) if {int, float, bool} & set(kinds) else cell
