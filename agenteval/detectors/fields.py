"""What values are called: the words of a JSON key, and the words beside a value in a sentence.

Words are compared by their stems: lower case, no plural, synonyms made one, the first letters only.
"""

from __future__ import annotations

from functools import lru_cache

from agenteval.expressions import expression

_KEY_WORD = expression(r"[A-Z]+(?![a-z])|[A-Z]?[a-zà-ÿ]+|[^\W\d_A-Za-zà-ÿ]+")
_WORD = expression(r"[^\W\d_]{2,}|°")

_SYNONYMS = {
    word: group.split()[0]
    for group in (
        "temperature temp degree degrees celsius fahrenheit temperatur grad température temperatura hot cold "
        "warm ° tmp",
        "price cost fare rate costing costs priced preis kostet prix cuesta precio costo worth "
        "preço preco custa custam tarif tarifa tariff 价格 单价 価格 料金 単価",
        "total sum altogether overall gesamt gesamtbetrag gesamtpreis betrag summe montant importe grand "
        "subtotal amount",
        "departure depart departs departing departed leave leaves leaving outbound dep takeoff",
        "arrival arrive arrives arriving arrived land lands landing arr eta",
        "start starts begin begins beginning from starting check-in checkin opens open",
        "end ends ending finish finishes until till checkout expire expires expiry expiration expired closes "
        "close",
        "quantity qty count units pieces number",
        "bag bags baggage baggages luggage suitcase",
        "birth dob born birthday birthdate",
        "phone mobile telephone cell tel",
        "created create booked placed ordered made purchased issued",
        "due deadline",
        "balance remaining remains left",
        "refund refunded reimbursed reimbursement",
        "discount off saving savings rebate",
        "person people passenger passengers traveler travelers guest guests pax adult adults",
        "seat seats",
        "duration long takes length",
        "distance far",
        "weight weighs heavy",
        "humidity humid",
        "high highest max maximum",
        "low lowest min minimum",
        "rain rainfall precipitation",
        "limit quota cap allowance",
        "call calls",
        "score rating rated stars",
        "zip postal postcode zipcode",
        "item items product products",
        "night nights",
        "last ending ends",
        "day days",
        "payment pay paid pays payments paying charge charged charges",
        "delivery deliver delivers delivered delivering arrive shipping",
    )
    for word in group.split()
}

_EMPTY_WORDS = (
    "the a an is are was were be been will would can could has have had of in on at to for and or "
    "with by as it its that this these those your you my me our we i they he she his her their there "
    "here not no but if so also just id ids value data result results info information detail details "
    "name type kind list entry entries record object response output content text current currently "
    "new old per each all any est pst utc gmt am pm now please let know like one two which who when "
    "where how what than then do does did der die das und ist el la los le les des du de scheduled "
    "about only from usd eur dollar"
)
_EMPTY = frozenset(_EMPTY_WORDS.split())


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """The stem of ``word``; empty for a word that says nothing of a value."""
    low = word.lower()
    if low in _EMPTY:
        return ""
    if low in _SYNONYMS:
        return _SYNONYMS[low]
    if len(low) > 3 and low.endswith("s") and not low.endswith("ss"):
        low = low[:-1]
    return _SYNONYMS.get(low) or low[:6]


@lru_cache(maxsize=1 << 14)
def key_stems(key: str) -> frozenset[str]:
    """The stems of a key (``scheduled_departure_time``, ``maxTemp``)."""
    return frozenset(filter(None, map(stem, _KEY_WORD.findall(key))))


def text_stems(text: str) -> frozenset[str]:
    """The stems of the words of a phrase."""
    return frozenset(filter(None, map(stem, _WORD.findall(text))))


@lru_cache(maxsize=1 << 12)
def is_rate(label: str) -> bool:
    """Whether a key or a sentence calls a number a rate of exchange."""
    return len(label) <= 80 and _RATE.search(label) is not None


_RATE = expression(
    r"(?i)(?:\b|_)(?:rate|rates|fx|exchange\w*|kurs|wechselkurs|taux|cambio|câmbio|tasa|taxa|cotação|"
    r"cours|factor|faktor|conversion|convert\w*)(?:\b|_)|\A(?:to|per)_|\b1 \S{1,12} = [0-9]|"
    r"(?-i:[a-z]Rate|\A[A-Z]{3}\Z)|汇率|匯率|レート"
)
