"""Converts values to JSON text, and parses JSON in text."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

_encoder = json.JSONEncoder(ensure_ascii=False, default=str)


def to_json_or_repr(value: Any) -> str:
    """Return ``value`` as JSON, or as its Python representation if JSON cannot represent it."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def to_json(value: Any) -> str:
    """Return ``value`` as JSON without escaping non-ASCII letters."""
    return json.dumps(value, ensure_ascii=False)


def as_text(value: Any) -> str:
    """Return a string unchanged and any other value as JSON."""
    return value if isinstance(value, str) else to_json(value)


def iter_leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the scalar values in a JSON value in order, each with its path of keys (``customer.name``)."""
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, Mapping):
            pending += [(f"{path}.{key}" if path else str(key), item[key]) for key in reversed(list(item))]
        elif isinstance(item, list):
            pending += [(path, each) for each in reversed(item)]
        else:
            yield path, item


def finite_number(digits: str) -> float:
    """Parse a number for a strict decoder (``parse_float``). Raise ``ValueError`` for a number that would be
    infinite, such as ``1e999``."""
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"{digits} is out of range for a number")
    return number


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not allowed in JSON")


class DuplicateKeyError(ValueError):
    """Raised when a key appears twice in a JSON object."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {json.dumps(key, ensure_ascii=False)} appears twice")


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise DuplicateKeyError(next(key for key, count in counts.items() if count > 1))
    return made


class WrittenNumber(float):
    """A number that preserves its notation, such as ``1.50``."""

    __slots__ = ("text",)

    text: str


def _written_number(digits: str) -> WrittenNumber:
    number = WrittenNumber(finite_number(digits))
    number.text = digits
    return number


STRICT_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=finite_number, object_pairs_hook=_reject_duplicates
)
"""A decoder that accepts only strict JSON: no NaN, no infinite numbers, no duplicate keys. Raises
``ValueError``."""
STRICT_AS_WRITTEN = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_written_number, object_pairs_hook=_reject_duplicates
)
"""A strict decoder that converts a number with a decimal point or an exponent to a ``WrittenNumber``."""


def parse_or(text: str | bytes, otherwise: Any = None) -> Any:
    """Parse JSON text, or return ``otherwise`` if the text is not valid JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def extract_json(text: str) -> Any:
    """Extract the JSON in ``text`` (one value, or one value per line), or return ``None``."""
    stripped = text.strip()
    if stripped[:1] not in {"[", "{"}:
        return None
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        pass
    try:
        return [json.loads(line) for line in stripped.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return None


def parse_object_literal(text: str) -> Mapping[str, Any]:
    """Parse the object in ``text``, which is written as JSON or as a Python dict (``{'error': None}``).
    Return an empty object if there is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _parse_python_literal(text)
    return value if isinstance(value, dict) else {}


def _parse_python_literal(text: str) -> Any:
    if not text.startswith(("{'", '{"')) or len(text) > _LONGEST_OF_PYTHON or _ODD_ESCAPE.search(text):
        return None
    try:
        return ast.literal_eval(text.rstrip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


_LONGEST_OF_PYTHON = 20_000
# Python warns about these.
_ODD_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\(?![\\'\"\nnrtbfavxuUN0-7])")
