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
from tests.support.pages import Node, read_html


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


def test_a_run_that_did_not_end_is_a_gap() -> None:
    runs = point(1, rated(5)), point(2, rated(9), outcome="interrupted"), point(3, rated(8))
    chart = drawn(*runs)["Pass rate"]
    assert [text.split(" (")[0] for text in chart.column("bot")] == ["80.0 %", "–", "50.0 %"]
    assert "bot: 80.0 %, 50.0 % in the run before." in chart.sentence
    assert drawn(runs[1], runs[2]) == {}


def test_a_star_marks_a_run_that_is_not_comparable_with_the_one_before() -> None:
    runs = (
        point(1, rated(5)),
        point(2, rated(6), changes=("the judge changed",)),
        point(3, rated(7), changes=("a prompt changed",), dirty=True),
        point(4, rated(8), changes=("the suite changed",), commit=""),
        point(5, rated(9), commit=""),
    )
    stars = ["", "*", "0123456+ *", "0123456 *", "0123456"]
    assert drawn(*runs)["Pass rate"].column("commit") == stars


@pytest.mark.parametrize(
    ("numbers", "changes", "notes"),
    [
        ((1, 2), (), []),
        ((1, 2), ("the judge changed",), ["*: the suite, the judge or a prompt changed"]),
        ((1,), ("the judge changed",), []),
    ],
)
def test_the_star_is_explained_below_the_charts(
    numbers: tuple[int, ...], changes: tuple[str, ...], notes: list[str]
) -> None:
    runs = [point(number, rated(5), changes=changes) for number in numbers]
    whole = read_html(render(history(*runs), ReportOptions())).one("section", id="/")
    assert [each.text.split(";")[0] for each in whole.all("p", "caveat")] == notes
    if notes:
        names = [node.attributes.get("class") for node in whole.content if isinstance(node, Node)]
        assert names[1:3] == ["charts", "caveat"]


@pytest.mark.parametrize(
    ("values", "text", "axis"),
    [
        ((0.25, 1.0), "bot: 1, 0.25 in", ["0", "1", "mean"]),
        ((0.5, 0.6), "bot: 0.6, 0.5 in", ["0", "1", "mean"]),
        ((0.0, 0.0), "bot: 0, 0 in", ["0", "1", "mean"]),
        ((3.0, 3.5), "bot: 3.5, 3 in", ["1", "5", "mean"]),
        ((1.0, 5.0), "bot: 5, 1 in", ["1", "5", "mean"]),
        ((0.5, 3.0), "bot: 3, 0.5 in", ["0.5", "3", "mean"]),
        ((200.0, 300.0), "bot: 300, 200 in", ["200", "300", "mean"]),
    ],
)
def test_the_axis_of_scores_fits_their_values(
    values: tuple[float, float], text: str, axis: list[str]
) -> None:
    """Numbers up to 1, scores from 1 to 5, or any other numbers. Other metrics change nothing."""
    runs = [
        point(n, rated(5, means=(MetricMean("m", "", value, 4), MetricMean("other", "", 40.0, 4))))
        for n, value in enumerate(values)
    ]
    chart = drawn(*runs)["Scores for m"]
    assert text in chart.sentence
    first, *ticks, name = chart.texts[:-4]
    assert [first, ticks[-1], name] == axis


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
