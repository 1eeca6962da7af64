"""Assigns actual tool calls to expected tool calls (trajectory match: in order, in any order, subsequence, by
bipartite matching). The functions are pure, and calls are represented by numbers.

An expected call without ``times`` stands for one call. An expected call with ``times`` stands for *every*
call that matches it, and the number of these calls must be between ``at_least`` and ``at_most``. The rules of
each ``match`` mode:

- ``strict``: the calls, from the first to the last, are the runs of the expected calls: one call for each
  expected call, or as many calls as ``times`` requires.
- ``in_order``: these runs follow one another; additional calls may occur before, between and after the runs.
  A call that matches an expected call with ``times`` is not an additional call: it belongs to a run.
- ``unordered``: each expected call without ``times`` uses up one call; every remaining call must match an
  expected call with ``times``, whose count includes all calls that match it.
- ``contains``: the same as ``unordered``, but additional calls are allowed.
- ``within``: every call matches an expected call, any number of times or as often as ``times`` requires.

In the ordered modes, a call therefore belongs to one run and is counted in that run only. In the other modes,
``times`` counts every matching call, even if that call also satisfies another expectation.

The assignment is optimal. In the modes without order, the assignment is a maximum bipartite matching, so a
loose expectation never uses up a call that a strict expectation needs. In the ordered modes, the assignment
preserves the order of both sequences and minimizes the number of missing required calls and of unplaced
actual calls.

It may be unknown whether a call matches, because its arguments could not be read. ``lenient`` resolves this
uncertainty in favor of the agent, so that a failure is certain regardless of the unknown calls. Otherwise the
uncertainty is resolved against the agent, so that a pass is certain regardless of the unknown calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import accumulate
from typing import NamedTuple

from agenteval.core.scenario import MatchMode


class CallCoverage(Enum):
    """The extent to which the agent's calls are known."""

    COMPLETE = auto()
    PREFIX = auto()
    """More calls may follow the known calls."""
    PARTIAL = auto()
    """More calls may have been made, at any position among the known calls."""


@dataclass(frozen=True)
class CallRequirement:
    """An expected call. The actual calls are represented by their positions, in ascending order."""

    min_count: int
    """The minimum number of calls."""
    max_count: int | None
    """The maximum number of calls, or ``None`` if there is no limit."""
    counts_every_match: bool
    """True if the expected call stands for every call that matches it."""
    certain: Sequence[int]
    """The calls that certainly match."""
    possible: Sequence[int] = ()
    """The calls that may match."""
    refused: Sequence[int] = ()
    """The calls that match but were not carried out. They satisfy no requirement, and ``within`` allows
    them."""
    perhaps_refused: Sequence[int] = ()
    """The calls that may match but were not carried out."""

    def counted_places(self, *, lenient: bool) -> Sequence[int]:
        """Return the calls that count toward ``min_count``."""
        return sorted((*self.certain, *self.possible)) if lenient and self.possible else self.certain

    def possible_places(self, *, lenient: bool) -> Sequence[int]:
        """Return the calls that count toward ``max_count``."""
        return self.counted_places(lenient=not lenient)

    def is_short(self, *, lenient: bool) -> bool:
        """Check whether there are fewer calls than ``min_count``."""
        return len(self.counted_places(lenient=lenient)) < self.min_count

    def excess_places(self, *, lenient: bool) -> Sequence[int]:
        """Return the calls in excess of ``max_count``."""
        return () if self.max_count is None else self.possible_places(lenient=lenient)[self.max_count :]

    @property
    def spare_count(self) -> int:
        """The number of possible matches that can be counted without exceeding ``max_count``."""
        return len(self.possible) if self.max_count is None else max(0, self.max_count - len(self.certain))


@dataclass(frozen=True)
class AssignmentFaults:
    """The faults in an assignment. Expected calls are represented by number, actual calls by position."""

    missing: tuple[int, ...] = ()
    """The expected calls to which no actual call was assigned."""
    extra: tuple[int, ...] = ()
    """The actual calls that are not expected."""
    out_of_order: tuple[int, ...] = ()
    """The actual calls that are expected, but at a different position."""
    matched_calls: frozenset[int] = frozenset()
    """The actual calls that were assigned to an expected call."""

    def __len__(self) -> int:
        return len(self.missing) + len(self.extra) + len(self.out_of_order)


def find_assignment_faults(
    entries: Sequence[CallRequirement],
    match: MatchMode,
    count: int,
    *,
    lenient: bool = True,
    extent: CallCoverage = CallCoverage.COMPLETE,
) -> AssignmentFaults:
    """Assign ``count`` actual calls to the expected calls and return the faults, such as a missing call or a
    wrong call order."""
    if match in (MatchMode.STRICT, MatchMode.IN_ORDER):
        return _in_runs(entries, count, closed=match is MatchMode.STRICT, lenient=lenient, extent=extent)
    return _in_any_order(entries, count, match, lenient=lenient, needs=extent is CallCoverage.COMPLETE)


# ── without order ────────────────────────────────────────────────────────────────────────────────


def _in_any_order(
    entries: Sequence[CallRequirement], count: int, match: MatchMode, *, lenient: bool, needs: bool
) -> AssignmentFaults:
    """Find the faults in an assignment for which order does not matter.

    If ``needs`` is true, all expected calls are required."""
    counting = {at: entry for at, entry in enumerate(entries) if entry.counts_every_match}
    single = [at for at in range(len(entries)) if at not in counting]
    edges = [entries[at].counted_places(lenient=lenient) for at in single]
    owners = find_maximum_matching(edges)
    left: list[int] = []
    if match is not MatchMode.CONTAINS:
        counted, slots = _count_matches(counting.values(), lenient=lenient)
        placed = counted | _refused(entries, lenient=lenient) if match is MatchMode.WITHIN else counted
        left = [at for at in range(count) if at not in placed]
        if set(left) - set(owners.values()):
            owners = _covering(left, [*edges, *slots], owners)
    taken = frozenset(owners.values())
    too_many = (entry.excess_places(lenient=lenient) for entry in counting.values())
    extra = (set(left) - taken).union(*too_many)
    missing = [at for number, at in enumerate(single) if number not in owners]
    missing += [at for at, entry in counting.items() if entry.is_short(lenient=lenient)]
    return AssignmentFaults(tuple(sorted(missing)) if needs else (), tuple(sorted(extra)), (), taken)


def _count_matches(
    entries: Collection[CallRequirement], *, lenient: bool
) -> tuple[set[int], list[Sequence[int]]]:
    """Return the calls that ``times`` counts, and the slots for the possible matches.

    If a requirement has room for only some of its possible matches, it gets as many slots as it has room for.
    The assignment then decides which possible matches fill the slots."""
    counted = {at for entry in entries for at in entry.certain}
    slots: list[Sequence[int]] = []
    for entry in entries if lenient else ():
        if entry.spare_count < len(entry.possible):
            slots += [entry.possible] * entry.spare_count
        else:
            counted.update(entry.possible)
    return counted, slots


def _refused(entries: Iterable[CallRequirement], *, lenient: bool) -> set[int]:
    """Return the refused calls, which ``within`` allows."""
    return {at for each in entries for at in (*each.refused, *(each.perhaps_refused if lenient else ()))}


def find_maximum_matching(
    edges: Sequence[Sequence[int]], start: Mapping[int, int] | None = None
) -> dict[int, int]:
    """Return a maximum bipartite matching of actual calls to expected calls.

    Every expected call that is assigned in ``start`` stays assigned. The order of the actual calls does not
    affect which other expected calls are assigned.

    The algorithm searches for augmenting paths, breadth first. The calls reached by a failed search (its
    Hungarian tree) cannot be on any later path, so they are excluded from later searches: all failed searches
    together visit the graph once."""
    assignment = dict(start or {})
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
    """Return an unassigned call at the end of an alternating path. Record the predecessor of each call in
    ``reached``."""
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


def _covering(
    calls: Iterable[int], edges: Sequence[Sequence[int]], assignment: Mapping[int, int]
) -> dict[int, int]:
    """Change the assignment so that it uses as many of ``calls`` as possible.

    Every expected call that was assigned stays assigned.

    An assignment that is optimal in both respects exists (Mendelsohn and Dulmage, "Some generalizations of
    the problem of distinct representatives", Canad. J. Math. 10, 1958): a path ends at a free expected call,
    or at an expected call whose assigned call is not required to be used."""
    made = dict(assignment)
    needed, takers = set(calls), _transposed(edges)
    dead: set[int] = set()
    for call in sorted(needed - set(made.values())):
        reached: dict[int, int] = {}
        expected = _free_taker(call, takers, made, needed, dead, reached)
        if expected is None:
            dead |= reached.keys()
        while expected is not None:
            giver = reached[expected]
            previous = next((e for e in takers.get(giver, ()) if made.get(e) == giver), None)
            made[expected] = giver
            expected = None if giver == call else previous
    return made


def _free_taker(
    start: int,
    takers: Mapping[int, Sequence[int]],
    assignment: Mapping[int, int],
    needed: set[int],
    dead: set[int],
    reached: dict[int, int],
) -> int | None:
    """Return the expected call at the end of an alternating path. Record the predecessor of each expected
    call in ``reached``."""
    queue = [start]
    for call in queue:
        for expected in takers.get(call, ()):
            if expected in reached or expected in dead:
                continue
            reached[expected] = call
            if assignment.get(expected) not in needed:
                return expected
            queue.append(assignment[expected])
    return None


def _transposed(edges: Sequence[Sequence[int]]) -> dict[int, list[int]]:
    takers: dict[int, list[int]] = {}
    for expected, calls in enumerate(edges):
        for call in calls:
            takers.setdefault(call, []).append(expected)
    return takers


# ── in order ─────────────────────────────────────────────────────────────────────────────────────


class _Slot(NamedTuple):
    """A position in the sequence of expected calls. It accepts one call, or any number of calls if ``many``
    is true."""

    entry: int
    places: Sequence[int]
    required: bool = False
    many: bool = False


_NEEDED = 2
"""The weight of a required call. It exceeds the weight of a call that has to be placed, so that the
assignment prefers reporting one of many calls as out of order to reporting a required call as missing."""


def _in_runs(
    entries: Sequence[CallRequirement], count: int, *, closed: bool, lenient: bool, extent: CallCoverage
) -> AssignmentFaults:
    slots = _slots(entries, closed=closed, lenient=lenient, needs=extent is not CallCoverage.PARTIAL)
    claims = (entry.possible_places(lenient=lenient) for entry in entries if entry.counts_every_match)
    to_place = set(range(count)) if closed else {at for places in claims for at in places}
    rows = _rows(slots, count, to_place)
    required = [0, *accumulate(_NEEDED * slot.required for slot in slots)]
    undone = [needed + len(to_place) - row[-1] for needed, row in zip(required, rows, strict=True)]
    # If more calls may follow, the row of expected calls may end wherever that leaves the fewest faults.
    end = undone.index(min(undone)) if extent is CallCoverage.PREFIX else len(slots)
    pairs = _trace_pairs(rows, slots, end)
    if not undone[end]:
        return AssignmentFaults(matched_calls=frozenset(call for _, call in pairs))
    return _find_ordered_faults(slots, end, pairs, to_place)


def _slots(entries: Sequence[CallRequirement], *, closed: bool, lenient: bool, needs: bool) -> list[_Slot]:
    claims = Counter(
        at for entry in entries if entry.counts_every_match for at in entry.counted_places(lenient=True)
    )
    slots = []
    for number, entry in enumerate(entries):
        places = entry.counted_places(lenient=lenient)
        # A call that may match only this one must be placed if it matches; if not, it is one of the others.
        perhaps = [] if lenient or closed else [at for at in entry.possible if claims[at] == 1]
        takes = sorted((*places, *perhaps)) if perhaps else places
        slots += _build_entry_slots(number, entry, places, takes, needs=needs)
    return slots


def _build_entry_slots(
    number: int, entry: CallRequirement, places: Sequence[int], takes: Sequence[int], *, needs: bool
) -> list[_Slot]:
    """Return the slots for one expected call.

    ``places`` holds the calls that count toward ``min_count``; ``takes`` holds the calls that the slots
    accept.
    """
    many = [_Slot(number, takes, many=True)] if entry.counts_every_match and takes else []
    if entry.counts_every_match and entry.min_count > len(takes):
        # There are too few: the expected call is missing however many of them are placed.
        return [*many, _Slot(number, (), required=needs)]
    required = [_Slot(number, places, required=needs)] * entry.min_count
    if entry.max_count is not None and entry.max_count - entry.min_count < len(takes):
        return required + [_Slot(number, takes)] * (entry.max_count - entry.min_count)
    before = many if len(takes) > len(places) else []
    return [*before, *required, *many]


def _rows(slots: Sequence[_Slot], count: int, to_place: set[int]) -> list[list[int]]:
    """Return ``rows[s][c]``, the best score that an order-preserving assignment of the first ``c`` calls to
    the first ``s`` slots can achieve.

    Each filled required slot adds to the score, as does each call that has to be placed and is placed."""
    rows = [[0] * (count + 1)]
    for slot in slots:
        before = rows[-1]
        row = before
        if slot.many:
            fits, row = set(slot.places), [0] * (count + 1)
            for call in range(count):
                done = row[call] + (call in fits and call in to_place)
                row[call + 1] = max(before[call + 1], done)
        elif slot.places:
            row, needed = before.copy(), _NEEDED * slot.required
            for call in slot.places:
                done = before[call] + needed + (call in to_place)
                if done > row[call + 1]:
                    row[call + 1] = done
            row = list(accumulate(row, max))
        rows.append(row)
    return rows


def _trace_pairs(rows: Sequence[Sequence[int]], slots: Sequence[_Slot], end: int) -> list[tuple[int, int]]:
    """Return the slot–call pairs in one optimal assignment."""
    pairs, at, calls = [], end, len(rows[0]) - 1
    while at and calls:
        if rows[at][calls] == rows[at - 1][calls]:
            at -= 1
        elif rows[at][calls] == rows[at][calls - 1]:
            calls -= 1
        else:
            calls -= 1
            pairs.append((at - 1, calls))
            at -= not slots[at - 1].many
    return pairs


def _find_ordered_faults(
    slots: Sequence[_Slot], end: int, pairs: Sequence[tuple[int, int]], to_place: set[int]
) -> AssignmentFaults:
    """Return the missing, extra and out-of-order calls.

    A call is out of order if it could be assigned only by ignoring the order."""
    in_order = {slot: call for slot, call in pairs if not slots[slot].many}
    in_many = {call for slot, call in pairs if slots[slot].many}
    ranked = sorted(range(len(slots)), key=lambda at: not slots[at].required)
    rank = {slot: number for number, slot in enumerate(ranked)}
    edges = [[] if slots[at].many else slots[at].places for at in ranked]
    found = find_maximum_matching(edges, {rank[slot]: call for slot, call in in_order.items()})
    assignment = {ranked[number]: call for number, call in found.items()}
    astray = {call for slot, call in assignment.items() if slot not in in_order}
    taken = set(assignment.values()) | in_many
    takes_many = {call for slot in slots if slot.many for call in slot.places}
    left = to_place - taken
    missing = dict.fromkeys(
        slot.entry for at, slot in enumerate(slots[:end]) if slot.required and at not in assignment
    )
    return AssignmentFaults(
        missing=tuple(missing),
        extra=tuple(sorted(left - takes_many)),
        out_of_order=tuple(sorted(astray | (left & takes_many))),
        matched_calls=frozenset(taken | left & takes_many),
    )
