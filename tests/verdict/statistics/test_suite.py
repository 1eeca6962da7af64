"""The success rate of a suite: the mean of its scenarios, its variance, and the intervals around it."""

from __future__ import annotations

from math import sqrt

import pytest

from agenteval.verdict.statistics.distributions import student_t_quantile
from agenteval.verdict.statistics.estimates import Tally
from agenteval.verdict.statistics.suite import (
    betting_interval,
    cluster_bootstrap,
    mean_rate,
    these_scenarios,
    users_like_these,
)


def tallies(*counts: tuple[int, int]) -> list[Tally]:
    """Each: successes, of how many decided epochs."""
    return [Tally(successes, n, n) for successes, n in counts]


@pytest.mark.parametrize(
    ("counts", "value", "variance", "epochs", "degrees"),
    [
        pytest.param([(1, 1)], 1.0, 0.25, 1, 1, id="one epoch: the most that it may vary"),
        pytest.param([(1, 1), (1, 1)], 1.0, 0.0, 2, 1, id="single epochs that agree"),
        pytest.param([(1, 1), (0, 1)], 0.5, 2 * 0.5 / 4, 2, 1, id="single epochs that do not"),
        pytest.param([(2, 4)], 0.5, 4 / 16 / 3, 4, 3, id="several epochs"),
        pytest.param([(2, 4), (4, 4)], 0.75, 4 / 16 / 3 / 4, 8, 6, id="two scenarios"),
        pytest.param([(1, 2), (1, 1)], 0.75, (1 / 4 + 0.25) / 4, 4 / 1.5, 1, id="single and several"),
        pytest.param(
            [(1, 2), (1, 1), (0, 1), (1, 1)],
            0.625,
            (1 / 4 + 3 * (1 / 3)) / 16,
            16 / 3.5,
            3,
            id="single ones are one stratum",
        ),
    ],
)
def test_the_mean_of_a_fixed_set(
    counts: list[tuple[int, int]], value: float, variance: float, epochs: float, degrees: int
) -> None:
    found = mean_rate(tallies(*counts))
    assert found.value == pytest.approx(value)
    assert found.variance == pytest.approx(variance)
    assert found.epochs == pytest.approx(epochs)
    assert found.degrees == degrees


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        ([(2, 4)], 0.0, 0.0),
        ([(4, 4)], 1.0, 0.0),
        ([(0, 4)], 0.0, 1.0),
        ([(3, 4), (1, 4)], 0.25, 0.25),
        ([(4, 4), (0, 4), (2, 4)], 1 / 3, 1 / 3),
    ],
)
def test_the_lean_of_rates(counts: list[tuple[int, int]], low: float, high: float) -> None:
    found = mean_rate(tallies(*counts))
    assert found.lean_low == pytest.approx(low)
    assert found.lean_high == pytest.approx(high)


def test_lost_epochs_are_no_part_of_a_mean() -> None:
    assert mean_rate([Tally(1, 2, 9)]) == mean_rate([Tally(1, 2, 2)])


def test_the_same_rates_from_more_epochs() -> None:
    found = mean_rate(tallies((2, 4), (3, 4)))
    twice = found.scaled(2)
    assert twice.variance == pytest.approx(found.variance / 2)
    assert (twice.epochs, twice.degrees, twice.value) == (2 * found.epochs, 2 * found.degrees, found.value)
    assert found.scaled(1.25).degrees == 7
    assert twice.reach_low(2) < found.reach_low(2)


def test_a_perfect_set_reaches_further_down_than_up() -> None:
    found = mean_rate(tallies((4, 4)))
    assert found.reach_low(2) > found.reach_high(2)
    none = mean_rate(tallies((0, 4)))
    assert none.reach_high(2) == pytest.approx(found.reach_low(2))
    assert none.reach_low(2) == pytest.approx(found.reach_high(2))


@pytest.mark.parametrize("counts", [[], [(0, 0)], [(1, 1), (0, 0)]])
def test_no_mean_without_epochs(counts: list[tuple[int, int]]) -> None:
    for estimate in (mean_rate, these_scenarios):
        with pytest.raises(ValueError):
            estimate(tallies(*counts))


def test_the_interval_of_these_scenarios() -> None:
    counts = tallies((3, 4), (2, 4), (4, 4))
    found, mean = these_scenarios(counts, 0.9), mean_rate(counts)
    t = student_t_quantile(0.95, mean.degrees)
    assert found.value == mean.value
    assert found.low == pytest.approx(mean.value - mean.reach_low(t))
    assert found.high == pytest.approx(min(1, mean.value + mean.reach_high(t)))
    assert found.standard_error == pytest.approx(sqrt(mean.variance))
    assert these_scenarios(counts).low < found.low
    assert these_scenarios(tallies((4, 4))).high == 1
    assert these_scenarios(tallies((0, 4))).low == 0
    assert "these" in found.estimand


@pytest.mark.parametrize(
    ("rates", "low", "high"),
    [([0.2, 0.4, 0.6], 0.4, 0.4), ([0.9, 1.0], 0.95, 0.95), ([0.0, 0.1], 0.05, 0.05)],
)
def test_users_like_these_by_the_spread_of_scenarios(rates: list[float], low: float, high: float) -> None:
    found = users_like_these(rates)
    n, mean = len(rates), sum(rates) / len(rates)
    error = sqrt(sum((rate - mean) ** 2 for rate in rates) / (n - 1) / n)
    half = student_t_quantile(0.975, n - 1) * error
    assert found.value == pytest.approx(mean)
    assert found.standard_error == pytest.approx(error)
    assert found.low == pytest.approx(max(0, low - half))
    assert found.high == pytest.approx(min(1, high + half))


def test_users_like_these_where_no_spread_is_known() -> None:
    one = users_like_these([0.7])
    assert (one.value, one.low, one.high, one.standard_error) == (0.7, 0.0, 1.0, None)
    alike = users_like_these([0.5, 0.5, 0.5], 0.9)
    assert (alike.low, alike.high) == betting_interval([0.5, 0.5, 0.5], 0.9)
    assert alike.standard_error == pytest.approx(0)


def test_the_betting_interval() -> None:
    values = [0.2, 0.4, 0.9, 1.0]
    found = betting_interval(values)
    assert 0 <= found.low < sum(values) / 4 < found.high <= 1
    assert betting_interval(values[::-1]) == found
    mirrored = betting_interval([1 - value for value in values])
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((found.low, found.high))
    assert betting_interval([1.0] * 50).high == 1
    assert betting_interval([0.0] * 50).low == 0
    more = betting_interval(values * 20)
    assert found.low < more.low < more.high < found.high
    assert betting_interval(values, 0.5).low > found.low
    # Fifty successes at a mean m multiply a stake of everything by m**-50, which is one of twenty bets.
    assert 0.85 < betting_interval([1.0] * 50).low < 0.95


def test_the_bootstrap_of_scenarios() -> None:
    values = [0.0, 0.25, 0.5, 1.0, 1.0]
    found = cluster_bootstrap(values, seed=3)
    assert cluster_bootstrap(values[::-1], seed=3) == found
    assert 0 <= found.low < 0.55 < found.high <= 1
    wide, narrow = (cluster_bootstrap(values, each, seed=3) for each in (0.99, 0.5))
    assert wide.low <= found.low < narrow.low < narrow.high < found.high <= wide.high
    assert cluster_bootstrap([0.5, 0.5]) == (0.5, 0.5)
