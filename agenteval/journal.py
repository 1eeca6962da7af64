"""The journal: the events of a run as JSON Lines, append-only; the truth that reports are made of."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from pydantic import TypeAdapter, ValidationError

from agenteval.errors import AuthorError, Place, Problem
from agenteval.event import Event, SampleFinished

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def to_json(event: Event) -> str:
    """One line. Half a surrogate pair, which no file can hold, becomes U+FFFD: an event that cannot be
    written would cost the journal."""
    try:
        return event.model_dump_json()
    except ValueError:
        return json.dumps(_whole(event.model_dump()), default=str)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list | tuple) else value


def from_json(text: str | bytes) -> Event:
    return _EVENT.validate_json(text)


class Journal:
    """Writes events, a line each: flushed at once, so that what is done survives a killed process,
    and synced to disk after samples. A context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._synced = 0.0
        self._file: IO[str] = path.open("x", encoding="utf-8", newline="\n")

    def __call__(self, event: Event) -> None:
        self._file.write(to_json(event) + "\n")
        self._file.flush()
        # A flush survives a killed process; a sync, a power cut. It blocks, so it is not done for each
        # of a thousand instant samples.
        if isinstance(event, SampleFinished) and time.monotonic() - self._synced >= 0.2:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def read(path: Path) -> Iterator[Event]:
    """The events of a journal. A torn last line (the process was killed while writing it) is left
    out; anything else unreadable raises ``AuthorError`` with its line."""
    lines: Sequence[bytes] = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield from_json(line)
        except ValidationError as error:
            if number == len(lines):
                return
            first = error.errors()[0]
            what = f"not an event of a journal: {first['msg']}"
            raise AuthorError(Problem(what, "", Place(str(path), number))) from None
