"""Are the tool calls the expected ones? Five modes over one optimal assignment.

``strict``: the same calls in the same order. ``unordered``: the same calls in any order.
``in_order``: all expected in this order, extras allowed. ``contains``: all expected in any order,
extras allowed. ``within``: nothing but the expected names, any number of times, each call as one of
that name's entries says.

A call that was refused, since its arguments broke the tool's schema or could not be read, was not made: it
is none of the expected ones. It is still one too many for ``strict`` and ``unordered``, and a forbidden one.

Each expected call takes one actual call. The assignment leaves as few expected calls without one as
any assignment can (a maximum bipartite matching), so a loose expectation never takes the call that a
strict one needs. Where order counts, it starts from a longest assignment that keeps the order.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any, TypeAlias

from agenteval.core.call_outcomes import written
from agenteval.core.safe_text import abridged, at_most
from agenteval.core.scenario import ArgsMatch, ExpectedCall, MatchMode, ToolCallsExpectation
from agenteval.core.trajectory import ToolCall
from agenteval.scoring.checks.agents import NAMELESS
from agenteval.scoring.checks.arguments import (
    call_differences,
    call_matches,
    explain,
    if_by,
    may_match,
    words,
)
from agenteval.scoring.checks.quoting import one_line

_SHOWN_CALLS = 20
_SHOWN_NEAR = 10
_COMPARED = 50  # calls looked at for the nearest one: a looping agent makes a thousand

Assignment: TypeAlias = dict[int, int]
"""Index of an expected call → index of the actual call that it takes."""


@dataclass(frozen=True)
class NearCall:
    """For an expected call that is missing (or an extra one): the most similar on the other side."""

    expected: ExpectedCall
    call: ToolCall
    difference: str


@dataclass(frozen=True)
class ToolCallsResult:
    """What ``compare`` found.

    ``passed`` is ``None`` where nothing is known to be wrong, but calls may be forbidden whose arguments
    could not be read: ``unread``. ``extra`` is filled in every mode, but fails only ``strict``,
    ``unordered`` and ``within``; ``out_of_order`` (actual calls that match, but at the wrong place) only
    ``strict`` and ``in_order``. ``near`` explains the missing calls and, for ``within``, the extra ones.
    ``nameless``: the calls of which nobody says which agent made them, where that would have to be known.
    """

    passed: bool | None
    expectation: ToolCallsExpectation
    calls: tuple[ToolCall, ...]
    missing: tuple[ExpectedCall, ...] = ()
    extra: tuple[ToolCall, ...] = ()
    out_of_order: tuple[ToolCall, ...] = ()
    forbidden: tuple[ToolCall, ...] = ()
    near: tuple[NearCall, ...] = ()
    unread: tuple[ToolCall, ...] = ()
    nameless: tuple[ToolCall, ...] = ()


def compare(expectation: ToolCallsExpectation, calls: Sequence[ToolCall]) -> ToolCallsResult:
    """Compare the actual ``calls``, in order, with what is expected.

    Without ``calls`` in the expectation, only ``forbidden`` is checked. Raises ``AuthorError`` for
    an argument matcher that is none.
    """
    alike = _Alike(calls)
    forbidden = alike.of(expectation.forbidden, call_matches)
    open_ones = _picked(calls, alike.of(expectation.forbidden, may_match) - forbidden)
    result = _compared(expectation, alike, _picked(calls, forbidden), call_matches)
    nameless: tuple[ToolCall, ...] = ()
    if result.passed is False and (unknown := _nameless(expectation.calls or (), calls)):
        # What is wrong whoever made these calls; nothing else is known to be.
        result = _compared(expectation, alike, _picked(calls, forbidden), _may_be_expected)
        nameless = unknown if result.passed else ()
    unread = tuple(call for call in open_ones if call.args is None)
    nameless = tuple(call for call in calls if call in nameless or (call in open_ones and call not in unread))
    passed = None if result.passed and (unread or nameless) else result.passed
    return replace(result, passed=passed, unread=unread, nameless=nameless)


def _nameless(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls of no known agent, of tools that are expected of one."""
    names = {item.name for item in expected if item.agent}
    return tuple(call for call in calls if not call.agent and call.name in names)


def _may_be_expected(expected: ExpectedCall, call: ToolCall) -> bool:
    return call_matches(expected, if_by(expected, call))


def so_far(expectation: ToolCallsExpectation, calls: Sequence[ToolCall]) -> ToolCallsResult:
    """The same of the first ``calls``, where more may follow: what is wrong whatever these are."""
    strict = expectation.match is MatchMode.STRICT
    asked = expectation
    if strict and expectation.calls is not None:
        asked = expectation.model_copy(update={"calls": expectation.calls[: len(calls)]})
    found = compare(asked, calls)
    result = replace(
        found, expectation=expectation, missing=(), out_of_order=found.out_of_order if strict else (), near=()
    )
    extra = result.extra and expectation.calls is not None and forbids_extra(expectation.match)
    fails = result.forbidden or result.out_of_order or extra
    is_open = result.unread or result.nameless
    return replace(result, passed=False if fails else None if is_open else True)


_Fits: TypeAlias = Callable[[ExpectedCall, ToolCall], bool]


def _compared(
    expectation: ToolCallsExpectation, alike: _Alike, forbidden: tuple[ToolCall, ...], fits: _Fits
) -> ToolCallsResult:
    if expectation.calls is None:
        return ToolCallsResult(not forbidden, expectation, alike.calls, forbidden=forbidden)
    if expectation.match is MatchMode.WITHIN:
        return _within(expectation, alike, fits, forbidden=forbidden)
    return _assigned(expectation, alike, fits, forbidden=forbidden)


def _picked(calls: Sequence[ToolCall], places: Iterable[int]) -> tuple[ToolCall, ...]:
    return tuple(calls[place] for place in sorted(places))


def describe(result: ToolCallsResult) -> str:
    """The result for people: expected beside actual and, if it failed, what is wrong and how near."""
    expectation, texts = result.expectation, _texts_of(result)
    lines = []
    if expectation.calls is not None:
        lines.append(f"expected ({expectation.match}): {_listed(map(expected_text, expectation.calls))}")
    if expectation.forbidden:
        lines.append(f"not allowed: {_listed(map(expected_text, expectation.forbidden))}")
    lines.append(f"called: {_listed(map(texts, result.calls))}")
    if result.unread:
        lines.append(
            f"not decided, because these arguments are unreadable: {_listed(map(texts, result.unread))}"
        )
    if result.nameless:
        nameless = _listed(map(call_text, result.nameless))
        lines.append(f"not decided, because nobody says which agent called: {nameless} — {NAMELESS}")
    if result.passed is not False:
        return "; ".join(lines)
    return "\n".join([*lines, *_faults(result)])


def _texts_of(result: ToolCallsResult) -> Callable[[ToolCall], str]:
    """How calls are written: with their agents, where the author names any."""
    expected = (*(result.expectation.calls or ()), *result.expectation.forbidden)
    return _text_by_agent if any(item.agent for item in expected) else call_text


def _text_by_agent(call: ToolCall) -> str:
    return f"{call_text(call)} by {one_line(call.agent, 80) or 'an unknown agent'}"


def faults(result: ToolCallsResult) -> tuple[str, ...]:
    """What is wrong, each thing once: ``missing book(time="20:00")`` in the author's words, ``forbidden
    cancel(id="A-7")`` with what the agent gave. Empty unless it failed."""
    if result.passed is not False:
        return ()
    found = [f"missing {expected_text(expected)}" for expected in result.missing]
    groups = {"out of order": result.out_of_order, "forbidden": result.forbidden}
    if result.expectation.calls is not None and forbids_extra(result.expectation.match):
        groups["extra"] = result.extra
    found += [f"{what} {abridged(written(call), 240)}" for what, calls in groups.items() for call in calls]
    return at_most(_SHOWN_CALLS, found)


def call_text(call: ToolCall) -> str:
    """``get_weather(city="Beijing")``."""
    if call.args is None:
        return f"{call.name}(unreadable: {one_line(call.raw_args or '', 80)})"
    return one_line(f"{call.name}({_arguments(call.args, literal=True)})", 240)


def expected_text(expected: ExpectedCall) -> str:
    """``book(time=one of ["09:00"], …) by billing``; the ellipsis: further arguments are allowed."""
    by = f" by {one_line(expected.agent, 80)}" if expected.agent else ""
    if expected.mode is ArgsMatch.IGNORE or expected.args is None:
        return f"{expected.name}(…){by}"
    listed = _arguments(expected.args, literal=False)
    if expected.mode is ArgsMatch.PARTIAL:
        listed = f"{listed}, …" if listed else "…"
    return abridged(f"{expected.name}({listed})", 240) + by


def _within(
    expectation: ToolCallsExpectation, alike: _Alike, fits: _Fits, *, forbidden: tuple[ToolCall, ...]
) -> ToolCallsResult:
    expected, calls = expectation.calls or (), alike.calls
    extra = _picked(calls, set(range(len(calls))) - alike.of(expected, fits))
    near = (_nearest_expected(call, expected) for call in islice(extra, _SHOWN_NEAR))
    return ToolCallsResult(
        passed=not extra and not forbidden,
        expectation=expectation,
        calls=calls,
        extra=extra,
        forbidden=forbidden,
        near=tuple(found for found in near if found),
    )


def _assigned(
    expectation: ToolCallsExpectation, alike: _Alike, fits: _Fits, *, forbidden: tuple[ToolCall, ...]
) -> ToolCallsResult:
    expected, calls = expectation.calls or (), alike.calls
    mode, ordered = expectation.match, expectation.match in (MatchMode.STRICT, MatchMode.IN_ORDER)
    edges = _edges(expected, alike, fits)
    in_order = _longest_in_order(edges) if ordered else {}
    assignment = _augmented(edges, in_order)
    taken = set(assignment.values())
    missing = tuple(item for index, item in enumerate(expected) if index not in assignment)
    extra = tuple(call for index, call in enumerate(calls) if index not in taken)
    astray = sorted(assignment[index] for index in assignment if ordered and index not in in_order)
    out_of_order = tuple(calls[index] for index in astray)
    # `strict` needs no rule of its own: a full assignment in order without extras is the identity.
    fails = missing or out_of_order or forbidden or (extra and forbids_extra(mode))
    near = (_nearest_call(item, calls, taken) for item in islice(missing, _SHOWN_NEAR))
    return ToolCallsResult(
        passed=not fails,
        expectation=expectation,
        calls=calls,
        missing=missing,
        extra=extra,
        out_of_order=out_of_order,
        forbidden=forbidden,
        near=tuple(found for found in near if found),
    )


def forbids_extra(mode: MatchMode) -> bool:
    return mode in (MatchMode.STRICT, MatchMode.UNORDERED, MatchMode.WITHIN)


class _Alike:
    """The actual calls, those that are written alike together: they are compared once, since a looping agent
    makes the same call again and again."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self.calls = tuple(calls)
        self._by_name: dict[str, dict[tuple[str, str], list[int]]] = {}
        for place, call in enumerate(self.calls):
            groups = self._by_name.setdefault(call.name, {})
            groups.setdefault((call.agent, _fingerprint(call.args, place)), []).append(place)

    def of(self, entries: Sequence[ExpectedCall], fits: _Fits) -> set[int]:
        """The places of the calls that fit any of the entries. Entries that are alike are compared once, and
        a call that has fitted one with no other."""
        keys = (
            (item.name, item.mode, item.agent, _fingerprint(item.args, at)) for at, item in enumerate(entries)
        )
        found: set[int] = set()
        for entry in dict(zip(keys, entries, strict=True)).values():
            for places in self._by_name.get(entry.name, {}).values():
                if places[0] not in found and fits(entry, self.calls[places[0]]):
                    found.update(places)
        return found

    def of_one(self, entry: ExpectedCall, fits: _Fits) -> Iterator[int]:
        for places in self._by_name.get(entry.name, {}).values():
            if fits(entry, self.calls[places[0]]):
                yield from places


def _edges(expected: Sequence[ExpectedCall], alike: _Alike, fits: _Fits) -> list[list[int]]:
    """For each expected call the places of the actual ones that were made and match it, ascending."""
    known: dict[tuple[str, ArgsMatch, str | None, str], list[int]] = {}
    edges = []
    for index, item in enumerate(expected):
        key = (item.name, item.mode, item.agent, _fingerprint(item.args, index))
        if key not in known:
            fitting = alike.of_one(item, fits)
            known[key] = sorted(place for place in fitting if not alike.calls[place].is_refused)
        edges.append(known[key])
    return edges


def _fingerprint(args: Mapping[str, Any] | None, index: int) -> str:
    """Equal only for equal arguments."""
    try:
        return json.dumps(args)
    except (RecursionError, TypeError, ValueError):  # no JSON: compared on its own
        return f"#{index}"


def _longest_in_order(edges: Sequence[Sequence[int]]) -> Assignment:
    """A largest assignment that keeps the order of both sides.

    Hunt and Szymanski, "A fast algorithm for computing longest common subsequences", CACM 20(5),
    1977: ``ends[k]`` is the earliest call at which an assignment of ``k + 1`` pairs can end. Each
    expected call tries its candidates from the last to the first, so that it is used once.
    """
    ends: list[int] = []
    links: list[tuple[int, int, Any]] = []
    for expected, candidates in enumerate(edges):
        for call in reversed(candidates):
            length = bisect_left(ends, call)
            if length < len(ends) and ends[length] == call:
                continue
            link = (expected, call, links[length - 1] if length else None)
            ends[length : length + 1] = [call]
            links[length : length + 1] = [link]
    assignment: Assignment = {}
    last = links[-1] if links else None
    while last:
        assignment[last[0]] = last[1]
        last = last[2]
    return assignment


def _augmented(edges: Sequence[Sequence[int]], start: Mapping[int, int]) -> Assignment:
    """A maximum assignment; every expected call that ``start`` assigns stays assigned.

    Augmenting paths, breadth first. The calls that a failed search has seen can be on no later path
    (its Hungarian tree), so they are left out from then on: failures cost the graph once in all.
    """
    assignment = dict(start)
    owner = {call: expected for expected, call in assignment.items()}
    dead: set[int] = set()
    for expected in range(len(edges)):
        if expected not in assignment:
            reached: dict[int, int] = {}
            call = _free_call(expected, edges, owner, dead, reached)
            if call is None:
                dead |= reached.keys()
            while call is not None:
                taker = reached[call]
                previous = assignment.get(taker)
                assignment[taker], owner[call] = call, taker
                call = previous
    return assignment


def _free_call(
    start: int,
    edges: Sequence[Sequence[int]],
    owner: Mapping[int, int],
    dead: set[int],
    reached: dict[int, int],
) -> int | None:
    """A call without an owner at the end of an alternating path; fills ``reached``: call → from."""
    queue = [start]
    for expected in queue:
        for call in edges[expected]:
            if call in reached or call in dead:
                continue
            reached[call] = expected
            if call not in owner:
                return call
            queue.append(owner[call])
    return None


def _nearest_call(expected: ExpectedCall, calls: Sequence[ToolCall], taken: set[int]) -> NearCall | None:
    """The actual call of that name with the fewest differences, rather one that no other took."""
    named = [index for index, call in enumerate(calls) if call.name == expected.name]
    free = [index for index in named if index not in taken]
    if not named:
        return None
    if not free:
        return NearCall(expected, calls[named[0]], "another expected call takes it")
    near = [calls[index] for index in free[:_COMPARED]]
    best = min(near, key=lambda call: sum(1 for _ in call_differences(expected, call)))
    refused = f"refused: {one_line(best.result.text, 160)}" if best.result and best.is_refused else ""
    return NearCall(expected, best, refused or explain(expected, best))


def _nearest_expected(call: ToolCall, expected: Sequence[ExpectedCall]) -> NearCall | None:
    named = [item for item in expected if item.name == call.name][:_COMPARED]
    if not named:
        return None
    best = min(named, key=lambda item: sum(1 for _ in call_differences(item, call)))
    return NearCall(best, call, explain(best, call))


def _faults(result: ToolCallsResult) -> Iterator[str]:
    texts = _texts_of(result)
    by_expected = {id(near.expected): near for near in result.near}
    by_call = {id(near.call): near for near in result.near}
    for expected in result.missing[:_SHOWN_NEAR]:
        near = by_expected.get(id(expected))
        hint = f"nearest: {texts(near.call)}: {near.difference}" if near else "never called"
        yield f"missing: {expected_text(expected)} — {hint}"
    if len(result.missing) > _SHOWN_NEAR:
        yield f"missing: {len(result.missing) - _SHOWN_NEAR} more"
    if result.out_of_order:
        yield f"out of order: {_listed(map(texts, result.out_of_order))}"
    if result.extra and result.expectation.calls is not None and forbids_extra(result.expectation.match):
        yield f"extra: {_listed(map(texts, result.extra))}"
        if result.expectation.match is MatchMode.WITHIN:
            for call in result.extra[:_SHOWN_NEAR]:
                if near := by_call.get(id(call)):
                    yield f"  {texts(call)} — {near.difference}"
    if result.forbidden:
        yield f"forbidden: {_listed(map(texts, result.forbidden))}"


def _arguments(args: Mapping[str, Any], *, literal: bool) -> str:
    return ", ".join(f"{name}={words(value, literal=literal)}" for name, value in args.items())


def _listed(texts: Iterable[str]) -> str:
    """``a, b ×3, c``; "no call" for none."""
    runs = [(text, sum(1 for _ in same)) for text, same in groupby(texts)]
    shown = [text if times == 1 else f"{text} ×{times}" for text, times in runs[:_SHOWN_CALLS]]
    if len(runs) > _SHOWN_CALLS:
        shown.append(f"and {sum(times for _, times in runs[_SHOWN_CALLS:])} more")
    return ", ".join(shown) or "no call"
