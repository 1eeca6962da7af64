"""The exit code of the process is agenteval's, whatever code of the author's ends the process."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, NoReturn

UNDECIDED = 3
_leave = os._exit


class Exit:
    """While it is guarded, ``os._exit`` leaves with the code that was decided: an agent that ends the
    process with 0 would turn a run green that was cut off. ``os.exec…`` ends it, too: with the code of the
    program that it begins. A forked process ends as it likes."""

    def __init__(self) -> None:
        self._code: int | None = None
        self._process = os.getpid()

    def guard(self) -> None:
        os._exit = self._asked_to_leave
        for name in ("execv", "execve"):  # all the others end in one of these
            setattr(os, name, partial(self._asked_to_begin, name, getattr(os, name)))

    def decide(self, code: int) -> int:
        self._code = code
        return code

    def _asked_to_leave(self, status: int) -> NoReturn:
        if os.getpid() != self._process:
            _leave(status)
        self._end(f"os._exit({status})")

    def _asked_to_begin(
        self, name: str, begin: Callable[..., NoReturn], program: Any, *rest: Any
    ) -> NoReturn:
        if os.getpid() != self._process:
            begin(program, *rest)
        os.stat(program)  # one that is not there is looked for elsewhere
        self._end(f"os.{name}({program!r}, …)")

    def _end(self, called: str) -> NoReturn:
        if self._code is None:
            what = f"{called} was called: the process ended before anything was decided"
            _say(f"agenteval: {what} (exit {UNDECIDED})\n  everything done by then is in the journal")
            self._code = UNDECIDED
        _make_last_calls()
        flush()
        _leave(self._code)


def before_leaving(call: Callable[[], None]) -> None:
    """``call`` is made in front of each end that ``atexit`` does not hear of."""
    _last_calls.append(call)


_last_calls: list[Callable[[], None]] = []


def _make_last_calls() -> None:
    for call in _last_calls:
        with suppress(Exception):
            call()


def leave_now(code: int) -> NoReturn:
    """Ends the process there and then."""
    _make_last_calls()
    _leave(code)


def leave_without_waiting(code: int) -> NoReturn:
    """Python waits for threads at its end; one of the author's that hangs must not hold up the verdict.
    What is registered with ``atexit`` is still run."""
    import atexit

    atexit._run_exitfuncs()
    flush()
    _leave(code)


def note_interrupt(line: str) -> int:
    """How often the process was asked to end, this time counted; the first time the line says what follows,
    and no other does."""
    _interrupts.append(line)
    if len(_interrupts) == 1:
        _say(f"\n{line}" if sys.stderr and sys.stderr.isatty() else line)  # behind ^C
    return len(_interrupts)


_interrupts: list[str] = []


def is_interrupted() -> bool:
    return bool(_interrupts)


def end_on_interrupt() -> None:
    """Ctrl-C ends the command, unless it knows better; twice, there and then. One that is ignored, as a shell
    does it for what runs in the background, stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    if note_interrupt("interrupted") > 1:
        leave_now(130)
    raise KeyboardInterrupt


def leave_on_interrupt(code: int) -> None:
    """All is done: Ctrl-C in what Python does at its end would only print where it was."""
    if signal.getsignal(signal.SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, lambda *_: leave_now(code))


def flush() -> None:
    """What is still to be written is, where that can be: Python's own last flush must not fail, or the exit
    code is 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            silence(stream)


def silence(stream: Any) -> None:
    """Lets a stream that can no longer be written swallow whatever it holds or still gets."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


def _say(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
