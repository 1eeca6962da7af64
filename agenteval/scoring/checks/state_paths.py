"""``expect.state`` with ``same_as``: compares the state that the author's calls leave on a fresh state with
the agent's. Every right path of the agent passes, whatever calls it made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.conversation.reference_states import (
    describe_call,
    find_failed_call,
    key_of_calls,
    needs_author_code,
    resolve_calls,
)
from agenteval.conversation.sql_tools import answer_sql_call
from agenteval.conversation.tools import SqlCall
from agenteval.core.call_outcomes import json_key
from agenteval.core.excerpts import one_line
from agenteval.core.scenario import Tool
from agenteval.core.trajectory import ToolResult
from agenteval.core.world_state import ReferenceState, StateCall
from agenteval.files.value_matching import Difference, describe_expected
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome
from agenteval.scoring.checks.recorded_state import RecordedState
from agenteval.scoring.checks.state_changes import (
    StateFault,
    describe_differences,
    describe_row,
    differing_columns,
    fail_with,
)
from agenteval.world.changes import ChangedRow, changed_rows
from agenteval.world.database import WorldDatabase
from agenteval.world.start_state import TableShape


def find_rows_off_path(calls: Sequence[StateCall], state: RecordedState, seen: CheckInput) -> Iterator[str]:
    """Yield the rows that the agent changed, deleted or inserted although the calls do not. An inserted row
    may have another key than the one that the calls insert. Raise ``AuthorError`` if the calls cannot be
    made."""
    reference = _reference_of(calls, state, seen)
    if reference is None or reference.changes is None or not reference.changes.is_complete:
        return
    expected = changed_rows(reference.changes, state.start)
    for name, rows in state.changed_rows.items():
        shape = state.start.tables[name]
        wanted, found = _by_key(expected.get(name, ()), shape), _by_key(rows, shape)
        path = one_line(", ".join(map(describe_call, calls)), 300)
        if wanted is None or found is None:
            for values, what in _net_off_path(expected.get(name, ()), rows):
                yield f"{describe_row(values, shape)} was {what}, which {path} would not have done"
            continue
        inserted = [row for key, row in found.items() if row.before is None and key not in wanted]
        free = sum(row.before is None and key not in found for key, row in wanted.items())
        off_path = [(row, "inserted") for row in inserted[free:]]
        left = ((row, _leaves_path(row, wanted.get(key))) for key, row in found.items())
        off_path += [(row, what) for row, what in left if what]
        for row, what in off_path:
            label = describe_row(row.before or row.after or {}, shape)
            yield f"{label} was {what}, which {path} would not have done"


def _net_off_path(
    expected: Sequence[ChangedRow], actual: Sequence[ChangedRow]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the rows of a table without a key that were taken away or added, beyond what the calls do. A row
    with other values may stand for one that they add."""
    rows = {json_key(row): row for each in actual for row in each if row is not None}
    wanted, found = _net_rows(expected), _net_rows(actual)
    missing = sum(max(0, count - max(0, found[key])) for key, count in wanted.items())
    for key, count in found.items():
        if count < 0:
            yield from [(rows[key], "changed or deleted")] * (min(0, wanted[key]) - count)
        else:
            surplus = count - max(0, wanted[key])
            excused = min(missing, max(0, surplus))
            missing -= excused
            yield from [(rows[key], "inserted")] * (surplus - excused)


def _leaves_path(row: ChangedRow, want: ChangedRow | None) -> str:
    """Return what happened to a row of the start that the calls would not have done to it, or an empty
    string: a value of its own in a column that the calls change, too, may be a step on their way."""
    before, after = row
    if before is None or (want is not None and want.after is None and after is None):
        return ""
    if after is None:
        return "deleted"
    changed = set() if want is None or want.after is None else {*differing_columns(before, want.after)}
    return "" if {*differing_columns(before, after)} <= changed else "changed"


def check_same_as(calls: Sequence[StateCall], state: RecordedState, seen: CheckInput) -> CheckOutcome:
    """Check that the state is the one that the calls leave. Raise ``AuthorError`` if they cannot be made."""
    path = one_line(", ".join(map(describe_call, calls)), 300)
    reference = _reference_of(calls, state, seen)
    if reference is None:
        return CheckOutcome(None, f"the state that {path} leaves was not recorded — run the scenario again")
    if reference.changes is None:  # the agent would be compared with a path that the author did not mean
        return CheckOutcome(None, f"the expected {reference.error} — correct the call, or remove it")
    if not reference.changes.is_complete:
        return CheckOutcome(None, f"the changes that {path} leaves are too many, or too large, to compare")
    expected = changed_rows(reference.changes, state.start)
    faults = [
        fault
        for name, shape in state.start.tables.items()
        if name in expected or name in state.changed_rows
        for fault in _compare_table(expected.get(name, ()), state.changed_rows.get(name, ()), shape)
    ]
    if not faults:
        return CheckOutcome(True, f"the state is the one that {path} leaves")
    return fail_with(faults, f"the state differs from the one that {path} leaves:")


def _reference_of(
    calls: Sequence[StateCall], state: RecordedState, seen: CheckInput
) -> ReferenceState | None:
    """Return the state that the calls leave, or ``None`` if it was not recorded."""
    if not needs_author_code(calls, seen.every_tool):
        return _play(calls, state, seen.every_tool)
    reference = _find_reference(calls, seen.references)
    if reference is None or (reference.changes and reference.changes.start != state.changes.start):
        return None
    return reference


def _find_reference(
    calls: Sequence[StateCall], references: Sequence[ReferenceState]
) -> ReferenceState | None:
    """Return what was recorded for exactly these calls. The expectation may be that of a file that was
    written after the conversation."""
    key = key_of_calls(calls)
    return next((each for each in references if key_of_calls(each.calls) == key), None)


def _play(calls: Sequence[StateCall], state: RecordedState, tools: Mapping[str, Tool]) -> ReferenceState:
    """Make the calls, all of which SQL answers, on a fresh state."""
    database = WorldDatabase(state.start, state.now, state.changes.seed)
    results: list[ToolResult | None] = []
    for _, answer in resolve_calls(calls, tools):
        result = answer_sql_call(database, answer) if isinstance(answer, SqlCall) else answer
        results.append(result if isinstance(result, ToolResult) else None)
    if failed := find_failed_call(calls, results):
        return ReferenceState(calls=tuple(calls), error=failed.text)
    return ReferenceState(calls=tuple(calls), changes=database.changes())


# ── comparing ────────────────────────────────────────────────────────────────────────────────────


def _compare_table(
    expected: Sequence[ChangedRow], actual: Sequence[ChangedRow], shape: TableShape
) -> Iterator[StateFault]:
    """Yield the differences of two states that began as one."""
    wanted, found = _by_key(expected, shape), _by_key(actual, shape)
    if wanted is None or found is None:
        yield from _compare_without_key(expected, actual, shape)
        return
    for key in dict.fromkeys((*wanted, *found)):
        want, row = wanted.get(key), found.get(key)
        # A row that one of the two did not change reads there as it did at the start.
        want_end = want.after if want else row.before if row else None
        row_end = row.after if row else want.before if want else None
        yield from _compare_rows(want_end, row_end, shape)


def _by_key(rows: Sequence[ChangedRow], shape: TableShape) -> dict[Hashable, ChangedRow] | None:
    """Return the rows by their key, or ``None`` if the key does not tell them apart."""
    if not shape.key:
        return None
    found = {json_key([(row.before or row.after or {})[name] for name in shape.key]): row for row in rows}
    return found if len(found) == len(rows) else None


def _compare_rows(
    want: Mapping[str, Any] | None, row: Mapping[str, Any] | None, shape: TableShape
) -> Iterator[StateFault]:
    if want is None or row is None:
        yield from _describe_one_sided(want, row, shape)
    elif columns := [*differing_columns(want, row)]:
        differences = [(name, Difference(name, want[name], row[name])) for name in columns]
        yield describe_differences(describe_row(row, shape), shape.name, differences)


def _describe_one_sided(
    want: Mapping[str, Any] | None, row: Mapping[str, Any] | None, shape: TableShape
) -> Iterator[StateFault]:
    for side, what in ((want, "missing"), (row, "extra")):
        if side is not None:
            text = f"{shape.name}: {what} row {describe_expected(side, literal=True)}"
            yield StateFault(text, (f"{shape.name}: row {what}",))


def _compare_without_key(
    expected: Sequence[ChangedRow], actual: Sequence[ChangedRow], shape: TableShape
) -> Iterator[StateFault]:
    """Compare rows by all their values, as often as they occur."""
    rows = {json_key(row): row for each in (*expected, *actual) for row in each if row is not None}
    balance = _net_rows(expected)
    balance.subtract(_net_rows(actual))
    for key, count in balance.items():
        for _ in range(abs(count)):
            want, row = (rows[key], None) if count > 0 else (None, rows[key])
            yield from _describe_one_sided(want, row, shape)


def _net_rows(rows: Sequence[ChangedRow]) -> Counter[Hashable]:
    """Count the rows that the changes add, less those that they take away."""
    net: Counter[Hashable] = Counter()
    for before, after in rows:
        net.update([] if after is None else [json_key(after)])
        net.subtract([] if before is None else [json_key(before)])
    return net
