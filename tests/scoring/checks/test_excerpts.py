"""Texts as reports quote them."""

import pytest

from agenteval.core.excerpts import excerpt, is_blank, one_line


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u200b", "\u00a0\ufeff", "\u200d"])
def test_blank(text):
    assert is_blank(text)


@pytest.mark.parametrize("text", ["0", ".", "\u200ba", "👍"])
def test_not_blank(text):
    assert not is_blank(text)


def test_excerpts_are_one_printable_line_of_limited_length():
    assert excerpt("Hello\n  world") == '"Hello world"'
    assert excerpt("") == '""'
    assert excerpt("a" * 200) == '"' + "a" * 200 + '"'
    assert excerpt("a" * 201) == '"' + "a" * 200 + '…"'
    assert excerpt("\x1b[31mred\ud800, s\u200becret") == '"red\ufffd, secret"'
    assert one_line("abc def", limit=4) == "abc…"
    assert len(one_line("x " * 1_000_000)) <= 201
