"""Formats numbers with as few digits as readers need, but with as many as the comparison with a bound
requires. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isclose

_DIGITS = 3
_MOST_DIGITS = 16
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def format_number(value: float, bound: float | str | None = None) -> str:
    """Format a number, such as ``3.49`` or ``1,500``. ``bound`` is the number with which the value is
    compared, or a string that contains this number. The formatted number is on the same side of the bound as
    the value. It is equal to the bound only if the value is equal to the bound (except for rounding errors in
    a mean)."""
    bounds = [each for each in _numbers_in(bound) if not isclose(value, each, rel_tol=1e-9)]
    for digits in range(_DIGITS, _MOST_DIGITS):
        text = _format_digits(value, digits)
        rounded = float(text.replace(",", ""))
        if all((rounded < each, rounded > each) == (value < each, value > each) for each in bounds):
            break
    return text


def _format_digits(value: float, digits: int) -> str:
    return f"{value:.{digits}g}" if abs(value) < 100 else f"{value:,.{digits - _DIGITS}f}"


def _numbers_in(bound: float | str | None) -> Iterator[float]:
    if isinstance(bound, str):
        yield from (float(each.replace(",", "")) for each in _NUMBER.findall(bound))
    elif bound is not None:
        yield bound
