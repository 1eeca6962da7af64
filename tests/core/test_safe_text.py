"""Text from outside, made harmless for a terminal, XML, a CI log and Markdown."""

import re
from xml.dom import minidom

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.core.safe_text import (
    clean,
    escape_markdown,
    fence,
    github_data,
    github_property,
    neutralize_workflow_commands,
    one_line,
    shorten,
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
