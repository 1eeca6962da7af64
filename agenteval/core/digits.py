"""Reads whole numbers that are written in digits. Pure."""

from __future__ import annotations

_MOST_DIGITS = 18


def parse_digits(text: str) -> int | None:
    """Parse a whole number that consists of digits only. Return ``None`` for any other text, including digits
    that are no decimal numbers (``²``), and for a number too long to be a position, a status or a port."""
    return int(text) if len(text) <= _MOST_DIGITS and text.isdecimal() else None
