r"""Normalizes (folds) text before every comparison of words: the result is what a reader sees, regardless of
how the text was typed.

The steps of ``fold`` are applied in this order, because each step prepares the next:

1. Unicode normalization (NFC): ``≠`` becomes one character rather than a struck-through ``=``.
2. Invisible characters (zero-width characters, soft hyphens, control characters) and combining strokes are
   removed. Letters and digits in a different width or font, and currency signs, become plain characters,
   according to the Unicode database (``<wide>``, ``<narrow>``, ``<font>``). Superscripts, circled characters
   and fractions have a different meaning and are kept: 10² is not 102.
3. Letter case and the variants of white space, quotes, hyphens and digits are unified.
4. A backslash before punctuation is removed: ``\$5``, ``anna\_k``. Before a letter, it is kept: ``C:\new``. A
   star, a tilde or a backtick after a backslash is visible rather than markup (``s\*orry``), so it becomes a
   lookalike character that no later step treats as markup.
5. Markdown's markers for emphasis, strikethrough and code are removed one by one rather than in pairs,
   because a needle is part of a text and may contain only half of a pair. Markers are also removed within
   words and numbers: ``re**fund**ed``, ``4**7**11``. Markers that separate two names or numbers are kept,
   because the text would have a different meaning without them: underscores within a word (``order_id``) and,
   between two digits, a single star, which multiplies (``2*3``), and tildes, which indicate a range or a
   strikethrough (``~~25~~30``). The braces in TeX's ``1{,}250`` are removed.

If a needle contains a star that must match, stars in the text are kept unless they mark emphasis (``a 5*
hotel``). Stars that mark emphasis are removed in pairs, because a reader of ``**5**`` sees no stars.

Invariants: folding is idempotent, takes linear time, and returns the same result for a text and for any
variant of the text that differs only in these respects."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import groupby

from agenteval.core.text_cache import keep_by_text


class Stars(StrEnum):
    """The treatment of stars that are not preceded by a backslash."""

    MARKS = "marks"
    PAIRS = "pairs"
    """A star is a marker only if it opens or closes an emphasis."""
    SEEN = "seen"


@keep_by_text
def fold(text: str, *, stars: Stars = Stars.MARKS) -> str:
    """Normalize ``text`` to what a reader sees, in lower case, with each run of white space collapsed to one
    space."""
    return " ".join(fold_but_blanks(text, stars=stars).split())


def visible_text(text: str) -> str:
    """Return ``text`` after steps 1, 2 and 4 only. Letter case, lines and Markdown are kept."""
    return nfc(_ESCAPING.sub("", _normalized(text)))


def nfc(text: str) -> str:
    """Return the composed form (Unicode NFC) in linear time. Python's own function takes quadratic time for a
    run of combining marks."""
    return text if text.isascii() else unicodedata.normalize("NFC", _order_marks(text))


BLANK, FIRM_BLANK = " ", "\u00a0"  # a non-breaking one of any width joins the groups of a number
FOLD_CACHE_SIZE = 16  # `fold` and the readings of numbers begin with the same form of a text


@lru_cache(maxsize=FOLD_CACHE_SIZE)
def fold_but_blanks(text: str, *, stars: Stars = Stars.MARKS) -> str:
    """Return the folded text with its white space, because some spaces join the groups of digits
    in a number."""
    text = _normalized(text)
    if text.isascii():
        text = text.lower()
    else:
        # Canonical caseless form (The Unicode Standard, section 3.13, D145), composed again so that a plain
        # `e` does not match in `é`.
        text = nfc(unicodedata.normalize("NFD", _order_marks(text)).casefold()).translate(_TYPED)
        text = _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)
    text = _ESCAPED_MARK.sub(lambda found: found[1] + found[2].translate(_LOOKALIKES), text)
    if stars is Stars.PAIRS:
        text = _without_emphasis(text)
    if stars is not Stars.MARKS:
        text = text.replace("*", _STAR)
    text = _without_marks(_ESCAPING.sub("", text))
    return nfc(_BRACED.sub(r"\1", text))


def _normalized(text: str) -> str:
    return _UNSEEN.sub("", text) if text.isascii() else nfc(text).translate(_VISIBLE)


# Zero-width and other invisible characters (Default_Ignorable_Code_Point), and controls.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_OTHER_FORMS = ("<wide>", "<narrow>", "<font>")


class _VisibleForms(dict[int, str | None]):
    """A table for ``str.translate``, derived from the Unicode database and filled on demand."""

    def __missing__(self, code: int) -> str | None:
        if len(self) >= _MOST_KEPT:
            self.clear()
        self[code] = made = _visible_form(chr(code))
        return made


_VISIBLE = _VisibleForms()
_MOST_KEPT = 1 << 16


def _visible_form(char: str) -> str | None:
    if _UNSEEN.match(char) or _is_stroke(char):
        return None
    form, _, plain = unicodedata.decomposition(char).partition(" ")
    if form not in _OTHER_FORMS or " " in plain:
        return char
    letter = chr(int(plain, 16))
    # A full-width comma or full stop stays: it separates sentences, never the digits of a number.
    is_kept = letter.isalnum() or letter == "%" or unicodedata.category(letter) in _WITH_LETTERS
    return letter if is_kept else char


_WITH_LETTERS = ("Mn", "Sc")
"""Categories of marks (on Japanese letters) and of currency signs."""


def _is_stroke(char: str) -> bool:
    """Check whether the character strikes through the preceding character."""
    return unicodedata.combining(char) == _OVERLAY and "OVERLAY" in unicodedata.name(char, "")


_OVERLAY = 1
"""The combining class of overlays."""
_TYPED = str.maketrans(
    dict.fromkeys("‘’‚‛‹›ʼ´′＇", "'")
    | dict.fromkeys("“”„‟«»″＂", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
    | dict.fromkeys("\u1680\u2002\u2003\u2004\u2005\u2006\u2008\u200a\u205f\u3000", BLANK)
    | dict.fromkeys("\u2007\u2009\u202f", FIRM_BLANK)
)
_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")
_ESCAPING = re.compile(r"\\(?=[!-/:-@\[-`{-~])")  # including itself, so that a run of them needs one pass
_ESCAPED_MARK = re.compile(r"(?<!\\)((?:\\\\)*)\\([*~`])")
_STAR = "\u2217"  # asterisk operator; tilde operator, reversed prime
_LOOKALIKES = str.maketrans({"*": _STAR, "~": "\u223c", "`": "\u2035"})
NEVER_SOUGHT = "\u223c\u2035"  # a text may have lost them as marks, so they are no needle on their own
_MARKS = re.compile("[*_`~]+")
_PARTS_NUMBERS = re.compile(r"\*|~+")
_BRACED = re.compile(r"(?<=[0-9])\{([.,])\}(?=[0-9])")


def _without_marks(text: str) -> str:
    def replace_marks(run: re.Match[str]) -> str:
        before, after = _neighbours(run)
        is_within = before.isalnum() and after.isalnum() and not run[0].strip("_")
        is_between = before.isdigit() and after.isdigit() and _PARTS_NUMBERS.fullmatch(run[0])
        return run[0].replace("*", _STAR) if is_within or is_between else ""

    return _MARKS.sub(replace_marks, text)


def _neighbours(run: re.Match[str]) -> tuple[str, str]:
    text = run.string
    return text[max(run.start() - 1, 0) : run.start()], text[run.end() : run.end() + 1]


def _without_emphasis(text: str) -> str:
    """Remove the stars that open or close an emphasis. Each closing run of stars removes as many stars as are
    open in its paragraph. A run before a non-space character opens an emphasis, and a run after a non-space
    character closes one (CommonMark, 6.2)."""
    removed: dict[int, int] = {}
    open_runs: list[tuple[int, int]] = []  # the start of a run, and how many of its stars are open
    for run in _STARS_OR_PARAGRAPH.finditer(text):
        if "*" not in run[0]:
            open_runs.clear()
            continue
        before, after = _neighbours(run)
        remaining = len(run[0])
        while remaining and open_runs and before.strip():
            start, count = open_runs.pop()
            paired = min(remaining, count)
            removed[start], removed[run.start()] = (
                removed.get(start, 0) + paired,
                removed.get(run.start(), 0) + paired,
            )
            remaining -= paired
            if count > paired:
                open_runs.append((start, count - paired))
        is_product = run[0] == "*" and before.isdigit() and after.isdigit()
        if remaining and after.strip() and not is_product:
            open_runs.append((run.start(), remaining))
    return _STARS_OR_PARAGRAPH.sub(
        lambda run: run[0][removed.get(run.start(), 0) :] if "*" in run[0] else run[0], text
    )


_STARS_OR_PARAGRAPH = re.compile(r"\*+|\n[^\S\n]*\n")


# ── where in the text as it was written ──────────────────────────────────────────────────────────


def in_original(text: str, folded: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Convert ``spans`` of the ``folded`` form to positions in the original ``text``. Each resulting span
    reaches from the first letter or digit to the last. Folding adds and removes punctuation and marks but
    never a letter or digit, so letters and digits are counted. If the two counts differ nevertheless, each
    span becomes the entire text."""
    letters, at = _letters(text)
    same, places = _letters(folded)
    if letters != same:
        return [(0, len(text)) for _ in spans]
    found = []
    for start, end in spans:
        first, last = bisect_left(places, start), bisect_left(places, end)
        if first < last:
            found.append((at[first], _past_marks(text, at[last - 1] + 1)))
    return found


@lru_cache(maxsize=FOLD_CACHE_SIZE)
def _letters(text: str) -> tuple[str, list[int]]:
    """Return the letters and digits in ``text``, each with its index, ignoring differences in case, width,
    font and diacritics."""
    letters: list[str] = []
    at: list[int] = []
    for index, char in enumerate(text):
        for letter in _BARE[ord(char)]:
            letters.append(letter)
            at.append(index)
    return "".join(letters), at


def letters_of(text: str) -> str:
    """Return only the letters and digits of the folded text. If the letters of one text do not contain the
    letters of another, the first text does not contain the second."""
    # What is done to bytes, and once for each other character, takes a tenth of the time.
    data = text.encode("utf-8", "surrogatepass")
    letters = data.translate(_LOWER, _NO_LETTERS).decode("utf-8", "surrogatepass")
    others = set(data.translate(None, _ASCII).decode("utf-8", "surrogatepass"))
    if len(others) > _FEW:
        return letters.translate(_BARE)
    for char in others:
        letters = letters.replace(char, _BARE[ord(char)])
    return letters


_ASCII = bytes(range(128))
_LOWER = bytes(range(256)).lower()
_NO_LETTERS = bytes(code for code in _ASCII if not chr(code).isalnum())
_FEW = 32


def _past_marks(text: str, end: int) -> int:
    """Return the end index, moved past any combining marks on the last letter."""
    while end < len(text) and unicodedata.category(text[end]).startswith("M"):
        end += 1
    return end


class _BareLetters(dict[int, str]):
    """A table that maps each character to the letters and digits that remain after folding. It is filled on
    demand."""

    def __missing__(self, code: int) -> str:
        if len(self) >= _MOST_KEPT:
            self.clear()
        self[code] = made = "".join(_bare_letters(chr(code)))
        return made


def _bare_letters(char: str) -> Iterator[str]:
    plain = unicodedata.normalize("NFD", _visible_form(char) or "").casefold()
    for each in unicodedata.normalize("NFD", plain).translate(_TYPED):
        if each.isalnum():
            yield str(unicodedata.decimal(each)) if _FOREIGN_DIGIT.match(each) else each


_BARE = _BareLetters()


_MAY_COMBINE = re.compile(r"[^\w\s\x00-\x7f]{9,}")


def _order_marks(text: str) -> str:
    """Return the text with each run of combining marks in canonical order."""
    return _MAY_COMBINE.sub(lambda run: "".join(_in_canonical_order(run[0])), text)


def _in_canonical_order(run: str) -> Iterator[str]:
    for _, chars in groupby(run, key=lambda char: unicodedata.combining(char) > 0):
        yield from sorted(chars, key=unicodedata.combining)
