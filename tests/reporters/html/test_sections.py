"""A section as HTML: its title, its table, its notes, and how much of both."""

from __future__ import annotations

import pytest

from agenteval.core.score import Verdict
from agenteval.reporters.html import sections
from agenteval.reporters.html.markup import Markup
from agenteval.reporters.html.sections import section_to_html, table, verdict_mark
from agenteval.reporters.sections.section import Cell, Item, LocationCell, Section, StyledText, Tone
from tests.support.pages import Node, read_html

HOSTILE = "<img src=x onerror=alert(1)>&amp;\"'"


def shown(section: Section, root: str = ".") -> Node:
    return read_html(section_to_html(section, root)).one("div", "section")


@pytest.mark.parametrize(
    ("level", "name"), [(1, "h2"), (2, "h3"), (3, "h4"), (5, "h6"), (6, "h6"), (9, "h6")]
)
def test_the_title_is_one_level_below_its_view(level: int, name: str) -> None:
    (title,) = [node for node in shown(Section("Gates & more", level=level)).below if node.name[0] == "h"]
    assert (title.name, title.text) == (name, "Gates & more")


def test_a_section_without_rows_and_notes_is_its_title() -> None:
    assert [node.name for node in shown(Section("A", columns=("x",))).below] == ["h3"]


def test_the_table_stands_between_the_title_and_the_notes() -> None:
    section = Section(
        "A", columns=("rule", "n"), rows=(("r1", "1"), ("r2", "2")), notes=("x",), numbers=("n",)
    )
    found = shown(section)
    assert [node.name for node in found.content if isinstance(node, Node)] == ["h3", "div", "ul"]
    assert found.heads() == ["rule", "n"]
    assert found.rows() == [["r1", "1"], ["r2", "2"]]
    assert [cell.kinds for cell in found.all("th")] == [[], ["number"]]
    assert [cell.kinds for cell in found.all("td")] == [[], ["number"]] * 2
    assert {cell.attributes["scope"] for cell in found.all("th")} == {"col"}


def test_a_table_can_be_scrolled_with_the_keyboard_and_has_a_name() -> None:
    box = read_html(table(("", "rule", "", 'a "b"'), [("x", "y", "z", "w")], root=".")).one("div", "wide")
    assert (box.attributes["tabindex"], box.attributes["role"]) == ("0", "group")
    assert box.attributes["aria-label"] == 'Table: rule, a "b"'


def test_a_column_without_a_title_has_an_empty_cell_above_it() -> None:
    """An empty header would be read out as a header."""
    found = read_html(table(("", "rule", "n"), [(Verdict.PASSED, "r", "1")], root=".", numbers=("n",)))
    cells = [(cell.name, cell.text) for cell in found.one("thead").one("tr").below]
    assert cells == [("td", ""), ("th", "rule"), ("th", "n")]
    assert [cell.kinds for cell in found.one("tbody").all("td")] == [[], [], ["number"]]


def test_a_verdict_of_a_section_is_a_sign_because_there_it_means_better_or_worse() -> None:
    rows = ((Verdict.PASSED, "a"), (Verdict.FAILED, "b"), (Verdict.INCONCLUSIVE, "c"))
    assert shown(Section("A", columns=("", "x"), rows=rows)).rows() == [["✓", "a"], ["✗", "b"], ["?", "c"]]


def test_a_verdict_is_written_out_on_request() -> None:
    found = read_html(table(("", "x"), [(Verdict.FAILED, "b")], root=".", words=True))
    assert found.rows() == [["✗ failed", "b"]]
    assert found.one("span").kinds == ["verdict", "failed"]


@pytest.mark.parametrize(
    ("cell", "html"),
    [
        ("a & b", "a &amp; b"),
        (HOSTILE, "&lt;img src=x onerror=alert(1)&gt;&amp;amp;\"'"),
        ("a\x1b[2Jb\u202e", "ab"),
        (Markup("<b>x</b>"), "<b>x</b>"),
        (Verdict.PASSED, '<span class="verdict passed">✓</span>'),
        (Verdict.FAILED, '<span class="verdict failed">✗</span>'),
        (Verdict.INCONCLUSIVE, '<span class="verdict inconclusive">?</span>'),
        (LocationCell("/no/shop/s/a.yaml:3"), "<code>s/a.yaml:3</code>"),
        (LocationCell("/else/a.yaml:3"), "<code>/else/a.yaml:3</code>"),
        (LocationCell("default"), "<code>default</code>"),
        (LocationCell("<b>"), "<code>&lt;b&gt;</code>"),
        (StyledText("plain"), "plain"),
        (StyledText("<b>"), "&lt;b&gt;"),
        (StyledText("<b>", Tone.BAD), '<span class="tone-bad">&lt;b&gt;</span>'),
        (StyledText("x", Tone.QUIET), '<span class="tone-quiet">x</span>'),
    ],
)
def test_each_kind_of_cell(cell: Cell | Markup, html: str) -> None:
    assert f"<tbody><tr><td>{html}</td></tr></tbody>" in table(("a",), [(cell,)], root="/no/shop")


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="argument 2"):
        table(("a", "b"), [("x",)], root=".")


@pytest.mark.parametrize(
    ("verdict", "word", "text"),
    [
        ("passed", None, "✓ passed"),
        ("failed", None, "✗ failed"),
        ("inconclusive", None, "? inconclusive"),
        ("failed", "2 failed", "✗ 2 failed"),
        ("failed", "", "✗"),
        ("flaky", "", "•"),
        ("flaky", None, "• flaky"),
        ("reported", "REPORTED", "• REPORTED"),
    ],
)
def test_a_verdict_has_a_sign_and_a_word(verdict: str, word: str | None, text: str) -> None:
    mark = read_html(verdict_mark(verdict, word)).one("span")
    assert (mark.text, mark.kinds) == (text, ["verdict", verdict])


def test_each_kind_of_note() -> None:
    below = ("first", StyledText(""), "", StyledText("second <i>", Tone.OPEN))
    notes = ("a <b>", StyledText("c", Tone.STRONG), Item(("head: ", StyledText("x", Tone.WORST)), below))
    section = Section("A", notes=notes)
    assert str(shown(section).one("ul", "notes").text) == "a <b>chead: xfirstsecond <i>"
    html = section_to_html(section)
    assert "<li>a &lt;b&gt;</li>" in html
    assert '<li><span class="tone-strong">c</span></li>' in html
    assert (
        '<li>head: <span class="tone-worst">x</span><div class="below">first</div>'
        '<div class="below"><span class="tone-open">second &lt;i&gt;</span></div></li>'
    ) in html


@pytest.mark.parametrize(
    ("count", "most", "shown_rows", "rest"),
    [
        (3, 3, 3, []),
        (4, 3, 3, ["… and 1 more gate"]),
        (1503, 3, 3, ["… and 1,500 more gates"]),
        (500, 500, 500, []),
        (501, 500, 500, ["… and 1 more gate"]),
    ],
)
def test_a_table_has_only_so_many_rows(
    monkeypatch: pytest.MonkeyPatch, count: int, most: int, shown_rows: int, rest: list[str]
) -> None:
    assert sections.MOST_ROWS == 500
    monkeypatch.setattr(sections, "MOST_ROWS", most)
    found = shown(Section("A", columns=("n",), rows=tuple((f"{n}",) for n in range(count)), noun="gate"))
    assert found.rows() == [[str(n)] for n in range(shown_rows)]
    assert [each.text for each in found.all("p", "quiet")] == rest


@pytest.mark.parametrize(
    ("count", "rest"), [(2, []), (3, ["… and 1 more line"]), (9, ["… and 7 more lines"])]
)
def test_there_are_only_so_many_notes(monkeypatch: pytest.MonkeyPatch, count: int, rest: list[str]) -> None:
    monkeypatch.setattr(sections, "MOST_ROWS", 2)
    found = shown(Section("A", notes=tuple(f"n{n}" for n in range(count)), noun="gate"))
    assert [each.text for each in found.all("li")] == ["n0", "n1"]
    assert [each.text for each in found.all("p", "quiet")] == rest
