"""Mock tools that the author wrote in Python: ``python: mocks.py:lookup``. Canned responses (``returns``,
``error``, ``sequence``) are in ``conversation.tools``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agenteval.agentside.targets.context import is_loop_blocked
from agenteval.agentside.targets.faults import contain_exits, describe_error
from agenteval.agentside.targets.signatures import find_signature_mismatch, is_async, takes_context
from agenteval.conversation.deadlines import BlockedLoopError
from agenteval.conversation.tools import FunctionCall, error_result
from agenteval.conversation.user_code import DeadlineError, call_user_code, import_target
from agenteval.core.errors import AuthorError, Place, Problem, ToolError, parse_place
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.trajectory import ToolResult
from agenteval.messages.chat import jsonable

if TYPE_CHECKING:
    from agenteval.world.database import WorldTransaction


@dataclass(frozen=True)
class ToolContext:
    """The context of a mock call, passed as the second argument of a mock."""

    call_index: int
    """The index of the call among all calls to this tool in the sample, from 0."""
    turn: int
    """The index of the turn, from 0."""
    sample: SampleKey
    """The sample that the call belongs to."""
    seed: int
    """The random seed of the sample (63 bits)."""
    db: WorldTransaction | None = None
    """The state of the tool world, in the transaction of this call, or ``None`` if the scenario has no state.
    ``db.execute(sql, parameters)`` runs a statement; a ``ToolError`` undoes everything."""


class MockFunctions:
    """Calls the mock functions. Any exception other than ``ToolError`` is treated as the author's mistake."""

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    def check(self, scenario: Scenario) -> None:
        """Load all mock functions of a scenario, so that a wrong name is reported before anything runs."""
        for name, tool in scenario.every_tool.items():
            for path, target in tool.functions.items():
                place = parse_place(scenario.where(f"{_key_of(name, scenario)}.{path}"))
                self._function(target, tool.base, place, name)

    def _function(self, target: str, base: str, place: Place, name: str) -> Any:
        function = import_target(target, base, what=f"tool '{name}'", place=place)
        if not callable(function):
            raise AuthorError(Problem(f"tool '{name}': {target} is not a function", "", place))
        if shape := find_signature_mismatch(function, 1 + takes_context(function)):
            what = f"tool '{name}': {target} cannot be called with the arguments and a context: {shape}"
            raise AuthorError(Problem(what, "define it as `def NAME(args)` or `def NAME(args, ctx)`", place))
        return function

    async def __call__(self, call: FunctionCall, sample: Sample, turn: int) -> ToolResult:
        place = parse_place(sample.scenario.where(_key_of(call.tool, sample.scenario)))
        function = self._function(call.target, call.base, place, call.tool)
        if is_loop_blocked() and is_async(function):
            what = f"the agent called '{call.tool}' without `await` in its event loop, but the mock is async"
            raise AuthorError(Problem(what, "define the mock with `def` instead of `async def`", place))
        context = ToolContext(call.call_index, turn, sample.key, sample.seed, call.database)
        args = deepcopy(call.args)  # the mock may change them; the record must not change
        arguments = (args, context) if takes_context(function) else (args,)
        what = f"the mock of '{call.tool}'"
        return await answer_by_code(
            partial(function, *arguments), what=what, place=place, timeout_s=self._timeout_s
        )


def _key_of(tool: str, scenario: Scenario) -> str:
    """Return the path of a tool in its scenario."""
    return f"{'user_tools' if tool in scenario.user_tools else 'tools'}.{tool}"


async def answer_by_code(
    function: Callable[[], Any], *, what: str, place: Place, timeout_s: float
) -> ToolResult:
    """Return what the author's function answers. ``what`` describes it in messages. Raise ``AuthorError``
    if it fails in any other way than by ``ToolError``."""
    try:
        value = await call_user_code(function, timeout_s=timeout_s)
        return ToolResult(value=to_json_value(value, what, place))
    except ToolError as error:
        return error_result(str(error))
    except (asyncio.CancelledError, BlockedLoopError):
        raise
    except AuthorError as error:  # such as wrong SQL, which knows no place
        raise AuthorError(*(_within(each, what, place) for each in error.problems)) from error
    except Exception as error:
        fault = f"{what} raised {describe_error(error)}"
        if isinstance(error, DeadlineError):
            fault = f"{what} did not return within {timeout_s:g} s"
        remedy = "to return an error to the agent, raise `agenteval.ToolError`"
        raise AuthorError(Problem(fault, remedy, place)) from error


def _within(problem: Problem, what: str, place: Place) -> Problem:
    return problem if problem.place else problem._replace(what=f"{what}: {problem.what}", place=place)


def to_json_value(value: Any, what: str, place: Place) -> Any:
    """Return a value of the author's code as JSON. Raise ``AuthorError`` if JSON cannot represent it."""
    try:
        with contain_exits():
            return jsonable(value, _text_of)
    except ValueError as error:
        fault = f"{what} returned a value that cannot be represented in JSON: {error}"
        remedy = "return strings, numbers, lists or mappings, or values with a string form, such as dates"
        raise AuthorError(Problem(fault, remedy, place)) from error


def _text_of(value: Any) -> str:
    """Return the text form of a value if its class defines one (dates, UUIDs, paths). A default
    representation such as ``<object at 0x…>`` is not a realistic tool result."""
    if vars(object)["__str__"] is type(value).__str__ or isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(type(value).__name__)
    return str(value)
