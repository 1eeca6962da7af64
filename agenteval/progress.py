"""What a person sees on stderr while a run goes on: live on a terminal, a few lines elsewhere.

The sinks only note what they are told; another thread writes. A stream that is slow or broken
therefore neither delays the run nor breaks it, and an event costs a few microseconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO

from agenteval.event import Event, Notice, RunStarted, SampleFinished, SampleStarted, Scored, TurnFinished
from agenteval.safe_text import one_line
from agenteval.scenario import SampleKey
from agenteval.trajectory import Stop

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

SHOWN_RUNNING = 5
"""Samples shown by name while they run: those that have been running longest."""
FEW_SAMPLES = 50
"""Up to so many samples, each gets a line of its own where there is no terminal."""
SHOWN_WARNINGS = 10
HEARTBEAT_S = 10.0
LABEL_WIDTH = 60
CLOSE_WAIT_S = 2.0
"""How long the end of a run waits for a stream to take the last lines."""

_BROKEN = ("agent", "infrastructure", "simulator", "author")


class Progress(Protocol):
    """An ``Emit`` with an end. ``close`` may be called twice; a closed one ignores what it is told."""

    def __call__(self, event: Event, /) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: Any) -> None: ...


def progress_for(stream: TextIO, total: int) -> Progress:
    """Live where ``stream`` is a terminal that can move its cursor, else plain lines."""
    if stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown"):
        return live_progress(stream, total)
    return plain_progress(stream, total)


def live_progress(stream: TextIO, total: int, *, clock: Callable[[], float] = time.monotonic) -> LiveProgress:
    """A display that repaints itself about four times a second and is gone when closed."""
    return LiveProgress(stream, Tally(total, clock=clock))


def plain_progress(
    stream: TextIO,
    total: int,
    *,
    interval_s: float = HEARTBEAT_S,
    clock: Callable[[], float] = time.monotonic,
) -> PlainProgress:
    """Lines: one per finished sample if there are few, and a heartbeat after ``interval_s`` of silence."""
    return PlainProgress(stream, Tally(total, clock=clock), interval_s=interval_s)


@dataclass(frozen=True)
class Running:
    """A sample that has started: its name, the turn that it is in (from 1), and for how long.
    ``judging``: its conversation is over, and judges are still at work."""

    label: str
    turn: int
    for_s: float
    judging: bool = False

    @property
    def doing(self) -> str:
        return "judging" if self.judging else f"turn {self.turn}"


@dataclass(frozen=True)
class Snapshot:
    """Where a run stands. ``longest`` are the samples that have been running longest, oldest first."""

    total: int
    finished: int
    broken: int
    turns: int
    running: int
    elapsed_s: float
    longest: tuple[Running, ...]
    warning: str


class Tally:
    """Counts what it is told. Safe to read from another thread while it is told more."""

    def __init__(self, total: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = Lock()
        self._clock = clock
        self._began = clock()
        self._total = total
        self._finished = self._broken = self._turns = 0
        # In the order of starting, so that the first are those that run longest.
        self._running: dict[SampleKey, tuple[float, int]] = {}
        self._judging: set[SampleKey] = set()
        self._names_agent = self._names_epoch = True
        self._warning = ""

    def see(self, event: Event) -> None:
        with self._lock:
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
        self._total = self._total or len(event.samples)
        self._names_agent = len({key.agent for key in event.samples}) > 1
        self._names_epoch = any(key.epoch for key in event.samples)

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

    def snapshot(self) -> Snapshot:
        with self._lock:
            now = self._clock()
            oldest = list(islice(self._running.items(), SHOWN_RUNNING))
            return Snapshot(
                # A lost epoch may be replaced by a further one: more is run than was planned.
                total=max(self._total, self._finished + len(self._running)),
                finished=self._finished,
                broken=self._broken,
                turns=self._turns,
                running=len(self._running),
                elapsed_s=now - self._began,
                longest=tuple(
                    Running(self.label(k), n + 1, now - since, judging=k in self._judging)
                    for k, (since, n) in oldest
                ),
                warning=self._warning,
            )


def duration(seconds: float) -> str:
    """``4 s``, ``3:05``, ``1:02:00``."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _samples(count: int) -> str:
    return f"{count:,} sample{'s' if count != 1 else ''}"


def counts(at: Snapshot) -> str:
    """``7/13 samples, 1 broken, 21 turns, 12 s``"""
    broken = [f"{at.broken} broken"] if at.broken else []
    turns = f"{at.turns:,} turn{'s' if at.turns != 1 else ''}"
    return ", ".join([f"{at.finished:,}/{_samples(at.total)}", *broken, turns, duration(at.elapsed_s)])


def heartbeat(at: Snapshot) -> str:
    """The counts, and what has been pending longest."""
    if not at.longest:
        return counts(at)
    oldest = at.longest[0]
    waiting = f"longest: {oldest.label}, {oldest.doing}, {duration(oldest.for_s)}"
    return f"{counts(at)}; {at.running} running, {waiting}"


def last_line(at: Snapshot) -> str:
    """What stays on the screen when the run is over."""
    began = "ran" if at.finished >= at.total else "stopped:"
    return f"{began} {counts(at)}"


class _Guarded:
    """A text stream that never raises: one that failed, or was shut, takes no more."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shut = False
        self.encoding: str = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        if not self._shut:
            try:
                self._stream.write(text.encode(self.encoding, "replace").decode(self.encoding))
            except (OSError, ValueError):  # a closed pipe or file; nobody is there to be told
                self._shut = True
        return len(text)

    def flush(self) -> None:
        if not self._shut:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self._shut = True

    def shut(self) -> None:
        self._shut = True

    def __getattr__(self, name: str) -> Any:  # isatty, fileno: rich asks for them
        return getattr(self._stream, name)


class _Closing:
    """``with``: closed on every way out."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PlainProgress(_Closing):
    """Lines for a log. See ``plain_progress``."""

    def __init__(self, stream: TextIO, tally: Tally, *, interval_s: float) -> None:
        self._out = _Guarded(stream)
        self._tally = tally
        self._interval_s = interval_s
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._writer: Thread | None = None
        self._closed = False
        self._warnings = 0

    def __call__(self, event: Event) -> None:
        if self._closed:
            return
        self._tally.see(event)
        if self._writer is None:
            self._writer = Thread(target=self._write, name="agenteval-progress", daemon=True)
            self._writer.start()
        match event:
            case RunStarted():
                self._lines.put(f"running {_samples(self._tally.snapshot().total)}")
            case SampleFinished(key=key, stop=stop):
                self._finished(key, stop)
            case Notice(level="warning" | "error", text=text):
                self._warn(event.level, text)
            case _:
                pass

    def _finished(self, key: SampleKey, stop: Stop) -> None:
        if not self._tally.are_few:
            return
        at = self._tally.snapshot()
        how = stop.reason.replace("_", " ")
        if stop.fault:
            how = f"broken: {how}: {one_line(stop.detail, 120)}" if stop.detail else f"broken: {how}"
        self._lines.put(f"[{at.finished}/{at.total}] {self._tally.label(key)}: {how}")

    def _warn(self, level: str, text: str) -> None:
        self._warnings += 1
        if self._warnings <= SHOWN_WARNINGS:
            self._lines.put(f"{level}: {one_line(text, 300)}")
        elif self._warnings == SHOWN_WARNINGS + 1:
            self._lines.put("further warnings are in the report")

    def _write(self) -> None:
        while True:
            try:
                line = self._lines.get(timeout=self._interval_s)
            except Empty:
                line = heartbeat(self._tally.snapshot())
            if line is None:
                return
            self._out.write(line + "\n")
            self._out.flush()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._writer is not None:
            self._lines.put(last_line(self._tally.snapshot()))
            self._lines.put(None)
            # A reader that has stopped reading must not keep the run from ending.
            self._writer.join(timeout=CLOSE_WAIT_S)
        self._out.shut()


class LiveProgress(_Closing):
    """A display on a terminal. See ``live_progress``."""

    def __init__(self, stream: TextIO, tally: Tally) -> None:
        self._stream = stream
        self._out = _Guarded(stream)
        self._tally = tally
        self._live: Live | None = None
        self._closed = False

    def __call__(self, event: Event) -> None:
        if self._closed:
            return
        self._tally.see(event)
        if self._live is None:
            self._live = self._start()

    def _start(self) -> Live:
        import sys
        from typing import cast

        from rich.console import Console
        from rich.live import Live

        console = Console(file=cast(TextIO, self._out), force_terminal=True, highlight=False, markup=False)
        live = Live(
            console=console,
            get_renderable=lambda: _painting(self._tally.snapshot()),
            transient=True,
            # What an agent prints must not tear the display; a redirected stdout is left alone.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
            redirect_stderr=sys.stderr is self._stream,
        )
        live.start()
        return live

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._live is not None:
            self._live.stop()
            self._out.write(last_line(self._tally.snapshot()) + "\n")
            self._out.flush()
        self._out.shut()


def _painting(at: Snapshot) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    head = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(1, at.total), completed=at.finished, width=20, complete_style="green")
    head.add_row(bar, Text(counts(at)))
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, overflow="ellipsis")
    for sample in at.longest:
        rows.add_row(Text(f"  {sample.label}"), Text(sample.doing), Text(duration(sample.for_s), style="dim"))
    lines: list[RenderableType] = [head, rows] if at.longest else [head]
    if at.running > len(at.longest):
        lines.append(Text(f"  and {at.running - len(at.longest)} more running", style="dim"))
    if at.warning:
        lines.append(
            Text(f"  {one_line(at.warning, 200)}", style="yellow", no_wrap=True, overflow="ellipsis")
        )
    return Group(*lines)
