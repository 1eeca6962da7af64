"""Which texts are whole numbers."""

from __future__ import annotations

import pytest

from agenteval.core.digits import parse_digits


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("7", 7),
        ("007", 7),
        ("503", 503),
        ("٣", 3),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("1" * 5000, None),
        ("", None),
        ("²", None),
        ("1²", None),
        ("①", None),
        ("½", None),
        ("-1", None),
        ("+1", None),
        ("1.0", None),
        (" 1", None),
        ("1_0", None),
        ("x", None),
    ],
)
def test_what_is_a_whole_number(text: str, number: int | None) -> None:
    assert parse_digits(text) == number
