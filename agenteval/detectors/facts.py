"""The values of a text in sentences, by their kind."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from agenteval.detectors.dates import Day
from agenteval.detectors.mentions import mentions_in
from agenteval.detectors.values import reading
from agenteval.expressions import expression

TOKEN_OR_TIME = expression(
    r"[0-9](?<![A-Za-z0-9][0-9])[0-9A-Za-z_]*(?:(?:[.,:'](?=[0-9])|[-/@+#])[0-9A-Za-z_]+)*"
    r"(?: ?[aApP]\.?[mM]\b)?"
)
"""As ``values.TOKEN``, not inside a word, with the half of the day. It begins with the digit, since that
is what lets the search skip everything else quickly."""


class Facts(NamedTuple):
    """The values of a text by their kind. ``amounts`` and ``percents`` are among the numbers too."""

    numbers: frozenset[float]
    clocks: frozenset[int]
    days: frozenset[Day]
    amounts: frozenset[float]
    percents: frozenset[float]


@lru_cache(maxsize=512)
def facts_of(text: str) -> Facts:
    """What a text in sentences says. A time without its half of the day is both."""
    found = list(mentions_in(text))
    clocks = {clock for mention in found for clock in mention.clocks}
    clocks |= {
        (clock + 720) % 1440
        for mention in found
        if "m" not in mention.text.lower()
        for clock in mention.clocks
    }
    numbers = {number for mention in found for number in mention.numbers}
    numbers.update(number for token in TOKEN_OR_TIME.findall(text) for number in reading(token).numbers)
    return Facts(
        frozenset(numbers),
        frozenset(clocks),
        frozenset(day for mention in found for day in mention.days),
        frozenset(number for mention in found if mention.kind == "money" for number in mention.numbers),
        frozenset(number for mention in found if mention.kind == "percent" for number in mention.numbers),
    )
