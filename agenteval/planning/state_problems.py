"""Finds the mistakes in a scenario's state and in what works on it: SQL of tools, and expectations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache, partial

from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.core.plan import SuitePolicy
from agenteval.core.scenario import Scenario, Tool, ToolAnswer
from agenteval.files.scenario_checks import argument_names
from agenteval.files.value_parts import leaves
from agenteval.files.yaml_source import Mark
from agenteval.scoring.checks.state_expectations import state_expectation_problems
from agenteval.world.loading import load_start_state, world_time
from agenteval.world.snapshot_tables import TableRows, start_rows
from agenteval.world.start_state import StartState
from agenteval.world.statements import Statement, prepare_statements


@cache
def run_time() -> datetime:
    """Return the time at which this process began to work on a suite."""
    return datetime.now(UTC).replace(microsecond=0)


def scenario_start_state(scenario: Scenario, now: str | None, mark: Mark | None = None) -> StartState | None:
    """Return the state with which the scenario's conversations begin: an empty one if only its tools use SQL,
    or ``None`` if nothing does. ``now`` is the configured time, and ``mark`` is where the scenario was
    written. Raise ``AuthorError`` with all mistakes in the state."""
    if not scenario.uses_state:
        return None
    if scenario.state is None:
        return _empty_state()
    place_of = partial(_place_in_state, mark) if mark else None
    return load_start_state(scenario.state, world_time(now, run_time()), place_of)


def world_rows(scenario: Scenario, now: str | None, mark: Mark | None = None) -> TableRows | None:
    """Return the rows that the author wrote for the state, or that its files hold, for the scenario's world
    to begin with; ``None`` if there is no such state. Raise ``AuthorError`` with all mistakes in it."""
    state = scenario.state
    if state is None or not (state.tables or state.schema or state.database):
        return None
    written = scenario.model_copy(update={"state": state.model_copy(update={"snapshot": {}})})
    start = scenario_start_state(written, now, mark)
    return start_rows(start) if start else None


@cache
def _empty_state() -> StartState:
    return StartState(b"")


def _place_in_state(mark: Mark, path: tuple[str | int, ...]) -> Place:
    return mark.find(("state", *path)).place


def state_problems(scenario: Scenario, mark: Mark, suite: SuitePolicy) -> Iterator[Problem]:
    """Yield the mistakes in the state of a scenario, in the SQL of its tools, and in what it expects of the
    state."""
    try:
        start = scenario_start_state(scenario, suite.now, mark)
    except AuthorError as error:
        here = mark.find(("state",)).place
        yield from (problem if problem.place else problem._replace(place=here) for problem in error.problems)
        return
    yield from state_expectation_problems(scenario, mark, start)
    if start is None:
        return
    for key, tools in (("tools", scenario.tools), ("user_tools", scenario.user_tools)):
        for name, tool in tools.items():
            for path, answer in tool.all_answers:
                if answer.sql is not None:
                    yield from _sql_problems(tool, answer, start, mark.find((key, name, *path)))


def _sql_problems(tool: Tool, answer: ToolAnswer, start: StartState, mark: Mark) -> Iterator[Problem]:
    sql = mark.find(("sql",))
    statements: list[Statement] = []
    for number, text in enumerate(answer.sql or ()):
        place = (sql.find((number,)) if sql.children else sql).place
        try:
            statements += prepare_statements((text,), start)
        except AuthorError as error:
            yield from (problem._replace(place=place) for problem in error.problems)
            return
        yield from (problem._replace(place=place) for problem in _parameter_problems(tool, statements[-1]))
        if tool.reads and not statements[-1].is_query:
            what = "the tool has `reads: true`, but this statement writes"
            yield Problem(what, "remove the mark, or use SELECT", place)
    for problem in _result_problems(answer, statements[-1]):
        yield problem._replace(place=mark.find(("returns",)).place)


def _parameter_problems(tool: Tool, statement: Statement) -> Iterator[Problem]:
    known = argument_names(tool.parameters)
    for name in statement.parameters:
        if known is not None and name not in known:
            what = f"the tool has no parameter '{name}', which `:{name}` names"
            yield Problem(what, did_you_mean(name, known))


_RESULT = re.compile(r"(?<!\$)\$\{\s*result(?:\.([^.}]*))?[^}]*\}")


def _result_problems(answer: ToolAnswer, last: Statement) -> Iterator[Problem]:
    """Yield the mistakes in the references of ``returns`` to the first row."""
    texts = (text for _, text in leaves(answer.returns) if isinstance(text, str))
    names = list(dict.fromkeys(match[1] for text in texts for match in _RESULT.finditer(text)))
    if names and answer.none is None:
        what = "`${result.…}` names nothing if no row is found"
        yield Problem(what, "add `none`, which answers then")
    for name in names:
        if last.columns is not None and name not in last.columns:
            what = f"`${{result.{name}}}` names no column of the result"
            yield Problem(what, did_you_mean(name or "", last.columns) or "the statement returns no rows")
