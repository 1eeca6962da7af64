"""The values of a text, with what their neighbours say of them: currency, unit, half of the day, month."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from agenteval.detectors.dates import Day, clock_of, day_in_cjk, day_in_words, days_of, shift_of
from agenteval.detectors.values import CURRENCIES, RANGE, SCALES, TOKEN, Reading, reading


class Mention(NamedTuple):
    """A value in a text. ``kind``: ``number``, ``money``, ``percent``, ``date``, ``time`` or
    ``identifier``. ``start`` and ``end``: its span; the other fields as in ``Reading``. ``unit``: the
    currency's sign, or the word that follows."""

    kind: str
    start: int
    end: int
    text: str
    numbers: tuple[float, ...] = ()
    decimals: int = 0
    clocks: tuple[int, ...] = ()
    days: tuple[Day, ...] = ()
    unit: str = ""

    @property
    def vague(self) -> bool:
        """Whether it is a time whose half of the day is not said."""
        return self.kind == "time" and self.text[0] != "0" and "m" not in self.text.lower()


def mentions_in(text: str) -> Iterator[Mention]:
    """The values of ``text`` (as ``plain`` gives it), from left to right. Numbers of lists (``1.``) and
    what stands in code or in addresses of pages are none."""
    blocks = _code_blocks(text) if "```" in text else ()
    found, floor = TOKEN.search(text), 0
    while found:
        start, end = found.span()
        if end - start > 2 and (split := RANGE.fullmatch(found[0])) and not days_of(found[0]):
            end = start + split.end(1)
        mention = None
        if not blocks or not any(first <= start < last for first, last in blocks):
            mention = _mention(text, start, end, floor)
        if mention and mention.kind != "skip":
            yield mention
        floor = max(end, mention.end) if mention else end
        found = TOKEN.search(text, floor)


def _code_blocks(text: str) -> tuple[tuple[int, int], ...]:
    fences = [found.start() for found in re.finditer("```", text)] + [len(text)]
    return tuple(zip(fences[::2], fences[1::2], strict=False))


_WORD_MARKS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@#/:?=&%+~$-")
_AFTER = re.compile(
    r"(?P<group>(?: [0-9]{3})+(?![0-9]))?(?P<cents>[.,][0-9]{2}(?![0-9]))?"
    r"\s?(?P<meridiem>[aApP]\.?\s?[mM]\b\.?)?\s?(?P<sign>%|[$€£¥₹₩₽₺₫฿]|°\s?[CFcf]?|[^\W\d_]+)?"
)
_TO_CLOCK = re.compile(
    r"\s?(?:-|to|until|till|and|bis|a)\s?[0-9]{1,2}(?::[0-9]{2}|:[0-9]{2}\s?[aApP]\.?[mM]|\s?[aApP]\.?[mM])\b"
)
_ON = re.compile(r"(?i)\b(?:on|by|dates?|until|till|due|before|after|since|am|vom|bis|le|el)\W{0,4}\Z")
_LIST_MARK = re.compile(r"[\s>*_#(\[-]*")
_CALLED = re.compile(
    r"(?i)(?:ending (?:in|with)|ends (?:in|with)|last (?:four|4)(?: digits)?(?: is| are| of)?|#|\bno\.|"
    r"\bnumber|\bids?|\bcode|\bpin|\bzip|[*x•]{2,}[ -]?)[ :#*_`\"'-]{0,4}\Z"
)
_LONG = 400
_PHONE = re.compile(
    r"(?:\+[0-9]{1,3}[ .-]?)?(?:\([0-9]{2,4}\)[ ]?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4}(?![0-9])"
    r"|\+[0-9]{9,15}(?![0-9])"
)
_LETTER, _DIGIT = re.compile("[A-Za-z]"), re.compile("[0-9]")


def _mention(text: str, start: int, end: int, floor: int) -> Mention | None:
    """The value whose digits begin at ``start``; nothing before ``floor`` belongs to it."""
    before = text[start - 1] if start else " "
    token = text[start:end]
    if (before in "(+" or token[3:4] in {"", ".", "-"}) and (
        phone := _PHONE.match(text, start - (before in "(+"))
    ):
        return Mention("identifier", phone.start(), phone.end(), phone[0])
    if before.isalnum() or before in "_@#/.:=-":
        word = _word_around(text, start, end, floor)
        if word is not None:
            return word
    if dated := _date_at(text, start, end):
        return dated
    read = reading(token)
    if read.identifier:
        return Mention("identifier", start, end, token)
    if token.isdigit():
        if len(token) <= 2 and _is_list_mark(text, start, end):
            return None
        if len(token) >= 3 and _CALLED.search(text, max(0, start - 24), start):
            return Mention("identifier", start, end, token)
        if len(token) == 4 and "1900" <= token < "2100" and not before_is_currency(text, start):
            return Mention("skip", start, end, token)  # a year
    if (
        read.days
        and not read.days[0][0]
        and token[0] != "0"
        and not _ON.search(text, max(0, start - 12), start)
    ):
        return Mention("skip", start, end, token)  # 24/7, 4/5 stars
    if read.days and not read.numbers:
        return Mention("date", start, end, token, days=read.days, clocks=read.clocks)
    return _quantity(text, start, end, read)


def _date_at(text: str, start: int, end: int) -> Mention | None:
    """A date in words."""
    dated = None
    if end < len(text) and text[end] in "年月":
        dated = day_in_cjk(text, start)
    elif end - start <= 4 and not (end - start <= 2 and _is_list_mark(text, start, end)):
        dated = day_in_words(text, start, end)
    if not dated:
        return None
    return Mention("date", dated.start, dated.end, text[dated.start : dated.end], days=dated.days)


def _quantity(text: str, start: int, end: int, read: Reading) -> Mention | None:
    """A time, an amount of money, a percentage or a number, by what stands beside it."""
    after = _AFTER.match(text, end)
    assert after  # every part may be missing
    if clock := _clock(text, start, end, read, after):
        return clock
    sign, numbers, decimals, finish = (after["sign"] or "").lower(), read.numbers, read.decimals, end
    if after["group"] and end - start <= 3:
        joined, finish = text[start : after.end("group")].replace(" ", ""), after.end("group")
        if after["cents"]:
            joined, decimals, finish = f"{joined}.{after['cents'][1:]}", 2, after.end("cents")
        numbers = (float(joined), *numbers)
    currency = before_is_currency(text, start)
    if scale := _scale_of(text, start, end, read.unit, sign, currency):
        numbers = (numbers[0] * scale, *numbers) if numbers else ()
        decimals -= len(str(int(scale))) - 1
        following = _AFTER.match(text, after.end("sign")) if sign in SCALES else None
        sign = (following["sign"] or "").lower() if following else sign
    currency = currency or CURRENCIES.get(sign) or CURRENCIES.get(read.unit, "")
    if currency:
        return Mention("money", start, finish, text[start:finish], numbers, decimals, unit=currency)
    if sign in {"%", "percent", "prozent", "percentage"}:
        return Mention("percent", start, finish, text[start:finish], numbers, decimals, unit="%")
    if not numbers:
        return Mention("date", start, end, text[start:end], days=read.days) if read.days else None
    if numbers[0] <= 24 and _TO_CLOCK.match(text, end):
        return Mention("skip", start, end, text[start:end])
    if numbers[0] < 1000 and _REFERENCE.search(text, max(0, start - 12), start):
        return Mention("skip", start, end, text[start:end])
    unit = read.unit if read.unit and read.unit not in SCALES else sign
    return Mention("number", start, finish, text[start:finish], numbers, decimals, (), read.days, unit)


_REFERENCE = re.compile(
    r"(?i)\b(?:line|page|section|step|figure|fig\.|chapter|row|column|version|part|phase|level|option|table|question|"
    r"point|rule|article|appendix|module|stage|round|flight|attempt|python|windows|ios|android)\s\Z"
)


def _clock(text: str, start: int, end: int, read: Reading, after: re.Match[str]) -> Mention | None:
    half = (after["meridiem"] or "").lower()[:1]
    clocks = read.clocks
    if not clocks and after["sign"] == "Uhr":
        clocks = clock_of(text[start:end].replace(".", ":"))
    clocks = shift_of(clocks or (_hours(read.numbers) if half else ()), half)
    if not clocks:
        return None
    finish = after.end("meridiem") if half else end
    return Mention("time", start, finish, text[start:finish], read.numbers, clocks=clocks, days=read.days)


def _scale_of(text: str, start: int, end: int, unit: str, sign: str, currency: str) -> float:
    """What the number is to be multiplied by (5k, 3 million); 0: nothing. A small m or b is a unit but
    for money."""
    if unit in SCALES and (unit not in {"m", "b"} or currency or text[end - 1].isupper()):
        return SCALES[unit]
    return SCALES.get(sign, 0.0) if len(sign) > 1 or sign == "k" else 0.0


def _hours(numbers: tuple[float, ...]) -> tuple[int, ...]:
    return tuple(int(number) * 60 for number in numbers[:1] if 1 <= number <= 12 and number % 1 == 0)


_CURRENCY_CODE = re.compile(r"\b(?:USD|EUR|GBP|JPY|CNY|RMB|INR|Rs|CAD|AUD|CHF|US\$|NZD)\.?\Z")


def before_is_currency(text: str, start: int) -> str:
    """The sign of the currency that stands right before ``start``, or an empty text."""
    window = text[max(0, start - 8) : start].rstrip(" *_~-")
    last = window[-1:]
    if last in CURRENCIES:
        return CURRENCIES[last]
    if not last.isalpha() and last != ".":
        return ""
    found = _CURRENCY_CODE.search(window)
    return CURRENCIES.get(found[0].lower().rstrip("."), "$") if found else ""


def _word_around(text: str, start: int, end: int, floor: int) -> Mention | None:
    """The word that the digits belong to (HAT069, certificate_7504069, an address), or ``None`` if they
    only touch a mark or a letter of another script."""
    left = start
    while left > floor and start - left < _LONG and text[left - 1] in _WORD_MARKS:
        left -= 1
    right = end
    while right < len(text) and right - end < _LONG and text[right] in _WORD_MARKS:
        right += 1
    word = text[left:right]
    if "://" in word or word.startswith(("www.", "/")) or "@" in word:
        kind = "identifier" if "@" in word and "://" not in word else "skip"
        stripped = word.strip(".:/?=-+&%~$")
        at = left + word.find(stripped)
        return Mention(kind, at, max(at + len(stripped), end), stripped)
    head = text[left:start]
    left += max(head.rfind(mark) for mark in ":=/?&~#$+%") + 1
    head = text[left:start].lstrip(".-")
    left = start - len(head)
    letters = head.rstrip("-.")
    if not _LETTER.search(letters) or letters.lower() in CURRENCIES or letters in {"No", "Nr", "x", "X"}:
        return None
    if head.endswith(".") and "." not in letters and not _DIGIT.search(letters):
        return None  # the start of a sentence after a full stop without a space
    return Mention("identifier", left, end, text[left:end])


def _is_list_mark(text: str, start: int, end: int) -> bool:
    if end < len(text) and text[end] in ".):" and text[end + 1 : end + 2] in {"", " ", "\n", "*", "\t"}:
        line = text.rfind("\n", 0, start) + 1
        return text[end] != ":" and bool(_LIST_MARK.fullmatch(text, line, start))
    return False
