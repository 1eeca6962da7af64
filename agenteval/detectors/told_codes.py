"""Identifiers, and parts of them, that are written otherwise than they were told: in groups, with a space
behind the letters, the last digits only."""

from __future__ import annotations

import re

from agenteval.detectors.evidence import Evidence
from agenteval.detectors.phrases import Phrase
from agenteval.expressions import expression

_APART = expression(r"[\s()./+-]")


def identifier_told(text: str, evidence: Evidence) -> bool:
    """Whether an identifier was told, in whatever groups."""
    if evidence.has_word(text):
        return True
    bare = _APART.sub("", text)
    if bare.isdigit() and len(bare) >= 7:
        if any(bare[-8:] in _APART.sub("", source.text) for source in evidence.sources):
            return True
        return all(map(evidence.has_word, _APART.split(text.lstrip("+("))))
    if len(text) >= _SHORTEST_IBAN and _IBAN.match(text):
        return any(text.lower() in _APART.sub("", source) for source in evidence.lower)
    parts = [part for part in re.split(r"[/+,@:]", text) if part]
    return len(parts) > 1 and all(evidence.has_word(part) for part in parts)


_IBAN = expression("[A-Z]{2}[0-9]{2}[A-Z0-9]+")
_SHORTEST_IBAN = 15


def is_block(phrase: Phrase, evidence: Evidence) -> bool:
    """Whether it is one of the blocks in which the clause writes a long number or code that was told."""
    at = phrase.mention.start - phrase.at
    for run in _BLOCKS.finditer(phrase.clause):
        if not run.start() <= at < run.end():
            continue
        blocks = _APART.split(run[0].lower())
        here = len(_APART.split(phrase.clause[run.start() : at])) - 1
        return any(
            len(code := "".join(blocks[first:last])) >= _LONG_CODE and evidence.has_text(code)
            for first in range(here + 1)
            for last in range(here + 1, len(blocks) + 1)
        )
    return False


_BLOCKS = expression(r"\b[A-Z]{0,4}[0-9]{2,6}(?:[ -][0-9A-Z]{2,6}){1,7}\b")
_LONG_CODE = 8


def is_after_letters(phrase: Phrase, evidence: Evidence) -> bool:
    """Whether it is what follows the letters of a code that was told without the space: TP 1358."""
    found = _LETTERS_BEFORE.search(phrase.left[-8:])
    return found is not None and any(
        evidence.has_word(f"{found[1]}{mark}{phrase.mention.text}") for mark in ("", "-", "_")
    )


_LETTERS_BEFORE = expression(r"(?:\A|[^\w-])([A-Z][A-Z0-9]{0,4})[\s*`_]{1,3}\Z")


def is_masked(phrase: Phrase, evidence: Evidence) -> bool:
    """Part of a longer identifier that was told: its last digits, its first block."""
    text = phrase.mention.text.lower()
    return len(text) >= 4 and evidence.has_text(text)
