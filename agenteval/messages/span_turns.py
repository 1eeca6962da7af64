"""The turn of its conversation that a span of a trace is of: by the spans that it stands in, else by time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from agenteval.messages.span_tree import SpanTree, moment_of
from agenteval.messages.spans import start_of


class SpanTurns:
    """Turns are counted by the messages of users before and in them. ``known``: the turn of each span that
    holds messages, by its identity; ``last``: the last turn of the conversation, which is what a trace is of
    whose spans say nothing else."""

    def __init__(self, tree: SpanTree, known: Mapping[int, int], last: int) -> None:
        self._tree = tree
        self._within: dict[int, set[int]] = {}
        for span in tree.ordered:
            if (turn := known.get(id(span))) is not None:
                for each in (span, *tree.above(span)):
                    self._within.setdefault(id(each), set()).add(turn)
        self._all = sorted(set(known.values())) or [last]
        # A span around those of several turns began with the first, and shows the last.
        inner = [
            span for span in tree.ordered if len(self._within.get(id(span), ())) == 1 and id(span) in known
        ]
        self._turns = [known[id(span)] for span in inner]
        self._starts = [moment_of(start_of(span)) for span in inner]

    @property
    def first(self) -> int:
        return self._all[0]

    def of(self, span: Mapping[str, Any]) -> list[int]:
        """The turns that a span may be of, in order: mostly one."""
        if within := self._within.get(id(span)):
            return sorted(within)
        for each in self._tree.above(span):
            if within := self._within.get(id(each)):
                if len(within) == 1:
                    return [*within]
                break
        return self._all if len(self._all) == 1 else self._by_time(span)

    def _by_time(self, span: Mapping[str, Any]) -> list[int]:
        start = moment_of(start_of(span))
        starts = [each for each in self._starts if each is not None]
        if start is None or len(starts) < len(self._starts) or not starts:
            return list(range(self._all[0], self._all[-1] + 1))
        at = bisect_right(starts, start)
        near = self._turns[max(at - 1, 0) : at + 1]
        return list(range(min(near), max(near) + 1))
