"""The few probability distributions that the tests need, implemented using only the standard library.

The functions are accurate to about 1e-12; unit tests compare them with exact rational arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, lgamma, log, log1p
from statistics import NormalDist

_TINY = 1e-300
_PRECISION = 1e-15
_MOST_TERMS = 100_000


def normal_quantile(probability: float) -> float:
    """Return the quantile of the standard normal distribution: the value that is exceeded with probability
    ``1 - probability``."""
    return NormalDist().inv_cdf(probability)


@lru_cache(maxsize=1024)
def student_t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution with ``degrees`` degrees of freedom: the value that is
    not exceeded with ``probability`` (>= 0.5).

    Student (1908), "The probable error of a mean". From 30 degrees of freedom on, the expansion of Abramowitz
    & Stegun (1964), 26.7.5, is used, which is accurate to 1e-6 in that range."""
    if degrees >= 30:
        return _t_by_expansion(normal_quantile(probability), degrees)

    def beyond(t: float) -> float:
        return 0.5 * regularised_beta(degrees / (degrees + t * t), degrees / 2, 0.5)

    high = 1.0
    while beyond(high) > 1 - probability:
        high *= 2
    return root_of(lambda t: (1 - probability) - beyond(t), 0.0, high)


def _t_by_expansion(z: float, degrees: int) -> float:
    squared = z * z
    first = z * (squared + 1) / 4
    second = z * ((5 * squared + 16) * squared + 3) / 96
    third = z * (((3 * squared + 19) * squared + 17) * squared - 15) / 384
    return z + (first + (second + third / degrees) / degrees) / degrees


def root_of(rising: Callable[[float], float], low: float, high: float) -> float:
    """Find the point between ``low`` and ``high`` where an increasing function crosses zero, by bisection."""
    for _ in range(60):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return high


def regularised_beta(x: float, a: float, b: float) -> float:
    """Compute the regularized incomplete beta function I_x(a, b) by its continued fraction (DLMF 8.17.22), on
    the side where the fraction converges quickly."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - regularised_beta(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    return min(1.0, front * _beta_fraction(x, a, b))


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Evaluate the continued fraction by Lentz's method: multiply ratios ``c * d`` until they become 1."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def binomial_at_least(successes: int, n: int, rate: float) -> float:
    """Return P(X >= successes) for ``n`` trials that each succeed with probability ``rate``."""
    if successes <= 0 or successes > n:
        return 1.0 if successes <= 0 else 0.0
    return regularised_beta(rate, successes, n - successes + 1)


def binomial_at_most(successes: int, n: int, rate: float) -> float:
    """Return P(X <= successes) for ``n`` trials that each succeed with probability ``rate``."""
    return binomial_at_least(n - successes, n, 1 - rate)


def binomial_weights(n: int, rate: float) -> tuple[float, ...]:
    """Return P(X = 0), …, P(X = n) for ``n`` trials that each succeed with probability ``rate``."""
    if rate <= 0 or rate >= 1:
        sure = 0 if rate <= 0 else n
        return tuple(float(k == sure) for k in range(n + 1))
    return tuple(
        exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(rate) + (n - k) * log1p(-rate))
        for k in range(n + 1)
    )
