"""CSV files of conversations: the header, the cells, and the line of each row that cannot be read."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from agenteval.importers.sources import Source
from agenteval.importers.tables import is_table, rows_of
from agenteval.messages.log_entry import LogEntry, Record, UnreadableRecord


def rows(tmp_path: Path, data: str | bytes) -> list[LogEntry]:
    path = tmp_path / "log"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return list(rows_of(Source(path, "log.csv")))


def shown(entries: list[LogEntry]) -> list[tuple[str, Any]]:
    """Where an entry stands, and its value if it was read."""
    return [(e.where.rpartition(":")[2], e.value if isinstance(e, Record) else None) for e in entries]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("log.csv", True),
        ("log.CSV", True),
        ("log.csv.gz", True),
        ("log.tsv", False),
        ("log.csv.json", False),
        ("csv", False),
        ("<stdin>", False),
    ],
)
def test_which_files_are_tables(name: str, found: bool) -> None:
    assert is_table(Source(Path("x"), name)) is found


ROW = {"question": "Hi", "answer": "Hello"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("\n \n", []),
        ("\n  \nquestion;answer\nHi;Hello\n", [("4", ROW)]),
        ("\ufeff\r\nquestion,answer\r\nHi,Hello\r\nHi,\r\n", [("3", ROW), ("4", None)]),
        ("\nid,answer\nHi,Hello\n", [("2", None)]),
        ("sep=;\nquestion;answer\nHi, you;Hello\n", [("3", {**ROW, "question": "Hi, you"})]),
        ("\ufeffsep=,\r\nquestion,answer\r\nHi,Hello\r\n", [("3", ROW)]),
        ("sep=;\na,b;question;answer\nx;Hi;Hello\n", [("3", {**ROW, "a,b": "x"})]),
        ("sep=;\nid;answer\nHi;Hello\n", [("2", None)]),
        ("sep=;\n", []),
        ('"a;b;c",question,answer\nx,Hi,Hello\n', [("2", {**ROW, "a;b;c": "x"})]),
        ("question,answer\n", []),
        ("question,answer", []),
        ("question,answer\nHi,Hello\n", [("2", ROW)]),
        ("question,answer\nHi,Hello", [("2", ROW)]),
        ("question;answer\nHi;Hello\n", [("2", ROW)]),
        ("question\tanswer\nHi\tHello\n", [("2", ROW)]),
        ("\ufeffquestion,answer\r\nHi,Hello\r\n", [("2", ROW)]),
        (" question , answer \nHi,Hello\n", [("2", ROW)]),
        ("question,answer,id\nHi,Hello,\n", [("2", ROW)]),
        ("question,answer,id\nHi,Hello,a\n", [("2", {**ROW, "id": "a"})]),
        ("question,answer\n\nHi,Hello\n,\n  ,\nHi,Hello\n", [("3", ROW), ("6", ROW)]),
        ('question,answer\nHi,"a\nb"\nHi,Hello\n', [("2", {**ROW, "answer": "a\nb"}), ("4", ROW)]),
        ('question,answer\nHi,"a, ""b"""\n', [("2", {**ROW, "answer": 'a, "b"'})]),
        ('question,answer\n" Hi ",Hello\n', [("2", {**ROW, "question": " Hi "})]),
        ("input,completion\nHi,Hello\n", [("2", {"input": "Hi", "completion": "Hello"})]),
    ],
)
def test_rows_are_records_with_their_lines(tmp_path: Path, text: str, found: Any) -> None:
    entries = rows(tmp_path, text)
    assert shown(entries) == found
    assert all(entry.where.startswith("log.csv:") for entry in entries)


@pytest.mark.parametrize("key", ["messages", "conversation", "transcript"])
def test_a_column_of_whole_conversations_needs_no_other(tmp_path: Path, key: str) -> None:
    assert shown(rows(tmp_path, f'{key},id\n"[1, 2]",a\n,b\n')) == [
        ("2", {key: "[1, 2]", "id": "a"}),
        ("3", None),
    ]
    assert shown(rows(tmp_path, f"{key},question,answer\n[],,\n")) == [("2", {key: "[]"})]


@pytest.mark.parametrize("key", ["history", "items", "turns", "chat", "conversation"])
def test_a_column_named_like_a_conversation_is_needless_beside_question_and_answer(
    tmp_path: Path, key: str
) -> None:
    assert shown(rows(tmp_path, f"{key},question,answer\n,Hi,Hello\n3,Hi,Hello\n,Hi,\n3,Hi,\n,,\n")) == [
        ("2", ROW),
        ("3", {key: "3", **ROW}),
        ("4", None),
        ("5", None),
    ]
    assert shown(rows(tmp_path, f"{key},question\n,Hi\n")) == [("2", None)]


def test_a_history_is_no_answer_to_the_question_beside_it(tmp_path: Path) -> None:
    assert shown(rows(tmp_path, "history,question,answer\n[],Hi,\n[],Hi,Hello\n[],,\n")) == [
        ("2", None),
        ("3", {"history": "[]", **ROW}),
        ("4", {"history": "[]"}),  # a conversation by itself
    ]


def test_input_is_a_question_and_no_conversation(tmp_path: Path) -> None:
    assert shown(rows(tmp_path, "input,id\nHi,a\n")) == [("1", None)]
    assert shown(rows(tmp_path, "input,output\n,Hello\nHi,\nHi,Hello\n")) == [
        ("2", None),
        ("3", None),
        ("4", {"input": "Hi", "output": "Hello"}),
    ]


@pytest.mark.parametrize(
    ("header", "named", "remedy"),
    [
        ("question,question,answer", ["'question'"], ""),
        ("question,answer,id,id", ["'id'"], ""),
        ("messages,messages", ["'messages'"], ""),
        ("id,answer", ["input", "prompt", "query or question", "id"], "importers"),
        ("question,id", ["output", "completion", "response or answer", "id"], "importers"),
        ("id,more", ["query or question", "response or answer", "id, more"], "importers"),
        ("questoin,answer", ["'question'"], "did you mean"),
        (",", ["query or question", "response or answer", "''"], "importers"),
    ],
)
def test_a_header_without_which_nothing_is_read(
    tmp_path: Path, header: str, named: list[str], remedy: str
) -> None:
    (entry,) = rows(tmp_path, f"{header}\nHi,Hello,a,b\n")
    assert isinstance(entry, UnreadableRecord)
    assert entry.where == "log.csv:1"
    assert [word for word in named if word not in entry.reason] == []
    assert [each for each in ("importers", "did you mean") if each in entry.reason] == [remedy][: len(remedy)]


@pytest.mark.parametrize(
    ("header", "asks", "answers"), [("id,answer", True, False), ("question,id", False, True)]
)
def test_only_what_is_missing_is_asked_for(tmp_path: Path, header: str, asks: bool, answers: bool) -> None:
    (entry,) = rows(tmp_path, header)
    assert isinstance(entry, UnreadableRecord)
    assert ("query" in entry.reason, "completion" in entry.reason) == (asks, answers)


def test_two_columns_without_a_name_are_allowed(tmp_path: Path) -> None:
    assert shown(rows(tmp_path, "question,answer,,\nHi,Hello,,\n")) == [("2", ROW)]


def test_only_the_first_columns_of_a_header_are_shown(tmp_path: Path) -> None:
    (entry,) = rows(tmp_path, ",".join(f"column{n:02}" for n in range(1, 15)))
    assert isinstance(entry, UnreadableRecord)
    assert "column12" in entry.reason
    assert "column13" not in entry.reason


@pytest.mark.parametrize("cells", ["Hi", "Hi,Hello,more", "Hi,"])
def test_a_row_with_other_cells_than_the_header_has_columns(tmp_path: Path, cells: str) -> None:
    entries = rows(tmp_path, f"question,answer\n{cells}\nHi,Hello\n")
    assert shown(entries) == [("2", None), ("3", ROW)]


def test_the_column_of_an_empty_cell_is_named(tmp_path: Path) -> None:
    entries = rows(tmp_path, "question,answer,messages\na,b,\n")
    entries += rows(tmp_path, "question,answer\na, \n ,b\n")
    reasons = [each.reason for each in entries if isinstance(each, UnreadableRecord)]
    assert ["'messages'" in reasons[0], "'answer'" in reasons[1], "'question'" in reasons[2]] == [True] * 3


def test_a_row_that_is_not_utf_8_is_told_at_its_line_and_byte(tmp_path: Path) -> None:
    entries = rows(tmp_path, b'question,answer\nHi,Hello\nHi,"a\nb\xff"\nHi,Hello\nx\xffy,z\n')
    assert shown(entries) == [("2", ROW), ("3", None), ("5", ROW), ("6", None)]
    reasons = [entry.reason for entry in entries if isinstance(entry, UnreadableRecord)]
    assert "byte 2 of line 4" in reasons[0]
    assert "byte 2 of line 6" in reasons[1]


def test_after_a_quote_that_is_not_closed_nothing_more_is_read(tmp_path: Path) -> None:
    entries = rows(tmp_path, 'question,answer\nHi,Hello\nHi,"Hel\nlo\nHi,Hello\n')
    assert shown(entries) == [("2", ROW), ("3", None)]
    entries = rows(tmp_path, 'question,answer\nHi,"a"b\nHi,Hello\n')
    assert shown(entries) == [("2", None)]
    assert isinstance(entries[0], UnreadableRecord)
    assert "skipped" in entries[0].reason


@pytest.mark.parametrize("kept", [None, 30])
def test_a_packed_table_and_one_that_is_cut_off(tmp_path: Path, kept: int | None) -> None:
    text = "question,answer\n" + "".join(f"Hi {n},Hello {n * 7919}\n" for n in range(2000))
    data = gzip.compress(text.encode())
    entries = rows(tmp_path, data[: kept or len(data)])
    if kept is None:
        assert len(entries) == 2000
        assert isinstance(entries[-1], Record)
        return
    (last,) = entries[-1:]
    assert isinstance(last, UnreadableRecord)
    assert "cut off" in last.reason


def test_a_table_that_is_cut_off_keeps_the_rows_before(tmp_path: Path) -> None:
    text = "question,answer\n" + "".join(f"Hi {n},Hello {n * 7919}\n" for n in range(9000))
    data = gzip.compress(text.encode())
    *before, last = rows(tmp_path, data[:-2000])
    assert before
    assert all(isinstance(entry, Record) for entry in before[:-1])
    assert isinstance(last, UnreadableRecord)
    assert "cut off" in last.reason
