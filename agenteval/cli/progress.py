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

from agenteval.cli.progress_state import NOTHING_KNOWN, Outlook, ProgressState, Snapshot
from agenteval.cli.progress_text import (
    STILL_S,
    Beat,
    bar_text,
    doing,
    doing_for_whom,
    duration,
    ended_line,
    last_line,
)
from agenteval.cli.way_out import a_message, masked
from agenteval.core.event import Event, Notice, RunStarted, SampleFinished
from agenteval.core.plurals import plural
from agenteval.core.safe_text import brief, clean, for_encoding
from agenteval.core.score import Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

SHOWN_WARNINGS = 10
SHOWN_FAILURES = 100
HEARTBEAT_S = 1.0
"""How often it is looked whether a line is due."""
CLOSE_WAIT_S = 2.0
"""How long the end of a run waits for a stream to take the last lines."""


class Progress(Protocol):
    """An ``Emit`` with an end. ``close`` may be called twice; a closed one ignores what it is told."""

    def __call__(self, event: Event, /) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: Any) -> None: ...


def progress_for(
    stream: TextIO, total: int, *, past: Iterable[Event] = (), outlook: Outlook = NOTHING_KNOWN
) -> Progress:
    """Live where ``stream`` is a terminal that can move its cursor and whose output nobody keeps, else plain
    lines. ``past``: what was told before, of a run that goes on."""
    can_move = stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")
    is_kept = os.environ.get("CI", "").lower() not in ("", "0", "false")
    make = live_progress if can_move and not is_kept else plain_progress
    return make(stream, total, past=past, outlook=outlook)


def live_progress(
    stream: TextIO,
    total: int,
    *,
    clock: Callable[[], float] = time.monotonic,
    past: Iterable[Event] = (),
    outlook: Outlook = NOTHING_KNOWN,
) -> LiveProgress:
    """A display that repaints itself about four times a second and is gone when closed; above it, each sample
    that did not pass."""
    return LiveProgress(stream, ProgressState(total, clock=clock, past=past, outlook=outlook))


def plain_progress(
    stream: TextIO,
    total: int,
    *,
    interval_s: float = HEARTBEAT_S,
    clock: Callable[[], float] = time.monotonic,
    past: Iterable[Event] = (),
    outlook: Outlook = NOTHING_KNOWN,
    beat: Beat | None = None,
) -> PlainProgress:
    """Lines: each sample that did not pass, at once; and where the run stands, as often as ``beat`` says."""
    state = ProgressState(total, clock=clock, past=past, outlook=outlook)
    return PlainProgress(stream, state, interval_s=interval_s, beat=beat or Beat())


class _Guarded:
    """A text stream that never raises: one that failed, or was shut, takes no more."""

    def __init__(self, stream: TextIO, outgoing: Callable[[str], str]) -> None:
        self._stream = stream
        self._outgoing = outgoing
        self._shut = False
        self.encoding: str = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        if not self._shut:
            try:
                self._stream.write(for_encoding(self._outgoing(text), self.encoding))
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


class _Told(_Closing):
    """Takes events at once, and looks at them in a thread of its own."""

    def __init__(
        self,
        stream: TextIO,
        state: ProgressState,
        *,
        interval_s: float,
        outgoing: Callable[[str], str] = a_message,
    ) -> None:
        self._out = _Guarded(stream, outgoing)
        self._state = state
        self._interval_s = interval_s
        self._events: SimpleQueue[Event | None] = SimpleQueue()
        self._reader: Thread | None = None
        self._closed = False
        self._warnings = self._failures = 0

    def __call__(self, event: Event) -> None:
        if self._closed:
            return
        if self._reader is None:
            self._begin()
            self._reader = Thread(target=self._read, name="agenteval-progress", daemon=True)
            self._reader.start()
        self._events.put(event)

    def _read(self) -> None:
        while True:
            try:
                event = self._events.get(timeout=self._interval_s)
            except Empty:
                self._idle()
                continue
            if event is None:
                return
            ended = self._state.see(event)
            if ended:
                self._failures += 1
                if self._failures <= SHOWN_FAILURES:
                    self._say(ended_line(ended), ended.verdict)
                elif self._failures == SHOWN_FAILURES + 1:
                    self._say("further failures are in the report")
            if isinstance(event, RunStarted):
                self._started(event)
            elif isinstance(event, Notice) and event.level != "info":
                self._warn(event.level, event.text)
            elif isinstance(event, SampleFinished):
                self._idle()

    def _begin(self) -> None:
        """Before the first event."""

    def _started(self, event: RunStarted) -> None:
        """The run has begun."""

    def _idle(self) -> None:
        """A sample has finished, or nothing has been told for a while."""

    def _warn(self, level: str, text: str) -> None:
        """Something is to be told that is no result."""

    def _say(self, line: str, verdict: Verdict | None = None) -> None:
        raise NotImplementedError

    def _drain(self) -> None:
        """What was told by now is looked at. A reader of the stream that has stopped reading must not keep
        the run from ending."""
        if self._reader is None:
            return
        self._events.put(None)
        left = -1
        while self._reader.is_alive() and self._events.qsize() != left:
            left = self._events.qsize()
            self._reader.join(timeout=CLOSE_WAIT_S)


class PlainProgress(_Told):
    """Lines for a log. See ``plain_progress``."""

    def __init__(self, stream: TextIO, state: ProgressState, *, interval_s: float, beat: Beat) -> None:
        super().__init__(stream, state, interval_s=interval_s)
        self._beat = beat

    def _started(self, event: RunStarted) -> None:
        self._say(f"running {plural(self._state.snapshot().total, 'conversation')}")

    def _idle(self) -> None:
        for line in self._beat.lines(self._state):
            self._say(line)

    def _warn(self, level: str, text: str) -> None:
        self._warnings += 1
        if self._warnings <= SHOWN_WARNINGS:
            self._say(f"{level}: {brief(text, 300)}")
        elif self._warnings == SHOWN_WARNINGS + 1:
            self._say("further warnings are in the report")

    def _say(self, line: str, verdict: Verdict | None = None) -> None:
        self._out.write(line + "\n")
        self._out.flush()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._drain()
        if self._reader is not None and not self._reader.is_alive():
            self._say(last_line(self._state.snapshot()))
        self._out.shut()


class LiveProgress(_Told):
    """A display on a terminal. See ``live_progress``."""

    def __init__(self, stream: TextIO, state: ProgressState) -> None:
        super().__init__(stream, state, interval_s=HEARTBEAT_S, outgoing=masked)
        self._stream = stream
        self._live: Live | None = None

    def _begin(self) -> None:
        import sys
        from typing import cast

        from rich.console import Console
        from rich.live import Live

        console = Console(file=cast(TextIO, self._out), force_terminal=True, highlight=False, markup=False)
        self._live = Live(
            console=console,
            get_renderable=lambda: _painting(self._state.snapshot()),
            transient=True,
            # What an agent prints must not tear the display; a redirected stdout is left alone.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
            redirect_stderr=sys.stderr is self._stream,
        )
        self._live.start()

    def _say(self, line: str, verdict: Verdict | None = None) -> None:
        """Above the display, where it scrolls away with what was told before."""
        from rich.text import Text

        assert self._live
        text = Text(clean(line), no_wrap=True, overflow="ellipsis")
        text.stylize(_STYLES.get(verdict, ""), 0, 1)
        self._live.console.print(text, no_wrap=True, overflow="ellipsis")

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._drain()
        if self._live is not None:
            self._live.stop()
            self._out.write(last_line(self._state.snapshot()) + "\n")
            self._out.flush()
        self._out.shut()


_STYLES = {Verdict.FAILED: "bold red", Verdict.INCONCLUSIVE: "bold magenta", None: "dim"}
_BAR = 30
"""Columns of the bar; half of it where the terminal is narrow."""


def _painting(at: Snapshot) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    head = Table.grid(padding=(0, 2))
    color = "red" if at.ends[Verdict.FAILED] else "green"
    bar = ProgressBar(
        total=max(1, at.total), completed=at.finished, width=_BAR, complete_style=color, finished_style=color
    )
    head.add_row(bar, Text(bar_text(at), no_wrap=True, overflow="ellipsis"))
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, overflow="ellipsis", max_width=30)
    rows.add_column(no_wrap=True, overflow="ellipsis")
    words = doing_for_whom if at.still_s >= STILL_S else doing
    for sample in at.longest:
        rows.add_row(Text(f"  {sample.label}"), Text(f"{words(sample)}  {duration(sample.for_s)}"))
    lines: list[RenderableType] = [head, rows] if at.longest else [head]
    if at.running > len(at.longest):
        lines.append(Text(f"  and {at.running - len(at.longest)} more running", style="dim"))
    if at.still_s >= STILL_S:
        lines.append(Text(f"  nothing has happened for {duration(at.still_s)}", style="bold"))
    if at.warning:
        lines.append(Text(f"  {brief(at.warning, 200)}", style="bold"))
    return Group(*lines)
