"""The rows of the page's list: their order, their states, their first reason, and what the script reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from agenteval.core.decision import TOLERANCE, GateRow, SampleDecision, ScenarioDecision, Violation
from agenteval.core.sample_report import Aggregate
from agenteval.core.scenario import Category, SampleKey
from agenteval.core.score import Check, Issue, Occurrence, Severity, Verdict
from agenteval.core.trajectory import Step, ToolCall, Trajectory, Turn, Usage
from agenteval.reporters.html.scenario_rows import (
    MOST_COLUMNS,
    ListedScenario,
    listed_columns,
    row_to_json,
    scenario_rows,
)
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.issue import issues_text
from agenteval.reporters.words.score_cells import ScoreCell, ScoreColumn
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.verdict_runs import (
    FAIL,
    LOST,
    PASS,
    STARS,
    UNSURE,
    Played,
    finding,
    judge_failed,
    report_of,
    score,
    whole,
)

PASSED, FAILED, UNDECIDED = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
LOW, CRITICAL = finding(Severity.LOW), finding(Severity.CRITICAL)
Epochs = Mapping[str, Sequence[Played | None]]


def facts_of(report: Report, *, tolerated: str = "", **changes: Any) -> Facts:
    """``tolerated``: a scenario that passes, whatever its conversations did, as a pass rate may have it."""
    decision = replace(decide(report), **changes)
    if tolerated:
        passed = {(tolerated, "bot"): ScenarioDecision(PASSED)}
        decision = replace(decision, scenarios={**decision.scenarios, **passed})
    return Facts(report, decision)


def rows_of(report: Report, root: str = ".", **more: Any) -> list[ListedScenario]:
    facts = facts_of(report, **more)
    return scenario_rows(facts, issues_text(report, facts.decision), root)


def rows(epochs: Epochs, **more: Any) -> list[ListedScenario]:
    return rows_of(report_of(epochs, **more))


def row(*played: Played | None, **more: Any) -> ListedScenario:
    (found,) = rows({"a": played}, **more)
    return found


def noted(severity: Severity) -> Played:
    return Played(turns=((finding(severity),),))


# ── the order ────────────────────────────────────────────────────────────────────────────────────


def test_what_did_not_pass_comes_first() -> None:
    epochs = {
        "passed": [PASS],
        "flaky": [PASS, FAIL],
        "lost": [LOST],
        "failed": [FAIL],
        "unsure": [UNSURE],
        "later": [PASS],
    }
    found = rows_of(report_of(epochs), tolerated="flaky")
    assert [(each.report.scenario.id, each.verdict) for each in found] == [
        ("failed", FAILED),
        ("lost", UNDECIDED),
        ("unsure", UNDECIDED),
        ("flaky", PASSED),
        ("passed", PASSED),
        ("later", PASSED),
    ]


def test_of_those_that_passed_flaky_ones_then_accepted_ones_then_those_with_worse_findings_come_first() -> (
    None
):
    epochs = {
        "plain": [PASS],
        "low": [noted(Severity.LOW)],
        "accepted": [PASS],
        "high": [noted(Severity.HIGH)],
        "medium": [noted(Severity.MEDIUM)],
        "flaky": [PASS, FAIL],
    }
    report = report_of(epochs)
    samples = dict(decide(report).samples)
    key = SampleKey(scenario="accepted", agent="bot")
    samples[key] = SampleDecision(PASSED, accepted=(Violation("x", "", ""),))
    found = rows_of(report, samples=samples, tolerated="flaky")
    assert [each.report.scenario.id for each in found] == [
        "flaky",
        "accepted",
        "high",
        "medium",
        "low",
        "plain",
    ]


def test_each_agent_has_a_row_of_its_own() -> None:
    found = rows({"a": [FAIL], "b": [PASS]}, agents=("x", "y"))
    assert [(each.report.scenario.id, each.report.agent) for each in found] == [
        ("a", "x"),
        ("a", "y"),
        ("b", "x"),
        ("b", "y"),
    ]


# ── states ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("played", "states"),
    [
        ([PASS], ("passed",)),
        ([FAIL], ("failed",)),
        ([UNSURE], ("inconclusive",)),
        ([None], ("inconclusive",)),
        ([PASS, FAIL], ("failed", "flaky")),
        ([PASS, LOST], ("inconclusive",)),
        ([FAIL, LOST], ("failed",)),
        ([FAIL, FAIL], ("failed",)),
        ([noted(Severity.LOW)], ("passed", "finding")),
        ([PASS, noted(Severity.CRITICAL)], ("failed", "flaky", "finding")),
    ],
)
def test_the_words_to_filter_by(played: list[Played | None], states: tuple[str, ...]) -> None:
    assert row(*played).states == states


@pytest.mark.parametrize(
    ("played", "states"),
    [
        ([PASS, FAIL], ("tolerated", "flaky")),
        ([FAIL, FAIL], ("tolerated",)),
        ([PASS, PASS], ("passed",)),
    ],
)
def test_a_scenario_that_passed_although_conversations_failed_is_tolerated(
    played: list[Played], states: tuple[str, ...]
) -> None:
    (found,) = rows_of(report_of({"a": [*played]}), tolerated="a")
    assert (found.verdict, found.states) == (PASSED, states)
    assert row_to_json(found, (), {})["is"] == [*states]


@pytest.mark.parametrize(
    ("played", "states"),
    [
        (PASS, ("reported",)),
        (noted(Severity.LOW), ("reported", "finding")),
        (FAIL, ("failed",)),
        (UNSURE, ("inconclusive",)),
    ],
)
def test_a_conversation_of_a_log_without_expectations_cannot_pass(
    played: Played, states: tuple[str, ...]
) -> None:
    (found,) = rows_of(report_of({"a": [played]}), is_reported=True)
    assert found.states == states


@pytest.mark.parametrize(
    ("unplaced", "states"), [([(), ()], ("passed",)), ([(), ("a block",)], ("passed", "partly-read"))]
)
def test_a_record_that_was_not_fully_read_is_a_state(
    unplaced: list[tuple[str, ...]], states: tuple[str, ...]
) -> None:
    found = row(Played(turns=((), ())))
    (epoch,) = found.epochs
    assert epoch.sample
    turns = tuple(
        replace(each, turn=each.turn.model_copy(update={"unplaced": odd}))
        for each, odd in zip(epoch.sample.turns, unplaced, strict=True)
    )
    epoch = replace(epoch, sample=replace(epoch.sample, turns=turns))
    assert replace(found, epochs=(epoch,)).states == states


def test_a_covered_failure_is_a_state() -> None:
    report = report_of({"a": [PASS, FAIL]})
    key = SampleKey(scenario="a", agent="bot", epoch=1)
    accepted = SampleDecision(PASSED, accepted=(Violation("output.contains", "not there", ""),))
    (found,) = rows_of(report, samples={**decide(report).samples, key: accepted})
    assert found.is_accepted
    assert found.states == ("failed", "accepted")
    assert not row(PASS, FAIL).is_accepted


def test_the_worst_finding_is_the_first_of_the_worst() -> None:
    first, second = (finding(Severity.HIGH, explanation=text) for text in ("first", "second"))
    found = row(Played(turns=((LOW,),)), Played(turns=((LOW, first, second),)), None)
    assert found.worst == first
    assert list(found.findings) == [LOW, LOW, first, second]
    assert row(PASS).worst is None


def test_planned_samples_that_never_ran_are_epochs_too() -> None:
    found = row(PASS, None)
    assert [(each.key.epoch, each.sample is None, each.decided.verdict) for each in found.epochs] == [
        (0, False, PASSED),
        (1, True, UNDECIDED),
    ]


@pytest.mark.parametrize(
    ("played", "is_fine"),
    [
        (PASS, True),
        (FAIL, False),
        (LOST, False),
        (UNSURE, False),
        (None, False),
        (noted(Severity.LOW), False),
    ],
)
def test_a_conversation_is_fine_if_it_passed_without_a_finding(played: Played | None, is_fine: bool) -> None:
    (epoch,) = row(played).epochs
    assert epoch.is_fine is is_fine


def test_a_conversation_with_a_covered_failure_is_not_fine() -> None:
    (epoch,) = row(PASS).epochs
    accepted = SampleDecision(PASSED, accepted=(Violation("output.contains", "not there", ""),))
    assert not replace(epoch, decided=accepted).is_fine


# ── reasons ──────────────────────────────────────────────────────────────────────────────────────


def check(name: str, detail: str) -> Check:
    return Check(name=name, passed=False, detail=detail)


@pytest.mark.parametrize(
    ("played", "reason"),
    [
        ([PASS], ""),
        ([FAIL], "not there"),
        ([Played((check("output.contains", "one\ntwo"),))], "one"),
        ([PASS, Played((check("output.contains", "of the second"),))], "of the second"),
        ([Played((check("output.contains", "a"),)), Played((check("output.contains", "b"),))], "a"),
        ([Played(turns=((check("output.contains", "a"),),))], "turn 1: a"),
        ([LOST, FAIL], "not there"),
    ],
)
def test_the_first_reason(played: list[Played | None], reason: str) -> None:
    assert row(*played).reason == reason


@pytest.mark.parametrize(
    ("played", "reason"), [([None], "never ran"), ([None, None], "never ran"), ([FAIL, None], "not there")]
)
def test_a_scenario_that_never_ran_says_so(played: list[Played | None], reason: str) -> None:
    assert row(*played).reason == reason


def test_the_rules_about_all_conversations_are_those_of_the_row() -> None:
    """Those of a single conversation are told with it."""
    report = report_of({"a": [FAIL, PASS]})
    decided = decide(report).scenarios["a", "bot"]
    whole_rule = Violation("pass_rate", "1 of 2 <b>", "/no/shop/a.yaml:9")
    both = replace(decided, violations=(*decided.violations, whole_rule))
    (found,) = rows_of(report, "/no/shop", scenarios={("a", "bot"): both})
    assert found.violations == (replace(whole_rule, where="a.yaml:9"),)
    assert row_to_json(found, (), {})["rules"] == [
        {"name": "pass_rate", "detail": "1 of 2 <b>", "where": "a.yaml:9", "verdict": "failed"}
    ]


def explained(text: str, severity: Severity = Severity.LOW) -> Played:
    return Played(turns=((finding(severity, explanation=text),),))


@pytest.mark.parametrize(
    ("played", "reason"),
    [
        ([explained("it said so")], "it said so"),
        ([explained("one\n  two")], "one two"),
        ([explained("a"), explained("b", Severity.HIGH), explained("c", Severity.HIGH)], "b"),
        ([explained("")], ""),
        ([explained("x" * 300)], "x" * 300),
        ([explained("x" * 100_000)], "x" * 299 + "…"),
        ([explained("a finding"), FAIL], "not there"),
    ],
)
def test_without_another_reason_it_is_the_worst_finding(played: list[Played | None], reason: str) -> None:
    found = rows_of(report_of({"a": [*played]}), tolerated="a")[0]
    assert found.reason == reason
    assert row_to_json(found, (), {}).get("reason", "") == reason


def test_a_reason_that_counts_precedes_a_tolerated_one() -> None:
    within = GateRow(TOLERANCE, 0.0, 0.1, "", "", PASSED)
    (found,) = rows_of(report_of({"a": [LOST, FAIL]}), gates=(within,))
    assert found.reason == "not there"
    (found,) = rows_of(report_of({"a": [FAIL]}), tolerated="a")
    assert found.reason == "not there"


def test_a_reason_is_that_of_its_own_agent() -> None:
    report = report_of({"a": [FAIL], "b": [PASS]}, agents=("x", "y"))
    found = {(each.report.scenario.id, each.report.agent): each.reason for each in rows_of(report)}
    assert found == {("a", "x"): "not there", ("a", "y"): "not there", ("b", "x"): "", ("b", "y"): ""}


# ── issues and places ────────────────────────────────────────────────────────────────────────────


def issue(name: str, scenario: str, agent: str = "bot") -> Issue:
    place = Occurrence(scenario=scenario, agent=agent, findings=(0,))
    fields = {"title": name, "severity": Severity.LOW, "labels": ("x",), "metrics": ("m",)}
    return Issue.model_validate({"id": name, "agent": agent, "occurrences": (place,), **fields})


def test_the_issues_of_a_row_are_those_of_its_scenario_and_agent() -> None:
    epochs = {"a": [noted(Severity.LOW)], "b": [noted(Severity.LOW)]}
    report = report_of(epochs, agents=("x", "y"))
    issues = (issue("I1", "a", "x"), issue("I2", "b", "x"), issue("I3", "a", "x"), issue("I4", "a", "y"))
    found = rows_of(replace(report, issues=issues))
    assert {(each.report.scenario.id, each.report.agent): each.issues for each in found} == {
        ("a", "x"): ("I1", "I3"),
        ("a", "y"): ("I4",),
        ("b", "x"): ("I2",),
        ("b", "y"): (),
    }


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"source": "/no/shop/s/a.yaml:3"}, "s/a.yaml:3"),
        ({"source": "/no/shop/s/a.yaml:3", "row": "/no/shop/rows.csv:7"}, "s/a.yaml:3 · rows.csv:7"),
        ({"source": "/else/a.yaml:3"}, "/else/a.yaml:3"),
        ({"source": ""}, ""),
    ],
)
def test_the_place_is_that_of_the_scenario_and_its_data_row(fields: dict[str, Any], where: str) -> None:
    (found,) = rows_of(report_of({"a": [PASS]}, scenarios={"a": fields}), "/no/shop")
    assert found.where == where
    assert row_to_json(found, (), {}).get("where", "") == where


# ── columns ──────────────────────────────────────────────────────────────────────────────────────

NONE, BLANK, FIGURE = ScoreCell("–"), ScoreCell("not judged"), ScoreCell("4.0")
GATED, UNGATED = ScoreCell("4.0", verdict=PASSED), ScoreCell("", missing=1)


def with_cells(*cells: ScoreCell) -> ListedScenario:
    return replace(row(PASS), cells=cells)


@pytest.mark.parametrize(
    ("cells", "columns"),
    [
        ([()], []),
        ([(NONE, BLANK)], []),
        ([(NONE, FIGURE, BLANK)], [1]),
        ([(NONE, UNGATED, BLANK)], [1]),
        ([(NONE, FIGURE), (FIGURE, NONE)], [0, 1]),
        ([(FIGURE, GATED, FIGURE)], [1]),
        ([(FIGURE, FIGURE), (FIGURE, GATED)], [1]),
        ([(FIGURE, ScoreCell("not judged", verdict=UNDECIDED))], [0]),
        ([(FIGURE,) * 5], [0, 1, 2, 3]),
        ([(FIGURE, *(GATED,) * 5)], [1, 2, 3, 4]),
    ],
)
def test_columns_have_a_threshold_or_else_were_judged(
    cells: list[tuple[ScoreCell, ...]], columns: list[int]
) -> None:
    assert MOST_COLUMNS == 4
    names = [ScoreColumn(f"m{n}", f"m{n}", is_rate=False) for n in range(len(cells[0]))]
    assert listed_columns([with_cells(*each) for each in cells], names) == columns


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (FIGURE, "4.0"),
        (ScoreCell("2/3"), "2/3"),
        (NONE, "–"),
        (BLANK, "not judged"),
        (ScoreCell("4.0", verdict=PASSED), "4.0 ✓"),
        (ScoreCell("2.0", verdict=FAILED), "2.0 ✗"),
        (ScoreCell("3.0", verdict=UNDECIDED), "3.0 ?"),
        (ScoreCell("not judged", verdict=UNDECIDED), "not judged"),
        (ScoreCell("4.0", missing=2), "4.0 !2"),
        (ScoreCell("4.0", missing=1, verdict=FAILED), "4.0 ✗ !1"),
        (ScoreCell("4.0", scripted=True), "4.0ˢ"),
        (ScoreCell("", open=2), "~2"),
        (ScoreCell("1/2", open=1), "1/2 ~1"),
    ],
)
def test_a_score_is_its_figure_its_threshold_and_what_is_missing(cell: ScoreCell, text: str) -> None:
    assert row_to_json(with_cells(NONE, cell), [1], {})["scores"] == [text]


def test_scores_stand_in_the_order_of_the_columns() -> None:
    found = with_cells(*(ScoreCell(str(n)) for n in range(5)))
    assert row_to_json(found, [3, 1], {})["scores"] == ["3", "1"]


# ── as JSON ──────────────────────────────────────────────────────────────────────────────────────


def test_a_row_with_nothing_but_a_verdict() -> None:
    found = row(None, scenarios={"a": {"source": ""}})
    assert row_to_json(replace(found, reason=""), (), {}) == {
        "id": "a",
        "agent": "bot",
        "is": ["inconclusive"],
        "category": "capability",
        "epochs": [[0, "", "inconclusive"]],
    }


def test_a_row_with_all_there_is() -> None:
    calls = tuple(ToolCall(name=name, args={}) for name in ("find", "pay", "find"))
    played = Played(turns=((CRITICAL, score("stars", 2.0)), (LOW, score("stars", 4.5))), calls=calls)
    found = row(played, scenarios={"a": {"tags": ("x", "y"), "category": Category.ROBUSTNESS}})
    named = found.report.scenario.model_copy(update={"name": "pays twice"})
    found = replace(found, report=replace(found.report, scenario=named))
    found = replace(found, issues=("I1", "I2"), reason="no", where="s/a.yaml:1")
    key = SampleKey(scenario="a", agent="bot")
    assert row_to_json(found, [0], {key: (3, 7)}) == {
        "id": "a",
        "agent": "bot",
        "is": ["failed", "finding"],
        "reason": "no",
        "name": "pays twice",
        "tags": ["x", "y"],
        "category": "robustness",
        "where": "s/a.yaml:1",
        "tools": ["find", "pay"],
        "issues": ["I1", "I2"],
        "severity": "critical",
        "scores": ["3.2"],
        "values": {"stars": 3.25},
        "ms": 3000,
        "epochs": [[0, "", "failed", 3, 7]],
    }


def test_the_name_is_left_out_if_it_is_the_id() -> None:
    assert "name" not in row_to_json(row(PASS), (), {})


@pytest.mark.parametrize("length", [299, 300, 301, 2000])
def test_a_reason_has_300_characters_at_most(length: int) -> None:
    found = replace(row(FAIL), reason="x" * length)
    assert row_to_json(found, (), {})["reason"] == "x" * min(length, 300)


def spent(*costs: float | None, times: Sequence[float] = ()) -> ListedScenario:
    """A row whose conversations cost and took so much."""
    found = row(*[PASS] * len(costs))
    times = times or [0.0] * len(costs)
    epochs = []
    for each, cost, took in zip(found.epochs, costs, times, strict=True):
        assert each.sample
        step = Step(text="hello", usage=Usage(calls=1, cost=cost))
        trajectory = Trajectory(turns=(Turn(user="hi", steps=(step,), latency_ms=took),))
        epochs.append(replace(each, sample=replace(each.sample, trajectory=trajectory)))
    return replace(found, epochs=tuple(epochs))


@pytest.mark.parametrize(
    ("costs", "cost"),
    [
        ([0.25], 0.25),
        ([0.25, 0.5], 0.75),
        ([0.25, 0.0], 0.25),
        ([0.25, None], None),
        ([None], None),
        ([0.0, 0.0], None),
    ],
)
def test_the_cost_is_that_of_all_conversations_if_it_is_known(
    costs: list[float | None], cost: float | None
) -> None:
    assert row_to_json(spent(*costs), (), {}).get("cost") == cost


@pytest.mark.parametrize(
    ("times", "ms"),
    [
        ([1500.0], 1500),
        ([1000.0, 2000.4], 1500),
        ([0.0, 3000.0], 3000),
        ([0.0, 0.0], None),
        ([0.4], 0),
        ([inf], None),
        ([nan], None),
        ([inf, 2000.0, nan], 2000),
    ],
)
def test_the_time_is_the_mean_of_those_that_took_any(times: list[float], ms: int | None) -> None:
    found = row_to_json(spent(*[None] * len(times), times=times), (), {})
    assert found.get("ms") == ms


def test_a_value_that_is_not_known_is_left_out() -> None:
    report = report_of({"a": [whole(judge_failed("stars"))]}, run={"metrics": (STARS,)})
    (found,) = rows_of(report)
    assert found.report.aggregates == {"stars": Aggregate(None, 0, missing=1)}
    assert "values" not in row_to_json(found, (), {})


@pytest.mark.parametrize("value", [inf, -inf, nan])
def test_a_value_that_is_no_number_is_left_out(value: float) -> None:
    found = row(Played((score("stars", value), score("weight", 2.0))))
    assert row_to_json(found, (), {})["values"] == {"weight": 2.0}


def test_each_epoch_has_its_verdict_and_its_place_in_the_page() -> None:
    found = row(FAIL, LOST, PASS, None)
    keys = [SampleKey(scenario="a", agent="bot", epoch=n) for n in range(4)]
    places = {keys[0]: (0, 0), keys[2]: (1, 5)}
    assert row_to_json(found, (), places)["epochs"] == [
        [0, "", "failed", 0, 0],
        [1, "", "inconclusive"],
        [2, "", "passed", 1, 5],
        [3, "", "inconclusive"],
    ]


def test_a_variant_is_part_of_its_epoch() -> None:
    found = row(PASS)
    (epoch,) = found.epochs
    key = epoch.key.model_copy(update={"variant": "v 1"})
    found = replace(found, epochs=(replace(epoch, key=key),))
    assert row_to_json(found, (), {key: (0, 0)})["epochs"] == [[0, "v 1", "passed", 0, 0]]
