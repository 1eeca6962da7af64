"""Compares a tool call with an expected call: agent, arguments and result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from agenteval.core.call_outcomes import error_of
from agenteval.core.scenario import ArgsMatch, CallPattern
from agenteval.core.tool_faults import NOT_CARRIED_OUT
from agenteval.core.trajectory import ToolCall
from agenteval.files.value_matching import Difference, UnreadableArguments, find_differences

_SHOWN_DIFFERENCES = 5

UnknownPart: TypeAlias = Literal["arguments", "agent", "result"]
"""The part of a call that is unknown but is needed to decide whether the call matches."""


def call_matches(expected: CallPattern, call: ToolCall) -> bool:
    """Check whether ``call`` certainly has the expected name, arguments and result, and was made by the
    expected agent.

    Of the argument modes, ``exact`` requires the same keys; ``partial`` requires at least the expected keys,
    with exactly the expected values; and ``ignore`` accepts any arguments."""
    return match_arguments(expected, call) is True


def match_arguments(expected: CallPattern, call: ToolCall) -> bool | UnknownPart:
    """Check whether ``call`` matches ``expected``.

    If the answer depends on an unknown part of the call, return that part: the arguments (if they could not
    be read), the agent that made the call, or the call's result."""
    if expected.name != call.name:
        return False
    if difference := next(compare_arguments(expected, call), None):
        return "arguments" if isinstance(difference.actual, UnreadableArguments) else False
    if expected.agent and not call.agent:
        return "agent"
    return "result" if expected.wanted_result and get_result_status(call) is None else True


def get_result_status(call: ToolCall) -> Literal["ok", "error", "not carried out"] | None:
    """Return whether the call succeeded, or ``None`` if its result is unknown. A call that a fault kept from
    being carried out did not, even if its answer says so."""
    if call.result is None:
        return None
    if error_of(call.result) is not None:
        return "error"
    fault = call.result.fault
    return "not carried out" if fault and fault.kind in NOT_CARRIED_OUT else "ok"


def compare_arguments(expected: CallPattern, call: ToolCall) -> Iterator[Difference]:
    """Yield the differences between ``call`` and the expected call in agent, result and arguments. The names
    of the calls are not compared."""
    if expected.agent and call.agent and expected.agent != call.agent:
        yield Difference("agent", expected.agent, call.agent)
    wanted, result = expected.wanted_result, get_result_status(call) if expected.wanted_result else None
    if result and wanted != result:
        message = error_of(call.result)
        yield Difference("result", wanted, f"error: {message}" if message else result)
    if expected.mode is ArgsMatch.IGNORE:
        return
    if call.args is None:
        yield Difference("args", expected.args, UnreadableArguments(call.raw_args))
        return
    yield from find_differences(expected.args, call.args, partial=expected.mode is ArgsMatch.PARTIAL)


def explain_differences(expected: Any, actual: Any) -> str:
    """Describe the differing paths in one sentence, or return an empty string if there are no differences.

    The inputs are either two values (``args``), or a ``CallPattern`` and a ``ToolCall``."""
    if isinstance(expected, CallPattern) and isinstance(actual, ToolCall):
        found = list(compare_arguments(expected, actual))
    else:
        found = list(find_differences(expected, actual))
    shown = "; ".join(map(str, found[:_SHOWN_DIFFERENCES]))
    rest = len(found) - _SHOWN_DIFFERENCES
    return f"{shown}; and {rest} more" if rest > 0 else shown
