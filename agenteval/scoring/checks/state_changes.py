"""``expect.state`` with ``changed``: compares the rows that differ from the start with those that the author
expects. Every other difference is collateral."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agenteval.core.call_outcomes import json_key
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.plurals import plural
from agenteval.core.world_state import DELETED
from agenteval.files.value_matching import Difference, describe_expected, find_differences, matches_value
from agenteval.scoring.checks.call_assignment import find_maximum_matching
from agenteval.scoring.checks.check_rule import CheckOutcome
from agenteval.scoring.checks.recorded_state import RecordedState
from agenteval.scoring.checks.state_queries import MAX_FAULTS_SHOWN
from agenteval.world.changes import ChangedRow
from agenteval.world.start_state import StartState, TableShape


class StateFault(NamedTuple):
    """A row that is not as expected."""

    text: str
    parts: tuple[str, ...]
    """The parts of the expectation that do not hold (``Check.parts``)."""


def fail_with(faults: Sequence[StateFault], heading: str = "") -> CheckOutcome:
    """Return a failure that lists the faults, one per line."""
    lines = [fault.text for fault in faults[:MAX_FAULTS_SHOWN]]
    if (more := len(faults) - MAX_FAULTS_SHOWN) > 0:
        lines.append(f"and {more:,} more")
    parts = tuple(dict.fromkeys(part for fault in faults for part in fault.parts))
    return CheckOutcome(False, "\n".join([*filter(None, [heading]), *lines]), parts=parts)


def check_changed(expected: Mapping[str, Sequence[Mapping[str, Any]]], state: RecordedState) -> CheckOutcome:
    """Check that exactly the expected rows differ from the start, and that they read as expected. Raise
    ``AuthorError`` for an unknown table or column."""
    wanted = resolve_names(expected, state.start)
    faults: list[StateFault] = []
    collateral: list[StateFault] = []
    ambiguous: list[str] = []
    for table in dict.fromkeys((*wanted, *state.changed_rows)):
        changes = _TableChanges(state, state.start.tables[table], wanted.get(table, ()))
        wrong, others = changes.compare()
        faults += wrong
        collateral += others
        ambiguous += changes.ambiguous
    if faults or collateral:
        return fail_with([*faults, *collateral])
    if ambiguous:
        return CheckOutcome(None, ambiguous[0])
    count = sum(map(len, wanted.values()))
    return CheckOutcome(True, f"{plural(count, 'row')} changed, as expected" if count else "nothing changed")


def find_collateral(
    expected: Mapping[str, Sequence[Mapping[str, Any]]], state: RecordedState
) -> Iterator[str]:
    """Yield the changed rows that the author does not expect to change at all, and those that were deleted or
    changed in a named column that was to keep its value. A row may be an expected one with other values, if
    its key is left open or the table has none. Raise ``AuthorError`` for an unknown table or column."""
    wanted = resolve_names(expected, state.start)
    for table in state.changed_rows:
        changes = _TableChanges(state, state.start.tables[table], wanted.get(table, ()))
        yield from changes.describe_spoiled()
        changes.excuse_similar()
        yield from (fault.text for fault in changes.compare()[1])


class _TableChanges:
    """The changed rows of a table, some of which are those that the author expects."""

    def __init__(self, state: RecordedState, shape: TableShape, wanted: Sequence[Mapping[str, Any]]) -> None:
        self._state, self._shape = state, shape
        found = [*self._split_rows(state.changed_rows.get(shape.name, ()), wanted)]
        edges = [[at for at, row in enumerate(found) if _holds(each, row)] for each in wanted]
        assignment = find_maximum_matching(edges)
        self._met = [(wanted[at], found[row]) for at, row in assignment.items()]
        self._unmet = [each for at, each in enumerate(wanted) if at not in assignment]
        taken = set(assignment.values())
        self._left = [row for at, row in enumerate(found) if at not in taken]

    def compare(self) -> tuple[list[StateFault], list[StateFault]]:
        """Return the expected rows that differ, and the changed rows that are not expected."""
        faults = [self._describe_unmet(want) for want in self._unmet]
        return faults, [_describe_collateral(row, self._shape) for row in self._left]

    def excuse_similar(self) -> None:
        """Take a row for each expected one that is missing and whose key is not known: one that was inserted
        or, in a table without a key, changed, and that may be the expected one with other values."""
        for want in self._unmet:
            if DELETED not in want and not self._key_in(want):
                row = next((row for row in self._left if self._is_similar(want, row)), None)
                if row:
                    self._left.remove(row)

    def _is_similar(self, want: Mapping[str, Any], row: ChangedRow) -> bool:
        before, after = row
        if after is None or (self._shape.key and before is not None):
            return False
        if self._shape.key:
            return all(matches_value(want[name], after[name]) for name in self._shape.key if name in want)
        if len(want) == 1:
            return True
        return any(matches_value(value, after[name]) for name, value in want.items())

    def describe_spoiled(self) -> Iterator[str]:
        """Describe the expected rows that were deleted, or changed in a column that was to keep its value."""
        for want in self._unmet:
            row = next((row for row in self._left if self._has_key(want, row)), None)
            if row is None or row.before is None or DELETED in want:
                continue
            if row.after is None:
                yield f"{self._label(want)}: was deleted"
                continue
            kept = {name: value for name, value in want.items() if matches_value(value, row.before[name])}
            for _, difference in _find_row_differences(kept, row.after):
                yield f"{self._label(want)}: {difference}"

    @property
    def ambiguous(self) -> Iterator[str]:
        """Descriptions of the changed rows that may not be those that the author means."""
        describe = self._describe_repeated_key if self._shape.key else self._describe_replaced
        return filter(None, (describe(want, row) for want, row in self._met))

    def _describe_replaced(self, want: Mapping[str, Any], row: ChangedRow) -> str:
        """Describe a row of a table without a key that may be a new one. Only a named column that kept its
        value shows that it is the same row: SQLite gives the number of a deleted row to the next one."""
        before, after = row
        if (
            before is None
            or after is None
            or any(json_key(before[name]) == json_key(after[name]) for name in want)
        ):
            return ""
        was = describe_expected(before, literal=True)
        what = f"the row that was {was} changed, or was deleted while another one was inserted"
        remedy = f"name a column that keeps its value, or give '{self._shape.name}' a primary key"
        return f"{self._label(want)}: {what} — {remedy}"

    def _describe_repeated_key(self, want: Mapping[str, Any], row: ChangedRow) -> str:
        """Describe a row that was inserted beside another one with its key. Only ``id`` can be repeated, if
        the table does not declare it as its key."""
        if row.before is not None or row.after is None:
            return ""
        key = {name: row.after[name] for name in self._shape.key}
        expected = sum(
            all(json_key(value) == json_key((other.after or {}).get(name)) for name, value in key.items())
            for _, other in self._met
        )
        if (count := self._state.count_rows(self._shape.name, key)) <= expected:
            return ""
        what = f"was inserted, but {count:,} rows have this key"
        remedy = f"give '{self._shape.name}' a primary key, or use `sql`"
        return f"{self._label(want)}: {what} — {remedy}"

    def _split_rows(
        self, rows: Sequence[ChangedRow], wanted: Sequence[Mapping[str, Any]]
    ) -> Iterator[ChangedRow]:
        """Yield the changed rows. If the table has no key, a row that the author expects to be deleted is not
        the one that took its place."""
        deleted = [want for want in wanted if DELETED in want]
        for row in rows:
            removed = ChangedRow(row.before, None)
            is_replaced = row.before is not None and row.after is not None and not self._shape.key
            if is_replaced and any(_holds(want, removed) for want in deleted):
                yield from (removed, ChangedRow(None, row.after))
            else:
                yield row

    def _describe_unmet(self, want: Mapping[str, Any]) -> StateFault:
        """Describe how an expected row differs. A changed row with its key is this row, and no collateral."""
        same = next((row for row in self._left if self._has_key(want, row)), None)
        if same is None:
            return self._describe_unchanged(want)
        self._left.remove(same)
        return self._describe_wrong(want, same)

    def _key_in(self, want: Mapping[str, Any]) -> dict[str, Any]:
        """Return the key that a row names, or nothing if it does not name all of it."""
        key = {name: want[name] for name in self._shape.key if name in want}
        is_whole = len(key) == len(self._shape.key)
        return key if is_whole and not any(isinstance(each, Mapping | list) for each in key.values()) else {}

    def _has_key(self, want: Mapping[str, Any], row: ChangedRow) -> bool:
        key = self._key_in(want)
        side = row.after or row.before or {}
        return bool(key) and all(matches_value(value, side[name]) for name, value in key.items())

    def _label(self, want: Mapping[str, Any]) -> str:
        named = self._key_in(want) or {name: value for name, value in want.items() if name != DELETED}
        return f"{self._shape.name} {describe_expected(named)}"

    def _describe_unchanged(self, want: Mapping[str, Any]) -> StateFault:
        table, label = self._shape.name, self._label(want)
        key = self._key_in(want)
        if not key:
            what = "was deleted" if DELETED in want else "was inserted or changed"
            return StateFault(f"{label}: no such row {what}", (f"{table}: row unchanged",))
        row = self._state.find_row(table, key, [name for name in want if name != DELETED])
        if row is None:
            return StateFault(f"{label}: there is no such row", (f"{table}: row missing",))
        if DELETED in want:
            return StateFault(f"{label}: was not deleted", (f"{table}: row not deleted",))
        if differences := [*_find_row_differences(want, row)]:
            return describe_differences(f"{label}: did not change", table, differences)
        return StateFault(f"{label}: did not change", (f"{table}: row unchanged",))

    def _describe_wrong(self, want: Mapping[str, Any], row: ChangedRow) -> StateFault:
        table, label = self._shape.name, self._label(want)
        if row.after is None:
            return StateFault(f"{label}: was deleted", (f"{table}: row deleted",))
        if DELETED in want:
            text = f"{label}: was not deleted, and now reads {describe_expected(row.after, literal=True)}"
            return StateFault(text, (f"{table}: row not deleted",))
        return describe_differences(label, table, [*_find_row_differences(want, row.after)])


def describe_differences(label: str, table: str, differences: Sequence[tuple[str, Difference]]) -> StateFault:
    """Describe the differences of a row, each with its column."""
    text = f"{label}: {'; '.join(str(each) for _, each in differences)}"
    return StateFault(text, tuple(f"{table}.{column}" for column, _ in differences))


def _holds(want: Mapping[str, Any], row: ChangedRow) -> bool:
    """Check whether a changed row is the expected one. A deleted row is known by what it was."""
    is_deleted = DELETED in want
    side = row.before if is_deleted else row.after
    if side is None or is_deleted != (row.after is None):
        return False
    return next(_find_row_differences(want, side), None) is None


def _find_row_differences(
    want: Mapping[str, Any], row: Mapping[str, Any]
) -> Iterator[tuple[str, Difference]]:
    """Yield the differences in the columns that are named, each with its column."""
    for name, expected in want.items():
        if name != DELETED:
            yield from ((name, each) for each in find_differences(expected, row[name], path=name))


# ── collateral ───────────────────────────────────────────────────────────────────────────────────


def _describe_collateral(row: ChangedRow, shape: TableShape) -> StateFault:
    before, after = row
    label, part = f"collateral: {describe_row(before or after or {}, shape)}", f"collateral: {shape.name}"
    if before is None:
        now = f": {describe_expected(after, literal=True)}" if shape.key else ""
        return StateFault(f"{label} was inserted{now}", (f"{part}: row inserted",))
    if after is None:
        return StateFault(f"{label} was deleted", (f"{part}: row deleted",))
    columns = [*differing_columns(before, after)]
    changes = (
        f"{name} was {describe_expected(before[name], literal=True)},"
        f" is {describe_expected(after[name], literal=True)}"
        for name in columns
    )
    return StateFault(f"{label} changed: {'; '.join(changes)}", tuple(f"{part}.{name}" for name in columns))


def differing_columns(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the columns in which two rows of a table differ."""
    return (name for name in one if json_key(one[name]) != json_key(other[name]))


def describe_row(row: Mapping[str, Any], shape: TableShape) -> str:
    """Describe a row by its table and its key, or by all its columns if the table has no key."""
    named = {name: row[name] for name in shape.key} if shape.key else row
    return f"{shape.name} {describe_expected(named, literal=True)}"


# ── names ────────────────────────────────────────────────────────────────────────────────────────


def resolve_names(
    expected: Mapping[str, Sequence[Mapping[str, Any]]], start: StartState
) -> dict[str, list[dict[str, Any]]]:
    """Return the expected rows with the names of tables and columns as the state writes them: SQL does not
    distinguish upper and lower case. Raise ``AuthorError`` for unknown names."""
    if problems := [problem for _, problem in find_unknown_names(expected, start)]:
        raise AuthorError(*problems)
    tables = {name.lower(): shape for name, shape in start.tables.items()}
    found: dict[str, list[dict[str, Any]]] = {}
    for table, rows in expected.items():
        shape = tables[table.lower()]
        names = {DELETED: DELETED, **{column.name.lower(): column.name for column in shape.stored_columns}}
        found[shape.name] = [{names[name.lower()]: value for name, value in row.items()} for row in rows]
    return found


def find_unknown_names(
    expected: Mapping[str, Sequence[Mapping[str, Any]]], start: StartState
) -> Iterator[tuple[tuple[str | int, ...], Problem]]:
    """Yield the path and the problem of each table and column that the state does not have."""
    tables = {name.lower(): shape for name, shape in start.tables.items()}
    for table, rows in expected.items():
        shape = tables.get(table.lower())
        if shape is None:
            remedy = did_you_mean(table, start.tables)
            yield (table,), Problem(f"the state has no table '{table}'", remedy)
            continue
        columns = [column.name for column in shape.stored_columns]
        for index, name in _unknown_columns(rows, columns):
            remedy = did_you_mean(name, columns)
            yield (table, index, name), Problem(f"the table '{shape.name}' has no column '{name}'", remedy)


def _unknown_columns(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[tuple[int, str]]:
    known = {DELETED, *(name.lower() for name in columns)}
    return ((index, name) for index, row in enumerate(rows) for name in row if name.lower() not in known)
