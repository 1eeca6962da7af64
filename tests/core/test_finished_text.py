"""Finished pages and JSON on their way to a stream."""

from __future__ import annotations

import pytest

from agenteval.core.finished_text import escape_in_json, for_encoding, sanitize_page


@pytest.mark.parametrize(
    ("text", "plain", "colored"),
    [
        ("a\u200bb\n\tc", "a\u200bb\n\tc", "a\u200bb\n\tc"),
        ("\x1b[31mred\x1b[0m", "red", "\x1b[31mred\x1b[0m"),
        ("\x1b[2J\x1b[31mred", "red", "\x1b[31mred"),
        ("a\u202eb\u200bc", "ab\u200bc", "ab\u200bc"),
        ("a\x0bb\x85", "ab", "ab"),
        ("a\u2028b\r\nc", "a\nb\nc", "a\nb\nc"),
        ("half \ud83d", "half \ufffd", "half \ufffd"),
    ],
)
def test_a_page_keeps_its_own_breaks_and_colors(text: str, plain: str, colored: str) -> None:
    assert sanitize_page(text) == plain
    assert sanitize_page(text, colors=True) == colored


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ('{"a": "é\n"}\r\n\t', '{"a": "é\n"}\r\n\t'),
        ('"\x7f\x1b"', r'"\u007f\u001b"'),
        ('"\u202e\u2028\ufeff"', r'"\u202e\u2028\ufeff"'),
        ('"\U000e0041"', r'"\udb40\udc41"'),
        ('"\x0b\x0c\x0e"', r'"\u000b\f\u000e"'),
        ('"\u200b"', '"\u200b"'),
    ],
)
def test_json_with_its_controls_escaped(text: str, escaped: str) -> None:
    assert escape_in_json(text) == escaped


@pytest.mark.parametrize(
    ("encoding", "text", "written"),
    [
        ("utf-8", "✓ é 😀", "✓ é 😀"),
        (None, "✓ é 😀", "✓ é 😀"),
        ("ascii", "plain", "plain"),
        ("ascii", "✓✗≈…–—×·ˢ→←─━╸╺│╭╮╰╯├┤┬┴┼“”≥ é", '+x~...--x/*-><-----|+++++++++"">= ?'),
        ("latin-1", "✓ é", "+ é"),
        ("ascii", "😀", "?"),
    ],
)
def test_a_stream_of_another_encoding(encoding: str | None, text: str, written: str) -> None:
    assert for_encoding(text, encoding) == written
