"""Parses verdicts as models write them: "4/5", "n/a", a label with a comment. An ambiguous one is not
accepted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agenteval.files.prompt_front_matter import NOT_ENOUGH_INFORMATION, normalize_label

_NO_SCORE = ("null", "none", "n/a", "na", "not applicable", NOT_ENOUGH_INFORMATION, "not enough")
_NOTHING = frozenset(map(normalize_label, _NO_SCORE))
_OF = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(?:/|out of)\s*([0-9]+(?:\.[0-9]+)?)", re.IGNORECASE)
_AROUND = " \n\t\"'`.*"
_COMMENT = re.compile(r"\s*\(|\s+-+\s+|\s*[\u2013\u2014]\s*")
"""Separates a label from a comment on it: a bracket, or a dash with blanks around it."""
_WORD = re.compile(r"[^\W_]+")
_TAKES_BACK = re.compile(r"\?|n['\u2019]t\b|\b(?:no|not|none|never|nothing|without)\b", re.IGNORECASE)


def means_nothing(text: str) -> bool:
    """Check whether a text states that there is no score, or nothing to name."""
    stripped = text.strip(_AROUND)
    return not stripped or normalize_label(stripped) in _NOTHING


def parse_score(text: str, highest: float) -> float | str | None:
    """Parse a score, alone or as a share of ``highest``; ``None`` if the text states that there is none.

    Any other text is returned unchanged: it is not a score."""
    if text.strip(_AROUND) and means_nothing(text):
        return None
    if (share := _OF.fullmatch(text.strip(_AROUND))) and float(share[2]) == highest:
        return float(share[1])
    try:
        return float(text)
    except ValueError:
        return text


def parse_label(text: str, labels: Iterable[str]) -> str | None:
    """Return the label that a text consists of, or begins with before a comment.

    ``None`` if the comment names a label, asks or denies, because it might take the label back."""
    by_spelling = {normalize_label(label): label for label in labels}
    text = text.strip(_AROUND)
    if normalize_label(text) in by_spelling:
        return by_spelling[normalize_label(text)]
    begun = dict(_split_comments(text, by_spelling))
    if len(begun) != 1:
        return None
    [(spelled, comment)] = begun.items()
    names_any = any(_words(label) in _words(comment) for label in by_spelling)
    return None if names_any or _TAKES_BACK.search(comment) else by_spelling[spelled]


def _words(text: str) -> str:
    """Return only the words, each between blanks."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _split_comments(text: str, known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each label that precedes a possible comment, with the text that follows it."""
    for mark in _COMMENT.finditer(text):
        spelled = normalize_label(text[: mark.start()].strip(_AROUND))
        if spelled in known:
            yield spelled, text[mark.end() :]
