"""Run an agent's program as a subprocess, and handle its output lines, its log (stderr) and its exit.

The program runs in its own session and process group. A Ctrl-C at the terminal therefore does not reach the
program, and the program can be killed together with all of its child processes. Threads read from and write
to its pipes, so neither a program that never reads nor a program that never stops writing can block the run.
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
"""The byte order mark (BOM) that some runtimes write at the start of their output."""
MAX_LINE = MAX_REPLY_BYTES
"""The maximum length of a line in bytes. A longer line is treated as unreadable, as is a reply body that
exceeds this size."""
MAX_LOG = 64 * 2**10
"""The number of bytes kept from the end of the log."""
GRACE_S = 5.0
"""The grace period in seconds in which a program may exit after its input is closed. Output written in this
period is read.

The period is long because many programs may share a few processors, and each program may have to unload heavy
libraries. The program's child processes get another period of the same length."""
_LAST_LINES = 4
_WORDS = 600
_IN_TRANSIT = 64
"""The maximum number of lines that have been read but not handled. Beyond this number, the program has to
wait."""
_ERROR = re.compile(r"\b\w*(?:error|exception|panic|fatal)\b", re.IGNORECASE)
_LATE_S = 1.0
"""The number of seconds to wait for events that should follow at once, such as the exit after the last line,
or the rest of a log."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.0005, 0.01
"""The pauses between two checks of whether a program has read what was written to it."""


@dataclass(frozen=True)
class OutputLine:
    """One line of the program's standard output, without its line ending."""

    data: bytes
    requests: int
    """The number of requests that had been sent completely when the line began. The line cannot be the answer
    to a later request."""


@dataclass(frozen=True)
class LineTooLong:
    """A line of more than ``MAX_LINE`` bytes. No output after it is read."""

    requests: int
    """See ``OutputLine``."""


@dataclass(frozen=True)
class ProcessEnded:
    """The end of the program's output."""

    code: int | None
    """The exit code. A negative number is the signal that terminated the program; ``None`` means that the
    program closed its output but is still running."""
    by_us: bool = False
    """True if agenteval killed the program while it was still running."""

    @property
    def is_by_signal(self) -> bool:
        """True if the program was terminated by a signal that agenteval did not send."""
        return not self.by_us and self.code is not None and self.code < 0

    def __str__(self) -> str:
        if self.code is None:
            return "closed its standard output"
        if self.code >= 0:
            return f"exited with code {self.code}"
        with suppress(ValueError):
            return f"was terminated by {signal.Signals(-self.code).name}"
        return f"was terminated by signal {-self.code}"


@dataclass(frozen=True)
class ProcessExited:
    """The program itself has exited, and all of its output has been delivered.

    Its child processes may keep standard output open and continue to write. ``ProcessEnded`` follows once
    they have all closed it."""


@dataclass(frozen=True)
class RequestAccepted:
    """The program has read all of a request except for the last byte, and all earlier output has been
    delivered.

    At that point, the program is running and has no pending output."""


ProcessEvent: TypeAlias = OutputLine | LineTooLong | RequestAccepted | ProcessExited | ProcessEnded


class _SplitRequest(NamedTuple):
    """A request line in two parts. The program cannot answer it before the second part arrives."""

    head: bytes
    tail: bytes


class Process:
    """A running program (subprocess). The constructor raises ``OSError`` if the program cannot be started.

    ``on_event`` is called from threads with the program's events, in order; ``ProcessEnded`` is the last
    event and occurs once. Every ``OutputLine`` must be acknowledged with ``acknowledge_line``, which requests
    more output. Without ``by_line``, an ``OutputLine`` contains an arbitrary chunk of the output."""

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
        # A signal handler may kill all programs on a thread that is just killing this one.
        self._lock = threading.RLock()
        self._is_reaped = self._has_ended = self._is_emitting = self._was_killed = False
        self._log: deque[bytes] = deque()
        self._log_size = 0
        self._room = threading.Semaphore(_IN_TRANSIT)
        self._out: SimpleQueue[bytes | _SplitRequest | None] = SimpleQueue()
        self._reading = threading.Lock()
        self._requests = 0
        """The number of requests that have been sent completely. It changes only while nothing is being read
        or delivered (``_reading``)."""
        self._is_read_out = threading.Event()
        """Set once the program's standard output has ended, or once nothing waits for that any more."""
        self.over = threading.Event()
        """Set once the program and its process group have ended."""
        self.was_held_open = False
        """True if a process that the program started held its standard output open for another
        ``GRACE_S``."""
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
        """Start delivering events."""
        for thread in self._threads:
            thread.start()

    def send(self, line: bytes) -> None:
        """Send a line without blocking. The line is lost if the program has exited."""
        self._out.put(line + b"\n")

    def request(self, line: bytes) -> None:
        """Send a line of JSON that requires an answer, without blocking.

        Output that the program wrote before reading the complete line cannot be the answer; see
        ``OutputLine.requests``."""
        self._out.put(_SplitRequest(line[:-1], line[-1:] + b"\n"))

    def acknowledge_line(self) -> None:
        """Report that a line has been handled."""
        self._room.release()

    def kill(self) -> None:
        """Kill the program and all processes in its process group."""
        with self._lock:
            if not self._is_reaped:
                self._was_killed = self._was_killed or not self._has_exited()
                _kill_tree(self.pid)
                addresses.withdraw(self.pid)
        self._is_read_out.set()

    def close_input(self) -> None:
        """Ask the program to exit by closing its input. This call never blocks."""
        self._out.put(None)

    def end(self) -> None:
        """Ask the program to exit by closing its input, wait for its exit, then kill it. This call blocks."""
        self.close_input()
        self.over.wait(GRACE_S)
        self.kill()
        self.over.wait(_LATE_S)

    def error_excerpt(self) -> str:
        """Return the part of the log that best shows why the program exited, starting with the last line that
        mentions an error."""
        data = b"".join(tuple(self._log))
        lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
        errors = [at for at, line in enumerate(lines) if _ERROR.search(line)]
        begin = errors[-1] if errors else -_LAST_LINES
        return "\n".join(lines[begin:][:_LAST_LINES])

    def quoted_log(self) -> str:
        """Return the end of the log, phrased as the end of a sentence, or an empty string if the log is
        empty."""
        words = one_line(self.error_excerpt().replace("\n", " | "), _WORDS)
        return f"; its log: {words}" if words else ""

    @property
    def exit_code(self) -> int | None:
        """The exit code; a negative number is the signal that terminated the program. ``None`` until the
        program is ``over``."""
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
        self._is_read_out.set()
        self._emit_end(self._popen.returncode if self.over.wait(_LATE_S) else None)

    def _chunks_with_requests(self, out: IO[bytes]) -> Iterator[tuple[bytes, int]]:
        """Yield each chunk of output with the number of requests that had been sent when the chunk was read.

        While a chunk is being handled, no other event is delivered."""
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
        """Increment the number of requests once all of the program's output so far has been read."""
        out = _pipe(self._popen.stdout)

        def counted() -> bool:
            with self._reading:
                if _unread_bytes(out):
                    return False
                self._requests += 1
                self._on_event(RequestAccepted())
                return True

        self._wait_until(counted)

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` is true or the program is over."""
        pause_s = _FIRST_PAUSE_S
        while not condition() and not self.over.wait(pause_s):
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _wait(self) -> None:
        if sys.platform != "win32" and hasattr(os, "waitid"):
            # It is not reaped yet, so its PID is certainly still its own when its group is killed.
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self._read_rest()
            with self._lock:
                _kill_tree(self.pid)
                self._popen.wait()
                self._is_reaped = True
        else:
            self._popen.wait()
            self._read_rest()
            with self._lock:
                self._is_reaped = True
        _unregister_process(self)
        reader, logger, *_ = self._threads
        logger.join(_LATE_S)
        self.over.set()
        # A process that it started in another session may hold its output open, so the stream never ends.
        while reader.is_alive():
            reader.join(_LATE_S)
            if not self._is_emitting:
                self._emit_end(self._popen.returncode)
                break

    def _read_rest(self) -> None:
        """Read the remaining output after the program has exited, including the output of its child
        processes.

        If the program was killed, do not wait for the remaining output."""
        self._out.put(None)
        if self._was_killed:
            return
        deadline = time.monotonic() + GRACE_S
        while not self._emit_exit() and not self._is_read_out.wait(_FIRST_PAUSE_S):
            if time.monotonic() > deadline:  # a process that it started never stops writing
                self.was_held_open = True
                return
        self.was_held_open = not self._is_read_out.wait(max(0.0, deadline - time.monotonic()))

    def _emit_exit(self) -> bool:
        """Deliver ``ProcessExited`` if all of the program's output has been delivered. Return whether the
        event was delivered."""
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
    """Discard the remaining output, because unread output must not prevent the program from exiting."""
    for _ in _chunks(stream):
        pass


def _pieces(chunks: Iterable[tuple[bytes, int]]) -> Iterator[OutputLine | LineTooLong]:
    for chunk, requests in chunks:
        yield OutputLine(chunk, requests)


def _lines(chunks: Iterable[tuple[bytes, int]]) -> Iterator[OutputLine | LineTooLong]:
    """Yield each line, including an incomplete last line. Yield nothing after a line that is too long.

    A line begins at its first byte that is neither white space nor part of a byte order mark."""
    buffer, began = bytearray(), None
    for chunk, requests in chunks:
        pieces = chunk.split(b"\n")
        for number, piece in enumerate(pieces, 1):
            if began is None and not _is_blank(bytes(buffer) + piece if len(buffer) < len(BOM) else piece):
                began = requests
            if len(buffer) + len(piece) > MAX_LINE:
                yield LineTooLong(began or 0)
                return
            buffer += piece
            if number < len(pieces):
                yield OutputLine(bytes(buffer), began or 0)
                buffer, began = bytearray(), None
    if buffer:
        yield OutputLine(bytes(buffer), began or 0)


def _is_blank(begun: bytes) -> bool:
    """Check whether the start of a line contains only white space, a byte order mark, or part of one."""
    return BOM.startswith(begun) or not begun.removeprefix(BOM).strip()


_CAN_WAIT = sys.platform != "win32"
"""True if the operating system can wait for a pipe without reading from it."""


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
    """Return the number of unread bytes in a pipe, or 0 if the operating system does not report it."""
    if sys.platform == "win32":
        return 0
    import fcntl
    import termios

    count = array("i", [0])
    with suppress(OSError, ValueError):  # it may be closed
        fcntl.ioctl(stream, termios.FIONREAD, count)
    return count[0]


def _kill_tree(pid: int) -> None:
    if sys.platform == "win32":  # untested
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(pid)], capture_output=True, check=False)
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


# ── no process is left running ───────────────────────────────────────────────────────────────────

_alive: set[Process] = set()
_home = 0


def _register_process(process: Process) -> None:
    """Register a program to be killed when this process ends for any reason.

    The exception is a signal that cannot be handled. In that case, the program only finds its input closed.
    """
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
    """Kill all programs that are still running. A forked process does not kill its parent's programs."""
    if os.getpid() == _home:
        for process in tuple(_alive):
            process.kill()


def find_program(program: str, folder: str, env: Mapping[str, str]) -> str | None:
    """Return the path of a program. A name that contains a path separator is relative to ``folder``; other
    names are looked up as in a shell."""
    import shutil

    if os.path.dirname(program):
        path = os.path.join(folder, os.path.expanduser(program))
        return path if os.path.isfile(path) else None
    return shutil.which(program, path=env.get("PATH"))


def is_executable(path: str) -> bool:
    return sys.platform == "win32" or os.access(path, os.X_OK)
