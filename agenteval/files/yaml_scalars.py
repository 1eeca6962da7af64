"""Parses scalars according to the YAML 1.2 core schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MAX_DIGITS = 1_000
"""The maximum number of digits in an integer. Most JSON parsers preserve far fewer digits; Python's own limit
for converting integers is higher."""

_PREFIX = "tag:yaml.org,2002:"
STANDARD_TAGS = frozenset(
    ("!", *(_PREFIX + name for name in ("str", "int", "float", "bool", "null", "seq", "map")))
)

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_LONGEST_WORD = max(map(len, _WORDS))
_NUMBER_STARTS = frozenset("0123456789+-.")
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NAN = frozenset((".nan", ".NaN", ".NAN"))


def parse_scalar(text: str) -> Any:
    """Parse a plain (unquoted) scalar according to the YAML 1.2 core schema. Raise ``ValueError`` for
    integers that are too long."""
    if len(text) <= _LONGEST_WORD and text in _WORDS:
        return _WORDS[text]
    if text[:1] not in _NUMBER_STARTS:
        return text
    return _number(text)


def _number(text: str) -> Any:
    for pattern, base in ((_DECIMAL, 10), (_OCTAL, 8), (_HEX, 16)):
        if pattern.fullmatch(text):
            if len(text) > MAX_DIGITS:
                raise ValueError(f"a number with {len(text):,} digits is too long")
            return int(text, base)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITY.fullmatch(text):
        return float("-inf") if text[0] == "-" else float("inf")
    return float("nan") if text in _NAN else text


def parse_tagged_scalar(tag: str, text: str) -> Any:
    """Parse a scalar with a standard tag. Raise ``ValueError`` if the scalar does not match its tag."""
    name = tag.removeprefix(_PREFIX)
    if name in ("!", "str"):
        return text
    value = parse_scalar(text)
    if name == "float" and type(value) is int:
        return float(value)
    if name in ("seq", "map") or type(value) is not _TYPES[name]:
        raise ValueError(f"'{text[:40]}' does not match the tag '!!{name}'")
    return value


_TYPES: dict[str, type] = {"int": int, "float": float, "bool": bool, "null": type(None)}


def canonical_text(value: Any) -> str | None:
    """Return the usual spelling of a value. A string is returned unchanged. Return ``None`` for null, which
    cannot be written as a string."""
    if isinstance(value, str):
        return value
    if value is None:
        return None
    return ("false", "true")[value] if isinstance(value, bool) else str(value)


def display_value(value: Any) -> str:
    """Format a value for a message. Strings are quoted and truncated; for mappings and lists, only the type
    is shown."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        return f"'{value}'" if len(value) <= 60 else f"'{value[:59]}…'"
    text = canonical_text(value) or type(value).__name__
    return text if len(text) <= 60 else f"{text[:59]}…"
