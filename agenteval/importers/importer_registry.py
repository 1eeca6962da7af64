"""Loads the importers for log dialects (plugins), selects one for each record, and reports importers that
fail.

All importers, including the built-in ones, are registered in the same entry point group. Importers from other
packages are tried first, so that users can replace built-in importers; within both groups the order is
alphabetical. The first importer that matches a record reads it. A record that no importer matches must be in
a built-in form."""

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
_INSTALL_AGAIN = "reinstall agenteval: this importer was registered by another version"


@cache
def importers() -> tuple[Importer, ...]:
    """Return all installed importers in the order in which they are tried. Raise ``AuthorError`` if an
    importer cannot be loaded, because there is no way to know which records it would have read."""
    found = sorted(entry_points(group=GROUP), key=lambda entry: (_is_builtin(entry), entry.name))
    return tuple(_load(entry) for entry in found)


@cache
def has_only_builtin() -> bool:
    """Check whether all installed importers are agenteval's own, which judge a list by each of its items."""
    return all(map(_is_builtin, entry_points(group=GROUP)))


def _is_builtin(entry: EntryPoint) -> bool:
    return entry.module.partition(".")[0] == "agenteval"


def _load(entry: EntryPoint) -> Importer:
    try:
        importer: Importer = entry.load()
        _ = importer.name, importer.matches, importer.read
    except Exception as error:
        what = f"the importer '{entry.name}' ({entry.value}) cannot be loaded: {_describe_error(error)}"
        remedy = _INSTALL_AGAIN if _is_builtin(entry) else "fix or uninstall the package that provides it"
        raise AuthorError(Problem(what, remedy)) from error
    return importer


class _ImporterFailure(NamedTuple):
    """A description of an importer's failure."""

    why: str


def find_importer(record: Any) -> Importer | _ImporterFailure | None:
    """Return the importer that reads a record, or ``None`` if no importer matches."""
    return _find_match(record, importers())


def _find_match(record: Any, candidates: Sequence[Importer]) -> Importer | _ImporterFailure | None:
    for importer in candidates:
        try:
            if importer.matches(record):
                return importer
        except Exception as error:
            return _failure(importer, error)
    return None


def _failure(importer: Importer, error: Exception) -> _ImporterFailure:
    return _ImporterFailure(f"the importer '{importer.name}' failed: {_describe_error(error)}")


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


# ── records ──────────────────────────────────────────────────────────────────────────────────────


def import_entries(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """Convert records to OpenAI's format using the importers for their dialects, and join records that belong
    to the same conversation. Records that no importer matches pass through unchanged."""
    return _import(entries, importers())


class _RecordBatch(NamedTuple):
    """The records of one conversation that have been read so far."""

    importer: LineImporter
    records: list[Record]
    values: list[Any]

    def try_append(self, entry: LogEntry) -> bool:
        """Append the record if it belongs to the conversation. Return True if the record was appended. If an
        importer fails here, the batch ends."""
        if isinstance(entry, UnreadableRecord):
            return False
        try:
            belongs = self.importer.goes_on(self.values, entry.value)
        except Exception:
            return False  # the record is matched again, and the failure is reported then
        if belongs:
            self.records.append(entry)
            self.values.append(entry.value)
        return belongs


def _import(entries: Iterable[LogEntry], candidates: Sequence[Importer]) -> Iterator[LogEntry]:
    batch: _RecordBatch | None = None
    seen_ids: set[tuple[str, str]] = set()
    for entry in entries:
        if batch is not None and batch.try_append(entry):
            continue
        if batch is not None:
            yield from _read_batch(batch, candidates, seen_ids)
            batch = None
        if isinstance(entry, UnreadableRecord):
            yield entry
            continue
        match _find_match(entry.value, candidates):
            case None:
                yield entry
            case _ImporterFailure(why):
                yield UnreadableRecord(entry.where, why)
            case LineImporter() as importer if (new := _RecordBatch(importer, [], [])).try_append(entry):
                batch = new
            case importer:
                yield from _read_records(importer, [entry], entry.value, candidates)
    if batch is not None:
        yield from _read_batch(batch, candidates, seen_ids)


def _read_batch(
    batch: _RecordBatch, candidates: Sequence[Importer], seen_ids: set[tuple[str, str]]
) -> Iterator[LogEntry]:
    """Convert a finished batch. If records of another conversation interrupted the batch, report an error,
    because only part of the conversation would be checked otherwise."""
    for entry in _read_records(batch.importer, batch.records, tuple(batch.values), candidates):
        is_left = isinstance(entry, UnreadableRecord) or any(entry is record for record in batch.records)
        identity = "" if isinstance(entry, UnreadableRecord) or is_left else entry.value.get("id")
        key = batch.importer.name, str(identity)
        if identity and key in seen_ids:
            why = f"{identity} began earlier, with other lines in between: sort the lines by this ID"
            yield UnreadableRecord(entry.where, why)
        else:
            seen_ids.add(key)
            yield entry


def _read_records(
    importer: Importer, records: Sequence[Record], value: Any, candidates: Sequence[Importer]
) -> Iterator[LogEntry]:
    """Yield the conversations in ``value``, which is the content of the records. If it contains no
    conversations, the other importers are tried."""
    where = records[0].where
    try:
        found = [_to_record(each) for each in importer.read(value)]
    except AuthorError as error:
        yield UnreadableRecord(where, str(error))
    except Exception as error:
        yield UnreadableRecord(where, _failure(importer, error).why)
    else:
        logged = value if len(records) == 1 else MISSING
        unplaced = {each.phrase: each for record in records for each in record.around}
        yield from (each._replace(where=where, logged=logged, around=(*unplaced.values(),)) for each in found)
        if not found:
            yield from _import(records, [each for each in candidates if each is not importer])


def _to_record(found: Any) -> Record:
    """Convert the return value of an importer to a record. Raise ``TypeError`` if the value is not a
    conversation."""
    if not isinstance(found, Mapping) or not isinstance(found.get("messages"), list):
        raise TypeError(f"it returned {type(found).__name__}; expected an object with a `messages` list")
    notes = found.get("notes") or ()
    fields = {key: value for key, value in found.items() if key not in _RECORD_KEYS}
    return Record(fields, "", outcome=found.get("outcome", MISSING), notes=tuple(map(str, notes)))
