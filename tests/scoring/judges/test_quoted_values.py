"""The values in a quotation: identifiers, and numbers in any notation, as far as they are unambiguous."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from agenteval.scoring.judges.quoted_values import extract_values, is_value, parse_amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("7", "7.00"),
        ("0", "0.00"),
        ("12.5", "12.50"),
        ("12,5", "12.50"),
        ("12.34", "12.34"),
        ("12,34", "12.34"),
        ("0.125", "0.12"),
        ("0,125", "0.12"),  # no thousands after a zero
        ("1.250", None),  # a thousand, or one and a quarter
        ("1,250", "1250.00"),
        ("12,5000", "12.50"),
        ("1.2500", "1.25"),
        ("1,250.50", "1250.50"),
        ("1.250,50", "1250.50"),
        ("1,250,000", "1250000.00"),
        ("1.250.000", "1250000.00"),
        ("1,250,000.5", "1250000.50"),
        ("1'250", "1250.00"),
        ("1’250.5", "1250.50"),
        ("1\u00a0250", "1250.00"),
        ("1\u202f250,50", "1250.50"),
        ("1'250,50", "1250.50"),
        ("1,2,3", "123.00"),
        ("1" * 24, "1" * 24 + ".00"),
        ("1" * 25, None),
    ],
)
def test_an_amount(text: str, amount: str | None) -> None:
    assert parse_amount(text) == (None if amount is None else Decimal(amount))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("It costs 12.50 EUR.", {Decimal("12.50")}),
        ("-5 or $5 or 5%", {Decimal("5.00")}),
        ("Order ORD-42 for 3", {"ord42", Decimal("3.00")}),
        ("Write to Ann@Home.example", {"ann@home.example"}),
        ("about 1.250", set()),
        ("no value", set()),
        ("", set()),
        ("10.001 and 10,001", {Decimal("10001.00")}),
    ],
)
def test_values_in_a_text(text: str, values: set[Any]) -> None:
    assert extract_values(text) == values


def test_digits_of_an_identifier_are_no_number() -> None:
    assert extract_values("#W2378156") == {
        value for value in extract_values("#W2378156") if isinstance(value, str)
    }


@pytest.mark.parametrize(
    ("text", "is_single"),
    [
        ("12.50", True),
        (" $12.50 ", True),
        ("$ 12.50", True),
        ("12%", True),
        ("€5", True),
        ("£5", True),
        ("¥5", True),
        ("#5", False),
        ("1.250", True),
        ("ORD-42", True),
        ("ann@home.example", True),
        ("12 EUR", False),
        ("ORD-42 and 3", False),
        ("twelve", False),
        ("", False),
        ("$", False),
    ],
)
def test_a_single_value(text: str, is_single: bool) -> None:
    assert is_value(text) is is_single
