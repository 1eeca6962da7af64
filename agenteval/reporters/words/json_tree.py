"""Format a JSON value for people. A short value is shown on one line, and a longer value is shown as a tree
of indented lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenteval.core.safe_text import clean, one_line

MOST_LINES = 12
"""The maximum number of lines shown for a value in a conversation."""
_DEEPEST = 20
_COUNTED = 10_000
"""The maximum number of omitted lines that are counted."""


def tree_lines(value: Any, width: int, *, most: int = MOST_LINES) -> tuple[str, ...]:
    """Pretty-print ``value`` as at most ``most`` lines of about ``width`` characters. If lines are omitted,
    the last line states the number of omitted lines. A string that contains JSON is parsed and shown as JSON,
    and the original string is not repeated."""
    plain = unescaped(value)
    lines = _text_lines(plain) if isinstance(plain, str) else _lines("", plain, "", width, 0)
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
        shown[-1] = f"… {more} more lines; --json shows all"
    return tuple(shown)


def message_text(text: str, width: int) -> str:
    """Return a message unchanged, or pretty-printed if it is JSON."""
    value = unescaped(text)
    return text if isinstance(value, str) else "\n".join(tree_lines(value, width, most=10 * MOST_LINES))


def value_text(value: Any) -> str:
    """Format ``value`` as JSON on one line. A string that contains JSON is shown as JSON."""
    return _brief(unescaped(value))


class _Exact(float):
    """A number that keeps its original digits. For example, a price of 19.90 must not be shown as 19.9."""

    def __new__(cls, text: str) -> _Exact:
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


def unescaped(value: Any, depth: int = 0) -> Any:
    """Return ``value``, replacing every string that contains a JSON object or list with the parsed value.
    Strings nested within ``value`` are also replaced."""
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
    """Parse a string that contains a JSON object or list. Return ``None`` for any other string. Also return
    ``None`` for an object with a duplicate key, because the parsed object would keep only one of the key's
    values."""
    stripped = text.strip()
    if not (stripped.startswith(("{", "[")) and stripped.endswith(("}", "]"))):
        return None
    try:
        return json.loads(stripped, parse_float=_Exact, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def json_text(value: object) -> str:
    """Format ``value`` as JSON, using ``repr`` for values that JSON cannot represent."""
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except (RecursionError, ValueError, TypeError):  # too deep, circular, or keys that are not strings
        return "(no JSON)"


def _brief(value: Any, depth: int = 0) -> str:
    if isinstance(value, _Exact):
        return value.text
    if depth < _DEEPEST and isinstance(value, Mapping):
        items = (f"{json_text(str(key))}: {_brief(item, depth + 1)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    if depth < _DEEPEST and isinstance(value, list | tuple):
        return f"[{', '.join(_brief(item, depth + 1) for item in value)}]"
    return json_text(value)


def _text_lines(text: str) -> Iterator[str]:
    yield from (clean(text).strip("\n") or '""').split("\n")


def _lines(head: str, value: Any, end: str, width: int, depth: int) -> Iterator[str]:
    """Yield the lines of a value, with ``head`` before the value and ``end`` after it."""
    brief, room = _brief(value), max(20, width - len(head) - len(end))
    is_nested = isinstance(value, Mapping | list | tuple) and bool(value)
    if len(brief) <= room or not is_nested or depth >= _DEEPEST:
        yield head + one_line(brief, room) + end
        return
    opening, closing = "{}" if isinstance(value, Mapping) else "[]"
    yield head + opening
    for name, item, comma in _entries(value):
        yield from (f"  {line}" for line in _lines(name, item, comma, max(20, width - 2), depth + 1))
    yield closing + end


def _entries(value: Any) -> Iterable[tuple[str, Any, str]]:
    last = len(value) - 1
    if isinstance(value, Mapping):
        pairs = ((f"{one_line(json_text(str(key)), 60)}: ", item) for key, item in value.items())
    else:
        pairs = (("", item) for item in value)
    return ((name, item, "," if number < last else "") for number, (name, item) in enumerate(pairs))
