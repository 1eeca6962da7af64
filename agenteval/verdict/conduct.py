"""Compares what agents did in two conversations: their tool calls, and the state of the tool world at the
end. Pure.

What an agent copies from its user's message differs as the messages do. Texts are therefore compared as they
are read (``agenteval.core.folding``), without regard to case, and a message that a variant altered counts as
the one that the user wrote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from agenteval.core.call_outcomes import abbreviate_call, json_key
from agenteval.core.folding import fold
from agenteval.core.safe_text import one_line
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import ToolCall, Trajectory, Turn
from agenteval.core.world_state import RowChange, StateChanges
from agenteval.scoring.checks.call_assignment import find_maximum_matching

_SHOWN = 200
_MOST_MATCHED = 200
"""The number of rows of a table up to which rows that differ in nothing but the time are matched."""
_ONE_MOMENT = timedelta(seconds=1)


@dataclass(frozen=True)
class Conduct:
    """What an agent did in a conversation, apart from its words."""

    calls: tuple[tuple[Hashable, str], ...]
    """The calls: a key that is equal for equal calls, and the call as text."""
    names: Counter[str]
    """The numbers of calls of each tool."""
    has_unread_arguments: bool
    """True if the arguments of a call are not known."""
    state: EndState
    unplaced: str
    """A part of the record that could not be read and may hold calls; empty if there is none."""
    altered: Turn | None
    """The first turn whose message was altered."""


class ComparedRow(NamedTuple):
    """A changed row."""

    value: Mapping[str, Any]
    """The row ``before`` and ``after`` the change, as it is compared."""
    text: str
    """The change for a reader."""


@dataclass(frozen=True)
class EndState:
    """The changed rows at the end of a conversation."""

    rows: Mapping[str, tuple[ComparedRow, ...]] = field(default_factory=dict)
    """The changed rows of each table."""
    now: str = ""
    """The time in the tool world."""
    unknown: str = ""
    """The reason why the state is not known; empty if it is."""


def conduct_of(trajectory: Trajectory, scenario: Scenario) -> Conduct:
    """Return what the agent did in a finished conversation."""
    texts = _SentTexts(trajectory.turns)
    calls = trajectory.tool_calls
    return Conduct(
        calls=tuple((_call_key(call, texts), abbreviate_call(call, _SHOWN)) for call in calls),
        names=Counter(call.name for call in calls),
        has_unread_arguments=any(call.args is None for call in calls),
        state=_end_state(trajectory, scenario, texts),
        unplaced=next((turn.unplaced[0] for turn in trajectory.all_turns if turn.unplaced), ""),
        altered=next((turn for turn in trajectory.turns if turn.user_wrote is not None), None),
    )


class _SentTexts:
    """Turns the texts of a conversation into what they would be if no message had been altered."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        pairs = ((_folded(turn.user), _folded(turn.original_user)) for turn in turns if turn.user_wrote)
        different = ((sent, wrote) for sent, wrote in pairs if sent and sent != wrote)
        self._pairs = sorted(different, key=lambda pair: -len(pair[0]))

    def plain(self, value: Any) -> Any:
        """Return a value with its texts folded, and without the alterations in them."""
        if isinstance(value, str):
            text = _folded(value)
            for sent, wrote in self._pairs:
                text = text.replace(sent, wrote)
            return text
        if isinstance(value, Mapping):
            return {name: self.plain(item) for name, item in value.items()}
        return [self.plain(item) for item in value] if isinstance(value, list | tuple) else value


def _folded(text: str) -> str:
    return fold(text).casefold().strip()


def _call_key(call: ToolCall, texts: _SentTexts) -> Hashable:
    args = None if call.args is None else json_key(texts.plain(call.args))
    return call.name, call.was_made, args


def _end_state(trajectory: Trajectory, scenario: Scenario, texts: _SentTexts) -> EndState:
    if not scenario.uses_state:
        return EndState()
    found = trajectory.final_state
    if found is None:
        return EndState(unknown="the state at the end was not recorded")
    if not found.is_complete:
        return EndState(unknown=found.unknown_because or "more rows changed than are recorded")
    return EndState({name: tuple(_rows(found, name, texts)) for name in found.tables}, found.now)


def _rows(state: StateChanges, table: str, texts: _SentTexts) -> Iterator[ComparedRow]:
    """Yield the changed rows. Which number SQLite gave a row says nothing."""
    for change in state.tables[table]:
        value = {"before": texts.plain(change.before), "after": texts.plain(change.after)}
        yield ComparedRow(value, one_line(f"{table} {_describe(change)}", _SHOWN))


# ── differences ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ConductDifference:
    """What one conversation has and the other has not."""

    missing_calls: tuple[str, ...] = ()
    extra_calls: tuple[str, ...] = ()
    missing_rows: tuple[str, ...] = ()
    extra_rows: tuple[str, ...] = ()
    open: str = ""
    """The reason why the comparison is not decided; empty if it is."""

    @cached_property
    def size(self) -> int:
        return sum(map(len, (self.missing_calls, self.extra_calls, self.missing_rows, self.extra_rows)))

    @property
    def lines(self) -> Iterator[str]:
        """The differences for a reader."""
        yield from (f"missing: {call}" for call in self.missing_calls)
        yield from (f"additional: {call}" for call in self.extra_calls)
        yield from (f"not changed: {row}" for row in self.missing_rows)
        yield from (f"changed: {row}" for row in self.extra_rows)


def compare_conduct(one: Conduct, other: Conduct) -> ConductDifference:
    """Return what ``one`` lacks and has in addition, compared with ``other``."""
    missing, extra = _call_differences(other, one), _call_differences(one, other)
    if one.names == other.names and (one.has_unread_arguments or other.has_unread_arguments):
        return ConductDifference(open="the arguments of a call are not known")
    unknown = one.state.unknown or other.state.unknown
    if unknown and not (missing or extra):
        return ConductDifference(open=unknown)
    rows = ((), ()) if unknown else _row_differences(one.state, other.state)
    return ConductDifference(missing, extra, *rows)


def _call_differences(one: Conduct, other: Conduct) -> tuple[str, ...]:
    """Return the calls of ``one`` that ``other`` has not."""
    left = Counter(key for key, _ in other.calls)
    found = []
    for key, text in one.calls:
        left[key] -= 1
        if left[key] < 0:
            found.append(text)
    return tuple(found)


def _row_differences(one: EndState, other: EndState) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rows that only ``other`` has, and those that only ``one`` has."""
    missing: list[str] = []
    extra: list[str] = []
    for table in dict.fromkeys((*other.rows, *one.rows)):
        mine, theirs = one.rows.get(table, ()), other.rows.get(table, ())
        only_mine, only_theirs = _without_equal(mine, theirs), _without_equal(theirs, mine)
        if only_mine and only_theirs and max(len(only_mine), len(only_theirs)) <= _MOST_MATCHED:
            only_mine, only_theirs = _without_matched(only_mine, only_theirs, one.now, other.now)
        missing += [row.text for row in only_theirs]
        extra += [row.text for row in only_mine]
    return tuple(missing), tuple(extra)


def _without_equal(rows: Sequence[ComparedRow], others: Sequence[ComparedRow]) -> list[ComparedRow]:
    left = Counter(json_key(row.value) for row in others)
    found = []
    for row in rows:
        key = json_key(row.value)
        left[key] -= 1
        if left[key] < 0:
            found.append(row)
    return found


def _without_matched(
    rows: Sequence[ComparedRow], others: Sequence[ComparedRow], now: str, other_now: str
) -> tuple[list[ComparedRow], list[ComparedRow]]:
    """Leave out the rows that differ only in times that are equally far from the time of their worlds."""
    edges = [
        [
            at
            for at, other in enumerate(others)
            if _is_same_but_for_time(row.value, other.value, now, other_now)
        ]
        for row in rows
    ]
    matched = find_maximum_matching(edges)
    taken = set(matched.values())
    return (
        [row for at, row in enumerate(rows) if at not in matched],
        [row for at, row in enumerate(others) if at not in taken],
    )


def _is_same_but_for_time(one: Any, other: Any, now: str, other_now: str) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            _is_same_but_for_time(one[name], other[name], now, other_now) for name in one
        )
    if json_key(one) == json_key(other):
        return True
    return _is_same_delay(one, now, other, other_now)


def _is_same_delay(one: Any, now: str, other: Any, other_now: str) -> bool:
    times = [_parse_time(each) for each in (one, now, other, other_now)]
    first, since, second, other_since = times
    if first is None or since is None or second is None or other_since is None:
        return False
    return abs((first - since) - (second - other_since)) <= _ONE_MOMENT


def _parse_time(value: Any) -> datetime | None:
    if not isinstance(value, str) or len(value) < len("2026-01-01"):
        return None
    try:
        found = datetime.fromisoformat(value.upper())
    except ValueError:
        return None
    # A date alone is a day, which two worlds have in common.
    return found.replace(tzinfo=None) if ":" in value else None


def _describe(change: RowChange) -> str:
    before, after = change.before, change.after
    if before is None or after is None:
        sign, shown = ("+", after) if before is None else ("-", before)
        return f"{sign} {_json(shown)}"
    changed = {name: after[name] for name in after if json_key(before.get(name)) != json_key(after[name])}
    kept = {name: value for name, value in after.items() if name not in changed}
    arrows = ", ".join(f"{name} {_json(before.get(name))} → {_json(after[name])}" for name in changed)
    return f"{arrows} in {_json(kept)}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
