"""Identifiers: what a text names, whether somebody gave it, and what looking for them costs."""

from __future__ import annotations

import re
import sys
from collections import Counter
from decimal import Decimal

import pytest

from agenteval.scoring.detectors import identifiers
from agenteval.scoring.detectors.identifiers import SourceTexts, find_identifiers, is_one_edit
from agenteval.scoring.detectors.ungrounded import ungrounded_value
from agenteval.scoring.judges.quoted_values import extract_values, parse_amount
from tests.support.detector_samples import call, conversation, turn


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("order #W123, ORD-42", ["w123", "ord42"]),
        ("10293847", ["10293847"]),
        ("gift_card_7773485", ["7773485"]),
        ("Mail Ann@Shop.example.", ["ann@shop.example"]),
        ("402-581-7997", ["4025817997"]),
        ("card ending in 7083 (•••• 7083)", ["7083", "7083"]),
        ("ticket#4455, KX7PQ2", ["4455", "kx7pq2"]),
        ("https://x.example/a?id=ORD-77.", ["https://x.example/a", "ord77"]),
        ("订单ORD-42是", ["ord42"]),
        ('{"a":"\\nORD-42"}', ["ord42"]),
    ],
)
def test_what_names_a_thing(text: str, found: list[str]) -> None:
    assert [each.core for each in find_identifiers(text)] == found
    assert all(text[each.start : each.end] == each.text for each in find_identifiers(text))


@pytest.mark.parametrize(
    "text",
    ["option 1 may help", "3rd", "24h", "10kg", "within_24_hours", "2026-05-14T10:30:00Z", "14.05.2026",
     "$1250000", "1250000 EUR", "1,234,567.50", "1234567.50", "192.168.10.200", "m***.*****1234@example.com",
     "Straße-4711é", "v1.2.3", "10:30", "5%"],
)  # fmt: skip
def test_what_names_none(text: str) -> None:
    assert list(find_identifiers(text)) == []


def test_a_name_is_given_in_whatever_form_it_is_written() -> None:
    known = SourceTexts("Your order ORD 42-17 is there", {"HAT069": {"seats": 3}}, {"id": 10293847})
    assert [each.text for each, _ in known.find_ungrounded("ord-4217, HAT-069, #10293847")] == []
    assert [(each.text, near) for each, near in known.find_ungrounded("HAT096")] == [("HAT096", "hat069")]
    phone = SourceTexts({"phone": "123-456-7890"})
    assert [near for _, near in phone.find_ungrounded("123-456-7890, 122-456-7890")] == ["1234567890"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("hat135", "hat136", True),
        ("hat135", "hat153", True),
        ("hat135", "hat1355", True),
        ("hat135", "hat13", True),
        ("hat135", "hat135", False),
        ("hat135", "hat246", False),
        ("a1", "a2", False),
    ],
)
def test_one_edit(one: str, other: str, same: bool) -> None:
    assert is_one_edit(one, other) is is_one_edit(other, one) is same


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,250", "1250"),
        ("1.234.567", "1234567"),
        ("1.234,50", "1234.50"),
        ("3,5", "3.5"),
        ("0.125", "0.12"),
        ("1'250", "1250"),
    ],
)
def test_numbers_are_compared_to_cents(text: str, value: str) -> None:
    assert parse_amount(text) == Decimal(value)


@pytest.mark.parametrize("text", ["1.250", "9" * 30])
def test_what_has_two_readings_is_no_number(text: str) -> None:
    assert parse_amount(text) is None


def test_values_are_the_same_without_sign_and_however_they_are_written() -> None:
    assert (
        extract_values("-431.30, ORD-42")
        == extract_values("Ord-42 for 431.3")
        == {Decimal("431.30"), "ord42"}
    )
    assert extract_values("100,000") == extract_values("100000.00") == {Decimal(100_000)}


# ── hostile texts ────────────────────────────────────────────────────────────────────────────────

SHAPES = [
    "a", "1", "A1", "a-", "a1-", "1-", "_", "#", "#1", "@", "a@", "a@b.", "a@b.c1", "://", "http://", ".",
    "1.", "1,", "/", "\\", "\\u", "\\n", "*", "•1", "ending in ", "x", "-5", "日本", "日1", "é1", "A1 ",
    "ORD-42 ", "#W1234567 ", "12345678 ", "a@b.de ", "$", "$1", "1€", " ", "\n",
]  # fmt: skip


WHOLE = ("_ESCAPE", "_RUN", "_DIGITS", "_MASKED", "_MAIL", "_PIECE", "_SIGNS")
"""The expressions that are given a whole text or run; the others get a piece of bounded length."""


@pytest.mark.parametrize("name", WHOLE)
def test_an_expression_for_whole_texts_takes_one_class_or_has_bounds(name: str) -> None:
    pattern = getattr(identifiers, name).pattern
    is_one_class = re.fullmatch(r"(?:#\?)?(?:\[[^\]]+\]|\\[dw])\+", pattern)
    assert is_one_class or not re.search(r"(?<!\\)[*+](?![^\[]*\])|\{\d*,\}", pattern), pattern


def _work(text: str) -> int:
    """Counted in calls of functions, which no other process slows down."""
    done = Counter[str]()
    sys.setprofile(lambda frame, event, _: done.update((event,)))
    try:
        talk = conversation(turn(text, call("look", {"note": text}, id=text[:100]), text), turn("?", text))
        list(ungrounded_value(talk))
    finally:
        sys.setprofile(None)
    return done.total()


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_times_the_text_is_ten_times_the_work(shape: str) -> None:
    short, long = (shape * (size // len(shape)) for size in (400, 4_000))
    _work("ORD-42")  # what is made once
    assert _work(long) < 14 * _work(short) + 2_000


@pytest.mark.parametrize("shape", SHAPES)
def test_a_long_text_of_anything_is_read(shape: str) -> None:
    """With an expression that takes the square, this does not end."""
    text = shape * (40_000 // len(shape))
    list(SourceTexts(text).find_ungrounded(f"{text} ORD-99817"))
    extract_values(text)
