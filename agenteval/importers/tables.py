"""Reads the rows of a CSV file as records: the first line contains the column names, and each row is a
conversation.

A row that cannot be read is reported with its line. Reading continues unless the start of the next row is
unknown."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agenteval.core.errors import did_you_mean
from agenteval.core.plurals import plural
from agenteval.files.data_rows import EXCEL_SEPARATOR, LARGEST_CELL, csv_problem, find_delimiter
from agenteval.importers.dataset_rows import ANSWER_KEYS, QUESTION_KEYS
from agenteval.importers.exchanges import HISTORY, MESSAGE_KEYS, find_list
from agenteval.importers.sources import NumberedLine, Source, raw_lines_of
from agenteval.messages.log_entry import LogEntry, Record, UnreadableRecord

_SUFFIXES = (".csv", ".csv.gz")
_MARK = "\ufeff"


def is_table(source: Source) -> bool:
    return source.display_name.lower().endswith(_SUFFIXES)


def rows_of(source: Source) -> Iterator[LogEntry]:
    lines = _Lines(raw_lines_of(source))
    first = next((line for line in lines if line.strip()), "")
    delimiter = find_delimiter(first)
    if first.startswith(EXCEL_SEPARATOR):
        first = next((line for line in lines if line.strip()), "")
    if lines.broken:
        yield from lines.report(source)
        return
    if not first:
        return
    csv.field_size_limit(LARGEST_CELL)
    reader = csv.reader(_chained(first, lines), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    begins = lines.number
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            why = f"{csv_problem(error, lines.number, begins)}; all rows from here on were skipped"
            yield UnreadableRecord(f"{source.display_name}:{begins}", f"not CSV: {why}")
            return
        if lines.broken or cells is None:
            yield from lines.report(source)
            return
        where = f"{source.display_name}:{begins}"
        if header is None:
            header = [cell.strip() for cell in cells]
            if why := _header_problem(header):
                yield UnreadableRecord(where, why)
                return
        elif why := lines.why_not_text(since=begins):
            yield UnreadableRecord(where, why)
        elif any(cell.strip() for cell in cells):
            yield _row_record(header, cells, where)
        begins = lines.number + 1


def _row_record(header: Sequence[str], cells: Sequence[str], where: str) -> LogEntry:
    if len(cells) != len(header):
        why = f"the row has {plural(len(cells), 'cell')}, but the header has {plural(len(header), 'column')}"
        return UnreadableRecord(
            where, f"{why}: put values that contain a comma or a line break in double quotes"
        )
    found = {name: cell for name, cell in zip(header, cells, strict=True) if cell.strip()}
    if empty := next((name for name in _needed_columns(header, found) if name not in found), ""):
        return UnreadableRecord(where, f"the cell in column '{empty}' is empty, so the message is unknown")
    return Record(found, where)


def _needed_columns(header: Sequence[str], found: Mapping[str, str]) -> Sequence[str]:
    """Return the columns in which a row must have a cell. Next to a question and an answer, a column named
    like a conversation (``items``, ``turns``) may hold anything: a cell that holds a list replaces them, but
    for ``history``, which precedes the question."""
    conversation = _conversation_column(header)
    row = [name for names in (QUESTION_KEYS, ANSWER_KEYS) if (name := _column(header, names))]
    if conversation and (conversation == "messages" or len(row) < 2):
        return [conversation]
    lists = [name for name in _conversation_columns(header) if find_list(found.get(name)) is not None]
    is_whole = lists and (lists != [HISTORY] or row[0] not in found)
    return [] if is_whole else row


def _header_problem(header: Sequence[str]) -> str:
    """Return the reason why the rows below a header cannot be read, or an empty string if they can
    be read."""
    if twice := next((name for name in header if name and header.count(name) > 1), ""):
        return f"two columns are named '{twice}', which is ambiguous"
    if _conversation_column(header):
        return ""
    missing = [names for names in (QUESTION_KEYS, ANSWER_KEYS) if not _column(header, names)]
    if not missing:
        return ""
    wanted = " and ".join(f"a column {_either(names)}" for names in missing)
    near = next(
        (near for name in header if (near := did_you_mean(name, sum(missing, ()))).startswith("did")), ""
    )
    there = ", ".join(name or "''" for name in header[:12])
    return f"the header needs {wanted}, but it has {there}" + (
        f"; {near}" if near else "; write an importer (docs/importers.md)"
    )


def _either(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _column(header: Sequence[str], names: Sequence[str]) -> str:
    return next((name for name in names if name in header), "")


def _conversation_column(header: Sequence[str]) -> str:
    """Return the name of the column that contains complete conversations as JSON, or an empty string if there
    is none."""
    return next(iter(_conversation_columns(header)), "")


def _conversation_columns(header: Sequence[str]) -> list[str]:
    return [name for name in MESSAGE_KEYS if name in header and name != "input"]


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


class _Lines:
    """The decoded lines of a file, with their line numbers. ``broken`` is the reason why reading stopped
    before the end of the file."""

    def __init__(self, lines: Iterable[NumberedLine | UnreadableRecord]) -> None:
        self._lines = iter(lines)
        self.number = 0
        self.broken = ""
        self._where = ""
        self._not_text = (0, 0)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        if isinstance(line, UnreadableRecord):
            self.broken, self._where = line.reason, line.where
            raise StopIteration
        self.number = line.number
        try:
            text = line.data.decode("utf-8")
        except UnicodeDecodeError as error:
            self._not_text = (line.number, error.start + 1)
            text = line.data.decode("utf-8", "replace")
        return text.removeprefix(_MARK) if line.number == 1 else text

    def why_not_text(self, since: int) -> str:
        """Describe the first encoding error from line ``since`` onward. Return an empty string if there is
        none."""
        line, byte = self._not_text
        return f"not UTF-8 at byte {byte} of line {line}: save the file as UTF-8" if line >= since else ""

    def report(self, source: Source) -> Iterator[UnreadableRecord]:
        if self.broken:
            yield UnreadableRecord(self._where or f"{source.display_name}:{self.number}", self.broken)
