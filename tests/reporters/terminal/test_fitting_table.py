"""A table that never breaks a word: side by side where it fits, and else each row as a block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from rich.text import Text

from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.fitting_table import FittingTable
from agenteval.reporters.terminal.screen import render_parts

TITLES = ("name", "count", "what")
ROWS = (("one", "1", "a few words"), ("eleven", "1,000", "x"))


def shown(
    width: int,
    rows: Iterable[Sequence[str]] = ROWS,
    titles: Sequence[str] = TITLES,
    *,
    head: int = 1,
    numbers: Iterable[str] = ("count",),
) -> list[str]:
    cells = [[Text(cell) for cell in row] for row in rows]
    table = FittingTable(titles, cells, head=head, numbers=numbers)
    return render_parts([table], ReportOptions(width=width)).splitlines()


SIDE_BY_SIDE = [
    "name    count  what",
    "one         1  a few words",
    "eleven  1,000  x",
]


@pytest.mark.parametrize("width", [100, 26])
def test_the_columns_stand_side_by_side_if_they_fit(width: int) -> None:
    assert shown(width) == SIDE_BY_SIDE
    assert shown(width, numbers=())[1] == "one     1      a few words"


def test_the_widest_column_breaks_first_and_only_between_words() -> None:
    assert shown(25) == [
        "name    count  what",
        "one         1  a few",
        "               words",
        "eleven  1,000  x",
    ]


def test_a_column_is_as_wide_as_its_longest_word() -> None:
    lines = shown(20)
    assert lines[0] == "name    count  what"
    assert [line.split()[-1] for line in lines[1:4]] == ["few", "words", "x"]


BIG = (("one", "1", "xxxxxxxxxx"), ("two", "", "y"))


def test_where_a_word_had_to_be_broken_each_row_is_a_block() -> None:
    assert shown(23, BIG)[0] == "name  count  what"
    assert shown(22, BIG) == ["one", "    count 1 · what", "    xxxxxxxxxx", "two", "    what y"]


def test_the_head_of_a_block_has_all_columns_that_name_the_row() -> None:
    rows = (("✗", "one", "xxxxxxxxxxxxxxxx", "z"), ("", "two", "", ""))
    lines = shown(24, rows, ("", "name", "what", ""), head=2)
    assert lines[0] == "✗ one"
    assert [" ".join(line.split()) for line in lines[1:3]] == ["what", "xxxxxxxxxxxxxxxx · z"]
    assert lines[3] == "two"


def test_lines_within_a_cell_are_kept() -> None:
    assert shown(100, (("a\nbb", "1", "c"),)) == ["name  count  what", "a         1  c", "bb"]
    assert shown(17, (("a\nbb", "1", "c"),))[0] == "name  count  what"


def test_wide_characters_count_twice() -> None:
    assert shown(21, (("宽宽宽宽", "1", "c"),))[0] == "name      count  what"
    assert shown(20, (("宽宽宽宽", "1", "c"),))[0] == "宽宽宽宽"


def test_without_rows_only_the_titles_are_shown() -> None:
    assert shown(100, ()) == ["name  count  what"]


def test_columns_share_what_is_lacking() -> None:
    rows = (("a b c d e f", "1", "a b c d e f"),)
    lines = shown(27, rows)
    assert lines[0].index("what") - lines[0].index("count") == len("count") + 2
    assert lines[0].index("count") in (10, 11)
