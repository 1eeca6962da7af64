"""A thousand samples against servers that fail a share of the calls: what was promised, and what happened.

::

    python benchmarks/soak.py [SAMPLES] [--rate 0.2] [--seed N]      a run without faults, then one with
    python benchmarks/soak.py [SAMPLES] [--rate 0.2] --kill          killed five times meanwhile, and resumed

``agenteval run`` against real local servers (``soak_server.py``). Exit code 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import operator
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from processes import AGENTEVAL
from soak_runs import CONCURRENCY, EPOCHS, Left, events_of, gather, key_of, watch, write_project
from soak_server import REASKED, FaultyServer, Trouble

KILLS = 5
GROWTH = 1.10
"""What the second half of a run may take of memory, to the first."""
_SHOWN = 5


class Promises:
    """A table of what was promised and what was seen."""

    def __init__(self) -> None:
        self.broken = 0

    def check(self, what: str, seen: str, wrong: Iterable[str] | bool) -> None:
        """``wrong``: whether it is, or all that is."""
        found = list(map(str, wrong)) if not isinstance(wrong, bool) else [""] * wrong
        self.broken += bool(found)
        shown = "; ".join(found[:_SHOWN])
        print(f"{'✗' if found else '✓'} {what:52} {seen}{' — ' if shown else ''}{shown}")


# ── a run with faults beside one without ─────────────────────────────────────────────────────────


def same_results(promises: Promises, left: Left, reference: Left) -> None:
    ours, theirs = left.samples, reference.samples
    verdicts = Counter(sample["verdict"] for sample in ours.values())
    told = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items()))
    promises.check(
        "same verdict of every sample",
        told,
        [
            f"{key}: {ours[key]['verdict']}, not {sample['verdict']}"
            for key, sample in theirs.items()
            if key in ours and ours[key]["verdict"] != sample["verdict"]
        ],
    )
    promises.check(
        "same conversations, scores, findings",
        f"{sum(len(sample['turns']) for sample in ours.values()):,} turns",
        [key for key, sample in theirs.items() if ours.get(key) != sample],
    )
    exits = (left.done.code, reference.done.code)
    promises.check("same exit code", str(exits[0]), [f"not {exits[1]}"] if len(set(exits)) > 1 else [])


def nothing_lost(promises: Promises, left: Left) -> None:
    planned, ends = left.planned, Counter(left.keys("sample_finished"))
    promises.check(
        "every planned sample has one end",
        f"{len(planned):,} planned, {sum(ends.values()):,} ends",
        [key for key in {*planned, *ends} if ends[key] != 1],
    )
    promises.check(
        "the report has all of them",
        f"{len(left.samples):,} samples",
        {*planned} ^ {*left.samples},
    )
    promises.check("the report from the journal is the same", "", left.results != left.again)


def none_twice(promises: Promises, left: Left) -> None:
    turns = Counter(ticket.rpartition("/")[0] for ticket in left.books.tickets)
    starts = Counter(left.keys("sample_started"))
    promises.check(
        "no sample is run twice",
        f"{sum(left.books.tickets.values()):,} turns of {len(turns):,} samples answered by the agent",
        [key for key, times in {**starts, **left.books.tickets}.items() if times != 1],
    )


def each_answered_as_often(promises: Promises, left: Left, reference: Left) -> None:
    """Every question to model and agent, not only that of a turn."""
    ours, theirs = left.books.answered, reference.books.answered
    promises.check(
        "every question answered as often as without faults",
        f"{sum(ours.values()):,} answers to {len(ours):,} questions",
        [key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key)],
    )


def slots_returned(promises: Promises, left: Left) -> None:
    in_flight, most = left.books.in_flight, left.books.most
    promises.check("no call in flight at the end, at the server", "", any(in_flight.values()))
    promises.check(
        "every slot given back, at the client",
        ", ".join(f"{name}: {count}" for name, count in left.slots.items() if count) or "all counts are 0",
        any(left.slots.values()),
    )
    for who in ("model", "agent"):
        what = f"at most {CONCURRENCY} {who} calls in flight, at the server"
        promises.check(what, f"at most {most.get(who, 0)}", most.get(who, 0) > CONCURRENCY)


def memory_is_flat(promises: Promises, left: Left, reference: Left) -> None:
    """The run without faults is shown beside."""
    (first, second), (first_without, second_without) = left.done.growth(), reference.done.growth()
    each = (second_without - first_without) * 1024 / (len(reference.samples) / 2)
    seen = (
        f"{first:.0f} MiB, then {second:.0f} MiB;"
        f" without faults {first_without:.0f}, then {second_without:.0f}: {each:.0f} KiB a sample"
    )
    promises.check(
        "memory: 2nd half ≤ 1.1 × 1st",
        seen if first else "the system does not tell",
        second > GROWTH * first,
    )


def retries_are_told(promises: Promises, left: Left) -> None:
    faults = left.books.faults
    for who, words in (("model", "tried again in"), ("agent", "trying again in")):
        told = [text for text in left.notices if words in text]
        refused = sum("connection refused" in text for text in told)
        failed = sum(count for what, count in faults.items() if _is_retried(what, who))
        more = f" and {refused:,} refused connections" if refused else ""
        promises.check(
            f"every retry of the {who} is told",
            f"{len(told):,} notices; {failed:,} failed requests{more}",
            len(told) - refused != failed,
        )


def _is_retried(what: str, who: str) -> bool:
    by, _, fault = what.partition(" ")
    return by == who and fault not in REASKED


def fault_rows(left: Left) -> Iterator[str]:
    faults, mended = left.books.faults, left.books.mended
    calls = sum(left.books.calls.values())
    yield f"{'kind of fault':40} {'calls':>6} {'share':>7} {'answered later':>15} {'given up':>9}"
    for what in sorted(faults):
        lost = faults[what] - mended.get(what, 0)
        yield f"{what:40} {faults[what]:6,} {faults[what] / calls:7.2%} {mended.get(what, 0):15,} {lost:9,}"
    total, well = sum(faults.values()), sum(mended.values())
    yield f"{'all':40} {total:6,} {total / calls:7.2%} {well:15,} {total - well:9,}"
    yield f"{calls:,} calls; the agent's port was closed {left.books.outages} times for a moment"


def cost_rows(left: Left, reference: Left) -> Iterator[str]:
    yield f"{'':24} {'without':>9} {'with':>9} {'ratio':>6}"
    for name, of in _COSTS.items():
        ours, theirs = of(left), of(reference)
        yield f"{name:24} {theirs:9.1f} {ours:9.1f} {ours / theirs if theirs else 0:6.2f}"


_COSTS: dict[str, Callable[[Left], float]] = {
    "time, s": lambda left: left.done.wall_s,
    "CPU, s": lambda left: left.done.cpu_s,
    "peak memory, MiB": lambda left: left.peak_mib,
}


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Asked:
    """What the command line asked for. ``home`` is where the projects are written."""

    samples: int
    trouble: Trouble
    home: Path


def undisturbed(asked: Asked, server: FaultyServer, trouble: Trouble, name: str) -> Left:
    """A run that is let alone."""
    root = asked.home / name
    write_project(root, asked.samples, server)
    server.begin(trouble)
    return gather(watch(["run"], root, samples=asked.samples), root, server)


def soak(asked: Asked, server: FaultyServer, promises: Promises) -> None:
    print(f"{asked.samples:,} samples, {asked.trouble.rate:.0%} of the calls fail, seed {asked.trouble.seed}")
    reference = undisturbed(asked, server, Trouble(), "without")
    left = undisturbed(asked, server, asked.trouble, "with")
    print("", *fault_rows(left), "", *cost_rows(left, reference), "", sep="\n")
    same_results(promises, left, reference)
    nothing_lost(promises, left)
    none_twice(promises, left)
    each_answered_as_often(promises, left, reference)
    slots_returned(promises, left)
    memory_is_flat(promises, left, reference)
    retries_are_told(promises, left)


# ── killed and resumed ───────────────────────────────────────────────────────────────────────────


@dataclass
class Killed:
    """How many samples had finished at each kill. ``tickets``: how often the agent had answered their turns
    by then."""

    told: list[str] = field(default_factory=list)
    tickets: dict[str, int] = field(default_factory=dict)


def killed(asked: Asked, server: FaultyServer, moments: list[int]) -> tuple[Left, Killed]:
    """A run that is killed when so many samples have finished, and resumed each time."""
    root = asked.home / "killed"
    write_project(root, asked.samples, server)
    server.begin(asked.trouble)
    seen, command = Killed(), ["run"]
    for moment in moments:
        done = watch(command, root, samples=asked.samples, kill_if=partial(operator.le, moment))
        if done.code != -9:
            raise RuntimeError(f"the run ended with {done.code} before it was killed:\n{done.output[-3000:]}")
        over = {key_of(event["key"]) for event in events_of(root) if event["type"] == "sample_finished"}
        tickets = server.books().tickets
        seen.tickets |= {name: tickets[name] for name in tickets if name.rpartition("/")[0] in over}
        seen.told.append(f"{len(over):,}")
        command = ["run", "--resume", "latest"]
    return gather(watch(command, root, samples=asked.samples), root, server), seen


def soak_killed(asked: Asked, server: FaultyServer, promises: Promises) -> None:
    chance = Random(asked.trouble.seed)
    moments = sorted(chance.sample(range(1, asked.samples - CONCURRENCY), KILLS))
    reference = undisturbed(asked, server, Trouble(), "without")
    left, seen = killed(asked, server, moments)
    print(f"{asked.samples:,} samples; killed when {', '.join(seen.told)} of them had finished\n")
    same_results(promises, left, reference)
    nothing_lost(promises, left)
    finished_are_kept(promises, left, seen)
    slots_returned(promises, left)


def finished_are_kept(promises: Promises, left: Left, seen: Killed) -> None:
    """A sample that was over at a kill is begun no more; one that was not is begun anew."""
    again: list[str] = []
    over: set[str] = set()
    for event in left.events:
        if event["type"] == "sample_started" and key_of(event["key"]) in over:
            again.append(key_of(event["key"]))
        if event["type"] == "sample_finished":
            over.add(key_of(event["key"]))
    starts = left.keys("sample_started")
    anew = len(starts) - len(set(starts))
    promises.check("no finished sample is begun again", f"{anew} unfinished ones were begun anew", again)
    promises.check(
        "the agent is asked no more about what was finished",
        f"{len(seen.tickets):,} turns",
        [name for name, times in seen.tickets.items() if left.books.tickets[name] != times],
    )


def can_resume() -> bool:
    shown = subprocess.run([*AGENTEVAL, "run", "--help"], capture_output=True, text=True, check=False)
    return "--resume" in shown.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("samples", nargs="?", type=int, default=1000, help=f"a multiple of {EPOCHS}")
    parser.add_argument("--rate", type=float, default=0.2, help="the share of calls that fail")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kill", action="store_true", help="kill the run five times, and resume it")
    parser.add_argument("--keep", type=Path, help="a folder to leave the projects and journals in")
    given = parser.parse_args()
    if given.kill and not can_resume():
        print("agenteval run has no --resume: there is nothing to go on with a killed run", file=sys.stderr)
        return 2
    promises = Promises()
    with tempfile.TemporaryDirectory() as folder, FaultyServer() as server:
        samples = max(5 * EPOCHS, given.samples // EPOCHS * EPOCHS)
        asked = Asked(samples, Trouble(given.rate, given.seed), given.keep or Path(folder))
        (soak_killed if given.kill else soak)(asked, server, promises)
    print(f"\n{promises.broken} promises are broken" if promises.broken else "\nevery promise is kept")
    return int(promises.broken > 0)


if __name__ == "__main__":
    sys.exit(main())
