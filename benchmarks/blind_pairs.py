"""Conversations that were written, fault and all, by somebody who saw neither the detectors nor their tests.

::

    python benchmarks/blind_pairs.py [--misses]

``blind/*.jsonl.gz`` holds clean conversations and twins of them with one fault each: ``fault`` says of which
it is a twin, the turn, the kind and the detectors that may name it. What was found at first sight stands in
docs/detectors.md; the detectors have been mended by all of them since, so that a new one would tell more.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from detector_runs import Found, ScoreCommandError, findings
from detector_tables import per_hundred, percent, table
from faults import LABELS
from recorded import Conversation

FOLDER = Path(__file__).with_name("blind")
KINDS = {
    "price": "amounts", "date": "dates", "time": "times and lengths", "qty": "counts and measures",
    "pct": "percentages", "id": "identifiers", "invented": "invented facts", "claim": "claims without a call",
    "error": "errors told as success", "secret": "secrets of the policy", "dup": "repeated calls",
    "schema": "arguments against the schema", "unknown": "unknown tools", "repeat": "repeated answers",
    "unasked": "irreversible deeds without a yes",
}  # fmt: skip
GRADES = ("high or above", "medium", "low")


def read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def outcome(fault: Mapping[str, Any], found: Sequence[Found], before: Sequence[Found]) -> str:
    """``found`` by a detector that may name it, in its turn; by an ``other`` one there; or ``missed``."""
    known = {(item.detector, item.turn, item.evidence) for item in before}
    new = [item for item in found if (item.detector, item.turn, item.evidence) not in known]
    there = {item.detector for item in new if item.turn == fault["turn"]}
    if there.intersection(fault["expected"]):
        return "found"
    return "other" if there else "missed"


def grade(items: Sequence[Found]) -> str:
    """The worst of a conversation's findings."""
    worst = {"high" if item.is_grave else item.severity for item in items}
    return next((name for name in GRADES if name.split()[0] in worst), "")


def report(name: str, conversations: Sequence[Conversation], *, misses: bool) -> None:
    clean = [one["id"] for one in conversations if "fault" not in one]
    faulty = [one for one in conversations if "fault" in one]
    found = findings(conversations, LABELS)
    grades = [grade(found[ident]) for ident in clean]
    print(f"\n## {name}: {len(clean)} clean conversations\n")
    rows = [[one, grades.count(one), per_hundred(grades.count(one), len(clean))] for one in GRADES]
    print(table(["worst false alarm", "conversations", "per 100 [95 %]"], rows))
    outcomes = {
        one["id"]: outcome(one["fault"], found[one["id"]], found[one["fault"]["of"]]) for one in faulty
    }
    if faulty:
        print(f"\n## {name}: {len(faulty)} faults\n")
        print(table(["kind", "n", "recall [95 %]", "other detector", "missed"], _by_kind(faulty, outcomes)))
    if misses:
        print_misses(faulty, outcomes)
        for item in (item for ident in clean for item in found[ident]):
            print(f"- false alarm, turn {item.turn}, {item.severity} {item.detector}: {item.explanation}")


def _by_kind(faulty: Sequence[Conversation], outcomes: Mapping[str, str]) -> Iterator[list[object]]:
    for kind, words in {**KINDS, "": "all"}.items():
        each = [outcomes[one["id"]] for one in faulty if kind in {"", one["fault"]["kind"]}]
        if each:
            hits = each.count("found")
            yield [words, len(each), percent(hits, len(each)), each.count("other"), each.count("missed")]


def print_misses(faulty: Sequence[Conversation], outcomes: Mapping[str, str]) -> None:
    for one in faulty:
        fault, told = one["fault"], outcomes[one["id"]]
        if told != "found":
            print(f"- {told} {one['id']} turn {fault['turn']}: {fault['note']}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--misses", action="store_true")
    given = parser.parse_args()
    try:
        for path in sorted(FOLDER.glob("*.jsonl.gz")):
            report(path.name.partition(".")[0], read(path), misses=given.misses)
    except ScoreCommandError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
