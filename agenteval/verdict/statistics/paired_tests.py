"""Significance tests for a change between two runs of the same scenarios (paired tests). All tests are exact
unless marked otherwise."""

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
"""The maximum number of sums computed for one magnitude."""
_DRAWS = 20_000


@dataclass(frozen=True)
class Pair:
    """The results of one scenario in both runs."""

    scenario: str
    before: Tally
    after: Tally

    @property
    def difference(self) -> Fraction | None:
        """The rate after minus the rate before, based on the decided epochs. ``None`` if either run has no
        decided epoch."""
        before, after = self.before.rate, self.after.rate
        return None if before is None or after is None else after - before

    @property
    def single(self) -> bool:
        """True if each run has exactly one decided epoch."""
        return self.before.decided == self.after.decided == 1

    def kindest(self) -> Pair:
        """Return the pair with missing epochs counted as evidence against a drop."""
        return Pair(self.scenario, self.before.worst(), self.after.best())

    def harshest(self) -> Pair:
        """Return the pair with missing epochs counted as evidence of a drop."""
        return Pair(self.scenario, self.before.best(), self.after.worst())


class PValue(NamedTuple):
    """A p-value that is either exact or estimated from random draws."""

    value: float
    exact: bool
    """True if the p-value was computed over all possibilities. Otherwise, it was computed from seeded random
    draws and is slightly too large."""


def sign_flip_test(differences: Sequence[float | Fraction], *, seed: int = 0, draws: int = _DRAWS) -> PValue:
    """Test whether the mean of per-scenario differences is zero (permutation test). If nothing had changed,
    each difference would be equally likely to have the opposite sign. The signs of whole scenarios are
    flipped, so the epochs of a scenario need not be independent of each other.

    Fisher, R. A. (1935), "The design of experiments", section 21. The number of draws includes the observed
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
    """Scale the differences to integers. Differences of rates are fractions with small denominators; with a
    common denominator, equal sums compare as equal."""
    exact = [Fraction(difference).limit_denominator(1_000_000) for difference in differences]
    scale = lcm(*(value.denominator for value in exact))
    return [int(value * scale) for value in exact]


def _sums_of_flips(alike: Mapping[int, int]) -> dict[int, int] | None:
    """Count the ways in which each sum can arise, or return ``None`` if there are too many sums. ``alike``
    contains the number of differences of each magnitude. Flipping a zero changes nothing and provides no
    information."""
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
    """Apply McNemar's exact test to scenarios that have one epoch in each run. Of the scenarios that changed,
    ``worse`` now fail and ``better`` now pass. If nothing had changed, both directions would be equally
    likely.

    McNemar, Q. (1947), "Note on the sampling error of the difference between correlated proportions",
    Psychometrika 12, using the binomial distribution instead of its approximation."""
    return min(1.0, 2 * binomial_at_least(max(worse, better), worse + better, 0.5))


def mcnemar_of(pairs: Sequence[Pair]) -> float | None:
    """Apply ``mcnemar`` to the scenarios. If any scenario does not have exactly one epoch in each run, return
    ``None``."""
    if not pairs or not all(pair.single for pair in pairs):
        return None
    worse = sum(pair.before.successes > pair.after.successes for pair in pairs)
    better = sum(pair.before.successes < pair.after.successes for pair in pairs)
    return mcnemar(worse, better)


def fisher_exact(before: Tally, after: Tally, alternative: Alternative = "drop") -> float:
    """Test whether the rate of one scenario changed, using its decided epochs (Fisher's exact test). The
    p-value is the probability, if nothing had changed, that all successes are split between the two runs at
    least as extremely as observed.

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
    """Adjust the p-values of several tests so that they can be compared with one level (Holm's correction for
    multiple comparisons, a multiple-testing correction). If nothing changed in some of the tests, the
    probability that any of their adjusted p-values falls below the level is at most that level, regardless of
    how the tests depend on each other.

    Holm, S. (1979), "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}
