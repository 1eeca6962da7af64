"""Handles Ctrl-C and the deadline of a run (run timeout). After the first Ctrl-C, running work is finished
and reported; the second Ctrl-C stops everything immediately."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from agenteval.conversation.exits import count_interrupt, exit_now, is_interrupted
from agenteval.conversation.runtime import RunControl

GRACE_S = 5.0
"""The time, in seconds, that running conversations may continue after the first signal."""


LINE = "interrupted: finishing what is running (interrupt again to stop immediately)"


@contextmanager
def handle_interrupts(control: RunControl) -> Iterator[None]:
    """Stop the run early on SIGINT (Ctrl-C), SIGTERM and SIGHUP (graceful shutdown). The first signal lets
    running work finish, but limits conversations to ``GRACE_S`` seconds. The second signal cancels running
    work. The third signal ends the process at once; the journal contains all completed work. If all
    conversations have been played, the run waits for their judges and counts as complete. Outside the main
    thread, signal handlers are not changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def cancel() -> None:
        control.cancel("interrupted")

    def cancel_what_is_played() -> None:
        if control.is_cut:
            cancel()
        else:
            loop.call_later(GRACE_S, cancel_what_is_played)

    def stop() -> None:
        control.interrupt()
        loop.call_later(GRACE_S, cancel_what_is_played)

    def handle(_number: int, _frame: FrameType | None) -> None:
        times = count_interrupt(LINE)
        if times >= 3:
            exit_now(130)
        loop.call_soon_threadsafe(stop if times == 1 else cancel)

    with _handling(handle):
        if is_interrupted():  # during the setup of the run
            stop()
        yield


@contextmanager
def finish_on_interrupt() -> Iterator[None]:
    """Handle signals before and after the conversations of a run. After the first signal, the reports are
    still completed; a second signal ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        if count_interrupt(LINE) > 1:
            raise KeyboardInterrupt

    with _handling(handle):
        yield


@contextmanager
def _handling(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    names = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        names.append(signal.SIGHUP)  # sent when the terminal is closed; nohup ignores it
    before = {name: signal.signal(name, handle) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


@contextmanager
def enforce_deadline(
    control: RunControl, run_s: float | None, show_line: Callable[[str], None]
) -> Iterator[None]:
    """Stop the run ``run_s`` seconds after its start (deadline, timeout). If ``run_s`` is None, there is no
    deadline. ``show_line`` shows the reason."""
    if run_s is None:
        yield
        return
    why = f"the run took longer than {run_s:g} s (`deadlines.run_s`)"

    def end() -> None:
        show_line(f"{why}: stopping everything")
        control.cancel("deadline", why)

    timer = asyncio.get_running_loop().call_later(run_s, end)
    try:
        yield
    finally:
        timer.cancel()
