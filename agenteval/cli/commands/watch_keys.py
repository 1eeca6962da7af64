"""Reads single keys from the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread


@contextmanager
def read_keys(put: Callable[[str], None]) -> Iterator[None]:
    """Pass each key to ``put`` while the context is active; Enter is a newline. If stdin is not a terminal,
    each of its characters counts as a key. Nothing happens if stdin is closed."""
    if sys.stdin is None:
        yield
        return
    with _without_line_buffering():
        Thread(target=_read, args=(put,), daemon=True, name="agenteval-keys").start()
        yield


def _read(put: Callable[[str], None]) -> None:
    read: Callable[[], str] = partial(sys.stdin.read, 1)
    if sys.platform == "win32" and sys.stdin.isatty():
        from msvcrt import getwch

        read = getwch
    with suppress(OSError, ValueError):  # stdin was closed
        while key := read():
            put("\n" if key == "\r" else key)


@contextmanager
def _without_line_buffering() -> Iterator[None]:
    """Let a terminal pass on each key at once. Ctrl-C still interrupts."""
    if not sys.stdin.isatty() or sys.platform == "win32":
        yield
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
