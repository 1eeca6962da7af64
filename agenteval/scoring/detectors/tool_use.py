"""Detects tool-use failures: unknown (hallucinated) tools, repeated tool calls and ignored tool errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from agenteval.core.call_outcomes import abbreviate_call, is_same_call, is_same_result, json_key
from agenteval.core.tool_effects import ToolEffect, words_of
from agenteval.core.trajectory import ToolCall
from agenteval.scoring.detectors.detector_input import (
    DetectorInput,
    LocatedCall,
    Proof,
    ToolFacts,
    get_tool_effect,
)


def unknown_tool(conversation: DetectorInput) -> Iterator[Proof]:
    """Find calls to an undeclared (hallucinated) tool, provided that all existing tools are declared, and
    calls to the user's own tools."""
    is_complete = bool(conversation.tools) and not conversation.undeclared_exist
    if not (is_complete or conversation.user_tools):
        return
    for placed in conversation.calls:
        name = placed.call.name
        if name in conversation.tools:
            continue
        if name in conversation.user_tools:  # also if the agent has a tool of that name
            yield Proof(placed.turn, placed.index, name, f"called '{name}', which is a tool of the user")
        elif is_complete and not placed.call.known:
            known = ", ".join(conversation.tools)
            why = f"called '{name}', which is not among the tools: {known}"
            yield Proof(placed.turn, placed.index, name, why)


def repeated_tool_call(conversation: DetectorInput) -> Iterator[Proof]:
    """Find repeated (duplicate) tool calls, as loop detection does: calls with the same name, arguments and
    result as an earlier call, although nothing had changed in between.

    A call is reported only if the earlier call had not failed and had no fault of the scenario, no call in
    between may have changed anything, and no later identical call returned a different result (which would
    mean that the agent was polling). In later turns, only tools marked ``reads`` are covered, because the
    world may have changed by itself. Tools that are meant to be called repeatedly (``next_page``) are
    excluded."""
    course = _build_course(conversation)
    latest: dict[object, LocatedCall] = {}
    for placed in conversation.calls:
        call = placed.call
        facts = conversation.tools.get(call.name)
        if call.args is None or call.attempted or _is_repeatable(call.name, facts):
            continue
        key = (call.name, json_key(call.args))
        earlier = latest.get(key)
        latest[key] = placed
        if earlier is None or (earlier.turn != placed.turn and not (facts and facts.reads)):
            continue
        if _changed_nothing(conversation, course, earlier, placed):
            why = f"repeats call {earlier.index + 1} (turn {earlier.turn + 1}), although nothing had changed"
            yield Proof(placed.turn, placed.index, abbreviate_call(call), why)


_AT_WILL = frozenset(
    [
        "press",
        "click",
        "type",
        "scroll",
        "next",
        "previous",
        "prev",
        "back",
        "advance",
        "step",
        "roll",
        "draw",
        "spin",
        "shuffle",
        "random",
        "wait",
        "sleep",
        "poll",
        "take",
        "pick",
        "turn",
        "toggle",
        "play",
        "skip",
        "swipe",
        "tap",
        "drag",
        "key",
        "push",
        "pop",
        "increment",
        "decrement",
        "increase",
        "decrease",
        "raise",
        "lower",
    ]
)
"""Words in an unmarked tool's name that indicate that the tool is meant to be called several times in a
row."""
_ADDING = frozenset(
    [
        "add",
        "insert",
        "append",
        "log",
        "write",
        "deposit",
        "withdraw",
        "generate",
        "execute",
        "exec",
        "run",
        "bash",
        "shell",
        "eval",
    ]
)
"""Words in an unmarked tool's name that indicate that a second call may be intended ("two more")."""


def _is_repeatable(name: str, facts: ToolFacts | None) -> bool:
    return not (facts and facts.is_marked) and not _AT_WILL.isdisjoint(words_of(name)[:2])


def _certainly_changes(name: str, facts: ToolFacts | None) -> bool:
    """Check whether a tool changes something, meaning that a second call has a second effect."""
    if get_tool_effect(name, facts) is not ToolEffect.WRITES:
        return False
    return bool(facts and facts.is_marked) or _ADDING.isdisjoint(words_of(name))


class _Course(NamedTuple):
    """The events around each call, keyed by the call's index. They are collected in one pass, because there
    may be thousands of calls."""

    changed: Sequence[int]
    """For each call, the latest call in an earlier step that certainly changed something, or -1 if there is
    none."""
    perhaps: Sequence[int]
    """For each call, the latest call in an earlier step that may have changed something, or -1 if there is
    none."""
    differs_later: Sequence[bool]
    """For each call, true if an identical call returned a different result later in the turn."""


def _build_course(conversation: DetectorInput) -> _Course:
    calls, tools = conversation.calls, conversation.tools
    return _Course(
        _latest_before(
            calls, lambda call: _has_fault(call) or _certainly_changes(call.name, tools.get(call.name))
        ),
        _latest_before(calls, lambda call: _has_fault(call) or _may_change(call.name, tools.get(call.name))),
        _differs_later(calls),
    )


def _has_fault(call: ToolCall) -> bool:
    """Check whether the scenario gave a call a fault. An agent that doubts the result may repeat what it
    did before."""
    return call.result is not None and call.result.fault is not None


def _may_change(name: str, facts: ToolFacts | None) -> bool:
    return get_tool_effect(name, facts) is not ToolEffect.READS


def _latest_before(calls: Iterable[LocatedCall], holds: Callable[[ToolCall], bool]) -> list[int]:
    """Return, for each call, the latest earlier call that satisfies ``holds``, or -1 if there is none.

    Calls in the same step are considered simultaneous: none of them precedes another."""
    found: list[int] = []
    step, before, latest = None, -1, -1
    for each in calls:
        if (each.turn, each.step) != step:
            step, before = (each.turn, each.step), latest
        found.append(before)
        if holds(each.call):
            latest = each.index
    return found


def _differs_later(calls: Sequence[LocatedCall]) -> list[bool]:
    later: dict[object, set[object]] = {}
    found: list[bool] = []
    for each in reversed(calls):
        call = each.call
        results = later.setdefault((each.turn, call.name, json_key(call.args)), set())
        result = call.result and (call.result.is_error, json_key(call.result.value))
        found.append(bool(results - {result}) if len(results) < 2 else True)
        results.add(result)
    return found[::-1]


def _changed_nothing(
    conversation: DetectorInput, course: _Course, earlier: LocatedCall, placed: LocatedCall
) -> bool:
    one, other = earlier.call, placed.call
    if earlier.error is not None or (not one.args and one.result is None):
        return False
    if _has_fault(one):
        return False  # the tool lied, or what it said was of no use
    does = _certainly_changes(one.name, conversation.tools.get(one.name))
    if one.result is not None and other.result is not None and not is_same_result(one.result, other.result):
        return does and placed.error is None
    # A call of unknown effect in between does not justify repeating a change.
    changed = (course.changed if does else course.perhaps)[placed.index]
    return changed <= earlier.index and not course.differs_later[placed.index]


MAX_RETRIES = 2
"""The maximum number of immediate identical retries that are acceptable after a transient error."""
_MAY_PASS = re.compile(
    r"time-?d? ?out|busy|temporar|unavailable|rate.?limit|too many|try again|retry|overload|lock|"
    r"\b(?:429|50[0234])\b|connection|network",
    re.IGNORECASE,
)


def ignored_tool_error(conversation: DetectorInput) -> Iterator[Proof]:
    """Find ignored tool errors (ignored errors): after an error, the agent does nothing but make an
    identical call, which fails in the same way.

    After a transient error (such as a timeout or a busy service), retries are reported only from the third
    retry in a turn."""
    again = 0
    for before, placed in pairwise(conversation.calls):
        error = before.error
        if (before.turn, before.step) == (placed.turn, placed.step):
            continue  # made at the same time
        if error is None or placed.error != error or not is_same_call(before.call, placed.call):
            again = 0
            continue
        may_pass = bool(_MAY_PASS.search(error[:400]))
        if may_pass and before.turn != placed.turn:
            again = 0  # time has passed, and the user may have asked for another try
            continue
        again += 1
        if again <= (MAX_RETRIES if may_pass else 0):
            continue
        times = "1 time" if again == 1 else f"{again} times"
        why = f'repeats the identical call {times} after the error "{error[:160]}"'
        why += "; only a judge can decide whether the agent claims success"
        yield Proof(placed.turn, placed.index, abbreviate_call(placed.call), why)
