"""Values as a few lines: short ones at once, JSON in JSON once, and what is left out is counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.reporters.words.json_tree import tree_lines, unescaped


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ({"city": "Shenzhen", "temp": 24}, ['{"city": "Shenzhen", "temp": 24}']),
        ("plain text", ["plain text"]),
        ("two\nlines\n", ["two", "lines"]),
        ("", ['""']),
        (None, ["null"]),
        ("{not json}", ["{not json}"]),
        (
            {"order": {"id": "ORD-42", "items": ["a lamp that is long", "a chair that is long"]}, "ok": True},
            ["{", '  "order": {', '    "id": "ORD-42",', '    "items": [', '      "a lamp that is long",',
             '      "a chair that is long"', "    ]", "  },", '  "ok": true', "}"],
        ),
        ([{"name": "one of them", "price": 17}, "x" * 20],
         ["[", '  {"name": "one of them", "price": 17},', '  "xxxxxxxxxxxxxxxxxxxx"', "]"]),
        ([{"name": "much more of one of them", "price": 17}, 2],
         ["[", "  {", '    "name": "much more of one of them",', '    "price": 17', "  },", "  2", "]"]),
        ('{"price": 19.90, "tax": 1e2}', ['{"price": 19.90, "tax": 1e2}']),
        ('{"price": 1, "price": 2}', ['{"price": 1, "price": 2}']),  # which a value would hide
        ({"mine": {1, }}, ['{"mine": "{1}"}']),
    ],
)  # fmt: skip
def test_a_value_in_lines(value: Any, lines: list[str]) -> None:
    assert list(tree_lines(value, 42)) == lines


def test_json_in_json_is_shown_once() -> None:
    inner = json.dumps({"status": "shipped", "note": json.dumps(["a", "b"])})
    assert unescaped({"content": inner}) == {"content": {"status": "shipped", "note": ["a", "b"]}}
    (line,) = tree_lines(json.dumps({"content": inner}), 100)
    assert line == '{"content": {"status": "shipped", "note": ["a", "b"]}}'


def test_what_is_left_out_is_counted() -> None:
    lines = tree_lines([f"entry number {n}" for n in range(40)], 30)
    assert len(lines) == 12
    assert lines[-1] == "… 31 more lines; --json shows all"
    assert tree_lines("x\n" * 50_000, 30)[-1] == "… 10,001+ more lines; --json shows all"


def test_nothing_in_it_breaks_out() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    nested = "1"
    for _ in range(40):
        nested = json.dumps([nested]) if len(nested) < 5_000 else nested
    for value in (deep, nested, "[" * 100_000 + "]" * 100_000, {"\x1b[31m": "\x1b[2J" * 40}):
        assert "\x1b" not in "".join(tree_lines(value, 40))
