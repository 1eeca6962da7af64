"""Items of a file that is one list: each is read on its own, wherever the file is cut into pieces."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest

from agenteval.importers import list_items
from agenteval.importers.list_items import items_of
from agenteval.importers.sources import Source

ITEMS = [{"id": "ü😀", "n": [1, {"x": "]},["}]}, 12, -1.5e3, None, True, "a\nb", [], {}, 123456789]


def source(tmp_path: Path, data: str | bytes) -> Source:
    path = tmp_path / "log.json"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return Source(path, "log.json")


def read(tmp_path: Path, data: str | bytes) -> list[tuple[int, Any]]:
    return [(item.number, json.loads(item.data)) for item in items_of(source(tmp_path, data))]


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 50, 1 << 18])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("ascii", [True, False])
def test_items_are_those_of_the_whole_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, indent: int | None, ascii: bool
) -> None:
    monkeypatch.setattr(list_items, "_PIECE", piece)
    text = json.dumps(ITEMS, indent=indent, ensure_ascii=ascii)
    found = read(tmp_path, f"\n {text}\r\n\n")
    assert [value for _, value in found] == ITEMS
    lines = f"\n {text}".splitlines()
    starts = [n for n, line in enumerate(lines, 1) if line.startswith(" ") and not line.startswith("  ")][1:]
    wide = [n for n in starts if not lines[n - 1].lstrip().startswith(("}", "]"))]
    assert [line for line, _ in found] == (wide if indent else [2] * len(ITEMS))


@pytest.mark.parametrize("packed", [False, True])
def test_a_mark_and_a_packed_file(tmp_path: Path, packed: bool) -> None:
    data = b"\xef\xbb\xbf\n[1,\n2]"
    assert read(tmp_path, gzip.compress(data) if packed else data) == [(2, 1), (3, 2)]


@pytest.mark.parametrize(
    ("data", "before"),
    [
        ("", 0), ("{}", 0), ("7", 0), ("[", 0), ("[]", 0), ("[,1]", 0), ("x[1]", 0),
        ("[1", 1), ("[1,", 1), ("[1 2]", 1), ("[1,]", 1), ("[1}", 1), ("[1,oops]", 1), ("[1]\n[2]", 1),
        ("[1],", 1), ("[1, 2, [3]", 3), ('[1, "a\nb"]', 1), (f"[{'1' * 5000}]", 0),
    ],
)  # fmt: skip
def test_what_is_no_list_is_refused_where_it_breaks(tmp_path: Path, data: str, before: int) -> None:
    items = items_of(source(tmp_path, data))
    assert len([next(items) for _ in range(before)]) == before
    with pytest.raises(ValueError):
        list(items)


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecursionError):
        list(items_of(source(tmp_path, "[" * 100_000)))


def test_damage_to_packed_data_is_not_the_end_of_the_list(tmp_path: Path) -> None:
    with pytest.raises((EOFError, zlib.error)):
        read(tmp_path, gzip.compress(json.dumps(ITEMS).encode())[:-9])


def test_a_list_on_one_line_is_read_in_little_memory(tmp_path: Path) -> None:
    text = json.dumps([{"id": n, "text": "x" * 10_000} for n in range(800)])
    log = source(tmp_path, text)
    tracemalloc.start()
    try:
        count = sum(1 for _ in items_of(log))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 800
    assert peak < len(text) / 4
