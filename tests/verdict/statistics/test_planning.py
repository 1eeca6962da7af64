"""What a gate's error rates rest on: how many successes it needs, and how likely they are."""

from __future__ import annotations

import pytest

from agenteval.verdict.statistics import mean_pass_hat_k_chance, pass_hat_k_rule


@pytest.mark.parametrize("k", [1, 3, 5])
def test_pass_hat_k_is_estimable_from_k_epochs_on(k: int) -> None:
    assert pass_hat_k_rule(k, 1.0, k - 1) is None
    rule = pass_hat_k_rule(k, 1.0, k)
    assert rule is not None
    assert (rule.accept_from, rule.epochs) == (k, k)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_mean_of_pass_hat_k_is_estimable_if_the_shortest_scenario_has_k_epochs(k: int) -> None:
    assert mean_pass_hat_k_chance((k - 1, k), k, 1.0, 0.5) is None
    chance = mean_pass_hat_k_chance((k, k), k, 1.0, 0.5)
    assert chance == pytest.approx(0.5 ** (2 * k)), "each epoch of both scenarios has to succeed"


def test_nothing_is_estimable_without_scenarios() -> None:
    assert mean_pass_hat_k_chance((), 1, 1.0, 0.5) is None
