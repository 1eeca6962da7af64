"""Replaces the functions of SQL whose results depend on the time or on chance, so that a sample can be
repeated: the clock is fixed, the time zone is UTC, and random numbers are seeded."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from random import Random
from threading import Lock
from typing import Any

_DATE_FUNCTIONS = ("date", "time", "datetime", "julianday", "strftime", "unixepoch", "timediff")
_CURRENT = {"current_date": "date", "current_time": "time", "current_timestamp": "datetime"}
_MACHINE_TIME_ZONE = frozenset(("localtime", "utc"))
"""The modifiers that convert between UTC and the time zone of the machine."""
_WITH_FRACTION = frozenset(("subsec", "subsecond"))
_MOST_RANDOM_BYTES = 1_000_000


class SampleClock:
    """The time and the random numbers of a sample. Each tool draws from numbers of its own, so that a call
    gets the same ones whatever other tools drew before."""

    def __init__(self, now: datetime, seed: int) -> None:
        in_utc = now.astimezone(UTC) if now.tzinfo else now
        self.now = in_utc.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
        """The time in UTC, as SQLite writes it."""
        self._seed = seed
        self._numbers: dict[str, Random] = {}
        self.random = Random(seed)

    def draw_for(self, tool: str) -> None:
        """Draw from the random numbers of a tool from now on."""
        if tool not in self._numbers:
            self._numbers[tool] = Random(f"{self._seed}:{tool}")
        self.random = self._numbers[tool]


class ClockFunctions:
    """The functions of a connection. ``clock`` is that of the sample whose statement is being run, because
    samples may share a connection."""

    def __init__(self, clock: SampleClock) -> None:
        self.clock = clock

    def install(self, connection: sqlite3.Connection) -> None:
        """Replace the functions of a connection. Those of dates are declared as deterministic, because SQLite
        accepts only such functions in CHECK constraints and indexes."""
        for name in _available_functions():
            function = partial(self._call_date_function, name)
            connection.create_function(name, -1, function, deterministic=True)
        for name, date_function in _CURRENT.items():
            function = partial(self._call_date_function, date_function)
            connection.create_function(name, 0, function, deterministic=True)
        connection.create_function("random", 0, lambda: self.clock.random.getrandbits(64) - (1 << 63))
        connection.create_function("randomblob", 1, self._random_bytes)

    def _call_date_function(self, name: str, *arguments: Any) -> Any:
        first = 1 if name == "strftime" else 0
        values = (*arguments[:first], *_fix_time(arguments[first:], self.clock.now))
        return _call_original(name, values)

    def _random_bytes(self, count: Any) -> bytes:
        size = count if isinstance(count, int) else 1
        return self.clock.random.randbytes(min(max(size, 1), _MOST_RANDOM_BYTES))


def _fix_time(arguments: tuple[Any, ...], now: str) -> list[Any]:
    """Return the arguments of a date function, a time value and its modifiers, with the given time as 'now'
    and UTC as the local time zone."""
    if not arguments or _lower(arguments[0]) in _WITH_FRACTION:
        arguments = (now, *arguments)
    return [now if _lower(value) == "now" else value for value in arguments if not _is_of_machine(value)]


def _is_of_machine(value: Any) -> bool:
    return _lower(value) in _MACHINE_TIME_ZONE


def _lower(value: Any) -> str:
    return value.lower() if isinstance(value, str) else ""


# ── the original functions ───────────────────────────────────────────────────────────────────────

_LOCK = Lock()


@cache
def _original() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", check_same_thread=False)


def _call_original(name: str, arguments: tuple[Any, ...]) -> Any:
    """Call a date function of SQLite on a connection that still has it."""
    holes = ", ".join("?" * len(arguments))
    with _LOCK:
        return _original().execute(f"SELECT {name}({holes})", arguments).fetchone()[0]


@cache
def _available_functions() -> tuple[str, ...]:
    """Return the date functions that this version of SQLite has."""
    return tuple(name for name in _DATE_FUNCTIONS if _exists(name))


def _exists(name: str) -> bool:
    call: Callable[[str], Any] = _original().execute
    return bool(call(f"SELECT 1 FROM pragma_function_list WHERE name = '{name}'").fetchall())
