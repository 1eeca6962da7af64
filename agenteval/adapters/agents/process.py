"""A program of the agent's: its lines, its log, its end.

It runs in a session and process group of its own, so that a Ctrl-C at the terminal is not its own, and that
it can be ended with all that it started. Threads serve its pipes, so that neither a program that never reads
nor one that never stops writing holds up the run.
"""

from __future__ import annotations

import atexit
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import IO, NamedTuple, TypeAlias

from agenteval.adapters.bridge import addresses
from agenteval.agentside.targets.reply_limit import MAX_REPLY_BYTES
from agenteval.conversation import exits
from agenteval.core.safe_text import one_line

BOM = b"\xef\xbb\xbf"
"""The byte order mark with which some runtimes begin their output."""
MAX_LINE = MAX_REPLY_BYTES
"""Bytes of a line; a longer one is unreadable, as the body of a reply would be."""
MAX_LOG = 64 * 2**10
"""Bytes of the log that are kept: the last ones."""
GRACE_S = 5.0
"""How long a program may take to end once its input is closed: what it writes by then is read. Many of them,
each with heavy libraries to unload, may share few processors. What it started has as long again."""
_LAST_LINES = 4
_WORDS = 600
_IN_TRANSIT = 64
"""Lines that are read and not yet taken; with more of them the program has to wait."""
_ERROR = re.compile(r"\b\w*(?:error|exception|panic|fatal)\b", re.IGNORECASE)
_LATE_S = 1.0
"""So long is waited for what should come at once: an end after its last line, the rest of a log."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.0005, 0.01
"""Between two looks at whether a program has taken what was written to it."""


@dataclass(frozen=True)
class OutputLine:
    """One line of its standard output, without its end. ``requests``: how many requests had been sent whole
    when the line began; it can answer none of those that came later."""

    data: bytes
    requests: int


@dataclass(frozen=True)
class LineTooLong:
    """A line has more than ``MAX_LINE`` bytes; nothing more is read. ``requests``: as of a ``OutputLine``."""

    requests: int


@dataclass(frozen=True)
class ProcessEnded:
    """Nothing more comes. ``code``: its exit code, below 0 the signal that ended it; ``None``: it has closed
    its standard output and goes on. ``by_us``: it was still running when it was killed from here."""

    code: int | None
    by_us: bool = False

    @property
    def is_by_signal(self) -> bool:
        """Whether a signal that is not ours ended it."""
        return not self.by_us and self.code is not None and self.code < 0

    def __str__(self) -> str:
        if self.code is None:
            return "closed its standard output"
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-self.code).name}"
        return f"was ended by signal {-self.code}"


@dataclass(frozen=True)
class ProcessExited:
    """The program itself has ended, and all that it wrote was told. What it started may hold its standard
    output open, and still write; ``Ended`` comes when nobody does any more."""


@dataclass(frozen=True)
class RequestAccepted:
    """It has read all of a request but its last byte, and all that it wrote before was told: it is alive, and
    silent."""


ProcessEvent: TypeAlias = OutputLine | LineTooLong | RequestAccepted | ProcessExited | ProcessEnded


class _SplitRequest(NamedTuple):
    """A line that is to be answered, in two parts: nobody can answer it before the second has come."""

    head: bytes
    tail: bytes


class Process:
    """Starts the program. Raises ``OSError`` if it cannot be started.

    ``tell`` hears what it says, in order, from threads; ``Ended`` comes last, and once. After a
    ``OutputLine`` it is to be asked for more with ``took``. Unless ``by_line`` a ``OutputLine`` is any piece
    of its output."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        on_event: Callable[[ProcessEvent], None],
        by_line: bool = True,
    ) -> None:
        self._on_event = on_event
        self._split = _lines if by_line else _pieces
        # A signal may come while its own thread ends a program, and then ends all of them, there and then.
        self._lock = threading.RLock()
        self._is_reaped = self._has_ended = self._is_emitting = self._was_killed = False
        self._log: deque[bytes] = deque()
        self._log_size = 0
        self._room = threading.Semaphore(_IN_TRANSIT)
        self._out: SimpleQueue[bytes | _SplitRequest | None] = SimpleQueue()
        self._reading = threading.Lock()
        self._requests = 0
        """How many were sent whole. It changes only while nothing is read or told (``_reading``)."""
        self._is_heard_out = threading.Event()
        """Its standard output is at its end, or nobody waits for that."""
        self.over = threading.Event()
        """It has ended, and so has its group."""
        self.was_held_open = False
        """What it had started held its standard output for ``GRACE_S`` more."""
        self._popen = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=os.name != "nt",
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self.pid = self._popen.pid
        _register_process(self)
        addresses.announce(self.pid, env.get(addresses.MCP_URL_VARIABLE, ""))
        work = (self._read, self._keep_log, self._write, self._wait)
        self._threads = [
            threading.Thread(target=each, daemon=True, name="agenteval-process") for each in work
        ]

    def listen(self) -> None:
        """From now on ``tell`` hears of it."""
        for thread in self._threads:
            thread.start()

    def send(self, line: bytes) -> None:
        """Never blocks; to a program that has ended it is lost."""
        self._out.put(line + b"\n")

    def request(self, line: bytes) -> None:
        """As ``send``, for a line of JSON that asks for an answer: what the program wrote before it had read
        all of it is known to be none (``OutputLine.requests``)."""
        self._out.put(_SplitRequest(line[:-1], line[-1:] + b"\n"))

    def acknowledge_line(self) -> None:
        """A line was dealt with."""
        self._room.release()

    def kill(self) -> None:
        """Ends it, and all that it started in its group, there and then."""
        with self._lock:
            if not self._is_reaped:
                self._was_killed = self._was_killed or not self._has_exited()
                _kill_tree(self.pid)
                addresses.withdraw(self.pid)
        self._is_heard_out.set()

    def close_input(self) -> None:
        """Asks it to end. Never blocks."""
        self._out.put(None)

    def end(self) -> None:
        """Closes its input, which asks it to end, and waits for that; then ends it. Blocks."""
        self.close_input()
        self.over.wait(GRACE_S)
        self.kill()
        self.over.wait(_LATE_S)

    def error_excerpt(self) -> str:
        """Of its log what tells best why it ended: from the last line on that speaks of an error."""
        data = b"".join(tuple(self._log))
        lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
        told = [at for at, line in enumerate(lines) if _ERROR.search(line)]
        begin = told[-1] if told else -_LAST_LINES
        return "\n".join(lines[begin:][:_LAST_LINES])

    def quoted_log(self) -> str:
        """Its last words as the rest of a sentence; empty if there are none."""
        words = one_line(self.error_excerpt().replace("\n", " | "), _WORDS)
        return f"; its log: {words}" if words else ""

    @property
    def exit_code(self) -> int | None:
        """Below 0: the signal that ended it; ``None`` until it is ``over``."""
        return self._popen.returncode

    # ── threads ──────────────────────────────────────────────────────────────────────────────────

    def _read(self) -> None:
        with _pipe(self._popen.stdout) as out:
            for line in self._split(self._chunks_with_requests(out)):
                self._is_emitting = True
                self._room.acquire()
                self._on_event(line)
                self._is_emitting = False
            _drain(out)
        self._is_heard_out.set()
        self._emit_end(self._popen.returncode if self.over.wait(_LATE_S) else None)

    def _chunks_with_requests(self, out: IO[bytes]) -> Iterator[tuple[bytes, int]]:
        """What is read, each piece with how many requests had been sent by then. While a piece is dealt with,
        nothing else is told."""
        while True:
            _wait_until_readable(out)
            with self._reading if _CAN_WAIT else nullcontext():
                chunk, requests = _read_some(out), self._requests
                if not chunk:
                    return
                yield chunk, requests

    def _keep_log(self) -> None:
        with _pipe(self._popen.stderr) as log:
            for chunk in _chunks(log):
                self._log.append(chunk)
                self._log_size += len(chunk)
                while self._log_size - len(self._log[0]) > MAX_LOG:
                    self._log_size -= len(self._log.popleft())

    def _write(self) -> None:
        into = _pipe(self._popen.stdin)
        with suppress(OSError), into:
            while (line := self._out.get()) is not None:
                if isinstance(line, bytes):
                    _write_all(into, line)
                    continue
                _write_all(into, line.head)
                self._wait_until(lambda: not _unread_bytes(into))
                self._count_request()
                _write_all(into, line.tail)

    def _count_request(self) -> None:
        """Once all that the program has written by now is read, one more request is on its way."""
        out = _pipe(self._popen.stdout)

        def counted() -> bool:
            with self._reading:
                if _unread_bytes(out):
                    return False
                self._requests += 1
                self._on_event(RequestAccepted())
                return True

        self._wait_until(counted)

    def _wait_until(self, happens: Callable[[], bool]) -> None:
        """Or until the program is over."""
        pause_s = _FIRST_PAUSE_S
        while not happens() and not self.over.wait(pause_s):
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _wait(self) -> None:
        if sys.platform != "win32" and hasattr(os, "waitid"):
            # It is not reaped yet, so that its number is surely still its own when the rest is ended.
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self._hear_out()
            with self._lock:
                _kill_tree(self.pid)
                self._popen.wait()
                self._is_reaped = True
        else:
            self._popen.wait()
            self._hear_out()
            with self._lock:
                self._is_reaped = True
        _unregister_process(self)
        reader, logger, *_ = self._threads
        logger.join(_LATE_S)
        self.over.set()
        # One that it started in another session may hold its output open: then nothing ends the stream.
        while reader.is_alive():
            reader.join(_LATE_S)
            if not self._is_emitting:
                self._emit_end(self._popen.returncode)
                break

    def _hear_out(self) -> None:
        """It has ended by itself, or was killed. What others hold of its output is read to its end, too."""
        self._out.put(None)
        if self._was_killed:
            return
        deadline = time.monotonic() + GRACE_S
        while not self._emit_exit() and not self._is_heard_out.wait(_FIRST_PAUSE_S):
            if time.monotonic() > deadline:  # what it started never stops writing
                self.was_held_open = True
                return
        self.was_held_open = not self._is_heard_out.wait(max(0.0, deadline - time.monotonic()))

    def _emit_exit(self) -> bool:
        """Once all that it has written is told."""
        with self._reading:
            if _unread_bytes(_pipe(self._popen.stdout)):
                return False
            self._on_event(ProcessExited())
            return True

    def _emit_end(self, code: int | None) -> None:
        with self._lock:
            if self._has_ended:
                return
            self._has_ended = True
        self._on_event(ProcessEnded(code, by_us=self._was_killed))

    def _has_exited(self) -> bool:
        if sys.platform != "win32" and hasattr(os, "waitid"):
            with suppress(ChildProcessError):
                return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        return self._popen.returncode is not None


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    with suppress(OSError, ValueError):
        while chunk := stream.read(65536):
            yield chunk


def _drain(stream: IO[bytes]) -> None:
    """What nobody reads must not keep the program from its end."""
    for _ in _chunks(stream):
        pass


def _pieces(chunks: Iterable[tuple[bytes, int]]) -> Iterator[OutputLine | LineTooLong]:
    for chunk, requests in chunks:
        yield OutputLine(chunk, requests)


def _lines(chunks: Iterable[tuple[bytes, int]]) -> Iterator[OutputLine | LineTooLong]:
    """Each line; what is left at the end is one, too. After one that is too long there is no more. A line
    begins with its first byte that is neither blank nor of a byte order mark."""
    held, began = bytearray(), None
    for chunk, requests in chunks:
        pieces = chunk.split(b"\n")
        for number, piece in enumerate(pieces, 1):
            if began is None and not _is_nothing(bytes(held) + piece if len(held) < len(BOM) else piece):
                began = requests
            if len(held) + len(piece) > MAX_LINE:
                yield LineTooLong(began or 0)
                return
            held += piece
            if number < len(pieces):
                yield OutputLine(bytes(held), began or 0)
                held, began = bytearray(), None
    if held:
        yield OutputLine(bytes(held), began or 0)


def _is_nothing(begun: bytes) -> bool:
    """Whether a line that begins so says nothing yet: it is blank, or a byte order mark, or a part of one."""
    return BOM.startswith(begun) or not begun.removeprefix(BOM).strip()


_CAN_WAIT = sys.platform != "win32"
"""Whether a pipe can be waited for without being read."""


def _wait_until_readable(stream: IO[bytes]) -> None:
    if sys.platform != "win32":
        waiting = select.poll()
        waiting.register(stream, select.POLLIN)
        waiting.poll()


def _read_some(stream: IO[bytes]) -> bytes:
    with suppress(OSError, ValueError):
        return stream.read(65536)
    return b""


def _write_all(stream: IO[bytes], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


def _unread_bytes(stream: IO[bytes]) -> int:
    """How much of a pipe nobody has read yet; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0
    import fcntl
    import termios

    count = array("i", [0])
    with suppress(OSError, ValueError):  # it may be closed
        fcntl.ioctl(stream, termios.FIONREAD, count)
    return count[0]


def _kill_tree(pid: int) -> None:
    if sys.platform == "win32":  # never tried
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(pid)], capture_output=True, check=False)
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


# ── nothing is left running ──────────────────────────────────────────────────────────────────────

_alive: set[Process] = set()
_home = 0


def _register_process(process: Process) -> None:
    """From now on it is ended with this process, in whatever way that ends, but for a signal that nobody can
    hear: then its input is closed, which tells it."""
    global _home
    if _home != os.getpid():
        _home = os.getpid()
        _alive.clear()
        atexit.register(kill_all)
        exits.register_exit_hook(kill_all)
    _alive.add(process)


def _unregister_process(process: Process) -> None:
    _alive.discard(process)
    addresses.withdraw(process.pid)


def kill_all() -> None:
    """Ends all that still run. A copy of this process ends nothing of its parent's."""
    if os.getpid() == _home:
        for process in tuple(_alive):
            process.kill()


def find_program(program: str, folder: str, env: Mapping[str, str]) -> str | None:
    """Where a program is: from ``folder``, if it is named by a path, else as a shell finds it."""
    import shutil

    if os.path.dirname(program):
        path = os.path.join(folder, os.path.expanduser(program))
        return path if os.path.isfile(path) else None
    return shutil.which(program, path=env.get("PATH"))


def is_executable(path: str) -> bool:
    return sys.platform == "win32" or os.access(path, os.X_OK)
