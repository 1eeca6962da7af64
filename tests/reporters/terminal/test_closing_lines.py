"""The last lines of the screen: a line for each failure, the next commands, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len

from agenteval.core.decision import GateRow, ScenarioDecision, Violation
from agenteval.core.score import Check, Verdict
from agenteval.core.trajectory import StopReason
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.closing_lines import ending, failure_list, last_line, next_commands
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import (
    BEHAVIOR,
    FAIL,
    LOST,
    PASS,
    UNSURE,
    Played,
    judge_failed,
    report_of,
    score,
)

P, F, U = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
RUN: Mapping[str, Any] = {"request": {"paths": ["s"]}}
Epochs = Mapping[str, Sequence[Played | None]]


def facts_of(epochs: Epochs, **more: Any) -> Facts:
    report = report_of(epochs, **{"run": RUN, **more})
    return Facts(report, decide(report))


def with_decision(facts: Facts, **changes: Any) -> Facts:
    return Facts(facts.report, replace(facts.decision, **changes))


def listed(facts: Facts, **options: Any) -> list[str]:
    told = ReportOptions(**options)
    return render_parts(failure_list(facts, told), told).splitlines()


def broken(detail: str, name: str = "output.contains", passed: bool | None = False) -> Played:
    return Played((Check(name=name, passed=passed, detail=detail),))


def gate(name: str = "pass_rate", verdict: Verdict = F, **more: Any) -> GateRow:
    fields = {"value": 0.5, "bound": 0.9, "basis": "basis", "where": "", **more}
    return GateRow(name=name, verdict=verdict, **fields)


# The list


def test_failed_come_before_undecided_and_those_that_never_ran_are_one_line() -> None:
    facts = facts_of({"good": [PASS], "never": [None], "open": [UNSURE], "bad": [FAIL], "nor": [None]})
    assert listed(facts) == [
        "FAILED bad.yaml::bad  not there",
        "INCONCLUSIVE open.yaml::open  python: it raised",
        "INCONCLUSIVE 2 scenarios never ran: never, nor",
    ]


def test_a_run_that_passed_has_no_list_unless_its_author_erred() -> None:
    bad = with_decision(facts_of({"bad": [FAIL]}), verdict=P)
    assert listed(bad) == []
    erred = with_decision(bad, author_errors=("x",), gates=(gate(),))
    assert next(line.split()[:2] for line in listed(erred)) == ["FAILED", "pass_rate"]


@pytest.mark.parametrize(
    ("played", "text"),
    [
        ([FAIL], "not there"),
        ([FAIL, PASS], "1 of 2 conversations: not there"),
        ([PASS, FAIL, FAIL, None], "2 of 4 conversations: not there"),
        ([UNSURE, FAIL], "1 of 2 conversations: not there"),
        ([UNSURE, PASS], "1 of 2 conversations: python: it raised"),
    ],
)
def test_how_many_conversations_ended_so(played: list[Played | None], text: str) -> None:
    (line,) = listed(facts_of({"a": played}))
    assert line.endswith(f"a.yaml::a  {text}")


def test_a_rule_over_all_conversations_counts_none() -> None:
    scores = [Played((score("stars", 1.0),), turns=((),))] * 2
    (line,) = listed(facts_of({"a": scores}, thresholds={"stars": 3}))
    assert line.startswith("FAILED a.yaml::a  stars: ")


def test_for_a_gate_over_repeated_runs_the_gate_itself_is_shown() -> None:
    report = report_of({"a": [FAIL, FAIL]}, run=RUN)
    decided = decide(report)
    own = {("a", "bot"): ScenarioDecision(F, (Violation("pass_rate", "0 of 2", "w"),))}
    facts = Facts(report, replace(decided, scenarios=own))
    (line,) = listed(facts)
    assert "2 of 2 conversations: not there" in line
    gated = report_of({"a": [FAIL, FAIL]}, run=RUN, gates={"pass_rate": 0.9})
    (line,) = listed(Facts(gated, replace(decided, scenarios=own)))
    assert line.endswith(": pass_rate: 0 of 2")


def test_several_agents_are_named() -> None:
    lines = listed(facts_of({"a": [FAIL]}, agents=("x", "y")))
    assert [line.partition("  ")[0] for line in lines] == ["FAILED a.yaml::a · x", "FAILED a.yaml::a · y"]


def test_rows_that_ended_alike_are_one_line() -> None:
    pattern = {"pattern": "order-${row.n}", "source": "s/o.yaml:1"}
    epochs = {"order-1": [FAIL], "order-2": [FAIL], "order-3": [PASS]}
    (line,) = listed(facts_of(epochs, scenarios=dict.fromkeys(epochs, pattern)))
    assert line.startswith("FAILED o.yaml::order-1  2 of 3 rows; ")


def test_of_a_reported_log_only_its_own_rules_decide() -> None:
    facts = with_decision(
        facts_of({"a": [UNSURE]}), is_reported=True, gates=(gate(scenario="a", agent="bot"),)
    )
    own = {("a", "bot"): ScenarioDecision(F, (Violation("g", "d", "", U),))}
    (line,) = listed(with_decision(facts, scenarios=own))
    assert line.startswith("INCONCLUSIVE ")


def test_gates_over_the_run_come_first_with_their_figures_and_basis() -> None:
    facts = facts_of({"bad": [FAIL]})
    rows = (
        gate("no_regression", U, where="/r/agenteval.yaml:5", basis="2 scenarios: more epochs"),
        gate("fault_tolerance"),
        gate("pass_rate", scenario="bad", agent="bot"),
        gate("budget", P),
    )
    lines = listed(with_decision(facts, gates=rows), root="/r")
    assert lines == [
        "INCONCLUSIVE no_regression  0.5, bound 0.9, agenteval.yaml:5",
        "       2 scenarios: more epochs",
        "FAILED bad.yaml::bad  not there",
    ]


def test_a_gate_without_a_basis_is_one_line() -> None:
    facts = with_decision(facts_of({"bad": [FAIL]}), gates=(gate(basis=""),))
    assert listed(facts)[:2] == ["FAILED pass_rate  0.5, bound 0.9", "FAILED bad.yaml::bad  not there"]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (40, ["FAILED a.yaml::a  abcdefgh abcdefgh", ""]),
        (35, ["FAILED a.yaml::a  abcdefgh abcdefgh", ""]),
        (34, ["FAILED a.yaml::a", "       abcdefgh abcdefgh"]),
        (24, ["FAILED a.yaml::a", "       abcdefgh abcdefgh"]),
        (23, ["FAILED a.yaml::a", "       abcdefgh abcdef…"]),
    ],
)
def test_a_reason_that_does_not_fit_stands_below(width: int, lines: list[str]) -> None:
    facts = facts_of({"a": [broken("abcdefgh abcdefgh")]})
    assert listed(facts, width=width) == list(filter(None, lines))


def test_a_reason_in_wide_letters_stands_below_where_it_would_be_cut() -> None:
    facts = facts_of({"a": [broken("退款" * 9)]})
    assert listed(facts, width=43)[:2] == ["FAILED a.yaml::a", f"       {'退款' * 9}"]


def test_a_long_reason_is_cut_beside_the_name_where_there_is_room() -> None:
    (line,) = listed(facts_of({"a": [broken("x" * 200)]}), width=60)
    assert line == f"FAILED a.yaml::a  {'x' * 41}…"


LONG = "set `" + "a: b, " * 20 + "`"


@pytest.mark.parametrize(
    ("width", "count"), [(100, 1), (40, 2)], ids=["beside or below", "on lines of its own"]
)
def test_a_remedy_is_never_cut(width: int, count: int) -> None:
    facts = facts_of({"a": [broken("down — wait and see", "python", None)]})
    lines = listed(facts, width=width, quiet=True)
    assert len(lines) == count
    assert "wait and see" in " ".join(lines)


def test_a_remedy_that_was_told_is_not_told_again() -> None:
    same = broken(f"down — {LONG}", "python", None)
    facts = facts_of({"a": [same], "b": [broken(f"ill — {LONG}", "other", None)]})
    assert " ".join(listed(facts, quiet=True)).count("set `") == 1
    # The blocks above show it already.
    assert " ".join(listed(facts)).count("set `") == 0
    assert len(listed(facts)) == 2


def test_a_remedy_of_several_lines_stands_below() -> None:
    lines = listed(facts_of({"a": [broken("down — one\ntwo", "python", None)]}), quiet=True)
    assert lines == ["INCONCLUSIVE a.yaml::a  python: down", "       — one", "       two"]


def test_the_list_ends_after_a_thousand_lines() -> None:
    epochs: dict[str, list[Played | None]] = {f"s{n}": [broken(f"no {n}")] for n in range(3)}
    facts = facts_of(epochs)
    many = with_decision(facts, gates=tuple(gate(f"g{n}") for n in range(998)))
    named = [line for line in listed(many) if not line.startswith(" ")]
    assert named[-2].startswith("FAILED s1.yaml::s1")
    assert named[-1] == "… and 1 more"
    fits = with_decision(facts, gates=tuple(gate(f"g{n}") for n in range(997)))
    assert listed(fits)[-1].startswith("FAILED s2.yaml::s2")


# What to do next


RESUME, AGAIN = "Resume: agenteval run --resume ab12", "Re-run: agenteval run s --failed-in ab12"
SHOW_A, DOCTOR = "Inspect: agenteval show a", "Check: agenteval doctor"


@pytest.mark.parametrize(
    ("epochs", "more", "commands"),
    [
        ({"a": [PASS]}, {}, ["Details: agenteval report latest -v"]),
        ({"a": [FAIL]}, {}, [AGAIN, SHOW_A]),
        ({"a": [FAIL]}, {"outcome": "interrupted"}, [RESUME, SHOW_A]),
        ({"a": [FAIL]}, {"outcome": "budget"}, [RESUME, SHOW_A]),
        ({"a": [FAIL]}, {"outcome": "deadline"}, [RESUME, SHOW_A]),
        ({"a": [FAIL]}, {"outcome": None}, [RESUME, SHOW_A]),
        ({"a": [FAIL]}, {"outcome": "fail_fast"}, [AGAIN, SHOW_A]),
        ({"a": [LOST]}, {}, [AGAIN, DOCTOR]),
        ({"a": [LOST], "b": [FAIL]}, {}, [AGAIN, "Inspect: agenteval show b"]),
        ({"a": [UNSURE], "b": [LOST]}, {}, [AGAIN, SHOW_A]),
    ],
)
def test_the_next_commands(epochs: Epochs, more: Mapping[str, Any], commands: list[str]) -> None:
    found = next_commands(facts_of(epochs, **more))
    assert [f"{label}: {command}" for label, command in found] == commands


@pytest.mark.parametrize(
    ("run", "name", "shown"),
    [
        ("", "ab12", "agenteval show a"),
        ("20261121-101500-ab12", "ab12", "agenteval show 20261121-101500-ab12 a"),
        ("mine", "mine", "agenteval show mine a"),
    ],
)
def test_the_run_is_named_as_it_was(run: str, name: str, shown: str) -> None:
    facts = facts_of({"a": [FAIL]})
    assert list(next_commands(facts, run)) == [
        ("Re-run", f"agenteval run s --failed-in {name}"),
        ("Inspect", shown),
    ]
    passed = dict(next_commands(facts_of({"a": [PASS]}), run))
    assert passed == {"Details": f"agenteval report {run or 'latest'} -v"}


def test_a_judge_that_failed_is_to_be_checked() -> None:
    facts = facts_of({"a": [Played(turns=((judge_failed(BEHAVIOR),),))]})
    assert facts.decision.verdict is U
    assert [label for label, _ in next_commands(facts)] == ["Re-run", "Check"]


def test_of_what_was_recorded_the_failure_itself_is_scored_again() -> None:
    recorded = replace(FAIL, stop=StopReason.RECORDED, detail="log.jsonl:1")
    facts = facts_of({"a": [recorded]}, run={"command": ("score", "log.jsonl")}, outcome=None)
    assert list(next_commands(facts)) == [
        ("Re-run", "agenteval score log.jsonl -s a"),
        ("Inspect", "agenteval show a"),
    ]


def test_of_nothing_there_are_no_details() -> None:
    empty = facts_of({"a": [None]})
    assert list(next_commands(with_decision(empty, verdict=P))) == []


# The verdict


def ended(facts: Facts, **options: Any) -> list[str]:
    told = ReportOptions(**options)
    return render_parts(ending(facts, told), told).splitlines()


def test_the_commands_stand_beside_each_other_where_they_fit() -> None:
    facts = facts_of({"a": [FAIL]})
    commands = "Re-run: agenteval run s --failed-in ab12     Inspect: agenteval show a"
    *lines, verdict = ended(facts, width=len(commands))
    assert lines == [commands]
    assert verdict.startswith("FAILED: ")
    *lines, _ = ended(facts, width=len(commands) - 1)
    assert lines == commands.split("     ")
    assert ended(facts, quiet=True) == [verdict]


def test_wide_letters_take_two_columns_of_the_commands() -> None:
    facts = facts_of({"退款": [FAIL]})
    commands = "Re-run: agenteval run s --failed-in ab12     Inspect: agenteval show '退款'"
    width = cell_len(commands)
    assert ended(facts, width=width)[:-1] == [commands]
    assert ended(facts, width=width - 1)[:-1] == commands.split("     ")


def test_the_whole_report_does_not_point_at_itself() -> None:
    facts = facts_of({"a": [PASS]})
    failed = facts_of({"a": [FAIL]})
    labels = [
        [line.partition(":")[0] for line in ended(each, verbose=v)]
        for each in (facts, failed)
        for v in (False, True)
    ]
    assert labels[:2] == [["Details", "PASSED"], ["PASSED"]]
    assert labels[3] == ["Re-run", "FAILED"]


@pytest.mark.parametrize(
    ("changes", "outcome", "word", "style"),
    [
        ({}, "complete", "FAILED", "red"),
        ({"verdict": P}, "complete", "PASSED", "green"),
        ({"verdict": U}, "complete", "INCONCLUSIVE", "magenta"),
        ({}, "interrupted", "INCOMPLETE", "magenta"),
        ({"author_errors": ("x",)}, "complete", "AUTHOR ERROR", "red"),
        ({"verdict": P, "is_reported": True}, "complete", "REPORTED", "default"),
    ],
)
def test_the_last_line(changes: Mapping[str, Any], outcome: str, word: str, style: str) -> None:
    line = last_line(with_decision(facts_of({"a": [FAIL]}, outcome=outcome), **changes))
    assert line.plain.startswith(f"{word}: ")
    assert line.style == f"bold {style}"
    assert "(exit 1" in line.plain
    assert line.no_wrap
