"""What is given for one period, told for another: 39.90 a month are 478.80 a year."""

from __future__ import annotations

from agenteval.detectors.arithmetic import near
from agenteval.detectors.evidence import Evidence
from agenteval.detectors.phrases import Phrase
from agenteval.expressions import expression

_PERIODS = {
    "year": r"year|annual|annum|jahr|jährlich|\ban(?:s|née)?\b|annuel|año|"
    r"anual|\banos?\b|\banno\b|annuo|[年]",
    "quarter": r"quarter|quartal|trimest",
    "month": r"month|monat|mois|mensu|\bmes(?:es)?\b|mensa|\bmês|[月]",
    "week": r"week|woche|wöchent|semaine|hebdo|seman|settiman|[週周]",
    "day": r"dai|day|night|tag|täglich|jour|d[ií]a|giorn|[天日]",
    "hour": r"hour|stunde|stündl|heure|hora|\bore?\b",
}
_WORDS = {period: expression(rf"(?i){words}") for period, words in _PERIODS.items()}
_TIMES = {
    ("month", "year"): (12,), ("quarter", "year"): (4,), ("week", "year"): (52,), ("day", "year"): (365, 366),
    ("month", "quarter"): (3,), ("week", "month"): (4, 52 / 12), ("day", "month"): (30, 31, 365 / 12),
    ("month", "week"): (12 / 52, 1 / 4), ("day", "week"): (7,),
    ("hour", "day"): (24,), ("year", "month"): (1 / 12,),
    ("quarter", "month"): (1 / 3,),
    ("year", "week"): (1 / 52,), ("year", "day"): (1 / 365,), ("month", "day"): (1 / 30,),
    ("week", "day"): (1 / 7,), ("year", "quarter"): (1 / 4,),
}  # fmt: skip
_LONGEST_KEY = 80


def is_of_other_period(number: float, phrase: Phrase, evidence: Evidence) -> bool:
    """Whether a field that is called by one period has the number for another, of which the clause speaks."""
    spoken = [period for period, words in _WORDS.items() if words.search(phrase.clause)]
    times = [(given, by) for (given, other), by in _TIMES.items() if other in spoken]
    decimals = min(phrase.mention.decimals, 2)
    return bool(times) and any(
        near(number, leaf.mention.numbers[0] * by, decimals)
        for leaf in evidence.leaves.all()
        if leaf.mention.numbers and len(leaf.label) <= _LONGEST_KEY
        for given, factors in times
        if _WORDS[given].search(leaf.label)
        for by in factors
    )
