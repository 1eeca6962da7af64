"""Times of day that follow from others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from agenteval.detectors.elapsed import MINUTES
from agenteval.detectors.entries import Leaf
from agenteval.detectors.evidence import Evidence
from agenteval.detectors.mentions import mentions_in
from agenteval.detectors.phrases import Phrase
from agenteval.detectors.values import stands_in
from agenteval.expressions import expression

_ZONE = expression(
    r"\b(?:[A-Z]{1,4}[SD]?T|UTC|GMT|Z|local|Ortszeit|[Hh]ora de|[Hh]eure de|Eastern|Central|Mountain|"
    r"Pacific|"
    r"European|your time|[A-Z][a-z]+er Zeit|hora local|heure locale)\b|(?:\A\s|"
    r"[a-z0-9.] )[A-Z][a-z]+ time\b|"
    r"(?:[当當現现]地|北京|日本|東京|东京)(?:时间|時間)"
)


def does_time_follow(phrase: Phrase, evidence: Evidence) -> bool:
    """Whether a time is a known one in another zone, or earlier or later by a known length."""
    clocks, known = phrase.mention.clocks, evidence.clocks
    offsets = evidence.offsets()
    if len(offsets) > 1 or (offsets <= _UTC and offsets and not _SAYS_UTC.match(phrase.right)):
        # Another zone is whole hours away; of two that are told, quarters.
        step = 60 if len(offsets) == 1 else 15
        if any((clock - other) % step == 0 for clock in clocks for other in known):
            return True
    if any(clock % 60 == 0 and _is_hour(clock // 60, evidence) for clock in clocks):
        return True
    if other_zone(phrase, evidence):
        return any((clock + 30 * shift) % 1440 in known for clock in clocks for shift in range(-28, 29))
    steps = [step for span in _spans(evidence) for step in (span, -span)]
    if any((clock + step) % 1440 in known for clock in clocks for step in steps):
        return True
    return phrase.mention.vague and any((clock + 720) % 1440 in known for clock in clocks)


def _is_hour(hour: int, evidence: Evidence) -> bool:
    """Whether a result has something by the hour, and this one is one of its hours or the end of one."""
    keys = evidence.leaves.keys()
    hours = {int(key) for key in keys if len(key) <= 2 and key.isdecimal() and int(key) <= 24}
    return len(hours) > 2 and not hours.isdisjoint({hour, hour - 1})


_UTC = frozenset({"z", "+00:00", "+0000", "-00:00"})
"""Whose times are told in the zone of who reads them; one with an offset is local already."""
_SAYS_UTC = expression(r"\W{0,4}(?:UTC|GMT|Z)\b")
_SPAN_WORDS = {"half": 30, "hour": 60, "quarter": 15, "stunde": 60, "heure": 60, "hora": 60, "半": 30}


def _spans(evidence: Evidence) -> Iterator[int]:
    """The lengths of time that the user and the policy spoke of and that results have fields for, in
    minutes."""
    for source in evidence.sources:
        if source.role in {"user", "told"}:
            yield from _lengths_in(source.text)
        if source.role == "user":
            low = source.text.lower()
            yield from (minutes for word, minutes in _SPAN_WORDS.items() if word in low)
    yield from (int(number) for number in evidence.fields(_MINUTE_FIELD) if number < 1440)
    yield from (int(60 * number) for number in evidence.fields(_HOUR_FIELD) if number <= 24)


_MINUTE_FIELD = expression(
    r"(?i)(?:\A|[_ -])(?:mins?|minut\w*|mn|duration|length|delay|dauer|dur\w+)(?:\Z|[_ -])|分"
    r"|(?-i:[a-z]Min\w*\Z)"
)
_HOUR_FIELD = expression(
    r"(?i)(?:\A|[_ -])(?:h|hrs?|hours?|duration|stunden?|heures?|horas?)(?:\Z|[_ -])|時間|小时"
)


@lru_cache(maxsize=512)
def _lengths_in(text: str) -> tuple[int, ...]:
    return tuple(
        int(mention.numbers[0] * MINUTES[mention.unit[:3]])
        for mention in mentions_in(text)
        if mention.numbers and mention.unit[:3] in MINUTES and mention.unit != "m"
    )


def other_zone(phrase: Phrase, evidence: Evidence) -> bool:
    """Whether a time is said in a time zone that no result, policy or knowledge spoke of, or the clause
    speaks of two."""
    zone = _ZONE.search(phrase.right[:40])
    if zone is None:
        return False
    if len(set(_ZONE.findall(phrase.clause))) > 1:
        return True
    word = zone[0].strip(" .").lower()
    others = (source.text.lower() for source in evidence.sources if source.role != "user")
    return not any(stands_in(word, text) for text in others)


def told_as_local(phrase: Phrase, evidence: Evidence) -> Leaf | None:
    """The only timestamp with the time, if it is in UTC and the clause does not say so, though the
    instructions give times in a zone of their own."""
    mention = phrase.mention
    if _UTC_WORD.search(phrase.clause) or phrase.asked or evidence.given(mention):
        return None
    if not any(_ZONE_OF_PLACE.search(text) for text in evidence.texts("told")):
        return None
    clocks = {
        clock + half for clock in mention.clocks for half in ((0, 720, -720) if mention.vague else (0,))
    }
    minute = mention.clocks[0] % 30  # zones are half hours apart
    alike = [
        leaf
        for leaf in evidence.leaves.comparable("time")
        if any(clock % 30 == minute for clock in leaf.mention.clocks)
    ]
    if not all(_IN_UTC.search(leaf.mention.text) and clocks & {*leaf.mention.clocks} for leaf in alike):
        return None  # it may come of another one
    return alike[-1] if alike else None


_UTC_WORD = expression(r"\b(?:UTC|GMT|Z|Zulu)\b")
_IN_UTC = expression(r"[0-9](?:[zZ]|\+00:?00)\Z")
_ZONE_OF_PLACE = expression(
    r"\b(?:Europe/(?!London|Lisbon|Dublin)|America/|Asia/|Australia/|Africa/|Pacific/)[A-Z]|"
    r"\b[ECMPA][SD]T\b|\bUTC ?[+-] ?[1-9]|\b(?:BST|CES?T|EES?T|IST|SGT|JST|KST|HKT|AE[SD]T|NZ[SD]T|BRT|ART)\b"
)
_VAGUE_TIMES = expression(
    r"(?i)\b(?:hours?|minutes?|later|earlier|noon|midnight|morning|afternoon|evening|tonight|now|half|"
    r"quarter)\b"
)


def relative_times(evidence: Evidence) -> bool:
    """Whether the user spoke of times by words or lengths (in two hours, at noon)."""
    return any(source.role == "user" and _VAGUE_TIMES.search(source.text) for source in evidence.sources)
