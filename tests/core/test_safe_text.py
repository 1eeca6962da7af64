"""Text from outside, made harmless for a terminal, XML, a CI log and Markdown."""

import re
import sys
from xml.dom import minidom

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.core.safe_text import (
    clean,
    escape_markdown,
    fence,
    find_invisible,
    github_data,
    github_property,
    has_invisible,
    limit_texts,
    neutralize_workflow_commands,
    one_line,
    one_line_message,
    one_line_with_digest,
    remove_invisible,
    shorten,
    shorten_message,
    strip_escapes,
    to_csv_text,
    to_xml_text,
)

ANY = st.text(st.characters(exclude_categories=()))  # lone surrogates and controls too
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred\x9b0m", "red"),
        ("\x1b]8;;http://evil\x1b\\click\x1b]8;;\x07", "click"),
        ("a\x1b]52;c;ZXZpbA==\x07b", "ab"),
        ("a\x1bPq#0\x1b\\b", "ab"),
        ("\x1b(Bplain", "plain"),
        ("cut off \x1b]52;c;and the rest stays", "cut off ]52;c;and the rest stays"),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
        ("safe\u202etxt.exe", "safetxt.exe"),
        ("nul\0 bell\a back\b del\x7f", "nul bell back del"),
        ("half \ud83d", "half \ufffd"),
        ("tab\tstays", "tab\tstays"),
        ("👩\u200d👩\u200d👧 naïve עברית ไทย", "👩\u200d👩\u200d👧 naïve עברית ไทย"),
        ("a\u200bb\ufeffc\U000e0041", "abc"),
    ],
)
def test_clean(text, shown):
    assert clean(text) == shown


@given(ANY)
@example("\x1b\x1b[[0mm")
def test_clean_leaves_nothing_to_obey(text):
    cleaned = clean(text)
    assert not FORBIDDEN.search(cleaned)
    assert clean(cleaned) == cleaned
    cleaned.encode()


def test_a_megabyte_of_unfinished_sequences_is_cleaned():
    assert clean("\x1b]" * 500_000) == "]" * 500_000
    assert clean("\x1b[" + "0" * 1_000_000) == "[" + "0" * 1_000_000
    assert clean("\x9d" * 1_000_000) == ""
    assert clean("\x9dx\x98a\x9cb") == "xb"


@given(ANY, st.integers(1, 40))
def test_one_line_is_one_short_line(text, limit):
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1


def test_one_line_says_that_it_was_cut():
    assert one_line(" a \n\n b\t", 10) == "a b"
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("x" * 1_000_000, 50) == "x" * 49 + "…"


def test_shorten_keeps_lines_and_counts_the_rest():
    assert shorten("a\r\nb", 10) == "a\nb"
    assert shorten("x" * 3000, 10) == "x" * 10 + "… [2,990 more characters]"


@given(ANY)
@example("\ufffe\uffff\0]]>")
def test_xml_can_be_parsed(text):
    element = minidom.Document().createElement("a")
    element.appendChild(minidom.Document().createTextNode(to_xml_text(text)))
    minidom.parseString(element.toxml().encode())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain - and = and +1 @home", "plain - and = and +1 @home"),
        ("", ""),
        *((f"{sign}1+1", f"'{sign}1+1") for sign in "=+-@＝＋－＠"),
        ("\t1", "'\t1"),
        ("\r1", "'\n1"),
        ("  =1+1", "'  =1+1"),
        ("\u200b\x1b[31m=1+1", "'=1+1"),
        ("- a\n- b", "'- a\n'- b"),
        ("a;=1+1;b; -c", "a;'=1+1;b;' -c"),
        ("a\t=1+1", "a\t'=1+1"),
        ("'=1+1", "'=1+1"),
        ("a\n::error::x", "a\n: :error::x"),
    ],
)
def test_a_cell_is_no_formula(text, shown):
    assert to_csv_text(text) == shown


@given(ANY)
def test_a_cell_is_no_formula_however_it_is_split(text):
    for cell in re.split("[\n\t;]", to_csv_text(text)):
        assert not cell.strip().startswith(("=", "+", "-", "@"))


def runner_obeys(line):
    """As GitHub's runner reads a line of a log: the new form, then the old one."""
    return line.lstrip().startswith("::") or "##[" in line


@given(ANY)
@example("  ::set-output name=x::y\n::error::z\r::stop-commands::t")
@example("x ##[set-env name=PATH]y ##\u200b[error]")
def test_no_line_is_a_command(text):
    assert not any(runner_obeys(line) for line in re.split("[\r\n]", neutralize_workflow_commands(text)))


def test_github_encoding():
    assert github_data("50%\nnext %0A") == "50%25%0Anext %250A"
    assert github_property("a:b, c%\nd") == "a%3Ab%2C c%25%0Ad"


@given(ANY)
def test_a_property_stays_within_its_command(text):
    assert not set(github_property(text)) & set(":,\r\n")
    assert not set(github_data(text)) & set("\r\n")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a | b", r"a \| b"),
        (r"a \| b", r"a \\\| b"),
        ("`code` *b* ~s~ $x$", r"\`code\` \*b\* \~s\~ \$x\$"),
        ("<script>&amp;", "&lt;script&gt;&amp;amp;"),
        ("# title", r"\# title"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("3.5 stays, book_morning too", "3.5 stays, book_morning too"),
        ("_em_", r"\_em\_"),
        ("two\nlines", "two lines"),
        ("    indented", "indented"),
    ],
)
def test_markdown_is_plain_words(text, written):
    assert escape_markdown(text) == written


@pytest.mark.parametrize(
    "text",
    [
        "![x](http://evil.example/p.png)",
        "[x](javascript:alert)",
        "https://evil.example",
        "ftp://evil.example",
        "WWW.evil.example",
        "@everyone",
        "mail me@evil.example",
        "mailto:me",
        "closes #12 and GH-12",
        "<http://evil.example>",
        "ht\u200btp:/\u200b/evil.example",
        "@\u200beveryone",
    ],
)
def test_markdown_links_and_mentions_nobody(text):
    written = escape_markdown(text)
    live = r"(?i)://|www\.|@\w|mailto:\w|#\d|GH-\d|(?<!\\)\[|(?<!\\)\]|<|>"
    assert not re.search(live, written)


@given(ANY)
def test_a_fence_is_longer_than_what_it_holds(text):
    first, *body, last = fence(text).split("\n")
    bar = re.match("`+", first)[0]
    assert last == bar
    assert len(bar) >= 3
    assert all(bar not in line for line in body)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("plain", []),
        ("plain é\n\t", []),
        ("a\x1b[31mb", [(1, 6)]),
        ("a\x1bb", [(1, 2)]),
        ("a\u200bb\u00adc", [(1, 2), (3, 4)]),
        ("\ufe0f", [(0, 1)]),
        ("a\u200d", [(1, 2)]),  # `clean` keeps it
        ("\u200b\x1b]0;\u200b\x07", [(0, 1), (1, 7)]),  # once each, the longer first
        ("\u200b\x00a\x1b\x1b[1m\xadb", [(0, 2), (3, 4), (4, 8), (8, 9)]),
        ("", []),
    ],
)
def test_what_nobody_sees_has_its_place(text: str, spans: list[tuple[int, int]]) -> None:
    assert find_invisible(text) == spans
    assert has_invisible(text) is bool(spans)
    assert remove_invisible(text) == re.sub(
        "\x1b\\[[0-9]+m|\x1b].*\x07|[\x00\x1b\u200b\u200d\xad\ufe0f]", "", text
    )


def test_every_invisible_character_is_known_to_be_one() -> None:
    for code in range(sys.maxunicode + 1):
        assert has_invisible(f"a{chr(code)}é") is (len(remove_invisible(f"a{chr(code)}é")) == 2), hex(code)


def test_in_a_file_nothing_obeys_a_sequence() -> None:
    assert find_invisible("a\x1b[31mb", sequences=False) == [(1, 2)]
    assert find_invisible("a\x1b]0;\u200b\x07", sequences=False) == [(1, 2), (5, 7)]


def test_only_sequences_are_stripped() -> None:
    assert strip_escapes("\x1b[31mred\x1b[0m\u200b\0\r\n") == "red\u200b\0\r\n"


REMEDY_OF = "what happened — do this"


@pytest.mark.parametrize(
    ("text", "limit", "line"),
    [
        (REMEDY_OF, 100, REMEDY_OF),
        (REMEDY_OF, len(REMEDY_OF), REMEDY_OF),
        (f"{'x' * 50} — {'y' * 50}", 40, f"{'x' * 19}… — {'y' * 50}"),
        ("x" * 50 + " — do this", 40, "x" * 29 + "… — do this"),
        ("x" * 50, 10, "x" * 9 + "…"),
        ("a\nb", 10, "a b"),
    ],
)
def test_a_message_keeps_its_remedy(text: str, limit: int, line: str) -> None:
    assert one_line_message(text, limit) == line


def test_texts_that_are_cut_stay_different() -> None:
    assert one_line_with_digest(" a \n b ", 3) == "a b"
    first, second = (one_line_with_digest("x" * 50 + end, 30) for end in "ab")
    assert first != second
    for each in (first, second):
        assert re.fullmatch(r"x{18}… \[[0-9a-f]{8}\]", each)
    assert len(first) == 30
    assert one_line_with_digest("x" * 50 + "a", 0).startswith("… [")
    assert one_line_with_digest("x" * 50 + "  a", 30) == one_line_with_digest("x" * 50 + "\na", 30)


def test_a_list_of_texts_is_limited() -> None:
    assert limit_texts(2, ["b", "a", "b"]) == ("b", "a")
    assert limit_texts(0, []) == ()
    *kept, rest = limit_texts(2, ["a", "b", "c", "d", "c"])
    assert kept == ["a", "b"]
    assert re.fullmatch(r"and 2 more \[[0-9a-f]{8}\]", rest)
    assert limit_texts(2, ["a", "b", "c", "e"])[-1] != rest
    assert "1,500 more" in limit_texts(1, map(str, range(1501)))[-1]


def test_a_long_message_is_cut_and_its_remedies_follow() -> None:
    assert shorten_message(REMEDY_OF, 100) == REMEDY_OF
    long = f"{'x' * 50}\none — do this\ntwo — do that\nthree — do this"
    first, *lost = shorten_message(long, 20).split("\n")
    assert first.startswith("x" * 20 + "…")
    assert lost == ["— do this", "— do that"]
    assert shorten_message(f"a — go\n{'x' * 50} — go", 20).count("go") == 1


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("::error::x", ": :error::x"),
        ("  ::error::x", "  : :error::x"),
        ("a\n::error", "a\n: :error"),
        ("a ::b", "a ::b"),
        (":a", ":a"),
        ("x##[set]", "x## [set]"),
        ("# title", "# title"),
    ],
)
def test_commands_of_a_runner(text: str, written: str) -> None:
    assert neutralize_workflow_commands(text) == written


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1) a", r"1\) a"), ("1.", r"1\."), ("1.a", "1.a"), ("+ a", r"\+ a"), ("= a", r"\= a"),
        ("a_b _c_ d", r"a_b \_c\_ d"), ("www.a", "www\u200b.a"), ("a:b", "a:b"), ("#a", r"\#a"),
        ("a #1", "a #\u200b1"), ("GH-1", "GH\u200b-1"), ("AGH-1", "AGH-1"), ("xmpp:a", "xmpp:\u200ba"),
    ],
)  # fmt: skip
def test_what_markdown_would_read(text: str, line: str) -> None:
    assert escape_markdown(text) == line


def test_a_fence_of_a_language() -> None:
    assert fence("a\n\n", "yaml") == "```yaml\na\n```"
    assert fence("````") == "`````text\n````\n`````"
    assert fence("") == "```text\n\n```"


def test_the_limits_of_a_line() -> None:
    assert one_line("abcd", 4) == "abcd"
    assert one_line("abcde", 0) == "…"
    assert one_line("ab cde", 4) == "ab…"
    assert one_line(" " * 1079 + "a", 4) == "a"
    assert shorten("abcd", 4) == "abcd"
    assert shorten("abc def", 4) == "abc… [3 more characters]"
