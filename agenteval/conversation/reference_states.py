"""Makes the states with which ``same_as`` compares the agent's: the states that the author's calls leave if
they are made one after the other at the start.

Scoring makes a state again from what was recorded, and calls no code of the author. So it can make the calls
that SQL answers; the others are made here, before the conversation, and their states are recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from agenteval.conversation.simulation import ToolWorld
from agenteval.conversation.tools import (
    FunctionCall,
    MethodCall,
    SqlCall,
    ToolState,
    UnmatchedCall,
    resolve_tool_call,
)
from agenteval.core.call_outcomes import error_of, format_call, json_key
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.scenario import Scenario, Tool
from agenteval.core.trajectory import ToolCall, ToolResult
from agenteval.core.world_state import ReferenceState, StateCall
from agenteval.files.value_matching import describe_expected

StateCalls: TypeAlias = tuple[StateCall, ...]


def needs_author_code(calls: Sequence[StateCall], tools: Mapping[str, Tool]) -> bool:
    """Check whether the author's code may answer some of the calls."""
    return any(call.name in tools and tools[call.name].calls_python for call in calls)


def reference_calls(scenario: Scenario) -> list[StateCalls]:
    """Return the calls of each ``same_as`` that needs the author's code, without repetitions."""
    expected = scenario.with_waived.expectations
    found = (each.same_as for _, expect in expected for each in expect.state if each.same_as)
    needed = [calls for calls in found if needs_author_code(calls, scenario.every_tool)]
    return [*{key_of_calls(calls): calls for calls in needed}.values()]


def key_of_calls(calls: Sequence[StateCall]) -> tuple[Hashable, ...]:
    """Return a key that only equal calls have."""
    return tuple(json_key([call.name, call.args]) for call in calls)


async def make_references(
    references: Sequence[StateCalls], scenario: Scenario, make_world: Callable[[], Awaitable[ToolWorld]]
) -> tuple[ReferenceState, ...]:
    """Make the calls of each reference in a tool world of its own. Raise ``AuthorError`` if the author's code
    fails."""
    tools = scenario.every_tool
    return tuple([await _make_reference(calls, tools, await make_world()) for calls in references])


async def _make_reference(calls: StateCalls, tools: Mapping[str, Tool], world: ToolWorld) -> ReferenceState:
    try:
        results: list[ToolResult] = []
        for _, answer in resolve_calls(calls, tools):
            if not isinstance(answer, ToolResult):
                answer = await world.answer_from_state(answer, 0)
            results.append(answer)
        if failed := find_failed_call(calls, results):
            return ReferenceState(calls=calls, error=failed.text)
        return ReferenceState(calls=calls, changes=world.state_changes())
    finally:
        world.close()


def resolve_calls(
    calls: Sequence[StateCall], tools: Mapping[str, Tool]
) -> Iterator[tuple[StateCall, ToolResult | SqlCall | FunctionCall | MethodCall]]:
    """Yield each call with its answer, or with what answers it. Raise ``AuthorError`` for a call that the
    scenario does not answer."""
    state = ToolState()
    for call in calls:
        if problem := _find_tool_problem(call.name, tools):
            raise AuthorError(problem)
        state, answer = resolve_tool_call(tools, state, call.name, call.args, unmocked_tools="empty")
        if isinstance(answer, UnmatchedCall):
            what = f"no rule of '{call.name}' matches {describe_call(call)}"
            raise AuthorError(Problem(what, "correct the arguments, or add a rule"))
        yield call, answer


def _find_tool_problem(name: str, tools: Mapping[str, Tool]) -> Problem | None:
    tool = tools.get(name)
    if tool is None:
        return Problem(f"unknown tool '{name}'", did_you_mean(name, tools))
    if not tool.is_mocked:
        return Problem(f"the tool '{name}' has no answer, so that a call changes nothing", "add `sql`")
    return None


def describe_call(call: StateCall) -> str:
    """Return a call in the form in which reports show calls."""
    return format_call(ToolCall(name=call.name, args=call.args))


class FailedStateCall(NamedTuple):
    """A call that failed, so that nobody knows what it was to change."""

    position: int
    """The position in the list of calls."""
    text: str


def find_failed_call(
    calls: Sequence[StateCall], results: Sequence[ToolResult | None]
) -> FailedStateCall | None:
    """Return the first call that failed and did not succeed when it was made again. A result that is not
    known is ``None``."""
    failed: dict[Hashable, FailedStateCall] = {}
    for index, (call, result) in enumerate(zip(calls, results, strict=True)):
        key = json_key([call.name, call.args])
        if result is None or error_of(result) is None:
            failed.pop(key, None)
        else:
            text = f"{describe_call(call)} returns {describe_expected(result.value, literal=True)}"
            failed.setdefault(key, FailedStateCall(index, text))
    return next(iter(failed.values()), None)
