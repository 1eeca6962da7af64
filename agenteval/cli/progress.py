"""Shows the progress of a run on stderr: a live display (progress bar) on a terminal, and log lines
elsewhere.

The sink only queues events. A separate thread counts and displays them, so that a slow or broken stream can
neither delay nor break the run."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from queue import SimpleQueue
from threading import Event as Flag
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeAlias, assert_never, cast

from agenteval.cli.run_status import STALL_S, RunStatus
from agenteval.cli.safe_output import clean_message, print_err, strip_secrets
from agenteval.core.event import (
    CallsSeen,
    Event,
    IssuesFound,
    ModelAsked,
    Notice,
    Reconsidered,
    ReferenceStatesMade,
    RunFinished,
    RunResumed,
    RunStarted,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.finished_text import for_encoding
from agenteval.core.plurals import plural
from agenteval.core.protocols import Emit
from agenteval.core.safe_text import clean, one_line, one_line_message
from agenteval.core.score import Verdict
from agenteval.running.observer import PendingLookup, nothing_pending

if TYPE_CHECKING:
    from rich.text import Text

SHOWN_WARNINGS = 10
SHOWN_FAILURES = 100
SHOWN_RUNNING = 4
"""The number of running samples that the live display names."""
LINE_S = 30.0
LINE_SHARE = 0.1
"""The proportion of samples after which the log prints a status line. A status line is also printed every
``LINE_S`` seconds."""
TICK_S = 0.25
"""The interval in seconds at which the queue is read and the live display is repainted."""
CLOSE_WAIT_S = 2.0
"""The time, in seconds, that the end of a run waits for a stream to accept a line."""


class TerminalObserver:
    """Shows a run on stderr: its progress, and lines for a person."""

    def show_line(self, text: str) -> None:
        print_err(text)

    @contextmanager
    def watch(
        self, total: int | None, *, past: Sequence[Event] = (), pending: PendingLookup = nothing_pending
    ) -> Iterator[Emit]:
        with closing(progress_for(sys.stderr, total or 0, past=past, pending=pending)) as progress:
            yield progress


def progress_for(
    stream: TextIO, total: int, *, past: Iterable[Event] = (), pending: PendingLookup = lambda _: ""
) -> Progress:
    """Return a live display (progress bar) if ``stream`` is a terminal that supports cursor movement and is
    not recorded by a CI service. Otherwise, return a plain log. ``past`` contains the earlier events of a
    resumed run."""
    can_move = stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")
    is_kept = os.environ.get("CI", "").lower() not in ("", "0", "false")
    screen = Display if can_move and not is_kept else Log
    return Progress(stream, screen, total, past=past, pending=pending)


class Screen(Protocol):
    """The output on which the progress of a run is shown. All methods except the constructor are called in
    the sink's thread."""

    def write_line(self, line: str, verdict: Verdict | None = None) -> None:
        """Write a permanent line."""

    def show_event(self, event: Event) -> None:
        """Show the changes that result from ``event``, which has already been counted."""

    def tick(self) -> None:
        """Show the changes that result from the passage of time."""

    def end(self) -> None:
        """Remove everything except the permanent lines."""


class Progress:
    """The event sink of the progress display. After ``close``, it ignores events."""

    def __init__(
        self,
        stream: TextIO,
        screen: ScreenMaker,
        total: int,
        *,
        past: Iterable[Event] = (),
        pending: PendingLookup = lambda _: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out = GuardedStream(stream)
        self._make_screen = screen
        self._status = RunStatus(total, clock, pending)
        for event in past:
            self._status.count_event(event)
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._writer: Thread | None = None
        self._closing = Flag()
        self._error: Exception | None = None
        self._failures = 0

    def __call__(self, event: Event) -> None:
        """Queue an event. If the display thread was stopped by an error, raise that error."""
        if self._error:
            raise self._error
        if self._closing.is_set():
            return
        if self._writer is None:
            screen = self._make_screen(self._out, self._status)
            self._writer = Thread(target=self._write, args=(screen,), name="agenteval-progress", daemon=True)
            self._writer.start()
        self._events.put(event)

    def _write(self, screen: Screen) -> None:
        try:
            while not self._closing.wait(TICK_S):
                self._show_events(screen)
                screen.tick()
            self._show_events(screen)
        except Exception as error:
            self._error = error
        finally:
            screen.end()

    def _show_events(self, screen: Screen) -> None:
        while not self._events.empty():
            event = self._events.get()
            ended = self._status.count_event(event)
            if ended:
                self._failures += 1
                if self._failures <= SHOWN_FAILURES:
                    screen.write_line(ended.line, ended.verdict)
                elif self._failures == SHOWN_FAILURES + 1:
                    screen.write_line("further failures are in the report")
            screen.show_event(event)

    def close(self) -> None:
        """Display the queued events and end the display. A reader that has stopped reading must not prevent
        the run from ending, so the remaining events are dropped if writing a line takes too long. This method
        may be called twice."""
        self._closing.set()
        remaining = -1
        while self._writer and self._writer.is_alive() and self._events.qsize() != remaining:
            remaining = self._events.qsize()
            self._writer.join(timeout=CLOSE_WAIT_S)
        self._out.shut()


class GuardedStream:
    """A text stream that never raises an exception. After a failure, or after ``shut``, it ignores writes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.encoding: str = getattr(stream, "encoding", None) or "utf-8"
        self._shut = False

    def write(self, text: str) -> int:
        self._try(lambda: self.stream.write(for_encoding(strip_secrets(text), self.encoding)))
        return len(text)

    def flush(self) -> None:
        self._try(self.stream.flush)

    def _try(self, act: Callable[[], object]) -> None:
        if not self._shut:
            try:
                act()
            except (OSError, ValueError):  # a closed pipe or file: nobody could read why
                self._shut = True

    def shut(self) -> None:
        self._shut = True

    def __getattr__(self, name: str) -> Any:  # rich uses isatty and fileno
        return getattr(self.stream, name)


ScreenMaker: TypeAlias = Callable[[GuardedStream, RunStatus], Screen]


class Log:
    """A plain log. A sample that did not pass is logged immediately, and the status of the run is logged
    periodically."""

    def __init__(self, out: GuardedStream, status: RunStatus) -> None:
        self._out = out
        self._status = status
        self._warnings = 0
        self._last_line_s = 0.0
        self._last_finished = 0
        self._stalls = 0

    def write_line(self, line: str, verdict: Verdict | None = None) -> None:
        self._out.write(clean_message(line) + "\n")
        self._out.flush()

    def show_event(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.write_line(f"running {plural(self._status.total, 'conversation')}")
            case Notice(level="warning" | "error"):
                self._warn(event)
            case SampleFinished():
                self.tick()
            case (
                RunResumed() | SampleStarted() | TurnFinished() | Scored() | ModelAsked() | Reconsidered()
                | ReferenceStatesMade() | Notice() | CallsSeen() | IssuesFound() | RunFinished()
            ):  # fmt: skip
                pass
            case _:
                assert_never(event)

    def _warn(self, notice: Notice) -> None:
        self._warnings += 1
        if self._warnings <= SHOWN_WARNINGS:
            self.write_line(f"{notice.level}: {one_line_message(notice.text, 300)}")
        elif self._warnings == SHOWN_WARNINGS + 1:
            self.write_line("further warnings are in the report")

    def tick(self) -> None:
        """Report a stall every ``STALL_S`` seconds. If the run is not stalled, report its status when the
        next report is due."""
        status = self._status
        before, self._stalls = self._stalls, int(status.idle_s // STALL_S)
        step = max(1, round(status.total * LINE_SHARE))
        is_long = status.elapsed_s - self._last_line_s >= LINE_S
        if self._stalls > before:
            self._last_line_s = status.elapsed_s
            for line in status.stalled_lines():
                self.write_line(line)
        elif status.finished < status.total and (
            is_long or status.finished // step > self._last_finished // step
        ):
            self._last_line_s, self._last_finished = status.elapsed_s, status.finished
            self.write_line(status.with_longest())

    def end(self) -> None:
        self.write_line(self._status.last_line())


class Display:
    """A live display (progress bar) on a terminal. It repaints itself and disappears at the end; samples that
    did not pass are printed above it."""

    def __init__(self, out: GuardedStream, status: RunStatus) -> None:
        from rich.console import Console
        from rich.live import Live

        self._out = out
        self._status = status
        self._console = Console(file=cast(TextIO, out), force_terminal=True, highlight=False, markup=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            auto_refresh=False,
            transient=True,
            # What an agent prints must not tear the display; a redirected stdout is left alone.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
            redirect_stderr=sys.stderr is out.stream,
        )
        self._live.start()

    def write_line(self, line: str, verdict: Verdict | None = None) -> None:
        from rich.text import Text

        text = Text(clean(line), no_wrap=True, overflow="ellipsis")
        text.stylize(_STYLES.get(verdict, ""), 0, 1)
        self._live.refresh()  # the display below the line must count the sample already
        self._console.print(text, no_wrap=True, overflow="ellipsis")

    def show_event(self, event: Event) -> None:
        """Do nothing: the next repaint shows the event."""

    def tick(self) -> None:
        self._live.refresh()

    def end(self) -> None:
        self._live.stop()
        self._out.write(self._status.last_line() + "\n")
        self._out.flush()

    def _render(self) -> Text:
        from rich.text import Text

        status = self._status
        width = min(_BAR, self._console.width // 3)
        done = width * status.finished // max(1, status.total)
        picture = Text(no_wrap=True, overflow="ellipsis")
        picture.append("━" * done, "red" if status.verdict_counts[Verdict.FAILED] else "green")
        picture.append("━" * (width - done), "dim")
        picture.append(f"  {status.brief_counts()}")
        for label, doing in status.longest(SHOWN_RUNNING):
            picture.append(f"\n  {one_line(label, width):<{width}}  {doing}")
        picture.append("".join(f"\n{line}" for line in status.more_running(SHOWN_RUNNING)), "dim")
        for remark in filter(None, (status.stall(), one_line_message(status.warning, 200))):
            picture.append(f"\n  {remark}", "bold")
        return picture


_STYLES = {Verdict.FAILED: "bold red", Verdict.INCONCLUSIVE: "bold magenta", None: "dim"}
_BAR = 30
"""The width in columns of the progress bar and the sample names. The width is smaller on a narrow
terminal."""
