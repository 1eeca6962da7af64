"""Assigns spans to the turns of their conversation, according to the enclosing spans or, if that is not
possible, by time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from agenteval.importers.span_tree import SpanTree
from agenteval.importers.spans import Span


class SpanTurns:
    """The turns of the spans in a conversation. A turn is represented by the number of user messages up to
    and including the turn.

    ``known`` maps each span that contains messages to its turn. ``last`` is the last turn of the
    conversation; it is used if no span contains messages."""

    def __init__(self, tree: SpanTree, known: Mapping[Span, int], last: int) -> None:
        self._tree = tree
        self._within: dict[Span, set[int]] = {}
        self._of_trace: dict[str, set[int]] = {}
        for span in tree.ordered:
            if (turn := known.get(span)) is not None:
                self._of_trace.setdefault(span.trace, set()).add(turn)
                for each in tree.self_and_ancestors(span):
                    self._within.setdefault(each, set()).add(turn)
        self._all = set(known.values()) or {last}
        # A span around those of several turns started with the first turn and shows the last.
        self._inner = [span for span in tree.ordered if span in known and len(self._within[span]) == 1]
        self._known = known

    @property
    def first(self) -> int:
        return min(self._all)

    def turns_of(self, span: Span) -> list[int]:
        """Return the turns that a span may belong to, in order. Usually there is only one."""
        if within := self._within.get(span):
            return sorted(within)
        outer = next(filter(None, map(self._within.get, self._tree.ancestors(span))), None)
        if outer and len(outer) == 1:
            return [*outer]
        turns = self._of_trace.get(span.trace, self._all)
        return [*turns] if len(turns) == 1 else self._by_time(span, turns)

    def _by_time(self, span: Span, turns: set[int]) -> list[int]:
        inner = [each for each in self._inner if self._known[each] in turns]
        starts = [each.start for each in inner if each.start is not None]
        if span.start is None or len(starts) < len(inner) or not starts:
            return list(range(min(turns), max(turns) + 1))
        at = bisect_right(starts, span.start)
        near = [self._known[each] for each in inner[max(at - 1, 0) : at + 1]]
        return list(range(min(near), max(near) + 1))
