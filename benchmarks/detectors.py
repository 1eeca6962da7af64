"""What the detectors find on real conversations, and of faults that were planted in some of them.

    python benchmarks/detectors.py                     findings on the conversations as they are, by agent
    python benchmarks/detectors.py --show 40           and so many of them, drawn by the seed, to be read
    python benchmarks/detectors.py --plants            recall by kind of fault (see plants.py); its misses

The conversations are those of ``../shared/data``; ``--data FILE…`` names others. A planted fault is *found*
if a finding is new beside those of the conversation as it was; *at its place*, if it names the turn or the
call. Destructive tools are marked where a plant of consent needs it. The last lines are of all conversations
with faults in one of ten: of the findings, how many are of what was planted.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from pathlib import Path

from detector_runs import Found, findings
from plants import Plant, plants
from recorded import Conversation, MissingDataError, load_sets

CHANGES = (
    "book_reservation", "cancel_reservation", "update_reservation_flights", "send_certificate",
    "update_reservation_baggages", "update_reservation_passengers", "cancel_pending_order",
    "return_delivered_order_items", "exchange_delivered_order_items", "modify_pending_order_address",
    "modify_pending_order_items", "modify_pending_order_payment", "modify_user_address",
)  # fmt: skip
"""The tools of these sets that are marked ``destructive``: they book, change or cancel something."""
CONSENT = "unconfirmed_action"
DETECTOR_NAMES = (
    "repeated_tool_call", "wrong_arguments", "malformed_arguments", "unknown_tool", "ignored_tool_error",
    "ungrounded_value", "repetition", "leak", "unconfirmed_action",
    "claimed_action_not_called",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, nargs="*", default=())
    parser.add_argument("--plants", action="store_true")
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    try:
        if chosen.plants:
            recall(chosen.show, chosen.seed)
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


def recall(show: int, seed: int) -> None:
    """Of each kind of planted fault, how many gave a new finding. Whether the user had agreed to a call is a
    question for a judge: of these kinds, how often it was raised at the call, agreed to or not."""
    originals = {row["id"]: row for rows in load_sets().values() for row in rows}
    planted = plants(originals)
    with_fault = dict(_scored((plant.conversation, _is_of_consent(plant)) for plant in planted))
    before = {ident: found for (ident, _), found in _scored((row, False) for row in originals.values())}

    def new_in(plant: Plant) -> list[Found]:
        found = with_fault[plant.conversation["id"], _is_of_consent(plant)]
        if _is_of_consent(plant):
            return [item for item in found if item.detector == CONSENT and _is_at(item, plant)]
        return [item for item in found if item not in before[plant.base]]

    missed: list[Plant] = []
    print(f"{'kind':18}{'n':>5}  {'found':26}{'at its place':26}by severity, by detector")
    for kind in dict.fromkeys(plant.kind for plant in planted):
        rows = [(plant, new_in(plant)) for plant in planted if plant.kind == kind]
        found = sum(bool(new) for _, new in rows)
        at_place = sum(any(_is_at(item, plant) for item in new) for plant, new in rows)
        by = Counter(name for _, new in rows for name in {f"{item.severity} {item.detector}" for item in new})
        missed += [plant for plant, new in rows if not new]
        told = ", ".join(f"{name} {n}" for name, n in by.most_common(4))
        shares = f"{interval(found, len(rows)):26}{interval(at_place, len(rows)):26}"
        print(f"{kind:18}{len(rows):5}  {shares}{told}")
    mixed = [plant for plant in planted if plant.in_mix]
    clean = [item for ident in originals for item in before[ident]]
    _of_the_mix([item for plant in mixed for item in new_in(plant)], clean, len(mixed), len(originals))
    random.Random(seed).shuffle(missed)
    for plant in missed[:show]:
        print(f"\nmissed: {plant.kind} in {plant.base}, turn {plant.turn}, call {plant.call}")
        print(f"  {plant.note:.100}  →  {plant.after:.120}")


def _of_the_mix(of_faults: Sequence[Found], clean: Sequence[Found], faults: int, of: int) -> None:
    print(f"\n{of} conversations, faults in {faults}: findings that are of what was planted, among all")
    for name, severities in (("high or critical", ("high", "critical")), ("medium", ("medium",))):
        true, other = (sum(item.severity in severities for item in items) for items in (of_faults, clean))
        print(f"{name:18}{true + other:5}  {interval(true, true + other)}")


def _is_of_consent(plant: Plant) -> bool:
    return plant.kind.startswith("consent")


def _is_at(item: Found, plant: Plant) -> bool:
    if plant.call is not None:
        return item.call == plant.call
    said = (message["role"] for message in plant.conversation["messages"] if message["role"] != "system")
    return item.turn == plant.turn + (next(said) == "assistant")  # what it says first is a turn, too


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
