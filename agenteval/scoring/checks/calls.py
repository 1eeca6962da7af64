"""``expect.tool_calls``; the comparison itself is in ``agenteval.scoring.checks.call_matching``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval.core.errors import Mistake
from agenteval.core.scenario import ToolCallsExpectation
from agenteval.scoring.checks.arguments import call_matches, matcher_mistakes
from agenteval.scoring.checks.call_matching import (
    ToolCallsResult,
    compare,
    describe,
    faults,
    forbids_extra,
    so_far,
)
from agenteval.scoring.checks.rule import Outcome, Rule, Seen


def tool_calls(expected: ToolCallsExpectation, seen: Seen) -> Outcome:
    result = so_far(expected, seen.tool_calls) if seen.goes_on else compare(expected, seen.tool_calls)
    return Outcome(
        result.passed,
        describe(result),
        parts=faults(result),
        is_lasting=result.passed is False and (seen.goes_on or _is_too_much(result)),
        is_by_absence=_is_by_absence(result),
        at=_forbidden_by(result),
    )


def _forbidden_by(result: ToolCallsResult) -> str:
    """The entry that forbids the first forbidden call, where nothing else is wrong."""
    if not result.forbidden or any(not fault.startswith("forbidden ") for fault in faults(result)):
        return ""
    entries = enumerate(result.expectation.forbidden)
    return next((f"forbidden.{at}" for at, each in entries if call_matches(each, result.forbidden[0])), "")


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


def mistakes(written: Any) -> Iterator[Mistake]:
    """Of names and matchers. Whether nothing at all is checked its own model says."""
    for group in ("calls", "forbidden") if isinstance(written, Mapping) else ():
        entries = written.get(group)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, Mapping):
                yield from _of_call(entry, (group, index))


def _of_call(entry: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Mistake]:
    name = entry.get("name")
    if isinstance(name, str) and not name.strip():
        remedy = "write the text to look for, or remove it"
        yield Mistake("a tool name must not be empty", remedy, (*path, "name"))
    agent = entry.get("agent")
    if isinstance(agent, str) and not agent.strip():
        yield Mistake(
            "an agent name must not be empty", "write the agent's name, or remove it", (*path, "agent")
        )
    if "args" in entry:
        yield from matcher_mistakes(entry["args"], (*path, "args"))


TOOL_CALLS = (Rule("tool_calls", tool_calls, mistakes=mistakes),)
