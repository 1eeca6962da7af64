"""The error rates of a gate: when they are known, and when a gate is called uninformative."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.verdict.run_gates.error_rates import (
    BAD,
    GOOD,
    GateErrorRates,
    count_error_rates,
    unknown_error_rates,
)
from agenteval.verdict.statistics import pass_hat_k_rule


def rates(false_red: Any = 0.0, false_green: Any = 0.0, green: Any = 1.0, **more: Any) -> GateErrorRates:
    return GateErrorRates("g", 0.95, 0.7, false_red, false_green, green, **more)


@pytest.mark.parametrize(
    ("found", "uninformative"),
    [
        (rates(), False),
        (rates(false_red=0.2, green=0.8), False),
        (rates(false_red=0.21, green=0.79), True),
        (rates(false_green=0.2), False),
        (rates(false_green=0.21), True),
        (rates(false_red=0.05, green=0.8), False),
        (rates(false_red=0.05, green=0.7), True),  # undecided too often
        (rates(false_red=None), True),
        (rates(false_green=None), True),
        (rates(green=None), True),
        (rates(None, None, None, is_known=False), False),
    ],
)
def test_a_gate_that_is_wrong_or_open_too_often(found: GateErrorRates, uninformative: bool) -> None:
    assert found.is_uninformative is uninformative


@pytest.mark.parametrize(
    ("found", "facts", "absent"),
    [
        (rates(0.05, 0.1, 0.95), ["g", "95 %", "70 %", "5 %", "10 %"], ["undecided", "—"]),
        (rates(0.05, 0.1, 0.9), ["undecided in 5 %"], ["—"]),
        (rates(0.05, 0.1, 0.9455), [], ["undecided"]),
        (rates(0.05, 0.1, 0.944), ["undecided in 0.6 %"], []),
        (rates(green=None, advice="more epochs"), ["g: more epochs"], ["%"]),
        (rates(false_green=None, advice="more epochs"), ["g: more epochs"], ["%"]),
        (rates(0.0005, 0.1, 0.9995), ["under 0.1 %"], []),
        (rates(0.0, 0.001, 1.0), ["0 %", "0.1 %"], ["under"]),
        (rates(0.05, 0.1, 0.95, advice="more epochs"), ["— more epochs"], []),
        (rates(0.5, 0.1, 0.5), ["tossing a coin"], []),
        (rates(0.5, 0.1, 0.5, advice="more epochs"), ["tossing a coin; more epochs"], []),
        (rates(None, advice="more epochs"), ["g: more epochs"], ["%"]),
        (rates(0.05, 0.1, 0.95, bad_where="everywhere"), ["everywhere"], ["in one scenario"]),
        (rates(0.05, 0.1, 0.95), ["in one scenario"], []),
        (rates(0.055, 0.125, 0.945), ["5.5 %", "12.5 %"], []),
    ],
)
def test_the_numbers_of_the_sentence(found: GateErrorRates, facts: list[str], absent: list[str]) -> None:
    text = found.sentence
    assert [fact for fact in facts if fact not in text] == []
    assert [fact for fact in absent if fact in text] == []


def test_rates_that_cannot_be_known() -> None:
    found = unknown_error_rates("g", "w", "known")
    assert (found.false_red, found.false_green, found.green, found.is_known) == (None, None, None, False)
    assert (found.gate, found.where, found.advice, found.good, found.bad) == ("g", "w", "known", GOOD, BAD)


def one_of_one() -> Any:
    design = pass_hat_k_rule(1, 1.0, 1)
    assert design is not None
    return design


def test_a_gate_that_counts_successes() -> None:
    found = count_error_rates("g", [one_of_one()], "w", "more", good=0.9, bad=0.1)
    assert (found.good, found.bad, found.where) == (0.9, 0.1, "w")
    assert (found.green, found.false_red) == (pytest.approx(0.9), pytest.approx(0.1))
    assert found.false_green == pytest.approx(0.1)
    assert found.advice == ""  # it is informative
    two = count_error_rates("g", [one_of_one(), one_of_one()], "w", "more")
    assert (two.good, two.bad) == (GOOD, BAD)
    assert two.green == pytest.approx(GOOD**2)
    assert two.false_green == pytest.approx(BAD)  # the other never fails
    assert two.advice == "more"
