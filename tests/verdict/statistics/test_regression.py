"""Whether one run is worse than another: large drops, single failures, and the words for each scenario."""

from __future__ import annotations

import pytest

from agenteval.verdict.statistics.estimates import Tally
from agenteval.verdict.statistics.paired_tests import Pair, fisher_exact
from agenteval.verdict.statistics.rate_test import StatisticalOutcome
from agenteval.verdict.statistics.regression import (
    Change,
    Margins,
    compare,
    drop_interval,
    is_large,
    is_one_failure,
    non_inferiority,
    regression_outcome,
)

ACCEPT, REJECT, OPEN = StatisticalOutcome.ACCEPT, StatisticalOutcome.REJECT, StatisticalOutcome.UNDECIDED
MARGINS = Margins(0.1, 0.3)


def pair(before: tuple[int, int], after: tuple[int, int], *, lost: int = 0, id: str = "a") -> Pair:
    """Successes and decided epochs of both runs; ``lost``: epochs of the second that are missing."""
    return Pair(id, Tally(before[0], before[1], before[1]), Tally(after[0], after[1], after[1] + lost))


@pytest.mark.parametrize(
    ("before", "after", "one"),
    [
        ((5, 5), (5, 5), True),
        ((5, 5), (4, 5), True),
        ((5, 5), (3, 5), False),
        ((3, 5), (2, 5), True),
        ((3, 5), (1, 5), False),
        ((1, 1), (0, 1), True),
        ((100, 100), (0, 1), True),
        ((10, 10), (18, 20), False),
        ((10, 10), (19, 20), True),
        ((0, 5), (0, 5), True),
        ((2, 5), (5, 5), True),
    ],
)
def test_a_drop_of_one_failure(before: tuple[int, int], after: tuple[int, int], one: bool) -> None:
    assert is_one_failure(pair(before, after)) is one


@pytest.mark.parametrize(
    ("before", "after", "margin", "large"),
    [
        ((10, 10), (7, 10), 0.3, False),  # at the margin
        ((10, 10), (7, 10), 0.29, True),
        ((10, 10), (6, 10), 0.3, True),
        ((10, 10), (10, 10), 0.0, False),
        ((10, 10), (9, 10), 0.0, False),  # one failure
        ((10, 10), (8, 10), 0.0, True),
        ((5, 10), (10, 10), 0.3, False),
        ((0, 0), (5, 5), 0.3, False),
        ((5, 5), (0, 0), 0.3, False),
    ],
)
def test_a_large_drop(before: tuple[int, int], after: tuple[int, int], margin: float, large: bool) -> None:
    assert is_large(pair(before, after), Margins(0.1, margin)) is large


def test_the_interval_of_a_drop() -> None:
    found = drop_interval(pair((10, 10), (5, 10)))
    assert 0 < found.low < 0.5 < found.high <= 1
    turned = drop_interval(pair((5, 10), (10, 10)))
    assert turned == pytest.approx((-found.high, -found.low))
    lost = drop_interval(pair((10, 10), (5, 10), lost=3))
    assert lost.low < found.low
    assert lost.high > found.high - 0.2
    nothing = drop_interval(Pair("a", Tally(0, 0, 3), Tally(0, 0, 3)))
    assert nothing.low < 0 < nothing.high


def same(n: int, scenarios: int) -> list[Pair]:
    return [pair((n, n), (n, n), id=f"s{k}") for k in range(scenarios)]


@pytest.mark.parametrize(
    ("pairs", "outcome", "dropped", "perhaps"),
    [
        (same(100, 3), ACCEPT, (), ()),
        (same(1, 1), OPEN, (), ()),
        ([pair((20, 20), (0, 20))], REJECT, ("a",), ()),
        ([*same(100, 9), pair((5, 5), (2, 5), id="a")], OPEN, (), ("a",)),
        ([*same(100, 9), pair((5, 5), (2, 5), id="b"), pair((5, 5), (2, 5), id="a")], OPEN, (), ("b", "a")),
        ([*same(100, 9), pair((20, 20), (0, 20), id="a")], REJECT, ("a",), ()),
    ],
)
def test_not_worse(
    pairs: list[Pair], outcome: StatisticalOutcome, dropped: tuple[str, ...], perhaps: tuple[str, ...]
) -> None:
    found = non_inferiority(pairs, MARGINS)
    assert (found.outcome, found.dropped, found.perhaps) == (outcome, dropped, perhaps)
    assert regression_outcome(pairs, MARGINS) is outcome
    assert (found.epochs_to_decide is not None) is (outcome is OPEN)
    assert found.drop is not None
    assert found.surely_above <= found.drop <= found.surely_below


def test_a_drop_that_is_not_known() -> None:
    found = non_inferiority([pair((5, 5), (0, 0), lost=5)], MARGINS)
    assert (found.outcome, found.drop, found.epochs_to_decide) == (OPEN, None, None)


def test_a_drop_of_the_mean_beyond_its_margin() -> None:
    pairs = [pair((20, 20), (14, 20), id=f"s{n}") for n in range(20)]
    assert non_inferiority(pairs, MARGINS).outcome is REJECT
    assert non_inferiority(pairs, Margins(0.5, 0.5)).outcome is ACCEPT
    assert non_inferiority(pairs, MARGINS).drop == pytest.approx(0.3)


def test_each_scenario_is_paired_once() -> None:
    for judge in (lambda pairs: non_inferiority(pairs, MARGINS), compare):
        with pytest.raises(ValueError):
            judge([pair((1, 1), (1, 1)), pair((1, 1), (1, 1))])


@pytest.mark.parametrize(
    ("before", "after", "lost", "change"),
    [
        ((20, 20), (2, 20), 0, Change.REGRESSED),
        ((2, 20), (20, 20), 0, Change.IMPROVED),
        ((200, 200), (200, 200), 0, Change.UNCHANGED),
        ((3, 3), (2, 3), 0, Change.UNDECIDED),
        ((20, 20), (2, 2), 18, Change.UNDECIDED),
        ((20, 20), (0, 0), 20, Change.UNDECIDED),
    ],
)
def test_the_word_for_a_scenario(
    before: tuple[int, int], after: tuple[int, int], lost: int, change: Change
) -> None:
    found = compare([pair(before, after, lost=lost)])
    (only,) = found.scenarios
    assert only.change is change
    assert (only.epochs_to_decide is None) is (change is not Change.UNDECIDED or not after[1])
    kind, harsh = only.pair.kindest(), only.pair.harshest()
    assert only.p_drop == fisher_exact(kind.before, kind.after)
    assert only.p_rise == fisher_exact(harsh.before, harsh.after, "rise")
    assert only.low <= only.high


def test_a_comparison_rests_on_the_scenarios_known_of_both() -> None:
    found = compare([pair((10, 10), (5, 10)), pair((10, 10), (0, 0), lost=10, id="b")])
    assert found.change == pytest.approx(-0.5)
    assert found.these_scenarios.low < -0.5 < found.these_scenarios.high
    nothing = compare([Pair("a", Tally(0, 0, 1), Tally(1, 1, 1))])
    assert (nothing.change, nothing.users_like_these, nothing.sign_flip) == (None, None, None)
    assert [each.pair.scenario for each in found.scenarios] == ["a", "b"]
    assert found.sign_flip
    assert found.users_like_these == (-0.5, -0.5)
    assert found.mcnemar is None
    assert compare([pair((1, 1), (0, 1))]).mcnemar is not None


def test_a_wide_margin_below_and_a_far_end_above_leave_a_scenario_open() -> None:
    (rose,) = compare([pair((8, 20), (12, 20))], unchanged_within=0.2).scenarios
    assert -0.2 < rose.low < 0.2 < rose.high
    assert rose.change is Change.UNDECIDED


def test_the_words_for_changes() -> None:
    assert [str(each) for each in Change] == ["regressed", "improved", "unchanged", "not decided"]
