"""Figures beside their bounds."""

from __future__ import annotations

import pytest

from agenteval.core.number_format import format_number


@pytest.mark.parametrize(
    ("value", "bound", "text"),
    [
        (3.4, 3.5, "3.4"),
        (3.4976, 3.5, "3.498"),
        (3.499996, 3.5, "3.499996"),
        (3.5, 3.5, "3.5"),
        (3.5 - 1e-12, 3.5, "3.5"),
        (2 / 3, None, "0.667"),
        (1500.4, "at most 1,500 ms", "1,500.4"),
        (1500.4, "at most 1,600 ms", "1,500"),
        (123456.0, None, "123,456"),
        (0.0, 0.5, "0"),
        (0.96, 1.0, "0.96"),
        (0.99999, 1.0, "0.99999"),
    ],
)
def test_as_many_digits_as_it_takes_to_be_on_its_side_of_the_bound(
    value: float, bound: float | str | None, text: str
) -> None:
    assert format_number(value, bound) == text
