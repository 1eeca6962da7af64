"""Whether a number is one or two steps of arithmetic away from numbers that were told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from statistics import fmean, median

from agenteval.expressions import expression

_BY_UNIT = {
    "time": (60.0, 3600.0, 86400.0, 604800.0, 24.0, 1440.0, 7.0, 12.0, 30.0, 365.0, 52.0),
    "volume": (1000.0, 100.0, 10.0, 3.78541, 29.5735, 236.588, 4.92892, 14.7868, 2.0),
    "size": (8.0, 1000.0, 1024.0, 1e6, 1048576.0, 1e9, 1073741824.0),
    "length": (1.609344, 1000.0, 100.0, 10.0, 0.3048, 2.54, 12.0, 3.0),
    "weight": (2.0, 2.20462, 1000.0, 28.3495, 16.0),
    "energy": (1000.0,),
    "money": (100.0,),
}
_UNITS = {
    unit: family
    for family, units in {
        "time": "h hr hrs hour hours m min mins minute minutes s sec second seconds day days week weeks "
        "month months year years ms",
        "size": "b kb mb gb tb bytes megabytes gigabytes o ko mo go to kib mib gib tib",
        "length": "km mile miles mi m meter meters metres cm mm ft feet foot inch inches kmh mph",
        "weight": "kg g lb lbs pound pounds oz ounces tons grams gram kilo kilos gramm gramos gramas 公 斤",
        "energy": "w kw mw wh kwh mwh",
        "volume": "l ml cl dl liter liters litre litres litros gallon gallons cup cups tbsp tsp",
    }.items()
    for unit in units.split()
}


def near(one: float, other: float, decimals: int) -> bool:
    """Whether ``other``, rounded or cut to ``decimals`` places (negative: thousands and so on), is
    ``one``."""
    if one == other:
        return True
    place = 10.0**-decimals
    return abs(one - other) <= 0.5 * place * 1.0001 or 0 <= other - one < place * 0.9999


_MONEY = frozenset({"$", "€", "£", "¥", "₹", "cent", "cents", "ct", "pence", "centimes", "centavos"})


def converted(number: float, unit: str, known: Collection[float], decimals: int) -> bool:
    """Whether ``number`` of ``unit`` is a known number in another unit of the same kind."""
    family = _UNITS.get(unit, "money" if unit in _MONEY or decimals == 2 else "")
    if any(
        round(number * by, 4) in known or round(number / by, 4) in known for by in _BY_UNIT.get(family, ())
    ):
        return True
    if family in {"size", "length", "weight", "volume", "energy"}:
        bys = _BY_UNIT[family]
        return any(near(number, other * by, decimals) or near(number, other / by, decimals)
                   for other in known for by in bys)  # fmt: skip
    if unit in {"degrees", "degree", "°", "c", "f", "°c", "°f", "celsius", "fahrenheit"}:
        return any(
            near(number, other * 1.8 + 32, 0) or near(number, (other - 32) / 1.8, 0) for other in known
        )
    return False


def operands_of(groups: Iterable[Iterable[float]], most: int) -> list[float]:
    """Distinct numbers, those of the first groups first, at most ``most``: with many operands two steps
    reach any number, and prove nothing."""
    seen: dict[float, None] = {}
    for group in groups:
        for number in group:
            if number and abs(number) < 1e12:
                seen.setdefault(number)
            if len(seen) >= most:
                return list(seen)
    return list(seen)


def one_step(target: float, operands: Collection[float], counts: Collection[float]) -> bool:
    """Whether ``target`` is the sum or difference of two operands, or one of them times or by one of
    ``counts``; to the cent."""
    known = {round(number, 2) for number in operands}
    goal = round(target, 2)
    if any(round(goal - a, 2) in known or round(goal + a, 2) in known for a in known):
        return True
    return any(
        abs(a * count - goal) < 0.006 or abs(a / count - goal) < 0.006 for a in known for count in counts
    )


def rarely_reached(target: float, ones: Collection[float], others: Collection[float], decimals: int) -> bool:
    """Whether ``target`` is a sum or difference, or a product or quotient, of a value of each, and that says
    something: of the values of its precision that lie within a half of it, such results are at most one in
    twenty."""
    pairs = [(one, other) for one in ones for other in others if one and other]
    added = (value for one, other in pairs for value in (abs(one - other), one + other))
    scaled = (value for one, other in pairs for value in (one * other, other / one, one / other))
    return any(_is_rare(target, values, decimals) for values in (added, scaled))


def rarely_shared(
    target: float, wholes: Collection[float], percents: Collection[float], decimals: int
) -> bool:
    """Whether ``target`` is a known percentage of a whole, or the whole less or more by it, and that says
    something, as in ``rarely_reached``."""
    parts = [percent / 100 for percent in percents if percent > 0]
    factors = [by for part in parts for by in (part, 1 - part, 1 + part) if by > 0]
    return _is_rare(target, (whole * by for whole in wholes for by in factors), decimals)


def _is_rare(target: float, values: Iterable[float], decimals: int) -> bool:
    place = 10.0 ** -min(decimals, 4) if target % 1 else 1.0
    is_reached, places = False, set[int]()
    for value in values:
        if abs(value - target) <= target / 2:
            value = round(value, 4)
            places.add(round(value / place))
            if len(places) * place > 0.05 * target:
                return False
            is_reached = is_reached or near(target, value, decimals)
    return is_reached


_TERM = r"[$€£]?\s?[0-9][0-9,]{0,24}(?:\.[0-9]+)?\s?(?:%|[$€£]|(?!x\s?[0-9])[^\W\d_]{1,8}\b)?"
_FORMULA = expression(rf"{_TERM}(?:\s?[-+×x*·÷/]\s?{_TERM})+")
_PARTS = expression(r"([0-9][0-9,]*(?:\.[0-9]+)?)\s?(%?)|([-+×*·÷/]|x(?=\s?[$€£]?\s?[0-9]))|[^\W\d_]+")


@lru_cache(maxsize=512)
def formulas(text: str) -> tuple[float, ...]:
    """What the formulas that are written out in ``text`` come to (24 × 18 × 16 / 139): products first."""
    return tuple(value for found in _FORMULA.finditer(text) if (value := _value(found[0])) is not None)


def _value(formula: str) -> float | None:
    terms, by = [0.0], ""
    parts = _PARTS.findall(formula)
    of_percents = all(percent for digits, percent, _ in parts if digits)  # 4.25 % + 8 % are 12.25 %
    for digits, percent, mark in parts:
        if mark:
            by = mark
            continue
        if not digits:
            continue  # a unit
        number = float(digits.replace(",", "")) / (100 if percent and not of_percents else 1)
        if by in {"", "+", "-"}:
            terms.append(-number if by == "-" else number)
        elif by in {"÷", "/"}:
            if not number:
                return None
            terms[-1] /= number
        else:
            terms[-1] *= number
    return abs(sum(terms))


def share_of(target: float, wholes: Collection[float], percents: Collection[float], decimals: int) -> bool:
    """Whether ``target`` is a known percentage of a whole, the whole less or more by it, or what the whole
    has of it inside (tax in a gross amount, and what is left without)."""
    return any(
        near(target, whole * factor, min(decimals, 2))
        for percent in percents
        for part in [percent / 100]
        if part > 0
        for factor in (part, 1 - part, 1 + part, part / (1 + part), 1 / (1 + part))
        for whole in wholes
    )


def scaled(target: float, operands: Collection[float], rates: Collection[float], decimals: int) -> bool:
    """Whether ``target`` is an operand times or by one of ``rates``."""
    places = min(decimals, 2)
    return any(
        near(target, operand * rate, places) or near(target, operand / rate, places)
        for rate in rates
        if rate > 0
        for operand in operands
    )


def mean_of(target: float, values: Collection[float], decimals: int) -> bool:
    """Whether ``target`` is the mean or the median of ``values``, rounded."""
    if len(values) < 2:
        return False
    return near(target, abs(fmean(values)), decimals) or near(target, median(values), decimals)


def product_of(target: float, operands: Collection[float], decimals: int, *, digits: int = 3) -> bool:
    """Whether ``target``, of so many ``digits`` at least, is the product or the quotient of two operands."""
    if _digits(target) < digits:
        return False
    return any(
        near(target, a * b, decimals) or (b and near(target, a / b, decimals))
        for a in operands
        for b in operands
        if a not in {0, 1} and b not in {0, 1}
    )


def combined(target: float, operands: Sequence[float], *, digits: int = 4) -> bool:
    """Whether ``target``, of so many ``digits`` at least, is some of at most seven operands added and others
    taken away; to the cent."""
    if _digits(target) < digits:
        return False
    reached = {0}
    for cents in (round(100 * operand) for operand in operands[:7]):
        reached |= {one + sign * cents for one in reached for sign in (1, -1)}
    return round(100 * target) in reached


def added(target: float, numbers: Sequence[float]) -> bool:
    """Whether ``target`` is the sum of two or more of at most six ``numbers``; to the cent."""
    reached = {(0, 0)}
    for cents in (round(100 * number) for number in numbers[:6]):
        reached |= {(count + 1, one + cents) for count, one in reached}
    return any(count > 1 and one == round(100 * target) for count, one in reached)


def rescaled(target: float, known: Collection[float], others: Collection[float], decimals: int) -> bool:
    """Whether ``target`` is a known number times the factor by which other numbers (at least two, or one and
    a common factor) differ from known ones."""
    seen: Counter[float] = Counter()
    for other in others:
        seen.update({round(other / one, 6) for one in known if one})
    factors = [by for by, times in seen.items() if by != 1 and (times > 1 or by in _COMMON_FACTORS)]
    return any(near(target, one * by, decimals) for by in factors for one in known)


_COMMON_FACTORS = frozenset({0.25, 0.333333, 0.5, 0.666667, 0.75, 1.25, 1.333333, 1.5, 2.0, 2.5, 3.0, 4.0})


def _digits(number: float) -> int:
    return len(f"{number:.10g}".replace(".", "").strip("0"))


def percentage_of(target: float, operands: Collection[float], decimals: int) -> bool:
    """Whether ``target`` percent is the ratio of two operands, or their difference over one of them."""
    return any(
        near(target, ratio, decimals)
        for a in operands
        for b in operands
        if b and a != b
        for ratio in (100 * a / b, 100 * abs(a - b) / b)
    )


def two_steps(target: float, operands: Collection[float], counts: Collection[float]) -> bool:
    """Whether ``target`` is a sum of three (some of them taken away), a count times a sum or difference
    of two, or an operand plus or minus a count times another; to the cent."""
    known = {round(number, 2) for number in operands}
    goal = round(target, 2)
    products = {round(number * count, 2) for number in known for count in counts} | known
    if any(round(goal - a, 2) in products or round(goal + a, 2) in products for a in known):
        return True
    sums = {round(a + b, 2) for a in known for b in known if a <= b}
    if any(
        round(goal - a, 2) in sums or round(goal + a, 2) in sums or round(a - goal, 2) in sums for a in known
    ):
        return True
    shares = [share for count in counts if abs((share := round(goal / count, 2)) * count - goal) < 0.005]
    return any(share in sums or any(round(a - share, 2) in known for a in known) for share in shares)


def digits_changed(number: float, told: float, *, figures: int) -> tuple[str, str, str]:
    """How the digits of one number became those of another of as many: two of them ``swapped``, one ``digit``
    changed, or neither (empty); and both numbers as their digits. Of each, so many significant ``figures``
    count."""
    places = max(len(f"{one:.{figures}g}".partition(".")[2]) for one in (number, told))
    text, other = (f"{one:.{places}f}".replace(".", "") for one in (number, told))
    if len(text) != len(other):
        return "", text, other
    differing = sum(one != two for one, two in zip(text, other, strict=True))
    if differing == 2 and sorted(text) == sorted(other):
        return "swapped", text, other
    return "digit" if differing == 1 else "", text, other
