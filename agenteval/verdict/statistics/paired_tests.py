"""Tests of whether anything changed between two runs of the same scenarios. All are exact unless marked
otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, lcm
from random import Random
from typing import Literal, NamedTuple

from agenteval.verdict.statistics.distributions import binomial_at_least
from agenteval.verdict.statistics.estimates import Tally

Alternative = Literal["drop", "rise", "either"]

_MOST_SUMS = 50_000
"""The maximum number of sums that are added up for one magnitude."""
_DRAWS = 20_000


@dataclass(frozen=True)
class Pair:
    """One scenario in both runs."""

    scenario: str
    before: Tally
    after: Tally

    @property
    def difference(self) -> Fraction | None:
        """The rate after minus the rate before, of the decided epochs; ``None`` if a side has none."""
        before, after = self.before.rate, self.after.rate
        return None if before is None or after is None else after - before

    @property
    def single(self) -> bool:
        """True if each side has exactly one decided epoch."""
        return self.before.decided == self.after.decided == 1

    def kindest(self) -> Pair:
        """Return the pair with missing epochs counted against a drop."""
        return Pair(self.scenario, self.before.worst(), self.after.best())

    def harshest(self) -> Pair:
        """Return the pair with missing epochs counted as evidence of a drop."""
        return Pair(self.scenario, self.before.best(), self.after.worst())


class PValue(NamedTuple):
    """A p-value."""

    value: float
    exact: bool
    """True if it was computed over all possibilities. Otherwise it comes from seeded random draws and is
    slightly too large."""


def sign_flip_test(differences: Sequence[float | Fraction], *, seed: int = 0, draws: int = _DRAWS) -> PValue:
    """Test whether the mean of per-scenario differences is zero: if nothing had changed, each would be
    equally likely to have the other sign. Whole scenarios flip, so their epochs need not be independent of
    each other.

    Fisher, R. A. (1935), "The design of experiments", section 21; the count of draws includes the observed
    one (Phipson & Smyth 2010)."""
    sizes = _as_integers(differences)
    observed, alike = sum(sizes), Counter(abs(size) for size in sizes if size)
    sums = _sums_of_flips(alike)
    if sums is not None:
        hits = sum(ways for total, ways in sums.items() if abs(total) >= abs(observed))
        return PValue(float(Fraction(hits, 2 ** alike.total())), exact=True)
    random, kinds = Random(seed), sorted(alike.items())
    totals = (
        sum(size * (2 * random.getrandbits(n).bit_count() - n) for size, n in kinds) for _ in range(draws)
    )
    hits = sum(abs(total) >= abs(observed) for total in totals)
    return PValue((hits + 1) / (draws + 1), exact=False)


def _as_integers(differences: Sequence[float | Fraction]) -> list[int]:
    """Scale the differences to integers. Differences of rates are fractions of small numbers: on a common
    denominator equal sums are equal."""
    exact = [Fraction(difference).limit_denominator(1_000_000) for difference in differences]
    scale = lcm(*(value.denominator for value in exact))
    return [int(value * scale) for value in exact]


def _sums_of_flips(alike: Mapping[int, int]) -> dict[int, int] | None:
    """Count the ways in which each sum arises; ``None`` if there are too many. ``alike`` has the number of
    differences of each magnitude. A zero flips to itself and provides no information."""
    sums = {0: 1}
    for size, n in sorted(alike.items()):
        if len(sums) * n > _MOST_SUMS:
            return None
        flipped: dict[int, int] = {}
        for ups in range(n + 1):
            shift, ways_up = size * (2 * ups - n), comb(n, ups)
            for total, ways in sums.items():
                flipped[total + shift] = flipped.get(total + shift, 0) + ways * ways_up
        sums = flipped
    return sums


def mcnemar(worse: int, better: int) -> float:
    """Test scenarios that have one epoch in each run: of those that changed, ``worse`` now fail and
    ``better`` now pass; if nothing had changed, both directions would be equally likely. Exact.

    McNemar, Q. (1947), "Note on the sampling error of the difference between correlated proportions",
    Psychometrika 12, by the binomial instead of its approximation."""
    return min(1.0, 2 * binomial_at_least(max(worse, better), worse + better, 0.5))


def mcnemar_of(pairs: Sequence[Pair]) -> float | None:
    """Apply ``mcnemar`` over scenarios; ``None`` unless each has one epoch in each run."""
    if not pairs or not all(pair.single for pair in pairs):
        return None
    worse = sum(pair.before.successes > pair.after.successes for pair in pairs)
    better = sum(pair.before.successes < pair.after.successes for pair in pairs)
    return mcnemar(worse, better)


def fisher_exact(before: Tally, after: Tally, alternative: Alternative = "drop") -> float:
    """Test whether the rate of one scenario changed, from its decided epochs: the probability of a split of
    all successes over the two runs that is at least as extreme, if nothing had changed. Exact.

    Fisher, R. A. (1934), "Statistical methods for research workers", 5th edition, section 21.02."""
    return _fisher(before.successes, before.decided, after.successes, after.decided, alternative)


@lru_cache(maxsize=4096)
def _fisher(s: int, n: int, t: int, m: int, alternative: Alternative) -> float:
    ways = {x: comb(m, x) * comb(n, s + t - x) for x in range(max(0, s + t - n), min(m, s + t) + 1)}
    if alternative == "drop":
        hits = sum(count for x, count in ways.items() if x <= t)
    elif alternative == "rise":
        hits = sum(count for x, count in ways.items() if x >= t)
    else:
        hits = sum(count for count in ways.values() if count <= ways[t])
    return float(Fraction(hits, comb(n + m, s + t)))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjust the p-values of several tests for comparison with one level: the probability that any true
    "nothing changed" falls below it is at most that level, however the tests depend on each other.

    Holm, S. (1979), "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}
