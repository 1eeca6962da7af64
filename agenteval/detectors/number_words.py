"""Numbers that are written as words, in the common languages of Europe."""

from __future__ import annotations

from functools import lru_cache

from agenteval.expressions import expression

NUMBER_WORDS = {
    word: number
    for number, words in {
        1: "one once single a an eins ein eine einen un une uno una um uma en ett jeden jedna bir",
        2: "two twice double both pair zwei beide deux dos dois duas due twee två dwa dwie iki",
        3: "three triple drei trois tres três tre drie trzy üç",
        4: "four vier quatre cuatro quatro quattro fyra cztery dört",
        5: "five fünf cinq cinco cinque vijf fem pięć beş",
        6: "six sechs seis sei zes sex sześć altı",
        7: "seven sieben sept siete sete sette zeven sju siedem yedi",
        8: "eight acht huit ocho oito otto åtta osiem sekiz",
        9: "nine neun neuf nueve nove negen nio dziewięć dokuz",
        10: "ten zehn dix diez dez dieci tien tio dziesięć on",
        11: "eleven elf onze once undici elva jedenaście",
        12: "twelve dozen zwölf douze doce doze dodici twaalf tolv dwanaście",
        13: "thirteen dreizehn treize trece treze tredici",
        14: "fourteen vierzehn quatorze catorce catorze quattordici",
        15: "fifteen fünfzehn quinze quince quindici",
        16: "sixteen sechzehn seize",
        17: "seventeen",
        18: "eighteen",
        19: "nineteen",
        20: "twenty zwanzig vingt veinte vinte venti twintig",
        24: "vierundzwanzig ventiquattro",
        30: "thirty dreißig trente treinta trinta trenta dertig",
        40: "forty vierzig quarante cuarenta quarenta quaranta",
        50: "fifty half fünfzig cinquante cincuenta",
        60: "sixty sechzig soixante sesenta",
        70: "seventy siebzig",
        80: "eighty achtzig",
        90: "ninety neunzig",
        100: "hundred hundert cent cien cem",
        1000: "thousand tausend mille mil",
    }.items()
    for word in words.split()
}
_WORDS = expression(r"[^\W\d_]{2,15}")


@lru_cache(maxsize=512)
def number_words(text: str) -> frozenset[float]:
    """The numbers that ``text`` has as words; what else such a word may mean does not matter."""
    words = set(_WORDS.findall(text.lower()))
    return frozenset(float(NUMBER_WORDS[word]) for word in words if word in NUMBER_WORDS)


_DAY_WORDS = {
    word: days
    for days, words in {
        1: "day days night nights tag tage tagen nacht nächte jour jours nuit nuits día días dia dias noche "
        "noches giorno giorni notte notti dag dagen dagar dygn dni dzień gün",
        7: "week weeks woche wochen semaine semaines semana semanas settimana settimane weken vecka veckor "
        "tydzień tygodnie hafta",
    }.items()
    for word in words.split()
}
_LENGTH = expression(
    r"\b(?=([^\W\d_]{1,12}) (?:(?:full|whole|business|working|calendar|more|other) )?([^\W\d_]{3,9}))"
)


@lru_cache(maxsize=512)
def day_words(text: str) -> frozenset[int]:
    """The lengths in words that ``text`` has, in days: "two weeks" are 14, "a week" is 7."""
    found = _LENGTH.findall(text.lower())
    return frozenset(
        NUMBER_WORDS[a] * _DAY_WORDS[b] for a, b in found if a in NUMBER_WORDS and b in _DAY_WORDS
    )
