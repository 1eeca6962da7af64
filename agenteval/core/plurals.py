"""Formats a count with its noun (singular or plural), and joins lists of names."""

from __future__ import annotations

from collections.abc import Sequence


def plural(count: int, noun: str) -> str:
    """Format a count with the singular or plural of its noun, such as ``1 sample`` or ``2,000 samples``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def join_first(names: Sequence[str], most: int) -> str:
    """Join the first ``most`` of ``names`` and append the number of remaining names: ``a, b and 3 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def join_names(texts: Sequence[str]) -> str:
    """Join names, such as ``a``, ``a and b`` or ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
