"""Formats texts for quotation in reports: on one line, shortened and sanitized."""

from __future__ import annotations

from agenteval.core.safe_text import clean


def is_blank(text: str) -> bool:
    """Check whether ``text`` contains no visible characters: it is empty or consists of white space and
    zero-width characters."""
    if text[:1].isalnum():
        return False  # fast path: nearly every text begins so
    return not any(char.isprintable() and not char.isspace() for char in text)


def one_line(text: str, limit: int = 200) -> str:
    """Return ``text`` on one line, truncated to ``limit`` characters, with invisible characters removed.

    A secret that contains invisible characters is masked like any other secret."""
    line = " ".join(text[: 8 * limit].split())
    shown = line[:limit]
    if not shown.isprintable():
        shown = "".join(char for char in clean(shown) if char.isprintable())
    is_complete = len(line) <= limit and len(text) <= 8 * limit
    return shown if is_complete else f"{shown.rstrip()}…"


def excerpt(text: str, limit: int = 200) -> str:
    """Quote ``text`` on one line, in quotation marks, truncated to ``limit`` characters."""
    return f'"{one_line(text, limit)}"'
