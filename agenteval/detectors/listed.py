"""Numbers that a text writes one after the other, and what they come to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from statistics import fmean, median, pstdev, pvariance, stdev, variance
from typing import NamedTuple

from agenteval.detectors.mentions import mentions_in
from agenteval.detectors.values import numbers_of
from agenteval.expressions import expression

_NUMBER = expression(r"(?<![\w.,])-?[0-9][0-9.,]*(?<![.,])")
_GAP = expression(
    r"\s{0,3}[,;|+&/]?\s{0,3}(?:(?:and|plus|und|y|et|e|en|og|och|i)\s)?\s?[$€£[\n•*(]{0,3}[$€£ ]{0,2}"
)
_LONGEST_GAP = 10
_MOST_TEXT = 20_000
_MOST_PROSE = 4_000
_PAIRS = expression(",[0-9]{1,2}(?:,|$)|,[0-9]{4}")


class Figures(NamedTuple):
    """What numbers come to. ``sums``: of each list; ``loose``: of all numbers of a text that are of one kind;
    ``means``: means, medians, deviations and ranges of all of them."""

    sums: frozenset[float]
    loose: frozenset[float]
    means: frozenset[float]


@lru_cache(maxsize=256)
def figures_of(text: str) -> Figures:
    """What the numbers of a text come to."""
    text = text[:_MOST_TEXT]
    lists = [numbers for numbers in _lists(text) if len(numbers) >= _A_LIST and _are_small(numbers)]
    loose = [numbers for numbers in _by_kind(text[:_MOST_PROSE]) if _are_small(numbers)]
    return Figures(
        frozenset(map(sum, lists)),
        frozenset(map(sum, loose)),
        frozenset(figure for numbers in (*lists, *loose) for figure in _means(numbers)),
    )


def _are_small(numbers: list[float]) -> bool:
    return max(map(abs, numbers)) < _LARGEST


def _means(numbers: list[float]) -> tuple[float, ...]:
    spread = (stdev(numbers), pstdev(numbers), variance(numbers), pvariance(numbers))
    return (fmean(numbers), median(numbers), max(numbers) - min(numbers), *spread)


def _lists(text: str) -> list[list[float]]:
    """Each run of numbers with nothing but separators between them."""
    found: list[list[float]] = []
    end = -1
    for each in _NUMBER.finditer(text):
        is_first = each.start() > 0 and text[each.start() - 1] == "["
        numbers = _numbers_in(each[0], is_list=is_first)
        gap = text[end : each.start()] if end >= 0 else ""
        if end >= 0 and len(gap) <= _LONGEST_GAP and _GAP.fullmatch(gap):
            found[-1] += numbers
        else:
            found.append([*numbers])
        end = each.end()
    return found


def _numbers_in(token: str, *, is_list: bool) -> Iterable[float]:
    """One number, or those of a list without spaces, as it surely is in brackets."""
    sign = -1 if token[0] == "-" else 1
    token = token.lstrip("-")
    if (is_list and "," in token) or (token.count(",") > 1 and _PAIRS.search(token)):
        return [sign * float(part) for part in token.split(",") if _PLAIN.fullmatch(part)]
    return [sign * numbers_of(token)[0][0]]


_PLAIN = expression(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")


def _by_kind(text: str) -> Iterator[list[float]]:
    """All amounts of a text, and all its other numbers: "rent 900, food 400"."""
    mentions = [mention for mention in mentions_in(text) if mention.numbers]
    for kind in ("money", "number"):
        numbers = [mention.numbers[0] for mention in mentions if mention.kind == kind]
        if 1 < len(numbers) <= _MOST:
            yield numbers


_A_LIST = 3
_LARGEST = 1e15
_MOST = 60
"""Numbers of a text that are taken together."""
