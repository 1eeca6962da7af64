"""Compares actual tool calls with the expected and the forbidden tool calls (tool call matching, trajectory
match), and decides the check. The rules are described in ``call_assignment``.

Parts of a call may be unknown: the arguments if they could not be read, the agent if it is not named, and the
result. The check is decided if the result does not depend on the unknown parts; otherwise it is undecided
(``passed`` is ``None``).

A call that was refused, because its arguments violated the tool's schema or could not be read, was not
carried out: it matches no expected call except one that expects an error. It still counts as an extra call
for ``strict`` and ``unordered``, and as a forbidden call."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

from agenteval.core.excerpts import one_line
from agenteval.core.scenario import (
    CallPattern,
    CallsExpectation,
    ExpectedCall,
    MatchMode,
    ToolCallsExpectation,
)
from agenteval.core.trajectory import ToolCall
from agenteval.scoring.checks.arguments import (
    UnknownPart,
    compare_arguments,
    explain_differences,
    get_result_status,
    match_arguments,
)
from agenteval.scoring.checks.call_assignment import (
    AssignmentFaults,
    CallCoverage,
    CallRequirement,
    find_assignment_faults,
)

MAX_NEAREST_SHOWN = 10
_COMPARED = 50  # calls compared to find the nearest: a looping agent may make a thousand


@dataclass(frozen=True)
class NearestCall:
    """The actual call most similar to a missing expected call, or the expectation most similar to an extra
    call."""

    expected: ExpectedCall
    call: ToolCall
    difference: str


@dataclass(frozen=True)
class ToolCallsResult:
    """The result of ``compare_tool_calls``."""

    passed: bool | None
    """``None`` if the check could not be decided."""
    expectation: ToolCallsExpectation
    calls: tuple[ToolCall, ...]
    nearest_alternative: CallsExpectation | None = None
    """For ``any_of``, the alternative that passes or has the fewest faults. The reported faults are those of
    this alternative."""
    missing: tuple[ExpectedCall, ...] = ()
    """The expected calls that were not made."""
    extra: tuple[ToolCall, ...] = ()
    """The calls that are not expected."""
    out_of_order: tuple[ToolCall, ...] = ()
    """The calls that are expected, but at a different position."""
    too_many: tuple[ExpectedCall, ...] = ()
    """The expected calls that were made more often than their ``times`` allows."""
    forbidden: tuple[ToolCall, ...] = ()
    """The calls that match a forbidden call."""
    near: tuple[NearestCall, ...] = ()
    """Explanations of the missing calls or, for ``within``, of the extra calls."""
    times: Mapping[int, int] = field(default_factory=dict)
    """The number of times that each expected call with ``times`` was made, keyed by the expected call's
    ``id()``."""
    unknown_calls: Mapping[UnknownPart, tuple[ToolCall, ...]] = field(default_factory=dict)
    """The calls that leave the verdict undecided, keyed by the unknown part."""
    rests_on_absence: bool = False
    """True if additional, unobserved calls by the agent could have changed the verdict."""


def compare_tool_calls(
    expectation: ToolCallsExpectation, calls: Sequence[ToolCall], *, is_ongoing: bool = False
) -> ToolCallsResult:
    """Compare the actual tool calls in ``calls``, in order, with the expected and forbidden tool calls.

    If ``is_ongoing`` is true, more calls were to follow, so the comparison fails only if no other calls could
    correct the fault. Raise ``AuthorError`` for an invalid argument matcher."""
    seen = _GroupedCalls(calls, expectation)
    tried = [_try_alternative(each, seen, is_ongoing=is_ongoing) for each in expectation.alternatives]
    best = min(tried, key=_AlternativeResult.order, default=None)
    forbidden: set[int] = set()
    perhaps_forbidden: dict[int, UnknownPart] = {}
    for entry in expectation.forbidden:
        found = seen.matching(entry)
        forbidden.update(found.sure)
        perhaps_forbidden |= found.unsure
    passed: bool | None = best is None or best.passed
    if forbidden:
        passed = False
    elif passed and perhaps_forbidden:
        passed = None
    unknown: dict[int, UnknownPart] = {}
    for open_ones in (perhaps_forbidden, *(each.unknown for each in tried if each.passed is None)):
        unknown |= open_ones
    result = ToolCallsResult(
        passed=passed,
        expectation=expectation,
        calls=seen.calls,
        nearest_alternative=best.alternative if best else None,
        forbidden=seen.picked(forbidden),
        unknown_calls=seen.by_reason(unknown) if passed is None else {},
        rests_on_absence=_rests_on_absence(passed, expectation, tried, forbidden),
    )
    return _with_faults(result, best, seen) if best and best.passed is False else result


def _rests_on_absence(
    passed: bool | None,
    expectation: ToolCallsExpectation,
    tried: Sequence[_AlternativeResult],
    forbidden: set[int],
) -> bool:
    """Check whether unobserved calls, anywhere among the observed calls, could change the verdict.

    For tool calls, this is the only place where that question is decided."""
    if passed is False:
        return not forbidden and any(each.could_hold_with_more for each in tried)
    holding = [each.alternative for each in tried if each.passed]
    return bool(expectation.forbidden) or (bool(holding) and all(map(_bounds_calls, holding)))


def _bounds_calls(alternative: CallsExpectation) -> bool:
    """Check whether the alternative disallows any other calls."""
    counted = [call for call in alternative.calls or () if call.times is not None]
    if alternative.is_closed or (counted and alternative.is_ordered):
        return True
    return any(call.bounds(alternative.match)[1] is not None for call in counted)


# ── one alternative ──────────────────────────────────────────────────────────────────────────────


class _AlternativeResult(NamedTuple):
    """The result of comparing an alternative with the calls."""

    alternative: CallsExpectation
    entries: Sequence[CallRequirement]
    passed: bool | None
    faults: AssignmentFaults
    could_hold_with_more: bool
    unknown: Mapping[int, UnknownPart]
    """The calls that may or may not be among the expected calls, keyed by position."""

    def order(self) -> tuple[int, int]:
        """Return the sort key: alternatives that pass come first, then undecided ones, then failed ones.
        Within each group, the alternative with the fewest faults comes first."""
        return (0 if self.passed else 2 if self.passed is False else 1), len(self.faults)


def _try_alternative(
    alternative: CallsExpectation, seen: _GroupedCalls, *, is_ongoing: bool
) -> _AlternativeResult:
    match, expected = alternative.match, alternative.calls or ()
    found = [seen.matching(call) for call in expected]
    entries = [_entry(call, each, match) for call, each in zip(expected, found, strict=True)]
    unknown = {at: why for each in found for at, why in each.unsure.items()}
    count, extent = len(seen.calls), CallCoverage.PREFIX if is_ongoing else CallCoverage.COMPLETE
    faults = find_assignment_faults(entries, match, count, extent=extent)
    passed: bool | None = not faults
    if passed and unknown and find_assignment_faults(entries, match, count, lenient=False, extent=extent):
        passed = None
    with_more = not faults or not find_assignment_faults(entries, match, count, extent=CallCoverage.PARTIAL)
    return _AlternativeResult(alternative, entries, passed, faults, with_more, unknown)


def _entry(call: ExpectedCall, found: _Matching, match: MatchMode) -> CallRequirement:
    fewest, most = call.bounds(match)
    counts_all = call.times is not None or match is MatchMode.WITHIN
    return CallRequirement(fewest, most, counts_all, *found.serving, *found.refused)


def _can_serve(expected: CallPattern, call: ToolCall) -> bool:
    """Check whether a call can satisfy an expected call.

    A call that agenteval refused ended in an error. A call that was denied before it began never ended."""
    return call.was_made or (not call.attempted and expected.wanted_result == "error")


class _Matching(NamedTuple):
    """The positions of the matching calls, in ascending order."""

    sure: Sequence[int]
    """The calls that certainly match."""
    unsure: Mapping[int, UnknownPart]
    """The calls that may match, each with its unknown part."""
    serving: tuple[Sequence[int], Sequence[int]]
    """The certain and possible matches that may satisfy an expected call."""
    refused: tuple[Sequence[int], Sequence[int]]
    """The certain and possible matches that were refused."""


class _GroupedCalls:
    """The actual calls, grouped by identical content.

    Identical calls are compared only once, because a looping agent repeats the same call many times."""

    def __init__(self, calls: Sequence[ToolCall], expectation: ToolCallsExpectation) -> None:
        self.calls = tuple(calls)
        by_result = any(call.wanted_result for call in expectation.expected_calls)
        self._by_name: dict[str, dict[tuple[Any, ...], list[int]]] = {}
        self._known: dict[tuple[Any, ...], _Matching] = {}
        for place, call in enumerate(self.calls):
            groups = self._by_name.setdefault(call.name, {})
            key = (call.agent, _fingerprint(call.args, place), by_result and get_result_status(call))
            groups.setdefault(key, []).append(place)

    def matching(self, expected: CallPattern) -> _Matching:
        """Return the calls that match ``expected``, comparing identical expectations only once."""
        at = len(self._known)
        wanted = expected.wanted_result
        key = (expected.name, expected.mode, expected.agent, wanted, _fingerprint(expected.args, at))
        if key not in self._known:
            self._known[key] = self._compared(expected)
        return self._known[key]

    def _compared(self, expected: CallPattern) -> _Matching:
        sure: list[int] = []
        unsure: dict[int, UnknownPart] = {}
        for places in self._by_name.get(expected.name, {}).values():
            matches = match_arguments(expected, self.calls[places[0]])
            if matches is True:
                sure += places
            elif matches:
                unsure |= dict.fromkeys(places, matches)
        both = sorted(sure), sorted(unsure)
        serving = [[at for at in places if _can_serve(expected, self.calls[at])] for places in both]
        refused = [[at for at in places if self.calls[at].is_refused] for places in both]
        return _Matching(both[0], unsure, (serving[0], serving[1]), (refused[0], refused[1]))

    def picked(self, places: Iterable[int]) -> tuple[ToolCall, ...]:
        return tuple(self.calls[place] for place in sorted(places))

    def by_reason(self, unknown: Mapping[int, UnknownPart]) -> dict[UnknownPart, tuple[ToolCall, ...]]:
        reasons = dict.fromkeys(unknown[at] for at in sorted(unknown))
        return {why: self.picked(at for at in unknown if unknown[at] == why) for why in reasons}


def _fingerprint(args: Mapping[str, Any] | None, index: int) -> str:
    """Return a key that is equal only for equal arguments."""
    try:
        return json.dumps(args)
    except (RecursionError, TypeError, ValueError):  # not JSON: compared separately
        return f"#{index}"


# ── what a failure shows ─────────────────────────────────────────────────────────────────────────


def _with_faults(result: ToolCallsResult, tried: _AlternativeResult, seen: _GroupedCalls) -> ToolCallsResult:
    faults, expected = tried.faults, tried.alternative.calls or ()
    missing = [expected[number] for number in faults.missing]
    extra = seen.picked(faults.extra)
    near: Iterable[NearestCall | None]
    if tried.alternative.match is MatchMode.WITHIN:
        near = (_nearest_expected(call, expected) for call in islice(extra, MAX_NEAREST_SHOWN))
    else:
        near = (
            _nearest_call(call, seen.calls, faults.matched_calls)
            for call in islice(missing, MAX_NEAREST_SHOWN)
        )
    counted = [
        (call, entry) for call, entry in zip(expected, tried.entries, strict=True) if call.times is not None
    ]
    # If order counts, a call may belong to another expected call that it also matches.
    bounded = [] if tried.alternative.is_ordered else counted
    exceeded = [
        call
        for call, entry in bounded
        if entry.max_count is not None and len(entry.certain) > entry.max_count
    ]
    return replace(
        result,
        missing=tuple(missing),
        extra=extra,
        out_of_order=seen.picked(faults.out_of_order),
        near=tuple(found for found in near if found),
        too_many=tuple(exceeded),
        times={id(call): len(entry.counted_places(lenient=True)) for call, entry in counted},
    )


def _nearest_call(
    expected: ExpectedCall, calls: Sequence[ToolCall], taken: frozenset[int]
) -> NearestCall | None:
    """Return the actual call that is most similar to the expected call, preferably a call that was not
    assigned to another expected call."""
    same_name = [index for index, call in enumerate(calls) if call.name == expected.name]
    free = [index for index in same_name if index not in taken]
    if not same_name:
        return None
    if not free:
        return NearestCall(expected, calls[same_name[0]], "already used by another expected call")
    near = [calls[index] for index in free[:_COMPARED]]
    best = min(near, key=lambda call: sum(1 for _ in compare_arguments(expected, call)))
    refused = f"refused: {one_line(best.result.text, 160)}" if best.result and best.is_refused else ""
    return NearestCall(expected, best, refused or explain_differences(expected, best))


def _nearest_expected(call: ToolCall, expected: Sequence[ExpectedCall]) -> NearestCall | None:
    same_name = [item for item in expected if item.name == call.name][:_COMPARED]
    if not same_name:
        return None
    best = min(same_name, key=lambda item: sum(1 for _ in compare_arguments(item, call)))
    return NearestCall(best, call, explain_differences(best, call))
