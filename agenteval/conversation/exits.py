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

EXIT_UNDECIDED = 3
_os_exit = os._exit


class ExitGuard:
    """While it is guarded, ``os._exit`` leaves with the code that was decided: an agent that ends the
    process with 0 would turn a run green that was cut off. ``os.exec…`` ends it, too: with the code of the
    program that it begins. A forked process ends as it likes."""

    def __init__(self) -> None:
        self._code: int | None = None
        self._process = os.getpid()

    def guard(self) -> None:
        os._exit = self._guarded_exit
        for name in ("execv", "execve"):  # all the others end in one of these
            setattr(os, name, partial(self._guarded_exec, name, getattr(os, name)))

    def set_exit_code(self, code: int) -> int:
        self._code = code
        return code

    def _guarded_exit(self, status: int) -> NoReturn:
        if os.getpid() != self._process:
            _os_exit(status)
        self._end(f"os._exit({status})")

    def _guarded_exec(self, name: str, begin: Callable[..., NoReturn], program: Any, *rest: Any) -> NoReturn:
        if os.getpid() != self._process:
            begin(program, *rest)
        os.stat(program)  # one that is not there is looked for elsewhere
        self._end(f"os.{name}({program!r}, …)")

    def _end(self, called: str) -> NoReturn:
        if self._code is None:
            what = f"{called} was called: the process ended before anything was decided"
            _write_stderr(
                f"agenteval: {what} (exit {EXIT_UNDECIDED})\n  everything done by then is in the journal"
            )
            self._code = EXIT_UNDECIDED
        _run_exit_hooks()
        flush_output()
        _os_exit(self._code)


def register_exit_hook(call: Callable[[], None]) -> None:
    """``call`` is made in front of each end that ``atexit`` does not hear of."""
    _exit_hooks.append(call)


_exit_hooks: list[Callable[[], None]] = []


def _run_exit_hooks() -> None:
    for call in _exit_hooks:
        with suppress(Exception):
            call()


def exit_now(code: int) -> NoReturn:
    """Ends the process there and then."""
    _run_exit_hooks()
    _os_exit(code)


def exit_without_waiting(code: int) -> NoReturn:
    """Python waits for threads at its end; one of the author's that hangs must not hold up the verdict.
    What is registered with ``atexit`` is still run."""
    import atexit

    atexit._run_exitfuncs()
    flush_output()
    _os_exit(code)


def count_interrupt(line: str) -> int:
    """How often the process was asked to end, this time counted; the first time the line says what follows,
    and no other does."""
    _interrupts.append(line)
    if len(_interrupts) == 1:
        _write_stderr(f"\n{line}" if sys.stderr and sys.stderr.isatty() else line)  # behind ^C
    return len(_interrupts)


_interrupts: list[str] = []


def is_interrupted() -> bool:
    return bool(_interrupts)


def install_interrupt_handler() -> None:
    """Ctrl-C ends the command, unless it knows better; twice, there and then. One that is ignored, as a shell
    does it for what runs in the background, stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    if count_interrupt("interrupted") > 1:
        exit_now(130)
    raise KeyboardInterrupt


def exit_on_late_interrupt(code: int) -> None:
    """All is done: Ctrl-C in what Python does at its end would only print where it was."""
    if signal.getsignal(signal.SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, lambda *_: exit_now(code))


def flush_output() -> None:
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


def _write_stderr(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
