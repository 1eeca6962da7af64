"""Where a run stands: counts of what was told, who runs, and whom they wait for; and all of it in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import TypeAlias

from agenteval.core.event import (
    Event,
    Notice,
    RunStarted,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.scenario import SampleKey

SHOWN_RUNNING = 5
"""Samples shown by name while they run: those that have been running longest."""
FEW_SAMPLES = 50
"""Up to so many samples, each gets a line of its own where there is no terminal."""
STILL_S = 30.0
"""Without any event for so long, what is pending is reported; and again after as long."""
SHOWN_PENDING = 10
LABEL_WIDTH = 60

_BROKEN = ("agent", "infrastructure", "simulator", "author")


Pending: TypeAlias = Callable[[SampleKey], str]
"""What a running sample waits for, in words; empty if that is unknown. Asked from another thread."""


def not_known(key: SampleKey) -> str:
    return ""


@dataclass(frozen=True)
class Running:
    """A sample that has started: its name, the turn that it is in (from 1), and for how long.
    ``judging``: its conversation is over, and judges are still at work. ``waits_for``: whom, if that is
    known."""

    label: str
    turn: int
    for_s: float
    judging: bool = False
    waits_for: str = ""

    @property
    def doing(self) -> str:
        return "judging" if self.judging else f"turn {self.turn}"

    @property
    def whole(self) -> str:
        waits = f"waits for {one_line(self.waits_for, 120)}, " if self.waits_for else ""
        return f"{self.label}: {self.doing}, {waits}{duration(self.for_s)}"


@dataclass(frozen=True)
class Snapshot:
    """Where a run stands. ``longest`` are the samples that have been running longest, oldest first;
    ``still_s``: for how long nothing has been told."""

    total: int
    finished: int
    broken: int
    turns: int
    running: int
    elapsed_s: float
    longest: tuple[Running, ...]
    warning: str
    still_s: float = 0.0


class ProgressState:
    """Counts what it is told. Safe to read from another thread while it is told more."""

    def __init__(
        self,
        total: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        past: Iterable[Event] = (),
        pending: Pending = not_known,
    ) -> None:
        self._lock = Lock()
        self._clock = clock
        self._pending = pending
        self._began = self._moved = clock()
        self._total = total
        self._finished = self._broken = self._turns = 0
        # In the order of starting, so that the first are those that run longest.
        self._running: dict[SampleKey, tuple[float, int]] = {}
        self._judging: set[SampleKey] = set()
        self._names_agent = self._names_epoch = True
        self._warning = ""
        for event in past:
            self.see(event)
        self._turns = 0  # those that it sees itself

    def see(self, event: Event) -> None:
        with self._lock:
            self._moved = self._clock()
            match event:
                case RunStarted():
                    self._begin(event)
                case SampleStarted(key=key):
                    self._running.pop(key, None)
                    self._judging.discard(key)
                    self._running[key] = (self._clock(), 0)
                case TurnFinished(key=key):
                    self._turns += 1
                    if key in self._running:
                        since, turns = self._running[key]
                        self._running[key] = (since, turns + 1)
                case Scored(key=key, turn=None) if key in self._running:
                    # The first word on a whole conversation: it is over, but its judges may not be.
                    self._judging.add(key)
                case SampleFinished(key=key, stop=stop):
                    self._running.pop(key, None)
                    self._judging.discard(key)
                    self._finished += 1
                    self._broken += stop.fault in _BROKEN
                case Notice(level="warning" | "error", text=text):
                    self._warning = text
                case _:
                    pass

    def _begin(self, event: RunStarted) -> None:
        samples = event.plan.samples
        self._total = self._total or len(samples)
        self._names_agent = len({key.agent for key in samples}) > 1
        self._names_epoch = any(key.epoch for key in samples)

    @property
    def are_few(self) -> bool:
        """Whether each sample may have a line of its own."""
        return self._total <= FEW_SAMPLES

    def label(self, key: SampleKey) -> str:
        """The sample's name, as short as the run allows: agent and epoch only where there are several."""
        parts = [f"{key.scenario} [{key.variant}]" if key.variant else key.scenario]
        parts += [key.agent] if self._names_agent else []
        parts += [f"epoch {key.epoch + 1}"] if self._names_epoch else []
        return one_line(", ".join(parts), LABEL_WIDTH)

    def snapshot(self, most: int = SHOWN_RUNNING) -> Snapshot:
        with self._lock:
            now = self._clock()
            oldest = list(islice(self._running.items(), most))
            return Snapshot(
                # A lost epoch may be replaced by a further one: more is run than was planned.
                total=max(self._total, self._finished + len(self._running)),
                finished=self._finished,
                broken=self._broken,
                turns=self._turns,
                running=len(self._running),
                elapsed_s=now - self._began,
                longest=tuple(
                    Running(self.label(k), n + 1, now - since, k in self._judging, self._pending(k))
                    for k, (since, n) in oldest
                ),
                warning=self._warning,
                still_s=now - self._moved,
            )


def duration(seconds: float) -> str:
    """``4 s``, ``3:05``, ``1:02:00``."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def counts(at: Snapshot) -> str:
    """``7/13 samples, 1 broken, 21 turns, 12 s``"""
    broken = [f"{at.broken} broken"] if at.broken else []
    return ", ".join([_finished(at), *broken, plural(at.turns, "turn"), duration(at.elapsed_s)])


def _finished(at: Snapshot) -> str:
    return f"{at.finished:,}/{plural(at.total, 'sample')}"


def heartbeat(at: Snapshot) -> str:
    """The counts, and what has been pending longest."""
    if not at.longest:
        return counts(at)
    oldest = at.longest[0]
    waiting = f"longest: {oldest.label}, {oldest.doing}, {duration(oldest.for_s)}"
    return f"{counts(at)}; {at.running} running, {waiting}"


def pending_lines(at: Snapshot) -> list[str]:
    """That nothing moves, and what is waited for."""
    head = f"nothing has happened for {duration(at.still_s)}; {_finished(at)} are done"
    more = at.running - len(at.longest)
    rest = [f"  and {more:,} more running"] if more > 0 else []
    return [head, *(f"  {sample.whole}" for sample in at.longest), *rest]


class Stillness:
    """Says once in ``every_s`` of silence that it is time to tell what is pending."""

    def __init__(self, every_s: float = STILL_S) -> None:
        self._every_s = every_s
        self._told = 0

    def is_due(self, still_s: float) -> bool:
        times = int(still_s // self._every_s)
        is_due, self._told = times > self._told, times
        return is_due


def last_line(at: Snapshot) -> str:
    """What stays on the screen when the run is over."""
    began = "ran" if at.finished >= at.total else "stopped:"
    return f"{began} {counts(at)}"
