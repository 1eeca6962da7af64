"""What decides a conversation, and scenarios in which nothing does."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.decision import GateRow
from agenteval.core.score import NOT_CLEAR, OUTCOME, RULED_OUT, WITHDRAWN, Check, Verdict
from agenteval.verdict.abstentions import (
    DECIDED,
    is_any_decided,
    quote_names,
    undecided_scenario_rows,
    unexercised_criteria,
)
from tests.support.verdict_runs import (
    BEHAVIOR,
    BROKEN,
    GOAL,
    HELD,
    LOST,
    UNDECIDED,
    Played,
    judge_failed,
    only_sample,
    only_scenario,
    report_of,
    score,
    unclear,
    whole,
)


def criterion(text: str, arose: bool, passed: bool | None = True, where: str = "a.yaml:3") -> Check:
    return Check(
        name="criteria", passed=passed, detail=f"{text} — pass: yes", where=where, arose=arose, by="m"
    )


@pytest.mark.parametrize(
    ("items", "decided"),
    [
        ([HELD], True),
        ([BROKEN], True),
        ([UNDECIDED], False),
        ([Check(name="no_error", passed=True)], False),
        ([Check(name="answer", passed=False)], False),
        ([Check(name=OUTCOME, passed=True)], True),
        ([criterion("X", arose=True)], True),
        ([criterion("X", arose=False)], False),
        ([score(BEHAVIOR, label="no failure", ok=True)], True),
        ([score(BEHAVIOR, label="x", ok=False)], True),
        ([score("stars", 5.0)], False),  # a number alone decides nothing
        ([score(GOAL, 1.0)], True),
        ([score(GOAL, 0.0)], True),
        ([unclear(GOAL)], False),
        ([unclear(GOAL, RULED_OUT)], False),
        ([judge_failed(BEHAVIOR)], False),
        ([], False),
        ([UNDECIDED, HELD], True),
    ],
)
def test_what_decides_a_conversation(items: list[Any], decided: bool) -> None:
    assert is_any_decided(only_sample(report_of({"a": [whole(*items)]}))) is decided
    in_turn = Played((), (tuple(items),))
    by_turn = decided and not any(item.kind == "score" and item.metric == GOAL for item in items)
    assert is_any_decided(only_sample(report_of({"a": [in_turn]}))) is by_turn


def test_criteria_that_arose_in_no_conversation() -> None:
    first = whole(criterion("A", arose=False), criterion("B", arose=False), criterion("C", arose=True))
    second = whole(criterion("A", arose=False), criterion("B", arose=True), criterion("C", arose=False))
    expect = {"expect": {"criteria": ["A", "B", "C"]}}
    scenario = only_scenario(report_of({"a": [first, second]}, scenarios={"a": expect}))
    assert len(unexercised_criteria(scenario)) == 1
    assert unexercised_criteria(only_scenario(report_of({"a": [whole(HELD)]}))) == ()


def test_the_same_words_at_another_place_are_another_criterion() -> None:
    played = whole(
        criterion("A", arose=True, where="a.yaml:3"), criterion("A", arose=False, where="a.yaml:9")
    )
    assert len(unexercised_criteria(only_scenario(report_of({"a": [played]})))) == 1


@pytest.mark.parametrize(
    ("played", "has_row"),
    [
        (whole(unclear(GOAL, NOT_CLEAR)), True),
        (whole(unclear(GOAL, RULED_OUT)), True),
        (whole(unclear(GOAL, WITHDRAWN)), True),
        (whole(unclear("policy_adherence")), True),
        (whole(criterion("A", arose=False)), True),
        (whole(unclear(GOAL), HELD), False),
        (whole(unclear(GOAL), score(BEHAVIOR, label="no failure", ok=True)), False),
        (whole(unclear(GOAL), Check(name="answer", passed=True)), True),
        (whole(unclear(GOAL), score("stars", 5.0)), True),
        (whole(), False),  # nobody abstained
        (whole(score("stars", 5.0)), False),
        (whole(score("stars", 5.0), Check(name="answer", passed=True)), False),
        (whole(judge_failed(BEHAVIOR)), False),
        (LOST, False),
    ],
)
def test_a_scenario_in_which_all_abstained_is_open(played: Played, has_row: bool) -> None:
    report = report_of({"a": [played]})
    rows = list(undecided_scenario_rows(report, ()))
    assert [(row.name, row.verdict, row.scenario, row.agent, row.where) for row in rows] == (
        [(DECIDED, Verdict.INCONCLUSIVE, "a", "bot", "s/a.yaml:1")] if has_row else []
    )


def test_one_decided_conversation_decides_its_scenario_only() -> None:
    open_goal = whole(unclear(GOAL))
    report = report_of({"a": [open_goal, whole(HELD)], "b": [open_goal, open_goal], "c": [open_goal]})
    assert [row.scenario for row in undecided_scenario_rows(report, ())] == ["b", "c"]


def test_skipped_judges_are_abstentions() -> None:
    epochs = {"a": [whole(judge_failed(BEHAVIOR))]}
    report = report_of(epochs, judge={"on_failure": "skip"})
    assert [row.scenario for row in undecided_scenario_rows(report, ())] == ["a"]


@pytest.mark.parametrize(
    ("verdict", "agent", "has_row"),
    [
        (Verdict.PASSED, "bot", False),
        (Verdict.FAILED, "bot", False),
        (Verdict.INCONCLUSIVE, "bot", True),
        (Verdict.PASSED, "other", True),
    ],
)
def test_a_decided_threshold_decides_its_scenario(verdict: Verdict, agent: str, has_row: bool) -> None:
    report = report_of({"a": [whole(unclear(GOAL))]})
    threshold = GateRow("thresholds.stars", 4, 3, "", "", verdict, scenario="a", agent=agent)
    assert bool(list(undecided_scenario_rows(report, [threshold]))) is has_row


@pytest.mark.parametrize(
    ("count", "named", "left"), [(1, ["c0"], []), (3, ["c0", "c2"], []), (4, ["c0", "c2"], ["c3"])]
)
def test_only_the_first_criteria_are_quoted(count: int, named: list[str], left: list[str]) -> None:
    text = quote_names([f"c{n}" for n in range(count)])
    assert all(name in text for name in named)
    assert not any(name in text for name in left)
