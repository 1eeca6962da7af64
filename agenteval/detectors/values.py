"""What a written value can mean: a number, a time, a date, an identifier.

``reading`` takes one token (``10,000``, ``2024-05-20``, ``HAT069``) and gives every meaning that it can
have. Where a writing is ambiguous (1.234, 05/06) all are kept: who compares is content with any of them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from agenteval.detectors.dates import Day, clock_of, days_of
from agenteval.expressions import expression

TOKEN = expression(r"[0-9][0-9A-Za-z_]*(?:(?:[.,:'](?=[0-9])|[-/@+#])[0-9A-Za-z_]+){0,200}")
"""A run that begins with a digit and belongs together."""

_NUMBER = expression(r"([0-9]+(?:[.,'][0-9]+)*)(?:[-/]?([A-Za-z]{1,12}(?:/[A-Za-z]+)?))?")
RANGE = expression(
    r"([0-9]{1,5}(?:[.:][0-9]+)?(?:[ap]m)?)-[0-9]{1,5}(?:[.:][0-9]+)?(?:[ap]m|hrs?|h|min|kg|km|k|cm|mm|m|g)?"
)
"""Two numbers with a hyphen: 5-7, 10am-11am."""
_DURATION = expression(r"(?:([0-9]+)h)?(?:([0-9]+)m(?:in)?)?(?:[0-9]+s)?")
SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "mm": 1e6, "million": 1e6, "b": 1e9, "bn": 1e9}
SCALES |= {"billion": 1e9, "trillion": 1e12, "lakh": 1e5, "crore": 1e7}
SCALES |= {"万": 1e4, "萬": 1e4, "億": 1e8, "亿": 1e8, "mil": 1e3, "tausend": 1e3, "mille": 1e3}
SCALES |= {"millionen": 1e6, "millones": 1e6, "milhões": 1e6, "millions": 1e6, "milliarden": 1e9}
"""What a letter or word after a number multiplies it by."""
_UNIT_WORDS = (
    "am pm a p h hr hrs hour hours m min mins minute minutes s sec secs second seconds ms d day days "
    "w wk week weeks mo month months y yr year years kg g mg lb lbs oz t km cm mm mi ft in inch yd l "
    "ml gal mph kmh kph mb gb tb kb mbps gbps hz khz mhz ghz w kw kwh mah v px dpi pt c f k n x pcs "
    "pc ppl night nights pax st nd rd th bn mn usd eur gbp jpy cny inr cad aud chf rmb person people "
    "item items passenger each bag bags star stars step steps hourly mile miles foot feet"
)
_UNITS = frozenset(_UNIT_WORDS.split())

CURRENCIES = {
    "$": "$", "€": "€", "£": "£", "¥": "¥", "₹": "₹", "₩": "₩", "₽": "₽", "₺": "₺", "₫": "₫", "฿": "฿",
    "usd": "$", "us$": "$", "dollar": "$", "dollars": "$", "bucks": "$", "eur": "€", "euro": "€",
    "euros": "€", "gbp": "£", "pound": "£", "pounds": "£", "quid": "£", "jpy": "¥", "yen": "¥", "cny": "¥",
    "rmb": "¥", "yuan": "¥", "元": "¥", "円": "¥", "块": "¥", "inr": "₹", "rs": "₹", "rupee": "₹",
    "rupees": "₹", "krw": "₩", "cad": "$", "aud": "$", "chf": "chf", "franken": "chf", "rub": "₽",
    "tl": "₺", "zł": "zł", "pln": "zł", "dkk": "kr", "kr": "kr",
    "czk": "kč", "kč": "kč",
    "美元": "$", "欧元": "€", "원": "₩", "dólares": "$", "brl": "$", "mxn": "$", "sek": "kr", "nok": "kr",
}  # fmt: skip


class Reading(NamedTuple):
    """All that a token can mean. ``numbers``: as a quantity; ``decimals``: how many were written;
    ``clocks``: minutes after midnight; ``days``: as a date; ``unit``: letters that follow the number
    (``kg``)."""

    numbers: tuple[float, ...] = ()
    decimals: int = 0
    clocks: tuple[int, ...] = ()
    days: tuple[Day, ...] = ()
    unit: str = ""
    identifier: bool = False

    @property
    def means_nothing(self) -> bool:
        """Whether it is neither a number nor a time nor a date."""
        return not (self.numbers or self.clocks or self.days)


@lru_cache(maxsize=1 << 16)
def reading(token: str) -> Reading:
    """What ``token`` (a match of ``TOKEN``) can mean."""
    if len(token) > 60:
        return Reading(identifier=True)
    days, clocks = days_of(token), clock_of(token)
    if found := _NUMBER.fullmatch(token):
        unit = (found[2] or "").lower()
        if not unit or unit.partition("/")[0] in _UNITS or unit in SCALES or "-" in token or "/" in token:
            numbers, decimals = numbers_of(found[1])
            if clocks:  # 10am is no ten
                numbers = ()
            return Reading(numbers, decimals, clocks, days, unit)
        return Reading(identifier=True)
    if days or clocks:
        return Reading((), 0, clocks, days)
    if found := RANGE.fullmatch(token):
        if clocks := tuple(clock for part in token.split("-") for clock in clock_of(part)):
            return Reading((), 0, clocks)
        return Reading(tuple(float(part) for part in re.findall(r"[0-9]+(?:\.[0-9]+)?", token)))
    if (found := _DURATION.fullmatch(token)) and (found[1] or found[2]):
        return Reading((60.0 * int(found[1] or 0) + int(found[2] or 0),), 0, (), (), "min")
    return Reading(identifier=bool(re.search("[A-Za-z_]", token)) or token.count("-") > 0)


_GROUPED = expression(r"[0-9]{1,3}(?:,[0-9]{2,3})*,[0-9]{3}\.[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})*,[0-9]+")
"""In thousands, or as in India, where the last group has three digits, too."""
INDIAN = expression(r"[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}")
"""12,50,000: a million and a quarter there, three values of a line elsewhere."""


def numbers_of(text: str) -> tuple[tuple[float, ...], int]:
    """The numbers that digits with ``.``, ``,`` and ``'`` can mean, and the decimals of the first:
    1,234 and 1.234 are both a thousand or a fraction, by country."""
    text = text.replace("'", "")
    marks = [mark for mark in text if mark in ".,"]
    if not marks:
        return (float(text[:300]),), 0
    last = marks[-1]
    whole, _, fraction = text.rpartition(last)
    joined = re.sub("[.,]", "", whole)
    as_fraction = float(f"{joined[:300]}.{fraction}")
    as_thousands = float(re.sub("[.,]", "", text)[:300])
    groups = re.split("[.,]", text)
    regular = all(len(group) == 3 for group in groups[1:]) and len(groups[0]) <= 3 and groups[0] != "0"
    if INDIAN.fullmatch(text):
        return (as_thousands, *map(float, groups)), 0
    if len(marks) > 1 and len(set(marks)) == 1:
        return ((as_thousands,), 0) if regular else (tuple(float(group[:300]) for group in groups), 0)
    if len(set(marks)) > 1 and not _GROUPED.fullmatch(text):  # values with commas between them
        parts = [part for part in text.split(",") if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", part)]
        return tuple(float(part[:300]) for part in parts) or (as_fraction,), 0
    if len(marks) == 1 and regular:
        return (
            ((as_thousands, as_fraction), 0) if last == "," else ((as_fraction, as_thousands), len(fraction))
        )
    if len(marks) == 1 and last == "," and len(fraction) > 2 and groups[0] != "0":  # a list without spaces
        return tuple(float(group[:300]) for group in groups), 0
    return (as_fraction,), len(fraction)


_OTHER_DIGITS = {
    zero + digit: str(digit) for zero in (0x660, 0x6F0, 0x966, 0x9E6, 0xE50, 0xFF10) for digit in range(10)
}
_PLAIN = str.maketrans(
    {chr(code): digit for code, digit in _OTHER_DIGITS.items()}
    | dict.fromkeys("\u00a0\u202f\u2009\u2007\u3000", " ")
    | dict.fromkeys("‐‑‒–−", "-")
    | {
        "٫": ".",
        "٬": ",",
        "，": ",",
        "：": ":",
        "．": ".",
        "％": "%",
        "￥": "¥",
        "’": "'",
        "＄": "$",
        "٪": "%",
    }
)


def plain(text: str) -> str:
    """``text`` with digits, spaces, hyphens and signs of other scripts as ASCII has them; each character
    keeps its place. A dash as long as an m stays: it joins no numbers, but may stand right between words."""
    return text.translate(_PLAIN) if not text.isascii() and _FOREIGN.search(text) else text


_FOREIGN = expression(f"[{''.join(map(chr, _PLAIN))}]")


def stands_in(word: str, text: str) -> bool:
    """Whether ``word`` is in ``text`` and not a part of a longer word."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (at and text[at - 1].isalnum()) and not (end < len(text) and text[end].isalnum()):
            return True
        at = text.find(word, at + 1)
    return False
