"""Limit the size of a single agent reply: an HTTP response, output through a pipe, or the return value or
exception of a Python agent."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

MAX_REPLY_BYTES = 10 * 2**20
"""The maximum size of a reply in bytes."""
TOO_LARGE_TEXT = f"larger than {MAX_REPLY_BYTES // 2**20} MiB"


def is_too_large(value: Any) -> bool:
    """Return whether the total size of the strings in a value exceeds the limit. The fields of Pydantic
    objects and dataclass instances are included. The traversal stops as soon as the limit is exceeded."""
    left, waiting = MAX_REPLY_BYTES, [value]
    seen: set[int] = set()  # ids of containers, because one may contain itself
    while waiting and left >= 0:
        each = waiting.pop()
        if isinstance(each, str):
            left -= len(each) if each.isascii() else len(each.encode("utf-8", "surrogatepass"))
        elif isinstance(each, (bytes, bytearray)):
            left -= len(each)
        elif isinstance(each, int):
            left -= each.bit_length() // 4
        elif id(each) in seen:
            continue
        elif isinstance(each, Mapping):
            seen.add(id(each))
            waiting += each.keys()
            waiting += each.values()
        elif isinstance(each, (list, tuple, set, frozenset)):
            seen.add(id(each))
            waiting += each
        elif hasattr(each, "model_dump") or (dataclasses.is_dataclass(each) and not isinstance(each, type)):
            seen.add(id(each))
            waiting += getattr(each, "__dict__", {}).values()
    return left < 0
