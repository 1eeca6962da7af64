"""The rows of data sets: their cells and lines in each format, and what is refused, at which line."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.files.data_rows import (
    Table,
    csv_problem,
    find_delimiter,
    parse_json_at,
    read_table,
    table_from_list,
)
from agenteval.files.yaml_source import Mark


def read(text: str, path: str = "d.csv") -> Table:
    return read_table(text.encode(), path)


def refused(text: str | bytes, path: str = "d.csv") -> list[tuple[int, str]]:
    """The line and the words of each problem."""
    with pytest.raises(AuthorError) as error:
        read_table(text.encode() if isinstance(text, str) else text, path)
    assert all(each.place and each.place.path == path for each in error.value.problems)
    return [(each.place.line, each.what) for each in error.value.problems if each.place]


def values(table: Table) -> list[Any]:
    return [row.value for row in table.rows]


def lines(table: Table) -> list[int]:
    return [row.mark.line for row in table.rows]


# ── CSV ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "columns", "rows", "at"),
    [
        pytest.param("a,b\n1,2\n", ("a", "b"), [{"a": "1", "b": "2"}], [2], id="comma"),
        pytest.param("a;b\n1,5;2\n", ("a", "b"), [{"a": "1,5", "b": "2"}], [2], id="semicolon"),
        pytest.param("a\tb\n1\t2\n", ("a", "b"), [{"a": "1", "b": "2"}], [2], id="tab"),
        pytest.param("a\n1\n2", ("a",), [{"a": "1"}, {"a": "2"}], [2, 3], id="one column"),
        pytest.param(
            "a,b\r\n1,2\r\n3,4\r\n",
            ("a", "b"),
            [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}],
            [2, 3],
            id="crlf",
        ),
        pytest.param(
            'a,b\n"x\ny",2\n3,4\n',
            ("a", "b"),
            [{"a": "x\ny", "b": "2"}, {"a": "3", "b": "4"}],
            [2, 4],
            id="line break",
        ),
        pytest.param(
            'a,b\n"1,5","say ""hi"""\n', ("a", "b"), [{"a": "1,5", "b": 'say "hi"'}], [2], id="quotes"
        ),
        pytest.param(
            "a,b\n\n1,2\n,\n3,4\n",
            ("a", "b"),
            [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}],
            [3, 5],
            id="blank",
        ),
        pytest.param("sep=;\na;b\n1;2\n", ("a", "b"), [{"a": "1", "b": "2"}], [3], id="sep"),
        pytest.param("\ufeffa,b\n1,2\n", ("a", "b"), [{"a": "1", "b": "2"}], [2], id="byte order mark"),
        pytest.param(" a ,\tb\n 1 ,2\n", ("a", "b"), [{"a": " 1 ", "b": "2"}], [2], id="spaces of names"),
        pytest.param("a,,b\n1,,2\n", ("a", "b"), [{"a": "1", "b": "2"}], [2], id="column without a name"),
        pytest.param("e\u0301\n1\n", ("é",), [{"é": "1"}], [2], id="composed names"),
        pytest.param("a\n x\n", ("a",), [{"a": " x"}], [2], id="a space"),
        pytest.param('a\n""\n', ("a",), [{"a": ""}], [2], id="an empty cell"),
        pytest.param(
            'a,b\n1," ""x"""\n', ("a", "b"), [{"a": "1", "b": ' "x"'}], [2], id="quoted space and quote"
        ),
    ],
)
def test_csv(text: str, columns: tuple[str, ...], rows: list[dict[str, str]], at: list[int]) -> None:
    found = read(text)
    assert (found.columns, values(found), lines(found)) == (columns, rows, at)
    assert found.is_text
    assert [row.mark.find((columns[0],)).line for row in found.rows] == at


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("other", [",", ";", "\t"])
def test_only_the_header_decides_what_separates_cells(delimiter: str, other: str) -> None:
    if other == delimiter:
        return
    found = read(f"a{delimiter}b\n{other * 7}x{delimiter}{other * 5}y\n")
    assert found.columns == ("a", "b")
    assert values(found) == [{"a": f"{other * 7}x", "b": f"{other * 5}y"}]


@pytest.mark.parametrize(
    ("header", "delimiter"),
    [
        ("a,b", ","),
        ("a;b", ";"),
        ("a\tb", "\t"),
        ("a,b;c;d", ";"),
        ("a,b;c", ","),
        ("a", ","),
        ("", ","),
        ('"a;b;c",d', ","),
        ('a,"b;c;d"', ","),
        ('"a,b";"c,d,e"', ";"),
        ('"say ""x;y;z"" to",b', ","),
        ('"a,b,c\r\n', ","),
        ('5" wide;6" high,deep;x', ";"),  # a quote within a name opens nothing
        ('a;"b,c,d', ";"),
    ],
)
def test_what_separates_the_names(header: str, delimiter: str) -> None:
    assert find_delimiter(header) == delimiter


@pytest.mark.parametrize(
    ("path", "text", "columns", "row", "at"),
    [
        ("d.tsv", "name, first\tage\nA, B\t3\n", ("name, first", "age"), ("A, B", "3"), 2),
        ("d.TSV", "a,b,c\tx;y;z\n1\t2\n", ("a,b,c", "x;y;z"), ("1", "2"), 2),
        ("d.tsv", "a,b\n1,2\n", ("a", "b"), ("1", "2"), 2),
        ("d.csv", "\na;b\n1;2\n", ("a", "b"), ("1", "2"), 3),
        ("d.csv", "\r\n\r\na;b\r\n1;2\r\n", ("a", "b"), ("1", "2"), 4),
        ("d.csv", "  \na;b\n1;2\n", ("a", "b"), ("1", "2"), 3),
        ("d.csv", " \na,b\n1,2\n", ("a", "b"), ("1", "2"), 3),
        ("d.csv", "\nsep=;\n\na;b\n1;2\n", ("a", "b"), ("1", "2"), 5),
        ("d.tsv", "\na,b,c\tx\n1\t2\n", ("a,b,c", "x"), ("1", "2"), 3),
        ("d.csv", '"a;b;c",d\n1,2\n', ("a;b;c", "d"), ("1", "2"), 2),
    ],
)
def test_the_names_stand_in_the_first_line_that_is_not_blank(
    path: str, text: str, columns: tuple[str, ...], row: tuple[str, ...], at: int
) -> None:
    found = read(text, path)
    assert (found.columns, lines(found), found.mark.line) == (columns, [at], at - 1)
    assert values(found) == [dict(zip(columns, row, strict=True))]


@pytest.mark.parametrize("path", ["d.tsv", "folder/D.CSV"])
def test_the_suffix_decides(path: str) -> None:
    assert values(read("a\tb\n1\t2\n", path)) == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("a,b\n1\n1,2,3\n1,2\n", [(2, "1 cell,"), (3, "3 cells")], id="cells"),
        pytest.param("a\n1,2\n", [(2, "1 column")], id="one column"),
        pytest.param("a,b,a\n1,2,3\n", [(1, "'a'")], id="names"),
        pytest.param("sep=,\na,a\n1,2\n", [(2, "'a'")], id="names below sep"),
        pytest.param("a,,b\n1,x,2\n", [(2, "column 2")], id="a value without a name"),
        pytest.param('a,b\n1, "x"\n', [(2, "column 2")], id="space before a quote"),
        pytest.param('a,b\n1,"x\ny\n', [(2, "quote")], id="open quote"),
        pytest.param('a,b\n1,2\n"x"y,3\n', [(3, "CSV")], id="text after a quote"),
        pytest.param("a,b\n", [(0, "no rows")], id="no rows"),
        pytest.param("", [(0, "no rows")], id="empty"),
        pytest.param("\n\n", [(0, "no rows")], id="blank lines"),
    ],
)
def test_csv_that_is_refused(text: str, problems: list[tuple[int, str]]) -> None:
    found = refused(text)
    assert [line for line, _ in found] == [line for line, _ in problems]
    assert all(part in what for (_, what), (_, part) in zip(found, problems, strict=True)), found


@pytest.mark.parametrize("path", ["d.txt", "d", "d.xlsx", "csv"])
def test_other_formats_are_refused(path: str) -> None:
    ((line, what),) = refused("a\n1\n", path)
    assert line == 0
    assert all(suffix in what for suffix in (".csv", ".tsv", ".jsonl", ".json", ".yaml"))


@pytest.mark.parametrize(
    ("error", "at", "begins", "parts", "absent"),
    [
        ("unexpected end of data", 9, 2, ["line 9", "quote"], "unexpected"),
        ("field larger than field limit (1)", 9, 2, ["field larger", "quote"], "line"),
        ("odd", 9, 2, ["odd", "line 9"], "quote"),
        ("odd", 2, 2, ["odd"], "line"),
    ],
)
def test_errors_of_csv(error: str, at: int, begins: int, parts: list[str], absent: str) -> None:
    text = csv_problem(csv.Error(error), at, begins)
    assert all(part in text for part in parts)
    assert absent not in text


# ── JSON Lines ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["d.jsonl", "d.NDJSON"])
def test_json_lines(path: str) -> None:
    found = read('{"a": 1, "b": [true]}\n\n  \n{"c": {"d": null}, "a": "x"}\r\n', path)
    assert found.columns == ("a", "b", "c")
    assert values(found) == [{"a": 1, "b": [True]}, {"c": {"d": None}, "a": "x"}]
    assert lines(found) == [1, 4]
    assert found.rows[1].mark.find(("c", "d")).line == 4
    assert not found.is_text


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param(
            '{"a": 1}\n{"a": \n[1]\n"x"\n', [(2, "JSON"), (3, "a list"), (4, "'x'")], id="each line"
        ),
        pytest.param('{"a": NaN}', [(1, "JSON")], id="no number"),
        pytest.param('{"a": "\\ud800"}', [(1, "surrogate")], id="surrogate"),
        pytest.param("[" * 100_000, [(1, "deep")], id="too deep"),
        pytest.param("\n", [(0, "no rows")], id="no rows"),
    ],
)
def test_json_lines_that_are_refused(text: str, problems: list[tuple[int, str]]) -> None:
    found = refused(text, "d.jsonl")
    assert [line for line, _ in found] == [line for line, _ in problems]
    assert all(part in what for (_, what), (_, part) in zip(found, problems, strict=True)), found


def test_the_column_of_a_mistake_in_json() -> None:
    with pytest.raises(AuthorError) as error:
        read('{"a": 1}\n{"a": x}\n', "d.jsonl")
    (problem,) = error.value.problems
    assert problem.place
    assert (problem.place.line, problem.place.column) == (2, 7)


def test_numbers_keep_their_spelling() -> None:
    found = parse_json_at(' {"price": 1.50, "n": [2.0, 3]} ', Mark("d", 7))
    assert found.value == {"price": 1.5, "n": [2.0, 3]}
    assert type(found.value["price"]) is float
    assert type(found.value["n"][1]) is int
    assert found.mark.find(("price",)).text == "1.50"
    assert found.mark.find(("n", 0)).text == "2.0"
    assert found.mark.find(("n", 1)).text is None
    assert found.mark.find(("n", 0)).line == 7


# ── JSON and YAML ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("d.yaml", "- {a: 1}\n- b: 2\n  a: 3\n"),
        ("d.yml", "- {a: 1}\n- {b: 2, a: 3}\n"),
        ("d.json", '[{"a": 1},\n {"b": 2, "a": 3}]'),
    ],
)
def test_lists_of_rows(path: str, text: str) -> None:
    found = read(text, path)
    assert found.columns == ("a", "b")
    assert values(found) == [{"a": 1}, {"b": 2, "a": 3}]
    assert lines(found) == [1, 2]
    assert not found.is_text


@pytest.mark.parametrize(
    ("path", "text", "problems"),
    [
        ("d.yaml", "a: 1\n", [(1, "a mapping")]),
        ("d.json", '{"a": 1}', [(1, "a mapping")]),
        ("d.yaml", "- {a: 1}\n- x\n- [1]\n", [(2, "'x'"), (3, "a list")]),
        ("d.yaml", "[]", [(0, "no rows")]),
    ],
)
def test_what_is_no_list_of_rows(path: str, text: str, problems: list[tuple[int, str]]) -> None:
    found = refused(text, path)
    assert [line for line, _ in found] == [line for line, _ in problems]
    assert all(part in what for (_, what), (_, part) in zip(found, problems, strict=True)), found


def test_the_remedy_is_in_the_format_of_the_file() -> None:
    for path, remedy in (("d.yaml", "- "), ("d.JSON", "[{")):
        with pytest.raises(AuthorError) as error:
            read('{"a": 1}', path)
        assert remedy in error.value.problems[0].remedy


def test_rows_that_are_written_where_they_are_used() -> None:
    at = Mark("s.yaml", 3, children=[Mark("s.yaml", 4), Mark("s.yaml", 5)])
    found = table_from_list([{"b": 1}, {"a": 2, "b": 3}], at)
    assert (found.columns, lines(found), found.mark) == (("b", "a"), [4, 5], at)
    assert table_from_list([], at).rows == ()
    with pytest.raises(AuthorError) as error:
        table_from_list([{"b": 1}, None], at)
    (problem,) = error.value.problems
    assert problem.place
    assert problem.place.line == 5
