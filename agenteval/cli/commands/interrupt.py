"""Ctrl-C: once, what runs is finished and reported; twice, everything stops at once. And the deadline of a
run."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from agenteval.cli.way_out import say
from agenteval.conversation.exits import leave_now
from agenteval.conversation.pipeline import Control

GRACE_S = 5.0
"""How long conversations in flight may go on after the first signal."""


@contextmanager
def interruptible(control: Control) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP end the run early: the first lets what runs finish, for ``GRACE_S`` at most,
    the second cancels it, the third ends the process there and then (the journal has all that was done).
    Outside the main thread nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    times = 0

    def cancel() -> None:
        control.cancel("interrupted")

    def stop() -> None:
        control.stop("interrupted")
        loop.call_later(GRACE_S, cancel)

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal times
        times += 1
        if times >= 3:
            leave_now(130)
        if times == 1:
            say("\ninterrupted: finishing running conversations (again to stop at once)")
        loop.call_soon_threadsafe(stop if times == 1 else cancel)

    names = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        names.append(signal.SIGHUP)  # the terminal was closed; under nohup it is ignored
    before = {name: signal.signal(name, handle) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


@contextmanager
def bounded(control: Control, run_s: float | None) -> Iterator[None]:
    """After ``run_s`` seconds (``None``: never) nothing more is started, and what runs is ended."""
    if run_s is None:
        yield
        return
    why = f"the run took longer than deadlines.run_s: {run_s:g} s"

    def end() -> None:
        say(f"{why}: stopping everything that runs")
        control.cancel("deadline", why)

    timer = asyncio.get_running_loop().call_later(run_s, end)
    try:
        yield
    finally:
        timer.cancel()
