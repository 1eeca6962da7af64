"""What a person sees on stderr while a run goes on: live on a terminal, a few lines elsewhere.

The sinks only note what they are reported; another thread writes. A stream that is slow or broken
therefore neither delays the run nor breaks it, and an event costs a few microseconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO

from agenteval.cli.progress_state import (
    SHOWN_PENDING,
    STILL_S,
    Pending,
    ProgressState,
    Snapshot,
    Stillness,
    counts,
    duration,
    heartbeat,
    last_line,
    not_known,
    pending_lines,
)
from agenteval.core.event import Event, Notice, RunStarted, SampleFinished
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.scenario import SampleKey
from agenteval.core.trajectory import Stop
from agenteval.files.redact import hide

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

SHOWN_WARNINGS = 10
HEARTBEAT_S = 10.0
CLOSE_WAIT_S = 2.0
"""How long the end of a run waits for a stream to take the last lines."""


class Progress(Protocol):
    """An ``Emit`` with an end. ``close`` may be called twice; a closed one ignores what it is told."""

    def __call__(self, event: Event, /) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: Any) -> None: ...


def progress_for(
    stream: TextIO, total: int, *, past: Iterable[Event] = (), pending: Pending = not_known
) -> Progress:
    """Live where ``stream`` is a terminal that can move its cursor, else plain lines. ``past``: what was
    told before, of a run that goes on."""
    live = stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")
    return (live_progress if live else plain_progress)(stream, total, past=past, pending=pending)


def live_progress(
    stream: TextIO,
    total: int,
    *,
    clock: Callable[[], float] = time.monotonic,
    past: Iterable[Event] = (),
    pending: Pending = not_known,
) -> LiveProgress:
    """A display that repaints itself about four times a second and is gone when closed."""
    return LiveProgress(stream, ProgressState(total, clock=clock, past=past, pending=pending))


def plain_progress(
    stream: TextIO,
    total: int,
    *,
    interval_s: float = HEARTBEAT_S,
    clock: Callable[[], float] = time.monotonic,
    past: Iterable[Event] = (),
    pending: Pending = not_known,
) -> PlainProgress:
    """Lines: one per finished sample if there are few, and a heartbeat after ``interval_s`` of silence."""
    state = ProgressState(total, clock=clock, past=past, pending=pending)
    return PlainProgress(stream, state, interval_s=interval_s)


class _Guarded:
    """A text stream that never raises: one that failed, or was shut, takes no more."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shut = False
        self.encoding: str = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        if not self._shut:
            try:
                self._stream.write(hide(text).encode(self.encoding, "replace").decode(self.encoding))
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

    def __init__(self, stream: TextIO, state: ProgressState, *, interval_s: float) -> None:
        self._out = _Guarded(stream)
        self._state = state
        self._interval_s = interval_s
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._writer: Thread | None = None
        self._closed = False
        self._warnings = 0
        self._stillness = Stillness()

    def __call__(self, event: Event) -> None:
        if self._closed:
            return
        self._state.see(event)
        if self._writer is None:
            self._writer = Thread(target=self._write, name="agenteval-progress", daemon=True)
            self._writer.start()
        match event:
            case RunStarted():
                self._lines.put(f"running {plural(self._state.snapshot().total, 'sample')}")
            case SampleFinished(key=key, stop=stop):
                self._finished(key, stop)
            case Notice(level="warning" | "error", text=text):
                self._warn(event.level, text)
            case _:
                pass

    def _finished(self, key: SampleKey, stop: Stop) -> None:
        if not self._state.are_few:
            return
        at = self._state.snapshot()
        how = stop.reason.replace("_", " ")
        if stop.fault:
            how = f"broken: {how}: {one_line(stop.detail, 120)}" if stop.detail else f"broken: {how}"
        self._lines.put(f"[{at.finished}/{at.total}] {self._state.label(key)}: {how}")

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
                line = self._meanwhile()
            if line is None:
                return
            self._out.write(line + "\n")
            self._out.flush()

    def _meanwhile(self) -> str:
        at = self._state.snapshot(SHOWN_PENDING)
        return "\n".join(pending_lines(at)) if self._stillness.is_due(at.still_s) else heartbeat(at)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._writer is not None:
            self._lines.put(last_line(self._state.snapshot()))
            self._lines.put(None)
            # A reader that has stopped reading must not keep the run from ending.
            self._writer.join(timeout=CLOSE_WAIT_S)
        self._out.shut()


class LiveProgress(_Closing):
    """A display on a terminal. See ``live_progress``."""

    def __init__(self, stream: TextIO, state: ProgressState) -> None:
        self._stream = stream
        self._out = _Guarded(stream)
        self._state = state
        self._live: Live | None = None
        self._closed = False

    def __call__(self, event: Event) -> None:
        if self._closed:
            return
        self._state.see(event)
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
            get_renderable=lambda: _painting(self._state.snapshot()),
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
            self._out.write(last_line(self._state.snapshot()) + "\n")
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
    is_still = at.still_s >= STILL_S
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, overflow="ellipsis")
    for sample in at.longest:
        waits = f"waits for {one_line(sample.waits_for, 60)}" if sample.waits_for and is_still else ""
        doing = f"{sample.doing}, {waits}" if waits else sample.doing
        rows.add_row(Text(f"  {sample.label}"), Text(doing), Text(duration(sample.for_s), style="dim"))
    lines: list[RenderableType] = [head, rows] if at.longest else [head]
    if at.running > len(at.longest):
        lines.append(Text(f"  and {at.running - len(at.longest)} more running", style="dim"))
    if is_still:
        lines.append(Text(f"  nothing has happened for {duration(at.still_s)}", style="yellow"))
    if at.warning:
        lines.append(
            Text(f"  {one_line(at.warning, 200)}", style="yellow", no_wrap=True, overflow="ellipsis")
        )
    return Group(*lines)
