"""The things that tools and messages speak of: their words, and those that mean the same."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from agenteval.core.tool_effects import words_of
from agenteval.scoring.detectors.verbs import KINDS_OF, word_set

THINGS = word_set(
    """
    account email message text sms reminder alarm event meeting appointment booking reservation
    order payment refund subscription ticket flight hotel room card invoice password profile address
    calendar invitation invite contact notification delivery shipment transfer table ride trip
seat meal note case receipt voucher coupon certificate phone point mile credit replacement wheelchair
callback file document preference plan membership address bag luggage insurance loan limit
    """
)


_ALIKE = tuple(
    map(
        word_set,
        (
            "booking reservation",
            "event meeting appointment",
            "account profile",
            "order purchase",
            "email mail message",
            "message text sms",
            "ticket case claim dispute",
            "file document",
            "reminder task todo",
            "subscription membership plan",
        ),
    )
)


@lru_cache(maxsize=1024)
def like_things(words: frozenset[str]) -> frozenset[str]:
    """The words, and those that people use for the very same."""
    return words.union(*(group for group in _ALIKE if group & words))


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """``Flights`` and ``flight`` alike."""
    word = word.lower()
    for ending in ("ies", "es", "s"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_stem, words))


@lru_cache(maxsize=4096)
def nouns_of(name: str) -> frozenset[str]:
    """The words of a tool's name that are no verbs, in the singular."""
    words = (word for word in words_of(name) if len(word) > 2 and word not in _LITTLE)
    nouns = stems(word for word in words if word not in KINDS_OF or word in THINGS)
    return nouns | _MESSAGES if nouns & _MESSAGES else nouns


_MESSAGES = word_set("email mail message text sms")
_LITTLE = word_set(
    "for and the all with from into via new by user customer pending delivered my tool api v1 v2"
)
