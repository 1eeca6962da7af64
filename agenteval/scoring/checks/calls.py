"""``expect.tool_calls``: checks which tools the agent called, with which arguments (trajectory
evaluation). The comparison itself is in ``agenteval.scoring.checks.call_matching``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval.core.errors import Mistake
from agenteval.core.scenario import ToolCallsExpectation
from agenteval.files.value_matching import find_matcher_mistakes, find_optional_paths
from agenteval.scoring.checks.arguments import call_matches
from agenteval.scoring.checks.call_descriptions import describe_tool_calls_result, list_call_faults
from agenteval.scoring.checks.call_matching import ToolCallsResult, compare_tool_calls
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome, CheckRule


def check_tool_calls(expected: ToolCallsExpectation, seen: CheckInput) -> CheckOutcome:
    result = compare_tool_calls(expected, seen.tool_calls, is_ongoing=seen.is_ongoing)
    return CheckOutcome(
        result.passed,
        describe_tool_calls_result(result),
        parts=list_call_faults(result),
        is_lasting=result.passed is False and (seen.is_ongoing or not result.rests_on_absence),
        is_by_absence=result.rests_on_absence,
        key_path=_find_forbidding_entry(result),
        turn=_first_turn(result, seen),
    )


def _first_turn(result: ToolCallsResult, seen: CheckInput) -> int | None:
    """Return the turn that contains the first faulty call. A missing call does not belong to any turn."""
    wrong = (*result.forbidden, *result.extra)
    return min((turn for call in wrong if (turn := seen.turn_of(call)) is not None), default=None)


def _find_forbidding_entry(result: ToolCallsResult) -> str:
    """Return the entry that forbids the first forbidden call, if there is no other fault."""
    if not result.forbidden or any(not fault.startswith("forbidden ") for fault in list_call_faults(result)):
        return ""
    entries = enumerate(result.expectation.forbidden)
    return next((f"forbidden.{at}" for at, each in entries if call_matches(each, result.forbidden[0])), "")


def find_tool_call_mistakes(written: Any) -> Iterator[Mistake]:
    """Yield the errors in tool names and matchers.

    An entry that checks nothing is reported by the model of ``tool_calls`` itself."""
    for path, entry in _entries(written):
        yield from _find_call_mistakes(entry, path)
        if path[0] == "forbidden":
            for place in find_optional_paths(entry.get("args")):
                what = "`$optional` in `forbidden` would also forbid calls without that argument"
                yield Mistake(what, "remove the argument, or set its value", (*path, "args", *place))


def _entries(written: Any) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Yield each expected or forbidden call with its path."""
    if not isinstance(written, Mapping):
        return
    for group in ("calls", "forbidden"):
        entries = written.get(group)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, Mapping):
                yield (group, index), entry
    alternatives = written.get("any_of")
    for index, alternative in enumerate(alternatives if isinstance(alternatives, list) else ()):
        yield from ((("any_of", index, *path), entry) for path, entry in _entries(alternative))


def _find_call_mistakes(entry: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Mistake]:
    for key, mistake in _IF_EMPTY.items():
        if isinstance(name := entry.get(key), str) and not name.strip():
            yield Mistake(*mistake, (*path, key))
    if "args" in entry:
        args = entry["args"]
        if isinstance(args, Mapping) and "$optional" in args and path[0] != "forbidden":
            what = "`$optional` applies to a single argument, not to all of `args`"
            yield Mistake(what, "use `{NAME: {$optional: VALUE}}`", (*path, "args", "$optional"))
        yield from find_matcher_mistakes(args, (*path, "args"))


_IF_EMPTY = {
    "name": ("a tool name must not be empty", "set a tool name, or remove the entry"),
    "agent": ("an agent name must not be empty", "set an agent name, or remove it"),
}

TOOL_CALLS = (CheckRule("tool_calls", check_tool_calls, find_mistakes=find_tool_call_mistakes),)
