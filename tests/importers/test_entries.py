"""Records of a log file: lines, documents over many lines, and the place of each that cannot be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.importers import entries as reading
from agenteval.importers.entries import conversations_in, entries_of, is_document
from agenteval.importers.sources import Source
from agenteval.messages.log_entry import LogEntry, Record, UnreadableRecord

HI, HELLO = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
TALK = [HI, HELLO]


def one(name: str) -> dict[str, Any]:
    return {"id": name, "messages": TALK}


A, B = json.dumps(one("a")), json.dumps(one("b"))
WIDE = json.dumps(one("a"), indent=1)
"""The same over many lines."""
LINES = WIDE.count("\n") + 1


SEP = ",\n"


def source(tmp_path: Path, data: str | bytes, name: str = "log.json") -> Source:
    path = tmp_path / "log"
    path.write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    return Source(path, name)


def entries(tmp_path: Path, data: str | bytes, name: str = "log.json") -> list[LogEntry]:
    return list(entries_of(source(tmp_path, data, name)))


def shown(found: list[LogEntry]) -> list[tuple[int, Any]]:
    """The line of each entry, and the id of its record: ``None`` if unreadable, ``...`` without an id."""
    return [
        (int(e.where.rpartition(":")[2]), id_of(e.value) if isinstance(e, Record) else None) for e in found
    ]


def id_of(value: Any) -> Any:
    return value.get("id", ...) if isinstance(value, dict) else ...


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("\n \n", []),
        (A, [(1, "a")]),
        (f"{A}\n{B}\n", [(1, "a"), (2, "b")]),
        (f"\ufeff{A}\r\n\r\n{B}", [(1, "a"), (3, "b")]),
        (f"{A}\n{{oops\n{B}", [(1, "a"), (2, None), (3, "b")]),
        (f'{A}\n7\n"x"\nnull\n', [(1, "a"), (2, ...), (3, ...), (4, ...)]),
        (f'{A}\n{{"messages": [], "messages": []}}\n', [(1, "a"), (2, None)]),
        (f"{A}\n{'[' * 5000}\n{B}", [(1, "a"), (2, None), (3, "b")]),
        (f'{A}\n{{"id": NaN}}\n', [(1, "a"), (2, None)]),
        (f'{A}\n{{"id": "\\ud800"}}\n', [(1, "a"), (2, "\ufffd")]),
    ],
)
def test_records_a_line(tmp_path: Path, text: str, found: Any) -> None:
    read = entries(tmp_path, text)
    if "NaN" in text:
        assert isinstance(read[1], Record)
        assert read[1].value == {"id": None}
    assert shown(read) == found


def test_a_line_that_is_not_utf_8_names_its_byte(tmp_path: Path) -> None:
    read = entries(tmp_path, f"{A}\n".encode() + b'{"id": "\xff"}\n')
    assert isinstance(read[1], UnreadableRecord)
    assert read[1].where == "log.json:2"
    assert "byte 9" in read[1].reason


@pytest.mark.parametrize(
    ("line", "words", "is_importers"),
    [
        ('{"a": 1, }', ["column 10"], False),
        ('{"a": 1} x', ["column 10"], False),
        ("2026-01-01 INFO started", ["column 5"], True),
        ("hello", ["column 1"], True),
        ("[INFO] started", ["column"], True),
        ('["a" x', ["column"], False),
        ("[", ["column"], False),
    ],
)
def test_what_is_no_json_is_told_with_its_column(
    tmp_path: Path, line: str, words: list[str], is_importers: bool
) -> None:
    (_, unread) = entries(tmp_path, f"{A}\n{line}\n")
    assert isinstance(unread, UnreadableRecord)
    assert [word for word in words if word not in unread.reason] == []
    assert ("docs/importers.md" in unread.reason) is is_importers
    assert not unread.hides_rest


# ── documents ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", False),
        (A, False),
        (f"{A}\n{B}", False),
        (f"[{A}]", True),
        (f'{{"data": [{A}]}}', True),
        (json.dumps(TALK), False),
        (WIDE, True),
        ("[\n1]", True),
        ("{\n1}", True),
        (f"[{A},\n{B}]", True),
        (f'{{"a": 1,\n"messages": {json.dumps(TALK)}}}', True),
        ("{oops", True),
        (f"{{oops\n{A}", False),
        ("{oops}\n{oops}\n{oops}", False),
        ("{oops,\n{oops,\n{oops", True),
        ("{oops\noops", True),
        ("hello", False),
        (f"hello\n{A}", False),
        ('{"interactions": [{"request": 1, "response": 2}]}', True),
        ("[]", True),
        *((f'{{"data": [\n{(A + SEP) * n}{B}\n]}}', True) for n in range(5)),
        (f"{A},\n{B}", True),
        (f"[{A},\n{B}\n]", True),
        (f'{{"messages": [\n{A}\n', False),  # cut off
        (f'{{"messages": [\n{A}\n{B}\n{A}\n{B}\n', False),
        (f'{{"messages": [\n{A}\n{B}', False),
        (f"{{oops\n{json.dumps(HI)}\n", False),
        (f"[oops\n{json.dumps(HI)}\n", True),
        (f"[oops\n{A}\n", False),
        (f"[oops\n{'1' * 9}\nx\ny\nz\n{A}\n", True),  # only the first lines are looked at
    ],
)
def test_which_files_are_documents(tmp_path: Path, text: str, found: bool) -> None:
    assert is_document(source(tmp_path, text)) is found


WRAPPED = ("conversations", "data", "records", "rows", "runs", "samples", "results", "eval_cases", "items")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (WIDE, [(1, "a")]),
        (f"\ufeff\n{WIDE}", [(2, "a")]),
        (f"{WIDE}\n{WIDE}", [(1, "a"), (LINES + 1, "a")]),
        (f"\n{WIDE}\n\n \n{WIDE}\n\n", [(2, "a"), (LINES + 4, "a")]),
        (f"[{A},{B}]", [(1, "a"), (1, "b")]),
        (f"[\n{A},\n\n{B}\n]", [(2, "a"), (4, "b")]),
        (f"[{A},\n{B}]", [(1, "a"), (2, "b")]),
        (json.dumps([one("a"), one("b")], indent=1), [(2, "a"), (LINES + 2, "b")]),
        (f'{{"data": [\n{A},\n{B}\n]}}', [(1, "a"), (1, "b")]),
        (f"{A},\n{B}", [(1, "a"), (2, "b")]),
        (f"[\n{A},\n7\n]", [(2, "a"), (3, ...)]),  # told as unreadable later
        ("[]", []),
        ("[\n]", []),
        (json.dumps(TALK, indent=1), [(1, ...)]),
        (json.dumps([TALK, TALK], indent=1), [(2, ...), (12, ...)]),
        *[(f'{{"{key}": [{A}, {B}]}}', [(1, "a"), (1, "b")]) for key in WRAPPED],
        # what comes after a value that cannot be read
        (f'{{\n"id": oops\n}}\n{WIDE}', [(2, None), (4, "a")]),
        (f"{WIDE}\n{{\noops\n}}\noops\n}}\n{WIDE}", [(1, "a"), (LINES + 2, None), (LINES + 6, "a")]),
        (f"[\n{A},\n{B},\noops\n]", [(2, "a"), (3, "b"), (4, None)]),
        (f"[\n{A},\n{B}", [(2, "a"), (3, "b"), (3, None)]),
        (f'{{\n"messages": [],\n"messages": []}}\n{WIDE}', [(1, None), (4, "a")]),
    ],
)
def test_records_of_documents(tmp_path: Path, text: str, found: Any) -> None:
    assert shown(entries(tmp_path, text)) == found


def test_a_value_that_is_never_closed_does_not_take_the_next(tmp_path: Path) -> None:
    cut = WIDE.removesuffix("}").rstrip()
    assert shown(entries(tmp_path, f"{cut}\n{WIDE}"))[-1] == (LINES, "a")
    other = f'{{"id": "b",\n"messages": {json.dumps(TALK)}\n}}'
    assert shown(entries(tmp_path, f"{cut}\n{other}"))[-1] == (LINES, "b")
    assert shown(entries(tmp_path, f"{WIDE}\n{cut}\n[{A},\n{B}]"))[-2:] == [
        (LINES * 2, "a"),
        (LINES * 2 + 1, "b"),
    ]


@pytest.mark.parametrize(("before", "hides_rest"), [("", False), (f"{A},\n", True)])
def test_after_records_of_a_broken_list_there_may_be_more(
    tmp_path: Path, before: str, hides_rest: bool
) -> None:
    unread = entries(tmp_path, f"[\n{before}{{oops\n]")[-1]
    assert isinstance(unread, UnreadableRecord)
    assert unread.hides_rest is hides_rest


def test_messages_before_the_break_are_no_conversations(tmp_path: Path) -> None:
    text = f"[\n{json.dumps(HI)},\n{json.dumps(HELLO)},\noops\n]"
    assert shown(entries(tmp_path, text)) == [(4, None)]


def test_a_document_that_is_not_utf_8_names_its_line(tmp_path: Path) -> None:
    read = entries(tmp_path, b'{\n"id": 1,\n"text": "\xff"\n}\n' + WIDE.encode())
    assert shown(read) == [(3, None), (5, "a")]


def test_several_values_on_a_line_of_a_document(tmp_path: Path) -> None:
    assert shown(entries(tmp_path, f"{{\n}} {A}\n{{\n}}, {B}")) == [(1, ...), (2, "a"), (3, ...), (4, "b")]


def test_brackets_in_texts_are_no_brackets(tmp_path: Path) -> None:
    odd = json.dumps({"id": 'x"}]', "messages": TALK}, indent=1)
    assert shown(entries(tmp_path, f"{odd}\n{WIDE}")) == [(1, 'x"}]'), (LINES + 1, "a")]


def test_what_surrounds_the_records_of_a_document_is_theirs(tmp_path: Path) -> None:
    steps = [{"type": "tool_call", "name": "find", "arguments": {}}]
    read = entries(tmp_path, json.dumps({"data": [one("a"), one("b")], "steps": steps}, indent=1))
    assert [[each.names for each in e.around] for e in read if isinstance(e, Record)] == [[("steps",)]] * 2
    read = entries(tmp_path, f"[\n{A}\n]")
    assert [e.around for e in read if isinstance(e, Record)] == [()]


def test_items_of_a_list_are_parsed_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice in all: while the list is checked, and when its conversations are read."""
    longest = 0
    parse = reading.parse

    def note_length(data: bytes) -> Any:
        nonlocal longest
        longest = max(longest, len(data))
        return parse(data)

    monkeypatch.setattr(reading, "parse", note_length)
    for indent in (None, 1):
        talks = [one(str(n)) for n in range(50)]
        read = entries(tmp_path, json.dumps(talks, indent=indent))
        assert [entry.value for entry in read if isinstance(entry, Record)] == talks
    assert longest == len(WIDE.replace("\n", "\n ")) + 1  # in the list, it is indented by one more


@pytest.mark.parametrize(
    "text",
    [
        f"[{A}, {B}]",
        json.dumps([one("a"), one("b"), {"x": 1}], indent=1),
        json.dumps([TALK, TALK]),
        f'[\n{A},\n{{"id": NaN, "messages": [{{"role": "user", "content": "\\ud83d"}}]}}\n]',
        f"[\n{A},\n{HI}\n]",
        json.dumps([HI, HELLO]),
        f'[{A}, {{"messages": [], "messages": []}}]',
        f'[{A}, {{"id": "messages", "output": "messages"}}, {{"content": 1, "content": 2}}]',
        f"[{A},\n{B}",
        f"[{A},\n{B}] oops",
        f"[{A},\n{B}]\n[{A}]",
        f"[{A}\n,,\n{B}]",
    ],
)
def test_a_list_gives_what_it_would_give_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    found = entries(tmp_path, text)
    monkeypatch.setattr(reading, "_list_reader", lambda _: None)
    assert found == entries(tmp_path, text)


def test_a_list_with_bytes_that_are_no_text(tmp_path: Path) -> None:
    data = f"[{A},\n{B}]".encode().replace(b"Hello", b"\xff", 1)
    assert shown(entries(tmp_path, data)) == [(1, None)]


def test_another_importer_gets_the_whole_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "has_only_builtin", lambda: False)
    monkeypatch.setattr(reading, "_read_list", None)
    assert shown(entries(tmp_path, f"[{A}, {B}]")) == [(1, "a"), (1, "b")]


def test_a_list_that_is_changed_while_it_is_read_is_told(tmp_path: Path) -> None:
    log = source(tmp_path, f"[{A},\n{B}]")
    read = entries_of(log)
    first = next(read)
    log.path.write_text(f"[{A},\n{B}" + "," * (1 << 20), encoding="utf-8")
    later = [first, *read]
    assert shown(later) in ([(1, "a"), (2, "b")], [(1, "a"), (2, "b"), (2, None)])


# ── cassettes, tables, packed files ──────────────────────────────────────────────────────────────

FIRST = {"request": {"messages": [HI]}, "response": {"choices": [{"message": HELLO}]}}
NEXT = {**FIRST, "request": {"messages": [*TALK, HI]}}


def test_of_a_cassette_the_interactions_from_which_none_goes_on(tmp_path: Path) -> None:
    one_line = json.dumps({"interactions": [FIRST, NEXT, FIRST]})
    for text, places in ((one_line, [1, 1]), (f"{one_line}\n{one_line}", [1, 1, 2, 2])):
        read = entries(tmp_path, text)
        assert [e.value for e in read if isinstance(e, Record)] == [NEXT, FIRST] * (len(places) // 2)
        assert [line for line, _ in shown(read)] == places
    items = [json.dumps(each, indent=1) for each in (FIRST, NEXT)]
    wide = f'{{"version": 1,\n"interactions": [\n{items[0]},\n{items[1]}\n]}}'
    assert [line for line, _ in shown(entries(tmp_path, wide))] == [4 + items[0].count("\n")]


def test_a_table_is_read_by_its_name(tmp_path: Path) -> None:
    (row,) = entries(tmp_path, "question,answer\nHi,Hello\n", "log.csv")
    assert isinstance(row, Record)
    assert (row.where, row.value) == ("log.csv:2", {"question": "Hi", "answer": "Hello"})


@pytest.mark.parametrize("text", [f"{A}\n{B}\n", f"[\n{A},\n{B}\n]"])
def test_a_packed_file(tmp_path: Path, text: str) -> None:
    assert [id for _, id in shown(entries(tmp_path, gzip.compress(text.encode())))] == ["a", "b"]


def test_a_packed_file_that_is_cut_off_is_told(tmp_path: Path) -> None:
    data = gzip.compress(f"{A}\n".encode() * 5)
    assert shown(entries(tmp_path, data[:-6]))[-1][1] is None
    wide = gzip.compress(f"{WIDE}\n".encode() * 5)
    assert shown(entries(tmp_path, wide[:-6]))[-1][1] is None


# ── one record, or a list of them ────────────────────────────────────────────────────────────────

ROW = {"question": "Hi", "answer": "Hello"}
SPAN = {"trace_id": "t", "span_id": "s", "start_time": 1, "name": "x", "attributes": {}}


@pytest.mark.parametrize(
    ("value", "inside"),
    [
        (7, None),
        ({}, None),
        ([], []),
        (TALK, None),
        (one("a"), None),
        ([one("a")], [one("a")]),
        ([TALK, TALK], [TALK, TALK]),
        ([ROW, ROW], [ROW, ROW]),
        ([FIRST, FIRST], [FIRST, FIRST]),
        (FIRST, None),
        ({"data": [one("a")]}, [one("a")]),
        ({"data": []}, None),
        ({"data": TALK}, None),
        ({"other": [one("a")]}, None),
        ({"messages": [ROW, ROW]}, [ROW, ROW]),
        ({"request": {"messages": [HI]}, "data": [one("a")]}, None),  # an exchange
        # what is neither is told as unreadable, messages are not
        ([one("a"), 7], [one("a"), 7]),
        ([one("a"), HI], None),
        ([one("a"), one("b"), HI], [one("a"), one("b"), HI]),
        ([{**HI, "messages": []}, HELLO, one("a"), one("b")], None),
        ([{**HI, "contents": []}], None),
        ([{**HI, "contents": []}, {**HI, "items": []}], None),
        ([SPAN], None),  # a trace
        (SPAN, None),
        ({"spans": [SPAN]}, None),
    ],
)
def test_what_is_a_list_of_conversations(value: Any, inside: Any) -> None:
    assert conversations_in(value) == inside
