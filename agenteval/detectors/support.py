"""Whether a value of an answer follows from what the agent had been told."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from agenteval.detectors.arithmetic import (
    converted,
    near,
    one_step,
    operands_of,
    percentage_of,
    share_of,
    two_steps,
)
from agenteval.detectors.dates import Day
from agenteval.detectors.evidence import Evidence
from agenteval.detectors.mentions import Mention, mentions_in
from agenteval.detectors.phrases import Phrase

_ZONE = re.compile(r"\b(?:[A-Z]{1,4}[SD]?T|UTC|GMT|Z|CET|CEST|local|Uhr)\b")
_NEXT_DAY = re.compile(
    r"(?i)next day|overnight|\+1|arriv|tomorrow|day after|following day|day before|land|return|check-?out|"
    r"back|until"
)
_RELATIVE = re.compile(
    r"(?i)\b(?:today|tonight|tomorrow|yesterday|weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|"
    r"(?:next|this|last|past|coming|following|previous) (?:few |couple |couple of |two |three )?"
    r"(?:week|month|year|day|quarter|spring|summer|autumn|fall|winter)s?|"
    r"(?:days?|weeks?|months?) (?:from|after|before|later|earlier|ago|prior)|"
    r"in (?:a|two|three|four|[0-9]+) (?:days?|weeks?|months?)|the day (?:after|before)|"
    r"heute|morgen|gestern|demain|hier|aujourd'hui|mañana|hoy|ayer|domani|oggi|ieri)\b|"
    r"[明今昨]天|下周|本周|上周|周[一二三四五六日]"
)
_NUMBER_WORDS = {
    word: number
    for number, words in {
        1: "one once single a an eins ein eine un une uno una",
        2: "two twice double both pair zwei deux dos",
        3: "three triple drei trois tres",
        4: "four vier quatre cuatro",
        5: "five fünf cinq cinco",
        6: "six sechs seis",
        7: "seven sieben sept siete",
        8: "eight acht huit ocho",
        9: "nine neun neuf nueve",
        10: "ten zehn dix diez",
        11: "eleven elf onze",
        12: "twelve dozen zwölf douze doce",
        13: "thirteen",
        14: "fourteen",
        15: "fifteen",
        16: "sixteen",
        17: "seventeen",
        18: "eighteen",
        19: "nineteen",
        20: "twenty",
        30: "thirty",
        40: "forty",
        50: "fifty half",
        60: "sixty",
        70: "seventy",
        80: "eighty",
        90: "ninety",
        100: "hundred",
        1000: "thousand",
    }.items()
    for word in words.split()
}
_WORDS = re.compile(r"[^\W\d_]{3,9}")
_SMALL = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)


class Beside(NamedTuple):
    """What the agent itself named: amounts in the answer ``here`` and in those ``before``, latest first, and
    the plain numbers of the answer, the nearest first."""

    here: Sequence[float]
    before: Sequence[float]
    counts: Sequence[float]


def told(mention: Mention, evidence: Evidence) -> bool:
    """Whether the value, however it is written, is in the evidence as it is."""
    if mention.kind == "identifier":
        return _identifier_told(mention.text, evidence)
    if mention.days and _day_told(mention.days, evidence.days):
        return True
    if mention.clocks and not evidence.clocks.isdisjoint(mention.clocks):
        return True
    if mention.kind == "date":
        return False
    if mention.kind == "time":
        return mention.clocks[0] % 60 == 0 and not evidence.asked.isdisjoint(_hours(mention.clocks[0]))
    return not evidence.numbers.isdisjoint(mention.numbers)


def _hours(clock: int) -> tuple[float, float]:
    return (float(clock // 60), float(clock // 60 % 12 or 12))


def _day_told(days: Collection[Day], known: Collection[Day]) -> bool:
    """Whether one of ``days`` is known; a year that one side leaves out is not compared."""
    if any(day in known for day in days):
        return True
    without = {day[1:] for day in known if not day[0]}
    if any(day[1:] in without for day in days):
        return True
    return any(not day[0] and day[1:] == other[1:] for day in days for other in known)


def _identifier_told(text: str, evidence: Evidence) -> bool:
    if evidence.has_word(text):
        return True
    bare = re.sub(r"[\s().+-]", "", text)
    if bare.isdigit() and len(bare) >= 7:
        return any(bare[-10:] in re.sub(r"[\s().+-]", "", source.text) for source in evidence.sources)
    parts = [part for part in re.split(r"[/+,@:]", text) if part]
    return len(parts) > 1 and all(evidence.has_word(part) for part in parts)


def follows(phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    """Whether the value comes from the evidence by rounding, counting, another unit, arithmetic or the
    calendar. ``beside``: the numbers that the agent has said before, in this answer first."""
    mention = phrase.mention
    if mention.kind == "identifier":
        return _masked(phrase, evidence)
    if mention.kind == "date":
        return _day_follows(phrase, evidence)
    if mention.kind == "time":
        return _time_follows(phrase, evidence)
    return any(_number_follows(number, phrase, evidence, beside) for number in mention.numbers)


def _masked(phrase: Phrase, evidence: Evidence) -> bool:
    """Part of a longer identifier that was told: its last digits, its first block."""
    text = phrase.mention.text.lower()
    return len(text) >= 4 and evidence.has_text(text)


def _number_follows(number: float, phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    mention, known = phrase.mention, evidence.numbers
    decimals = mention.decimals
    if mention.kind == "percent" and any(
        near(number, other * 100, decimals) for other in known if other <= 10
    ):
        return True
    if any(other % 1 and near(number, other, decimals) for other in known):
        return True
    if decimals < 0 and any(near(number, other, decimals) for other in known):
        return True
    if phrase.hedged and any(abs(other - number) <= 0.1 * number for other in known):
        return True
    if number % 1 == 0 and mention.kind == "number":
        if number in evidence.leaves.counts:
            return True
        if number >= 100 and evidence.ends_in(str(int(number))):
            return True
    if converted(number, mention.unit, known, decimals) or _calculated(number, phrase, evidence, beside):
        return True
    return number in _in_words(evidence)


def _in_words(evidence: Evidence) -> set[float]:
    """The numbers that sources other than results write in words."""
    texts = (source.text for source in evidence.sources if source.role in {"told", "user"})
    found = {number for text in texts for number in _number_words(text)}
    tens = {number for number in found if 20 <= number <= 90}
    ones = {number for number in found if number < 10}
    return (
        found | {ten + one for ten in tens for one in ones} | {a * b for a in found for b in (100.0, 1000.0)}
    )


@lru_cache(maxsize=512)
def _number_words(text: str) -> frozenset[float]:
    words = set(_WORDS.findall(text.lower()))
    return frozenset(float(_NUMBER_WORDS[word]) for word in words if word in _NUMBER_WORDS)


def _calculated(number: float, phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    """By arithmetic: as far as the words around speak of it, since each further operand makes reaching
    the number by chance more likely."""
    mention = phrase.mention
    if mention.kind == "money":
        return _amount_follows(number, phrase, evidence, beside)
    operands = [beside.counts, evidence.called(phrase.label)]
    if mention.kind == "percent":
        few = [[*group, *beside.counts[:3]] for group in evidence.few(5)]
        groups = [operands_of([beside.here], 6), operands_of(operands, 6), *few]
        return any(percentage_of(number, group, mention.decimals) for group in groups)
    if mention.unit[:3] in _TIME_UNITS and _is_between_clocks(number, phrase, evidence.clocks):
        return True
    if not evidence.has_field(phrase.label) and any(one_step(number, few, ()) for few in evidence.few(8)):
        return True
    if phrase.compared and one_step(number, operands_of(operands, 12), ()):
        return True
    return phrase.calculated and one_step(number, operands_of(operands, 8), _SMALL)


_TIME_UNITS = {"h": 60, "hr": 60, "hrs": 60, "hou": 60, "stu": 60, "heu": 60, "hor": 60, "min": 1, "m": 1}
_HOURS = re.compile(r"(?i)[0-9]\s?(?:h\b|hr|hours?|stunden?|heures?|horas?)")


def _is_between_clocks(number: float, phrase: Phrase, clocks: Collection[int]) -> bool:
    """Whether so many hours or minutes lie between two known times; with hours beside them, minutes are
    the rest."""
    spans = {(a - b) % 1440 for a in clocks for b in clocks} if len(clocks) <= 60 else set()
    if _TIME_UNITS[phrase.mention.unit[:3]] == 60:
        return any(abs(span / 60 - number) < 0.26 or span // 60 == number for span in spans)
    if _HOURS.search(phrase.left):
        return any(span % 60 == number for span in spans)
    return number in spans


def _amount_follows(number: float, phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    if not phrase.calculated:
        near_by = operands_of([beside.here[:6], evidence.computed[-2:], beside.before[:3]], 10)
        counts = {count for count in beside.counts[:2] if 1 < count <= 60}
        return one_step(number, near_by, counts) or number in evidence.leaves.amounts().sums
    counts = {*_SMALL, *(count for count in beside.counts if 1 < count <= 20)}
    if _PER_TIME.search(phrase.clause):
        counts |= {12.0, 52.0, 7.0, 30.0, 365.0}
    if two_steps(number, operands_of([beside.here, evidence.computed[-2:], beside.before], 8), counts):
        return True
    operands = operands_of([beside.here, beside.before, evidence.amounts_told], 20)
    if one_step(number, operands, counts) or evidence.paired(
        number, [1, 2, 3, 4, 5, *counts], compared=phrase.compared
    ):
        return True
    return share_of(number, operands, evidence.percents(), phrase.mention.decimals)


_PER_TIME = re.compile(
    r"(?i)year|annual|month|week|dai|day|jahr|monat|woche|\ban\b|mois|año|mes\b|[年月周天]"
)


def _time_follows(phrase: Phrase, evidence: Evidence) -> bool:
    clocks, known = phrase.mention.clocks, evidence.clocks
    if other_zone(phrase, evidence):
        return any((clock + 30 * shift) % 1440 in known for clock in clocks for shift in range(-28, 29))
    steps = [step for span in _spans(evidence) for step in (span, -span)]
    if any((clock + step) % 1440 in known for clock in clocks for step in steps):
        return True
    return phrase.mention.vague and any((clock + 720) % 1440 in known for clock in clocks)


_SPAN_WORDS = {"half": 30, "hour": 60, "quarter": 15}


def _spans(evidence: Evidence) -> Iterator[int]:
    """The lengths of time that the user spoke of and that results have fields for, in minutes."""
    for source in evidence.sources:
        if source.role == "user":
            for mention in mentions_in(source.text):
                if mention.unit[:3] in {"min", "hou", "hr", "hrs", "h"} and mention.numbers:
                    yield int(mention.numbers[0] * (1 if mention.unit[0] == "m" else 60))
            low = source.text.lower()
            yield from (minutes for word, minutes in _SPAN_WORDS.items() if word in low)
    yield from (int(number) for number in evidence.called({"minute", "min", "duration"}))
    yield from (int(60 * number) for number in evidence.called({"hour", "duration"}) if number <= 24)


def other_zone(phrase: Phrase, evidence: Evidence) -> bool:
    """Whether a time is said in a time zone that nobody else spoke of."""
    zone = _ZONE.search(phrase.right[:16])
    return zone is not None and not evidence.has_word(zone[0])


def _day_follows(phrase: Phrase, evidence: Evidence) -> bool:
    days, known = phrase.mention.days, evidence.days
    if _day_told(days, evidence.prose_days):
        return True
    dated = [when for day in (*known, *evidence.prose_days) if (when := _date(day))]
    targets = [when for day in days if (when := _date(day, dated))]
    if _NEXT_DAY.search(phrase.clause) and any(abs((a - b).days) == 1 for a in targets for b in dated):
        return True
    if not _PERIOD.search(phrase.clause):
        return False
    spans = _periods(evidence)
    return any(abs((a - b).days) in spans for a in targets for b in dated)


_PERIOD = re.compile(
    r"(?i)\b(?:by|until|till|within|before|after|deadline|expires?|due|window|days?|weeks?)\b"
)
_LONG_UNITS = {"day": 1, "bus": 1, "cal": 1, "wee": 7, "tag": 1, "woc": 7}


def _periods(evidence: Evidence) -> set[int]:
    """The periods that texts and the fields of results speak of, in days."""
    told_periods = {
        int(mention.numbers[0] * _LONG_UNITS[mention.unit[:3]])
        for source in evidence.sources
        if source.role in {"told", "user"}
        for mention in mentions_in(source.text)
        if mention.numbers and mention.unit[:3] in _LONG_UNITS
    }
    return told_periods | {int(number) for number in evidence.called({"day", "night", "week", "duration"})}


def _date(day: Day, like: Collection[date] = ()) -> date | None:
    year = day[0] or max((other.year for other in like), default=2024)
    try:
        return date(year, day[1], day[2])
    except ValueError:
        return None


_VAGUE_TIMES = re.compile(
    r"(?i)\b(?:hours?|minutes?|later|earlier|noon|midnight|morning|afternoon|evening|tonight|now|half|quarter)\b"
)


def relative_times(evidence: Evidence) -> bool:
    """Whether the user spoke of times by words or lengths (in two hours, at noon)."""
    return any(source.role == "user" and _VAGUE_TIMES.search(source.text) for source in evidence.sources)


def relative_days(evidence: Evidence) -> bool:
    """Whether somebody spoke of days by words (tomorrow, next Friday), which only a calendar resolves."""
    return any(source.role == "user" and _RELATIVE.search(source.text) for source in evidence.sources)
