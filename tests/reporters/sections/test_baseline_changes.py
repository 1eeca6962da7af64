"""What changed against the baseline: kinds of change, how sure each is, and data rows that changed alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.event import Baseline
from agenteval.core.score import Check, Verdict
from agenteval.reporters.sections.baseline_changes import KINDS, ChangeRow, baseline_changes
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.verdict_runs import FAIL, LOST, PASS, Played, report_of

Outcomes = Mapping[str, tuple[bool | None, ...]]
LENIENT = {"gates": {"pass_rate": {"at_least": 0.3, "reject_below": 0.01}}}


def baseline(outcomes: Outcomes, *agents: str) -> Baseline:
    return Baseline(run_id="r0", outcomes={agent: dict(outcomes) for agent in agents or ("bot",)})


def report(told: Mapping[str, Sequence[Played | None]], before: Outcomes | None, **more: Any) -> Report:
    run = {} if before is None else {"baseline": baseline(before, *more.get("agents", ()))}
    return report_of(told, run=run, **more)


def rows(
    told: Mapping[str, Sequence[Played | None]], before: Outcomes | None, **more: Any
) -> list[ChangeRow]:
    found = report(told, before, **more)
    return list(baseline_changes(Facts(found, decide(found))))


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        ([PASS], (True,), None),
        ([PASS], None, None),
        ([FAIL], (True,), ("Newly failing", "1/1", "0/1", "may be chance")),
        ([FAIL] * 9, (True,) * 9, ("Newly failing", "9/9", "0/9", "significant")),
        ([FAIL] * 9, (True,) * 8 + (False,), ("Newly failing", "8/9", "0/9", "significant")),
        ([FAIL], (False,), ("Still failing", "0/1", "0/1", "may be chance")),
        ([PASS, FAIL], (True, False), ("Still failing", "1/2", "1/2", "may be chance")),
        ([FAIL], None, ("Failing, and not in the baseline", "–", "0/1", "unknown")),
        ([FAIL], (None,), ("Newly failing", "0/0", "0/1", "unknown")),
        ([PASS], (False,), ("Fixed", "0/1", "1/1", "may be chance")),
        ([PASS] * 9, (False,) * 9, ("Fixed", "0/9", "9/9", "significant")),
        ([LOST], (True,), ("Undecided", "1/1", "0/0", "unknown")),
        ([LOST], None, ("Undecided", "–", "0/0", "unknown")),
    ],
)
def test_the_kind_of_a_change_and_how_sure_it_is(
    now: list[Played | None], before: tuple[bool | None, ...] | None, expected: tuple[str, ...] | None
) -> None:
    found = rows({"a": now}, {} if before is None else {"a": before})
    assert [(row.kind, row.before, row.after, row.confidence) for row in found] == (
        [expected] if expected else []
    )


@pytest.mark.parametrize(
    ("now", "before", "kind"),
    [
        ([PASS], (True,), "Failing"),
        ([PASS, PASS], (True, True), "Failing"),
        ([LOST], (True,), "Failing"),
        ([PASS], (False,), "Still failing"),
        ([PASS, FAIL], (True, True), "Newly failing"),
    ],
)
def test_a_rule_over_all_conversations_may_have_failed_before(
    now: list[Played | None], before: tuple[bool | None, ...], kind: str
) -> None:
    """The baseline has the results of conversations only, so that nobody knows if it is new."""
    found = report({"a": now}, {"a": before})
    decision = decide(found)
    scenarios = {("a", "bot"): replace(decision.scenarios["a", "bot"], verdict=Verdict.FAILED)}
    (row,) = baseline_changes(Facts(found, replace(decision, scenarios=scenarios)))
    assert row.kind == kind


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({}, "Failing, and not in the baseline"),
        ({"bot": {"b": "the goal"}}, "Failing, and not in the baseline"),
        ({"new": {"a": "the goal"}}, "Failing, and not in the baseline"),
        ({"bot": {"a": "the goal"}}, "Failing"),
    ],
)
def test_a_scenario_that_changed_since_the_baseline_is_not_new(
    changed: dict[str, dict[str, str]], kind: str
) -> None:
    before = Baseline(run_id="r0", outcomes={"bot": {}}, changed=changed)
    found = report_of({"a": [FAIL]}, run={"baseline": before})
    assert [row.kind for row in baseline_changes(Facts(found, decide(found)))] == [kind]


def test_a_scenario_that_passes_far_less_often_is_told() -> None:
    (row,) = rows({"a": [PASS] * 8 + [FAIL] * 12}, {"a": (True,) * 20}, **LENIENT)
    assert row.kind == "Passing, but significantly less often"
    assert (row.before, row.after, row.confidence) == ("20/20", "8/20", "significant")


@pytest.mark.parametrize(("passed", "kinds"), [(16, []), (12, []), (17, ["Fixed"]), (24, ["Fixed"])])
def test_a_passing_scenario_is_fixed_only_if_it_passes_more_often(passed: int, kinds: list[str]) -> None:
    before = (True,) * 16 + (False,) * 8
    found = rows({"a": [PASS] * passed + [FAIL] * (24 - passed)}, {"a": before}, **LENIENT)
    assert [row.kind for row in found] == kinds


@pytest.mark.parametrize(("played", "kinds"), [(FAIL, ["Failing"]), (LOST, ["Undecided"]), (PASS, [])])
def test_without_a_baseline_all_that_does_not_pass_is_told(played: Played, kinds: list[str]) -> None:
    assert [row.kind for row in rows({"a": [played]}, None)] == kinds


def test_names_are_full_and_have_the_agent_where_there_are_several() -> None:
    assert [row.name for row in rows({"a": [FAIL]}, {"a": (True,)})] == ["s/a.yaml::a"]
    both = rows({"a": [FAIL]}, {"a": (True,)}, agents=("bot", "new"))
    assert [row.name for row in both] == ["s/a.yaml::a · bot", "s/a.yaml::a · new"]
    assert [row.kind for row in both] == ["Newly failing"] * 2


def test_a_baseline_is_read_by_agent() -> None:
    found = report_of({"a": [FAIL]}, run={"baseline": baseline({"a": (True,)}, "bot")}, agents=("bot", "new"))
    kinds = [row.kind for row in baseline_changes(Facts(found, decide(found)))]
    assert kinds == ["Newly failing", "Failing, and not in the baseline"]


def test_the_first_reason_is_told_only_of_what_does_not_pass() -> None:
    failing, fixed = rows({"a": [FAIL], "b": [PASS]}, {"a": (True,), "b": (False,)})
    assert "not there" in failing.why
    assert fixed.why == ""


DATA = {name: {"pattern": "rows-${row.n}", "source": "s/x.yaml:1"} for name in "abcd"}


def test_data_rows_that_changed_alike_are_one_row() -> None:
    told = {"a": [FAIL], "b": [FAIL], "c": [FAIL], "d": [PASS]}
    before: Outcomes = {"a": (True,), "b": (True,), "c": (False,), "d": (False,)}
    found = rows(told, before, scenarios=DATA)
    assert [(row.kind, row.rows) for row in found] == [
        ("Newly failing", 2),
        ("Still failing", 1),
        ("Fixed", 1),
    ]
    assert found[0].name.startswith("s/x.yaml::a")
    assert found[0].name.endswith(" 1 more row")
    assert "more" not in found[1].name
    (row, *_) = rows({"a": [FAIL], "b": [FAIL], "c": [FAIL]}, None, scenarios=DATA)
    assert (row.rows, row.name.endswith(" 2 more rows")) == (3, True)


def test_a_scenario_of_the_baseline_alone_is_left_out() -> None:
    assert rows({"a": [PASS]}, {"a": (True,), "gone": (True, False)}) == []


def test_a_change_is_sure_only_if_it_is_among_all_scenarios() -> None:
    """Fisher's exact test of 4 of 4 against 0 of 4 alone: p = 0.029 on both sides, 0.014 on one."""
    alone = rows({"a": [FAIL] * 4}, {"a": (True,) * 4})
    assert [row.confidence for row in alone] == ["significant"]
    others = {f"s{n}": [PASS] * 4 for n in range(9)}
    told = {"a": [FAIL] * 4, **others}
    before = {"a": (True,) * 4, **dict.fromkeys(others, (True,) * 4)}
    assert [(row.name, row.confidence) for row in rows(told, before)] == [("s/a.yaml::a", "may be chance")]


@pytest.mark.parametrize(
    ("detail", "why"),
    [
        ("first\nsecond", "first"),
        ("x" * 140, "x" * 140),
        ("x" * 141, "x" * 139 + "…"),
        ("a\x1b[2Jb", "ab"),
    ],
)
def test_the_reason_is_one_short_line(detail: str, why: str) -> None:
    broken = Played((Check(name="output.contains", passed=False, detail=detail),))
    (row,) = rows({"a": [broken]}, {"a": (True,)})
    assert row.why == why


def test_data_rows_of_several_agents_are_not_one_row() -> None:
    found = rows({"a": [FAIL], "b": [FAIL]}, None, scenarios=DATA, agents=("bot", "new"))
    assert sum(row.rows for row in found) == 4
    assert len(found) == 2


def test_data_rows_that_broke_other_rules_are_not_one_row() -> None:
    other = Played((Check(name="output.matches", passed=False, detail="no match"),))
    found = rows({"a": [FAIL], "b": [other], "c": [FAIL]}, None, scenarios=DATA)
    assert [(row.name, row.rows, row.why) for row in found] == [
        ("s/x.yaml::a and 1 more row", 2, "not there"),
        ("s/x.yaml::b", 1, "no match"),
    ]


def test_the_order_of_the_kinds() -> None:
    assert KINDS == (
        "Newly failing",
        "Passing, but significantly less often",
        "Failing, and not in the baseline",
        "Failing",
        "Undecided",
        "Still failing",
        "Fixed",
    )
