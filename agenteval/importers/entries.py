"""Yields the records of a log file: JSON Lines (JSONL, NDJSON), or JSON that spans several lines (one
document, or consecutive objects).

A record that cannot be parsed is reported with its line, and reading continues. Only one value is in memory
at a time; of a list of conversations, only one conversation."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from agenteval.importers.cumulative_logs import INTERACTIONS, is_cassette, latest_interactions
from agenteval.importers.dataset_rows import is_row
from agenteval.importers.duplicate_keys import KeyCounts, first_repeated_key, repeated_key
from agenteval.importers.exchanges import MESSAGE_KEYS, is_exchange
from agenteval.importers.importer_registry import find_importer, has_only_builtin, import_entries
from agenteval.importers.list_items import items_of
from agenteval.importers.sources import (
    BYTE_ORDER_MARK,
    NumberedLine,
    Source,
    lines_of,
    no_constant,
    parse,
    raw_lines_of,
)
from agenteval.importers.tables import is_table, rows_of
from agenteval.importers.traces import TracePlaces, group_traces, is_tracer_record
from agenteval.messages.chat import replace_json_surrogates
from agenteval.messages.log_entry import IMPORTER_REMEDY, LogEntry, Record, UnreadableRecord
from agenteval.messages.roles import is_message
from agenteval.messages.unplaced_entries import Unplaced, unplaced_in_record

_LOOK_AHEAD = 5
"""The number of lines to try if the first line of a file is not JSON. If none of these lines is a record, the
file is read as multi-line JSON."""
_LIST_KEYS_OF_MESSAGES = tuple(key for key in MESSAGE_KEYS if key not in ("contents", "items"))
"""The keys of message lists, excluding keys that some libraries use for the parts of a single message."""
_LISTS = ("conversations", "data", "records", "rows", "runs", "samples", "results", "eval_cases")
"""Keys under which a document may contain several conversations."""
_CONTINUATIONS = (b",", b"[", b"{", b":")
"""Line endings that indicate that the value continues on the next line."""


def entries_of(source: Source, traces: TracePlaces | None = None) -> Iterator[LogEntry]:
    """Yield the records of a log file in order. The items of a document are treated as if each were on its
    own line. ``traces`` holds the traces of earlier files; the traces of this file are added to it."""
    read = rows_of if is_table(source) else _list_reader(source) or _value_reader(source)
    yield from group_traces(import_entries(read(source)), traces)


def _value_reader(source: Source) -> Callable[[Source], Iterator[LogEntry]]:
    return _read_document if is_document(source) else _read_lines


def _read_lines(source: Source) -> Iterator[LogEntry]:
    for line in lines_of(source):
        entry = line if isinstance(line, UnreadableRecord) else _parse_line(line, source)
        if isinstance(entry, Record) and is_cassette(entry.value):
            yield from (entry._replace(value=entry.value[INTERACTIONS][at]) for at in _latest_in(entry.value))
        else:
            yield entry


def _list_reader(source: Source) -> Callable[[Source], Iterator[LogEntry]] | None:
    """Return ``_read_list`` if a file is one list of conversations, in which no JSON is damaged. Nothing is
    kept while this is checked. Any other file is read as a whole, which finds out what is wrong with it."""
    try:
        first = next(items_of(source))
        if not has_only_builtin() or find_importer([parse(first.data)]):
            return None  # an importer may read the list as a whole
        return _read_list if _are_conversations(_values_without_repeated_keys(source)) else None
    except _NOT_A_LIST:
        return None


_NOT_A_LIST = (ValueError, RecursionError, OSError, EOFError, zlib.error)


def _values_without_repeated_keys(source: Source) -> Iterator[Any]:
    """Yield the items of a list. Raise ``ValueError`` at the end if one of them repeats a key."""
    keys = KeyCounts()
    for item in items_of(source):
        value = parse(item.data)
        keys.add(value, item.data)
        yield value
    if keys.may_repeat and any(first_repeated_key(item.data) for item in items_of(source)):
        raise ValueError("a repeated key")


def _read_list(source: Source) -> Iterator[LogEntry]:
    where = f"{source.display_name}:1"
    try:
        for item in items_of(source):
            where = f"{source.display_name}:{item.number}"
            yield Record(parse(item.data), where)
    except _NOT_A_LIST:
        yield UnreadableRecord(where, "the file was changed while it was read", hides_rest=True)


def _read_document(source: Source) -> Iterator[LogEntry]:
    broken = False
    for piece in _pieces(raw_lines_of(source)):
        if isinstance(piece, UnreadableRecord):
            yield piece
        elif not (broken and _is_debris(piece)):
            entry: LogEntry | None = None
            for entry in _entries_in(piece, source):
                yield entry
            broken = isinstance(entry, UnreadableRecord)


def is_document(source: Source) -> bool:
    """Check whether the values in a file span several lines: the brackets are on separate lines, or none of
    the first lines is a record. A single line that contains several conversations is also treated as a
    document."""
    ahead = [line for line, _ in zip(lines_of(source), range(_LOOK_AHEAD), strict=False)]
    lines = [line.data for line in ahead if isinstance(line, NumberedLine)]
    if not lines or lines[0][:1] not in (b"[", b"{"):
        return False
    first = _parse_or_none(lines[0])
    if len(lines) == 1:
        return first is None or conversations_in(first) is not None or is_cassette(first)
    if lines[0] in (b"[", b"{"):
        return True
    is_log = isinstance(first, list | dict) or _is_broken_log(lines)
    return not (is_log or any(_is_record(_parse_or_none(line)) for line in _separate_lines(lines)))


def _separate_lines(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines that may be values of their own: all but those that continue a value which is closed
    after them. A value that the end of the file leaves open was cut off, and continues nowhere."""
    is_whole = len(lines) == _LOOK_AHEAD or sum(map(_bracket_balance, lines)) <= 0
    for before, line in pairwise(lines):
        if not (is_whole and before.endswith(_CONTINUATIONS)):
            yield line


def _is_broken_log(lines: Sequence[bytes]) -> bool:
    """Check whether every line begins as an object would and at least one line does not continue on the next
    line."""
    goes_on = all(line.endswith(_CONTINUATIONS) for line in lines[:-1])
    return not goes_on and all(line.startswith(b"{") for line in lines)


def _is_record(value: Any) -> bool:
    """Check whether a value is a record (in any form, known or unknown) rather than a message on its own
    line."""
    return isinstance(value, list | dict) and (_is_conversation(value) or not is_message(value))


def _parse_or_none(data: bytes) -> Any:
    try:
        return parse(data)
    except (ValueError, RecursionError):
        return None


def _parse_line(line: NumberedLine, source: Source) -> LogEntry:
    where = f"{source.display_name}:{line.number}"
    try:
        value = parse(line.data)
        if key := repeated_key(value, line.data):
            return UnreadableRecord(where, _REPEATED.format(key=key))
        return Record(value, where)
    except UnicodeDecodeError as error:
        return UnreadableRecord(where, f"not UTF-8 at byte {error.start + 1} of the line")
    except RecursionError:
        return UnreadableRecord(where, "nested too deeply")
    except ValueError as error:
        return UnreadableRecord(where, f"not JSON: {_describe_json_error(error)}")


_REPEATED = "'{key}' is duplicated in one object, so its value is ambiguous"


def _describe_json_error(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        column = (
            f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        )
        return f"{error.msg.removesuffix(' at')} at {column}{_remedy(error.doc)}"
    return str(error).partition(";")[0]


def _remedy(text: str) -> str:
    """Return the remedy for text whose beginning does not even resemble a record."""
    return "" if _BEGINS.match(text) else f"; {IMPORTER_REMEDY}"


_BEGINS = re.compile(r"\s*(?:\{|\[\s*[\[{\"]|\[\s*\Z)")


# ── values over many lines ───────────────────────────────────────────────────────────────────────

_BRACKET = re.compile(rb"[\[\]{}]")
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_GAP = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder(parse_constant=no_constant)


def _pieces(lines: Iterable[NumberedLine | UnreadableRecord]) -> Iterator[NumberedLine | UnreadableRecord]:
    """Join lines until all brackets are closed. Each piece includes the number of its first line. A value
    that is never closed does not consume the next value: an opening bracket after a line that contains only a
    closing bracket starts a new piece."""
    buffer, number, depth, last = bytearray(), 0, 0, b""
    for line in lines:
        if isinstance(line, UnreadableRecord):
            yield line
            return
        stripped = line.data.strip()
        if buffer and last in (b"}", b"]") and stripped.startswith((b"{", b"[")):
            yield NumberedLine(number, bytes(buffer))
            buffer, depth = bytearray(), 0
        if not stripped and not buffer:
            continue
        number = number if buffer else line.number
        buffer += line.data
        last = stripped or last
        depth += _bracket_balance(line.data)
        if depth <= 0:
            yield NumberedLine(number, bytes(buffer))
            buffer, depth = bytearray(), 0
    if buffer:
        yield NumberedLine(number, bytes(buffer))


def _is_debris(piece: NumberedLine) -> bool:
    """Check whether a piece is the remainder of an unreadable value that precedes it."""
    return not piece.data.lstrip().startswith((b"{", b"["))


def _bracket_balance(line: bytes) -> int:
    """Return the number of opening brackets in a line minus the number of closing brackets. A JSON string
    never spans lines."""
    if not _BRACKET.search(line):
        return 0
    bare = _TEXT.sub(b"", line) if b'"' in line else line
    return bare.count(b"{") + bare.count(b"[") - bare.count(b"}") - bare.count(b"]")


def _entries_in(piece: NumberedLine, source: Source) -> Iterator[LogEntry]:
    """Yield the records in a piece, which usually contains one."""
    data = piece.data.removeprefix(BYTE_ORDER_MARK)
    try:
        value = parse(data)
    except (ValueError, RecursionError):
        yield from _parse_one_by_one(piece._replace(data=data), source)
    else:
        if key := repeated_key(value, data):
            yield UnreadableRecord(f"{source.display_name}:{piece.number}", _REPEATED.format(key=key))
            return
        yield from _records_of(value, data, piece.number, source)


def _parse_one_by_one(piece: NumberedLine, source: Source) -> Iterator[LogEntry]:
    """Yield the records before the first unreadable record, which is reported with its line."""
    try:
        text = replace_json_surrogates(piece.data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = piece.number + piece.data.count(b"\n", 0, error.start)
        yield UnreadableRecord(f"{source.display_name}:{line}", "not UTF-8")
        return
    at = 0
    while (at := _skip_gap(text, at)) < len(text):
        line = piece.number + text.count("\n", 0, at)
        try:
            value, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            before = list(_conversations_before(error, text, at, piece.number, source))
            yield from before
            line = piece.number + error.lineno - 1
            reason = f"{error.msg.removesuffix(' at')} at column {error.colno}{_remedy(text[at:])}"
            hides_rest = bool(at or before)
            yield UnreadableRecord(f"{source.display_name}:{line}", f"not JSON: {reason}", hides_rest)
            return
        except (ValueError, RecursionError) as error:
            yield UnreadableRecord(
                f"{source.display_name}:{line}", f"not JSON: {str(error).partition(';')[0]}"
            )
            return
        yield from _records_of(value, text[at:end].encode("utf-8", "surrogatepass"), line, source)
        at = end


def _conversations_before(
    error: json.JSONDecodeError, text: str, at: int, number: int, source: Source
) -> Iterator[Record]:
    """Yield the conversations that precede the unreadable part of a list."""
    if text[at] != "[":
        return
    at = _skip_gap(text, at + 1)
    while at < error.pos:
        line = number + text.count("\n", 0, at)
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        if not _is_conversation(value) or _has_role(value):
            return
        yield Record(value, f"{source.display_name}:{line}")
        at = _skip_gap(text, at)


def _skip_gap(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    return found.end() if found else at


def _records_of(value: Any, data: bytes, line: int, source: Source) -> Iterator[Record]:
    """Yield the conversations in a value that begins on ``line``, or the value itself if it is a single
    record."""
    if is_cassette(value):
        yield from _interactions_in(value, data.decode("utf-8", "surrogatepass"), line, source)
        return
    inside = conversations_in(value)
    if inside is None:
        yield Record(value, f"{source.display_name}:{line}")
        return
    unplaced: tuple[Unplaced, ...] = ()
    if isinstance(value, dict):
        unplaced = tuple(unplaced_in_record(value, {key for key in value if value[key] is inside}))
    line_offsets = _lines_of_items(data.decode("utf-8", "surrogatepass")) if isinstance(value, list) else []
    for index, item in enumerate(inside):
        offset = line_offsets[index] if index < len(line_offsets) else 0
        yield Record(item, f"{source.display_name}:{line + offset}", around=unplaced)


def _interactions_in(value: Any, text: str, line: int, source: Source) -> Iterator[Record]:
    start = text.index(f'"{INTERACTIONS}"')
    try:
        line_offsets = _lines_of_items(text[start:])
    except ValueError:  # an earlier key has the same name
        start, line_offsets = 0, []
    line += text.count("\n", 0, start)
    for at in _latest_in(value):
        yield Record(
            value[INTERACTIONS][at],
            f"{source.display_name}:{line + (line_offsets[at] if at < len(line_offsets) else 0)}",
        )


def _latest_in(cassette: Any) -> Iterator[int]:
    return latest_interactions(cassette[INTERACTIONS])


def conversations_in(value: Any) -> list[Any] | None:
    """Return the conversations in a document, or ``None`` if the document is a single record."""
    if find_importer(value) or (isinstance(value, dict) and is_tracer_record(value)):
        return None
    if isinstance(value, list):
        return value if not value or _are_conversations(value) else None
    if isinstance(value, dict) and not is_exchange(value):
        for key in (*_LISTS, *MESSAGE_KEYS):
            inner = value.get(key)
            if isinstance(inner, list) and inner and _are_conversations(inner):
                return inner
    return None


def _are_conversations(values: Iterable[Any]) -> bool:
    """Check whether a list contains conversations rather than the messages of one conversation. Entries that
    are neither are treated as conversations so that they are reported as unreadable."""
    conversations = messages = others = 0
    has_role = False
    for each in values:
        if _is_conversation(each):
            conversations += 1
            has_role = has_role or _has_role(each)
        elif is_message(each) and "messages" not in each:
            messages += 1
        else:
            others += 1
    return not (messages or others) or (conversations > messages and not has_role)


def _has_role(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def _is_conversation(value: Any) -> bool:
    if isinstance(value, dict):
        places = _LIST_KEYS_OF_MESSAGES if "role" in value else MESSAGE_KEYS
        if any(isinstance(value.get(key), list) for key in places) or is_exchange(value) or is_row(value):
            return True
    elif isinstance(value, list) and any(map(is_message, value)):
        return True
    return find_importer(value) is not None or is_tracer_record(value)


def _lines_of_items(text: str) -> list[int]:
    """Return the line number of each item in a list, relative to the beginning of the text."""
    at = text.index("[") + 1
    lines: list[int] = []
    counted, line = 0, 0
    while True:
        at = _skip_gap(text, at)
        if at >= len(text) or text[at] == "]":
            return lines
        line += text.count("\n", counted, at)
        counted = at
        lines.append(line)
        _, at = _DECODER.raw_decode(text, at)
