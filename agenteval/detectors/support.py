"""Whether a value of an answer follows from what the agent had been told."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from statistics import fmean

from agenteval.detectors.amounts import FEW, SMALL, Beside, amount_follows
from agenteval.detectors.arithmetic import (
    added,
    combined,
    converted,
    formulas,
    mean_of,
    near,
    one_step,
    operands_of,
    percentage_of,
    product_of,
    rarely_reached,
    rescaled,
    scaled,
    share_of,
)
from agenteval.detectors.clocks import does_time_follow
from agenteval.detectors.dates import is_day_told
from agenteval.detectors.elapsed import does_day_follow, is_length
from agenteval.detectors.evidence import Evidence
from agenteval.detectors.mentioned import mentions_of
from agenteval.detectors.mentions import Mention
from agenteval.detectors.number_words import number_words
from agenteval.detectors.periods import is_of_other_period
from agenteval.detectors.phrases import Phrase
from agenteval.detectors.told_codes import identifier_told, is_after_letters, is_block, is_masked
from agenteval.detectors.units import is_body_mass_index, is_in_other_unit, is_wind_force
from agenteval.expressions import expression


def told(mention: Mention, evidence: Evidence) -> bool:
    """Whether the value, however it is written, is in the evidence as it is."""
    if mention.kind == "identifier":
        return identifier_told(mention.text, evidence)
    if mention.days and is_day_told(mention.days, evidence.days):
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


def follows(phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    """Whether the value comes from the evidence by rounding, counting, another unit, arithmetic or the
    calendar. ``beside``: the numbers that the agent has said before, in this answer first."""
    mention = phrase.mention
    if mention.kind == "identifier":
        return is_masked(phrase, evidence)
    if mention.kind == "date":
        return does_day_follow(phrase, evidence, beside.days)
    if mention.kind == "time":
        return does_time_follow(phrase, evidence)
    return any(_number_follows(number, phrase, evidence, beside) for number in mention.numbers)


def is_derived(phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    """Whether the clause itself says how a number comes to be: by a formula, a percentage, so many times what
    was told, or as what one of a field is more than another; or it is to the cent what a field adds up to.
    Such a one is no slip of another."""
    mention = phrase.mention
    if not mention.numbers or mention.kind == "time":
        return False
    number, decimals = mention.numbers[0], mention.decimals
    if any(near(number, value, decimals) for value in formulas(phrase.clause)):
        return True
    if phrase.compared and any(
        near(number, abs(a - b), decimals)
        for values in evidence.leaves.series()
        if len(values) <= FEW
        for a in values
        for b in values
        if a != b
    ):
        return True
    return mention.kind == "money" and _is_derived_amount(number, phrase, evidence, beside)


def _is_derived_amount(number: float, phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    decimals = phrase.mention.decimals
    beside_it = [other for other in mentions_of(phrase.clause) if other.numbers]
    each = [other.numbers[0] for other in beside_it if other.kind == "money"]
    if any(near(number, one * by, decimals) for one in each for by in number_words(phrase.clause) if by > 1):
        return True  # "$9 or $27 for three"
    if any(round(number / float(by), 2) in evidence.numbers for by in _TIMES_OF.findall(phrase.left)):
        return True  # "2 × taco bar: $196"
    heads = [
        other.numbers[0] for other in mentions_of(phrase.head) if other.kind == "number" and other.numbers
    ]
    more = (0.0, *evidence.amounts_told)
    if any(near(number, one * by + fee, decimals) for one in each for by in heads for fee in more):
        return True  # below "6 days and the fee"
    if decimals < 2:
        return False
    told = evidence.numbers.intersection(phrase.percents)
    if told and share_of(number, beside.here[:4], told, decimals):
        return True
    return any(len(values) > 2 and near(number, sum(values), 2) for values in evidence.leaves.series())


_TIMES_OF = expression(r"\b([2-9]|[1-9][0-9])\s?[×x](?=\s)")


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
        if mention.unit in _ORDINALS and number <= 31 and _is_day_of_month(int(number), evidence):
            return True
        if is_after_letters(phrase, evidence):
            return True
        if (number >= 100 or _OF_DIGITS.search(phrase.clause)) and evidence.ends_in(mention.text):
            return True
        if phrase.left.endswith(_CUT_OFF) and is_masked(phrase, evidence):
            return True
        if is_block(phrase, evidence):
            return True
    if _is_product_of_clause(number, phrase):
        return True
    if any(near(number, value, decimals) for value in formulas(phrase.clause)):
        return True
    if any(converted(number, unit, known, decimals) for unit in _units(number, phrase)):
        return True
    if mention.kind == "number" and _is_converted(number, phrase, known):
        return True
    if _calculated(number, phrase, evidence, beside):
        return True
    if _adds_up(number, phrase, evidence) or is_of_other_period(number, phrase, evidence):
        return True
    if number in _in_words(evidence):
        return True
    if mention.kind == "percent":
        return False
    if any(near(number, total, min(decimals, 2)) for total in beside.totals()):
        return True
    beside_it = beside.here if mention.kind == "money" else beside.counts
    ones = operands_of([beside_it, beside.counts, evidence.given_numbers, beside.before], 24)
    return rarely_reached(number, ones, evidence.numbers | {*beside_it}, decimals)


_ORDINALS = frozenset(("st", "nd", "rd", "th"))


def _is_day_of_month(number: int, evidence: Evidence) -> bool:
    """Whether a date that was told is on that day of its month: "the end of January (the 31st)"."""
    return any(day == number for days in (evidence.days, evidence.prose_days) for _, _, day in days)


def _adds_up(number: float, phrase: Phrase, evidence: Evidence) -> bool:
    """Whether a list of numbers in a text comes to it, or all the numbers of one small object; where the
    words speak of such, also all numbers of a message."""
    mention = phrase.mention
    if mention.kind == "percent" or mention.decimals < 0 or number != mention.numbers[0]:
        return False
    figures = [figure for found in evidence.figures for figure in found.sums]
    figures += map(sum, evidence.leaves.wholes())
    if phrase.calculated:
        figures += [figure for found in evidence.figures for figure in found.loose]
    if phrase.averaged or _SPREAD.search(phrase.clause):
        figures += [figure for found in evidence.figures for figure in found.means]
    return any(near(number, figure, mention.decimals) for figure in figures)


_SPREAD = expression(
    r"(?i)\b(?:deviation|variance|range|spread|streuung|abweichung|écart|desviaci[óo]n|desvio)\b|[σ±]"
)


_CUT_OFF = ("…", "...", "•", "*", "xx", "XX")
"""Behind which the end of a longer number stands."""
_OF_DIGITS = expression(r"(?i)digits?\b|\bend(?:s|ing)\b|ziffern?\b|chiffres?\b|d[íi]gitos?\b|cifras?\b")


def _units(number: float, phrase: Phrase) -> Iterator[str]:
    """Its unit, or else that of the value which it says more exactly: 55 °F (55.4)."""
    mention = phrase.mention
    yield mention.unit
    if mention.decimals and mention.kind == "number":
        rounded = (other for other in mentions_of(phrase.clause) if other.numbers and other.unit)
        yield from (other.unit for other in rounded if other.numbers[0] != number and _rounds(number, other))


def _is_converted(number: float, phrase: Phrase, known: Collection[float]) -> bool:
    mention = phrase.mention
    decimals = mention.decimals if number == mention.numbers[0] else 3  # 2,662 as 2.662
    if is_in_other_unit(number, mention.unit, phrase.right, known, decimals):
        return True
    return is_wind_force(number, phrase.clause, known) or is_body_mass_index(
        number, phrase.clause, known, mention.decimals
    )


def _rounds(number: float, other: Mention) -> bool:
    return other.kind == "number" and near(other.numbers[0], number, other.decimals)


def _in_words(evidence: Evidence) -> set[float]:
    """The numbers that sources other than results write in words."""
    found = {number for text in evidence.texts("told", "user") for number in number_words(text)}
    tens = {number for number in found if 20 <= number <= 90}
    ones = {number for number in found if number < 10}
    return (
        found | {ten + one for ten in tens for one in ones} | {a * b for a in found for b in (100.0, 1000.0)}
    )


def _calculated(number: float, phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    """By arithmetic: as far as the words around speak of it, since each further operand makes reaching
    the number by chance more likely."""
    mention = phrase.mention
    if mention.kind == "money":
        return amount_follows(number, phrase, evidence, beside) or _is_multiple(number, phrase, evidence)
    operands = [beside.counts, evidence.called(phrase.label)]
    if mention.kind == "percent":
        if _is_difference_of_shares(number, phrase, evidence):
            return True
        few = [[*group, *beside.counts[:3]] for group in evidence.few(5 if mention.decimals < 1 else 10)]
        groups = [operands_of([beside.here], 6), operands_of(operands, 6), *few]
        if any(percentage_of(number, group, mention.decimals) for group in groups):
            return True
        if percentage_of(number, phrase.percents, mention.decimals):
            return True
        parts, wholes = [*beside.counts[:2], *beside.here[:1]], [*beside.counts, *beside.here]
        return any(
            near(number, 100 * part / whole, mention.decimals) for part in parts for whole in wholes if whole
        )
    if is_length(number, phrase, evidence):
        return True
    if number >= 100 and not number % 1 and any(added(number, group) for group in evidence.leaves.groups()):
        return True
    if _follows_from_fields(number, phrase, evidence):
        return True
    if number >= 100 and one_step(number, operands_of([beside.counts], 6), ()):
        return True
    if (rates := evidence.rates()) and scaled(
        number, operands_of([*operands, evidence.asked, *evidence.few(12)], 24), rates, mention.decimals
    ):
        return True
    if not evidence.has_field(phrase.label) and any(one_step(number, few, ()) for few in evidence.few(8)):
        return True
    if phrase.compared and one_step(
        number, operands_of([*operands, evidence.asked, *evidence.few(8)], 16), ()
    ):
        return True
    if _is_product(number, phrase, evidence, beside):
        return True
    if share_of(number, _wholes(operands, evidence), phrase.percents, mention.decimals):
        return True
    shares = evidence.percents() if mention.decimals > 1 else ()
    if any(
        near(number, 100 * one / share, mention.decimals)
        for one in beside.counts[:6]
        for share in shares
        if share
    ):
        return True  # what it takes for that share of it
    return phrase.calculated and (
        one_step(number, operands_of(operands, 8), SMALL)
        or one_step(number, operands_of([beside.earlier, evidence.asked], 10), ())
        or _is_multiple(number, phrase, evidence)
    )


def _is_difference_of_shares(number: float, phrase: Phrase, evidence: Evidence) -> bool:
    """Whether so many points lie between two percentages or rates that were told."""
    if "point" not in phrase.right[:24] and "punkt" not in phrase.right[:16]:
        return False
    told = operands_of([phrase.percents, evidence.fields(_SHARE_FIELD), sorted(evidence.percents())], 12)
    return any(near(number, a - b, phrase.mention.decimals) for a in told for b in told)


_SHARE_FIELD = expression(r"(?i)rate|percent|pct|aer|apr\b|satz")


def _is_multiple(number: float, phrase: Phrase, evidence: Evidence) -> bool:
    """Whether it is as many times a number of a small result as the user asked for, also with or without a
    percentage that was told: three nights at 80 and 10 % tax."""
    asked = (number for text in evidence.texts("user") for number in number_words(text))
    counts = {count for count in (*evidence.asked, *asked) if 1 < count <= 60 and not count % 1}
    products = {round(one * count, 2) for group in evidence.few(8, 1) for one in group for count in counts}
    if not phrase.calculated and (phrase.mention.kind != "money" or len(products) > FEW):
        return False
    decimals = min(phrase.mention.decimals, 2)
    if 100.0 in evidence.numbers and any(near(number, one / 100, decimals) for one in products):
        return True  # of what is given for 100 g
    return number in products or (
        len(products) <= FEW and share_of(number, products, evidence.percents(), decimals)
    )


def _is_product(number: float, phrase: Phrase, evidence: Evidence, beside: Beside) -> bool:
    """Whether it is a product or a quotient of two numbers of the answer, the user, or small results, or
    grew or shrank as the other numbers of the answer did."""
    decimals, few = phrase.mention.decimals, evidence.few(12)
    others = [count for count in beside.counts if count not in evidence.numbers]
    if others and any(rescaled(number, group, others, decimals) for group in few):
        return True
    if not phrase.calculated:
        return False
    known = operands_of([beside.counts[:5], beside.here[:3], sorted(evidence.asked), *few], 20)
    if len(known) < 20 and product_of(number, known, min(decimals, 2)):
        return True
    return any(combined(number, group, digits=3 if number % 1 else 4) for group in few)


def _is_product_of_clause(number: float, phrase: Phrase) -> bool:
    """Whether the sentence has the factors: 24 boxes of 18.5 kg are 444 kg; also in cents."""
    others = [other.numbers[0] for other in mentions_of(phrase.clause) if other.numbers and other.unit != "%"]
    others += [one for one in number_words(phrase.clause) if one > 1]
    known = operands_of([[other for other in others if other != number]], FEW)
    decimals = min(phrase.mention.decimals, 2)
    digits = 3
    if _WEIGHED.search(phrase.clause) and any(
        near(number, 1000 * a / b, decimals) for a in known for b in known if b
    ):
        return True  # of 250 g, the price of a kilo
    if _TIMES.search(phrase.clause):
        known += [percent / 100 for percent in phrase.percents]
        known += {a * b for a in known[:5] for b in known[:5]}
        digits = 2
    return product_of(number, known, decimals, digits=digits) or product_of(100 * number, known, 0)


_WEIGHED = expression(r"(?i)[0-9]\s?(?:g|ml)\b")
_TIMES = expression(r"[×*·]|[0-9]\s?x\s?[0-9]")


def _wholes(operands: Iterable[Iterable[float]], evidence: Evidence) -> list[float]:
    return operands_of([*operands, sorted(evidence.asked), *evidence.few(8)], 16)


def _follows_from_fields(number: float, phrase: Phrase, evidence: Evidence) -> bool:
    """Whether it is the sum or the mean of a field of the results, or the sum or difference of two
    of its values, where the words speak of such."""
    decimals = phrase.mention.decimals
    if phrase.averaged and any(mean_of(number, values, decimals) for values in evidence.leaves.groups()):
        return True
    for values in evidence.leaves.series():
        if len(values) > 2 and near(number, sum(values), decimals):
            return True
        if not (phrase.calculated or phrase.compared or phrase.averaged):
            continue
        if phrase.averaged and mean_of(number, values, decimals):
            return True
        if phrase.calculated and near(number, sum(values), decimals):
            return True
        if len(values) <= FEW and one_step(number, values, ()):
            return True
        if converted(number, phrase.mention.unit, {sum(values), fmean(values)}, decimals):
            return True
    return False
