"""Findings on conversations that nobody changed, read by a person: what they are worth.

``read_by_hand.jsonl`` has a line for each finding that was read: ``set``, ``conversation``, ``detector``,
``turn`` and ``call`` (from 0), ``evidence``, ``verdict`` (``true``, ``false`` or ``arguable``; empty: not
read yet) and ``remark``. A finding is joined with the line of its place whose evidence quotes the same, so
that a line holds until the detector says something else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

from detector_runs import Found
from detector_tables import per_hundred, table
from recorded import Conversation, take_apart

from agenteval.statistics import wilson

FILE = Path(__file__).with_name("read_by_hand.jsonl")
VERDICTS = ("true", "false", "arguable")
Row: TypeAlias = dict[str, Any]


class Placed(NamedTuple):
    """A finding, its set and its conversation."""

    group: str
    conversation: Conversation
    found: Found

    @property
    def place(self) -> tuple[str, str, str, int | None, int | None]:
        f = self.found
        return self.group, self.conversation["id"], f.detector, f.turn, f.call


def placed(
    group: str, conversations: Sequence[Conversation], found: Mapping[str, Sequence[Found]]
) -> list[Placed]:
    """The findings of a set, in order."""
    return [Placed(group, c, item) for c in conversations for item in found.get(c["id"], ())]


def sample(items: Sequence[Placed], size: int, seed: int) -> list[Placed]:
    """Any ``size`` of them, each as likely as another."""
    return Random(seed).sample(list(items), min(size, len(items)))


def show(item: Placed) -> str:
    """A finding with what a reader needs: the turn's messages, calls and results, and the turn before."""
    recorded, found = take_apart(item.conversation), item.found
    lines = [f"=== {item.group}  {recorded.id}  {found.detector} ({found.label}, {found.severity})"]
    lines += [f"    turn {found.turn}, call {found.call} (from 0)", f"    evidence: {found.evidence}"]
    lines += [f"    {found.explanation}"]
    numbers = range(len(recorded.turns)) if found.turn is None else (found.turn - 1, found.turn)
    calls = {(call.at, call.slot): call for call in recorded.calls}
    for turn in (recorded.turns[n] for n in numbers if 0 <= n < len(recorded.turns)):
        after = recorded.turns[turn.number + 1 :]
        end = after[0].user_at if after else len(recorded.messages)
        for at in range(turn.user_at, end):
            lines += _message(recorded.messages[at], [c for (place, _), c in calls.items() if place == at])
    return "\n".join(lines)


def _message(message: Mapping[str, Any], calls: Sequence[Any]) -> Iterator[str]:
    if message["role"] == "tool":
        yield f"  [tool] {str(message.get('content'))[:1500]}"
        return
    if message.get("content"):
        yield f"  [{message['role']}] {message['content']}"
    for call in calls:
        yield f"  [call {call.index}] {call.name}({call.raw})"


def lines_of(items: Sequence[Placed]) -> str:
    """The lines of a table, to be filled in."""
    names = ("set", "conversation", "detector", "turn", "call", "evidence")
    values = ((*item.place, item.found.evidence) for item in items)
    rows = ({**dict(zip(names, each, strict=True)), "verdict": "", "remark": ""} for each in values)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_lines(path: Path = FILE) -> list[Row]:
    """The table. Raises ``ValueError`` for a verdict that is none."""
    if not path.is_file():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    for row in rows:
        if row["verdict"] not in (*VERDICTS, ""):
            raise ValueError(f"{path}: verdict {row['verdict']!r}; write one of {', '.join(VERDICTS)}")
    return rows


def row_of(item: Placed, rows: Iterable[Row]) -> Row | None:
    """The line of a finding: at its place, and one of the two quotes the other."""
    for row in rows:
        place = (row["set"], row["conversation"], row["detector"], row["turn"], row["call"])
        quotes = (row["evidence"], item.found.evidence)
        if place == item.place and min(quotes, key=len) in max(quotes, key=len):
            return row
    return None


HEAD = (
    "detector",
    "findings",
    "read",
    *VERDICTS,
    "false alarms per 100 conversations [95 %]",
    "at high or above",
)


def summary(items: Sequence[Placed], rows: Sequence[Row], conversations: int) -> str:
    """Per detector and for all: what was read, and the false alarms that follow."""
    joined = [(item, row_of(item, rows)) for item in items]
    names = sorted({item.found.detector for item in items})
    read = [(item, row["verdict"] if row else "") for item, row in joined]
    body = [_line(name, [r for r in read if r[0].found.detector == name], conversations) for name in names]
    body.append(_line("all", read, conversations))
    used = {id(row) for _, row in joined if row}
    stale = sum(1 for row in rows if row["verdict"] and id(row) not in used)
    note = f"\n{stale} lines of the table belong to findings that are no longer made." if stale else ""
    return table(HEAD, body) + note


def _line(name: str, items: Sequence[tuple[Placed, str]], conversations: int) -> tuple[object, ...]:
    counts = Counter(verdict for _, verdict in items if verdict)
    read = sum(counts.values())
    verdicts = (counts[verdict] for verdict in VERDICTS)
    grave = [item for item in items if item[0].found.is_grave]
    read_grave = sum(bool(verdict) for _, verdict in grave)
    alarms = _alarms(items, read, conversations), _alarms(grave, read_grave, conversations)
    return (name, len(items), read, *verdicts, *alarms)


def _alarms(items: Sequence[tuple[Placed, str]], read: int, conversations: int) -> str:
    """If all were read: the conversations with a false one. Else the share of false ones among those read,
    with its interval, times how many findings a hundred conversations have."""
    false = [(item.group, item.conversation["id"]) for item, verdict in items if verdict == "false"]
    if read == len(items):
        return per_hundred(len(set(false)), conversations)
    if not read:
        return "nothing read"
    rate, share, (low, high) = 100 * len(items) / conversations, len(false) / read, wilson(len(false), read)
    return f"{rate * share:.1f} [{rate * low:.1f}, {rate * high:.1f}] (from a sample)"
