"""A number and what it counts; names in a row, and the first of many."""

from __future__ import annotations

from collections.abc import Sequence


def plural(count: int, noun: str) -> str:
    """``1 sample``, ``2,000 samples``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def join_first(names: Sequence[str], most: int) -> str:
    """The first ``most`` of ``names`` and how many there are besides: ``a, b and 3 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def join_names(texts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
