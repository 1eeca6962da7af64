"""One comparison of texts: words, numbers, and whatever a typographer makes of them."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.core.folding import fold
from agenteval.core.text_matching import (
    contains,
    contains_quotation,
    mentions,
    needle_mistake,
    suggest_starred,
)

# The rows of the formats, word for word.
STATED = [
    ("25", "125", False),
    ("25", "2025", False),
    ("10000", "10,000", True),
    ("333", "333.33", True),
    ("$25", "$250", False),
    ("$25", "$25.50", False),
    ("217.50", "1,217.50", False),
    ("BK-7", "BK-71", False),
    ("yes", "eyes", False),
    ("1:30", "11:30", False),
    ("$1250", "$1,250", True),
    ("refund*", "refunded", True),
    ("refund*", "the refund", True),
    ("refund*", "prerefund", False),
    ("refund", "refunded", False),
    ("*ed", "refunded", True),
    ("*ed", "refunded it", True),
    ("*ed", "edit", False),
    ("1.2", "1.2.3", False),
    ("15.03", "15.03.2026", True),
    ("order_id", "the `order_id`", True),
    ("orderid", "the order_id", False),
]
# And the other side of each: what is next to it and must not end otherwise.
BESIDE = [
    ("25", "It is 25.", True),
    ("25", "25°C", True),
    ("$25", "It is $25.", True),
    ("$25", "US$25, now", True),
    ("$25", "-$25", False),
    ("$25.50", "$25.50", True),
    ("$25.5", "$25.50", False),
    ("217.50", "$217.50", True),
    ("1217.50", "1,217.50", True),
    ("1,217.50", "1217.50", True),
    ("1.217,50", "1217,50", True),
    ("BK-7", "BK-7.", True),
    ("BK-7", "(BK-7/2)", True),
    ("BK-7", "ABK-7", False),
    ("yes", "Yes!", True),
    ("yes", "yes2", True),
    ("1:30", "1:30 pm", True),
    ("20:00", "20:00:00", True),
    ("-25", "\u221225°C", True),
    ("-25", "20-25 degrees", False),
    ("3.14", "13.14", False),
    ("3.14", "3.145", False),
    ("3.0", "3.0.1", False),
    ("1", "1.2.3", False),
    ("3", "1.2.3", False),
    ("2.3", "1.2.3", False),
    ("1.2.3", "1.2.3", True),
    ("1.2.3", "v1.2.3-rc1", True),
    ("1.2.3", "1.2.3.4", False),
    ("1.2*", "1.2.3", True),
    ("192.168", "192.168.1.1", False),
    ("1.2", "1.2, 3.4", True),
    ("03.2026", "15.03.2026", True),
    ("3", "15.03.2026", False),
    ("03", "15.03.2026", True),
    ("15", "15.3.2026.", True),
    ("15", "15.3.26", False),
    ("31", "31.12.2026", True),
    ("32", "32.12.2026", False),
    ("1", "1.13.2026", False),
    ("0", "0.1.2026", False),
    ("2", "1.2.3,4.5", False),
    ("4.5", "1.2.3,4.5", True),
    ("1234567", "1.234.567", True),
    ("25*", "250", True),
    ("*25", "125", True),
    ("2*3", "2*3 = 6", True),
    ("2*3*4", "2*3*4", True),
    ("234", "2*3*4", False),
    ("4711", "4**7**11", True),
    ("4711", "4`7`11", True),
    ("4**7**11", "4711", True),
    ("25", "**2**5", True),
    ("25", "12**5**", False),
    ("$25", "$**25**0", False),
    ("$250", "$**25**0", True),
    ("30", "~~25~~30", True),
    ("2530", "~~25~~30", False),
    ("10~20", "10~20", True),
    ("1_000", "1_000", True),
    ("5\\*", "a 5* hotel", True),
    ("5\\*", "a 5 hotel", False),
    ("5\\*", "**5**", False),
    ("5\\*", "*note* 5* or **4**", True),
    ("4\\*", "*note* 5* or **4**", False),
    ("sorry", "s\\*orry", False),
    ("s\\*orry", "s\\*orry", True),
    ("s*orry", "s\\*orry", True),
    ("sorry", "\\*sorry\\*", True),
    ("\\*", "all but * one", True),
    ("**25**", "125", False),
    ("**25**", "25", True),
    ("日本", "日本語です", True),
    ("refund", "请refund吧", True),
    ("สวัสดี", "สวัสดีครับ", True),
    ("нет", "нету", False),
    ("нет", "Нет.", True),
    ("ναι", "ναίλον", False),
    ("cafe", "café", False),
    ("x", "x\u0304", False),
    ("don't", "don’t", True),
    ('the "Grand"', "the „Grand“", True),
    ("e-mail", "e\u2011mail", True),
    ("9-17", "9–17", True),
    ("New York", "New\u00a0\nYork", True),
    ("10 000 EUR", "10\u202f000\u00a0EUR", True),
    ("25 300", "25\n300", True),
    ("refund", "re\u00adfund", True),
    ("refunded", "re**fund**ed", True),
    ("25 degrees", "**25** degrees", True),
    ("not refundable", "~~not~~ *refundable*", True),
    ("run make", "run `make`", True),
    ("STRASSE", "straße", True),
    ("Café Zürich", unicodedata.normalize("NFD", "CAFÉ ZÜRICH"), True),
    (",", "10,000", True),
    ("½ kg", "½ kg", True),
    ("25 EUR", "3.25 EUR", False),
    ("costs 25", "costs 25.50", False),
]


@pytest.mark.parametrize(("needle", "text", "is_found"), [*STATED, *BESIDE])
def test_a_needle(needle, text, is_found):
    assert contains(text, needle) is is_found


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
    ("10000", "10.000"),
    ("10", "10.000"),
    ("10000", "10,000.00"),
    ("1234", "1.234,56"),
    ("1234", "1,234.567"),
    ("1234567", "1,234,567"),
    ("1234567", "1.234.567"),
    ("1.234.567", "1234567"),
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
    ("12", "Room 12 350 EUR"),
    ("350", "Room 12 350 EUR"),
    ("12350", "Room 12 350 EUR"),
    ("12 350", "Room 12 350 EUR"),
    ("12 350", "Room 12,350 EUR"),
    ("12350", "12\u00a0350 EUR"),
    ("12350", "12\u2009350 EUR"),
    ("12\u202f350", "12 350 EUR"),
    ("350000", "Room 12 350\u00a0000 EUR"),
    ("12350", "12 350\n400"),
    ("25", "25 100-dollar notes"),
    ("100", "25 100-dollar notes"),
    ("100", "call 100 200"),
    ("100200", "call 100 200"),
    ("12", "12\n350 EUR"),
    ("350", "12\t350 EUR"),
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
    ("10000", "10_000"),
    ("10_000", "10000"),
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
    ("333", "1\u00a0333"),
    ("350", "12\u00a0350 EUR"),
    ("350", "12\u202f350 EUR"),
    ("12", "12\u2009350 EUR"),
    ("12350", "12\n350 EUR"),
    ("12350", "12\r\n350 EUR"),
    ("12350", "12\n\n350 EUR"),
    ("12350", "12\u2028350 EUR"),
    ("12350", "12\t350 EUR"),
    ("12350", "12  350 EUR"),
    ("12350", "12\u00a0\u00a0350 EUR"),
    ("12\u00a0350", "12\n350 EUR"),
    ("$1250", "Pay $1\n250 people"),
    ("12350400", "12 350\n400"),
    ("1.250", "1,250"),
    ("3.145", "3,145"),
    ("000", "25 000"),
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


FIRM = ("\u00a0", "\u202f", "\u2009", "\u2007")
APART = ("\n", "\n\n", "\t", "  ", " \u00a0")


@pytest.mark.parametrize(("needle", "text"), HELD)
def test_a_number_is_in_the_text(needle, text):
    assert contains(text, needle)


@pytest.mark.parametrize(("needle", "text"), NOT_HELD)
def test_a_number_is_not_in_the_text(needle, text):
    assert not contains(text, needle)


@pytest.mark.parametrize(
    ("needle", "text", "is_found"),
    [
        ("fund", "refunded", True),
        ("yes", "eyes", True),
        ("re fund", "re\nfund", True),
        ("25", "-25", True),
        ("$25", "-$25", True),
        ("-25", "-25", True),
        ("-$25", "it is -$25", True),
        ("-25", "20-25 degrees", False),
        ("-25", "20°-25°", False),
        ("-25", "20–25", False),
        ("-25", "10--25", True),
        ("-25", "BK-25", False),
        ("-x", "BK-x", True),
        ("4711", "4**7**11", True),
        ("10000", "10_000", False),
        ("10_000", "10_000", True),
        ("25", "2025", False),
        ("$25", "$250", False),
        ("BK-7", "BK-71", False),
        ("250", "1,250.50", False),
        ("1250", "1,250.50", True),
        ("350", "Room 12 350 EUR", True),
        ("12", "Room 12 350 EUR", True),
        ("12350", "Room 12 350 EUR", True),
        *(
            (needle, f"Room 12{blank}350", True)
            for needle in ("12", "350", "12350", "12 350")
            for blank in FIRM
        ),
        *((needle, f"Room 12{gap}350", True) for needle in ("12", "350") for gap in APART),
        *(("12350", f"Room 12{gap}350", False) for gap in APART),
        ("25", "25,000", False),
        ("25", "25 000", False),
        ("10000", "10 000", True),
    ],
)
def test_what_must_not_be_said_is_found_inside_words_and_no_number_inside_another(needle, text, is_found):
    assert mentions(text, needle) is is_found


@pytest.mark.parametrize(
    ("quotation", "text", "is_found"),
    [
        ("I have … your refund", "Well, I **have** booked your refund.", True),
        ("I have ... your refund", "I have no refund", False),
        ("[…] refun [...]", "your refund", True),
        ("*have*", "I have", True),
        ("$25", "$250", False),
        ("…", "anything", False),
        ("", "anything", False),
    ],
)
def test_a_quotation_is_found_part_by_part(quotation, text, is_found):
    assert contains_quotation(quotation, text) is is_found


@pytest.mark.parametrize(
    ("text", "needle", "better"),
    [
        ("refunded", "refund", "refund*"),
        ("eyes", "yes", "*yes"),
        ("unrefunded", "refund", "*refund*"),
        ("$25.50", "$25", "$25*"),
        ("nothing", "refund", ""),
        ("x refunded", "re*und", ""),
    ],
)
def test_a_miss_that_a_star_would_have_found_is_told(text, needle, better):
    assert suggest_starred(text, needle) == better


@pytest.mark.parametrize("needle", ["", " ", "\u200b", "\u00ad\u200b ", "*", "**", "* *", "_", "```", "~~"])
@pytest.mark.parametrize("takes_stars", [True, False])
def test_a_needle_of_which_nothing_is_left_is_misused(needle, takes_stars):
    assert needle_mistake(needle, takes_stars=takes_stars)


@pytest.mark.parametrize("needle", ["a", "25", "refund*", "\\*", "2*3", "日", ".", "😀"])
def test_other_needles_are_not(needle):
    assert not needle_mistake(needle, takes_stars=True)
    assert bool(needle_mistake(needle, takes_stars=False)) is ("*" in needle.replace("\\*", ""))


# Properties ----------------------------------------------------------------------------------------

TEXTS = st.text(
    st.one_of(st.sampled_from("ab é*_~`-’”–., 0123456789\n\u00a0\u0301\u0345\u200bßŉİΣ"), st.characters()),
    max_size=30,
)
PRINTABLE = TEXTS.filter(str.isprintable).filter(lambda text: not needle_mistake(text, takes_stars=True))
WORDS = st.from_regex(r"[a-zé]{1,8}( [a-zé]{1,8}){0,2}", fullmatch=True)


@given(PRINTABLE)
@example("10* 000")
@example("* 5*")
def test_a_needle_is_in_itself(needle):
    assert contains(needle, needle)
    assert mentions(needle, needle)


@given(WORDS, st.data())
def test_typography_hides_no_needle(needle, data):
    text = "".join(
        char + data.draw(st.sampled_from(["", "", "\u200b", "\u00ad", "\u2060"])) for char in needle
    )
    text = text.replace(" ", data.draw(st.sampled_from([" ", "\u00a0", "\n", " \t ", "\u3000"])))
    mark = data.draw(st.sampled_from(["", "*", "**", "_", "`", "~~", "***"]))
    form = data.draw(st.sampled_from(["NFC", "NFD", "NFKC"]))
    text = unicodedata.normalize(form, f"So: {mark}{text.upper()}{mark}, yes.")
    assert contains(text, needle)
    assert mentions(text, needle)


@given(WORDS, st.sampled_from("aéщω"))
def test_a_needle_ends_where_its_word_ends(needle, letter):
    assert not contains(f"{needle}{letter}", needle) or letter in needle
    assert contains(f"{needle}{letter}", f"{needle}*")
    assert contains(f"{letter}{needle}", f"*{needle}")
    assert mentions(f"{letter}{needle}{letter}", needle)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_number_is_only_itself(one, other):
    for text in (f"There are {other} of them", f"{other:,}", f"${other:,}.00", f"x{other}", f"**{other}**"):
        assert contains(text, str(one)) == (one == other)
        assert mentions(text, str(one)) == (one == other)


@given(st.integers(10**3, 10**12), st.sampled_from([",", "'", "’", "\u00a0", "\u202f", "."]))
def test_every_way_to_group_a_number_reads_as_the_number(number, separator):
    written = f"It costs {number:,} Euro.".replace(",", separator)
    assert contains(written, str(number))
    assert contains(str(number), f"{number:,}".replace(".", ","))


def test_a_fragment_of_markdown_is_found():
    assert contains_quotation("Total:** 25 EUR", "**Total:** 25 EUR")
    assert not re.search(r"[*_`~]", fold("***a*** `b` ~~c~~ __d__ _e_"))
