"""The journal (event log): an append-only JSON Lines file with the events of a run. All reports are generated
from the journal."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from agenteval.core.errors import AuthorError, Place, Problem, RunLockedError
from agenteval.core.event import (
    SCHEMA_VERSION,
    Event,
    ModelAsked,
    Reconsidered,
    SampleFinished,
)
from agenteval.files.regular_files import private_opener
from agenteval.files.run_start import parse_run_started

_RUN_STARTED = b'{"type":"run_started",'
LOCK_FILE = "lock"
"""A lock file next to the journal. It contains the process id (PID) for people to read."""
_BETWEEN_SYNCS_S = 0.01
"""The pause between two syncs, in seconds. At a rate of a thousand samples per second, waking up for each
sample would slow the run down."""
_LOCK_OFFSET = 2**30  # beyond the end of the file: a locked byte cannot be read on Windows


_last_line: tuple[Event | None, bytes] = (None, b"")
"""The event that was last serialized, and its line."""


def event_to_json(event: Event) -> str:
    """Return an event as one line of JSON. A lone surrogate, which cannot be stored in a file, becomes
    U+FFFD, because an event that cannot be written would make the journal unusable."""
    return _line_of(event).decode()


def _line_of(event: Event) -> bytes:
    """Return the line of an event, without a line ending. An event is serialized once, although the masking
    of secrets and the journal need its line one after the other."""
    global _last_line
    last, line = _last_line  # read at once, because a thread may serialize another event
    if last is not event:
        line = _serialize(event)
        _last_line = event, line
    return line


def _serialize(event: Event) -> bytes:
    try:
        # ``model_dump_json`` without its dozen options: a third of the time for a short event.
        return event.__pydantic_serializer__.to_json(event)
    except ValueError:
        return json.dumps(_replace_surrogates(event.model_dump()), default=str).encode()


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}
    return [_replace_surrogates(item) for item in value] if isinstance(value, list | tuple) else value


def event_from_json(text: str | bytes) -> Event:
    return _events().validate_json(text)


def _parse_line(line: bytes) -> Event:
    """Return the event of a line. Raise ``ValidationError`` if it is none."""
    if line.startswith(_RUN_STARTED):
        with suppress(ValueError, IndexError):  # the error is that of the whole line
            return parse_run_started(line)
    return event_from_json(line)


@cache
def _events() -> TypeAdapter[Event]:
    """Create the parser for events. The parser is created only when a journal is first read, because most
    commands do not read a journal."""
    return TypeAdapter(Event)


class Journal:
    """Writes the events of a run as JSON Lines. Each line is written in one piece so that it survives if the
    process is killed. A finished sample is synced to disk immediately and also survives a power failure. Can
    be used as a context manager.

    The constructor creates a new file, which must not exist yet; ``Journal.reopen`` appends to an existing
    file."""

    def __init__(self, path: Path) -> None:
        self._begin(path, open(path, "xb", buffering=0, opener=private_opener))  # noqa: SIM115

    def _begin(self, path: Path, file: FileIO) -> None:
        self.path = path
        self._file = file
        self._end = file.seek(0, os.SEEK_END)
        self._last: tuple[Event, int] | None = None
        self._syncs = _Syncs(file.fileno())

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """Reopen a journal that was cut off, to resume its run. An incomplete last line is removed."""
        file = path.open("r+b", buffering=0)
        journal = cls.__new__(cls)
        journal._begin(path, file)
        _repair_end(path, file)
        journal._end = file.seek(0, os.SEEK_END)
        return journal

    def __call__(self, event: Event) -> None:
        stored = event.for_journal if isinstance(event, ModelAsked) else event
        if stored is None:
            return
        self._syncs.check()
        data = memoryview(_line_of(stored) + b"\n")
        place, self._end = self._end, self._end + len(data)
        while data:
            data = data[self._file.write(data) :]
        self._last = event, place
        if isinstance(event, SampleFinished | Reconsidered):
            self._syncs.request()

    def place_of(self, event: Event) -> int | None:
        """Return the place of the event that was just written, or ``None`` if it could not be written."""
        return self._last[1] if self._last and self._last[0] is event else None

    def read(self, places: Iterable[int]) -> Iterator[Event]:
        """Yield the events at these places."""
        return read_events_at(self.path, places)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._syncs.close()
        self._file.close()


def _repair_end(path: Path, file: FileIO) -> None:
    """Make the file end with a complete line. If the last line lacks only its line ending, it is kept,
    because readers accept such a line."""
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    rest = data[end:]
    if rest and _is_event(rest):
        file.seek(len(data))
        file.write(b"\n")
        return
    file.truncate(end)
    file.seek(end)


def _is_event(line: bytes) -> bool:
    try:
        event_from_json(line)
    except ValidationError:
        return False
    return True


class _Syncs:
    """A thread that syncs a file to disk (fsync). A sync takes milliseconds, but the run does not wait for
    it; samples that finish in the meantime share the next sync."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._requested = threading.Event()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._error: OSError | None = None

    def request(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="agenteval-journal", daemon=True)
            self._thread.start()
        self._requested.set()

    def check(self) -> None:
        """Raise the error from the last sync, if it failed."""
        if self._error:
            raise self._error

    def close(self) -> None:
        """Start a final sync and wait for it to finish."""
        self._closing.set()
        self.request()
        assert self._thread is not None
        self._thread.join()

    def _work(self) -> None:
        is_last = False
        while not is_last:
            self._requested.wait()
            self._requested.clear()
            is_last = self._closing.is_set()
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                if error.errno != errno.EINVAL:  # the error of a file system without sync
                    self._error = error
            self._closing.wait(_BETWEEN_SYNCS_S)


@contextmanager
def lock_run(folder: Path) -> Iterator[None]:
    """Lock the folder of a run so that only one process writes to it. The operating system releases the lock
    when the process ends for any reason. Raise ``RunLockedError`` if another process holds the lock."""
    try:
        file = (folder / LOCK_FILE).open("a+b")
    except OSError as error:
        raise AuthorError(Problem(f"cannot write to {folder}: {error.strerror}")) from None
    with file:
        if not _lock(file.fileno()):
            file.seek(0)
            process = file.read(20).decode("ascii", "replace").strip()
            owner = f" (process {process})" if process.isdigit() else ""
            what = f"the run {folder.name} is still in progress{owner}"
            raise RunLockedError(Problem(what, "wait for it to end, or stop it"))
        with suppress(OSError):  # on a full disk the number is missing
            file.truncate(0)
            os.write(file.fileno(), str(os.getpid()).encode())
        yield


def is_run_locked(folder: Path) -> bool:
    """Check whether another process is writing to the folder of a run. This check writes nothing."""
    try:
        file = (folder / LOCK_FILE).open("r+b")
    except OSError:
        return False
    with file:
        return not _lock(file.fileno())


def _lock(descriptor: int) -> bool:
    """Acquire a file lock. Return ``False`` if another process has locked the file. On a file system that
    does not support locks, this function always succeeds."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, _LOCK_OFFSET, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            # The lock belongs to the process, not to the open file: forks of an agent do not inherit it.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True


def check_journal_version(first: Mapping[str, Any], place: Place) -> None:
    """Raise ``AuthorError`` for a journal that was written by a different version of agenteval. ``first`` is
    the first event in the journal, unparsed."""
    version = first.get("schema_version")
    if first.get("type") != "run_started" or not isinstance(version, int) or version == SCHEMA_VERSION:
        return
    what = f"the journal has version {version}, but this agenteval supports only version {SCHEMA_VERSION}"
    newer = "use the agenteval version that wrote it, or a newer one"
    older = "use the agenteval version that wrote it, or repeat the run"
    raise AuthorError(Problem(what, newer if version > SCHEMA_VERSION else older, place))


def read_journal(path: Path) -> Iterator[Event]:
    """Yield the events in a journal. An incomplete last line, left by a process that was killed while
    writing, is skipped. Raise ``AuthorError`` with the line number for any other line that cannot be parsed.
    """
    return (event for event, _ in read_placed_events(path))


def read_placed_events(path: Path) -> Iterator[tuple[Event, int]]:
    """Yield the events in a journal one by one, as ``read_journal`` does, each with its place: the number of
    bytes before its line."""
    place = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    yield _parse_line(line), place
                except ValidationError as error:
                    if not line.endswith(b"\n"):
                        return
                    first = error.errors()[0]
                    what = f"invalid journal event: {first['msg']}"
                    raise AuthorError(Problem(what, "", Place(str(path), number))) from None
            place += len(line)


def read_events_at(path: Path, places: Iterable[int]) -> Iterator[Event]:
    """Yield the events at these places. Raise ``AuthorError`` if the journal is gone or was changed."""
    try:
        with path.open("rb") as file:
            for place in places:
                file.seek(place)
                yield event_from_json(file.readline())
    except (OSError, ValidationError):
        raise AuthorError(Problem("the journal was removed or changed", "", Place(str(path)))) from None


def read_first_event(path: Path) -> Event | None:
    """Return the first event in a journal without reading the rest of the file, or ``None`` if its line is
    not an event."""
    with path.open("rb") as file:
        line = file.readline()
    try:
        return _parse_line(line)
    except ValidationError:
        return None
