"""Faults in values: one that a tool gave, told wrongly; and one that nobody gave."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple, TypeAlias

from planting import Planted, one_of
from recorded import Message, Recorded, Turn, text_of

Key: TypeAlias = tuple[str, Any]

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip
_MONTH = "|".join(f"{name}|{name[:3]}" for name in MONTHS)
_PATTERN = re.compile(
    rf"""
    (?P<money>[$€£]\ ?\d[\d,]*(?:\.\d\d)?(?!\d))
    |(?P<date>(?<![\w-])\d{{4}}-\d\d-\d\d(?=$|[^\w-]|T)
      |\b(?:{_MONTH})\.?\ \d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\ \d{{4}}\b)?)
    |(?P<time>(?<![\w:.])\d{{1,2}}:\d\d(?::\d\d)?(?![\d:])(?:\ ?[AaPp]\.?[Mm]\b\.?)?
      |(?<![\w:.$-])\d{{1,2}}\ ?[AaPp][Mm]\b)
    |(?P<identifier>(?<![\w@./-])(?=[\w-]*\d)[A-Za-z0-9][\w-]*[A-Za-z][\w-]*\d[\w-]*(?![\w@])
      |(?<![\w@./-])\d[\w-]*[A-Za-z][\w-]*(?![\w@])|(?<![\w@./$-])\d+(?:-\d+)+(?![\w@-])
      |(?<![\w.,$:/-])\d{{4,}}(?![\w:/-]|[.,]\d))
    |(?P<number>(?<![\w$€£.,:/-])\d{{1,3}}(?:,\d{{3}})*(?:\.\d+)?(?![\w:/-]|[.,]\d))
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """A value in a text: what kind, its words, and the keys under which an equal value is found."""

    kind: str
    text: str
    start: int
    keys: frozenset[Key]


def tokens(text: str) -> Iterator[Token]:
    """The values of a text, from left to right."""
    for found in _PATTERN.finditer(text):
        kind = str(found.lastgroup)
        yield Token(kind, found[0], found.start(), frozenset(_keys(kind, found[0])))


def _keys(kind: str, text: str) -> Iterator[Key]:
    match kind:
        case "money" | "number":
            yield "number", Decimal(re.sub(r"[^\d.]", "", text))
        case "date":
            yield "date", _month_and_day(text)
        case "time":
            yield from (("time", minutes) for minutes in _minutes(text))
        case _:
            yield "identifier", text.lower()
            if text.isdigit():
                yield "number", Decimal(text)


def _month_and_day(text: str) -> tuple[int, int]:
    if text[0].isdigit():
        return int(text[5:7]), int(text[8:10])
    month = next(n for n, name in enumerate(MONTHS, 1) if name[:3] == text[:3])
    return month, int(re.search(r"\d+", text)[0])  # type: ignore[index]


def _minutes(text: str) -> set[int]:
    """Minutes since midnight; both halves of the day where the text does not say which."""
    hour, minute = (int(part) for part in ([*re.findall(r"\d+", text), "0"])[:2])
    half = re.search(r"[AaPp]\.?[Mm]", text)
    if half:
        return {hour % 12 * 60 + minute + (720 if half[0][0] in "Pp" else 0)}
    return {hour * 60 + minute, *([hour * 60 + minute + 720] if 0 < hour < 12 else [])}


@lru_cache(maxsize=20_000)
def keys_of_text(text: str) -> frozenset[Key]:
    """Every value of a text; of JSON, every value in it."""
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return frozenset(_leaves(value))


def _leaves(value: Any) -> Iterator[Key]:
    match value:
        case dict():
            for key, item in value.items():
                yield from _leaves(str(key))
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case bool() | None:
            return
        case int() | float():
            yield "number", Decimal(str(value))
        case _:
            for token in tokens(
                str(value).replace("T", " ") if re.match(r"\d{4}-", str(value)) else str(value)
            ):
                yield from token.keys


def all_keys(messages: Iterable[Message]) -> set[Key]:
    """Every value that anybody said, calls included."""
    keys: set[Key] = set()
    for message in messages:
        keys |= keys_of_text(text_of(message))
        for call in message.get("tool_calls") or ():
            keys |= keys_of_text(str(call["function"]["arguments"]))
    return keys


# -- contradicts_evidence ----------------------------------------------------------------------------------


def _from_tools(recorded: Recorded, kind: str) -> Iterator[tuple[Turn, Token]]:
    """Values in answers that a tool gave (this turn's tools; for identifiers, any before) and that neither
    a user nor the policy had said."""
    told = all_keys(m for m in recorded.messages if m["role"] in ("user", "system"))
    for turn in recorded.answered():
        given: set[Key] = set()
        for call in recorded.calls:
            if call.turn == turn.number or (kind == "identifier" and call.turn < turn.number):
                given |= keys_of_text(call.result)
        for token in tokens(recorded.answer(turn)):
            certain = token.kind == kind and not (kind == "number" and len(token.text) < 2)
            if certain and token.keys & given and not token.keys & told:
                yield turn, token


def _told_wrongly(
    recorded: Recorded, rng: Random, kind: str, change: Callable[[str, Random], str]
) -> Planted | None:
    places = list(_from_tools(recorded, kind))
    rng.shuffle(places)
    known = all_keys(recorded.messages)
    for turn, token in places[:20]:
        for _ in range(20):
            made = change(token.text, rng)
            new = [t for t in tokens(made) if t.text == made]
            if new and new[0].kind == kind and not new[0].keys & known:
                answer = _replace(recorded.answer(turn), token, made)
                messages = recorded.copy()
                messages[turn.answer_at]["content"] = answer  # type: ignore[index]
                return Planted(messages, turn.number, (), f"{token.text} told as {made}")
    return None


def _replace(answer: str, token: Token, made: str) -> str:
    """Everywhere in this answer, so that it does not contradict itself."""
    places = [t.start for t in tokens(answer) if t.kind == token.kind and t.text == token.text]
    for start in reversed(places):
        answer = answer[:start] + made + answer[start + len(token.text) :]
    return answer


def _digits(text: str, rng: Random) -> str:
    """Two digits swapped, or one digit another."""
    places = [at for at, char in enumerate(text) if char.isdigit()]
    first, *_ = places
    if len(places) > 1 and rng.random() < 0.5:
        at = rng.randrange(len(places) - 1)
        left, right = places[at], places[at + 1]
        made = text[:left] + text[right] + text[left + 1 : right] + text[left] + text[right + 1 :]
        return made if made[first] != "0" else text
    at = rng.choice(places)
    digit = rng.choice("123456789" if at == first else string.digits)
    return text[:at] + digit + text[at + 1 :]


def _amount(text: str, rng: Random) -> str:
    """Digits swapped, off by a few, or of another size; written as before."""
    digits = re.sub(r"[^\d.]", "", text)
    value = Decimal(digits)
    kind = rng.randrange(4)
    if kind < 2 or not value:
        return _digits(text, rng)
    moved = (
        value + rng.choice([-14, -5, -3, 2, 4, 10, 25, 100]) if kind == 2 else value * rng.choice([2, 3, 10])
    )
    if moved <= 0:
        return text
    places = len(digits.partition(".")[2])
    made = f"{moved:,.{places}f}" if "," in text or (moved >= 1000 and "$" in text) else f"{moved:.{places}f}"
    return re.sub(r"\d[\d,.]*", lambda _: made, text, count=1)


def money(recorded: Recorded, rng: Random) -> Planted | None:
    """A price or a fee."""
    return _told_wrongly(recorded, rng, "money", _amount)


def number(recorded: Recorded, rng: Random) -> Planted | None:
    """A number without a currency: degrees, seats, minutes."""
    return _told_wrongly(recorded, rng, "number", _amount)


def _other_date(text: str, rng: Random) -> str:
    """Another day or another month, in the same form."""
    month, day = _month_and_day(text)
    if rng.random() < 0.5:
        day = (day - 1 + rng.choice([-7, -2, -1, 1, 2, 3, 7])) % 28 + 1
    else:
        month, day = (month - 1 + rng.choice([-1, 1, 2])) % 12 + 1, min(day, 28)
    if text[0].isdigit():
        return f"{text[:5]}{month:02}-{day:02}{text[10:]}"
    name = next(
        n for n in (MONTHS[month - 1], MONTHS[month - 1][:3]) if text.startswith(tuple(MONTHS)) or len(n) == 3
    )
    ending = (
        {1: "st", 2: "nd", 3: "rd"}.get(day if day < 20 else day % 10, "th")
        if re.search("st|nd|rd|th", text[4:])
        else ""
    )
    rest = re.sub(r"^[A-Za-z]+\.? \d{1,2}(?:st|nd|rd|th)?", "", text)
    return f"{name} {day}{ending}{rest}"


def date(recorded: Recorded, rng: Random) -> Planted | None:
    """A day, as numbers or in words."""
    return _told_wrongly(recorded, rng, "date", _other_date)


def _other_time(text: str, rng: Random) -> str:
    """Another hour, other minutes, or the other half of the day."""
    found = re.match(r"(\d{1,2})(?::(\d\d))?(.*)", text, re.DOTALL)
    hour, minute, rest = int(found[1]), found[2], found[3]  # type: ignore[index]
    kind = rng.randrange(3)
    if kind == 0 and re.search("[AaPp]", rest):
        swap = {"A": "P", "P": "A", "a": "p", "p": "a"}
        return text[: len(text) - len(rest)] + re.sub("[AaPp]", lambda m: swap[m[0]], rest, count=1)
    if kind == 1 and minute is not None:
        minute = f"{(int(minute) + rng.choice([5, 10, 15, 30, 45])) % 60:02}"
    else:
        top = 12 if re.search("[AaPp]", rest) else 24
        hour = (hour + rng.choice([-2, -1, 1, 2, 3])) % top or top % 24
    width = len(text[: re.match(r"\d+", text).end()]) if text[0] == "0" else 1  # type: ignore[union-attr]
    return f"{hour:0{width}}" + (f":{minute}" if minute is not None else "") + rest


def time(recorded: Recorded, rng: Random) -> Planted | None:
    """A time of day."""
    return _told_wrongly(recorded, rng, "time", _other_time)


def _other_identifier(text: str, rng: Random) -> str:
    """Two neighbours swapped, a look-alike, or another digit."""
    kind, places = rng.randrange(3), [at for at, char in enumerate(text) if char.isalnum()]
    pairs = [at for at in places if at + 1 in places and text[at] != text[at + 1]]
    if kind == 0 and pairs:
        at = rng.choice(pairs)
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    alike = {
        "0": "O",
        "O": "0",
        "1": "7",
        "7": "1",
        "5": "S",
        "S": "5",
        "8": "B",
        "B": "8",
        "6": "9",
        "9": "6",
    }
    similar = [at for at in places if text[at] in alike]
    if kind == 1 and similar:
        at = rng.choice(similar)
        return text[:at] + alike[text[at]] + text[at + 1 :]
    return _digits(text, rng)


def identifier(recorded: Recorded, rng: Random) -> Planted | None:
    """The number of a booking, a flight, a phone; the last digits of a card."""
    return _told_wrongly(recorded, rng, "identifier", _other_identifier)


# -- ungrounded_value --------------------------------------------------------------------------------------


def _code(rng: Random) -> str:
    letters = string.ascii_uppercase
    forms = (
        lambda: "".join(rng.choices(letters, k=3)) + "".join(rng.choices("23456789", k=3)),
        lambda: "".join(rng.choices(letters, k=2)) + "-" + "".join(rng.choices(string.digits, k=6)),
        lambda: rng.choice(["CONF", "BK", "RES", "ORD"]) + "-" + "".join(rng.choices("123456789", k=5)),
        lambda: "".join(rng.choices("123456789", k=8)),
    )
    return rng.choice(forms)()


def _phone(rng: Random) -> str:
    area, middle, end = (
        rng.choice(["800", "888", "877", "212", "415"]),
        rng.randint(201, 999),
        rng.randint(1000, 9999),
    )
    return rng.choice([f"1-{area}-{middle}-{end}", f"({area}) {middle}-{end}", f"+1 {area} {middle} {end}"])


def _price(rng: Random) -> str:
    cents = f"${rng.randint(11, 95)}.{rng.randint(11, 98)}"
    return rng.choice([cents, f"${rng.randint(13, 480)}", f"${rng.randint(1, 9)},{rng.randint(103, 987)}"])


def _day(rng: Random) -> str:
    month, day = rng.choice(MONTHS), rng.randint(2, 28)
    return rng.choice([f"{month} {day}", f"{month[:3]} {day}", f"2024-{MONTHS.index(month) + 1:02}-{day:02}"])


_SENTENCES: dict[str, tuple[Callable[[Random], str], tuple[str, ...]]] = {
    "confirmation_code": (_code, (
        "Your confirmation code is {}.", "The confirmation number for this is {}.",
        "Please keep your confirmation code {} at hand.", "Confirmation: **{}**")),
    "price": (_price, (
        "A service fee of {} applies.", "The total comes to {}.",
        "Please note that this includes a {} handling charge.",
        "You will be charged {} for this.", "That saves you {} compared with the standard rate.")),
    "phone": (_phone, (
        "If you have further questions, you can call us at {}.", "Our support line is {}.",
        "For urgent matters, please dial {}.", "You can also reach the team on {} at any time.")),
    "date": (_day, (
        "You should see this take effect by {}.", "The offer is valid until {}.",
        "The next available date is {}.", "This was last updated on {}.")),
    "reference": (_code, (
        "For your records, the reference number is {}.", "I've logged this under case {}.",
        "Your ticket number is {}.", "(Reference: {})")),
}  # fmt: skip


def _invented(recorded: Recorded, rng: Random, kind: str) -> Planted | None:
    """A sentence with a value that nobody said, at the end of an answer or before its last question."""
    turn = one_of(recorded.answered(), rng)
    if turn is None:
        return None
    make, sentences = _SENTENCES[kind]
    known = all_keys(recorded.messages)
    value = next((v for v in (make(rng) for _ in range(50)) if not keys_of_text(v) & known), None)
    if value is None:
        return None
    sentence = rng.choice(sentences).format(value)
    messages = recorded.copy()
    messages[turn.answer_at]["content"] = with_sentence(recorded.answer(turn), sentence, rng)
    return Planted(messages, turn.number, (), sentence)


def with_sentence(answer: str, sentence: str, rng: Random) -> str:
    """``answer`` with a sentence more: a paragraph of its own, in line, or before the last question."""
    body = answer.rstrip()
    head, gap, last = body.rpartition("\n\n")
    if head and last.endswith("?") and rng.random() < 0.5:
        return f"{head}{gap}{sentence}\n\n{last}"
    return body + rng.choice([" ", "\n\n"]) + sentence


def invented(kind: str) -> Callable[[Recorded, Random], Planted | None]:
    """The variant for a kind of value."""
    return lambda recorded, rng: _invented(recorded, rng, kind)


INVENTED = {kind: invented(kind) for kind in _SENTENCES}
