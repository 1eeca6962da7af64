"""Finds identifiers and addresses in texts, and checks whether a source provided them (grounding). Apart from
these, detectors examine nothing in prose.

Every operation on a string takes time proportional to its length: one character class splits the string into
runs of plain characters, and the search within a run is bounded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from agenteval.core.json_text import to_json_or_repr
from agenteval.core.trajectory import ToolCall, Turn


class Identifier(NamedTuple):
    """An identifier such as ``ORD-42``, ``#W123`` or ``10293847``, or an email or web address."""

    text: str
    core: str
    """The identifying part in lower case; signs are removed unless this is an address."""
    start: int
    """The position in the text at which the identifier begins."""
    end: int
    """The position in the text at which the identifier ends."""
    is_address: bool = False


LONGEST = 64
"""The maximum length of an identifier, in characters. An address may be eight times as long."""
SHORTEST_NUMBER = 6
"""The minimum number of digits at which a bare number is considered an identifier rather than a count."""

_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[^\n])")
_RUN = re.compile(r"[A-Za-z0-9#@.+/:_-]+")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}")
_LINK = re.compile(r"https?://[^/]", re.IGNORECASE)
_PIECE = re.compile(r"#?[^.+/:@#]+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:T\d{2})?|\d{1,2}-\d{1,2}-(?:\d{4}|\d{2})")
_DIGITS = re.compile(r"\d+")
_MASKED = re.compile(
    r"(?:\bending (?:in|with):? [*•x.]{0,4}|(?<!\w)[*•x]{2,12}[ -]?)(?P<last>\d{4})(?![\w@-])", re.IGNORECASE
)
_MONEY = r"[€£¥₹$%]|(?:USD|EUR|GBP|CHF|JPY|INR|AUD|CAD)"
_MONEY_BEFORE, _MONEY_AFTER = re.compile(rf"(?:{_MONEY})\s?\Z"), re.compile(rf"\s?(?:{_MONEY})")
_MASKS = frozenset("*•")
_GROUPING = frozenset(".,:/'")
_FIRST_WIDE = "\u2e80"
"""The first character of the scripts that do not separate words with spaces. An identifier may be directly
adjacent to characters of these scripts."""


def find_identifiers(text: str) -> Iterator[Identifier]:
    """Yield the identifiers in a string, in no particular order.

    For masked numbers (``•••• 4242``), yield the visible digits."""
    if not _DIGITS.search(text) and "@" not in text and "://" not in text:
        return
    plain = _ESCAPE.sub(lambda found: " " * len(found[0]), text) if "\\" in text else text
    for run in _RUN.finditer(plain):
        if "@" in run[0] or "://" in run[0]:
            yield from () if plain[run.start() - 1 : run.start()] in _MASKS else _addresses(run)
        # Every name has a digit, and few runs do: this saves a fifth of the time of scoring a log.
        elif _DIGITS.search(run[0]):
            yield from _names(run, plain)
    for found in _MASKED.finditer(plain):
        yield Identifier(found["last"], found["last"], *found.span("last"))


def _addresses(run: re.Match[str]) -> Iterator[Identifier]:
    text, start = run[0].rstrip(".:+-/"), run.start()
    if len(text) > 8 * LONGEST:
        return
    if link := _LINK.search(text):
        yield Identifier(
            text[link.start() :], text[link.start() :].lower(), start + link.start(), start + len(text), True
        )
        return
    for found in _MAIL.finditer(text):
        yield Identifier(found[0], found[0].lower(), start + found.start(), start + found.end(), True)


def _names(run: re.Match[str], text: str) -> Iterator[Identifier]:
    """Yield the identifiers in a run of characters. Skip parts of a word that contains other letters, parts
    of a decimal number, and parts of an amount."""
    for piece in _PIECE.finditer(run[0]):
        name = piece[0].lstrip("-_").rstrip("-_")
        start = run.start() + piece.start() + len(piece[0]) - len(piece[0].lstrip("-_"))
        end = start + len(name)
        if not name or len(name) > LONGEST or _is_cut(text, start, end):
            continue
        if core := extract_core(name):
            yield Identifier(name, core, start, end)


def _is_cut(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    if any(each.isalpha() and each < _FIRST_WIDE and not each.isascii() for each in (before, after)):
        return True
    if not text[start:end].isdigit():
        return False
    if (before in _GROUPING and text[start - 2 : start - 1].isdigit()) or (
        after in _GROUPING and text[end + 1 : end + 2].isdigit()
    ):
        return True
    return bool(_MONEY_BEFORE.search(text, max(0, start - 4), start) or _MONEY_AFTER.match(text, end))


def extract_core(text: str) -> str:
    """Return the part of a word that makes it an identifier, in lower case, or an empty string if the word is
    not an identifier.

    This part consists of the pieces that mix letters and digits, or that are long numbers. ``3rd``, ``24h``,
    ``10kg``, ``within_24_hours`` and dates are not identifiers."""
    if not any(map(str.isdigit, text)) or _is_date(text):
        return ""
    if _CODE.fullmatch(text):
        return text.lower()
    if _MEASURE.fullmatch(text):
        return ""
    parts = [part for part in _PARTS.split(text.lower()) if part]
    if len(parts) == 2 and parts[0].isalpha() and parts[1].isdigit() and text[:1].isupper():
        return "".join(parts) if len(parts[1]) > 1 else ""  # ORD-42
    if len(parts) > 1 and all(map(str.isdigit, parts)) and sum(map(len, parts)) > SHORTEST_NUMBER:
        return "".join(parts)  # 402-581-7997
    return "".join(_named_parts(text))


def _is_date(text: str) -> bool:
    """Check whether a word is a date of this or the last century, with or without a time, in any notation of
    ISO 8601 (``20260619T1030``, ``2026-W25``) or with the day first."""
    if _DATE.fullmatch(text):
        return True
    if text[:2] not in ("19", "20"):
        return False
    try:
        return bool(datetime.fromisoformat(text.replace("_", "-")))
    except ValueError:
        return False


def _named_parts(text: str) -> list[str]:
    parts = [part for part in _PARTS.split(text.lower()) if part]
    return [part for part in parts if _is_name(part, alone=len(parts) == 1, marked=text[0] == "#")]


def _is_name(part: str, *, alone: bool, marked: bool) -> bool:
    digits = sum(map(str.isdigit, part))
    if digits == len(part):
        return digits >= (3 if marked else SHORTEST_NUMBER if alone else 4)
    return digits > 0 and len(part) >= 4 and not _MEASURE.fullmatch(part)


_PARTS = re.compile(r"[^0-9a-z]+")
_CODE = re.compile(r"(?=\d*[A-Z])(?=[A-Z]*\d)[A-Z0-9]{6,}")  # EHGLP3, 3FRNFB
_MEASURE = re.compile(r"#?\d+(?:st|nd|rd|th|[a-z]{1,6})|[a-z]+-?\d|\d+x\d+\w*|\d+(?:-[a-z]+)+", re.IGNORECASE)


# ── what was given ───────────────────────────────────────────────────────────────────────────────

MAX_IDENTIFIERS = 400
"""The maximum number of identifiers that are checked in one answer. An answer with more identifiers is
considered a list."""
_MOST_NEAR = 2_000
"""The maximum number of given identifiers to search for a similar identifier (one that differs in a single
character). In a larger set, some identifiers are similar by chance."""


class SourceTexts:
    """The texts that a conversation has provided so far. The collection grows with the conversation.

    ``add`` accepts a string, a result or arguments. ``add_agent_text`` accepts the agent's own text, so that
    the same invented value is not reported twice. ``is_complete`` is true if no result is missing, so that a
    value that does not occur in the texts was never given."""

    def __init__(self, *values: Any) -> None:
        self._plain: list[str] = []
        self._texts: list[str] = []
        self._cores: dict[str, None] = {}
        self._shapes: set[str] = set()
        self._numbers: set[str] = set()
        self.is_complete = True
        for value in values:
            self.add(value)

    def add(self, value: Any) -> None:
        reading = _parse_source(value if isinstance(value, str) else to_json_or_repr(value))
        self._texts.append(reading.text)
        self._plain.append(reading.plain)
        self._cores |= dict.fromkeys(reading.cores)
        self._shapes |= reading.shapes
        self._numbers |= reading.numbers

    def add_result(self, call: ToolCall) -> None:
        """Add the result of a call. If the result is not in the record, the sources become incomplete."""
        if call.result is None:
            self.is_complete = self.is_complete and call.is_refused
        else:
            self.add(call.result.value)

    def add_turns(self, turns: Iterable[Turn]) -> None:
        """Add everything in turns that precede the conversation, whoever wrote it."""
        for turn in turns:
            self.add(turn.user)
            for step in turn.steps:
                self.add(step.text or "")
                for call in step.tool_calls:
                    self.add(call.args or {})
                    self.add_result(call)

    def add_agent_text(self, text: str) -> None:
        reading = _parse_source(text)
        self._texts.append(reading.text)
        self._plain.append(reading.plain)
        self._numbers |= reading.numbers

    def find_ungrounded(self, text: str) -> Iterator[tuple[Identifier, str]]:
        """Yield each ungrounded (hallucinated) identifier in a string once, in order of occurrence. An
        identifier is reported only if it is unmistakably an identifier and no source provided it.

        Each identifier comes with the source identifier that differs from it by one character, if there is
        exactly one such identifier. Yield nothing if a result is missing."""
        found = sorted(_distinct(text), key=lambda each: each.start) if self.is_complete else ()
        for each in found[:MAX_IDENTIFIERS]:
            if self.contains(each):
                continue
            near = "" if each.is_address else self._near(each.core)
            if each.is_address or near or self._is_distinctive(each):
                yield each, near

    def contains(self, identifier: Identifier) -> bool:
        """Check whether a source contains an identifier, or each part of the identifier
        (``HAT010_2024-05-22``).

        A short number must equal a given number or the end of a given number, because any long text contains
        a short number by chance."""
        if identifier.is_address:
            return any(identifier.core in text for text in self._texts)
        core = identifier.core
        if core.isdigit() and len(core) < SHORTEST_NUMBER:
            return core in self._numbers or any(other.endswith(core) for other in self._cores)
        parts = _named_parts(identifier.text)
        is_specific = any(not part.isdigit() or len(part) >= SHORTEST_NUMBER for part in parts)
        return self._contains_core(core) or (is_specific and all(map(self._contains_core, parts)))

    def _contains_core(self, core: str) -> bool:
        return core in self._cores or any(core in text for text in self._plain)

    def has_known_shape(self, text: str) -> bool:
        """Check whether any source contains identifiers of this shape (``ORD-99``)."""
        return get_shape(text) in self._shapes

    def _is_distinctive(self, identifier: Identifier) -> bool:
        """Check whether a candidate is unmistakably an identifier.

        A candidate qualifies if it is a long number or the end of a long number, has a shape that was given,
        or contains three digits as well as letters. A candidate whose digits count up or repeat, as in
        examples (``#W0000000``), does not qualify."""
        digits = "".join(filter(str.isdigit, identifier.text))
        if len(digits) >= 3 and (len(set(digits)) == 1 or digits in "0123456789012345"):
            return False
        if identifier.text.isdigit() or self.has_known_shape(identifier.text):
            return True
        return len(digits) >= 3 and len(identifier.core) >= 6

    def _near(self, core: str) -> str:
        if len(self._cores) > _MOST_NEAR:
            return ""
        near = [other for other in self._cores if is_one_edit(core, other)]
        return near[0] if len(near) == 1 else ""


def _distinct(text: str) -> list[Identifier]:
    return list({each.core: each for each in reversed(list(find_identifiers(text)))}.values())


class _ParsedSource(NamedTuple):
    text: str
    plain: str
    cores: tuple[str, ...]
    shapes: frozenset[str]
    numbers: frozenset[str]


@lru_cache(maxsize=512)
def _parse_source(text: str) -> _ParsedSource:
    """Parse a source. The result is cached, because every detector parses each tool result."""
    identifiers = [each for each in find_identifiers(text) if not each.is_address]
    small = text.lower()
    return _ParsedSource(
        small,
        _SIGNS.sub("", small),
        tuple(each.core for each in identifiers),
        frozenset(get_shape(each.text) for each in identifiers),
        frozenset(_DIGITS.findall(text)),
    )


_SIGNS = re.compile(r"[^0-9a-z]+")
_SHORTEST_CODE = 5


def get_shape(text: str) -> str:
    """Return the shape of an identifier: the pattern of its letters and digits, ignoring case (the shape of
    ``#W123`` is ``#a999``).

    The shape of an identifier in capitals consists only of its length (``H9ZU1C`` and ``FQ8APE`` are both
    six-character codes)."""
    if len(text) >= _SHORTEST_CODE and text.isupper() and text.isalnum():
        return "X" * len(text)
    return re.sub(r"[a-z]", "a", re.sub(r"\d", "9", text.lower()))


def is_one_edit(one: str, other: str) -> bool:
    """Check whether two strings differ by a single edit (Damerau–Levenshtein distance 1; Damerau 1964).

    The edit inserts, deletes or replaces one character, or swaps two adjacent characters."""
    if one == other or abs(len(one) - len(other)) > 1 or min(len(one), len(other)) < 4:
        return False
    pairs = zip(one, other, strict=False)
    start = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    a, b = one[start:], other[start:]
    if len(a) == len(b):
        return a[1:] == b[1:] or (a[:2] == b[:2][::-1] and a[2:] == b[2:])
    return a[1:] == b or a == b[1:]
