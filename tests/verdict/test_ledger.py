"""Prices, the lines of a report, and the budget at which a run stops."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agenteval.core.config import BudgetConfig, Price
from agenteval.core.errors import BudgetError
from agenteval.core.trajectory import Usage
from agenteval.verdict.ledger import (
    REPLY_TOKENS,
    BudgetLedger,
    LedgerLine,
    cost_of,
    how_to_price,
    lines_of,
    price_of,
    price_usage,
    total_cost,
)

PRICE = Price(input=2.0, output=8.0)
CACHED = Price(input=2.0, output=8.0, cached_input=0.5)
FREE_CACHE = Price(input=2.0, output=8.0, cached_input=0.0)


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("openai/m", PRICE),
        ("openai/other", None),
        ("bot", CACHED),
        ("other", None),
        ("scripted/a.yaml", Price(input=0, output=0)),
        ("local/a.gguf", Price(input=0, output=0)),
        ("scripted", None),  # an agent of that name
        ("local/priced.gguf", PRICE),
        ("unheard/m", None),
    ],
)
def test_prices_by_name(name: str, price: Price | None) -> None:
    prices = {"openai/m": PRICE, "bot": CACHED, "local/priced.gguf": PRICE}
    assert price_of(name, prices) == price


@pytest.mark.parametrize(
    ("usage", "price", "dollars"),
    [
        (Usage(), PRICE, 0),
        (Usage(input_tokens=1_000_000), PRICE, 2),
        (Usage(output_tokens=1_000_000), PRICE, 8),
        (Usage(input_tokens=1_000_000, output_tokens=500_000), PRICE, 6),
        # Cached tokens are part of the input.
        (Usage(input_tokens=1_000_000, cached_tokens=400_000), PRICE, 2),
        (Usage(input_tokens=1_000_000, cached_tokens=400_000), CACHED, 1.4),
        (Usage(input_tokens=1_000_000, cached_tokens=400_000), FREE_CACHE, 1.2),
        (Usage(input_tokens=1_000_000, cached_tokens=1_000_000), CACHED, 0.5),
        (Usage(input_tokens=1_000_000, cached_tokens=9_000_000), CACHED, 0.5),
    ],
)
def test_what_usage_costs(usage: Usage, price: Price, dollars: float) -> None:
    assert cost_of(usage, price) == pytest.approx(dollars)


USED = Usage(calls=1, input_tokens=1_000_000)


@pytest.mark.parametrize(
    ("usage", "price", "cost"),
    [
        (USED, PRICE, 2.0),
        (USED, None, None),
        (USED.model_copy(update={"cost": 7.0}), PRICE, 7.0),  # the provider reported it
        (USED.model_copy(update={"cost": 0.0}), PRICE, 0.0),
        (USED.model_copy(update={"unsplit": True}), PRICE, None),
        (Usage(), PRICE, None),
        (Usage(cached_calls=3), PRICE, None),
        (Usage(calls=1), PRICE, 0.0),
        (USED.model_copy(update={"estimated": True}), PRICE, 2.0),
    ],
)
def test_the_cost_of_usage_if_it_is_known(usage: Usage, price: Price | None, cost: float | None) -> None:
    found = price_usage(usage, price)
    assert found.cost == cost
    assert found.model_copy(update={"cost": usage.cost}) == usage


def test_how_a_price_is_added() -> None:
    assert "openai/m" in how_to_price("openai/m")


# ── lines ────────────────────────────────────────────────────────────────────────────────────────


def test_lines_are_summed_by_role_and_model_in_the_order_of_roles() -> None:
    one, two = Usage(calls=1, input_tokens=5), Usage(calls=2, output_tokens=3)
    spent = [
        LedgerLine("dedup", "m", one),
        LedgerLine("judge", "z", one),
        LedgerLine("judge", "a", one),
        LedgerLine("user", "m", two),
        LedgerLine("judge", "z", two),
        LedgerLine("agent", "bot", Usage(cached_calls=2)),
        LedgerLine("agent", "idle", Usage()),
    ]
    assert lines_of(spent) == (
        LedgerLine("agent", "bot", Usage(cached_calls=2)),
        LedgerLine("user", "m", two),
        LedgerLine("judge", "a", one),
        LedgerLine("judge", "z", one + two),
        LedgerLine("dedup", "m", one),
    )
    assert lines_of([]) == ()


def test_an_unknown_cost_is_never_zero() -> None:
    known = LedgerLine("judge", "m", Usage(calls=1, cost=0.5))
    free = LedgerLine("user", "m", Usage(calls=1, cost=0.0))
    unknown = LedgerLine("agent", "bot", Usage(calls=1))
    cached = LedgerLine("agent", "bot", Usage(cached_calls=1))
    assert total_cost([known, free, cached]) == (0.5, ())
    assert total_cost([known, free, cached]).is_fully_known is True
    assert total_cost([known, unknown, known]) == (1.0, (unknown,))
    assert total_cost([unknown]).is_fully_known is False
    assert total_cost([]) == (0, ())


# ── the budget ───────────────────────────────────────────────────────────────────────────────────


class Watched:
    """A ledger, and which stops it reported."""

    def __init__(self, **budget: Any) -> None:
        self.stops: list[str] = []
        self.ledger = BudgetLedger(
            BudgetConfig.model_validate(budget),
            lambda _: self.stops.append("run"),
            lambda _: self.stops.append("role"),
        )

    def call(
        self, usage: Usage | None = None, *, prompt: int = 0, price: Price | None = None, role: str = ""
    ) -> bool:
        """Begin a call and, with ``usage``, end it. Return false if the budget refused it."""
        try:
            call = self.ledger.begin("m", price, prompt, role)
        except BudgetError:
            return False
        if usage is not None:
            call.settle(usage)
        return True


ONE = Usage(calls=1)


def test_calls_are_counted_exactly() -> None:
    watched = Watched(max_calls=3)
    assert [watched.call(ONE), watched.call(), watched.call(), watched.call()] == [True, True, True, False]
    assert watched.call() is False
    assert watched.stops == ["run"]  # once


def test_calls_from_before_the_run_was_resumed() -> None:
    watched = Watched(max_calls=3)
    watched.ledger.carry_over(Usage(calls=2))
    assert [watched.call(), watched.call()] == [True, False]


@pytest.mark.parametrize(
    ("budget", "spent", "in_flight", "prompt", "numbers"),
    [
        ({"max_calls": 7}, Usage(calls=7), 0, 0, ["7", "7"]),
        ({"max_calls": 7}, Usage(calls=5), 2, 0, ["2", "5", "7"]),
        ({"max_tokens": 1000}, Usage(calls=1, input_tokens=900), 0, 300, ["1,000", "500", "900"]),
        ({"max_tokens": 1000}, Usage(calls=1, input_tokens=500), 1, 100, ["1,000", "300", "300", "500"]),
        ({"max_cost": 1}, Usage(calls=1, cost=1.5), 0, 0, ["0.0000", "1.0000", "1.5000"]),
    ],
)
def test_the_numbers_that_explain_a_refusal(
    budget: Any, spent: Usage, in_flight: int, prompt: int, numbers: list[str]
) -> None:
    ledger = Watched(**budget).ledger
    ledger.carry_over(spent)
    for _ in range(in_flight):
        ledger.begin("m", None, prompt)
    with pytest.raises(BudgetError) as error:
        ledger.begin("m", None, prompt)
    text = str(error.value)
    assert sorted(re.findall(r"\d[\d,.]*\d|\d", text)) == numbers
    assert next(iter(budget)) in text
    assert ("USD" in text) is ("max_cost" in budget)


def test_a_budget_without_limits_refuses_nothing() -> None:
    watched = Watched()
    assert all(watched.call(prompt=10**9) for _ in range(50))
    assert watched.stops == []


def tokens(number: int) -> Usage:
    return Usage(calls=1, input_tokens=number)


def test_tokens_of_calls_in_flight_are_estimated() -> None:
    watched = Watched(max_tokens=1000)
    fits = 1000 - REPLY_TOKENS
    assert Watched(max_tokens=1000).call(prompt=fits) is True
    assert Watched(max_tokens=1000).call(prompt=fits + 1) is False
    assert [watched.call(prompt=300), watched.call(prompt=300), watched.call(prompt=300)] == [
        True,
        True,
        False,
    ]


def test_a_call_without_a_known_prompt_fits_until_the_limit_is_reached() -> None:
    watched = Watched(max_tokens=100)
    assert [watched.call(tokens(99)), watched.call(tokens(1)), watched.call()] == [True, False, False]
    assert Watched(max_tokens=100).call() is True
    full = Watched(max_tokens=100)
    assert [full.call(tokens(100)), full.call()] == [True, False]


def test_later_estimates_are_means_of_earlier_calls() -> None:
    watched = Watched(max_tokens=2000)
    watched.call(Usage(calls=2, input_tokens=100, output_tokens=300))
    # 400 are spent; a call needs 50 + 150, or its prompt + 150.
    assert watched.ledger.begin("m", None, 0).reserved == (1, 200, 0.0)
    assert watched.ledger.begin("m", None, 80).reserved == (1, 230, 0.0)
    assert watched.ledger.begin("other", None, 10).reserved[1] == 10 + REPLY_TOKENS


@pytest.mark.parametrize(
    ("budget", "role", "needs", "counts"),
    [
        ({}, "", False, False),
        ({"max_calls": 5}, "", False, False),
        ({"max_tokens": 5}, "", True, True),
        ({"max_cost": 5}, "", True, False),
        ({"by_role": {"judge": {"max_tokens": 5}}}, "judge", True, True),
        ({"by_role": {"judge": {"max_tokens": 5}}}, "user", False, False),
        ({"by_role": {"judge": {"max_cost": 5}}}, "judge", True, False),
        ({"max_tokens": 5, "by_role": {"judge": {"max_calls": 5}}}, "judge", True, True),
    ],
)
def test_when_a_size_is_needed(budget: Any, role: str, needs: bool, counts: bool) -> None:
    ledger = Watched(**budget).ledger
    assert (ledger.needs_estimate(role), ledger.counts_tokens(role)) == (needs, counts)


def test_costs_of_calls_in_flight() -> None:
    price = Price(input=1e6, output=0)  # a dollar for each token
    watched = Watched(max_cost=10.0)
    assert [watched.call(prompt=5, price=price), watched.call(prompt=5, price=price)] == [True, True]
    assert watched.call(prompt=0) is False  # all is reserved
    over = Watched(max_cost=10.0)
    assert [over.call(prompt=6, price=price), over.call(prompt=5, price=price)] == [True, False]
    unpriced = Watched(max_cost=10.0)
    assert all(unpriced.call(prompt=100) for _ in range(5))


def test_costs_that_add_up_to_the_limit_are_not_above_it() -> None:
    watched = Watched(max_cost=0.3)
    price = Price(input=1e5, output=0)
    assert [watched.call(prompt=1, price=price) for _ in range(4)] == [True, True, True, False]


def test_reported_costs_count() -> None:
    watched = Watched(max_cost=1.0)
    assert watched.call(Usage(calls=1, cost=0.9)) is True
    assert watched.call(Usage(calls=1, cost=0.2)) is True
    assert watched.call() is False


def test_the_limit_of_a_role_stops_only_that_role() -> None:
    watched = Watched(max_calls=9, by_role={"judge": {"max_calls": 1}})
    assert [watched.call(role="judge"), watched.call(role="judge"), watched.call(role="judge")] == [
        True,
        False,
        False,
    ]
    assert watched.stops == ["role"]
    assert watched.call(role="user") is True
    assert watched.call() is True


def test_calls_of_a_role_count_for_the_run_too() -> None:
    watched = Watched(max_calls=2, by_role={"judge": {"max_calls": 5}})
    assert [watched.call(ONE, role="judge"), watched.call(ONE, role="judge")] == [True, True]
    assert [watched.call(role="judge"), watched.call(role="user")] == [False, False]
    assert watched.stops == ["run"]


def test_a_call_may_need_more_requests() -> None:
    watched = Watched(max_calls=2)
    call = watched.ledger.begin("m", None, 0)
    call.request()  # reserved already
    call.request()
    with pytest.raises(BudgetError):
        call.request()
    call.settle(Usage(calls=2))
    assert watched.call() is False


def test_what_a_call_did_not_use_is_free_again() -> None:
    watched = Watched(max_calls=2)
    call = watched.ledger.begin("m", None, 0)
    call.request()
    call.request()
    assert watched.call() is False
    call.settle(ONE)
    assert watched.call() is True
    assert watched.call() is False


@pytest.mark.parametrize(
    ("usage", "failed", "left"),
    [
        (Usage(), True, 1),  # a failed call counts
        (Usage(), False, 2),  # it came from the cache
        (Usage(calls=2), True, 0),
        (Usage(calls=1), False, 1),
    ],
)
def test_a_failed_call_counts_as_a_call(usage: Usage, failed: bool, left: int) -> None:
    watched = Watched(max_calls=2)
    watched.ledger.begin("m", None, 0).settle(usage, is_failed=failed)
    assert [watched.call() for _ in range(3)] == [n < left for n in range(3)]
