"""The turn of its conversation that a span of a trace is of: by the spans that it stands in, else by time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from agenteval.messages.span_tree import SpanTree
from agenteval.messages.spans import RawSpan, start_of, trace_of


class SpanTurns:
    """Turns are counted by the messages of users before and in them. ``known``: the turn of each span that
    holds messages, by its identity; ``last``: the last turn of the conversation, which is what a trace is of
    whose spans say nothing else."""

    def __init__(self, tree: SpanTree, known: Mapping[int, int], last: int) -> None:
        self._tree = tree
        self._within: dict[int, set[int]] = {}
        self._of_trace: dict[str, set[int]] = {}
        for span in tree.ordered:
            if (turn := known.get(id(span))) is not None:
                self._of_trace.setdefault(trace_of(span), set()).add(turn)
                for each in (span, *tree.above(span)):
                    self._within.setdefault(id(each), set()).add(turn)
        self._all = set(known.values()) or {last}
        # A span around those of several turns began with the first, and shows the last.
        self._inner = [
            span for span in tree.ordered if len(self._within.get(id(span), ())) == 1 and id(span) in known
        ]
        self._known = known

    @property
    def first(self) -> int:
        return min(self._all)

    def of(self, span: RawSpan) -> list[int]:
        """The turns that a span may be of, in order: mostly one."""
        if within := self._within.get(id(span)):
            return sorted(within)
        for each in self._tree.above(span):
            if within := self._within.get(id(each)):
                if len(within) == 1:
                    return [*within]
                break
        own = self._of_trace.get(trace_of(span), self._all)
        return [*own] if len(own) == 1 else self._by_time(span, own)

    def _by_time(self, span: RawSpan, turns: set[int]) -> list[int]:
        inner = [each for each in self._inner if self._known[id(each)] in turns]
        starts = [moment for each in inner if (moment := start_of(each)) is not None]
        start = start_of(span)
        if start is None or len(starts) < len(inner) or not starts:
            return list(range(min(turns), max(turns) + 1))
        at = bisect_right(starts, start)
        near = [self._known[id(each)] for each in inner[max(at - 1, 0) : at + 1]]
        return list(range(min(near), max(near) + 1))
