"""``expect.state`` with ``same_as``: plays calls on a fresh state, and compares the state that they leave
with the agent's. Every right path of the agent passes, whatever calls it made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.conversation.sql_tools import answer_sql_call
from agenteval.conversation.tools import SqlCall, ToolState, UnmatchedCall, resolve_tool_call
from agenteval.core.call_outcomes import format_call, json_key
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.excerpts import one_line
from agenteval.core.scenario import Tool
from agenteval.core.trajectory import ToolCall, ToolResult
from agenteval.core.world_state import StateCall, StateChanges
from agenteval.files.value_matching import Difference, describe_expected
from agenteval.scoring.checks.check_rule import CheckOutcome
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


def check_same_as(
    calls: Sequence[StateCall], state: RecordedState, tools: Mapping[str, Tool]
) -> CheckOutcome:
    """Check that the state is the one that the calls leave. Raise ``AuthorError`` if they cannot be made."""
    path = one_line(", ".join(map(_describe_call, calls)), 300)
    changes, errors = _play(calls, state, tools)
    if errors:  # the agent would be compared with a path that the author did not mean
        return CheckOutcome(None, f"the expected {errors[0]} — correct the call, or remove it")
    if not changes.is_complete:
        return CheckOutcome(None, f"the changes that {path} leaves are too many, or too large, to compare")
    expected = changed_rows(changes, state.start)
    faults = [
        fault
        for name, shape in state.start.tables.items()
        if name in expected or name in state.changed_rows
        for fault in _compare_table(expected.get(name, ()), state.changed_rows.get(name, ()), shape)
    ]
    if not faults:
        return CheckOutcome(True, f"the state is the one that {path} leaves")
    return fail_with(faults, f"the state differs from the one that {path} leaves:")


def _describe_call(call: StateCall) -> str:
    return format_call(ToolCall(name=call.name, args=call.args))


def _play(
    calls: Sequence[StateCall], state: RecordedState, tools: Mapping[str, Tool]
) -> tuple[StateChanges, list[str]]:
    """Make the calls on a fresh state. Return what they change, and a description of each call that fails on
    the state."""
    database = WorldDatabase(state.start, state.now, state.changes.seed)
    errors = [*_make_calls(calls, database, tools)]
    return database.changes(), errors


def _make_calls(
    calls: Sequence[StateCall], database: WorldDatabase, tools: Mapping[str, Tool]
) -> Iterator[str]:
    for call, answer in resolve_calls(calls, tools):
        if isinstance(answer, ToolResult):  # an error that the author wrote is a part of the path
            continue
        result = answer_sql_call(database, answer)
        if result.is_error:
            yield f"{_describe_call(call)} returns {describe_expected(result.value, literal=True)}"


def resolve_calls(
    calls: Sequence[StateCall], tools: Mapping[str, Tool]
) -> Iterator[tuple[StateCall, ToolResult | SqlCall]]:
    """Yield each call with its answer, or the SQL that gives it. Raise ``AuthorError`` for a call that the
    scenario does not answer in this way."""
    state = ToolState()
    for call in calls:
        if problem := _find_tool_problem(call.name, tools):
            raise AuthorError(problem)
        state, answer = resolve_tool_call(tools, state, call.name, call.args, unmocked_tools="empty")
        if isinstance(answer, UnmatchedCall):
            what = f"no rule of '{call.name}' matches {_describe_call(call)}"
            raise AuthorError(Problem(what, "correct the arguments, or add a rule"))
        assert isinstance(answer, ToolResult | SqlCall)  # a tool with a function is a problem above
        yield call, answer


def _find_tool_problem(name: str, tools: Mapping[str, Tool]) -> Problem | None:
    tool = tools.get(name)
    if tool is None:
        return Problem(f"unknown tool '{name}'", did_you_mean(name, tools))
    if tool.functions:
        what = f"the tool '{name}' is answered by Python, which `same_as` cannot call"
        return Problem(what, "use `changed` or `sql`, or answer the tool with `sql`")
    if not tool.is_mocked:
        return Problem(f"the tool '{name}' has no answer, so that a call changes nothing", "add `sql`")
    return None


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
