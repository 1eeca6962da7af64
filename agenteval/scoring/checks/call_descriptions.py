"""Describes the comparison of tool calls in readable form: the expected calls, the actual calls and the
faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any

from agenteval.core.call_outcomes import describe_missing_arguments, format_call
from agenteval.core.excerpts import one_line
from agenteval.core.plurals import plural
from agenteval.core.safe_text import limit_texts, one_line_with_digest
from agenteval.core.scenario import (
    ArgsMatch,
    CallPattern,
    CallsExpectation,
    ExpectedCall,
    MatchMode,
    ToolCallsExpectation,
)
from agenteval.core.trajectory import ToolCall
from agenteval.files.value_matching import describe_expected
from agenteval.scoring.checks.agents import NAMELESS
from agenteval.scoring.checks.arguments import UnknownPart, get_result_status
from agenteval.scoring.checks.call_matching import MAX_NEAREST_SHOWN, ToolCallsResult

_SHOWN_CALLS = 20
_NOT_DECIDED: dict[UnknownPart, str] = {
    "arguments": "the arguments of these calls are unknown",
    "agent": "the agent of these calls is unknown",
    "result": "the results of these calls are unknown",
}


def describe_tool_calls_result(result: ToolCallsResult) -> str:
    """Describe the result: the expected and the actual calls and, if the check failed, the faults and the
    nearest calls."""
    expectation, texts = result.expectation, _call_formatter(result.expectation)
    lines = [_expected(expectation)] if expectation.alternatives else []
    if expectation.forbidden:
        lines.append(f"not allowed: {_format_runs(map(format_expected_call, expectation.forbidden))}")
    lines.append(f"called: {_format_runs(map(texts, result.calls))}")
    for what, calls in result.unknown_calls.items():
        remedy = f" — {NAMELESS}" if what == "agent" else ""
        named = _format_runs(map(describe_call if what == "agent" else texts, calls))
        lines.append(f"not decided, because {_NOT_DECIDED[what]}: {named}{remedy}")
    if result.passed is not False:
        return "; ".join(lines)
    return "\n".join([*lines, *_describe_faults(result, texts)])


def _expected(expectation: ToolCallsExpectation) -> str:
    if expectation.any_of is None:
        return f"expected {_alternative(expectation)}"
    return f"expected one of: {' | '.join(map(_alternative, expectation.any_of))}"


def _alternative(expected: CallsExpectation) -> str:
    return f"({expected.match}): {_format_runs(map(format_expected_call, expected.calls or ()))}"


def _call_formatter(expectation: ToolCallsExpectation) -> Callable[[ToolCall], str]:
    """Return a formatter for calls. Its output includes agents and results if the author specified any."""
    every = (*expectation.expected_calls, *expectation.forbidden)
    by_agent = any(each.agent for each in every)
    by_result = any(each.wanted_result for each in every)

    def text(call: ToolCall) -> str:
        result = f" → {get_result_status(call) or 'unknown'}" if by_result else ""
        agent = f" by {one_line(call.agent, 80) or 'an unknown agent'}" if by_agent else ""
        return f"{describe_call(call)}{result}{agent}"

    return text


def list_call_faults(result: ToolCallsResult) -> tuple[str, ...]:
    """List each fault once if the comparison failed. Otherwise, return an empty list.

    ``missing book(time="20:00")`` shows the author's values; ``forbidden cancel(id="A-7")`` shows the agent's
    values."""
    if result.passed is not False:
        return ()
    found = [f"missing {format_expected_call(expected)}" for expected in result.missing]
    groups = {"out of order": result.out_of_order, "forbidden": result.forbidden, "extra": result.extra}
    found += [
        f"{what} {one_line_with_digest(format_call(call), 240)}"
        for what, calls in groups.items()
        for call in calls
    ]
    return limit_texts(_SHOWN_CALLS, found)


def describe_call(call: ToolCall) -> str:
    """Format a call, as in ``get_weather(city="Beijing")``."""
    if call.args is None:
        return f"{call.name}({one_line(describe_missing_arguments(call), 92)})"
    return one_line(f"{call.name}({_arguments(call.args, literal=True)})", 240)


def format_expected_call(expected: CallPattern) -> str:
    """Format an expected call, as in ``reserve(time=one of ["09:00"], …) → ok by billing ×1 to 3``.

    The ellipsis means that additional arguments are allowed."""
    result = f" → {expected.wanted_result}" if expected.wanted_result else ""
    by = f" by {one_line(expected.agent, 80)}" if expected.agent else ""
    times = _times(expected) if isinstance(expected, ExpectedCall) else ""
    if expected.mode is ArgsMatch.IGNORE or expected.args is None:
        return f"{expected.name}(…){result}{by}{times}"
    listed = _arguments(expected.args, literal=False)
    if expected.mode is ArgsMatch.PARTIAL:
        listed = f"{listed}, …" if listed else "…"
    return one_line_with_digest(f"{expected.name}({listed})", 240) + result + by + times


def _times(expected: ExpectedCall) -> str:
    times = expected.times
    if times is None:
        return ""
    if isinstance(times, int):
        return f" ×{times}"
    if times.at_least is None:
        return f" ×{times.at_most} at most"
    if times.at_most is None:
        return f" ×{times.at_least} or more" if times.at_least else " ×any number"
    between = f"{times.at_least} to " if times.at_least < times.at_most else ""
    return f" ×{between}{times.at_most}"


def _describe_faults(result: ToolCallsResult, texts: Callable[[ToolCall], str]) -> Iterator[str]:
    lines = iter((*_describe_missing(result, texts), *_describe_undue(result, texts)))
    alternatives = result.expectation.any_of or ()
    number = next((n for n, each in enumerate(alternatives, 1) if each is result.nearest_alternative), 0)
    if number and (first := next(lines, "")):
        yield f"closest is alternative {number} of {len(alternatives)}: {first}"
    yield from lines
    if result.forbidden:
        yield f"forbidden: {_format_runs(map(texts, result.forbidden))}"


def _describe_missing(result: ToolCallsResult, texts: Callable[[ToolCall], str]) -> Iterator[str]:
    by_expected = {id(near.expected): near for near in result.near}
    for expected in result.missing[:MAX_NEAREST_SHOWN]:
        near = by_expected.get(id(expected))
        hint = f"nearest: {texts(near.call)}: {near.difference}" if near else "never called"
        if result.times.get(id(expected)):
            hint = _describe_count(result, expected)
        yield f"missing: {format_expected_call(expected)} — {hint}"
    if len(result.missing) > MAX_NEAREST_SHOWN:
        yield f"missing: {len(result.missing) - MAX_NEAREST_SHOWN} more"


def _describe_undue(result: ToolCallsResult, texts: Callable[[ToolCall], str]) -> Iterator[str]:
    if result.out_of_order:
        yield f"out of order: {_format_runs(map(texts, result.out_of_order))}"
    if result.extra:
        exceeded = (
            f"{format_expected_call(each)} was {_describe_count(result, each)}" for each in result.too_many
        )
        why = "; ".join(islice(exceeded, MAX_NEAREST_SHOWN))
        yield f"extra: {_format_runs(map(texts, result.extra))}{f' — {why}' if why else ''}"
        if result.nearest_alternative is not None and result.nearest_alternative.match is MatchMode.WITHIN:
            by_call = {id(near.call): near for near in result.near if near.difference}
            for call in result.extra[:MAX_NEAREST_SHOWN]:
                if near := by_call.get(id(call)):
                    yield f"  {texts(call)} — {near.difference}"


def _describe_count(result: ToolCallsResult, expected: ExpectedCall) -> str:
    count = result.times[id(expected)]
    return "called once" if count == 1 else f"called {plural(count, 'time')}"


def _arguments(args: Mapping[str, Any], *, literal: bool) -> str:
    return ", ".join(f"{name}={describe_expected(value, literal=literal)}" for name, value in args.items())


def _format_runs(texts: Iterable[str]) -> str:
    """Format strings as in ``a, b ×3, c``, or return "no call" if there are no strings."""
    runs = [(text, sum(1 for _ in same)) for text, same in groupby(texts)]
    shown = [text if times == 1 else f"{text} ×{times}" for text, times in runs[:_SHOWN_CALLS]]
    if len(runs) > _SHOWN_CALLS:
        shown.append(f"and {sum(times for _, times in runs[_SHOWN_CALLS:])} more")
    return ", ".join(shown) or "no call"
