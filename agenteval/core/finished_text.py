"""The last step before a stream: sanitizes a finished page once more, and encodes it. ``--help`` needs only
this. The parts of a page are made safe by ``core/safe_text.py``."""

from __future__ import annotations

import re

_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2060\ufeff\U000e0000-\U000e007f]"
)
"""Characters that ``clean`` removes, except for the zero-width space, which ``escape_markdown`` inserts."""


def sanitize_page(text: str, *, colors: bool = False) -> str:
    """Remove everything that a terminal interprets or that changes the reading order. ``text`` is a finished
    page. Newlines and tabs are kept. If ``colors`` is set, color sequences are kept as well."""
    if not _OBEYED.search(text):
        return text
    if colors:
        parts = re.split(r"(\x1b\[[0-9;]*m)", text)
        return "".join(part if place % 2 else sanitize_page(part) for place, part in enumerate(parts))
    from agenteval.core.safe_text import WIDTH_SPACE, clean  # seldom needed

    return WIDTH_SPACE.join(map(clean, text.split(WIDTH_SPACE)))


def escape_in_json(text: str) -> str:
    """Return equivalent JSON in which all control and bidirectional characters are escaped."""
    import json  # seldom needed

    obeyed_in_json = _OBEYED.pattern.replace("\x0b-\x1f", "\x0b\x0c\x0e-\x1f")
    return re.sub(obeyed_in_json, lambda found: json.dumps(found[0])[1:-1], text)


_ASCII = str.maketrans({
    "✓": "+", "✗": "x", "≈": "~", "…": "...", "–": "-", "—": "-", "×": "x", "·": "/", "ˢ": "*", "→": "->",
    "←": "<-", "─": "-", "━": "-", "╸": "-", "╺": "-", "│": "|", "╭": "+", "╮": "+", "╰": "+", "╯": "+",
    "├": "+", "┤": "+", "┬": "+", "┴": "+", "┼": "+", "“": '"', "”": '"', "≥": ">=",
})  # fmt: skip


def for_encoding(text: str, encoding: str | None) -> str:
    """Convert ``text`` so that it can be written to a stream with the given encoding. agenteval's symbols
    become ASCII, and other unsupported characters become ``?``."""
    name = encoding or "utf-8"
    try:
        text.encode(name)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(name, "replace").decode(name)
    return text
