"""Facts: the values in texts and results that have exactly one reading.

A fact is an amount, a number, a percentage, a date, a time, an identifier or an address, in one form for all
ways to write it. What can be read in two ways (``1.250``, ``03/04/2026``) is not a fact: nothing is concluded
from it. There are no rules about wording here; a value is what its characters say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from agenteval.core.expressions import expression


class Kind(StrEnum):
    AMOUNT = "amount"
    """Money: a number with a currency."""
    NUMBER = "number"
    PERCENT = "percentage"
    DATE = "date"
    TIME = "time"
    IDENTIFIER = "identifier"
    ADDRESS = "address"
    """Of a mailbox or a page."""


FactValue: TypeAlias = Any
"""A ``Decimal`` (amount, number, percentage), ``(year or None, month, day)``, minutes of the day, or a
text."""


class Fact(NamedTuple):
    """A value in a text: what it says, and where it stands. ``value`` is ``None`` if it has two readings."""

    kind: Kind
    value: FactValue
    text: str
    start: int
    end: int


# The years, months and days of texts; names in the languages that are most often met in logs.
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero gennaio janeiro januari",
            "february feb februar février fevrier febrero febbraio fevereiro februari",
            "march mar märz maerz mars marzo março maart",
            "april apr avril abril aprile",
            "may mai mayo maggio maio mei",
            "june jun juni juin junio giugno junho",
            "july jul juli juillet julio luglio julho",
            "august aug août aout agosto augustus",
            "september sep sept septembre septiembre settembre setembro",
            "october oct oktober okt octobre octubre ottobre outubro",
            "november nov novembre noviembre novembro",
            "december dec dezember dez décembre decembre diciembre dicembre dezembro",
        ),
        1,
    )
    for name in names.split()
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_CURRENCY = r"[$€£¥₹]|\b(?:USD|EUR|GBP|CHF|JPY|INR|AUD|CAD|US\$)"
_UNIT_OF_MONEY = r"[€£¥₹$]|(?:USD|EUR|GBP|CHF|JPY|INR|AUD|CAD|dollars?|euros?|pounds?|bucks)\b"
_NUM = r"\d+(?:[.,'’\u00a0\u202f]\d+)*"

_FACT = expression(
    # Addresses first: what is in one is not a value of its own.
    r"(?P<address>(?<![\w.+*•-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+|\bhttps?://[^\s<>()\"'\]}|*`\\]+)"
    # 2026-05-14, 2026-05-14T10:30:00Z
    r"|(?P<iso>(?<![\w-])(?P<iy>\d{4})-(?P<im>\d{2})-(?P<id>\d{2})(?![\d-])"
    r"(?:[T ](?P<ih>\d{2}):(?P<imin>\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?)"
    # 14.05.2026, 05/14/26, 03/04/2026
    r"|(?P<slashed>(?<![\w./-])(?P<s1>\d{1,2})(?P<sep>[./-])(?P<s2>\d{1,2})(?P=sep)(?P<s3>\d{4}|\d{2})(?![\w/-]))"
    # May 14(th)(, 2026)
    rf"|(?P<mdy>\b(?P<m1>{_MONTH})\b\.?\s+(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d)(?:,?\s+(?P<y1>(?:19|20)\d\d)\b)?)"
    # 14(th of) May (2026)
    rf"|(?P<dmy>(?<![\w.,:$€£-])(?P<d2>\d{{1,2}})(?:st|nd|rd|th|\.|º)?\s+(?:of\s+|de\s+)?(?P<m2>{_MONTH})\b\.?(?:,?\s+(?:de\s+)?(?P<y2>(?:19|20)\d\d)\b)?)"
    # 10:30, 10:30 pm, 3 p.m.
    r"|(?P<clock>(?<![\w:.,])(?P<h>\d{1,2}):(?P<min>[0-5]\d)(?::[0-5]\d)?(?:\s*(?P<ap>[ap])\.?m\b\.?)?(?![\w:]))"
    r"|(?P<hour>(?<![\w:.,$€£])(?P<h2>\d{1,2})\s*(?P<ap2>[ap])\.?m\b\.?)"
    # $1,250.00; 99.90 EUR; 15 %
    rf"|(?P<money>(?:{_CURRENCY})\s?(?P<n1>{_NUM})(?![\w])|(?<![\w.,$€£-])(?P<n2>{_NUM})\s?(?:{_UNIT_OF_MONEY})(?!\w))"
    rf"|(?P<percent>(?<![\w.,-])(?P<n3>{_NUM})\s?(?:%|percent\b))"
    # ending in 4242, •••• 4242
    r"|(?P<ending>(?:\bending (?:in|with):? [*•x.]{0,4}|(?<!\w)[*•x]{2,12}[ -]?)(?P<last>\d{4})(?![\w@-]))"
    # ORD-42, #W123, credit_card_123, 0b-5119, 10293847
    r"|(?P<ident>(?<![\w#/@.-])(?=[A-Za-z#_-]{0,64}\d)#?[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*(?![\w@]|[.,]\d))"
    rf"|(?P<num>(?<![\w.,/-])(?P<n4>{_NUM})(?![\w/]))",
    re.IGNORECASE,
)


def facts_in(text: str) -> Iterator[Fact]:
    """The facts of a text, in their order; none overlaps another."""
    if _MAY_HOLD.search(text):
        for found in _FACT.finditer(text):
            yield from _READERS[found.lastgroup or ""](found)


_MAY_HOLD = expression(r"[\d@]|://")


def _address(found: re.Match[str]) -> Iterator[Fact]:
    text = found[0].rstrip(".,;:!?")
    yield Fact(Kind.ADDRESS, text.lower(), text, found.start(), found.start() + len(text))


def _iso(found: re.Match[str]) -> Iterator[Fact]:
    yield Fact(Kind.DATE, _date(found["iy"], found["im"], found["id"]), found[0], *found.span())
    if found["ih"]:
        yield Fact(Kind.TIME, _minutes(found["ih"], found["imin"], None), found[0], *found.span())


def _slashed(found: re.Match[str]) -> Iterator[Fact]:
    first, second, year = found["s1"], found["s2"], found["s3"]
    year = year if len(year) == 4 else f"20{year}"
    day_first = found["sep"] == "." or int(first) > 12
    value = None
    if day_first or int(second) > 12 or first == second:
        value = _date(year, second, first) if day_first else _date(year, first, second)
    yield Fact(Kind.DATE, value, found[0], *found.span())


def _month_first(found: re.Match[str]) -> Iterator[Fact]:
    yield Fact(
        Kind.DATE, _date(found["y1"], _MONTHS[found["m1"].lower()], found["d1"]), found[0], *found.span()
    )


def _day_first(found: re.Match[str]) -> Iterator[Fact]:
    month = found["m2"]
    if month.lower() == "may" and not found["y2"] and (month == "may" or ". " in found[0]):
        return  # "option 1 may", "1. May I": the verb
    yield Fact(Kind.DATE, _date(found["y2"], _MONTHS[month.lower()], found["d2"]), found[0], *found.span())


def _clock(found: re.Match[str]) -> Iterator[Fact]:
    yield Fact(Kind.TIME, _minutes(found["h"], found["min"], found["ap"]), found[0], *found.span())


def _hour(found: re.Match[str]) -> Iterator[Fact]:
    yield Fact(Kind.TIME, _minutes(found["h2"], "0", found["ap2"]), found[0], *found.span())


def _money(found: re.Match[str]) -> Iterator[Fact]:
    # "1 234,50 €": its first group is before it.
    is_cut = found["n2"] and _GROUP_BEFORE.search(found.string, max(0, found.start() - 4), found.start())
    value = None if is_cut else number_of(found["n1"] or found["n2"])
    yield Fact(Kind.AMOUNT, value, found[0], *found.span())


def _percent(found: re.Match[str]) -> Iterator[Fact]:
    yield Fact(Kind.PERCENT, number_of(found["n3"]), found[0], *found.span())


def _ident(found: re.Match[str]) -> Iterator[Fact]:
    text = found[0]
    if text.isdigit() and len(text) < SHORTEST_NUMBER:
        yield Fact(Kind.NUMBER, Decimal(text), text, *found.span())
    elif core := core_of(text):
        yield Fact(Kind.IDENTIFIER, core, text, *found.span())


def _ending(found: re.Match[str]) -> Iterator[Fact]:
    yield Fact(Kind.IDENTIFIER, found["last"], found["last"], *found.span("last"))


def _num(found: re.Match[str]) -> Iterator[Fact]:
    yield Fact(Kind.NUMBER, number_of(found["n4"]), found[0], *found.span())


_READERS: Mapping[str, Callable[[re.Match[str]], Iterator[Fact]]] = {
    "address": _address, "iso": _iso, "slashed": _slashed, "mdy": _month_first, "dmy": _day_first,
    "clock": _clock, "hour": _hour, "money": _money, "percent": _percent, "ending": _ending, "ident": _ident,
    "num": _num,
}  # fmt: skip
"""By the name of the group that was found, which is the outermost."""


SHORTEST_NUMBER = 6
"""Digits from which a bare number is the name of a thing rather than a count."""


def core_of(text: str) -> str:
    """What makes a word the name of a thing, without case: its parts that mix letters and digits, or are long
    numbers; empty if it names none (``3rd``, ``24h``, ``10kg``, ``within_24_hours``)."""
    if _CODE.fullmatch(text):
        return text.lower()
    if not any(map(str.isdigit, text)) or _MEASURE.fullmatch(text):
        return ""
    parts = [part for part in _PARTS.split(text.lower()) if part]
    if len(parts) == 2 and parts[0].isalpha() and parts[1].isdigit() and text[:1].isupper():
        return "".join(parts) if len(parts[1]) > 1 else ""  # ORD-42
    if len(parts) > 1 and all(map(str.isdigit, parts)) and sum(map(len, parts)) > SHORTEST_NUMBER:
        return "".join(parts)  # 402-581-7997
    named = [part for part in parts if _is_name(part, alone=len(parts) == 1, marked=text[0] == "#")]
    return "".join(named)


def _is_name(part: str, *, alone: bool, marked: bool) -> bool:
    digits = sum(map(str.isdigit, part))
    if digits == len(part):
        return digits >= (3 if marked else SHORTEST_NUMBER if alone else 4)
    return digits > 0 and len(part) >= 4 and not _MEASURE.fullmatch(part)


_PARTS = expression(r"[^0-9a-z]+")
_CODE = expression(r"(?=\d*[A-Z])(?=[A-Z]*\d)[A-Z0-9]{6,}")  # EHGLP3, 3FRNFB
_MEASURE = expression(r"#?\d+(?:st|nd|rd|th|[a-z]{1,6})|[a-z]+-?\d|\d+x\d+\w*|\d+(?:-[a-z]+)+", re.IGNORECASE)


_GROUP_BEFORE = expression(r"\d[ \u00a0\u202f]\Z")


def plain(text: str) -> str:
    """An identifier without case and the signs between its parts."""
    return re.sub(r"[^0-9a-z]", "", text.lower())


def number_of(text: str) -> Decimal | None:
    """A written number; ``None`` if it has two readings: ``1.250`` may be 1250."""
    if len(text) > _LONGEST_NUMBER:
        return None
    text = re.sub(r"['’\u00a0\u202f]", ",", text)
    if not ("," in text or "." in text):
        return Decimal(text)
    if "," in text and "." in text:
        last = max(text.rfind(","), text.rfind("."))
        whole, fraction = re.sub(r"[.,]", "", text[:last]), text[last + 1 :]
        return Decimal(f"{whole}.{fraction}")
    sign = "," if "," in text else "."
    parts = text.split(sign)
    groups = all(len(part) == 3 for part in parts[1:]) and 1 <= len(parts[0]) <= 3
    if sign == ",":
        if groups and parts[0] != "0":
            return Decimal("".join(parts))
        return Decimal(".".join(parts)) if len(parts) == 2 else None
    if len(parts) == 2:
        return None if groups and parts[0] != "0" else Decimal(text)
    return Decimal("".join(parts)) if groups else None


_LONGEST_NUMBER = 24


def _date(year: str | None, month: str | int, day: str) -> FactValue:
    y, m, d = int(year) if year else None, int(month), int(day)
    return (y, m, d) if 1 <= m <= 12 and 1 <= d <= 31 else None


def _minutes(hours: str, minutes: str, half: str | None) -> FactValue:
    hour = int(hours)
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    return hour * 60 + int(minutes) if hour < 24 else None
