"""The page of a history: which charts its runs get, what is in them, and the table below."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.sample_report import Spread
from agenteval.reporters.html.history import history_figures, render
from agenteval.reporters.options import ReportOptions
from agenteval.verdict.history import AgentFigures, MetricMean
from agenteval.verdict.statistics import Interval, Tally
from tests.support.drawings import Drawn
from tests.support.histories import figures, history, point


def drawn(*points: Any) -> dict[str, Drawn]:
    made = history_figures(history(*points))
    return {each.svg.findtext("title") or "": each for each in map(Drawn, made)}


def rated(successes: int, decided: int = 10, agent: str = "bot", **more: Any) -> AgentFigures:
    tally = Tally(successes, decided, 10)
    return figures(agent, tally=tally, interval=Interval(0.1, 0.9), **more)


def spread(value: float) -> Spread:
    return Spread(mean=value, p50=2 * value, p95=3 * value, n=4)


def test_each_number_that_two_runs_measured_has_a_chart() -> None:
    runs = (
        point(1, rated(5, means=(MetricMean("stars", "", 3.0, 4),), cost=spread(0.1), latency_ms=spread(50))),
        point(2, rated(0, 0, means=(MetricMean("stars", "", 4.0, 4), MetricMean("once", "", 1.0, 4)))),
        point(3, rated(9, cost=spread(0.2), means=(MetricMean("stars", "", 5.0, 4),))),
    )
    charts = drawn(*runs)
    assert [*charts] == ["Pass rate", "Scores for stars", "Cost of a conversation"]
    rates = charts["Pass rate"]
    assert "bot: 90.0 %, 50.0 % in the run before." in rates.sentence
    assert rates.column("commit") == ["0123456"] * 3
    assert [text.split(" (")[0] for text in rates.column("bot")] == ["90.0 %", "–", "50.0 %"]
    assert "0.2 USD, 0.1 USD" in charts["Cost of a conversation"].sentence
    ids = [each for one in charts.values() for each in one.ids]
    assert len(ids) == len(set(ids))


def test_the_latency_is_the_median() -> None:
    chart = drawn(point(1, rated(5, latency_ms=spread(50))), point(2, rated(5, latency_ms=spread(70))))
    assert "bot: 140 ms, 100 ms in the run before." in chart["Latency of a conversation"].sentence


def test_each_agent_is_a_line_with_gaps_where_it_did_not_run() -> None:
    runs = point(1, rated(5)), point(2, rated(6), rated(7, agent="new")), point(3, rated(8), dirty=True)
    chart = drawn(*runs)["Pass rate"]
    assert chart.table[0] == ["run", "commit", "bot", "new"]
    assert chart.column("new")[0] == chart.column("new")[2] == "–"
    assert chart.column("commit")[0] == "0123456+"


def test_one_run_has_no_chart() -> None:
    assert drawn(point(1, rated(5))) == {}


@pytest.mark.parametrize(("verdict", "code"), [("passed", 0), ("failed", 1), ("reported", 0)])
def test_the_page_names_the_latest_verdict_and_holds_the_table(verdict: str, code: int) -> None:
    latest = replace(point(2), verdict=verdict, exit_code=code)
    page = render(history(point(1), latest, config="<b>.yaml"), ReportOptions())
    assert f"{verdict.upper()}</span> the latest of 2 runs (exit {code})</h1>" in page
    assert "<b>.yaml" not in page
    assert "&lt;b&gt;.yaml" in page
    assert page.count("aaaaa1") >= 1
