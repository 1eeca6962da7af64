"""Converts values to JSON text and parses JSON in texts."""

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
    """Return ``value`` as JSON, or as Python shows it if JSON cannot represent it."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def to_json(value: Any) -> str:
    """Return ``value`` as JSON without escaping its letters."""
    return json.dumps(value, ensure_ascii=False)


def as_text(value: Any) -> str:
    """Return a text as it is and everything else as JSON."""
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
    """Parse a number for a strict decoder (``parse_float``). Raises ``ValueError`` for ``1e999``, which would
    be infinite."""
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"{digits} is outside the range of numbers")
    return number


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class DuplicateKeyError(ValueError):
    """A key occurs twice in a JSON object."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {json.dumps(key, ensure_ascii=False)} occurs twice")


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise DuplicateKeyError(next(key for key, count in counts.items() if count > 1))
    return made


class WrittenNumber(float):
    """A number that keeps its notation: ``1.50``."""

    __slots__ = ("text",)

    text: str


def _written_number(digits: str) -> WrittenNumber:
    number = WrittenNumber(finite_number(digits))
    number.text = digits
    return number


STRICT_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=finite_number, object_pairs_hook=_reject_duplicates
)
"""A decoder that accepts only strict JSON: no NaN, no infinite number, no duplicate key. Raises
``ValueError``."""
STRICT_AS_WRITTEN = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_written_number, object_pairs_hook=_reject_duplicates
)
"""The same, but a number with a point or an exponent becomes a ``WrittenNumber``."""


def parse_or(text: str | bytes, otherwise: Any = None) -> Any:
    """Parse JSON text; return ``otherwise`` if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def extract_json(text: str) -> Any:
    """Return the JSON in ``text`` (one value, or one per line), or ``None``."""
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
    """Return the object in ``text``, written as JSON or as Python shows one (``{'error': None}``); otherwise
    an empty one."""
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
