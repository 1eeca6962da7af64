"""Finds scenarios whose question gives away a value that an expected call is to look up.

Such a test cannot tell whether the agent looked: an agent that takes the value from the question (a shortcut)
makes the same later call and gives the same answer. Users say many honest things that tools return as well,
such as the number of their order, so all of the following must hold:

- The question, which is the opening message, contains the value as a whole word or number. What the user says
  later may repeat what the agent said.
- The look-up, a required call, returns the value. Its tool has a fixed answer (``returns``, ``sequence``), or
  the answer was observed in a run. Of a list with several items the user may choose one, so these do not
  count.
- The look-up was not given the value: a value that is also its argument identifies what the user asks about.
- Another required call, written after the look-up or in a later turn, passes the value on: its ``args``
  contain it. If it has no ``args``, the expected answer contains it, and it is a number or has a digit.
- The question contains all arguments of both calls. Otherwise the agent needs another look-up anyway."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from agenteval.core.call_outcomes import error_of
from agenteval.core.excerpts import one_line
from agenteval.core.json_schema import schema_violations
from agenteval.core.patterns import SearchTimeoutError
from agenteval.core.scenario import (
    ArgsMatch,
    CallsExpectation,
    ExpectedCall,
    Scenario,
    ScriptedTurn,
    Tool,
)
from agenteval.core.text_matching import contains, needle_mistake
from agenteval.core.trajectory import ToolCall
from agenteval.files.value_matching import matches_value
from agenteval.messages.json_fields import read_json

Literal: TypeAlias = str | int | float


class LeakedLookup(NamedTuple):
    """A value that the user gives away although an expected call is to look it up."""

    value: Literal
    lookup: str
    """The tool that returns the value."""
    lookup_path: str
    """The path of the expected look-up."""
    tool: str
    """The tool that is expected to be called with the value."""
    argument: str
    """The dotted path of the argument, or an empty string if no arguments are expected, so that only the
    expected answer contains the value."""
    path: str
    """The path of the expectation that contains the value."""


def find_leaked_lookups(scenario: Scenario) -> Iterator[LeakedLookup]:
    """Yield each value that the opening message gives away according to the scenario alone, once for each
    pair of look-up and use."""

    def fixed_values(lookup: ExpectedCall) -> Iterator[Literal]:
        tool = scenario.tools.get(lookup.name)
        for value in _fixed_values(tool) if tool else ():
            if tool and not _may_be_given(lookup, tool, value):
                yield value

    return _find(scenario, fixed_values)


def find_observed_leaks(scenario: Scenario, calls: Iterable[ToolCall]) -> Iterator[LeakedLookup]:
    """Yield each value that the opening message gives away according to what tools without a fixed answer
    returned in conversations of the scenario. ``calls`` are the calls of these conversations."""

    @cache
    def calls_by_tool() -> dict[str, list[ToolCall]]:  # few scenarios need them
        by_tool: dict[str, list[ToolCall]] = {}
        for call in calls:
            by_tool.setdefault(call.name, []).append(call)
        return by_tool

    def observed_values(lookup: ExpectedCall) -> Iterator[Literal]:
        tool = scenario.tools.get(lookup.name)
        if tool and _has_fixed_answer(tool):
            return
        made = calls_by_tool().get(lookup.name, [])
        if any(call.args is None for call in made):
            return
        given = [each for call in made for _, each in _leaves(call.args)]
        for call in made:
            for value in _values(read_json(call.result.value)) if _has_answer(call) and call.result else ():
                if not any(_contains(each, value) for each in given):
                    yield value

    return _find(scenario, observed_values)


def describe_leak(leak: LeakedLookup, scenario: Scenario) -> str:
    """Describe what the question gives away, and what to do."""
    question = scenario.where("turns.0" if scenario.case is None else "input")
    lookup, use = scenario.where(leak.lookup_path), scenario.where(leak.path)
    if leak.argument:
        shown = f"`{leak.argument}` of the expected call to '{leak.tool}' ({use}) does not show"
    else:
        shown = f"neither the expected call to '{leak.tool}' nor the answer ({use}) shows"
    value = one_line(str(leak.value), 80)
    return (
        f"the question of '{scenario.id}' ({question}) gives away '{value}', which the expected call to"
        f" '{leak.lookup}' ({lookup}) returns, so {shown} whether the agent looked it up;"
        f" ask without '{value}'"
    )


def _find(
    scenario: Scenario, values_of: Callable[[ExpectedCall], Iterable[Literal]]
) -> Iterator[LeakedLookup]:
    opening = scenario.turns[0] if scenario.turns else None
    if not isinstance(opening, ScriptedTurn):
        return
    calls, found = tuple(_required_calls(scenario)), set()
    for lookup in calls:
        is_used = any(_may_follow(lookup, use) for use in calls)
        if not is_used or not _can_be_made(lookup.call.args, opening.user):
            continue
        leaked = {str(each): each for each in values_of(lookup.call) if _has_literal(opening.user, each)}
        for use, value in product(calls, leaked.values()):
            key = (str(value), lookup.call.name, use.call.name)
            if key in found or not _may_follow(lookup, use):
                continue
            for path, argument in _uses(scenario, use, value, opening.user)[:1]:
                found.add(key)
                yield LeakedLookup(value, lookup.call.name, lookup.path, use.call.name, argument, path)


# ── the expected calls ───────────────────────────────────────────────────────────────────────────


class _RequiredCall(NamedTuple):
    """A call that the scenario requires, and its place."""

    call: ExpectedCall
    path: str
    turn: int | None
    """The position of the turn, or ``None`` if the call may be made in any turn."""
    alternative: CallsExpectation
    position: int
    """The position in the alternative."""


def _required_calls(scenario: Scenario) -> Iterator[_RequiredCall]:
    for path, expect in scenario.expectations:
        turn = int(path.split(".")[1]) if path.startswith("turns.") else None
        for alternative in expect.tool_calls.alternatives if expect.tool_calls else ():
            yield from _calls_of(alternative, f"{path}.tool_calls", turn)
    if scenario.case and (named := scenario.case.tool_calls):
        yield from _calls_of(named, "expected_tools", None)


def _calls_of(alternative: CallsExpectation, path: str, turn: int | None) -> Iterator[_RequiredCall]:
    for position, call in enumerate(alternative.calls or ()):
        if call.bounds(alternative.match)[0] > 0:
            yield _RequiredCall(call, path, turn, alternative, position)


def _may_follow(lookup: _RequiredCall, use: _RequiredCall) -> bool:
    """Check whether ``use`` is written after ``lookup`` or in a later turn, so that it can use the result."""
    if lookup.call.result == "error" or lookup.call.name == use.call.name:
        return False
    if lookup.path == use.path:
        return lookup.alternative is use.alternative and use.position > lookup.position
    return lookup.turn is None or use.turn is None or use.turn >= lookup.turn


# ── what the look-up returns, and what it was given ──────────────────────────────────────────────


def _has_fixed_answer(tool: Tool) -> bool:
    return not tool.calls_python and tool.is_mocked


def _has_answer(call: ToolCall) -> bool:
    return call.result is not None and not call.is_refused and error_of(call.result) is None


def _fixed_values(tool: Tool) -> Iterator[Literal]:
    """Yield the values in the fixed answers of a tool. A placeholder is filled from the arguments, so it is
    not a fixed value."""
    for answer in tool.rules or (tool,):
        for step in answer.sequence or (answer,):
            yield from _values(read_json(step.returns))


def _values(answer: Any) -> Iterator[Literal]:
    if isinstance(answer, Mapping):
        for item in answer.values():
            yield from _values(item)
    elif isinstance(answer, list | tuple):
        if len(answer) == 1:
            yield from _values(answer[0])
    elif isinstance(answer, str):
        if "${" not in answer and not needle_mistake(answer, takes_stars=True):
            yield answer
    elif _is_number(answer):
        yield answer


def _may_be_given(call: ExpectedCall, tool: Tool, value: Literal) -> bool:
    """Check whether the look-up may be called with the value. If its expected arguments leave this open, the
    types of the tool's other parameters decide."""
    args = (call.args or {}) if call.mode is not ArgsMatch.IGNORE else {}
    if any(_accepts(expected, value) for _, expected in _leaves(args)):
        return True
    if call.mode is ArgsMatch.EXACT:
        return False
    if tool.parameters is None:
        return True
    properties = tool.parameters.get("properties")
    others = properties.items() if isinstance(properties, Mapping) else ()
    return any(_has_type_of(schema, value) for name, schema in others if name not in args)


def _accepts(expected: Any, value: Literal) -> bool:
    if not _is_matcher(expected):
        return _contains(expected, value)
    try:
        return matches_value(expected, value) or matches_value(expected, str(value))
    except SearchTimeoutError:
        return True


def _has_type_of(schema: Any, value: Literal) -> bool:
    """Check whether a parameter may hold the value: its schema allows the value, or a structure that may
    contain the value."""
    kinds = schema.get("type") if isinstance(schema, Mapping) else None
    names = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(names, list) or not _PLAIN_TYPES.issuperset(map(str, names)):
        return True
    return not schema_violations({"properties": {"value": schema}}, {"value": value})


_PLAIN_TYPES = frozenset({"string", "integer", "number", "boolean", "null"})


# ── what is expected to contain the value ────────────────────────────────────────────────────────


def _uses(scenario: Scenario, use: _RequiredCall, value: Literal, question: str) -> list[tuple[str, str]]:
    """Return the paths of the expectations that contain the value, each with its argument. If an argument is
    not in the question, the call needs a look-up anyway, so the result is empty."""
    if use.call.mode is ArgsMatch.IGNORE:
        texts = _expected_texts(scenario) if _has_digit(value) else ()
        return [(path, "") for path, text in texts if _has_literal(text, value)]
    args = [(name, tuple(_operands(expected))) for name, expected in _leaves(use.call.args)]
    if not all(any(_is_in_question(each, question) for each in operands) for _, operands in args if operands):
        return []
    return [(use.path, name) for name, operands in args if any(_contains(each, value) for each in operands)]


def _can_be_made(args: Mapping[str, Any] | None, question: str) -> bool:
    """Check whether the question contains all expected arguments, so that the call needs no earlier one."""
    return all(_is_in_question(expected, question) for _, expected in _leaves(args or {}))


def _is_in_question(expected: Any, question: str) -> bool:
    """Check whether the question contains each word and number of an expected argument, in any case: of one
    of the values that a matcher accepts, and of an expression the numbers, since its letters may be its
    syntax."""
    if _is_matcher(expected) and "$regex" in expected:
        words = _WORD.findall(_without_syntax(expected["$regex"]))
        return all(_has_literal(question, word) for word in words if _has_digit(word))
    if _is_matcher(expected):
        operands = tuple(_operands(expected))
        return not operands or any(_is_in_question(each, question) for each in operands)
    if isinstance(expected, str):
        return all(contains(question, word) for word in _WORD.findall(expected))
    return not _is_number(expected) or _has_literal(question, expected)


def _has_digit(value: Literal) -> bool:
    return any(map(str.isdigit, str(value)))


def _without_syntax(pattern: str) -> str:
    """Return a regular expression with its escapes and sets replaced by a digit, if they match digits, or by
    a space."""
    return _SYNTAX.sub(
        lambda found: "" if found[0][0] == "{" else "0" if _DIGIT.search(found[0]) else " ", pattern
    )


_SYNTAX = re.compile(r"\\[A-Za-z]|\[[^\]]*\]|\{[\d,]*\}")
"""Escapes, sets and counts of a regular expression."""
_DIGIT = re.compile(r"\\d|\d")
_WORD = re.compile(r"[^\W_]+(?:[.,_-][^\W_]+)*")


def _expected_texts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for text in scenario.case.keywords if scenario.case else ():
        yield "expected_output_contains", text
    for path, expect in scenario.expectations:
        if expect.output:
            yield from ((f"{path}.output.contains", text) for text in expect.output.contains)
            yield from ((f"{path}.output.cites", text) for text in expect.output.cites)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the plain values and matchers in expected arguments, with their dotted paths."""
    if isinstance(value, Mapping) and not _is_matcher(value):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            yield from _leaves(item, f"{path}[{at}]")
    else:
        yield path, value


def _operands(expected: Any) -> Iterator[Any]:
    """Yield the plain values that a matcher names, or a plain value itself."""
    if not _is_matcher(expected):
        yield expected
        return
    ((name, operand),) = expected.items()
    if name == "$in":
        yield from operand
    elif name == "$approx":
        yield operand.get("value") if isinstance(operand, Mapping) else operand
    elif name == "$optional":
        yield from _operands(operand)
    elif name == "$regex":
        yield _without_syntax(operand)


def _is_matcher(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and str(next(iter(value))).startswith("$")


# ── equality ─────────────────────────────────────────────────────────────────────────────────────


def _contains(expected: Any, value: Literal) -> bool:
    """Check whether a plain value is the given value, or a text that contains it."""
    if isinstance(expected, str):
        return _has_literal(expected, value)
    return _is_number(expected) and (expected == value or str(expected) == value)


def _has_literal(text: str, value: Literal) -> bool:
    """Check whether a text contains the value as a whole word or number. Unlike in answers, case matters."""
    if isinstance(value, str) and not value.isdecimal():
        return value in text and contains(text, value.replace("*", "\\*"))
    forms = {str(value), f"{value:.2f}"} if isinstance(value, float) else {str(value)}
    return any(contains(text, form) and not _is_only_before_fraction(text, form) for form in forms)


def _is_only_before_fraction(text: str, number: str) -> bool:
    """Check whether each occurrence of a number in a text is only the integer part of a longer number."""
    found = re.findall(rf"(?<!\d){re.escape(number)}(?!\d)([.,]\d)?", text)
    return bool(found) and all(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
