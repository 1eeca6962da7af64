"""The rows of the budget and of the deadline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.score import Verdict
from agenteval.core.trajectory import Usage
from agenteval.verdict.ledger import LedgerLine
from agenteval.verdict.limit_gates import budget_gates, deadline_gates
from agenteval.verdict.report import Report
from tests.support.verdict_runs import PASS, report_of

PASSED, OPEN = Verdict.PASSED, Verdict.INCONCLUSIVE


def spent(budget: Any, *lines: LedgerLine, outcome: str | None = "complete") -> list[tuple[Any, ...]]:
    report: Report = report_of({"a": [PASS]}, budget=budget, outcome=outcome)
    usage = {role: Usage() for role in ("agent", "user", "judge", "dedup")}
    for line in lines:
        usage[line.role] += line.usage
    rows = budget_gates(replace(report, usage=usage, ledger=lines))
    return [(row.name, row.value, row.bound, row.verdict) for row in rows]


AGENT = LedgerLine("agent", "bot", Usage(calls=3, input_tokens=50, output_tokens=10, cost=0.5))
JUDGE = LedgerLine("judge", "m", Usage(calls=2, input_tokens=30, output_tokens=10, cost=0.25))
FREE = LedgerLine("user", "u", Usage(calls=1, input_tokens=5, output_tokens=5))


@pytest.mark.parametrize(
    ("budget", "outcome", "rows"),
    [
        ({}, "complete", []),
        ({"max_calls": 6}, "complete", [("budget.max_calls", 6, 6, PASSED)]),
        ({"max_calls": 5}, "complete", [("budget.max_calls", 6, 5, OPEN)]),
        ({"max_tokens": 110}, "complete", [("budget.max_tokens", 110, 110, PASSED)]),
        ({"max_tokens": 109}, "complete", [("budget.max_tokens", 110, 109, OPEN)]),
        ({"max_cost": 0.75}, "complete", [("budget.max_cost", 0.75, 0.75, PASSED)]),
        ({"max_cost": 0.7}, "complete", [("budget.max_cost", 0.75, 0.7, OPEN)]),
        # The limit that was closest to being used up stopped the run.
        (
            {"max_calls": 7, "max_tokens": 1000},
            "budget",
            [("budget.max_calls", 6, 7, OPEN), ("budget.max_tokens", 110, 1000, PASSED)],
        ),
        (
            {"max_calls": 60, "max_tokens": 120},
            "budget",
            [("budget.max_calls", 6, 60, PASSED), ("budget.max_tokens", 110, 120, OPEN)],
        ),
        ({"max_calls": 7}, "deadline", [("budget.max_calls", 6, 7, PASSED)]),
        ({"max_calls": 7}, None, [("budget.max_calls", 6, 7, PASSED)]),
        # A role's own limit concerns only its own calls, and never stopped the run.
        (
            {"by_role": {"judge": {"max_calls": 2, "max_tokens": 39, "max_cost": 0.25}}},
            "budget",
            [
                ("budget.by_role.judge.max_calls", 2, 2, PASSED),
                ("budget.by_role.judge.max_tokens", 40, 39, OPEN),
                ("budget.by_role.judge.max_cost", 0.25, 0.25, PASSED),
            ],
        ),
        (
            {"by_role": {"dedup": {"max_calls": 1}}},
            "complete",
            [("budget.by_role.dedup.max_calls", 0, 1, PASSED)],
        ),
    ],
)
def test_each_limit_has_a_row(budget: Any, outcome: str | None, rows: list[tuple[Any, ...]]) -> None:
    assert spent(budget, AGENT, JUDGE, FREE, outcome=outcome) == rows


def test_an_open_limit_names_what_would_help() -> None:
    report = report_of({"a": [PASS]}, budget={"max_calls": 1, "max_tokens": 999}, outcome="budget")
    used = replace(report, usage={"agent": Usage(calls=1, input_tokens=1)})
    calls, tokens = budget_gates(used)
    assert calls.basis
    assert tokens.basis
    assert (calls.verdict, bool(calls.resolution)) == (OPEN, True)
    assert (tokens.verdict, tokens.resolution) == (PASSED, "")


@pytest.mark.parametrize(
    ("deadlines", "outcome", "row"),
    [
        ({}, "complete", None),
        ({"turn_s": 5}, "deadline", None),
        ({"run_s": 60}, "complete", (61.5, "at most 60", PASSED, False)),
        ({"run_s": 60}, "deadline", (61.5, "at most 60", OPEN, True)),
        ({"run_s": 60}, "budget", (61.5, "at most 60", PASSED, False)),
        ({"run_s": 60}, None, (None, "at most 60", PASSED, False)),
    ],
)
def test_a_deadline_that_ended_the_run_leaves_it_open(deadlines: Any, outcome: Any, row: Any) -> None:
    report = report_of({"a": [PASS]}, deadlines=deadlines, outcome=outcome, elapsed_s=61.5)
    found = [
        (each.name, each.value, each.bound, each.verdict, bool(each.resolution))
        for each in deadline_gates(report)
    ]
    assert found == ([] if row is None else [("deadlines.run_s", *row)])
