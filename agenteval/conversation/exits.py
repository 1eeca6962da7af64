"""Ensure that the exit code of the process is agenteval's own, even if the author's code ends the process."""

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
    """Overrides (monkeypatches) ``os._exit`` so that the process exits with agenteval's exit code. Otherwise,
    an agent that ends the process with 0 would turn an interrupted run green. ``os.exec…`` is overridden too,
    because it ends the process with the exit code of the program that it starts. A forked process may end in
    any way it likes."""

    def __init__(self) -> None:
        self._code: int | None = None
        self._before: dict[str, Any] = {}
        self._process = os.getpid()

    def guard(self) -> None:
        self._before = {name: getattr(os, name) for name in ("_exit", "execv", "execve")}
        os._exit = self._guarded_exit
        for name in ("execv", "execve"):  # all other variants call one of these
            setattr(os, name, partial(self._guarded_exec, name, getattr(os, name)))

    def release(self) -> None:
        """Undo ``guard``."""
        os._exit = self._before["_exit"]
        for name in ("execv", "execve"):
            setattr(os, name, self._before[name])

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
        os.stat(program)  # raises if it does not exist, so that the caller tries the next path
        self._end(f"os.{name}({program!r}, …)")

    def _end(self, called: str) -> NoReturn:
        if self._code is None:
            what = f"{called} was called, so the process ended before a verdict"
            _write_stderr(
                f"agenteval: {what} (exit {EXIT_UNDECIDED})\n  everything up to that point is in the journal"
            )
            self._code = EXIT_UNDECIDED
        _run_exit_hooks()
        flush_output()
        _os_exit(self._code)


def register_exit_hook(call: Callable[[], None]) -> None:
    """Register a function that is called before each exit that bypasses ``atexit``."""
    _exit_hooks.append(call)


_exit_hooks: list[Callable[[], None]] = []


def _run_exit_hooks() -> None:
    for call in _exit_hooks:
        with suppress(Exception):
            call()


def exit_now(code: int) -> NoReturn:
    """End the process immediately."""
    _run_exit_hooks()
    _os_exit(code)


def exit_without_waiting(code: int) -> NoReturn:
    """End the process without joining threads. Python waits for threads when it exits, and a hanging thread
    in the author's code must not delay the verdict. ``atexit`` callbacks still run."""
    import atexit

    atexit._run_exitfuncs()
    flush_output()
    _os_exit(code)


def count_interrupt(line: str) -> int:
    """Count the requests to end the process (Ctrl-C), including this one. Only the first request prints
    ``line``, which describes what happens next."""
    _interrupts.append(line)
    if len(_interrupts) == 1:
        _write_stderr(
            f"\n{line}" if sys.stderr and sys.stderr.isatty() else line
        )  # after the ^C that the terminal echoes
    return len(_interrupts)


_interrupts: list[str] = []


def is_interrupted() -> bool:
    return bool(_interrupts)


def install_interrupt_handler() -> None:
    """Make Ctrl-C (SIGINT) end the command, unless the command handles the signal itself. A second Ctrl-C
    ends the process immediately. If SIGINT is ignored, which shells do for background jobs, it remains
    ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    if count_interrupt("interrupted") > 1:
        exit_now(130)
    raise KeyboardInterrupt


def exit_on_late_interrupt(code: int) -> None:
    """Exit silently if Ctrl-C is pressed while Python shuts down. Otherwise, the interrupt would only print a
    traceback."""
    if signal.getsignal(signal.SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, lambda *_: exit_now(code))


def flush_output() -> None:
    """Flush as much of the output as possible. Python's own final flush must not fail, because the exit code
    would then be 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            silence(stream)


def silence(stream: Any) -> None:
    """Make a stream discard its content once it can no longer be written to."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


def _write_stderr(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
