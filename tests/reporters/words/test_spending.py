"""What a run cost: the known sum, and what it lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.config import BudgetConfig, Price
from agenteval.core.trajectory import Usage
from agenteval.reporters.words.spending import amount, brief_sum, dollars, sum_text, unknown_texts
from agenteval.verdict.ledger import LedgerLine
from agenteval.verdict.report import Report
from tests.support.verdict_runs import PASS, report_of, with_suite

MODEL = "openai/x"
PRICES = {MODEL: Price(input=1.0, output=2.0)}


def line(role: str = "judge", name: str = MODEL, cost: float | None = None, **more: Any) -> LedgerLine:
    return LedgerLine(role, name, Usage(**{"calls": 1, "cost": cost, **more}))


def spent(*lines: LedgerLine, **suite: Any) -> Report:
    return with_suite(replace(report_of({"a": [PASS]}), ledger=lines), **suite)


def budget(**limits: Any) -> BudgetConfig:
    return BudgetConfig.model_validate(limits)


@pytest.mark.parametrize(
    ("cost", "text"),
    [(0.0, "0"), (0.00001, "<0.0001"), (0.0001, "0.0001"), (0.41, "0.4100"), (12.34567, "12.3457")],
)
def test_an_amount_is_zero_only_if_nothing_was_spent(cost: float, text: str) -> None:
    assert amount(cost) == text


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (Usage(calls=1), "cost unknown"),
        (Usage(calls=1, cost=0.0), "cost 0 USD"),
        (Usage(calls=1, cost=0.0125), "cost 0.0125 USD"),
        (Usage(calls=1, cost=0.0125, estimated=True), "cost ≈0.0125 USD"),
    ],
)
def test_the_cost_of_a_usage(usage: Usage, text: str) -> None:
    assert dollars(usage) == text


KNOWN, GUESSED = line(cost=0.5), line("user", cost=0.25, estimated=True)
AGENT, NAMELESS = line("agent", "bot"), line("dedup", "")


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([], ""),
        ([line()], ""),
        ([line(cost=0.0)], ""),
        ([KNOWN], "0.5000 USD in total"),
        ([KNOWN, GUESSED], "≈0.7500 USD in total"),
        ([KNOWN, line(cost=0.0, estimated=True)], "0.5000 USD in total"),
        ([KNOWN, AGENT], "at least 0.5000 USD; the cost of bot is unknown"),
        ([KNOWN, AGENT, line("user"), line("judge"), NAMELESS],
         "at least 0.5000 USD; the cost of bot, openai/x, dedup is unknown"),
        ([KNOWN, line("user", calls=0, cached_calls=3)], "0.5000 USD in total"),
    ],
)  # fmt: skip
def test_the_sum(lines: list[LedgerLine], text: str) -> None:
    assert sum_text(spent(*lines)) == text


@pytest.mark.parametrize(
    ("lines", "limits", "text"),
    [
        ([], {}, ""),
        ([AGENT], {}, ""),
        ([AGENT], {"max_cost": 1}, "cost unknown"),
        ([line()], {}, "cost unknown"),
        ([KNOWN], {}, "0.5000 USD"),
        ([KNOWN], {"max_cost": 1}, "0.5000 of 1.0000 USD"),
        ([KNOWN, AGENT], {"max_cost": 1}, "at least 0.5000 of 1.0000 USD"),
        ([KNOWN, GUESSED, line()], {}, "at least ≈0.7500 USD"),
        ([KNOWN], {"max_calls": 9}, "0.5000 USD"),
    ],
)
def test_the_sum_in_short(lines: list[LedgerLine], limits: dict[str, Any], text: str) -> None:
    assert brief_sum(spent(*lines, budget=budget(**limits))) == text


@pytest.mark.parametrize(
    ("suite", "agents"),
    [
        ({}, False),
        ({"prices": PRICES}, True),
        ({"budget": budget(max_cost=1)}, True),
        ({"budget": budget(max_calls=1)}, False),
        ({"budget": budget(by_role={"judge": {"max_cost": 1}})}, True),
        ({"budget": budget(by_role={"judge": {"max_calls": 1}})}, False),
    ],
)
def test_of_agents_only_who_asks_for_costs_is_told(suite: dict[str, Any], agents: bool) -> None:
    found = list(unknown_texts(spent(AGENT, KNOWN, NAMELESS, **suite)))
    assert len(found) == 1 + agents
    assert ("bot (agent)" in found[0]) is agents
    assert "1 call to an unnamed model (dedup)" in found[-1]


def test_the_remedy_is_a_price_or_there_is_one_already() -> None:
    (without,) = unknown_texts(spent(line(calls=2)))
    assert "2 calls to openai/x (judge)" in without
    assert "`prices: {openai/x: " in without
    (priced,) = unknown_texts(spent(line(), prices=PRICES))
    assert "prices:" not in priced
    assert "tokens" in priced


def test_a_model_without_a_name_has_no_price_to_add() -> None:
    (text,) = unknown_texts(spent(NAMELESS, prices=PRICES))
    assert "prices:" not in text
    assert "not known" in text
