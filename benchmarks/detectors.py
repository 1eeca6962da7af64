"""How much the detectors find, and how often they cry wolf, on real conversations.

::

    python benchmarks/detectors.py                      recall on planted faults, findings on what is clean
        --data FILE…     other recorded conversations (JSON Lines, gzip or not); default: ../shared/data
        --marks FILE     {"tool": "reads" | "writes" | "destructive"} for --data
        --variants       every variant of every fault in each conversation that has a place for it
        --misses         which faults were not found, and the false alarms on other domains
        --as-recorded    unmutated conversations without the marks and declarations that we add
        --sample 50 [--seed S] [--append]   findings on unmutated conversations, to be read by hand; --append
                         adds lines for them to read_by_hand.jsonl

The unit is the conversation: one fault of each kind per conversation, of a variant drawn by the seed. A
fault is found if its own detector reports it in its turn (and names its call, if it names one) and did not
report the same without it. Intervals are Wilson's, 95 %; four trials of one task are no independent
conversations, so those of tau_airline are somewhat too narrow.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import other_domains
import read_by_hand
from detector_runs import Found, ScoreCommandError, findings
from detector_tables import ALARM_HEAD, RECALL_HEAD, Judged, alarm_rows, judge, recall_rows, table
from faults import LABELS, plant_all, prepared
from recorded import Conversation, MissingDataError, load_sets


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", type=Path, default=[], metavar="FILE")
    parser.add_argument("--marks", type=Path, metavar="FILE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--as-recorded", action="store_true")
    parser.add_argument("--sample", type=int, default=0, metavar="N")
    parser.add_argument("--append", action="store_true")
    return parser.parse_args()


def found_in(conversations: Sequence[Conversation]) -> dict[str, list[Found]]:
    return findings(conversations, LABELS)


def measure_recall(
    ready: list[Conversation], clean: dict[str, list[Found]], seed: int, *, variants: bool
) -> list[Judged]:
    """Plant, score, compare."""
    faults = plant_all(ready, seed, every_variant=variants)
    found = found_in([fault.conversation for fault in faults])
    return [judge(fault, found[fault.conversation["id"]], clean[fault.source]) for fault in faults]


def print_recall(name: str, judged: list[Judged], conversations: int, given: argparse.Namespace) -> None:
    print(f"\n## {name}: recall on planted faults ({conversations} conversations, seed {given.seed})\n")
    print(table(RECALL_HEAD, recall_rows(judged, conversations, variants=given.variants)))
    if given.misses:
        print(f"\n{name}: not found\n")
        for item in judged:
            if item.outcome != "found":
                print(f"- {_miss(item)}")


def _miss(item: Judged) -> str:
    fault = item.fault
    where = f"turn {fault.turn}" + (f" calls {fault.calls}" if fault.calls else "")
    told = item.outcome + (f" by {', '.join(item.by)}" if item.by else "")
    return f"{fault.source} {where} {fault.operator}.{fault.variant}: {told}: {' '.join(fault.note.split())}"


def print_alarms(name: str, found: dict[str, list[Found]], what: str) -> None:
    print(f"\n## {name}: findings on {what}\n")
    print(table(ALARM_HEAD, alarm_rows(found, LABELS)))


def print_other_domains(given: argparse.Namespace) -> None:
    """What they are written for are false alarms; faults planted into them say what that costs."""
    ready = prepared("other_domains", other_domains.conversations())
    found = found_in(ready)
    judged = measure_recall(ready, found, given.seed, variants=False)
    print_recall("other_domains", judged, len(ready), argparse.Namespace(**{**vars(given), "misses": False}))
    print_alarms("other_domains", found, "conversations that are clean by construction")
    if given.misses:
        print("\nother_domains: each a false alarm\n")
        for ident, items in found.items():
            for item in items:
                print(f"- {ident} turn {item.turn} {item.detector}: {item.explanation}")


def print_sample(items: list[read_by_hand.Placed], given: argparse.Namespace) -> None:
    chosen = read_by_hand.sample(items, given.sample, given.seed)
    for item in chosen:
        print(read_by_hand.show(item), end="\n\n")
    if given.append:
        known = read_by_hand.read_lines()
        with open(read_by_hand.FILE, "a", encoding="utf-8") as table_file:
            table_file.write(
                read_by_hand.lines_of([item for item in chosen if read_by_hand.row_of(item, known) is None])
            )


def measure(given: argparse.Namespace) -> None:
    items: list[read_by_hand.Placed] = []
    total, everything = 0, list[Judged]()
    for name, conversations in load_sets(given.data).items():
        ready = prepared(name, conversations, given.marks)
        clean = found_in(ready)
        raw = [{**c, "id": r["id"]} for c, r in zip(conversations, ready, strict=True)]
        shown = found_in(raw) if given.as_recorded else clean
        items += read_by_hand.placed(name, ready, shown)
        total += len(ready)
        if given.sample:
            continue
        judged = measure_recall(ready, clean, given.seed, variants=given.variants)
        everything += judged
        print_recall(name, judged, len(ready), given)
        print_alarms(name, shown, "unmutated conversations (true or false: see what was read by hand)")
    if given.sample:
        print_sample(items, given)
        return
    if not any(item.outcome == "found" or item.by for item in everything):
        raise ScoreCommandError("no detector reported anything: `agenteval score` seems to run none")
    print_recall("all sets", everything, total, argparse.Namespace(**{**vars(given), "misses": False}))
    print_other_domains(given)
    print(f"\n## Findings on unmutated conversations, read by hand ({total} conversations)\n")
    print(read_by_hand.summary(items, read_by_hand.read_lines(), total))


def main() -> int:
    try:
        measure(options())
    except (MissingDataError, ScoreCommandError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
