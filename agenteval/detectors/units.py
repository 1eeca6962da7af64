"""Measures that are told in another unit than a source gave them in: 6.2 m/s are 22 km/h."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from agenteval.detectors.arithmetic import near
from agenteval.expressions import expression

_SIZES = {
    # speed in m/s
    "m/s": 1.0, "mps": 1.0, "km/h": 1 / 3.6, "kmh": 1 / 3.6, "kph": 1 / 3.6, "mph": 0.44704, "mi/h": 0.44704,
    "kn": 0.514444, "kt": 0.514444, "kts": 0.514444, "knot": 0.514444, "knots": 0.514444,
    "knoten": 0.514444, "ft/s": 0.3048,
    # time in seconds
    "ns": 1e-9, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "ms": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "sekunden": 1.0,
    # weight in grams
    "mg": 1e-3, "g": 1.0, "kg": 1e3, "lb": 453.592, "lbs": 453.592, "pounds": 453.592, "t": 1e6, "ton": 1e6,
    "tons": 1e6, "tonne": 1e6, "tonnes": 1e6, "tonnen": 1e6, "tonelada": 1e6, "toneladas": 1e6,
    # data by time in bits a second
    "bit": 1.0, "bps": 1.0, "kbit": 1e3, "kbps": 1e3, "mbit": 1e6, "mbps": 1e6, "gbit": 1e9, "gbps": 1e9,
    # power in watts
    "w": 1.0, "kw": 1e3, "mw": 1e6, "gw": 1e9, "hp": 745.7, "ps": 735.499,
}  # fmt: skip
"""How much of the first unit of its kind each is."""
_KINDS = (
    "m/s mps km/h kmh kph mph mi/h kn kt kts knot knots knoten ft/s",
    "ns µs μs us ms millisecond milliseconds s sec secs second seconds sekunden",
    "mg g kg lb lbs pounds t ton tons tonne tonnes tonnen tonelada toneladas",
    "bit bps kbit kbps mbit mbps gbit gbps",
    "w kw mw gw hp ps",
)
_FACTORS = {
    unit: tuple({round(_SIZES[unit] / _SIZES[other], 12) for other in kind.split()} - {1.0})
    for kind in _KINDS
    for unit in kind.split()
}
"""By what a number of the unit is to be multiplied to be one of each other unit of its kind."""
_SHORT_TONS = (2000.0, 2240.0)
_SPEEDS = {
    unit: expression(rf"(?i)\s?(?:{words})\b")
    for unit, words in {
        "km/h": "km ?/ ?hr?|kmh|kph|kilomet(?:er|re)s? (?:per|an) hour|kilometer pro stunde|stundenkilometer|"
        "kilomètres(?: par |-)heure|kil[óo]metros por hora",
        "m/s": "m ?/ ?s(?:ec)?|mps|met(?:er|re)s? (?:per|a) second|meter pro sekunde|mètres par seconde|"
        "metros por segundo",
        "mph": "mph|mi/h|miles (?:per|an) hour",
        "kn": "kn|kts?|knots?|knoten|n(?:œ|oe)uds?|nudos?|nós",
        "ft/s": "ft/s|fps|feet (?:per|a) second",
    }.items()
}
_TO = expression(r"\s?(?:-|—|to|bis|à|a|and|und)\s?[0-9][0-9.,]{0,8}")


def is_in_other_unit(number: float, unit: str, right: str, known: Collection[float], decimals: int) -> bool:
    """Whether a number before ``unit`` (and all that stands at its ``right``) is a known one in another unit
    of the same kind."""
    if speed := speed_at(right):
        unit = speed
    factors: Iterable[float] = _FACTORS.get(unit.removesuffix("/s") if "bit" in unit else unit, ())
    if not factors and (to := _TO.match(right)):  # 20 to 25 km/h
        factors = _FACTORS.get(speed_at(right[to.end() :]), ())
    if unit in _SHORT:
        factors = (*factors, *_SHORT_TONS)
    return any(near(number, one / by, decimals) for by in factors for one in known)


_SHORT = frozenset(("ton", "tons"))


def speed_at(right: str) -> str:
    """The unit of a speed that a text begins with; empty: it begins with none."""
    return next((unit for unit, words in _SPEEDS.items() if words.match(right)), "")


def are_other_units(unit: str, right: str, given: str, label: str) -> bool:
    """Whether a number before ``unit`` (and all that stands at its ``right``) is in another unit than one
    that a source gave before ``given``, or under a ``label`` that ends in its unit."""
    one = speed_at(right) or unit
    other = given or re.split(r"[^a-z]", label.lower())[-1]
    return one != other and bool(_FACTORS.get(one)) and (other in _FACTORS or other in _LENGTHS)


_LENGTHS = frozenset(("m", "km", "mi", "ft"))
"""What is left of a speed's unit, whose time stands behind a stroke."""


def is_wind_force(number: float, clause: str, known: Collection[float]) -> bool:
    """Whether it is the number on the scale of Beaufort of a known speed of wind."""
    if number > 12 or not _BEAUFORT.search(clause):
        return False
    return any(
        round((one * size / 0.836) ** (2 / 3)) == number for one in known for size in _OF_WIND if one > 0
    )


_BEAUFORT = expression(r"(?i)\bbeaufort|\bbft\b")
_OF_WIND = (1.0, _SIZES["km/h"], _SIZES["mph"], _SIZES["kn"])


def is_body_mass_index(number: float, clause: str, known: Collection[float], decimals: int) -> bool:
    """Whether a number of 10 to 80 that is called so is what a known weight makes of a known height."""
    if not 10 <= number <= 80 or not _BODY_MASS.search(clause):
        return False
    heights = [*((one / by) ** 2 for one in known for by in (1, 100) if 1 <= one / by <= 2.5)]
    inches = [one**2 / 703 for one in known if 48 <= one <= 96]
    return any(near(number, one / height, decimals) for one in known for height in (*heights, *inches))


_BODY_MASS = expression(r"(?i)\b(?:bmi|imc|body[- ]mass|körpermasse)")
