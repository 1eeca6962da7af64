"""A JSON value as a few lines that a person reads: short ones on one line, else a tree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval.core.safe_text import clean, one_line
from agenteval.reporters.words.transcript_lines import json_text

MOST_LINES = 12
"""Of a value that is shown in a conversation."""
_DEEPEST = 20
_COUNTED = 10_000
"""What is left out is counted so far."""


def tree_lines(value: Any, width: int, *, most: int = MOST_LINES) -> tuple[str, ...]:
    """``value`` in at most ``most`` lines, of about ``width`` characters; the last one says what is left out.
    JSON that stands in a text is shown as what it is, and no text of it twice."""
    plain = unescaped(value)
    lines = _lines(plain, width)
    shown: list[str] = []
    left_out = 0
    for line in lines:
        if len(shown) < most:
            shown.append(line)
        else:
            left_out += 1
            if left_out >= _COUNTED:
                break
    if left_out:
        more = f"{left_out + 1:,}" + ("+" if left_out >= _COUNTED else "")
        shown[-1] = f"… {more} more lines; --json has all"
    return tuple(shown)


def unescaped(value: Any, depth: int = 0) -> Any:
    """``value`` with each text in it that is a JSON object or list as that; also within such a text."""
    if depth >= _DEEPEST:
        return value
    match value:
        case str():
            found = _json_in(value)
            return value if found is None else unescaped(found, depth + 1)
        case Mapping():
            return {key: unescaped(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [unescaped(item, depth + 1) for item in value]
    return value


def _json_in(text: str) -> Any:
    """``None`` for what is a text, and no object or list in JSON."""
    stripped = text.strip()
    if not (stripped.startswith(("{", "[")) and stripped.endswith(("}", "]"))):
        return None
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        return None


def _lines(value: Any, width: int, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield from (clean(value).strip("\n") or '""').split("\n")
        return
    brief = json_text(value)
    if len(brief) <= width or depth >= _DEEPEST or not isinstance(value, Mapping | list) or not value:
        yield _cut(brief, width)
        return
    pairs = value.items() if isinstance(value, Mapping) else ((None, item) for item in value)
    for key, item in pairs:
        yield from _entry("- " if key is None else f"{one_line(str(key), 60)}: ", item, width, depth)


def _entry(head: str, item: Any, width: int, depth: int) -> Iterator[str]:
    brief = json_text(item)
    room = max(20, width - len(head))
    if not isinstance(item, Mapping | list) or not item or len(brief) <= room or depth + 1 >= _DEEPEST:
        yield head + _cut(brief, room)
        return
    below = _lines(item, max(20, width - 2), depth + 1)
    if head == "- ":
        yield head + next(below)
    else:
        yield head.rstrip()
    yield from (f"  {line}" for line in below)


def _cut(text: str, width: int) -> str:
    return one_line(text, max(width, 20))
