"""Determine how long a server asks callers to wait (``Retry-After`` and rate limit headers), in all formats
that servers use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_S = 86_400.0
"""The longest wait in seconds. A request for a longer wait effectively means "not today"."""
HINT_S = 60.0
"""The longest wait in seconds based on a reset header. Such a header reports when a limit is fully restored,
not how long to wait."""

_NUMBER = re.compile(r"\d{1,15}(?:\.\d*)?")
_PART = r"(\d{1,15}(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)"
_DURATION = re.compile(rf"(?:{_PART}\s*)+", re.IGNORECASE)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_IN_TEXT = re.compile(
    rf"(?:try(?:ing)? again|retry|wait)\s+(?:in|after|for)\s+((?:{_PART}\s*)+)\b"
    rf"|\bretry_?delay\W{{1,4}}((?:{_PART}\s*)+)",
    re.IGNORECASE,
)
_RESET = re.compile(r"(x-)?ratelimit-reset(-[a-z-]+)?|[a-z]+-ratelimit-[a-z-]+-reset")
_EPOCH_S, _EPOCH_MS = 1e9, 1e12


def parse_retry_after(headers: Mapping[str, str], *, now_s: float, text: str = "") -> float | None:
    """Return the number of seconds that a refusal asks callers to wait (``Retry-After``), between 0 and
    ``LONGEST_S``, or ``None`` if the refusal does not ask for a wait.

    The sources are, in this order: ``retry-after-ms``; ``retry-after`` as seconds, a duration, a date or a
    timestamp; ``text``, which is the server's message ("try again in 6m0s"); and the time at which a limit is
    reset (at most ``HINT_S``). ``now_s`` is in seconds since 1970; header names are in lower case."""
    millis = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(millis):
        return min(float(millis) / 1000, LONGEST_S)
    for asked in (_seconds(headers.get("retry-after", ""), now_s), _in_text(text)):
        if asked is not None:
            return min(asked, LONGEST_S)
    return _reset_s(headers, now_s)


def _in_text(text: str) -> float | None:
    found = _IN_TEXT.search(text)
    return _duration(found[1] or found[4]) if found else None


def _seconds(value: str, now_s: float) -> float | None:
    """Convert a number, a duration such as ``6m0s``, a timestamp in seconds since 1970, or a date to seconds
    from now."""
    value = value.strip()
    if _NUMBER.fullmatch(value):
        number = float(value)
        if number > _EPOCH_S:
            return max(0.0, number / (1000 if number > _EPOCH_MS else 1) - now_s)
        return number
    return _duration(value) if _DURATION.fullmatch(value) else _until(value, now_s)


def _duration(value: str) -> float:
    return sum(
        float(number) * (0.001 if unit.lower().startswith(("ms", "milli")) else _UNITS[unit[0].lower()])
        for number, unit in re.findall(_PART, value, re.IGNORECASE)
    )


def _until(value: str, now_s: float) -> float | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(value)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return max(0.0, moment.timestamp() - now_s)
        except (ValueError, OverflowError, TypeError):
            continue
    return None


def _reset_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Return the longest reset time of the limits that are exhausted. If no limit is exhausted, return the
    shortest reset time of all limits."""
    used_up: list[float] = []
    others: list[float] = []
    for name, asked in _resets(headers, now_s):
        left = headers.get(name.replace("reset", "remaining"), "")
        (used_up if left.strip() == "0" else others).append(asked)
    if used_up:
        return min(max(used_up), HINT_S)
    return min(*others, HINT_S) if others else None


def _resets(headers: Mapping[str, str], now_s: float) -> Iterator[tuple[str, float]]:
    for name, value in headers.items():
        if _RESET.fullmatch(name) and (asked := _seconds(value, now_s)) is not None:
            yield name, asked
