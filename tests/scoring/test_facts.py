"""Facts: what a text says in exactly one way, and whether somebody gave it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from agenteval.scoring.detectors.decoded_answer import decoded_answer
from agenteval.scoring.detectors.facts import facts_in, number_of
from agenteval.scoring.detectors.given_facts import Given, is_one_edit


def facts(text: str) -> list[tuple[str, Any]]:
    return [(fact.kind.value, fact.value) for fact in facts_in(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$1,250.00", [("amount", Decimal("1250.00"))]),
        ("99.90 EUR and 5€", [("amount", Decimal("99.90")), ("amount", Decimal(5))]),
        ("20 dollars", [("amount", Decimal(20))]),
        ("15% off", [("percentage", Decimal(15))]),
        ("2026-05-14", [("date", (2026, 5, 14))]),
        ("2026-05-14T10:30:00Z", [("date", (2026, 5, 14)), ("time", 630)]),
        ("May 14, 2026", [("date", (2026, 5, 14))]),
        ("the 14th of May", [("date", (None, 5, 14))]),
        ("14. März 2026", [("date", (2026, 3, 14))]),
        ("25.12.2026", [("date", (2026, 12, 25))]),
        ("12/25/2026", [("date", (2026, 12, 25))]),
        ("at 3 pm, 15:30 or 3:30 p.m.", [("time", 900), ("time", 930), ("time", 930)]),
        ("order #W123, ORD-42", [("identifier", "w123"), ("identifier", "ord42")]),
        ("10293847", [("identifier", "10293847")]),
        ("gift_card_7773485", [("identifier", "7773485")]),
        ("Mail Ann@Shop.example.", [("address", "ann@shop.example")]),
        ("3 nights", [("number", Decimal(3))]),
    ],
)
def test_a_value_is_read_in_whatever_form(text: str, found: list[tuple[str, Any]]) -> None:
    assert facts(text) == found


@pytest.mark.parametrize("text", ["1.250 km", "03/04/2026", "$1.250"])
def test_what_has_two_readings_is_no_fact(text: str) -> None:
    assert [value for _, value in facts(text)] == [None]


@pytest.mark.parametrize(
    "text", ["option 1 may help", "1. May I ask?", "3rd", "24h", "10kg", "within_24_hours"]
)
def test_what_looks_like_a_fact_and_is_none(text: str) -> None:
    assert not [kind for kind, _ in facts(text) if kind not in ("number",)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,250", "1250"),
        ("1.234.567", "1234567"),
        ("1.234,50", "1234.50"),
        ("3,5", "3.5"),
        ("0.125", "0.125"),
    ],
)
def test_numbers(text: str, value: str) -> None:
    assert number_of(text) == Decimal(value)


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


def given(*values: Any) -> Given:
    known = Given()
    for value in values:
        known.add(value)
    return known


@pytest.mark.parametrize(
    ("value", "gives"),
    [
        ("90", True),
        ("330", True),  # 90 + 240
        ("150", True),  # 240 - 90
        ("270", True),  # three times
        ("97", False),  # 90 and the seven seats
        ("91", False),
    ],
)
def test_a_number_that_two_of_one_result_make(value: str, gives: bool) -> None:
    known = given({"prices": {"economy": 90, "business": 240}, "seats": {"economy": 7, "business": 2}})
    assert known.gives(Decimal(value)) is gives


def test_what_was_said_may_be_added_up() -> None:
    known = given({"price": 2613}, {"price": 500}, {"price": 327})
    assert not known.gives(Decimal(1786))
    assert known.gives(Decimal(1786), [Decimal(2613), Decimal(500), Decimal(327)])


def test_a_day_beside_a_given_one_and_the_other_half_of_the_day_are_given() -> None:
    known = given("on 2026-05-31 at 10:30")
    assert known.has_date((None, 6, 1))
    assert known.has_date((2026, 5, 30))
    assert not known.has_date((2026, 5, 28))
    assert known.has_time(22 * 60 + 30)
    assert not known.has_time(23 * 60)


def test_a_name_is_given_in_whatever_form_it_is_written() -> None:
    known = given("Your order ORD 42-17 is there", {"HAT069": {"seats": 3}})
    assert known.has_name("ord4217")
    assert known.has_name("hat069")
    assert not known.has_name("hat096")
    assert known.near("hat096") == "hat069"


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ('{"message": "It is\\nhere", "order": {"order_id": "A-77", "status": "open"}}', "status: open"),
        ('Sure.\n```json\n{"total_amount": 12.5}\n```', "total amount: 12.5"),
        ('{"message": "cut off\\nhere', "here"),
    ],
)
def test_json_in_an_answer_tells_its_values(answer: str, line: str) -> None:
    assert line in decoded_answer(answer).split("\n")
    assert "It is" not in decoded_answer("[1]")


@pytest.mark.parametrize(
    "text", ["{" * 5000, "[{" * 2000, '{"a": ' * 3000 + "1" + "}" * 3000, "{[" * 100 + "]}"]
)
def test_json_that_is_none_stays_as_it_is(text: str) -> None:
    assert decoded_answer(text)
