"""``expect.state`` with ``sql``: compares the result of a query with an expected value, row or list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agenteval.core.excerpts import one_line
from agenteval.core.plurals import plural
from agenteval.core.world_state import StateExpectation
from agenteval.files.value_matching import describe_expected, find_differences, matches_value
from agenteval.scoring.checks.call_assignment import find_maximum_matching
from agenteval.scoring.checks.check_rule import CheckOutcome

if TYPE_CHECKING:
    from agenteval.scoring.checks.recorded_state import RecordedState
    from agenteval.world.database import QueryResult

MAX_FAULTS_SHOWN = 10


def is_row(expected: Any) -> bool:
    """Check whether an expected value is a row: a mapping that is not a matcher."""
    return isinstance(expected, Mapping) and not any(str(key).startswith("$") for key in expected)


def check_query(expected: StateExpectation, state: RecordedState) -> CheckOutcome:
    """Compare the result of the query. Raise ``AuthorError`` or ``ToolError`` if the query fails."""
    sql = expected.sql or ""
    result = state.database.read(sql)
    found = _compare(expected, result)
    faults = [*found[:MAX_FAULTS_SHOWN], *_count_rest(found)]
    if not faults:
        return CheckOutcome(True, f"{one_line(sql)}: {_describe_rows(result)}")
    separator = ": " if len(faults) == 1 else ":\n"
    detail = f"{one_line(sql)}{separator}" + "\n".join(faults)
    return CheckOutcome(False, detail, parts=(" ".join(sql.split()),))


def _count_rest(faults: Sequence[str]) -> Iterator[str]:
    if (more := len(faults) - MAX_FAULTS_SHOWN) > 0:
        yield f"and {more:,} more"


def _compare(expected: StateExpectation, result: QueryResult) -> list[str]:
    """Describe the differences."""
    want = expected.equals
    if expected.empty:
        return [f"expected no row, got {_describe_rows(result)}"] if result.rows else []
    if isinstance(want, list | tuple):
        return _compare_list(want, result)
    if is_row(want):
        return _compare_row(want, result)
    return _compare_value(want, result)


def _compare_value(want: Any, result: QueryResult) -> list[str]:
    if len(result.rows) != 1 or len(result.columns) != 1:
        return [f"expected {describe_expected(want)}, got {_describe_rows(result)}"]
    ((value,),) = result.rows
    if matches_value(want, value):
        return []
    return [f"expected {describe_expected(want)}, got {describe_expected(value, literal=True)}"]


def _compare_row(want: Mapping[str, Any], result: QueryResult) -> list[str]:
    if len(result.rows) != 1:
        return [f"expected one row, {describe_expected(want)}, got {_describe_rows(result)}"]
    return [*_find_row_differences(want, _to_row(result, result.rows[0]))]


def _to_row(result: QueryResult, values: Sequence[Any]) -> Mapping[str, Any]:
    return dict(zip(result.columns, values, strict=True))


def _find_row_differences(want: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    """Describe the differences in the columns that are named, without regard to the case of names."""
    values = {name.lower(): value for name, value in row.items()}
    for name, expected in want.items():
        if name.lower() not in values:
            yield f"{name}: the query has no such column"
        else:
            yield from map(str, find_differences(expected, values[name.lower()], path=name))


def _compare_list(want: Sequence[Any], result: QueryResult) -> list[str]:
    are_rows = any(map(is_row, want))
    if want and not are_rows and len(result.columns) != 1:
        return [f"expected the values of one column, got {_describe_rows(result)}"]
    items = [_to_row(result, values) if are_rows or not want else values[0] for values in result.rows]
    edges = [[at for at, item in enumerate(items) if _matches(each, item)] for each in want]
    if result.is_ordered and len(want) == len(items) and all(at in edges[at] for at in range(len(items))):
        return []
    assignment = find_maximum_matching(edges)
    extra = set(range(len(items))) - set(assignment.values())
    faults = [f"missing: {describe_expected(each)}" for at, each in enumerate(want) if at not in assignment]
    faults += [f"unexpected: {describe_expected(items[at], literal=True)}" for at in sorted(extra)]
    if not faults and result.is_ordered:
        got = describe_expected(items, literal=True)
        return [f"expected in this order: {describe_expected(want)}, got {got}"]
    return faults


def _matches(want: Any, item: Any) -> bool:
    if is_row(want):
        return next(_find_row_differences(want, item), None) is None
    return matches_value(want, item)


_ROWS_SHOWN = 3


def _describe_rows(result: QueryResult) -> str:
    if not result.rows:
        return "no row"
    if len(result.rows) == len(result.columns) == 1:
        return describe_expected(result.rows[0][0], literal=True)
    shown = (describe_expected(_to_row(result, values), literal=True) for values in result.rows[:_ROWS_SHOWN])
    more = ", …" if len(result.rows) > _ROWS_SHOWN else ""
    return f"{plural(len(result.rows), 'row')}: {', '.join(shown)}{more}"
