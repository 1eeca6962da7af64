"""Describe how a turn changed the state of the tool world, one line for each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.world_state import RowChange, StateChanges
from agenteval.reporters.words.json_tree import value_text

_MOST = 20
_LONGEST = 200


def state_lines(before: StateChanges | None, after: StateChanges | None) -> Iterator[str]:
    """Yield a line for each row that differs between the states at the end of two turns. ``before`` is
    ``None`` for the first turn."""
    if after is None:
        return
    lines = list(_changed_lines(before or StateChanges(), after))
    yield from lines[:_MOST]
    if len(lines) > _MOST:
        yield f"… and {plural(len(lines) - _MOST, 'more row')}"
    if not after.is_complete:
        yield f"not known: {after.unknown}" if after.unknown else "… and more changes than are recorded"


def _changed_lines(before: StateChanges, after: StateChanges) -> Iterator[str]:
    for table in dict.fromkeys((*before.tables, *after.tables)):
        earlier = {str(row.identity): row for row in before.tables.get(table, ())}
        later = {str(row.identity): row for row in after.tables.get(table, ())}
        for identity in dict.fromkeys((*earlier, *later)):
            was, now = _state_of(identity, earlier, later)
            if was != now:
                yield one_line(f"{table} {_describe_row(was, now)}", _LONGEST)


def _state_of(
    identity: str, earlier: Mapping[str, RowChange], later: Mapping[str, RowChange]
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Return a row at the end of both turns. A row that is in neither mapping is as it was at the start."""
    first, last = earlier.get(identity), later.get(identity)
    start = first.before if first else last.before if last else None
    return (first.after if first else start), (last.after if last else start)


def _describe_row(was: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> str:
    if was is None or now is None:
        sign, row = ("+", now) if was is None else ("-", was)
        return f"{sign} {value_text(dict(row or {}))}"
    changed = [
        f"{name} {value_text(was.get(name))} → {value_text(now[name])}"
        for name in now
        if was.get(name) != now[name]
    ]
    key = next((value_text(now[name]) for name in now if name.lower() == "id"), "")
    return f"{key}: {', '.join(changed)}" if key else ", ".join(changed)
