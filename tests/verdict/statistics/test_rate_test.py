"""The sequential test: its error rates by exact arithmetic over all paths, its behaviour under peeking."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from math import comb
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.verdict.statistics import (
    Margins,
    PassRateRule,
    RateTest,
    StatisticalOutcome,
    epochs_for_green,
    epochs_to_decide,
    error_rates,
    in_epoch_order,
    least_epochs,
    no_regression_chances,
    pass_hat_k_rule,
    rate_test,
    share_rule,
)

RULES = [
    PassRateRule(0.9, 0.7),
    PassRateRule(0.9, 0.7, scenarios=20),
    PassRateRule(0.95, 0.5, 0.9, scenarios=5),
    PassRateRule(1.0, 0.8, 0.99, scenarios=3),
    PassRateRule(0.6, 0.5, 0.8),
]
REFERENCE = PassRateRule(0.9, 0.7, 0.95, scenarios=20)

rules = st.builds(
    lambda low, gap, confidence, m: PassRateRule(min(1.0, (low + gap) / 20), low / 20, confidence, m),
    st.integers(2, 18),
    st.integers(1, 10),
    st.sampled_from([0.8, 0.9, 0.95]),
    st.integers(1, 30),
)
tests = st.builds(
    lambda rule, low, more: rate_test(rule, low, low + more), rules, st.integers(1, 6), st.integers(0, 12)
)
epochs = st.lists(st.sampled_from([True, False, None]), max_size=18)


def exact_chances(test: RateTest, rate: Fraction) -> dict[StatisticalOutcome, Fraction]:
    """By rational arithmetic over (epochs, successes), apart from the code under test."""
    ended = dict.fromkeys(StatisticalOutcome, Fraction(0))
    alive = {0: Fraction(1)}
    for n in range(1, test.max_epochs + 1):
        later: dict[int, Fraction] = {}
        for successes, weight in alive.items():
            later[successes] = later.get(successes, Fraction(0)) + weight * (1 - rate)
            later[successes + 1] = later.get(successes + 1, Fraction(0)) + weight * rate
        alive = {}
        for successes, weight in later.items():
            outcome = test.looks[n].outcome_at(successes)
            if outcome is StatisticalOutcome.CONTINUE:
                alive[successes] = weight
            else:
                ended[outcome] += weight
    assert not alive
    return ended


@pytest.mark.parametrize("rule", RULES)
def test_fixed_designs_hold_both_error_rates(rule: PassRateRule) -> None:
    """Every n to 30, by rational arithmetic; and no design gives away a success that it could have."""
    low, high = Fraction(str(rule.reject_below)), Fraction(str(rule.at_least))
    for n in range(1, 31):
        accept_from, reject_to = rate_test(rule, n, n).looks[n][:2]
        assert exact_tail(range(accept_from, n + 1), n, low) <= Fraction(str(rule.false_accept))
        assert exact_tail(range(reject_to + 1), n, high) * rule.scenarios <= Fraction(str(rule.false_accept))
        if reject_to + 1 < accept_from:
            assert exact_tail(range(accept_from - 1, n + 1), n, low) > Fraction(str(rule.false_accept))
            more = exact_tail(range(reject_to + 2), n, high) * rule.scenarios
            assert more > Fraction(str(rule.false_accept))


def exact_tail(counts: range, n: int, rate: Fraction) -> Fraction:
    return sum((comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in counts), Fraction(0))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("least", "most"), [(1, 1), (1, 12), (3, 20), (5, 30), (10, 45)])
def test_sequential_designs_hold_both_error_rates(rule: PassRateRule, least: int, most: int) -> None:
    test = rate_test(rule, least, most)
    at_bad = exact_chances(test, Fraction(str(rule.reject_below)))
    at_good = exact_chances(test, Fraction(str(rule.at_least)))
    assert float(at_bad[StatisticalOutcome.ACCEPT]) <= rule.false_accept + 1e-12
    assert float(at_good[StatisticalOutcome.REJECT]) <= rule.false_reject + 1e-12
    for rate, exact in ((rule.reject_below, at_bad), (rule.at_least, at_good)):
        accept, reject, undecided, mean = test.chances(rate)
        assert accept == pytest.approx(float(exact[StatisticalOutcome.ACCEPT]), abs=1e-12)
        assert reject == pytest.approx(float(exact[StatisticalOutcome.REJECT]), abs=1e-12)
        assert undecided == pytest.approx(float(exact[StatisticalOutcome.UNDECIDED]), abs=1e-12)
        assert least <= mean <= most


@given(tests)
def test_the_error_rates_hold_beyond_the_bounds_too(test: RateTest) -> None:
    """The chance to accept rises with the true rate, the chance to reject falls."""
    steps = [test.chances(rate / 10) for rate in range(11)]
    for worse, better in pairwise(steps):
        assert worse.accept <= better.accept + 1e-12
        assert better.reject <= worse.reject + 1e-12


@given(rules, st.integers(1, 4), st.integers(0, 6))
def test_the_chances_are_those_of_deciding_every_path(rule: PassRateRule, least: int, more: int) -> None:
    test = rate_test(rule, least, least + more)
    rate, accepted, used = rule.reject_below, 0.0, 0.0
    for path in product([True, False], repeat=test.max_epochs):
        decision = test.decide(path)
        weight = rate ** sum(path) * (1 - rate) ** (len(path) - sum(path))
        accepted += weight * (decision.outcome is StatisticalOutcome.ACCEPT)
        used += weight * decision.epochs
        assert decision.outcome is not StatisticalOutcome.CONTINUE
    chances = test.chances(rate)
    assert accepted == pytest.approx(chances.accept, abs=1e-9)
    assert used == pytest.approx(chances.epochs, abs=1e-9)


RANK = {
    StatisticalOutcome.REJECT: 0,
    StatisticalOutcome.UNDECIDED: 1,
    StatisticalOutcome.CONTINUE: 1,
    StatisticalOutcome.ACCEPT: 2,
}


@given(tests, epochs, st.data())
def test_one_more_success_never_harms(
    test: RateTest, outcomes: list[bool | None], data: st.DataObject
) -> None:
    if False not in outcomes:
        return
    at = data.draw(st.sampled_from([i for i, outcome in enumerate(outcomes) if outcome is False]))
    better = [*outcomes[:at], True, *outcomes[at + 1 :]]
    assert RANK[test.decide(better).outcome] >= RANK[test.decide(outcomes).outcome]


@given(tests, epochs, epochs)
def test_a_decision_stands_whatever_comes_later(
    test: RateTest, first: list[bool | None], later: list[bool | None]
) -> None:
    decision = test.decide(first)
    if decision.outcome is not StatisticalOutcome.CONTINUE:
        assert test.decide([*first, *later]) == decision
        assert decision.epochs <= test.max_epochs
    elif len(first) >= test.max_epochs:
        pytest.fail("no epoch is left, and it would go on")


@given(tests, epochs, st.booleans())
def test_a_decision_with_lost_epochs_is_that_of_any_fill(
    test: RateTest, outcomes: list[bool | None], fill: bool
) -> None:
    decision = test.decide(outcomes)
    if decision.outcome in (StatisticalOutcome.ACCEPT, StatisticalOutcome.REJECT):
        assert test.decide([fill if o is None else o for o in outcomes]).outcome is decision.outcome


@given(tests, st.lists(st.booleans(), max_size=18), st.randoms())
def test_a_fixed_number_does_not_care_for_the_order(
    test: RateTest, outcomes: list[bool], random: Random
) -> None:
    fixed = rate_test(test.rule, test.max_epochs, test.max_epochs)
    taken = outcomes[: test.max_epochs]
    assert fixed.decide(random.sample(taken, len(taken))) == fixed.decide(taken)


def test_no_decision_before_the_least_epochs() -> None:
    rule = PassRateRule(0.99, 0.1)
    assert rate_test(rule, 1, 20).decide([False, False]).outcome is StatisticalOutcome.REJECT
    assert rate_test(rule, 5, 20).decide([False] * 4).outcome is StatisticalOutcome.CONTINUE
    assert rate_test(rule, 5, 20).decide([False] * 9).epochs == 5


def test_the_reference_by_exact_arithmetic() -> None:
    """20 scenarios at 0.9 / 0.7 / 95 %. With 20 epochs no test whatever lets an agent of 0.95 through in
    98 % of runs: the most powerful one has 0.93 per scenario. With 50 it does, at 334 conversations."""
    test = rate_test(REFERENCE, 3, 50)
    fifty = error_rates([test] * 20, good=0.95, bad=0.7)
    assert fifty.green_when_good > 0.98
    assert 20 * test.chances(0.95).epochs == pytest.approx(335, abs=2)
    assert fifty.false_green <= 0.05
    assert 20 * test.chances(1.0).epochs == 240
    at_bound = error_rates([test] * 20, good=0.9, bad=0.7)
    assert at_bound.false_red <= 0.05
    twenty = error_rates([rate_test(REFERENCE, 3, 20)] * 20, good=0.95, bad=0.7)
    assert twenty.green_when_good == pytest.approx(0.226, abs=0.001)
    assert twenty.false_green == pytest.approx(0.0424, abs=0.0001)


def test_the_last_look_uses_what_the_earlier_ones_left() -> None:
    """18 of 20 is accepted, which Wald's bound alone never would with two failures."""
    test = rate_test(REFERENCE, 3, 20)
    assert test.decide([False, False] + [True] * 18).outcome is StatisticalOutcome.ACCEPT
    assert test.decide([True] * 12) == (StatisticalOutcome.ACCEPT, 12, 12, 0)
    assert test.decide([False] * 6) == (StatisticalOutcome.REJECT, 6, 0, 0)


def test_a_scenario_that_can_no_longer_be_decided_stops() -> None:
    decision = rate_test(REFERENCE, 3, 20).decide([True] * 10 + [False] * 3 + [True] * 7)
    assert decision.outcome is StatisticalOutcome.UNDECIDED
    assert decision.epochs == 17


def test_a_lost_epoch_counts_both_ways() -> None:
    test = rate_test(REFERENCE, 3, 20)
    assert test.decide([None] + [True] * 12).outcome is StatisticalOutcome.CONTINUE
    assert test.decide([None] + [True] * 17) == (StatisticalOutcome.ACCEPT, 18, 17, 1)
    assert test.decide([None] * 10 + [True] * 10).outcome is StatisticalOutcome.UNDECIDED
    # Rejected in the worst case, which the best case may still come to.
    test = rate_test(PassRateRule(0.9, 0.5), 1, 12)
    assert test.decide([False, None]).outcome is StatisticalOutcome.CONTINUE
    assert test.decide([False, None, False, False]) == (StatisticalOutcome.REJECT, 4, 0, 1)


def test_epochs_are_taken_in_their_order_and_replaced_once() -> None:
    assert in_epoch_order({0: True, 2: False}, 3) == (True,)
    assert in_epoch_order({0: True, 1: None, 2: False}, 3) == (True,)
    assert in_epoch_order({0: True, 1: None, 2: False, 3: True}, 3) == (True, True, False)
    assert in_epoch_order({0: True, 1: None, 2: None, 3: None, 4: False}, 3) == (True, None, False)
    assert in_epoch_order({}, 3) == ()


@given(st.lists(st.sampled_from([True, False, None]), min_size=12, max_size=12), st.randoms())
def test_a_later_arrival_never_changes_what_was_read(outcomes: list[bool | None], random: Random) -> None:
    finished: dict[int, bool | None] = {}
    seen: tuple[bool | None, ...] = ()
    for epoch in random.sample(range(12), 12):
        finished[epoch] = outcomes[epoch]
        now = in_epoch_order(finished, 6)
        assert now[: len(seen)] == seen
        seen = now


@pytest.mark.parametrize(
    "arguments", [(0.7, 0.9), (0.9, 0.9), (0.9, 0.0), (1.1, 0.5), (0.9, 0.7, 1.0), (0.9, 0.7, 0.95, 0)]
)
def test_nonsense_rules_are_refused(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ValueError):
        PassRateRule(*arguments)  # type: ignore[arg-type]


def test_nonsense_numbers_of_epochs_are_refused() -> None:
    for least, most in ((0, 3), (4, 3)):
        with pytest.raises(ValueError):
            rate_test(REFERENCE, least, most)


def test_a_threshold_of_four_fifths_at_three_epochs_is_a_coin() -> None:
    rates = error_rates([share_rule(0.8, 3)] * 20, good=0.95, bad=0.7)
    assert rates.green_when_good == pytest.approx(0.95**60)
    assert rates.false_red == pytest.approx(1 - 0.95**60)
    assert rates.false_green == pytest.approx(0.343)


def test_thresholds_count_as_they_are_written() -> None:
    assert share_rule(0.7, 10).accept_from == 7
    assert share_rule(1.0, 3).accept_from == 3
    assert share_rule(0.0, 3).accept_from == 0
    rule = pass_hat_k_rule(3, 0.4, 5)
    assert rule is not None
    assert rule.accept_from == 4
    assert pass_hat_k_rule(3, 0.5, 2) is None


def test_the_least_epochs_are_those_of_a_perfect_agent() -> None:
    assert least_epochs(REFERENCE) == 9
    assert rate_test(REFERENCE, 9, 9).chances(1.0).accept == 1
    assert rate_test(REFERENCE, 8, 8).chances(1.0).accept == 0


def test_how_many_epochs_let_a_good_agent_through() -> None:
    n = epochs_for_green(REFERENCE, 0.95, chance=0.98, min_epochs=3)
    assert n is not None
    assert 40 < n <= 50
    assert rate_test(REFERENCE, 3, n).chances(0.95).accept ** 20 >= 0.98
    assert epochs_for_green(REFERENCE, 0.6) is None


@pytest.mark.parametrize(("successes", "n"), [(3, 3), (0, 3), (8, 10), (13, 15), (10, 20)])
def test_the_epochs_that_would_decide_do(successes: int, n: int) -> None:
    more = epochs_to_decide(successes, n, REFERENCE)
    assert more is not None
    total = n + more
    kept = [round(successes * total / n + shift) for shift in (-1, 0, 1)]
    look = rate_test(REFERENCE, total, total).looks[total]
    assert {look.outcome_at(count) for count in kept} & {StatisticalOutcome.ACCEPT, StatisticalOutcome.REJECT}
    assert epochs_to_decide(12, 12, REFERENCE) == 0
    assert epochs_to_decide(0, 0, REFERENCE) is None


def test_the_chances_of_a_comparison_are_drawn_with_a_seed() -> None:
    before, margins = [1.0] * 6, Margins(0.2, 0.3)
    first = no_regression_chances(before, [0.5] * 6, 5, margins)
    assert first == no_regression_chances(before, [0.5] * 6, 5, margins)
    assert first.accept <= 0.01
    assert no_regression_chances(before, before, 5, margins).accept == 1
