"""Texts as reports quote them: on one line, shortened and harmless."""

from __future__ import annotations

from agenteval.core.safe_text import clean


def is_blank(text: str) -> bool:
    """Check whether ``text`` has nothing visible: it is empty, white space or zero-width characters."""
    if text[:1].isalnum():
        return False  # fast path: nearly every text begins so
    return not any(char.isprintable() and not char.isspace() for char in text)


def one_line(text: str, limit: int = 200) -> str:
    """Return ``text`` on one line, cut after ``limit`` characters, without invisible characters.

    A secret that contains such characters is masked like any other."""
    line = " ".join(text[: 8 * limit].split())
    shown = line[:limit]
    if not shown.isprintable():
        shown = "".join(char for char in clean(shown) if char.isprintable())
    is_complete = len(line) <= limit and len(text) <= 8 * limit
    return shown if is_complete else f"{shown.rstrip()}…"


def excerpt(text: str, limit: int = 200) -> str:
    """Quote ``text`` on one line, in quotation marks, cut after ``limit`` characters."""
    return f'"{one_line(text, limit)}"'
