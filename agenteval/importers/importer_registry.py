"""The importers of dialects: which there are, which of them reads a record, what comes of one that fails.

They are found by the entry points of one group, ours among them. Those of other packages are asked first,
so that a user can replace one of ours; each kind in the order of its names. The first that matches reads.
What none matches is in a form that is built in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Problem
from agenteval.core.protocols import Importer, LineImporter
from agenteval.messages.log_entry import LogEntry, Record, UnreadableRecord
from agenteval.messages.record_paths import MISSING

GROUP = "agenteval.importers"
_RECORD_KEYS = ("notes", "outcome")
_INSTALL_AGAIN = "install agenteval again: what is installed was declared by another version of it"


@cache
def importers() -> tuple[Importer, ...]:
    """All that are installed, in the order in which they are asked. Raises ``AuthorError`` for one that
    cannot be loaded: what it would have read, nobody knows."""
    found = sorted(entry_points(group=GROUP), key=lambda entry: (_is_own(entry), entry.name))
    return tuple(_loaded(entry) for entry in found)


def _is_own(entry: EntryPoint) -> bool:
    return entry.module.partition(".")[0] == "agenteval"


def _loaded(entry: EntryPoint) -> Importer:
    try:
        importer: Importer = entry.load()
        _ = importer.name, importer.matches, importer.read
    except Exception as error:
        what = f"the importer '{entry.name}' ({entry.value}) cannot be loaded: {_describe_error(error)}"
        remedy = _INSTALL_AGAIN if _is_own(entry) else "fix or uninstall the package that it comes with"
        raise AuthorError(Problem(what, remedy)) from error
    return importer


class _Failed(NamedTuple):
    """An importer that broke, in words."""

    why: str


def find_importer(record: Any) -> Importer | _Failed | None:
    """Who reads a record; ``None``: it is in no dialect."""
    return _matching(record, importers())


def _matching(record: Any, asked: Sequence[Importer]) -> Importer | _Failed | None:
    for importer in asked:
        try:
            if importer.matches(record):
                return importer
        except Exception as error:
            return _failed(importer, error)
    return None


def _failed(importer: Importer, error: Exception) -> _Failed:
    return _Failed(f"the importer '{importer.name}' failed: {_describe_error(error)}")


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


# ── records ──────────────────────────────────────────────────────────────────────────────────────


def import_entries(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """Records of a dialect in OpenAI's form, those that one conversation is written in put together; all
    else as it is."""
    return _imported(entries, importers())


class _RecordBatch(NamedTuple):
    """Records of one conversation, so far."""

    importer: LineImporter
    records: list[Record]
    values: list[Any]

    def try_append(self, entry: LogEntry) -> bool:
        """Whether the row goes on. An importer that breaks here ends it."""
        if isinstance(entry, UnreadableRecord):
            return False
        try:
            is_taken = self.importer.goes_on(self.values, entry.value)
        except Exception:
            return False  # it is asked of the record once more, and what it fails of is reported then
        if is_taken:
            self.records.append(entry)
            self.values.append(entry.value)
        return is_taken


def _imported(entries: Iterable[LogEntry], asked: Sequence[Importer]) -> Iterator[LogEntry]:
    row: _RecordBatch | None = None
    begun: set[tuple[str, str]] = set()
    for entry in entries:
        if row is not None and row.try_append(entry):
            continue
        if row is not None:
            yield from _put_together(row, asked, begun)
            row = None
        if isinstance(entry, UnreadableRecord):
            yield entry
            continue
        match _matching(entry.value, asked):
            case None:
                yield entry
            case _Failed(why):
                yield UnreadableRecord(entry.where, why)
            case LineImporter() as importer if (new := _RecordBatch(importer, [], [])).try_append(entry):
                row = new
            case importer:
                yield from _read(importer, [entry], entry.value, asked)
    if row is not None:
        yield from _put_together(row, asked, begun)


def _put_together(
    row: _RecordBatch, asked: Sequence[Importer], begun: set[tuple[str, str]]
) -> Iterator[LogEntry]:
    """What a row amounts to. A conversation that other records come between would be checked in parts."""
    for entry in _read(row.importer, row.records, tuple(row.values), asked):
        is_left = isinstance(entry, UnreadableRecord) or any(entry is record for record in row.records)
        identity = "" if isinstance(entry, UnreadableRecord) or is_left else entry.value.get("id")
        key = row.importer.name, str(identity)
        if identity and key in begun:
            why = f"{identity} began further up, and other lines came between: sort the lines by it"
            yield UnreadableRecord(entry.where, why)
        else:
            begun.add(key)
            yield entry


def _read(
    importer: Importer, records: Sequence[Record], value: Any, asked: Sequence[Importer]
) -> Iterator[LogEntry]:
    """The conversations in ``value``, which is what the records hold. Where there are none, the records are
    left to the others."""
    where = records[0].where
    try:
        found = [_conversation(each) for each in importer.read(value)]
    except AuthorError as error:
        yield UnreadableRecord(where, str(error))
    except Exception as error:
        yield UnreadableRecord(where, _failed(importer, error).why)
    else:
        logged = value if len(records) == 1 else MISSING
        around = {each.phrase: each for record in records for each in record.around}
        yield from (each._replace(where=where, logged=logged, around=(*around.values(),)) for each in found)
        if not found:
            yield from _imported(records, [each for each in asked if each is not importer])


def _conversation(found: Any) -> Record:
    """Raises ``TypeError`` for what is not a conversation."""
    if not isinstance(found, Mapping) or not isinstance(found.get("messages"), list):
        raise TypeError(f"it gave {type(found).__name__}, expected an object with a list of messages")
    notes = found.get("notes") or ()
    fields = {key: value for key, value in found.items() if key not in _RECORD_KEYS}
    return Record(fields, "", outcome=found.get("outcome", MISSING), notes=tuple(map(str, notes)))
