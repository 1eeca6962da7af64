"""Tools that the author wrote in Python: ``python: mocks.py:lookup``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from agenteval.chat import jsonable
from agenteval.errors import AuthorError, Place, Problem, ToolError, place_of
from agenteval.scenario import Sample, SampleKey, Scenario
from agenteval.tools import FunctionCall, error_result
from agenteval.trajectory import ToolResult
from agenteval.user_code import DeadlineError, call, describe, load, positional_parameters


@dataclass(frozen=True)
class ToolContext:
    """The second argument of a mock: which call of this tool it is in the sample (from 0), in which
    turn (from 0), of which sample; ``seed`` is the sample's own (63 bits)."""

    call_index: int
    turn: int
    sample: SampleKey
    seed: int


class MockFunctions:
    """Calls them. What they raise, other than ``ToolError``, is the author's mistake."""

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    def check(self, scenario: Scenario) -> None:
        """Load every function of a scenario, so that a wrong name shows before anything runs."""
        for name, tool in scenario.tools.items():
            if tool.python is not None:
                self._function(tool.python, tool.base, place_of(scenario.where(f"tools.{name}")), name)

    def _function(self, target: str, base: str, place: Place, name: str) -> Any:
        function = load(target, base, what=f"tool '{name}'", place=place)
        if not callable(function):
            raise AuthorError(Problem(f"tool '{name}': {target} is not a function", "", place))
        return function

    async def __call__(self, wanted: FunctionCall, sample: Sample, turn: int) -> ToolResult:
        place = place_of(sample.scenario.where(f"tools.{wanted.tool}"))
        function = self._function(wanted.target, wanted.base, place, wanted.tool)
        context = ToolContext(wanted.call_index, turn, sample.key, sample.seed)
        arguments = (wanted.args, context)[: max(1, positional_parameters(function))]
        try:
            return ToolResult(value=jsonable(await call(function, *arguments, timeout_s=self._timeout_s)))
        except ToolError as error:
            return error_result(str(error))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            what = f"the mock of '{wanted.tool}' raised {describe(error)}"
            if isinstance(error, DeadlineError):
                what = f"the mock of '{wanted.tool}' did not return within {self._timeout_s:g} s"
            remedy = "to give the agent an error result, raise agenteval.ToolError"
            raise AuthorError(Problem(what, remedy, place)) from error
