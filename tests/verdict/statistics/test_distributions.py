"""Quantiles, the incomplete beta function and binomial probabilities, against closed forms and exact sums."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import comb, pi, sin, sqrt, tan

import pytest

from agenteval.verdict.statistics.distributions import (
    binomial_at_least,
    binomial_at_most,
    binomial_weights,
    normal_quantile,
    regularised_beta,
    root_of,
    student_t_quantile,
)


@pytest.mark.parametrize(
    ("probability", "value"), [(0.5, 0.0), (0.975, 1.959964), (0.025, -1.959964), (0.95, 1.644854)]
)
def test_the_normal_distribution(probability: float, value: float) -> None:
    assert normal_quantile(probability) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("probability", [0.5, 0.6, 0.75, 0.95, 0.975, 0.999])
def test_student_t_in_closed_form(probability: float) -> None:
    one = tan(pi * (probability - 0.5))
    assert student_t_quantile(probability, 1) == pytest.approx(one, rel=1e-9, abs=1e-9)
    p = probability
    two = (2 * p - 1) / sqrt(2 * p * (1 - p))
    assert student_t_quantile(probability, 2) == pytest.approx(two, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("probability", [0.9, 0.95, 0.975, 0.995])
def test_student_t_narrows_to_the_normal_without_a_leap(probability: float) -> None:
    values = [student_t_quantile(probability, degrees) for degrees in (28, 29, 30, 31)]
    steps = [a - b for a, b in pairwise(values)]
    assert all(step > 0 for step in steps)
    assert steps[1] == pytest.approx((steps[0] + steps[2]) / 2, rel=0.02)
    assert student_t_quantile(probability, 10**7) == pytest.approx(normal_quantile(probability), rel=1e-6)


@pytest.mark.parametrize(
    ("degrees", "value"), [(29, 2.045230), (30, 2.042272), (40, 2.021075), (60, 2.000298), (120, 1.979930)]
)
def test_student_t_agrees_with_its_table(degrees: int, value: float) -> None:
    assert student_t_quantile(0.975, degrees) == pytest.approx(value, abs=2e-6)


def test_the_root_of_a_rising_function() -> None:
    assert root_of(lambda x: x * x - 2, 0, 2) == pytest.approx(sqrt(2), abs=1e-15)
    assert root_of(lambda x: x - 5, 0, 1) == 1  # beyond the end
    assert root_of(lambda x: x + 5, 0, 1) == pytest.approx(0, abs=1e-17)


@pytest.mark.parametrize(
    ("x", "a", "b", "value"),
    [
        (0, 2, 3, 0.0),
        (-1, 2, 3, 0.0),
        (1, 2, 3, 1.0),
        (2, 2, 3, 1.0),
        (0.3, 1, 1, 0.3),
        (0.3, 4, 1, 0.3**4),
        (0.3, 1, 4, 1 - 0.7**4),
        (0.5, 7, 7, 0.5),
        (0.2, 2, 2, 0.2**2 * (3 - 2 * 0.2)),
        (0.9, 2, 2, 0.9**2 * (3 - 2 * 0.9)),
        (sin(pi / 8) ** 2, 0.5, 0.5, 0.25),  # the arcsine distribution
    ],
)
def test_the_beta_function_in_closed_form(x: float, a: float, b: float, value: float) -> None:
    assert regularised_beta(x, a, b) == pytest.approx(value, rel=1e-12, abs=1e-15)


def exact(k: int, n: int, rate: Fraction) -> float:
    return float(sum((comb(n, x) * rate**x * (1 - rate) ** (n - x) for x in range(k, n + 1)), Fraction(0)))


@pytest.mark.parametrize("rate", ["0.001", "0.5", "0.95"])
@pytest.mark.parametrize("n", [1, 3, 40])
def test_binomial_tails_and_weights(rate: str, n: int) -> None:
    p = Fraction(rate)
    weights = binomial_weights(n, float(p))
    assert len(weights) == n + 1
    for k in range(n + 1):
        assert binomial_at_least(k, n, float(p)) == pytest.approx(exact(k, n, p), rel=1e-9, abs=1e-14)
        at_most = 1 - exact(k + 1, n, p)
        assert binomial_at_most(k, n, float(p)) == pytest.approx(at_most, rel=1e-9, abs=1e-14)
        assert weights[k] == pytest.approx(float(comb(n, k) * p**k * (1 - p) ** (n - k)), rel=1e-9)


@pytest.mark.parametrize(
    ("k", "n", "rate", "at_least", "at_most"),
    [
        (0, 5, 0.3, 1.0, 0.7**5),
        (-1, 5, 0.3, 1.0, 0.0),
        (6, 5, 0.3, 0.0, 1.0),
        (5, 5, 1.0, 1.0, 1.0),
        (4, 5, 1.0, 1.0, 0.0),
        (1, 5, 0.0, 0.0, 1.0),
        (0, 5, 0.0, 1.0, 1.0),
        (0, 0, 0.5, 1.0, 1.0),
        (1, 0, 0.5, 0.0, 1.0),
    ],
)
def test_binomial_tails_at_their_ends(k: int, n: int, rate: float, at_least: float, at_most: float) -> None:
    assert binomial_at_least(k, n, rate) == pytest.approx(at_least)
    assert binomial_at_most(k, n, rate) == pytest.approx(at_most)


@pytest.mark.parametrize(
    ("n", "rate", "weights"),
    [
        (2, 0.0, (1.0, 0.0, 0.0)),
        (2, 1.0, (0.0, 0.0, 1.0)),
        (2, -0.1, (1.0, 0.0, 0.0)),
        (0, 0.5, (1.0,)),
        (2, 0.5, (0.25, 0.5, 0.25)),
    ],
)
def test_weights_at_their_ends(n: int, rate: float, weights: tuple[float, ...]) -> None:
    assert binomial_weights(n, rate) == pytest.approx(weights)
