"""Checks whether a quotation occurs in a text (quote verification). The usual forms of a careful quotation
are accepted: verbatim words with different marks around them, words after the speaker's name, or two adjacent
pieces.

Every word of a quotation has to occur in the text, regardless of the quotation's form. The form only
determines where to split a quotation, and which of the marks in it were added by the judge."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from agenteval.core.folding import fold
from agenteval.core.json_text import iter_leaves, parse_or
from agenteval.core.text_cache import keep_by_text
from agenteval.core.text_matching import mentions

ENOUGH_BYTES = 8
"""The minimum length, in UTF-8 bytes, of at least one part of a quotation. A shorter part must be an entire
message, value or result."""

Form: TypeAlias = tuple[str, ...]
"""A part of a quotation, split into the pieces that have to occur."""


def is_quoted(quotation: str, texts: Sequence[str]) -> bool:
    """Check whether ``quotation`` occurs in ``texts``.

    Each part between ellipses must occur in one of the texts, after case folding and JSON unescaping. At
    least one part must be long enough to identify its source."""
    split = split_quotation(quotation)
    parts = [
        (part, _Ends(at > 0, at < len(split) - 1))
        for at, part in enumerate(split)
        if fold(strip_quotation(part))
    ]
    found = [[form for form in _forms(part, texts) if _stands(form, ends, texts)] for part, ends in parts]
    return all(found) and any(_is_locatable(piece, texts) for forms in found for piece in _pieces(forms))


class _Ends(NamedTuple):
    """States whether a part may begin and end within a word. This is allowed only where an ellipsis marks an
    omission."""

    begins: bool = False
    ends: bool = False


def _pieces(forms: Iterable[Form]) -> Iterator[str]:
    for form in forms:
        yield from form


def is_partly_quoted(quotation: str, texts: Sequence[str]) -> bool:
    """Check whether any piece of ``quotation``, regardless of how it is split, is quoted from ``texts``."""
    pieces = {
        piece
        for part in split_quotation(quotation)
        for between in (_BETWEEN_QUOTES, _BETWEEN_PIECES)
        for piece in (part, *between.split(part))
    }
    return any(is_quoted(piece, texts) for piece in pieces)


def split_quotation(quotation: str) -> list[str]:
    """Split a quotation at its ellipses."""
    return _ELLIPSIS.split(quotation)


def same_words(one: str, other: str) -> bool:
    """Check whether two quotations are the same."""
    return fold(strip_quotation(one)) == fold(strip_quotation(other))


_ELLIPSIS = re.compile(r"[\[(](?:…|\.{3,})[\])]|…|\.{3,}")
_QUOTES = " \t\r\n\"'“”„‚‘’«»`"
_STOPS = ".,;:!?"


def strip_quotation(part: str) -> str:
    """Remove the marks around a quotation, and the period at its end."""
    return part.strip(_QUOTES + _STOPS)


def is_long(part: str) -> bool:
    """Check whether a part, including its period, has enough bytes."""
    text = strip_quotation(part)
    has_stop = part.strip(_QUOTES)[-1:] in _STOPS
    return len(fold(text).encode()) + has_stop >= ENOUGH_BYTES


def _is_locatable(piece: str, texts: Sequence[str]) -> bool:
    return is_long(piece) or _is_whole(strip_quotation(piece), texts)


# ── forms ────────────────────────────────────────────────────────────────────────────────────────

_WHO = r"(?:the\s+)?(?:agent|assistant|bot|user|customer|tool|result|policy|rule)"
_SPEAKER = re.compile(
    rf"\s*(?:turn\s+\d+\s*(?:[,(\-–—]\s*{_WHO}\)?)?|{_WHO}(?:\s*\(?\s*(?:in\s+)?turn\s+\d+\)?)?)"
    r"(?:\s+(?:says?|said|answers?|answered|returns?|returned))?\s*:\s*",
    re.IGNORECASE,
)
"""The speaker's name, as it appears in records and in quotations from them: ``Agent:``, ``Turn 3:``."""
_BETWEEN_QUOTES = re.compile(
    r"(?<=[\"“”»’])\s*(?:\b(?:and|und|et|y)\b|[&+,;/|])?\s*(?=[\"“”„«‘])", re.IGNORECASE
)
_BETWEEN_PIECES = re.compile(r"\s*[;\n]\s*|\s+[/|]\s+")
_BEHIND_HEADING = re.compile(r"\s*:\s+|\s+[\-–—>/|→]\s+|\n\s*")
_MOST_HEADINGS = 3


def _forms(part: str, texts: Sequence[str]) -> Iterator[Form]:
    """Yield the possible interpretations of a part.

    A part is interpreted as it is, without the speaker's name, as two adjacent pieces that can each be
    located, and as a heading followed by its text."""
    yield (part,)
    speaker = _SPEAKER.match(part.strip(_QUOTES))
    if speaker:
        part = part.strip(_QUOTES)[speaker.end() :]
        yield (part,)
    for between in (_BETWEEN_QUOTES, _BETWEEN_PIECES):
        pieces = tuple(
            _without_speaker(piece) for piece in between.split(part) if fold(strip_quotation(piece))
        )
        if len(pieces) > 1 and all(_is_locatable(piece, texts) for piece in pieces):
            yield pieces
    for mark in list(_BEHIND_HEADING.finditer(part))[:_MOST_HEADINGS]:
        headings, under = _BEHIND_HEADING.split(part[: mark.start()]), part[mark.end() :]
        if is_long(under) and all(_is_line(heading, texts) for heading in headings):
            yield (under,)


def _without_speaker(piece: str) -> str:
    text = piece.strip(_QUOTES)
    speaker = _SPEAKER.match(text)
    return text[speaker.end() :] if speaker else piece


def _is_line(heading: str, texts: Iterable[str]) -> bool:
    wanted = fold(strip_quotation(_unmarked(heading)))
    return bool(wanted) and any(
        wanted == fold(strip_quotation(line)) for text in texts for line in _unmarked(text).splitlines()
    )


# ── one piece ────────────────────────────────────────────────────────────────────────────────────


def _stands(form: Form, ends: _Ends, texts: Sequence[str]) -> bool:
    last = len(form) - 1
    return all(
        any(
            _stands_in(strip_quotation(piece), text, _Ends(ends.begins and not at, ends.ends and at == last))
            for text in texts
        )
        for at, piece in enumerate(form)
    )


def _stands_in(piece: str, text: str, ends: _Ends) -> bool:
    if not fold(piece):
        return False
    if _mentions(text, piece, ends):
        return True
    if ("\\" in text or "\\" in piece) and _mentions(_unescaped(text), _unescaped(piece), ends):
        return True
    if '"' in piece and '"' in text and _mentions(_compact(text), _compact(piece), ends):
        return True
    if _mentions(_unmarked(text), _unmarked(piece), ends):
        return True
    plain = _SIGNED_AMOUNT.sub("", piece)
    if plain == piece:
        return False
    amount = _amount(plain)
    is_a_value = amount is not None and any(amount == _amount(value) for value in _values(text))
    return is_a_value or _mentions(_without_signed_amounts(text), plain, ends)


_LETTER = re.compile(r"[A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u052f]")
"""A letter in a script that separates words with spaces."""


def _mentions(text: str, piece: str, ends: _Ends) -> bool:
    """Check whether a string contains the words of a piece: "able to refund" is not part of "unable to
    refund"."""
    if not mentions(text, piece):
        return False
    within, wanted = fold(text), fold(piece)
    places = [found.start() for found in re.finditer(re.escape(wanted), within)]
    return not places or any(_is_apart(within, at, at + len(wanted), ends) for at in places)


def _is_apart(text: str, begin: int, end: int, ends: _Ends) -> bool:
    is_cut_before = begin > 0 and all(map(_LETTER.match, text[begin - 1 : begin + 1]))
    is_cut_behind = end < len(text) and all(map(_LETTER.match, text[end - 1 : end + 1]))
    return (ends.begins or not is_cut_before) and (ends.ends or not is_cut_behind)


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": " ", "f": " "}


@keep_by_text
def _unescaped(text: str) -> str:
    return _ESCAPE.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _CONTROLS.get(found[2], found[2]), text
    )


_AROUND_MARKS = re.compile(r"(?<=[\"\]}])\s*([:,])\s*|\s*([:,])\s*(?=[\"\[{])|(?<=[{\[])\s+|\s+(?=[}\]])")


@keep_by_text
def _compact(text: str) -> str:
    """Remove the spaces around JSON punctuation. Keep a space between two numbers, because it separates the
    numbers."""
    return _AROUND_MARKS.sub(lambda found: found[1] or found[2] or "", text)


_LINE_MARK = re.compile(r"^[^\S\n]*(?:#{1,6}|[-*•+–>])[^\S\n]+(?=[^\W\d_]|[*\"“(])", re.MULTILINE)


@keep_by_text
def _unmarked(text: str) -> str:
    """Remove heading and list markers at the beginning of lines."""
    return _LINE_MARK.sub("", text)


_SIGNS = "".join(chr(code) for code in range(0x20D0) if unicodedata.category(chr(code)) == "Sc")
_SIGNED_AMOUNT = re.compile(rf"[{re.escape(_SIGNS)}]\s?(?=\d)|(?<=\d)\s?[{re.escape(_SIGNS)}]")
_WITH_SIGN = re.compile(rf"[{re.escape(_SIGNS)}]\s?\d[\d.,]*|\d[\d.,]*\s?[{re.escape(_SIGNS)}]")


@keep_by_text
def _without_signed_amounts(text: str) -> str:
    """Remove amounts with a currency sign, because they match only amounts in the same currency."""
    return _WITH_SIGN.sub("\N{REPLACEMENT CHARACTER}", text)


# ── a whole message, value or result ─────────────────────────────────────────────────────────────


def _is_whole(piece: str, texts: Iterable[str]) -> bool:
    wanted, amount = fold(piece), _amount(_SIGNED_AMOUNT.sub("", piece))
    return any(
        wanted == fold(strip_quotation(whole)) or (amount is not None and amount == _amount(whole))
        for text in texts
        for whole in (text, *_values(text))
    )


_PLAIN_AMOUNT = re.compile(r"\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def _amount(text: str) -> float | None:
    """Return the number that a string consists of. For example, 1,969.20 is returned as 1969.2."""
    plain = text.strip()
    return float(plain.replace(",", "")) if _PLAIN_AMOUNT.fullmatch(plain) else None


def _values(text: str) -> Iterator[str]:
    """Yield the individual values in a string that contains JSON or call arguments."""
    start = min((at for at in map(text.find, "{[") if at >= 0), default=-1)
    if start < 0:
        return
    found = parse_or(text[start:], [])
    yield from (leaf if isinstance(leaf, str) else json.dumps(leaf) for _, leaf in iter_leaves(found))
