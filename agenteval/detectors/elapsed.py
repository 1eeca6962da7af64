"""Dates and lengths of time that follow from others."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Collection, Iterable
from datetime import date
from functools import lru_cache
from statistics import fmean

from agenteval.detectors.dates import Day, is_called_so, is_day_told, weekday_beside, weekdays_in
from agenteval.detectors.evidence import Evidence
from agenteval.detectors.mentions import Mention, mentions_in
from agenteval.detectors.number_words import day_words
from agenteval.detectors.phrases import Phrase
from agenteval.expressions import expression

_NEXT_DAY = expression(
    r"(?i)next day|overnight|\+1|arriv|tomorrow|day after|following day|day before|land|return|check-?out|"
    r"back|until|bis|jusqu|hasta|até|翌|次日|第二天|明"
)
_RELATIVE = expression(
    r"(?i)\b(?:today|tonight|tomorrow|yesterday|weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|"
    r"(?:next|this|last|past|coming|following|previous) (?:few |couple |couple of |two |three )?"
    r"(?:week|month|year|day|quarter|spring|summer|autumn|fall|winter)s?|"
    r"(?:days?|weeks?|months?) (?:from|after|before|later|earlier|ago|prior)|"
    r"in (?:a|two|three|four|[0-9]+) (?:days?|weeks?|months?)|the day (?:after|before)|"
    r"heute|morgen|gestern|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|nächsten?|kommenden?|"
    r"demain|hier|aujourd'hui|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|prochaine?|"
    r"mañana|hoy|ayer|lunes|martes|miércoles|jueves|viernes|sábado|domingo|próxim[ao]|que viene|"
    r"amanhã|hoje|ontem|(?:segunda|terça|quarta|quinta|sexta)(?:-feira)?|que vem|domani|oggi|ieri)\b|"
    r"[明今昨后後]天|[下本上][周週个個]|[周週]|星期|礼拜|[明今昨]日|来週|今週|先週|曜日|あさって|あした|きょう"
)


# ── lengths ──────────────────────────────────────────────────────────────────────────────────────

MINUTES = {"h": 60, "hr": 60, "hrs": 60, "hou": 60, "stu": 60, "std": 60, "heu": 60, "hor": 60, "時": 60}
MINUTES |= {"小": 60, "min": 1, "m": 1, "分": 1}
_DAYS = {"day": 1, "bus": 1, "cal": 1, "nig": 1, "wor": 1, "wee": 7, "tag": 1, "näc": 1, "woc": 7, "jou": 1}
_DAYS |= {"nui": 1, "sem": 7, "día": 1, "dia": 1, "noc": 1, "noi": 1, "gio": 1, "天": 1, "日": 1, "泊": 1}
_DAYS |= {"晚": 1, "周": 7, "週": 7}
_WORKDAYS = frozenset({"bus", "wor"})
"""Five of them are a week, with a weekend or two and a holiday between."""
_MONTHS = {"mon": 1, "yea": 12, "jah": 12, "moi": 1, "an": 12, "ans": 12, "ann": 12, "mes": 1, "mês": 1}
_MONTHS |= {"año": 12, "ano": 12, "年": 12, "个": 1, "か": 1, "ヶ": 1, "yr": 12}
_HOURS = expression(r"(?i)[0-9]\s?(?:h\b|hr|hours?|std|stunden?|heures?|horas?|小时|時間)")
_MOST_CLOCKS = 60
_MOST_DAYS = 40


def is_length(number: float, phrase: Phrase, evidence: Evidence) -> bool:
    """Whether so much time of the phrase's unit lies between two known moments, or is the difference
    between two such lengths where things are compared."""
    unit = (phrase.mention.unit or _unit_in(phrase.head))[:3]
    if _is_part(number, phrase, evidence):
        return True
    if unit in _DAYS and number * _DAYS[unit] in _periods(evidence):
        return True
    if unit in MINUTES and number * MINUTES[unit] in _said_lengths(evidence):
        return True
    if unit.startswith("s") and number in _seconds_between(phrase.clause):
        return True
    if unit in MINUTES and len(evidence.offsets()) > 1:
        return True  # between two zones the clocks alone do not say
    if unit in MINUTES and len(evidence.clocks) <= _MOST_CLOCKS:
        return _is_between_clocks(number, phrase, evidence)
    return (unit in _DAYS or unit in _MONTHS) and _is_between_days(number, phrase, evidence)


def _unit_in(head: str) -> str:
    """The unit of time that the head of a column speaks of: "Days overdue", "Time (min)"."""
    found = _TIME_UNIT.search(head)
    return found[0].lower() if found else ""


_TIME_UNIT = expression(
    r"(?i)\b(?:days?|nights?|weeks?|months|years|hours?|hrs?|h|minutes?|mins?|min|tage?|nächte|wochen?|monate|"
    r"jahre|stunden?|std|minuten|jours?|nuits?|semaines?|mois|ans|heures?|días?|noches|semanas?|meses|años|"
    r"horas?|minutos|dias?|noites|anos)\b|[天日泊晚周週]"
)


def _seconds_between(clause: str) -> set[int]:
    """From one time of day in the clause to another."""
    moments = [3600 * int(h) + 60 * int(m) + int(s) for h, m, s in _WITH_SECONDS.findall(clause)]
    return {abs(a - b) for a in moments for b in moments}


_WITH_SECONDS = expression(r"\b([0-9]{1,2}):([0-9]{2}):([0-9]{2})\b")


def _said_lengths(evidence: Evidence) -> set[int]:
    """The lengths that the user spoke of in words, in minutes: an hour and a half."""
    words = [_HOUR_WORDS.search(text) for text in evidence.texts("user")]
    return {90 if found["half"] else 60 for found in words if found}


_HOUR_WORDS = expression(
    r"(?i)\b(?:an|one|eine|une|una|uma) (?:hour|stunde|heure|hora|ora)(?P<half> and a half)?\b"
)
_LARGER = expression(r"([0-9]+)\s?(h|m)[a-zäöü]*\.?,?\s(?:(?:and|und|et|y|e) )?\W{0,3}$", re.IGNORECASE)


_HOURS_BEFORE = expression(r"[0-9]\s?h\s?$")


def _is_part(number: float, phrase: Phrase, evidence: Evidence) -> bool:
    """Whether it is the larger or the smaller part of a known length: 473 s are 7 min 53 s."""
    unit = phrase.mention.unit[:1].lower()
    known = {*evidence.numbers, *_totals(evidence)}
    if unit not in {"h", "m", "s"} and _HOURS_BEFORE.search(phrase.left):  # 1 h 35
        minutes = {
            *(a - b for a in evidence.clocks for b in evidence.clocks),
            *known,
            *(n // 60 for n in known),
        }
        return number in {length % 60 for length in minutes}
    if unit not in {"h", "m", "s"}:
        return False
    if unit in {"h", "m"} and any(
        other // 60 == number or other // 3600 == number or other // 60_000 == number for other in known
    ):
        return True
    larger = _LARGER.search(phrase.left)
    if larger and unit == "m" and number in {length % 60 for length in known}:
        return True
    if not larger or unit not in {"m", "s"}:
        return False
    whole = 60 * float(larger[1]) + number
    sizes = (1, 1000) if unit == "s" else (1, 60, 60_000)
    return any(abs(other / size - whole) < 1 for other in known for size in sizes)


def _totals(evidence: Evidence) -> set[float]:
    """The sums and the means of the fields of results."""
    return {by(values) for values in evidence.leaves.series() for by in (sum, fmean)}


def _is_between_clocks(number: float, phrase: Phrase, evidence: Evidence) -> bool:
    """With hours beside them, minutes are the rest."""
    spans = {(a - b) % 1440 for a in evidence.clocks for b in evidence.clocks}
    if phrase.compared and len(evidence.clocks) >= _MANY:
        return True
    if MINUTES[(phrase.mention.unit or _unit_in(phrase.head))[:3]] == 60:
        return any(abs(span / 60 - number) < 0.26 or span // 60 == number for span in spans)
    if _HOURS.search(phrase.left):
        return any(span % 60 == number for span in spans)
    return number in spans


def _is_between_days(number: float, phrase: Phrase, evidence: Evidence) -> bool:
    """Both ends may count; of a period that was told, a part may be over."""
    unit = (phrase.mention.unit or _unit_in(phrase.head))[:3]
    here = [day for mention in _mentions(phrase.clause) for day in mention.days]
    known = _dates([*evidence.days, *evidence.prose_days, *here])
    if len(known) > _MOST_DAYS:
        return False
    gaps = {abs((a - b).days) for a in known for b in known if a != b}
    if unit in _MONTHS:
        size = 30.44 * _MONTHS[unit]
        return any(abs(gap / size - number) < 0.3 or gap // size == number for gap in gaps)
    size = _DAYS[unit]
    if number * size in gaps or (size > 1 and any(gap // size == number for gap in gaps)):
        return True
    if number + 1 in gaps or number - 1 in gaps:
        return True
    return any(abs(period - gap) == number for period in _periods(evidence) for gap in gaps)


def _dates(days: Iterable[Day]) -> set[date]:
    days = list(days)
    found = {when for day in days if day[0] and (when := _date(day))}
    return found | {when for day in days if not day[0] and (when := _date(day, found))}


def has_lengths(mention: Mention, evidence: Evidence) -> bool:
    """Whether it is a length of time and results have so many of them that most follow from some."""
    return mention.unit[:3] in MINUTES and len(evidence.fields(_LENGTH_FIELD)) >= _MANY


_MANY = 3
_LENGTH_FIELD = expression(r"(?i)(?:\A|_)(?:min|mins|minutes?|hours?|h|s|secs?|seconds?|ms|duration)(?:\Z|_)")


# ── dates ────────────────────────────────────────────────────────────────────────────────────────

_PERIOD = expression(
    r"(?i)\b(?:by|until|till|within|before|after|latest|deadline|expires?|due|window|days?|weeks?|months?|years?|"
    r"bis|spätestens|frist|tage?|wochen?|monate?|jahre?|jusqu'|avant|d'ici|jours?|semaines?|mois|ans|"
    r"(?:arriv|deliver|ship|ready|effect|return|start|end|renew|land|kommt|lieferung|liefert|arrive|llega)\w*|"
    r"hasta|antes|plazo|días?|semanas?|meses|años?|até|prazo|dias?|anos?|entro|fino)\b|[天日周週月年]"
)


def does_day_follow(phrase: Phrase, evidence: Evidence, beside: Collection[Day]) -> bool:
    """Whether a date is told in words, or lies as far from a known one, or one ``beside`` it, as somebody
    said."""
    days = phrase.mention.days
    if is_day_told(days, evidence.prose_days):
        return True
    dated = list(_dates([*evidence.days, *evidence.prose_days]))
    targets = [when for day in days if (when := _date(day, dated))]
    if any(when.day in evidence.asked and when.month == other.month for when in targets for other in dated):
        return True  # "from the 5th to the 18th of October"
    told = _ordinals(evidence)
    if any(when.day in told and abs((when - other).days) <= 31 for when in targets for other in dated):
        return True  # the next 25th
    if _NEXT_DAY.search(phrase.clause) and any(abs((a - b).days) == 1 for a in targets for b in dated):
        return True
    if _AS_OF.search(phrase.left) and any((a - b).days == 1 for a in targets for b in dated):
        return True  # until the 6th, that is: no longer from the 7th on
    if _is_by_rule(phrase, targets, dated, evidence) or _is_one_of_many(phrase, targets):
        return True
    if _WORKDAY.search(phrase.clause) and any(0 < (a - b).days <= 4 for a in targets for b in dated):
        return True
    spans = set(day_words(phrase.clause))
    if any(abs((a - b).days) in {span, span - 1, span + 1} for span in spans for a in targets for b in dated):
        return True
    if not _PERIOD.search(phrase.clause):
        return False
    dated += [when for day in beside if (when := _date(day, dated))]
    spans = _periods(evidence)
    if any(abs((a - b).days) in spans for a in targets for b in dated):
        return True
    months = _month_periods(evidence)
    ends = {end for by in months for when in dated if (end := _later(when, by))}
    return any(abs((end - target).days) <= 1 for end in ends for target in targets)


def _is_one_of_many(phrase: Phrase, targets: Iterable[date]) -> bool:
    """Whether two other dates of the clause are the same day of other months: instalments."""
    days = {day[1:] for mention in _mentions(phrase.clause) for day in mention.days}
    return any(sum(day == when.day for month, day in days if month != when.month) > 1 for when in targets)


def _is_by_rule(phrase: Phrase, targets: Iterable[date], dated: Iterable[date], evidence: Evidence) -> bool:
    """Whether a rule that was told gives the date: the last (working) day of the month, or a day of the week,
    by which the date is called, in the two weeks after a known one."""
    mention = phrase.mention
    called = weekday_beside(phrase.clause, mention.start - phrase.at, mention.end - phrase.at)
    rules = " ".join(evidence.texts("told")).lower()
    if called is not None and called in weekdays_in(" ".join(_ON_WEEKDAY.findall(rules))):
        return any(0 < (a - b).days <= 14 for a in targets for b in dated)
    last = _LAST_DAY.search(rules)
    return last is not None and any(_is_last(day, of_work=last["of_work"] is not None) for day in targets)


_ON_WEEKDAY = expression(
    r"\b(?:on|by|until|till|before|every|each|following|next|bis|jeden|am|chaque|cada|el|le) (?:the )?"
    r"([^\W\d_]+)"
)
_LAST_DAY = expression(
    r"\blast (?:(?P<of_work>working|business|bank) |calendar )?day of (?:the|each|every) month"
)


def _is_last(day: date, *, of_work: bool) -> bool:
    """Whether it is the last day of its month, or the last ``of_work``."""
    rest = range(day.day + 1, monthrange(day.year, day.month)[1] + 1)
    if not of_work:
        return not rest
    return day.weekday() < 5 and all(day.replace(day=after).weekday() > 4 for after in rest)


_AS_OF = expression(
    r"\b(?:from|since|as of|after|starting(?: on)?|ab(?: dem)?|seit|desde(?: el)?|a partir d[eu]l?|"
    r"à partir du|dès le|dal|vanaf|od)[\s*_]+(?:\w+,? )?\Z",
    re.IGNORECASE,
)


def is_other_weekday(phrase: Phrase, evidence: Evidence) -> bool:
    """Whether the date is called by a day of the week that it is not, in any year that was spoken of, and
    that no source calls it."""
    mention = phrase.mention
    called = weekday_beside(phrase.clause, mention.start - phrase.at, mention.end - phrase.at)
    if called is None or any(is_called_so(text, called, mention.days) for text in evidence.lower):
        return False
    years = {day[0] for day in (*evidence.days, *evidence.prose_days) if day[0]}
    days = {(day[0] or year, *day[1:]) for day in mention.days for year in ({day[0]} if day[0] else years)}
    found = {when.weekday() for day in days if (when := _date(day))}
    return bool(found) and called not in found


_WORKDAY = expression(r"(?i)\b(?:back|return\w*|next (?:working |business )?day|monday|montag|lundi|lunes)\b")


def _ordinals(evidence: Evidence) -> set[float]:
    """The days of a month that the policy or the knowledge speaks of: "paid on the 25th"."""
    return {float(day) for text in evidence.texts("told") for day in _ORDINAL.findall(text)}


_ORDINAL = expression(r"\b([0-9]{1,2})(?:st|nd|rd|th)\b")


def _periods(evidence: Evidence) -> set[int]:
    """The periods that texts and the fields of results speak of, in days."""
    told = {
        int(mention.numbers[0] * _DAYS[mention.unit[:3]])
        for mention in _said(evidence)
        if mention.numbers and mention.unit[:3] in _DAYS and not _is_of_work(mention)
    }
    told |= {
        int(mention.numbers[0]) * 7 // 5 + more
        for mention in _said(evidence)
        if mention.numbers and mention.unit[:3] in _WORKDAYS and mention.numbers[0] <= 60
        for more in range(-2, 4)  # from a Saturday or Sunday on, and with a holiday
    }
    told |= {
        int(mention.numbers[0] // 24)
        for mention in _said(evidence)
        if mention.numbers and mention.numbers[0] >= 24 and MINUTES.get(mention.unit[:3]) == 60
    }
    days = {int(number) for number in evidence.fields(_DAY_FIELD) if number <= 400}
    told |= {
        int(leaf.mention.numbers[0] * _DAYS[leaf.mention.unit[:3]])
        for leaf in evidence.leaves.all()
        if leaf.mention.numbers and leaf.mention.unit[:3] in _DAYS and not _is_of_work(leaf.mention)
    }
    for text in evidence.texts("told", "user"):
        told |= {*day_words(text), *map(int, _FREE_DAYS.findall(text))}
    found = told | days | {int(7 * number) for number in evidence.fields(_WEEK_FIELD) if number <= 60}
    few = [period for period in found if period]
    return found | ({a + b for a in few for b in few} if len(few) <= 4 else set())


_FREE_DAYS = expression(r"\b([0-9]{1,2}) (?:free|full|clear|whole) (?:days|nights)\b")


def _is_of_work(mention: Mention) -> bool:
    """Whether it is so many working days that a weekend lies among them."""
    return mention.unit[:3] in _WORKDAYS and mention.numbers[0] > 4


_DAY_FIELD = expression(
    r"(?i)(?:\A|[_ -])(?:days?|nights?|duration|tage?|nächte|jours?|nuits?|d[ií]as?|noches|"
    r"noites)(?:\Z|[_ -])"
    r"|(?-i:[a-z]Days?)|[天日泊]"
)
_WEEK_FIELD = expression(
    r"(?i)(?:\A|[_ -])(?:weeks?|wochen?|semaines?|semanas?)(?:\Z|[_ -])|(?-i:[a-z]Weeks?)|週|周"
)
_MONTH_FIELD = expression(
    r"(?i)(?:\A|[_ -])(?:months?|monate?|mois|mes(?:es)?|mês)(?:\Z|[_ -])|(?-i:[a-z]Months?)|月"
)
_YEAR_FIELD = expression(r"(?i)(?:\A|[_ -])(?:years?|jahre?|ans|años?|anos?)(?:\Z|[_ -])|(?-i:[a-z]Years?)")


def _month_periods(evidence: Evidence) -> set[int]:
    told = {
        int(mention.numbers[0] * _MONTHS[mention.unit[:3]])
        for mention in _said(evidence)
        if mention.numbers and mention.unit[:3] in _MONTHS and mention.numbers[0] <= 100
    }
    years = {int(12 * number) for number in evidence.fields(_YEAR_FIELD) if number <= 100}
    return told | years | {int(number) for number in evidence.fields(_MONTH_FIELD) if number <= 600}


def _said(evidence: Evidence) -> Iterable[Mention]:
    for source in evidence.sources:
        if source.role in {"told", "user"} or (source.role == "result" and source.text[:1] not in _JSON):
            yield from _mentions(source.text[:_MOST_TEXT])


_JSON = frozenset("{[")
_MOST_TEXT = 4_000


@lru_cache(maxsize=512)
def _mentions(text: str) -> tuple[Mention, ...]:
    return tuple(mentions_in(text))


def _later(when: date, months: int) -> date | None:
    year, month = divmod(when.year * 12 + when.month - 1 + months, 12)
    if year > 9999:
        return None
    return date(year, month + 1, min(when.day, monthrange(year, month + 1)[1]))


def _date(day: Day, like: Collection[date] = ()) -> date | None:
    year = day[0] or max((other.year for other in like), default=2024)
    try:
        return date(year, day[1], day[2])
    except ValueError:
        return None


# ── words that only a calendar or a clock resolves ───────────────────────────────────────────────


def relative_days(evidence: Evidence) -> bool:
    """Whether somebody spoke of days by words (tomorrow, next Friday), which only a calendar resolves."""
    return any(source.role == "user" and _RELATIVE.search(source.text) for source in evidence.sources)
