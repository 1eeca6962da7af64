"""Pairs results with tool calls, and tool calls with their repetitions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

_Step = TypeVar("_Step")
_One = TypeVar("_One")
_Other = TypeVar("_Other")


@dataclass(eq=False, slots=True)
class _PendingStep(Generic[_Step]):
    """The calls in a step that have no result yet. Their ids and names are keyed by position, and the names
    are also grouped by id."""

    step: _Step
    ids: dict[int, str]
    names: dict[int, Any]
    by_id: dict[str, dict[int, Any]]


class WaitingCalls(Generic[_Step]):
    """The tool calls that have no result yet, grouped by step."""

    def __init__(self) -> None:
        self._steps: list[_PendingStep[_Step]] = []

    def add(self, step: _Step, calls: Mapping[int, tuple[str, Any]]) -> None:
        """Add the waiting calls of a step. The id and name of each call are keyed by the call's position in
        the step."""
        if not calls:
            return
        by_id: dict[str, dict[int, Any]] = {}
        for at, (call_id, name) in calls.items():
            by_id.setdefault(call_id, {})[at] = name
        ids, names = ({at: call[n] for at, call in calls.items()} for n in (0, 1))
        self._steps.append(_PendingStep(step, ids, names, by_id))

    def take(self, call_id: str, name: Any) -> tuple[_Step, int] | None:
        """Remove the call to which a result belongs, and return the step and the position of the call. Return
        ``None`` if no call is waiting.

        The call is the first call with the result's id, in the latest step that contains this id. Real logs
        reuse ids, so a map from ids to calls would mix up results. If no call has the id, choose the first
        call of the latest step. If several calls qualify, prefer a call with the given name."""
        if not self._steps:
            return None
        with_id = (each for each in reversed(self._steps) if call_id and each.by_id.get(call_id))
        found = next(with_id, None)
        names = found.by_id[call_id] if found else self._steps[-1].names
        found = found or self._steps[-1]
        at = next((at for at, each in names.items() if each == name), next(iter(names)))
        del found.by_id[found.ids[at]][at], found.names[at]
        if not found.names:
            self._steps.remove(found)
        return found.step, at


def match_pairs(
    items: Sequence[_One], candidates: Sequence[_Other], *tests: Callable[[_One, _Other], bool]
) -> dict[int, int]:
    """Match each item in ``items`` with one in ``candidates`` that passes a test, and return a map of their
    positions. Each candidate is matched at most once.

    All pairs that pass one test are matched before the next test is tried."""
    remaining = dict(enumerate(candidates))
    found: dict[int, int] = {}
    for is_same in tests:
        for at in [at for at in range(len(items)) if at not in found]:
            matching = (place for place, other in remaining.items() if is_same(items[at], other))
            if (place := next(matching, None)) is not None:
                found[at] = place
                del remaining[place]
    return found
