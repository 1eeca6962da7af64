"""What the detectors find on real conversations, and of faults that were planted in some of them.

    python benchmarks/detectors.py                     findings on the conversations as they are, by agent
    python benchmarks/detectors.py --show 40           and so many of them, drawn by the seed, to be read
    python benchmarks/detectors.py --plants FILE       recall by kind of fault (see plants.py), and its misses

The conversations are those of ``../shared/data``; ``--data FILE…`` names others. A planted fault is *found*
if a finding is new beside those of the conversation as it was; *at its place*, if it names the turn or the
call. Destructive tools are marked where a plant of consent needs it.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from detector_runs import Found, findings
from recorded import Conversation, MissingDataError, load, load_sets

CHANGES = (
    "book_reservation", "cancel_reservation", "update_reservation_flights", "send_certificate",
    "update_reservation_baggages", "update_reservation_passengers", "cancel_pending_order",
    "return_delivered_order_items", "exchange_delivered_order_items", "modify_pending_order_address",
    "modify_pending_order_items", "modify_pending_order_payment", "modify_user_address",
)  # fmt: skip
"""The tools of these sets that are marked ``destructive``: they book, change or cancel something."""
DETECTOR_NAMES = (
    "repeated_tool_call", "wrong_arguments", "malformed_arguments", "unknown_tool", "ignored_tool_error",
    "contradicts_evidence", "ungrounded_value", "repetition", "leak", "unconfirmed_action",
    "claimed_action_not_called",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, nargs="*", default=())
    parser.add_argument("--plants", type=Path)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    try:
        if chosen.plants:
            recall(load(chosen.plants), chosen.show, chosen.seed)
        else:
            as_they_are(load_sets(chosen.data), chosen.show, chosen.seed)
    except MissingDataError as error:
        sys.exit(str(error))


def interval(found: int, of: int) -> str:
    """A share with its 95 % interval (Wilson 1927)."""
    if not of:
        return "–"
    z, p = 1.96, found / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * sqrt(p * (1 - p) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return f"{p:.3f} [{max(0.0, middle - half):.3f}, {min(1.0, middle + half):.3f}]"


def as_they_are(sets: dict[str, list[Conversation]], show: int, seed: int) -> None:
    """Conversations with a finding, by severity and by detector; marks for consent are not set."""
    drawn: list[tuple[str, Found]] = []
    print(f"{'set':14}{'n':>5}  {'at any level':26}{'at high or critical':26}by detector")
    for name, conversations in sets.items():
        found = findings(conversations, DETECTOR_NAMES)
        any_level = sum(bool(items) for items in found.values())
        high = sum(any(item.is_grave for item in items) for items in found.values())
        by_name = Counter(item.detector for items in found.values() for item in items)
        of = len(conversations)
        told = ", ".join(f"{detector} {n}" for detector, n in by_name.most_common())
        shares = f"{interval(any_level, of):26}{interval(high, of):26}"
        print(f"{name:14}{of:5}  {shares}{told}")
        drawn += [(ident, item) for ident, items in found.items() for item in items]
    random.Random(seed).shuffle(drawn)
    for ident, item in drawn[:show]:
        where = f"turn {item.turn}" if item.call is None else f"turn {item.turn}, call {item.call}"
        print(f"\n{ident}, {where}: {item.severity} {item.detector}")
        print(f"  {item.explanation}\n  {item.evidence[:200]}")


def recall(plants: list[dict[str, Any]], show: int, seed: int) -> None:
    """Of each kind of planted fault, how many gave a new finding; where consent was given, how many did."""
    originals = {row["id"]: row for rows in load_sets().values() for row in rows}
    planted = dict(_scored((row["conversation"], _is_of_consent(row)) for row in plants))
    before = dict(_scored((originals[ident], is_marked) for ident, is_marked in _bases(plants)))
    missed: list[dict[str, Any]] = []
    print(f"{'kind':18}{'n':>5}  {'found':26}{'at its place':26}by severity, by detector")
    for kind in dict.fromkeys(row["kind"] for row in plants):
        rows = [row for row in plants if row["kind"] == kind]
        found = at_place = 0
        by: Counter[str] = Counter()
        for row in rows:
            was = before[row["base"], _is_of_consent(row)]
            new = [
                item for item in planted[row["conversation"]["id"], _is_of_consent(row)] if item not in was
            ]
            found += bool(new)
            at_place += any(_is_at(item, row) for item in new)
            by.update({f"{item.severity} {item.detector}" for item in new})
            if bool(new) == kind.endswith("_ok"):
                missed.append(row)
        told = ", ".join(f"{name} {n}" for name, n in by.most_common(4))
        print(
            f"{kind:18}{len(rows):5}  {interval(found, len(rows)):26}{interval(at_place, len(rows)):26}{told}"
        )
    random.Random(seed).shuffle(missed)
    for row in missed[:show]:
        print(f"\nmissed: {row['kind']} in {row['base']}, turn {row['turn']}, call {row['call']}")
        print(f"  {row['before']!s:.120}  →  {row['after']!s:.120}")


def _bases(plants: Iterable[dict[str, Any]]) -> list[tuple[str, bool]]:
    return list(dict.fromkeys((row["base"], _is_of_consent(row)) for row in plants))


def _is_of_consent(row: dict[str, Any]) -> bool:
    return str(row["kind"]).startswith("consent")


def _is_at(item: Found, row: dict[str, Any]) -> bool:
    return item.call == row["call"] if row["call"] is not None else item.turn == row["turn"]


def _scored(wanted: Iterable[tuple[Conversation, bool]]) -> Iterator[tuple[tuple[str, bool], list[Found]]]:
    """The findings by conversation, with and without marks of destructive tools."""
    asked = list(wanted)
    for is_marked in (False, True):
        part = [_with_marks(row) if is_marked else row for row, marks in asked if marks is is_marked]
        for ident, items in findings(part, DETECTOR_NAMES).items() if part else ():
            yield (ident, is_marked), items


def _with_marks(row: Conversation) -> Conversation:
    declared = {tool.get("function", tool)["name"] for tool in row.get("tools") or []}
    return {**row, "tool_marks": {name: "destructive" for name in CHANGES if name in declared}}


if __name__ == "__main__":
    main()
