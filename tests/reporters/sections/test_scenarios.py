"""Scenarios, scores and dimensions in a report: rows, cells, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.sample_report import Aggregate, Spread
from agenteval.core.scenario import Category
from agenteval.core.score import Verdict
from agenteval.core.trajectory import Step, Turn, Usage
from agenteval.reporters.sections.scenarios import dimensions, estimates_of, scenarios, scores
from agenteval.reporters.sections.section import Section
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Dimension, Report
from tests.support.report_samples import mixed
from tests.support.verdict_runs import (
    BEHAVIOR,
    BROKEN,
    FAIL,
    GOAL,
    LOST,
    PASS,
    UNSURE,
    Played,
    judge_failed,
    only_scenario,
    report_of,
    score,
    whole,
)

PASSED, FAILED, UNDECIDED = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


def facts_of(report: Report, **decision: Any) -> Facts:
    return Facts(report, replace(decide(report), **decision))


def only(sections: Iterator[Section]) -> Section:
    (section,) = sections
    for row in section.rows:
        assert len(row) == len(section.columns)
    return section


# ── scenarios ────────────────────────────────────────────────────────────────────────────────────


def test_a_row_for_each_scenario_and_agent_in_report_order() -> None:
    report = report_of({"a": [PASS, FAIL, None], "b": [PASS], "c": [LOST]}, agents=("bot", "new"))
    section = only(scenarios(facts_of(report)))
    assert (section.noun, section.named_by, section.can_be_short) == ("scenario", 2, True)
    assert [row[:5] for row in section.rows] == [
        (FAILED, "a", "bot", "capability", "1/3"),
        (FAILED, "a", "new", "capability", "1/3"),
        (PASSED, "b", "bot", "capability", "1/1"),
        (PASSED, "b", "new", "capability", "1/1"),
        (UNDECIDED, "c", "bot", "capability", "0/1"),
        (UNDECIDED, "c", "new", "capability", "0/1"),
    ]


def test_a_log_without_expectations_and_an_empty_run_have_no_table() -> None:
    report = report_of({"a": [PASS]})
    assert list(scenarios(facts_of(report, is_reported=True))) == []
    assert list(scenarios(facts_of(replace(report, scenarios=())))) == []


@pytest.mark.parametrize(
    ("aggregates", "text"),
    [
        ({}, "–"),
        ({"x": Aggregate(0.25, 4)}, "x 0.25 (n=4)"),
        ({"x": Aggregate(1500, 4, missing=2), "y": Aggregate(1, 1)}, "x 1,500 (n=4, 2 missing), y 1 (n=1)"),
        ({"x": Aggregate(None, 0, missing=2)}, "–"),
        ({"stars": Aggregate(3, 1), "y": Aggregate(1, 1)}, "y 1 (n=1)"),
        ({f"m{n:02}": Aggregate(1, 1) for n in range(12)}, ", ".join(f"m{n:02} 1 (n=1)" for n in range(12))),
        ({f"m{n:02}": Aggregate(1, 1) for n in range(13)}, ", ".join(f"m{n:02} 1 (n=1)" for n in range(12))),
    ],
    ids=["none", "one", "missing", "no value", "a judged one has its own table", "twelve", "thirteen"],
)
def test_measured_metrics_stand_in_the_row(aggregates: dict[str, Aggregate], text: str) -> None:
    report = report_of({"a": [PASS]})
    scenario = replace(only_scenario(report), aggregates=aggregates)
    section = only(scenarios(facts_of(replace(report, scenarios=(scenario,)))))
    assert section.rows[0][-1] == text


# ── scores ───────────────────────────────────────────────────────────────────────────────────────


def starred(value: float, **more: Any) -> Played:
    return whole(score("stars", value, **more))


def test_what_did_not_pass_comes_first_among_the_scores() -> None:
    told = {"a": [starred(4)], "b": [UNSURE], "c": [whole(BROKEN, score("stars", 2))]}
    section = only(scores(facts_of(report_of(told))))
    assert section.columns == ("", "scenario", "stars")
    assert section.rows == ((FAILED, "c", "2.0"), (UNDECIDED, "b", "not judged"), (PASSED, "a", "4.0"))
    assert section.named_by == 2


def test_agents_have_a_column_where_there_are_several() -> None:
    section = only(scores(facts_of(report_of({"a": [starred(4)]}, agents=("bot", "new")))))
    assert section.columns == ("", "scenario", "agent", "stars")
    assert [row[:3] for row in section.rows] == [(PASSED, "a", "bot"), (PASSED, "a", "new")]


def test_a_metric_that_applies_nowhere_has_no_column() -> None:
    told = {"a": [whole(score(BEHAVIOR, label="no failure", ok=True))]}
    section = only(scores(facts_of(report_of(told, run={"judged": (GOAL, BEHAVIOR)}))))
    assert "agent behavior failure" in section.columns
    assert "stars" not in section.columns


def test_without_metrics_there_is_no_table() -> None:
    assert list(scores(facts_of(report_of({"a": [PASS]}, run={"judged": ()})))) == []


@pytest.mark.parametrize(("judged", "shown"), [(True, True), (False, False)])
def test_a_log_has_the_table_only_if_it_was_judged(judged: bool, shown: bool) -> None:
    report = report_of({"a": [starred(4) if judged else PASS]})
    assert bool(list(scores(facts_of(report, is_reported=True)))) is shown


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ((score("stars", 4),), "4.0"),
        ((score("stars", 4, scripted=True),), "4.0ˢ"),
        ((score("stars", 4), judge_failed("stars")), "4.0 !1"),
        ((judge_failed("stars"), judge_failed("stars")), "!2"),
    ],
)
def test_a_cell_says_what_is_missing_and_scripted(items: tuple[Any, ...], text: str) -> None:
    (row,) = only(scores(facts_of(report_of({"a": [whole(*items)]})))).rows
    assert row[-1] == text


@pytest.mark.parametrize(
    ("value", "sign"), [(4.0, "✓"), (2.0, "✗")], ids=["the threshold holds", "it does not"]
)
def test_a_threshold_has_a_sign(value: float, sign: str) -> None:
    report = report_of({"a": [starred(value)]}, scenarios={"a": {"thresholds": {"stars": 3.0}}})
    section = only(scores(facts_of(report)))
    assert section.rows[0][-1] == f"{value:.1f} {sign}"
    assert "✓ ✗ ?" in str(section.notes[0])


def test_a_threshold_over_nothing_judged_has_no_sign() -> None:
    report = report_of({"a": [PASS]}, scenarios={"a": {"thresholds": {"stars": 3.0}}})
    section = only(scores(facts_of(report)))
    assert section.rows[0][-1] == "not judged"
    assert section.title == "Scores"
    assert "uncalibrated" in only(scores(facts_of(report_of({"a": [starred(4)]})))).title


def test_answers_that_count_neither_way_are_counted() -> None:
    report = report_of({"a": [starred(4)]})
    stars = Aggregate(4.0, 1, missing=2, undecided={"x": 1, "y": 2})
    scenario = replace(only_scenario(report), aggregates={"stars": stars})
    section = only(scores(facts_of(replace(report, scenarios=(scenario,)))))
    assert section.rows[0][-1] == "4.0 !2 ~3"


# ── dimensions ───────────────────────────────────────────────────────────────────────────────────

RATE = Aggregate(0.5, 1200)


def table(**by_agent: tuple[Dimension, ...]) -> Section:
    report = report_of({"a": [PASS]}, agents=tuple(by_agent))
    return only(dimensions(facts_of(replace(report, dimensions=by_agent))))


def dimension(category: Category = Category.CAPABILITY, **more: Any) -> Dimension:
    return Dimension(**{"category": category, "samples": 1, "rates": {}, "spreads": {}, **more})


def test_nothing_measured_is_no_table() -> None:
    report = report_of({"a": [PASS]})
    assert list(dimensions(facts_of(replace(report, dimensions={"bot": (dimension(),)})))) == []


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("tool_accuracy", "Tool call accuracy"),
        ("task_completion", "Task completion rate"),
        ("checks_passed", "All checks passed"),
        ("tool_calls", "Tool calls as expected"),
        ("output", "Output as expected"),
    ],
)
def test_a_rate_is_a_percentage_with_its_number(name: str, metric: str) -> None:
    section = table(bot=(dimension(rates={name: RATE}),))
    assert section.rows == (("Capability", metric, "50.0 %", "", "", "1,200"),)
    assert section.numbers == section.columns[2:]
    assert section.named_by == 2
    empty = table(bot=(dimension(rates={name: Aggregate(None, 0)}),))
    assert empty.rows == (("Capability", metric, "–", "", "", "0"),)


def test_the_pass_rate_is_that_of_robustness_alone() -> None:
    rates = {"robustness_pass": RATE, "tool_accuracy": RATE}
    section = table(bot=(dimension(rates=rates), dimension(Category.ROBUSTNESS, rates=rates)))
    assert [row[:2] for row in section.rows] == [
        ("Capability", "Tool call accuracy"),
        ("Robustness", "Pass rate"),
        ("Robustness", "Tool call accuracy"),
    ]


@pytest.mark.parametrize(("n", "most"), [(19, "max 3,000"), (20, "3,000")])
def test_a_spread_calls_its_p95_the_maximum_of_fewer_than_twenty(n: int, most: str) -> None:
    section = table(bot=(dimension(spreads={"latency_ms": Spread(1500, 1200, 3000, n)}),))
    assert section.rows == (("Capability", "Avg latency ms", "1,500", "1,200", most, str(n)),)


def test_rates_stand_before_spreads_and_agents_together() -> None:
    one = dimension(rates={"output": RATE}, spreads={"steps": Spread(2, 2, 3, 4)})
    section = table(bot=(one,), new=(one,))
    assert section.columns[:3] == ("Dimension", "Metric", "Agent")
    assert section.named_by == 3
    assert [row[1:3] for row in section.rows] == [
        ("Output as expected", "bot"),
        ("Output as expected", "new"),
        ("Avg steps per task", "bot"),
        ("Avg steps per task", "new"),
    ]


def used(*, estimated: bool) -> Report:
    step = Step(text="hello", usage=Usage(calls=1, input_tokens=10, output_tokens=5, estimated=estimated))
    report = report_of({"a": [PASS]})
    scenario = only_scenario(report)
    (sample,) = scenario.samples
    trajectory = sample.trajectory.model_copy(update={"turns": (Turn(user="hi", steps=(step,)),)})
    return replace(report, scenarios=(replace(scenario, samples=(replace(sample, trajectory=trajectory),)),))


@pytest.mark.parametrize("estimated", [True, False])
def test_estimated_tokens_are_marked_and_explained(estimated: bool) -> None:
    spreads = {name: Spread(7, 6, 9, 20) for name in ("steps", "input_tokens", "output_tokens")}
    report = replace(used(estimated=estimated), dimensions={"bot": (dimension(spreads=spreads),)})
    section = only(dimensions(facts_of(report)))
    sign = "≈" if estimated else ""
    assert [row[2:] for row in section.rows] == [
        ("7", "6", "9", "20"),
        (f"{sign}7", f"{sign}6", f"{sign}9", "20"),
        (f"{sign}7", f"{sign}6", f"{sign}9", "20"),
    ]
    assert [str(note)[0] for note in section.notes] == ["≈"] * estimated


@pytest.mark.parametrize(
    ("category", "agent", "sign"),
    [
        (Category.CAPABILITY, "bot", "≈"),
        (Category.ROBUSTNESS, "bot", ""),
        (Category.CAPABILITY, "other", ""),
    ],
)
def test_estimates_are_those_of_the_agent_in_the_category(category: Category, agent: str, sign: str) -> None:
    assert estimates_of(used(estimated=True), category, agent) == sign


def test_a_whole_run_has_all_three_tables() -> None:
    facts = Facts(*mixed())
    titles = [section.title for make in (scenarios, scores, dimensions) for section in make(facts)]
    assert titles == ["Scenarios", "Scores (uncalibrated)", "Summary"]
