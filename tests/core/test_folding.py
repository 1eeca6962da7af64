"""The folding of texts: its law, and what each step does."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.core.folding import Stars, fold, letters_of, nfc, visible_text
from agenteval.core.text_matching import contains, mentions

SAMPLE = (
    "ab é*_~`\\{},.'\"-’”–., 0123456789\n\u00a0\u0301\u0316\u0335\u0336\u0338\u0345=≠\u200bßŉİΣσς"
    "Ａ１，％＄𝐀𝟎ﾊﾟﾞ²①\u3000\u1fef\u037e\u212aﬁℵ<>()[]"
)
TEXTS = st.text(st.one_of(st.sampled_from(SAMPLE), st.characters()), max_size=30)
WORDS = st.from_regex(r"[a-z]{1,8}( [a-z]{1,8}){0,2}", fullmatch=True)
NUMBERS = st.integers(0, 10**6).map(str)


@given(TEXTS, st.sampled_from(Stars))
@example("\u0345*\u0301", Stars.MARKS)
@example("\\\\(", Stars.MARKS)
@example("1{*,}2", Stars.MARKS)
@example("\\”", Stars.MARKS)
@example("=\u200b\u0338", Stars.MARKS)
def test_folding_is_idempotent(text: str, stars: Stars) -> None:
    folded = fold(text, stars=stars)
    assert fold(folded, stars=stars) == folded


@given(TEXTS)
@example("".join(map(chr, range(0xC0, 0x180))))
@example("Ω𝟙A\ud800ö—…")
def test_letters_are_folded_one_by_one(text: str) -> None:
    letters = letters_of(text)
    assert letters == "".join(map(letters_of, text)) == letters_of(letters)
    assert letters.isalnum() or not letters


@given(TEXTS)
@example("\\*")
def test_what_is_legible_folds_as_the_text(text: str) -> None:
    """But for a mark that was escaped: a legible one is a mark again."""
    assert visible_text(visible_text(text)) == visible_text(text)
    if "\\" not in text:
        assert fold(visible_text(text)) == fold(text)


def wide(letter: str) -> str:
    return chr(ord(letter) - 0x20 + 0xFF00) if letter.isalnum() else letter


def bold(letter: str) -> str:
    return unicodedata.lookup(f"MATHEMATICAL BOLD SMALL {letter}") if letter.isalpha() else letter


def shown(text: str, data: st.DataObject) -> str:
    """The text in another dress, letter by letter."""
    hidden = st.sampled_from(["", "\u200b", "\u00ad", "\u0336", "\u0338", "\u0335\u20e5"])
    dress = st.sampled_from([str, str.upper, wide, bold])
    return "".join(data.draw(dress)(letter) + data.draw(hidden) for letter in text)


@given(WORDS, st.data())
def test_a_needle_is_in_every_dress_of_it(needle: str, data: st.DataObject) -> None:
    mark = data.draw(st.sampled_from(["", "*", "**", "__", "`", "~~", "\\*", "\\_", "\\`"]))
    text = f"So: {mark}{shown(needle, data)}{mark}"
    for form in ("NFC", "NFD"):
        dressed = unicodedata.normalize(form, text)
        assert contains(dressed, needle)
        assert mentions(dressed, needle)
        if mark not in ("*", "**", "\\*", "\\`"):  # an ending, or a mark that the needle asks for
            assert contains(needle, dressed.removeprefix("So: "))


@given(NUMBERS, NUMBERS)
def test_a_number_in_another_dress_is_only_itself(one: str, other: str) -> None:
    for text in ("".join(map(wide, other)), f"\\${other}", f"{other}\\%", f"~~{other}~~", f"＄{other}"):
        assert contains(text, one) == mentions(text, one) == (int(one) == int(other))


def test_other_forms_of_letters_and_digits_are_those_of_the_unicode_database() -> None:
    """One letter, digit, sign of a currency or percent sign of another width or font is the plain one."""
    others = 0
    for char in map(chr, range(sys.maxunicode + 1)):
        form, _, plain = unicodedata.decomposition(char).partition(" ")
        if form in ("<wide>", "<narrow>", "<font>") and chr(int(plain, 16)).isalnum():
            others += 1
            assert fold(char) == fold(chr(int(plain, 16))), char
        elif form in ("<super>", "<sub>", "<circle>", "<fraction>"):
            assert fold(char) != fold(unicodedata.normalize("NFKC", char)), char
    assert others > 1000


@pytest.mark.parametrize("name", ["SHORT STROKE", "LONG STROKE", "SHORT SOLIDUS", "LONG SOLIDUS", "TILDE"])
def test_strokes_are_those_of_the_unicode_database(name: str) -> None:
    stroke = unicodedata.lookup(f"COMBINING {name} OVERLAY")
    assert fold(f"r{stroke}e{stroke}") == "re"


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("a ≠ b", "a ≠ b"),
        ("a =\u0338 b", "a ≠ b"),
        ("\\$5 \\% \\\\ \\n C:\\new", "$5 % \\ \\n c:\\new"),
        ("anna\\_k \\_anna\\_", "anna_k anna"),
        ("1{,}250 1{.}5 {,} 1{a}2", "1,250 1.5 {,} 1{a}2"),
        ("25，100．5", "25，100．5"),
        ("50％ ￥5 ＋", "50% ¥5 ＋"),
        ("x² ① ½", "x² ① ½"),
        ("ﾊﾟ", "パ"),
        ("a &amp; b | c |", "a &amp; b | c |"),
        ("2*3 2\\*3 a*b", "2∗3 2∗3 ab"),
        ("s\\*orry s\\\\*orry \\~5 \\`x\\`", "s∗orry sorry ∼5 ‵x‵"),
        ("2*3*4 4**7**11 1***2 1`2`3 1*`2 1_2 1__2", "2∗3∗4 4711 12 123 12 1_2 1__2"),
        ("~~1~~2 1~2 ~1", "1~~2 1~2 1"),
    ],
)
def test_a_folded_text(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(st.text(st.sampled_from("ab\u0301\u0316\u0345\u0f73é"), max_size=40))
def test_the_composed_form_is_pythons(text: str) -> None:
    assert nfc(text) == unicodedata.normalize("NFC", text)
