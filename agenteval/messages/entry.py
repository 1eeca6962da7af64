"""What was found in a log: a record and its place, or why there is none. Values."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias


class Record(NamedTuple):
    """A JSON value and its place, ``file:line``."""

    value: Any
    where: str


class Unreadable(NamedTuple):
    """What could not be read, and why."""

    where: str
    why: str


Entry: TypeAlias = Record | Unreadable
