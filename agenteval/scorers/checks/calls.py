"""``expect.tool_calls``; the comparison itself is in ``agenteval.scorers.tool_calls``."""

from __future__ import annotations

from agenteval.scenario import ToolCallsExpectation
from agenteval.scorers.checks.rule import Outcome, Rule, Seen
from agenteval.scorers.tool_calls import ToolCallsResult, compare, describe, faults, forbids_extra


def tool_calls(expected: ToolCallsExpectation, seen: Seen) -> Outcome:
    result = compare(expected, seen.tool_calls)
    return Outcome(
        result.passed,
        describe(result),
        parts=faults(result),
        is_lasting=result.passed is False and _is_too_much(result),
        is_by_absence=_is_by_absence(result),
    )


def _is_too_much(result: ToolCallsResult) -> bool:
    """Whether a call was made that was not to be."""
    return bool(result.forbidden or (_bounds(result) and result.extra))


def _bounds(result: ToolCallsResult) -> bool:
    """Whether no other calls are allowed."""
    return result.expectation.calls is not None and forbids_extra(result.expectation.match)


def _is_by_absence(result: ToolCallsResult) -> bool:
    if result.passed is False:
        # Where others are allowed, the call that came too early may have been made again.
        return not _is_too_much(result) and not (_bounds(result) and result.out_of_order)
    return bool(result.expectation.forbidden) or _bounds(result)


TOOL_CALLS = (Rule("tool_calls", tool_calls),)
