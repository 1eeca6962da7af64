"""A number and what it counts."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """``1 sample``, ``2,000 samples``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
