"""Records in files: JSON Lines, whole JSON documents, gzip or not, read piece by piece.

A record that cannot be read is told with its line and the others go on; a file that cannot be opened is
the author's mistake.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias, cast

from agenteval.chat import whole_json
from agenteval.errors import AuthorError, Place, Problem
from agenteval.recorded.conversation import MESSAGES
from agenteval.recorded.messages import is_message

SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".json", ".json.gz")
JOURNAL = "events.jsonl"
STDIN = "<stdin>"
_PIECE = 1 << 18
_LOOK_AHEAD = 5
"""Lines that are tried before a file whose first line is no JSON is taken for one document."""


class Source(NamedTuple):
    """A file to read, and its name in messages."""

    path: Path
    shown: str


class Record(NamedTuple):
    """A JSON value and its place, ``file:line``."""

    value: Any
    where: str


class Unreadable(NamedTuple):
    """What could not be read, and why."""

    where: str
    why: str


Entry: TypeAlias = Record | Unreadable


def sources_of(names: Iterable[str], cwd: Path) -> list[Source]:
    """The files that the command line names: files as they are, of folders those with records (a run's
    folder: its journal). Raises ``AuthorError`` for what does not exist or cannot be opened."""
    found: list[Source] = []
    problems: list[Problem] = []
    for name in names:
        path = cwd / name
        if path.is_dir():
            inside = _in_folder(path)
            found += [Source(each, _shown(each, cwd)) for each in inside]
            if not inside:
                what = f"{name}: the folder holds no recorded conversations"
                problems.append(Problem(what, f"files end in {', '.join(SUFFIXES)}"))
        elif path.exists():
            found.append(Source(path, _shown(path, cwd)))
        else:
            problems.append(Problem(f"{name}: there is no such file or folder", _neighbour(path)))
    problems += [problem for source in found for problem in _unopenable(source)]
    if problems:
        raise AuthorError(*problems)
    return list(dict.fromkeys(found))


def _in_folder(folder: Path) -> list[Path]:
    if (folder / JOURNAL).is_file():
        return [folder / JOURNAL]
    # What begins with a dot is hidden: among it what macOS writes beside each file of a copied folder.
    shown = (path for path in folder.iterdir() if not path.name.startswith("."))
    return sorted(path for path in shown if path.name.lower().endswith(SUFFIXES) and path.is_file())


def _neighbour(path: Path) -> str:
    from agenteval.errors import did_you_mean

    try:
        near = did_you_mean(path.name, (each.name for each in path.parent.iterdir()))
    except OSError:
        return ""
    return near if near.startswith("did you mean") else ""


def _shown(path: Path, cwd: Path) -> str:
    try:
        return path.relative_to(cwd).as_posix()
    except ValueError:
        return str(path)


def _unopenable(source: Source) -> Iterator[Problem]:
    try:
        with source.path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        yield Problem(f"the file cannot be read: {error.strerror}", "", Place(source.shown))
        return
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        yield Problem("the file is UTF-16", "save it as UTF-8", Place(source.shown))
    elif start == b"\x28\xb5\x2f\xfd":
        yield Problem("the file is packed with zstd", "unpack it, or use gzip", Place(source.shown))
    elif start.startswith(b"PK\x03\x04"):
        yield Problem("the file is a zip archive", "unpack it, or use gzip", Place(source.shown))


# ── lines ────────────────────────────────────────────────────────────────────────────────────────


class Line(NamedTuple):
    number: int
    data: bytes


def lines_of(source: Source) -> Iterator[Line | Unreadable]:
    """The lines that are not blank, without byte order marks; of packed data that are damaged, those
    before the damage."""
    number = 0
    try:
        with _opened(source.path) as file:
            for number, data in enumerate(file, start=1):
                stripped = data.removeprefix(b"\xef\xbb\xbf").strip()
                if stripped:
                    yield Line(number, stripped)
    except (OSError, EOFError, zlib.error) as error:
        why = "the packed data end too early" if isinstance(error, EOFError) else f"cannot be read: {error}"
        yield Unreadable(f"{source.shown}:{number + 1}", why)


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if packed:
        return cast(IO[bytes], BufferedReader(_Unpacked(path), _PIECE))
    return path.open("rb", buffering=_PIECE)


class _Unpacked(RawIOBase):
    """What a gzip file holds. ``GzipFile`` fills a whole buffer at once, and where its data end too early
    what it had unpacked by then would be lost with it; here it is given first."""

    def __init__(self, path: Path) -> None:
        self._file = gzip.GzipFile(path, "rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._file.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def entries_of(source: Source) -> Iterator[Entry]:
    """The records of a file, in order; those of a document as if each stood in a line of its own."""
    if is_document(source):
        yield from _document(source)
        return
    for line in lines_of(source):
        yield line if isinstance(line, Unreadable) else _parsed_line(line, source)


def is_journal(source: Source) -> bool:
    """Whether a file is the journal of a run of ours: by its first line."""
    first = next(lines_of(source), None)
    return isinstance(first, Line) and b'"run_started"' in first.data[:200]


def is_document(source: Source) -> bool:
    """Whether a file is one JSON document: its brackets stand in lines of their own, none of its first lines
    is a record, or its only line is a list of conversations."""
    ahead = [line for line, _ in zip(lines_of(source), range(_LOOK_AHEAD), strict=False)]
    lines = [line.data for line in ahead if isinstance(line, Line)]
    if not lines or lines[0][:1] not in (b"[", b"{"):
        return False
    if len(lines) == 1:
        only = _value(lines[0])
        return isinstance(only, list | dict) and conversations_in(only) is not None
    if lines[0] in (b"[", b"{"):
        return True
    # Lines that all begin like objects, and are none, are a log of broken lines.
    is_log = all(line.startswith(b"{") for line in lines)
    return not is_log and not any(isinstance(_value(line), list | dict) for line in lines)


def _value(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _parsed_line(line: Line, source: Source) -> Entry:
    where = f"{source.shown}:{line.number}"
    try:
        return Record(parse(line.data), where)
    except UnicodeDecodeError as error:
        return Unreadable(where, f"not UTF-8 at byte {error.start + 1} of the line")
    except RecursionError:
        return Unreadable(where, "nested too deeply")
    except ValueError as error:
        return Unreadable(where, f"not JSON: {_told(error)}")


def parse(data: bytes) -> Any:
    """JSON in UTF-8. What no strict JSON has (NaN) becomes null, half a surrogate pair U+FFFD."""
    text = data.decode("utf-8")
    return json.loads(whole_json(text), parse_constant=_no_constant)


def _no_constant(_: str) -> None:
    return None


def _told(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        column = (
            f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        )
        return f"{error.msg} at {column}"
    return str(error).partition(";")[0]


# ── documents ────────────────────────────────────────────────────────────────────────────────────


def conversations_in(value: Any) -> list[Any] | None:
    """The conversations of a document that holds several; ``None`` if it is one itself."""
    if isinstance(value, list):
        return value if not value or all(map(_is_conversation, value)) else None
    if isinstance(value, dict):
        for key in ("conversations", "data", "records", "rows", "samples", "results", *MESSAGES):
            inner = value.get(key)
            if isinstance(inner, list) and inner and all(map(_is_conversation, inner)):
                return inner
    return None


def _is_conversation(value: Any) -> bool:
    if isinstance(value, dict):
        return any(isinstance(value.get(key), list) for key in MESSAGES)
    return isinstance(value, list) and any(map(is_message, value))


def _document(source: Source) -> Iterator[Entry]:
    data = b"".join(_raw(source))
    try:
        text = data.decode("utf-8-sig")
        value = json.loads(whole_json(text), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        yield Unreadable(f"{source.shown}:{line}", "not UTF-8")
        return
    except json.JSONDecodeError as error:
        yield Unreadable(f"{source.shown}:{error.lineno}", f"not JSON: {error.msg} at column {error.colno}")
        return
    except (ValueError, RecursionError) as error:
        yield Unreadable(f"{source.shown}:1", f"not JSON: {str(error).partition(';')[0]}")
        return
    inside = conversations_in(value)
    if inside is None:
        yield Record(value, f"{source.shown}:1")
        return
    lines = _lines_of_items(text) if isinstance(value, list) else []
    for index, item in enumerate(inside):
        yield Record(item, f"{source.shown}:{lines[index] if index < len(lines) else 1}")


def _raw(source: Source) -> Iterator[bytes]:
    try:
        with _opened(source.path) as file:
            yield from file
    except (OSError, EOFError, zlib.error):
        return  # what is missing shows as JSON that is not whole


_GAP = re.compile(r"[\s,]*")


def _lines_of_items(text: str) -> list[int]:
    """The line on which each item of a list begins."""
    decoder = json.JSONDecoder()
    at = text.index("[") + 1
    lines: list[int] = []
    counted, line = 0, 1
    while True:
        at = _GAP.match(text, at).end()  # type: ignore[union-attr]
        if at >= len(text) or text[at] == "]":
            return lines
        line += text.count("\n", counted, at)
        counted = at
        lines.append(line)
        _, at = decoder.raw_decode(text, at)


def spooled(stream: IO[bytes], folder: Path) -> Source:
    """Standard input in a file of its own: records are read more than once."""
    path = folder / f"stdin-{os.getpid()}"
    with path.open("wb") as file:
        while piece := stream.read(1 << 20):
            file.write(piece)
    return Source(path, STDIN)
