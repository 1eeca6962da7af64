"""The things of the world that agents deal with: which words are names of one and the same."""

from __future__ import annotations

from functools import lru_cache

from agenteval.detectors.verbs import word_set

_FAMILIES = tuple(
    map(
        word_set,
        (
            "booking reservation flight trip ticket itinerary cabin passenger seat bag luggage baggage "
            "insurance meal"
            " wheelchair",
            "booking reservation hotel room",
            "booking reservation table",
            "booking reservation ride trip taxi car",
            "meeting event appointment calendar invitation invite booking visit slot schedule callback call"
            " reservation",
            "account user profile membership member customer address phone preference password information"
            " subscription plan username contact",
            "email message text sms mail notification inbox invitation invite code",
            "payment refund credit invoice card charge bill transaction balance amount fund money loan "
            "limit account"
            " transfer",
            "order purchase shipment delivery item product cart replacement return package refund "
            "payment address",
            "voucher coupon certificate credit point mile gift discount compensation refund",
            "ticket case complaint claim dispute inquiry issue incident request note human agent supervisor"
            " specialist",
            "reminder alarm task todo note event calendar timer",
            "file document folder page",
        ),
    )
)
_OF: dict[str, frozenset[int]] = {}
for _number, _words in enumerate(_FAMILIES):
    for _word in _words:
        _OF[_word] = _OF.get(_word, frozenset()) | {_number}


@lru_cache(maxsize=8192)
def families(words: frozenset[str]) -> frozenset[int]:
    """The families of things that words are of, by number. A word may be of several."""
    return frozenset().union(*(_OF[word] for word in words if word in _OF))


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


THINGS = word_set(
    """
    account email message text sms reminder alarm event meeting appointment booking reservation
    order payment refund subscription ticket flight hotel room card invoice password profile address
    calendar invitation invite contact notification delivery shipment transfer table ride trip
seat meal note case receipt voucher coupon certificate phone point mile credit replacement wheelchair
callback file document preference plan membership address bag luggage insurance loan limit
    """
)
TEXTS = word_set(
    """
    summary list plan draft example code version itinerary overview recommendation paragraph
    sentence outline script function query step below above section question option
    explanation calculation estimate
    """
)
