"""What the benchmark of the detectors counts, and how it is printed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from detector_runs import Found
from faults import Fault

from agenteval.statistics import wilson


class Judged(NamedTuple):
    """A fault, and what was found of it. ``outcome``: ``found`` (its detector, at its place), ``elsewhere``
    (its detector, at another place), ``other`` (another detector, in its turn) or ``missed``; the first
    that holds."""

    fault: Fault
    outcome: str
    by: tuple[str, ...]


def judge(fault: Fault, found: Sequence[Found], before: Sequence[Found]) -> Judged:
    """Compare with what is found in the conversation without the fault: only what is new counts."""
    known = Counter(_identity(item) for item in before)
    new = []
    for item in found:
        if known[_identity(item)]:
            known[_identity(item)] -= 1
        else:
            new.append(item)
    own = [item for item in new if item.detector == fault.operator]
    others = tuple(sorted({item.detector for item in new if item.turn == fault.turn} - {fault.operator}))
    if any(_at_its_place(item, fault) for item in own):
        return Judged(fault, "found", others)
    return Judged(fault, "elsewhere" if own else "other" if others else "missed", others)


def _identity(item: Found) -> tuple[str, int | None, str]:
    """Without the number of the call: a planted call moves those behind it."""
    return item.detector, item.turn, item.evidence


def _at_its_place(item: Found, fault: Fault) -> bool:
    right_call = not fault.calls or item.call is None or item.call in fault.calls
    return item.turn == fault.turn and right_call


def percent(part: int, whole: int) -> str:
    """``0.95 [0.91, 0.98]``; a dash without a whole."""
    if not whole:
        return "–"
    low, high = wilson(part, whole)
    return f"{part / whole:.3f} [{low:.3f}, {high:.3f}]"


def per_hundred(part: int, whole: int) -> str:
    """``1.5 [0.4, 5.3]``: conversations of each hundred."""
    if not whole:
        return "–"
    low, high = wilson(part, whole)
    return f"{100 * part / whole:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, aligned for a terminal."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


RECALL_HEAD = ("operator", "n", "no place", "found", "recall [95 %]", "elsewhere", "other detector", "missed")


def recall_rows(judged: Sequence[Judged], conversations: int, *, variants: bool) -> list[tuple[object, ...]]:
    """One row per operator, or per variant. ``conversations``: those that were offered."""
    groups: dict[str, list[Judged]] = {}
    for item in judged:
        name = item.fault.operator + (f".{item.fault.variant}" if variants else "")
        groups.setdefault(name, []).append(item)
    rows = []
    for name, items in groups.items():
        outcomes, n = Counter(item.outcome for item in items), len({item.fault.source for item in items})
        counts = [outcomes[key] for key in ("elsewhere", "other", "missed")]
        rows.append(
            (
                name,
                len(items),
                conversations - n,
                outcomes["found"],
                percent(outcomes["found"], len(items)),
                *counts,
            )
        )
    return rows


ALARM_HEAD = (
    *("detector", "conversations", "findings", "with a finding"),
    *("per 100 conversations [95 %]", "at high or above"),
)


def alarm_rows(found: Mapping[str, Sequence[Found]], detectors: Iterable[str]) -> list[tuple[object, ...]]:
    """One row per detector: how many of the conversations have a finding of it, and one for all of them."""
    rows = []
    for name in [*detectors, "any"]:
        having = [[f for f in items if name in (f.detector, "any")] for items in found.values()]
        hit = sum(bool(items) for items in having)
        grave = sum(any(f.is_grave for f in items) for items in having)
        rates = per_hundred(hit, len(found)), per_hundred(grave, len(found))
        rows.append((name, len(found), sum(map(len, having)), hit, *rates))
    return rows
