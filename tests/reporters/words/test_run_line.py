"""What a run consisted of, in parts: agents, size, duration, cost and judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.config import BudgetConfig
from agenteval.core.score import Check, Score
from agenteval.core.trajectory import Usage
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.run_line import elapsed_text, judges_text, run_parts
from agenteval.verdict.gates import decide
from agenteval.verdict.ledger import LedgerLine
from agenteval.verdict.report import Report
from tests.support.score_samples import MODEL, SCRIPT
from tests.support.verdict_runs import PASS, Played, report_of, with_suite


def parts(report: Report, **decision: Any) -> list[str]:
    return list(run_parts(Facts(report, replace(decide(report), **decision))))


def test_what_ran() -> None:
    report = report_of({"a": [PASS, PASS], "b": [None]}, elapsed_s=5.06)
    assert parts(report) == ["agenteval 0.1.0", "bot", "2 scenarios, 2 conversations", "5.1 s"]


def test_the_version_is_left_out_if_it_is_not_known() -> None:
    assert parts(report_of({"a": [PASS]}, run={"versions": {"python": "3.11"}}))[0] == "agenteval"


def test_a_scenario_with_several_agents_is_one_scenario() -> None:
    assert parts(report_of({"a": [PASS]}, agents=("x", "y")))[1:3] == ["x, y", "1 scenario, 2 conversations"]


@pytest.mark.parametrize(
    ("count", "names"),
    [
        (1, "a0"),
        (4, "a0, a1, a2, a3"),
        (5, "a0, a1, a2, a3, 1 more agent"),
        (6, "a0, a1, a2, a3, 2 more agents"),
    ],
)
def test_the_first_four_agents_are_named(count: int, names: str) -> None:
    assert parts(report_of({"a": [PASS]}, agents=tuple(f"a{n}" for n in range(count))))[1] == names


@pytest.mark.parametrize(
    ("name", "shown"), [("x" * 40, "x" * 40), ("x" * 41, "x" * 39 + "…"), ("a\x1b[2J\nb", "a b")]
)
def test_a_name_is_one_short_line(name: str, shown: str) -> None:
    report = report_of({"a": [PASS]}, agents=(name,))
    assert parts(report)[1] == shown
    assert parts(with_suite(report, profile=name))[3] == f"profile {shown}"


@pytest.mark.parametrize(
    ("epochs", "text"),
    [
        ({"a": [PASS]}, "1 record"),
        ({"a": [PASS], "b": [PASS]}, "2 records"),
        ({"a": [PASS, PASS], "b": [PASS, None]}, "3 records"),
    ],
)
def test_of_a_log_the_records_are_counted(epochs: dict[str, list[Played | None]], text: str) -> None:
    assert parts(report_of(epochs), without_scenarios=True)[2] == text


def test_the_profile_the_seed_and_the_cost_are_named_if_there_are_any() -> None:
    spent = LedgerLine("judge", MODEL, Usage(calls=1, cost=0.5))
    report = replace(report_of({"a": [PASS]}), ledger=(spent,))
    report = with_suite(report, profile="pr", seed=7, budget=BudgetConfig(max_cost=1))
    assert parts(report)[3:] == ["profile pr", "seed 7", "1.0 s", "0.5000 of 1.0000 USD"]


def test_a_run_that_did_not_finish_has_no_duration() -> None:
    assert parts(report_of({"a": [PASS]}, outcome=None))[-1] == "1 scenario, 1 conversation"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0 s"),
        (5.06, "5.1 s"),
        (59.9, "59.9 s"),
        (59.94, "59.9 s"),
        (59.97, "1:00 min"),
        (60.0, "1:00 min"),
        (65.0, "1:05 min"),
        (185.4, "3:05 min"),
        (3599.4, "59:59 min"),
        (3599.6, "1:00:00 h"),
        (7325.0, "2:02:05 h"),
        (90_000.0, "25:00:00 h"),
    ],
)
def test_how_long_it_took(seconds: float, text: str) -> None:
    assert elapsed_text(seconds) == text


@pytest.mark.parametrize(
    ("scores", "checks", "text"),
    [
        ([], [], ""),
        ([""], [""], ""),
        ([MODEL, MODEL], [], f"judged by {MODEL}, uncalibrated"),
        ([], [MODEL], f"judged by {MODEL}, uncalibrated"),
        (["x/y"], [MODEL], f"judged by x/y, {MODEL}, uncalibrated"),
        (["m" * 41], [], f"judged by {'m' * 39}…, uncalibrated"),
        (
            [MODEL, SCRIPT, "scripted/b.yaml"],
            ["x/y"],
            f"judged by {MODEL}, scripted replies, x/y, uncalibrated",
        ),
    ],
)
def test_who_judged(scores: Sequence[str], checks: Sequence[str], text: str) -> None:
    items = [Score(metric="stars", value=4, by=name) for name in scores]
    more = [Check(name="criteria", passed=True, by=name) for name in checks]
    assert judges_text(report_of({"a": [Played((*items, *more), turns=((),))]})) == text
    assert judges_text(report_of({"a": [PASS], "b": [Played(turns=((*items, *more),))]})) == text
