"""Finds the mistakes in ``expect.state`` that only the start state and the tools show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agenteval.conversation.reference_states import find_failed_call, resolve_calls
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.scenario import Expectation, Scenario
from agenteval.core.trajectory import ToolResult
from agenteval.core.world_state import StateExpectation
from agenteval.files.yaml_source import Mark
from agenteval.scoring.checks.state_changes import find_unknown_names
from agenteval.scoring.checks.state_queries import is_row
from agenteval.world.start_state import StartState
from agenteval.world.statements import Statement, duplicate_problems, prepare_statement

Path = tuple[str | int, ...]
Found = Iterator[tuple[Path, Problem]]


def state_expectation_problems(scenario: Scenario, mark: Mark, start: StartState | None) -> Iterator[Problem]:
    """Yield the mistakes in the expectations about the state of a scenario that was written at the mark.
    ``start`` is the state with which conversations begin, or ``None`` if there is none."""
    for path, expect in scenario.expectations:
        written = mark.find((*_parse_path(path), "state"))
        if start is None or scenario.state is None:
            yield from _missing_state_problems(expect, written)
            continue
        for index, each in enumerate(expect.state):
            for below, problem in _find_problems(scenario, each, start):
                yield problem._replace(place=written.find((index, *below)).place)


def _missing_state_problems(expect: Expectation, written: Mark) -> Iterator[Problem]:
    if expect.state:
        what = "an expectation about the state needs the scenario's `state`"
        yield Problem(what, "add `state`, or expect calls in `expect.tool_calls`", written.place)


def _parse_path(path: str) -> Path:
    return tuple(int(part) if part.isdecimal() else part for part in path.split("."))


def _find_problems(scenario: Scenario, expected: StateExpectation, start: StartState) -> Found:
    if expected.sql is not None:
        yield from _find_query_problems(expected, start)
    for below, problem in find_unknown_names(expected.changed or {}, start):
        yield ("changed", *below), problem
    yield from _find_call_problems(expected, scenario)


def _find_call_problems(expected: StateExpectation, scenario: Scenario) -> Found:
    calls = expected.same_as or ()
    results: list[ToolResult | None] = []
    try:
        for _, answer in resolve_calls(calls, scenario.every_tool):
            result = answer if isinstance(answer, ToolResult) else None
            if result and result.refused:
                yield ("same_as", len(results)), Problem(result.value["error"], "correct the call")
                result = None
            results.append(result)
    except AuthorError as error:
        yield from ((("same_as", len(results)), problem) for problem in error.problems)
        return
    if failed := find_failed_call(calls, results):
        remedy = "repeat the call if it succeeds then, or use `changed` or `sql`"
        yield ("same_as", failed.position), Problem(f"the expected {failed.text}", remedy)


# ── sql ──────────────────────────────────────────────────────────────────────────────────────────


def _find_query_problems(expected: StateExpectation, start: StartState) -> Found:
    try:
        statement = prepare_statement(expected.sql or "", start)
    except AuthorError as error:
        yield from ((("sql",), problem) for problem in error.problems)
        return
    if not statement.is_query:
        yield ("sql",), Problem("a check may only read", "use SELECT")
    elif statement.parameters or statement.position_count:
        name = f":{statement.parameters[0]}" if statement.parameters else "?"
        yield ("sql",), Problem(f"'{name}' has no value in a check", "write the value itself")
    elif not expected.empty and statement.columns is not None:
        yield from _find_result_problems(expected.equals, statement, statement.columns)


def _find_result_problems(equals: Any, statement: Statement, columns: Sequence[str]) -> Found:
    items = enumerate(equals) if isinstance(equals, list | tuple) else [("", equals)]
    rows = [(at, item) for at, item in items if is_row(item)]
    if rows:
        yield from ((("sql",), problem) for problem in duplicate_problems(statement))
    elif len(columns) != 1 and equals not in ([], ()):
        what = f"the query has {len(columns)} columns, but `equals` has values of one"
        yield ("sql",), Problem(what, "select one column, or expect rows: {column: value}")
    known = {name.lower() for name in columns}
    for at, row in rows:
        below = ("equals",) if at == "" else ("equals", at)
        for name in (name for name in row if name.lower() not in known):
            yield (*below, name), Problem(f"the query has no column '{name}'", did_you_mean(name, columns))
