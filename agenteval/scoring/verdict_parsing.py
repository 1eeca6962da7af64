"""Parses the verdicts in the replies of LLM judges as models return them, such as "4/5", "n/a", or a label
with a comment. Ambiguous verdicts are rejected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agenteval.files.prompt_front_matter import NOT_ENOUGH_INFORMATION, normalize_label

_NO_SCORE = ("null", "none", "n/a", "na", "not applicable", NOT_ENOUGH_INFORMATION, "not enough")
_NOTHING = frozenset(map(normalize_label, _NO_SCORE))
_OF = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(?:/|out of)\s*([0-9]+(?:\.[0-9]+)?)", re.IGNORECASE)
_AROUND = " \n\t\"'`.*"
_COMMENT = re.compile(r"\s*\(|\s+-+\s+|\s*[\u2013\u2014]\s*")
"""The separator between a label and a comment on the label: a bracket, or a dash with spaces around it."""
_WORD = re.compile(r"[^\W_]+")
_TAKES_BACK = re.compile(r"\?|n['\u2019]t\b|\b(?:no|not|none|never|nothing|without)\b", re.IGNORECASE)


def means_nothing(text: str) -> bool:
    """Check whether a string states that there is no score, or that there is nothing to name."""
    stripped = text.strip(_AROUND)
    return not stripped or normalize_label(stripped) in _NOTHING


def parse_score(text: str, highest: float) -> float | str | None:
    """Parse a score, either alone or as a fraction of ``highest``. Return ``None`` if the text states that
    there is no score.

    Any other text is not a score and is returned unchanged."""
    if text.strip(_AROUND) and means_nothing(text):
        return None
    if (share := _OF.fullmatch(text.strip(_AROUND))) and float(share[2]) == highest:
        return float(share[1])
    try:
        return float(text)
    except ValueError:
        return text


def parse_label(text: str, labels: Iterable[str]) -> str | None:
    """Return the label that a string consists of, or that precedes a comment in the string.

    Return ``None`` if the comment names a label, asks a question or contains a denial, because such a comment
    might retract the label."""
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
    """Return only the words of a string, each surrounded by spaces."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _split_comments(text: str, known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each label that precedes a possible comment, with the text that follows the label."""
    for mark in _COMMENT.finditer(text):
        spelled = normalize_label(text[: mark.start()].strip(_AROUND))
        if spelled in known:
            yield spelled, text[mark.end() :]
