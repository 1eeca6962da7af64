"""Finds the parts of a user's message that carry a value: identifiers, numbers, names of things in code,
addresses and quotations. A variant of the message must have them exactly as they are.

Whatever might be such a part counts as one: a message that is altered less tests less, but an identifier that
is altered blames the agent for what it was never given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_QUOTED = re.compile(
    r"```.*?(?:```|\Z)"
    r"|`[^`\n]*`"
    r"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|»[^«»]*«|‹[^›]*›|「[^」]*」|『[^』]*』"
    r"|(?<!\w)'(?=\S)[^\n]*?(?<=\S)'(?!\w)"
    r"|(?<!\w)‘(?=\S)[^\n]*?(?<=\S)’(?!\w)",
    re.DOTALL,
)
_STRAIGHT = '"'
_TOKEN = re.compile(r"\S+")
_AROUND = ".,;:!?…()[]{}<>\"'“”„‘’«»‹›*`¿¡"
"""The punctuation around a word that is not part of it."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_NUMBER_WORDS = _word_set(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand"
    " million billion dozen half quarter once twice double triple single first second third fourth fifth"
    " sixth seventh eighth ninth tenth last next both none"
    " null ein eins eine einen zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreißig"
    " hundert tausend"
    " monday tuesday wednesday thursday friday saturday sunday january february march april may june july"
    " august september october november december today tomorrow yesterday tonight noon midnight morning"
    " afternoon evening"
    " montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober"
    " dezember heute morgen gestern"
)
"""Words that are values like numbers: amounts, order, and times."""


def protected_spans(text: str, values: Collection[str] = ()) -> tuple[Span, ...]:
    """Return where the text must stay as it is, in order and without overlaps. ``values`` are words and
    texts, in lower case, that stay as well."""
    spans = [*_quotations(text), *_value_tokens(text, values), *_value_texts(text, values)]
    return tuple(_merge(sorted(spans)))


def is_value_word(word: str) -> bool:
    """Check whether a word says an amount, an order or a time."""
    return word.casefold() in _NUMBER_WORDS


def identifiers_in(text: str) -> tuple[str, ...]:
    """Return the identifiers, addresses and numbers in a text, as they are written."""
    found = (text[start:end] for start, end in _tokens(text) if is_identifier(text[start:end]))
    return tuple(dict.fromkeys(found))


def is_identifier(token: str) -> bool:
    """Check whether a word is not an ordinary one, but an identifier, a number, an address or a name in
    code. Capital letters at the beginning make no identifier."""
    word = unicodedata.normalize("NFC", token)
    if any(char.isnumeric() for char in word) or not _WORD.fullmatch(word):
        return True
    letters = word.replace("'", "").replace("’", "")
    if len(letters) == 1:
        return letters.isupper() and letters != "I"
    return any(char.isupper() for char in letters[1:])


def spelled_words(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case."""
    return (word.casefold() for word in _WORD.findall(unicodedata.normalize("NFC", text)))


def _value_tokens(text: str, values: Collection[str]) -> Iterator[Span]:
    for start, end in _tokens(text):
        token = text[start:end]
        word = unicodedata.normalize("NFC", token).casefold()
        if is_identifier(token) or word in _NUMBER_WORDS or word in values:
            yield start, end


def _value_texts(text: str, values: Collection[str]) -> Iterator[Span]:
    """Yield the places of the values of several words."""
    lower = text.lower()
    if len(lower) != len(text):  # places would be those of another text
        return
    for value in values:
        at = lower.find(value) if " " in value else -1
        while at >= 0:
            yield at, at + len(value)
            at = lower.find(value, at + len(value))


def _tokens(text: str) -> Iterator[Span]:
    """Yield the places of all words, without the punctuation around them."""
    for token in _TOKEN.finditer(text):
        word = token[0]
        start = token.start() + len(word) - len(word.lstrip(_AROUND))
        end = token.start() + len(word.rstrip(_AROUND))
        if start < end:
            yield start, end


def _quotations(text: str) -> Iterator[Span]:
    yield from (match.span() for match in _QUOTED.finditer(text))
    marks = [match.start() for match in re.finditer(_STRAIGHT, text)]
    # An inch mark looks like one of the two marks of a quotation, and nobody knows which.
    is_paired = len(marks) % 2 == 0 and not any(at and text[at - 1].isdigit() for at in marks)
    if is_paired:
        yield from ((start, end + 1) for start, end in zip(marks[::2], marks[1::2], strict=True))
    elif marks:
        yield marks[0], marks[-1] + 1


def _merge(spans: Iterable[Span]) -> Iterator[Span]:
    last: Span | None = None
    for start, end in spans:
        if last is not None and start <= last[1]:
            last = (last[0], max(last[1], end))
            continue
        if last is not None:
            yield last
        last = (start, end)
    if last is not None:
        yield last
