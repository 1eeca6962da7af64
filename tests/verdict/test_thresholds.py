"""Thresholds: what is known of a metric, what is not, and what each bound makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import RERUN_FAILED, GateRow
from agenteval.core.scenario import EpochRange
from agenteval.core.score import RULED_OUT, WITHDRAWN, Verdict
from agenteval.core.trajectory import StopReason
from agenteval.verdict.report import Report
from agenteval.verdict.thresholds import CONTINUE_REMEDY, REFUSAL_REMEDY, is_errored, threshold_gates
from tests.support.verdict_runs import (
    BEHAVIOR,
    CUT,
    GOAL,
    LOST,
    PASS,
    Played,
    judge_failed,
    only_sample,
    report_of,
    score,
    unclear,
    whole,
    with_suite,
)

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("stop", "errored"),
    [
        (None, True),
        (StopReason.INFRASTRUCTURE, True),
        (StopReason.SIMULATOR, True),
        (StopReason.AUTHOR_ERROR, True),
        (StopReason.UNREADABLE, True),
        (StopReason.INTERRUPTED, True),
        (StopReason.BUDGET, True),
        (StopReason.AGENT_ERROR, False),
        (StopReason.AGENT_TIMEOUT, False),
        (StopReason.TOOL_LOOP, False),
        (StopReason.SCRIPT_DONE, False),
        (StopReason.USER_DONE, False),
        (StopReason.MAX_TURNS, False),
        (StopReason.RECORDED, False),
    ],
)
def test_a_sample_is_errored_by_any_fault_that_is_not_the_agents(
    stop: StopReason | None, errored: bool
) -> None:
    played = Played(stop=stop, detail="logs/a.jsonl:1: x")
    assert is_errored(only_sample(report_of({"a": [played]}))) is errored


def stars(*values: float) -> Played:
    return whole(*(score("stars", value) for value in values))


def rows(
    epochs: Sequence[Played | None], threshold: Any, metric: str = "stars", **more: Any
) -> list[GateRow]:
    return list(threshold_gates(report(epochs, {metric: threshold}, **more)))


def report(epochs: Sequence[Played | None], thresholds: dict[str, Any], **more: Any) -> Report:
    scenarios = {"a": {"goal": "Get it.", **more.pop("scenario", {})}}
    run = {"judged": ("stars", GOAL, BEHAVIOR), **more.pop("run", {})}
    return report_of({"a": epochs}, thresholds=thresholds, scenarios=scenarios, run=run, **more)


FAILED_JUDGE = whole(judge_failed("stars"))


@pytest.mark.parametrize(
    ("epochs", "threshold", "verdict", "value"),
    [
        # The mean, at its bound and at either side of it.
        ([stars(4), stars(3)], 3.5, PASSED, 3.5),
        ([stars(4), stars(3)], 3.6, FAILED, 3.5),
        ([stars(4), stars(3)], 3.4, PASSED, 3.5),
        ([stars(1.1), stars(2.2), stars(3.3)], 2.2, PASSED, 2.2),  # of decimals
        # The lowest single score.
        ([stars(5), stars(2)], {"min": 2}, PASSED, 2),
        ([stars(5), stars(1)], {"min": 2}, FAILED, 1),
        # The share of scores below a number: equal to it is not below.
        ([stars(1), stars(2), stars(3), stars(4)], {"share_below": {2: 0.25}}, PASSED, 0.25),
        ([stars(1), stars(2), stars(3), stars(4)], {"share_below": {3: 0.25}}, FAILED, 0.5),
        ([stars(2), stars(2)], {"share_below": {2: 0}}, PASSED, 0),
        # Values that are not known count once at their worst and once at their best.
        ([stars(5), FAILED_JUDGE], 3.0, PASSED, 5),
        ([stars(5), FAILED_JUDGE], 3.1, OPEN, 5),
        ([stars(1), FAILED_JUDGE], 3.0, OPEN, 1),
        ([stars(1), FAILED_JUDGE], 3.1, FAILED, 1),
        ([stars(5), LOST], 3.0, PASSED, 5),
        ([stars(5), LOST], 3.1, OPEN, 5),
        ([stars(5), None], 3.1, OPEN, 5),
        ([stars(5), CUT], 3.1, OPEN, 5),
        ([stars(5), whole(unclear("stars"))], 3.1, OPEN, 5),
        ([stars(5), FAILED_JUDGE], {"min": 1}, PASSED, 5),
        ([stars(5), FAILED_JUDGE], {"min": 2}, OPEN, 5),
        ([stars(2), FAILED_JUDGE], {"min": 3}, FAILED, 2),
        ([stars(5), FAILED_JUDGE], {"share_below": {2: 0.5}}, PASSED, 0),
        ([stars(5), FAILED_JUDGE], {"share_below": {2: 0.4}}, OPEN, 0),
        # A lost conversation is one unknown value, whatever was found in it.
        ([stars(5), replace(stars(1, 1, 1), stop=StopReason.INFRASTRUCTURE)], 3.0, PASSED, 5),
        # Nothing passes if nothing is known.
        ([FAILED_JUDGE], 1, OPEN, None),
        ([LOST], 1, OPEN, None),
        ([PASS], 1, OPEN, None),
    ],
)
def test_what_a_bound_makes_of_the_scores(
    epochs: list[Played | None], threshold: Any, verdict: Verdict, value: float | None
) -> None:
    (row,) = rows(epochs, threshold)
    assert row.verdict is verdict
    assert row.value == (value if value is None else pytest.approx(value))
    assert (row.scenario, row.agent, row.metric) == ("a", "bot", "stars")
    assert row.basis


def test_a_rule_has_one_row_for_each_of_its_bounds() -> None:
    found = rows([stars(4), stars(2)], {"at_least": 3, "min": 3, "share_below": {2: 0.1, 4: 0.2}})
    assert [(row.name, row.bound, row.verdict) for row in found] == [
        ("thresholds.stars", 3, PASSED),
        ("thresholds.stars.min", 3, FAILED),
        ("thresholds.stars.share_below.2", "at most 0.1", PASSED),
        ("thresholds.stars.share_below.4", "at most 0.2", FAILED),
    ]


@pytest.mark.parametrize(
    ("items", "verdict", "value"),
    [
        ([score(BEHAVIOR, label="no failure", ok=True), score(BEHAVIOR, label="x", ok=False)], PASSED, 0.5),
        ([score(BEHAVIOR, label="x", ok=False)], FAILED, 0),
        ([score(BEHAVIOR, label="no failure")], PASSED, 1),
    ],
)
def test_labels_count_as_one_or_zero(items: list[Any], verdict: Verdict, value: float) -> None:
    (row,) = rows([Played((), (tuple(items),))], 0.5, BEHAVIOR)
    assert (row.verdict, row.value) == (verdict, value)


@pytest.mark.parametrize(
    ("epochs", "resolution"),
    [
        ([FAILED_JUDGE], "agenteval report latest --rejudge"),
        ([stars(5), LOST], RERUN_FAILED),
        ([stars(5), FAILED_JUDGE, LOST], "agenteval report latest --rejudge"),
        ([stars(5), whole(unclear("stars"))], ""),
        ([stars(5), whole(unclear("stars", RULED_OUT)), LOST], REFUSAL_REMEDY),
        ([stars(5), whole(unclear("stars", WITHDRAWN))], CONTINUE_REMEDY),
        ([stars(5), whole(unclear("stars", WITHDRAWN)), LOST], RERUN_FAILED),
        ([PASS], ""),
    ],
)
def test_what_would_decide_an_open_threshold(epochs: list[Played | None], resolution: str) -> None:
    (row,) = rows(epochs, 5)
    assert (row.verdict, row.resolution) == (OPEN, resolution)


@pytest.mark.parametrize(
    ("unknown", "label"),
    [
        (whole(unclear("stars")), "not clear"),
        (whole(unclear("stars", RULED_OUT)), "ruled out"),
        (whole(unclear("stars", WITHDRAWN)), "withdrawn"),
        (LOST, "errored"),
    ],
)
def test_the_basis_names_what_is_not_known(unknown: Played, label: str) -> None:
    labels = {"not clear", "ruled out", "withdrawn", "errored"}
    for bound in (2, 5):  # decided, and open
        (row,) = rows([stars(5), unknown], bound)
        assert {each for each in labels if each in row.basis} == {label}


def test_a_decided_threshold_needs_nothing_more() -> None:
    (row,) = rows([stars(5), LOST], 2)
    assert (row.verdict, row.resolution) == (PASSED, "")


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        ({"judged": ("stars",)}, OPEN),
        ({"judged": ()}, FAILED),  # it is not among the metrics
        ({"judged": (), "no_judge": True}, OPEN),
    ],
)
def test_a_sure_threshold_where_nothing_was_judged(run: dict[str, Any], verdict: Verdict) -> None:
    scenario = {"thresholds": {"stars": 3}}
    (row,) = rows([PASS], None, run=run, scenario=scenario)
    assert (row.verdict, row.scenario) == (verdict, "a")


@pytest.mark.parametrize(("by_flag", "verdict"), [(True, OPEN), (False, FAILED)])
def test_a_metric_left_out_by_the_command_line_is_open(by_flag: bool, verdict: Verdict) -> None:
    made = report([PASS], {}, run={"judged": ()}, scenario={"thresholds": {"stars": 3}})
    (row,) = threshold_gates(with_suite(made, by_flag=by_flag))
    assert row.verdict is verdict
    assert ("--metric" in row.resolution) is by_flag
    (row,) = threshold_gates(with_suite(made, by_flag=by_flag, judged=("stars",)))
    assert (row.verdict, row.resolution) == (OPEN, "")


def test_code_only_requires_no_threshold() -> None:
    assert rows([stars(1)], 5) != []
    assert rows([stars(1)], 5, code_only=True) == []


@pytest.mark.parametrize(
    ("epochs", "verdict", "scenario"),
    [
        ([PASS], FAILED, ""),  # a goal that no scenario has
        ([whole(score(GOAL, 1.0))], PASSED, "a"),
        ([whole(judge_failed(GOAL))], OPEN, "a"),
        ([whole(unclear(GOAL))], OPEN, "a"),
        ([whole(unclear(GOAL, RULED_OUT))], OPEN, "a"),
        ([whole(unclear(GOAL, WITHDRAWN))], OPEN, "a"),
        ([LOST], FAILED, ""),
    ],
)
def test_a_threshold_that_may_apply_needs_a_judgement(
    epochs: list[Played], verdict: Verdict, scenario: str
) -> None:
    found = rows(epochs, 0.5, GOAL, scenario={"goal": ""})
    assert [(row.name, row.verdict, row.scenario) for row in found] == [
        (f"thresholds.{GOAL}", verdict, scenario)
    ]


def test_a_threshold_that_applies_nowhere_is_open_without_judges() -> None:
    (row,) = rows([PASS], {"min": 1, "at_least": 0.5}, GOAL, scenario={"goal": ""}, run={"no_judge": True})
    assert (row.verdict, row.value, row.bound, row.metric) == (OPEN, None, 0.5, GOAL)


def test_a_metric_that_was_asked_for_and_applies_nowhere_fails() -> None:
    made = report([PASS], {GOAL: 0.5}, scenario={"goal": ""})
    for judged, verdict in {(GOAL,): FAILED, ("stars",): OPEN}.items():
        (row,) = threshold_gates(with_suite(made, by_flag=True, judged=judged))
        assert row.verdict is verdict


def test_a_threshold_that_is_switched_off_or_applies_elsewhere_has_no_row() -> None:
    assert rows([PASS], 3, scenario={"thresholds": {"stars": None}}) == []
    unapplied = {f"thresholds.{GOAL}": "elsewhere"}
    assert rows([PASS], 0.5, GOAL, scenario={"goal": ""}, run={"unapplied": unapplied}) == []


def test_an_unknown_metric_has_only_the_row_of_the_suite() -> None:
    (row,) = rows([PASS], 3, "never heard of")
    assert (row.name, row.verdict, row.scenario) == ("thresholds.never heard of", FAILED, "")


@pytest.mark.parametrize(
    ("played", "least", "verdict"),
    [
        ([stars(5), stars(5), LOST], 2, PASSED),  # it was replaced
        ([stars(5), LOST], 2, OPEN),
        ([stars(5), stars(5), stars(5), LOST], 2, PASSED),
    ],
)
def test_a_replaced_conversation_is_not_missing(
    played: list[Played | None], least: int, verdict: Verdict
) -> None:
    made = report(played, {"stars": 4})
    (scenario,) = made.scenarios
    rules = scenario.rules.model_copy(update={"epochs": EpochRange(min=least, max=9)})
    (row,) = threshold_gates(replace(made, scenarios=(replace(scenario, rules=rules),)))
    assert row.verdict is verdict
