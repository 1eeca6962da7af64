"""Matches text (keyword matching): does a text contain a needle, which is a string written by an author or a
judge?

**Both sides are folded**, so that typography does not affect the result: see ``folding``. Stars that
represent any ending or beginning (wildcards) are parsed before folding.

**A needle matches only at word and number boundaries.** In scripts that separate words with spaces (Latin,
Greek, Cyrillic), a match is never part of a word. A number is never split: a minus sign, digits, a decimal
point with a fraction, and an exponent form one unit, and thousands separators are ignored. Only a needle that
consists of digits also matches before a fraction: 333 is in 333.33, but ``$25`` is not in "$25.50". Digits
with two or more points (``1.2.3``, an IP address) are one word. In a date (``25.12.2026``) and between commas
(``1,2,3``), each run of digits is a separate number.

As for white space, only a single space may separate thousands, never a line break, a tab or several spaces. A
non-breaking, narrow or thin space joins two groups of digits. An ordinary space may also separate two numbers
("Room 12 350 EUR"), unless a zero follows: "10 000". If it is ambiguous whether a separator joins (an
ordinary space; ``10.000``), both readings match. An underscore does not separate thousands and is kept as
written, in ``1_000`` as in ``order_id``. Everything else has only one reading, because authors notice a wrong
failure but not a wrong pass.

``not_contains`` passes if nothing is found, so ambiguity has the opposite effect: letters match inside words,
a number is found even after a minus sign, and a non-breaking space is as ambiguous as an ordinary space.
Numbers are still not split: "2025" does not contain 25, and "20-25" does not contain -25 ("10--25" may)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from agenteval.core.folding import (
    BLANK,
    FIRM_BLANK,
    NEVER_SOUGHT,
    Stars,
    fold,
    fold_but_blanks,
    in_original,
)
from agenteval.core.text_cache import keep_by_text


def contains(text: str, needle: str) -> bool:
    r"""Check whether ``text`` contains ``needle`` as whole words and numbers. ``refund*`` allows any ending,
    ``*ed`` allows any beginning, and ``\*`` represents a literal star."""
    return _is_in(_parse_needle(needle), text)


def mentions(text: str, needle: str) -> bool:
    """Check whether ``text`` contains ``needle``, even inside words, as ``not_contains`` does."""
    return _is_in(_Needle(needle, is_lax=True), text)


def find_mentions(text: str, needle: str) -> list[tuple[int, int]]:
    """Return the positions in the original ``text`` at which ``mentions`` finds ``needle``. Each position
    extends from the first letter or digit to the last."""
    lax = _Needle(needle, is_lax=True)
    wanted, readings = _sides(lax, text)
    spans: dict[tuple[int, int], None] = {}
    for reading in readings:
        found = [span for each in wanted for span in _find_at_bounds(lax, each, reading)]
        spans |= dict.fromkeys(in_original(text, reading.text, found) if found else ())
    return sorted(spans)


def contains_quotation(quotation: str, text: str) -> bool:
    """Check whether ``text`` contains every part of ``quotation``, in the same way as ``mentions``. The parts
    are separated by ellipses."""
    parts = [part for part in _ELLIPSIS.split(quotation) if fold(part)]
    return bool(parts) and all(mentions(text, part) for part in parts)


def suggest_starred(text: str, needle: str) -> str:
    """Suggest a form of ``needle`` with stars that matches ``text``, which does not contain the needle
    itself. Return an empty string if there is none."""
    tries = (f"{needle}*", f"*{needle}", f"*{needle}*")
    return next((each for each in tries if contains(text, each)), "")


def needle_mistake(needle: str, *, takes_stars: bool) -> str:
    """Return the reason why a needle cannot be searched for, with the remedy after a semicolon. Return an
    empty string if the needle is valid."""
    if not fold(_parse_needle(needle).text).strip(NEVER_SOUGHT):
        if not needle.strip():
            return "an empty string is in every answer; specify the text to look for"
        return (
            f"'{needle}' contains only Markdown marks and invisible characters, which are ignored"
            "; use `matches` for them"
        )
    if not takes_stars and "*" in needle.replace(_ESCAPED, ""):
        return (
            f"`not_contains` does not support '*' in '{needle}'; remove it: the text is also found inside"
            f" longer words (for a literal asterisk, use '{_ESCAPED}')"
        )
    return ""


_ESCAPED = "\\*"
_ELLIPSIS = re.compile(r"\[(?:…|\.{3,})\]|…|\.{3,}")


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────

_START = r"(?<![0-9])(?<![0-9][,.'])"
_GROUPS = re.compile(
    rf"{_START}(?P<whole>[1-9][0-9]{{0,2}}(?P<by>[,.'])[0-9]{{3}}(?:(?P=by)[0-9]{{3}})*"
    r"|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3})"  # lakhs: 1,00,000
    r"(?P<fraction>(?!(?P=by))[.,][0-9]++)?(?![,.']?[0-9])"
)
_FIRM_GROUPS, _BLANK_GROUPS = (
    re.compile(
        rf"{_START}(?<![0-9]{blank})(?P<whole>[1-9][0-9]{{0,2}}(?P<by>{blank})[0-9]{{3}}"
        rf"(?:{blank}[0-9]{{3}})*)(?P<fraction>[.,][0-9]++)?(?!{blank}?[0-9])"
    )
    for blank in (FIRM_BLANK, BLANK)
)
_NUMBER = re.compile(
    r"(?P<sign>(?<![\w)\]}%°.\-])-[$€£¥]?(?=\.?[0-9]))?"
    r"(?:(?P<one>(?<![\w.,])[0-9]++(?:\.[0-9]++)?e[+-]?[0-9]++(?!\w)|(?<![\w.])\.[0-9]++)"
    r"|(?P<chain>[0-9]++(?:[.,][0-9]++)*))"
)
_RUN = re.compile("[0-9]+")
_NO_END, _POINT, _SIGN = 1, 2, 3


class _NumberReading(NamedTuple):
    """A folded text in which the digit groups of numbers are joined."""

    text: str
    marks: bytes
    """A mark for each position between two characters if a number continues across that position: ``_POINT``
    before a fraction, ``_SIGN`` after a minus sign."""


@keep_by_text
def _readings(text: str, *, stars: Stars, is_lax: bool) -> tuple[_NumberReading, ...]:
    """Return the two ways of reading the numbers in a text: ambiguous groups are read as lists or as single
    numbers."""
    seen = fold_but_blanks(text, stars=stars)
    bold = _join_groups(seen, _digits, _digits)
    return tuple(
        _NumberReading(each, _number_marks(each))
        for each in dict.fromkeys((_join_sure(seen, is_lax=is_lax), bold))
    )


@keep_by_text
def _needle_readings(needle: str, *, is_lax: bool) -> tuple[str, ...]:
    """Return the ways of reading a needle. A point is read as a decimal point if possible, so "1,250" does
    not contain 1.250. A star within the needle is markup, or a star that is escaped in the text."""
    seen = (fold_but_blanks(needle, stars=stars) for stars in (Stars.MARKS, Stars.SEEN))
    readings = (
        (_join_sure(each, is_lax=is_lax), _join_groups(each, _digits_if_sure, _digits)) for each in seen
    )
    return tuple(dict.fromkeys(chain.from_iterable(readings)))


def _join_sure(seen: str, *, is_lax: bool) -> str:
    blanks = seen.replace(FIRM_BLANK, BLANK) if is_lax else seen
    return _join_groups(blanks, _digits_if_sure, _digits_if_sure)


def _join_groups(
    seen: str, digits: Callable[[re.Match[str]], str], across: Callable[[re.Match[str]], str]
) -> str:
    """Join the digit groups of numbers. ``digits`` returns the replacement for a number, and ``across``
    returns the replacement for groups separated by a space."""
    joined = _GROUPS.sub(digits, seen)
    return " ".join(_BLANK_GROUPS.sub(across, _FIRM_GROUPS.sub(across, joined)).split())


def _digits(number: re.Match[str]) -> str:
    return re.sub("[^0-9]", "", number["whole"]) + (number["fraction"] or "")


def _digits_if_sure(number: re.Match[str]) -> str:
    return number[0] if _is_doubtful(number) else _digits(number)


def _is_doubtful(number: re.Match[str]) -> bool:
    """Check whether a match may consist of several numbers or contain a decimal point."""
    whole, by = number["whole"], number["by"]
    if by == ".":
        return whole.count(".") == 1 and not number["fraction"]
    return by == BLANK and f"{by}0" not in whole


def _number_marks(text: str) -> bytes:
    marks = bytearray(len(text) + 1)
    for number in _NUMBER.finditer(text):
        start = number.start()
        if number["sign"]:
            digits = number.end("sign")
            marks[start + 1 : digits + 1] = bytes([_SIGN]) * (digits - start)
            start = digits
        for begin, point, end in _number_parts(number, start):
            marks[begin + 1 : end] = bytes([_NO_END]) * (end - begin - 1)
            if point:
                marks[point] = _POINT
    return bytes(marks)


def _number_parts(number: re.Match[str], start: int) -> Iterator[tuple[int, int, int]]:
    """Yield the start, the decimal point (0 if there is none) and the end of each number in the match."""
    if number["one"]:
        yield start, 0, number.end()
        return
    chain = number["chain"]
    pieces = chain.split(",") if "." in chain and "," in chain else [chain]
    for piece in pieces:
        runs = [(start + run.start(), start + run.end()) for run in _RUN.finditer(piece)]
        if len(runs) == 2:
            yield runs[0][0], runs[0][1], runs[1][1]
        elif len(runs) > 2 and "." in piece and not _DATE.fullmatch(piece):
            yield start, 0, start + len(piece)
        else:
            yield from ((begin, 0, end) for begin, end in runs)
        start += len(piece) + 1


_DATE = re.compile(r"(?:0?[1-9]|[12][0-9]|3[01])\.(?:0?[1-9]|1[0-2])\.[0-9]{4}")


# ── looking ──────────────────────────────────────────────────────────────────────────────────────


class _Needle(NamedTuple):
    """A parsed needle."""

    text: str
    """The needle without the stars at its ends."""
    opens: bool = False
    """True if the needle allows any beginning."""
    closes: bool = False
    """True if the needle allows any ending."""
    is_lax: bool = False
    """True if the needle matches inside words and after a minus sign."""


_OPENS, _CLOSES = re.compile(r"\*(?!\*)"), re.compile(r"(?<![\\*])\*")


def _parse_needle(written: str) -> _Needle:
    """Parse a needle. Two consecutive stars are Markdown emphasis and do not act as a wildcard."""
    text = written.strip()
    opens, closes = bool(_OPENS.match(text)), len(text) > 1 and bool(_CLOSES.match(text, len(text) - 1))
    return _Needle(text[opens : len(text) - closes], opens, closes)


def _is_in(needle: _Needle, text: str) -> bool:
    wanted, readings = _sides(needle, text)
    return any(
        True for each in wanted for reading in readings for _ in _find_at_bounds(needle, each, reading)
    )


def _sides(needle: _Needle, text: str) -> tuple[Iterable[str], Iterable[_NumberReading]]:
    """Return the ways of reading a needle, and the ways of reading a text."""
    stars = Stars.PAIRS if _ESCAPED in needle.text else Stars.MARKS
    if any(map(str.isdigit, needle.text)):
        is_lax = needle.is_lax
        return _needle_readings(needle.text, is_lax=is_lax), _readings(text, stars=stars, is_lax=is_lax)
    folded = fold(text, stars=stars)
    wanted = dict.fromkeys(fold(needle.text, stars=each) for each in (Stars.MARKS, Stars.SEEN))
    return wanted, (_NumberReading(folded, bytes(len(folded) + 1)),)


def _find_at_bounds(needle: _Needle, wanted: str, reading: _NumberReading) -> Iterator[tuple[int, int]]:
    start = reading.text.find(wanted) if wanted else -1
    while start >= 0:
        end = start + len(wanted)
        if (needle.opens or _may_begin(start, wanted, reading, is_lax=needle.is_lax)) and (
            needle.closes or _may_end(end, wanted, reading, is_lax=needle.is_lax)
        ):
            yield start, end
        start = reading.text.find(wanted, start + 1)


def _may_begin(start: int, wanted: str, reading: _NumberReading, *, is_lax: bool) -> bool:
    text, marks = reading
    if marks[start] in (_NO_END, _POINT):
        return False
    if _SIGNED.match(wanted) and marks[start + 1] != _SIGN:
        return is_lax and text[start - 1 : start] == "-"  # -25 is not in "20-25"
    if is_lax:
        return True
    if marks[start] == _SIGN:
        return False
    return not _is_in_word(text, start)


def _may_end(end: int, wanted: str, reading: _NumberReading, *, is_lax: bool) -> bool:
    text, marks = reading
    if marks[end] == _NO_END or (marks[end] == _POINT and not wanted.isdigit()):
        return False
    return is_lax or not _is_in_word(text, end)


_SIGNED = re.compile(r"-[$€£¥]?\.?[0-9]")
_LETTERS = re.compile(
    "[a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u0300-\u036f\u0370-\u0373\u0376-\u037d\u037f\u0386"
    "\u0388-\u0481\u0483-\u052f\u1c80-\u1c8f\u1d00-\u1dbf\u1e00-\u1fbc\u1fbe\u1fc2-\u1fcc\u1fd0-\u1fdb"
    "\u1fe0-\u1fec\u1ff2-\u1ffc\u2c60-\u2c7f\u2de0-\u2dff\ua640-\ua69f\ua722-\ua787\ua78b-\ua7ff"
    "\uab30-\uab6f\uff41-\uff5a]{2}"
)
"""Two letters in Latin, Greek or Cyrillic script, or a combining mark on one of them."""


def _is_in_word(text: str, at: int) -> bool:
    return at > 0 and _LETTERS.match(text, at - 1) is not None
