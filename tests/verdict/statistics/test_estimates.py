"""One scenario and one suite: estimates and intervals, against exact arithmetic and real conversations."""

from __future__ import annotations

import gzip
import json
from fractions import Fraction
from itertools import combinations, product
from math import comb
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.verdict.statistics import (
    Interval,
    Stability,
    StatisticalOutcome,
    Tally,
    betting_interval,
    clopper_pearson,
    cluster_bootstrap,
    mean_pass_hat_k,
    pass_at_k,
    pass_hat_k,
    pass_hat_k_bounds,
    stability,
    these_scenarios,
    users_like_these,
    wilson,
)
from agenteval.verdict.statistics.distributions import (
    binomial_at_least,
    binomial_at_most,
    binomial_weights,
    student_t_quantile,
)

AIRLINE = Path(__file__).parents[4] / "shared" / "data" / "tau_airline.jsonl.gz"

tallies = st.builds(
    lambda s, f, lost: Tally(s, s + f, s + f + lost),
    st.integers(0, 8),
    st.integers(0, 8),
    st.integers(0, 4),
)
decided = st.builds(
    lambda s, f: Tally(s, s + f, s + f), st.integers(0, 8), st.integers(0, 8)
).filter(lambda tally: tally.decided > 0)  # fmt: skip
outcomes = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=12)


def exact_at_least(k: int, n: int, rate: Fraction) -> Fraction:
    return sum((comb(n, x) * rate**x * (1 - rate) ** (n - x) for x in range(k, n + 1)), Fraction(0))


@pytest.mark.parametrize("rate", ["0.01", "0.3", "0.5", "0.7", "0.9", "0.999"])
def test_binomial_tails_agree_with_rational_arithmetic(rate: str) -> None:
    p = Fraction(rate)
    for n in (1, 2, 7, 30, 200):
        for k in range(0, n + 2, max(1, n // 15)):
            exact = float(exact_at_least(k, n, p))
            assert binomial_at_least(k, n, float(p)) == pytest.approx(exact, rel=1e-9, abs=1e-14)
            assert binomial_at_most(k - 1, n, float(p)) == pytest.approx(1 - exact, rel=1e-9, abs=1e-12)


def test_binomial_at_sure_rates() -> None:
    assert binomial_at_least(3, 3, 1.0) == 1
    assert binomial_at_least(1, 3, 0.0) == 0
    assert binomial_weights(2, 1.0) == (0, 0, 1)
    assert sum(binomial_weights(50, 0.3)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("degrees", "value"), [(1, 12.7062), (4, 2.77645), (19, 2.09302), (30, 2.04227), (1000, 1.96234)]
)
def test_student_t_agrees_with_its_table(degrees: int, value: float) -> None:
    assert student_t_quantile(0.975, degrees) == pytest.approx(value, rel=1e-5)


def test_wilson_of_twenty_of_twenty_is_no_proof_of_nine_tenths() -> None:
    assert wilson(20, 20) == (pytest.approx(0.8389, abs=1e-4), 1)
    assert wilson(0, 0) == (0, 1)
    assert wilson(8, 10) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))


@given(st.integers(1, 200), st.data())
def test_wilson_holds_its_estimate_and_narrows_with_more_of_the_same(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    low, high = wilson(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    assert low < high
    more = wilson(3 * successes, 3 * n)
    assert low - 1e-12 <= more.low
    assert more.high <= high + 1e-12


def test_clopper_pearson_in_closed_form() -> None:
    assert clopper_pearson(20, 20) == (pytest.approx(0.025 ** (1 / 20)), 1)
    assert clopper_pearson(0, 3) == (0, pytest.approx(1 - 0.025 ** (1 / 3)))
    assert clopper_pearson(0, 0) == (0, 1)


def test_clopper_pearson_covers_every_rate_for_every_n() -> None:
    """By enumeration: at each rate, the outcomes whose interval misses it."""
    for n in (1, 2, 3, 5, 8, 13, 20, 30):
        intervals = [clopper_pearson(k, n) for k in range(n + 1)]
        for step in range(1, 200):
            rate, weights = step / 200, binomial_weights(n, step / 200)
            too_low = sum(w for w, i in zip(weights, intervals, strict=True) if i.high < rate)
            too_high = sum(w for w, i in zip(weights, intervals, strict=True) if i.low > rate)
            assert max(too_low, too_high) <= 0.025 + 1e-9


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.integers(1, 4))
def test_pass_k_are_shares_of_subsets(epochs: list[bool], k: int) -> None:
    n, c = len(epochs), sum(epochs)
    if n < k:
        assert pass_at_k(n, c, k) is None
        assert pass_hat_k(n, c, k) is None
        return
    subsets = list(combinations(epochs, k))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_pass_k_have_no_bias(k: int) -> None:
    p, n = Fraction(7, 10), 6
    weights = [comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    assert sum(float(w) * (pass_hat_k(n, c, k) or 0) for c, w in enumerate(weights)) == pytest.approx(0.7**k)
    at = sum(float(w) * (pass_at_k(n, c, k) or 0) for c, w in enumerate(weights))
    assert at == pytest.approx(1 - 0.3**k)


def test_nonsense_counts_are_refused() -> None:
    with pytest.raises(ValueError):
        pass_hat_k(3, 4, 1)
    with pytest.raises(ValueError):
        pass_at_k(3, 1, 0)
    with pytest.raises(ValueError):
        Tally(2, 1, 3)


@given(outcomes, st.integers(1, 6))
def test_missing_epochs_enter_by_worst_and_best_case(epochs: list[bool | None], k: int) -> None:
    bounds = pass_hat_k_bounds(Tally.of(epochs), k)
    if len(epochs) < k:
        assert bounds is None
        return
    assert bounds is not None
    filled = [
        pass_hat_k(len(epochs), sum(fill) + epochs.count(True), k)
        for fill in product([False, True], repeat=epochs.count(None))
    ]
    assert (bounds.low, bounds.high) == (min(map(float, filled)), max(map(float, filled)))  # type: ignore[arg-type]
    if bounds.estimate is not None:
        assert bounds.low - 1e-12 <= bounds.estimate <= bounds.high + 1e-12


@given(outcomes, st.integers(1, 4), st.booleans())
def test_a_missing_epoch_that_arrives_never_widens_the_bounds(
    epochs: list[bool | None], k: int, arrived: bool
) -> None:
    if None not in epochs or len(epochs) < k:
        return
    before = pass_hat_k_bounds(Tally.of(epochs), k)
    epochs[epochs.index(None)] = arrived
    after = pass_hat_k_bounds(Tally.of(epochs), k)
    assert before is not None
    assert after is not None
    assert before.low <= after.low <= after.high <= before.high


def test_a_bound_on_pass_hat_k_waits_for_missing_epochs_that_would_tell() -> None:
    assert pass_hat_k_bounds(Tally(4, 5, 5), 3).compare(0.4) is StatisticalOutcome.ACCEPT  # type: ignore[union-attr]
    assert pass_hat_k_bounds(Tally(4, 5, 5), 3).compare(0.5) is StatisticalOutcome.REJECT  # type: ignore[union-attr]
    assert pass_hat_k_bounds(Tally(4, 4, 5), 3).compare(0.5) is StatisticalOutcome.UNDECIDED  # type: ignore[union-attr]
    assert pass_hat_k_bounds(Tally(0, 2, 3), 3).compare(0.5) is StatisticalOutcome.REJECT  # type: ignore[union-attr]
    assert pass_hat_k_bounds(Tally(0, 2, 3), 3).estimate is None  # type: ignore[union-attr]


def test_seven_of_ten_reach_seven_tenths() -> None:
    """The mean is exact before it is rounded: a sum of floats would come out below the bound."""
    bounds = mean_pass_hat_k([Tally(7, 10, 10)] * 3, 1)
    assert bounds is not None
    assert bounds.compare(0.7) is StatisticalOutcome.ACCEPT


def test_the_mean_is_not_estimable_when_one_scenario_has_too_few_epochs() -> None:
    assert mean_pass_hat_k([Tally(3, 3, 3), Tally(2, 2, 2)], 3) is None
    assert mean_pass_hat_k([], 1) is None


@pytest.mark.skipif(not AIRLINE.exists(), reason="the airline conversations are not part of the repository")
def test_the_airline_conversations() -> None:
    by_task: dict[int, list[bool]] = {}
    with gzip.open(AIRLINE, "rt", encoding="utf-8") as lines:
        for line in lines:
            labels = json.loads(line)["labels"]
            by_task.setdefault(labels["task_id"], []).append(labels["reward"] == 1)
    counted = [Tally.of(epochs) for epochs in by_task.values()]
    assert sum(tally.planned for tally in counted) == 200
    means = [mean_pass_hat_k(counted, k) for k in (1, 2, 3, 4)]
    assert [round(m.estimate or 0, 3) for m in means if m] == [0.420, 0.273, 0.220, 0.200]
    assert mean_pass_hat_k(counted, 5) is None


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [
        ([True] * 3, Stability.STABLE_PASS),
        ([False] * 3, Stability.STABLE_FAIL),
        ([True, False], Stability.FLAKY),
        ([True, False, None], Stability.FLAKY),
        ([True, True, None], Stability.UNKNOWN),
        ([True], Stability.UNKNOWN),
        ([None, None], Stability.UNKNOWN),
    ],
)
def test_stability(epochs: list[bool | None], expected: Stability) -> None:
    assert stability(Tally.of(epochs)) is expected


@settings(max_examples=40)
@given(st.lists(decided, min_size=1, max_size=8), st.randoms())
def test_the_order_of_scenarios_changes_nothing(scenarios: list[Tally], random: Random) -> None:
    shuffled = random.sample(scenarios, len(scenarios))
    assert these_scenarios(shuffled) == these_scenarios(scenarios)
    rates = [tally.successes / tally.decided for tally in scenarios]
    mixed = random.sample(rates, len(rates))
    assert users_like_these(mixed) == users_like_these(rates)
    assert cluster_bootstrap(mixed, resamples=50) == cluster_bootstrap(rates, resamples=50)
    assert betting_interval(mixed) == betting_interval(rates)


@given(st.lists(decided.filter(lambda tally: tally.decided > 1), min_size=1, max_size=8), st.integers(2, 4))
def test_more_epochs_at_the_same_rates_never_widen_the_interval(scenarios: list[Tally], times: int) -> None:
    more = [Tally(t.successes * times, t.decided * times, t.planned * times) for t in scenarios]
    before, after = these_scenarios(scenarios), these_scenarios(more)
    assert after.value == pytest.approx(before.value)
    assert before.low - 1e-12 <= after.low
    assert after.high <= before.high + 1e-12
    assert before.low <= before.value <= before.high


def test_the_interval_stays_open_where_every_epoch_passed() -> None:
    perfect = these_scenarios([Tally(3, 3, 3)] * 20)
    assert perfect.standard_error == 0
    assert 0.93 < perfect.low < 0.95
    users = users_like_these([1.0] * 20)
    assert users.method == "betting interval"
    assert users.low < 0.84


def test_scenarios_of_one_epoch_borrow_the_spread_between_them() -> None:
    single = these_scenarios([Tally(1, 1, 1)] * 5 + [Tally(0, 1, 1)] * 5)
    assert single.standard_error == pytest.approx((0.25 / 9) ** 0.5)


def test_one_scenario_tells_nothing_of_others() -> None:
    assert users_like_these([0.9])[:4] == (0.9, 0, 1, None)


def test_a_scenario_without_an_epoch_has_no_rate() -> None:
    with pytest.raises(ValueError):
        these_scenarios([Tally(0, 0, 3)])


def test_repeats_do_not_count_as_questions() -> None:
    """Ten scenarios that always pass and ten that never do: their rate is known, that of others is not."""
    scenarios = [Tally(20, 20, 20)] * 10 + [Tally(0, 20, 20)] * 10
    ours, others = these_scenarios(scenarios), users_like_these([1.0] * 10 + [0.0] * 10)
    pooled = wilson(200, 400)
    assert ours.high - ours.low < pooled.high - pooled.low < others.high - others.low


def _missed(
    intervals: dict[tuple[int, ...], Interval], n: int, rates: tuple[float, ...]
) -> tuple[float, float]:
    mean, low, high = sum(rates) / len(rates), 0.0, 0.0
    weights = [binomial_weights(n, rate) for rate in rates]
    for counts, interval in intervals.items():
        weight = 1.0
        for chances, count in zip(weights, counts, strict=True):
            weight *= chances[count]
        low += weight * (interval.low > mean + 1e-9)
        high += weight * (interval.high < mean - 1e-9)
    return low, high


@pytest.mark.parametrize("n", [2, 5, 8])
def test_coverage_of_a_fixed_set_by_enumeration(n: int) -> None:
    """Three scenarios, every outcome, rates from all over the cube."""
    intervals = {}
    for counts in product(range(n + 1), repeat=3):
        e = these_scenarios([Tally(c, n, n) for c in counts])
        intervals[counts] = Interval(e.low, e.high)
    grid = (0.0, 0.1, 0.3, 0.5, 0.8, 0.95, 1.0)
    for rates in product(grid, repeat=3):
        if list(rates) == sorted(rates):
            assert sum(_missed(intervals, n, rates)) <= 0.05, rates


@settings(max_examples=25)
@given(st.integers(2, 12), st.integers(0, 10))
def test_the_betting_interval_holds_for_few_scenarios(m: int, tenths: int) -> None:
    """Of all distributions on [0, 1] with a given mean, single outcomes spread most: by enumeration."""
    rate, missed = tenths / 10, 0.0
    for count, weight in enumerate(binomial_weights(m, rate)):
        low, high = betting_interval([1.0] * count + [0.0] * (m - count))
        missed += weight * (not low <= rate <= high)
    assert missed <= 0.05


def test_the_bootstrap_is_seeded_and_holds_the_mean() -> None:
    rates = [0.2, 0.5, 0.9, 1.0, 0.4, 0.8]
    assert cluster_bootstrap(rates, seed=3) == cluster_bootstrap(rates, seed=3)
    low, high = cluster_bootstrap(rates)
    assert low < sum(rates) / 6 < high
