"""Finds log files, whether or not they are compressed with gzip, and reads their lines and JSON.

A file that cannot be opened is an author's error. Unreadable content is reported with its line."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from glob import glob
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from pydantic_core import from_json

from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.files.journal import check_journal_version
from agenteval.files.regular_files import is_device, wrap_read_errors
from agenteval.files.scenario_files import is_pattern
from agenteval.messages.chat import replace_json_surrogates
from agenteval.messages.log_entry import UnreadableRecord

SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".json", ".json.gz")
JOURNAL = "events.jsonl"
STDIN = "<stdin>"
_PIECE = 1 << 18
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Source(NamedTuple):
    """A file to read, with the name used for it in messages."""

    path: Path
    display_name: str


def find_sources(
    names: Iterable[str], cwd: Path, *, warn: Callable[[str], None] = lambda _: None
) -> list[Source]:
    """Return the log files that are specified on the command line. For a folder, these are the files in it
    that contain records; for a run folder, only the journal. ``warn`` is called for everything that is
    skipped. Raise ``AuthorError`` if a path does not exist or a file cannot be opened."""
    found: list[Source] = []
    problems: list[Problem] = []
    for name in names:
        path = cwd / name
        if os.path.isdir(path):
            inside = _record_files(path)
            found += [Source(each, _display_name(each, cwd)) for each in inside]
            left_out = _skipped_folders(path)
            if not inside:
                what = f"{name}: the directory has no recorded conversations{left_out and f' ({left_out})'}"
                problems.append(Problem(what, f"supported file endings: {', '.join(SUFFIXES)}"))
            elif left_out:
                warn(f"{left_out} in {name}; pass them too to include them")
        elif os.path.exists(path):
            found.append(Source(path, _display_name(path, cwd)))
        elif is_pattern(name) and (matching := sorted(glob(name, root_dir=cwd, recursive=True))):
            files = [cwd / each for each in matching if (cwd / each).is_file()]
            found += [Source(each, _display_name(each, cwd)) for each in files]
        else:
            problems.append(Problem(f"{name}: no such file or directory", _suggest_name(path)))
    problems += [problem for source in found for problem in _file_problems(source)]
    if problems:
        raise AuthorError(*problems)
    return list(dict.fromkeys(found))


def _record_files(folder: Path) -> list[Path]:
    if (folder / JOURNAL).is_file():
        return [folder / JOURNAL]
    # Hidden files are skipped; macOS writes one next to each file of a copied folder.
    shown = (path for path in folder.iterdir() if not path.name.startswith("."))
    return sorted(path for path in shown if path.name.lower().endswith(SUFFIXES) and path.is_file())


def _skipped_folders(folder: Path) -> str:
    """Describe the subfolders of a folder, which are not read. Return an empty string if there are none or if
    the folder is a run folder."""
    if (folder / JOURNAL).is_file():
        return ""
    count = sum(each.is_dir() and not each.name.startswith(".") for each in folder.iterdir())
    return f"skipped {count:,} subdirector{'ies' if count > 1 else 'y'}" if count else ""


def deduplicate_sources(sources: Iterable[Source], warn: Callable[[str], None]) -> list[Source]:
    """Remove duplicate sources: the same file under a different name, or a file that was specified twice.
    ``warn`` is called for each duplicate."""
    known: dict[str, Source] = {}
    for source in sources:
        first = known.setdefault(os.path.realpath(source.path), source)
        if first is not source:
            other = (
                f" and {source.display_name} are the same file"
                if first.display_name != source.display_name
                else " is specified twice"
            )
            warn(f"{first.display_name}{other} and was read once")
    return list(known.values())


def _suggest_name(path: Path) -> str:
    from agenteval.core.errors import did_you_mean

    try:
        near = did_you_mean(path.name, (each.name for each in path.parent.iterdir()))
    except OSError:
        return ""
    return near if near.startswith("did you mean") else ""


def _display_name(path: Path, cwd: Path) -> str:
    try:
        return path.relative_to(cwd).as_posix()
    except ValueError:
        return str(path)


def _file_problems(source: Source) -> Iterator[Problem]:
    try:
        with source.path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        yield Problem(f"the file cannot be read: {error.strerror}", "", Place(source.display_name))
        return
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        yield Problem("the file is UTF-16", "save it as UTF-8", Place(source.display_name))
    elif start == b"\x28\xb5\x2f\xfd":
        yield Problem(
            "the file is compressed with zstd", "decompress it, or use gzip", Place(source.display_name)
        )
    elif start.startswith(b"PK\x03\x04"):
        yield _zip_problem(source)


def _zip_problem(source: Source) -> Problem:
    if source.display_name.lower().endswith(".eval"):
        convert = "inspect log convert --to json --output-dir logs FILE.eval"
        remedy = f"convert it to JSON with `{convert}` and use the result"
        return Problem("the file is an Inspect log (a zip archive)", remedy, Place(source.display_name))
    return Problem("the file is a zip archive", "decompress it, or use gzip", Place(source.display_name))


# ── lines ────────────────────────────────────────────────────────────────────────────────────────


class NumberedLine(NamedTuple):
    number: int
    data: bytes


def lines_of(source: Source) -> Iterator[NumberedLine | UnreadableRecord]:
    """Yield the non-empty lines, stripped of surrounding white space and byte order marks."""
    for line in raw_lines_of(source):
        if isinstance(line, UnreadableRecord):
            yield line
        elif stripped := line.data.removeprefix(BYTE_ORDER_MARK).strip():
            yield NumberedLine(line.number, stripped)


def raw_lines_of(source: Source) -> Iterator[NumberedLine | UnreadableRecord]:
    """Yield the lines unchanged. If compressed data is damaged, yield the lines before the damage, followed
    by the error."""
    number = 0
    try:
        with open_log(source.path) as file:
            for number, data in enumerate(file, start=1):
                yield NumberedLine(number, data)
    except (OSError, EOFError, zlib.error) as error:
        why = "the compressed data is cut off" if isinstance(error, EOFError) else f"cannot be read: {error}"
        yield UnreadableRecord(f"{source.display_name}:{number + 1}", why, hides_rest=True)


def open_log(path: Path) -> IO[bytes]:
    """Open a log to read its bytes, which are decompressed if necessary."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if packed:
        return cast(IO[bytes], BufferedReader(_UnpackedGzip(path), _PIECE))
    return path.open("rb", buffering=_PIECE)


class _UnpackedGzip(RawIOBase):
    """The content of a gzip file. ``GzipFile`` fills a complete buffer at a time and, if the data ends
    prematurely, discards what it has decompressed so far. This class returns that data first."""

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


def is_journal(source: Source) -> bool:
    """Check whether a file is the journal of an agenteval run, by reading the beginning of its first line,
    which may be the whole file."""
    with suppress(OSError, EOFError, zlib.error), open_log(source.path) as file:
        while start := file.readline(_PIECE):
            if stripped := start.removeprefix(BYTE_ORDER_MARK).strip():
                return b'"run_started"' in stripped[:200]
    return False


def check_journals(sources: Iterable[Source]) -> None:
    """Raise ``AuthorError`` if a journal was written by an incompatible version of agenteval."""
    for source in filter(is_journal, sources):
        first = next(lines_of(source))
        try:
            event = parse(first.data) if isinstance(first, NumberedLine) else None
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            check_journal_version(event, Place(source.display_name, 1))


def parse(data: bytes) -> Any:
    """Parse JSON encoded in UTF-8. Values that strict JSON does not allow (NaN) become null. An unpaired
    surrogate becomes U+FFFD. Raise ``ValueError`` or ``RecursionError`` if the data cannot be parsed."""
    try:
        return from_json(data, allow_inf_nan=False)  # takes half the time, but accepts only strict JSON
    except ValueError:
        return json.loads(replace_json_surrogates(data.decode("utf-8")), parse_constant=no_constant)


def no_constant(_: str) -> None:
    """Replace NaN and infinite numbers with ``None``."""


# ── streams ──────────────────────────────────────────────────────────────────────────────────────


def is_stream(path: Path) -> bool:
    """Check whether a path can be read only once, because it is a pipe, a terminal, or a shell's process
    substitution."""
    return os.path.exists(path) and not path.is_file() and not path.is_dir()


def spool_stream(stream: IO[bytes], folder: Path, shown: str = STDIN) -> Source:
    """Copy a stream (such as stdin) to a temporary file, because records are read more than once. Raise
    ``AuthorError`` if the compression or the encoding is not supported."""
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    source = Source(Path(file.name), shown)
    if problems := list(_file_problems(source)):
        raise AuthorError(*problems)
    return source


def spool_path(path: Path, folder: Path, shown: str) -> Source:
    """Copy a stream that has a path, as ``spool_stream`` does, opening the path only once. Raise
    ``AuthorError`` under the same conditions, or if the path cannot be opened."""
    with wrap_read_errors("the stream", Place(shown)):
        if is_device(path):
            raise AuthorError(Problem("it is a device, not a file", "", Place(shown)))
        with path.open("rb", buffering=0) as stream:
            return spool_stream(stream, folder, shown)
