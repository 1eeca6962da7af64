"""Keywords and numbers in an answer."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.scorers.text import contains, excerpt, is_blank, matches, one_line, whole_numbers

HELD = [
    ("25", "25"),
    ("25", "25°C"),
    ("25", "$25"),
    ("25", "25%"),
    ("25", "on the 25th"),
    ("25", "ORD-25"),
    ("25", "25-30"),
    ("30", "25-30"),
    ("25", "25/30"),
    ("25", "25, then"),
    ("25", "(25)"),
    ("25", "it is 25."),
    ("25", "**25**"),
    ("25", "No.25"),
    ("25", "12:25"),
    ("25", "25.0 degrees"),
    ("25", "2526 or 25"),
    ("25", "25.12.2026"),
    ("12", "25.12.2026"),
    ("2026", "25.12.2026"),
    ("12", "2026-12-25"),
    ("10000", "10000"),
    ("10000", "10,000"),
    ("10000", "10 000"),
    ("10000", "10\u00a0000"),
    ("10000", "10\u202f000"),
    ("10000", "10'000"),
    ("10000", "10’000"),
    ("10000", "10_000"),
    ("10000", "10.000"),
    ("10", "10.000"),
    ("10000", "10,000.00"),
    ("1234", "1.234,56"),
    ("1234", "1,234.567"),
    ("1234567", "1,234,567"),
    ("1234567", "1.234.567"),
    ("1234567", "1 234 567"),
    ("100000", "₹1,00,000"),
    ("3588", "3,588"),
    ("10,000", "10000"),
    ("10,000", "10 000"),
    ("10 000", "10,000"),
    (" 10000 ", "10,000"),
    ("333", "333.33"),
    ("333", "333.3333333333333"),
    ("333", "333,33"),
    ("314", "314.0"),
    ("3", "3,5"),
    ("1", "1, 2, 3"),
    ("2", "1, 2, 3"),
    ("2", "1,2,3"),
    ("233", "144 233 377"),
    ("25300", "25 300 people"),
    ("300", "on 2026-12-25 300 people"),
    ("4567", "555 123 4567"),
    ("25", "25  300"),
    ("25", "25\n300"),
    ("25", "a ٢٥ b"),
    ("25", "2 5 25"),
    ("3", "25 - 22 = 3"),
    ("1036", "2 ** 10 + 12 = 1036"),
    ("0025", "id 0025"),
    ("007", "agent 007"),
]
NOT_HELD = [
    ("25", ""),
    ("25", "125"),
    ("25", "251"),
    ("25", "2025"),
    ("25", "1,025"),
    ("25", "1 025"),
    ("25", "3.25"),
    ("25", "3,25"),
    ("25", "$3.25, $4.25"),
    ("25", "3.25,4.5"),
    ("25", ".25"),
    ("25", "-25°C"),
    ("25", "−25"),
    ("25", "(-25)"),
    ("25", "-$25"),
    ("25", "1e25"),
    ("25", "25,000"),
    ("25", "25 000"),
    ("25", "25\u202f300"),
    ("25", "0025"),
    ("10", "10,000"),
    ("0", "10,000"),
    ("000", "10,000"),
    ("000", "10 000"),
    ("10", "10,000.00"),
    ("10", "10.000,00"),
    ("1", "1,00,000"),
    ("333", "3333"),
    ("333", "1.333"),
    ("333", "1,333"),
    ("333", "1 333"),
    ("333", "0.333"),
    ("1234567", "1,234.567"),
    ("6", "6.123233995736766e-17"),
    ("17", "6.123233995736766e-17"),
    ("234", "1.234.567"),
    ("12", "١٢٣"),
    ("10,000", "110,000"),
    ("10,000", "10"),
    ("7", "007"),
]


@pytest.mark.parametrize(("needle", "text"), HELD)
def test_a_number_is_in_the_text(needle, text):
    assert contains(text, needle)


@pytest.mark.parametrize(("needle", "text"), NOT_HELD)
def test_a_number_is_not_in_the_text(needle, text):
    assert not contains(text, needle)


@given(st.integers(0, 10**12), st.sampled_from([",", "'", "’", "_", "\u00a0", "\u202f", "."]))
def test_every_way_to_group_a_number_reads_as_the_number(number, separator):
    written = f"{number:,}".replace(",", separator)
    readings = set(whole_numbers(f"It costs {written} Euro."))
    assert str(number) in readings
    assert readings <= {str(number), written.partition(".")[0]}


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_number_is_only_itself(one, other):
    assert contains(f"There are {other} of them", str(one)) == (one == other)


@given(st.text(alphabet="0123456789,.'_ -e\u202f$x", max_size=40))
def test_whatever_digits_look_like_readings_are_digits_of_the_text(text):
    digits = "".join(c for c in text if c.isdigit())
    for number in whole_numbers(text):
        assert number.isdigit()
        assert number in digits


@given(st.text(max_size=30), st.text(min_size=1, max_size=3), st.text(max_size=30))
def test_a_plain_needle_is_found_where_it_stands(before, needle, after):
    needle = f"<{needle}>"  # no digits alone, and no letters that melt into their neighbours
    assert contains(f"{before}{needle}{after}", needle.swapcase() if needle.isascii() else needle)


def test_words_are_compared_without_case_and_spelling_of_letters():
    assert contains("It is SUNNY.", "sunny")
    assert contains("STRASSE", "straße")
    assert contains(unicodedata.normalize("NFD", "Café Zürich"), "CAFÉ ZÜRICH")
    assert not contains(unicodedata.normalize("NFD", "Café"), "cafe")
    assert not contains("sun", "sunny")


def test_other_needles_are_plain_parts():
    assert contains("$250", "$25")
    assert contains("13.145", "3.14")
    assert contains("it is -25°C", "-25")


def test_matches_searches_without_case():
    assert matches("Your ORDER is ready", "order (is|was)")
    assert not matches("Your ORDER", "^order")
    assert matches(unicodedata.normalize("NFD", "Zürich"), "z.rich")


def test_long_texts_take_one_pass():
    text = "1" * 200_000 + " " + "12 " * 50_000 + "1,2" * 50_000 + "-" * 50_000
    assert not contains(text, "7")
    assert contains(text, "12")


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
    assert excerpt("\x1b[31mred\ud800") == '"\ufffd[31mred\ufffd"'
    assert one_line("abc def", limit=4) == "abc…"
    assert len(one_line("x " * 1_000_000)) <= 201
