"""Gates over repeated runs as pure rules: what may not matter does not, and no epoch is run in vain."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agenteval.verdict.statistics import (
    PassRateRule,
    RateTest,
    StatisticalOutcome,
    epochs_to_start,
    in_epoch_order,
    mean_pass_hat_k,
    mean_pass_hat_k_chance,
    rate_test,
)
from agenteval.verdict.statistics.estimates import Tally

RULE = PassRateRule(at_least=0.9, reject_below=0.7, scenarios=3)
TEST = rate_test(RULE, 3, 20)


def played(test: RateTest, outcomes: list[bool | None], in_flight: int, seed: int) -> dict[int, bool | None]:
    """Every epoch that is run when up to ``in_flight`` go on at the same time and end in any order.
    ``outcomes`` are those of epochs 0, 1, …, replacements included."""
    random, running, finished = Random(seed), set[int](), dict[int, bool | None]()
    while True:
        known = in_epoch_order(finished, test.max_epochs)
        needed = test.min_further_epochs(known)
        wanted = epochs_to_start(finished, len(known) + needed, test.max_epochs) if needed else ()
        fresh = [epoch for epoch in wanted if epoch not in running and epoch not in finished]
        if fresh and len(running) < in_flight:
            running.add(fresh[0])
        elif running:
            epoch = random.choice(sorted(running))
            running.remove(epoch)
            finished[epoch] = outcomes[epoch % len(outcomes)]
        else:
            return finished


coins = st.lists(st.sampled_from([True, True, True, False, None]), min_size=1, max_size=60)
certain = st.lists(st.booleans(), min_size=1, max_size=60)


@given(coins, st.integers(1, 12), st.integers())
def test_every_sequence_comes_to_an_end_that_no_further_epoch_would_change(
    outcomes: list[bool | None], in_flight: int, seed: int
) -> None:
    finished = played(TEST, outcomes, in_flight, seed)
    decision = TEST.decide(in_epoch_order(finished, TEST.max_epochs))
    assert decision.outcome is not StatisticalOutcome.CONTINUE


@given(certain, st.integers(1, 12), st.integers())
def test_no_epoch_is_run_in_vain(outcomes: list[bool | None], in_flight: int, seed: int) -> None:
    finished = played(TEST, outcomes, in_flight, seed)
    decision = TEST.decide(in_epoch_order(finished, TEST.max_epochs))
    assert len(finished) == decision.epochs


@given(coins, st.integers(1, 12), st.integers(), st.integers())
def test_the_order_of_completion_decides_nothing(
    outcomes: list[bool | None], in_flight: int, one: int, other: int
) -> None:
    said = [
        TEST.decide(in_epoch_order(played(TEST, outcomes, in_flight, seed), TEST.max_epochs))
        for seed in (one, other)
    ]
    assert said[0] == said[1]


@given(certain)
def test_what_is_needed_for_sure_is_needed(outcomes: list[bool | None]) -> None:
    """One epoch fewer than that never decides, whatever it brings."""
    known = outcomes[: TEST.max_epochs]
    needed = TEST.min_further_epochs(known)
    if needed:
        for filling in (True, False):
            short = [*known, *[filling] * (needed - 1)]
            assert TEST.decide(short).outcome is StatisticalOutcome.CONTINUE


@given(st.lists(st.integers(3, 12), min_size=1, max_size=8), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_the_chance_of_a_mean_pass_hat_k_is_that_of_its_definition_at_the_ends(
    counts: list[int], bound: float
) -> None:
    assert abs((mean_pass_hat_k_chance(counts, 3, bound, 1.0) or 0) - 1) < 1e-9
    assert ((mean_pass_hat_k_chance(counts, 3, bound, 0.0) or 0) > 0.5) == (bound == 0)
    assert mean_pass_hat_k_chance([*counts, 2], 3, bound, 0.5) is None


def test_the_chance_of_a_mean_pass_hat_k_is_what_happens() -> None:
    random, runs, reached = Random(1), 4000, 0
    for _ in range(runs):
        tallies = [Tally.of(random.random() < 0.8 for _ in range(5)) for _ in range(4)]
        found = mean_pass_hat_k(tallies, 3)
        assert found is not None
        reached += found.low >= 0.5
    exact = mean_pass_hat_k_chance([5] * 4, 3, 0.5, 0.8)
    assert exact is not None
    assert abs(reached / runs - exact) < 0.03  # four standard errors
