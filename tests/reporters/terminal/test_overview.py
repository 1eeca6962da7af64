"""The first lines of the screen: what ran, how each file ended, the dimensions, and by how much it passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import GateRow
from agenteval.core.scenario import Category
from agenteval.core.score import Check, Score, Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.overview import dimensions, files, head, passing_margins
from agenteval.reporters.terminal.screen import Part, render_parts
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.report_samples import weather_call
from tests.support.score_samples import MODEL
from tests.support.verdict_runs import (
    BEHAVIOR,
    FAIL,
    LOST,
    PASS,
    UNSURE,
    Played,
    report_of,
    score,
)

P, F, U = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
Epochs = Mapping[str, Sequence[Played | None]]


def facts_of(epochs: Epochs, **more: Any) -> Facts:
    return decided(report_of(epochs, **more))


def decided(report: Report, **changes: Any) -> Facts:
    return Facts(report, replace(decide(report), **changes))


def shown(part: Part, facts: Facts, **options: Any) -> list[str]:
    told = ReportOptions(**options)
    return [line for line in render_parts(part(facts, told), told).splitlines() if line]


# What ran


def first(facts: Facts) -> list[str]:
    return shown(head, facts, width=200)[0].split(" · ")


def test_what_ran() -> None:
    facts = facts_of({"a": [PASS, PASS], "b": [None]}, elapsed_s=5.06)
    assert first(facts) == ["agenteval 0.1.0", "bot", "2 scenarios, 2 conversations", "5.1 s"]
    assert shown(head, facts)[1] == "run 20261121-101500-ab12"


def test_who_judged_stands_beside_the_run() -> None:
    facts = facts_of({"a": [Played((Score(metric="stars", value=4, by=MODEL),), turns=((),))]})
    assert shown(head, facts)[1] == f"run 20261121-101500-ab12 · judged by {MODEL}, uncalibrated"


def test_what_does_not_fit_stands_on_further_lines() -> None:
    lines = shown(head, facts_of({"a": [PASS]}), width=40)
    assert lines[:2] == ["agenteval 0.1.0 · bot", "  1 scenario, 1 conversation · 1.0 s"]
    assert all(len(line) <= 40 for line in lines)
    (exact, *_) = shown(head, facts_of({"a": [PASS]}, outcome=None), width=50)
    assert exact == "agenteval 0.1.0 · bot · 1 scenario, 1 conversation"
    narrow = shown(head, facts_of({"a": [PASS]}, outcome=None), width=49)
    assert narrow[1] == "  1 scenario, 1 conversation"


# How each file ended


def words(lines: Sequence[str]) -> list[tuple[str, ...]]:
    """Sign, name and outcome of each line."""
    parts = [(line[0], *(each for each in line[2:].split("  ") if each)) for line in lines]
    return [tuple(each.strip() for each in part) for part in parts]


def in_files(places: Mapping[str, str], epochs: Epochs, **more: Any) -> Facts:
    sources = {name: {"source": f"{places[name]}:1" if places[name] else ""} for name in epochs}
    return facts_of(epochs, scenarios=sources, **more)


def test_files_in_which_something_did_not_pass_come_worst_first_and_the_others_in_one_line() -> None:
    places = {"a": "s/open.yaml", "b": "s/bad.yaml", "c": "s/bad.yaml", "d": "s/g1.yaml", "e": "s/g2.yaml"}
    places |= {"f": "s/worse.yaml", "g": "s/worse.yaml", "h": "s/worse.yaml"}
    epochs = {"a": [UNSURE], "b": [FAIL], "c": [PASS], "d": [PASS], "e": [PASS]}
    epochs |= {"f": [FAIL], "g": [FAIL], "h": [LOST]}
    assert words(shown(files, in_files(places, epochs))) == [
        ("✗", "s/worse.yaml", "2 of 3 failed, 1 undecided"),
        ("✗", "s/bad.yaml", "1 of 2 failed"),
        ("?", "s/open.yaml", "1 of 1 undecided"),
        ("✓", "2 more files", "2 passed"),
    ]


@pytest.mark.parametrize(
    ("places", "epochs", "line"),
    [
        ({"a": "s/x.yaml"}, {"a": [PASS]}, ("✓", "s/x.yaml", "1 passed")),
        ({"a": "s/x.yaml", "b": "s/y.yaml"}, {"a": [PASS], "b": [PASS]}, ("✓", "2 files", "2 passed")),
        ({"a": ""}, {"a": [PASS]}, ("✓", "(no file)", "1 passed")),
        ({"a": ""}, {"a": [FAIL]}, ("✗", "(no file)", "1 of 1 failed")),
        ({"a": "s/x.yaml", "b": "s/y.yaml"}, {"a": [FAIL], "b": [PASS]}, ("✓", "s/y.yaml", "1 passed")),
        ({"a": "s/x.yaml", "b": ""}, {"a": [FAIL], "b": [PASS]}, ("✓", "1 more file", "1 passed")),
    ],
)
def test_the_name_of_a_file(places: dict[str, str], epochs: Epochs, line: tuple[str, ...]) -> None:
    assert words(shown(files, in_files(places, epochs)))[-1] == line


@pytest.mark.parametrize(("count", "rest"), [(10, []), (11, ["1 more file"]), (13, ["3 more files"])])
def test_ten_files_are_shown(count: int, rest: list[str]) -> None:
    names = [f"n{n:02}" for n in range(count)]
    lines = words(
        shown(files, in_files({name: f"{name}.yaml" for name in names}, {n: [FAIL] for n in names}))
    )
    assert [name for _, name, _ in lines] == [f"{name}.yaml" for name in names[:10]] + rest
    if rest:
        assert lines[-1][2] == f"{count - 10} of {count - 10} failed"


def test_a_scenario_that_passed_although_conversations_failed_is_told() -> None:
    places = {key: {"source": "s/x.yaml:1"} for key in ("some", "none", "all")}
    report = report_of({"some": [PASS, FAIL], "none": [FAIL], "all": [PASS]}, scenarios=places)
    told = decide(report)
    passed = {key: replace(each, verdict=P) for key, each in told.scenarios.items()}
    lines = words(shown(files, Facts(report, replace(told, scenarios=passed))))
    assert lines == [
        ("✓", "s/x.yaml", "1 of 3 with no passing conversation, 1 passed only some conversations")
    ]


def test_a_reported_log_has_no_files_to_pass() -> None:
    report = report_of({"a": [FAIL]})
    assert shown(files, decided(report, is_reported=True)) == []
    assert shown(dimensions, decided(report, is_reported=True)) == []


# The dimensions


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")]


def table(facts: Facts, width: int = 100) -> list[dict[str, str]]:
    lines = [cells(line) for line in shown(dimensions, facts, width=width) if line.startswith("│")]
    titles, *rows = lines
    return [dict(zip(titles, row, strict=True)) for row in rows]


def test_a_row_for_each_dimension() -> None:
    kinds = {"a": {"category": Category.EFFICIENCY}, "b": {}, "c": {"category": Category.ROBUSTNESS}, "d": {}}
    facts = facts_of({"a": [PASS], "b": [FAIL], "c": [PASS], "d": [PASS]}, scenarios=kinds)
    found = {row["Dimension"]: row["Passed"] for row in table(facts)}
    assert found == {"Capability": "1/2", "Efficiency": "1/1", "Robustness": "1/1"}


def test_the_figures_of_a_dimension() -> None:
    called = Played((Check(name="tool_calls", passed=True),), calls=(weather_call(),))
    (row,) = table(facts_of({"a": [called], "b": [FAIL]}), 120)
    assert row == {
        "Dimension": "Capability",
        "Passed": "1/2",
        "Tool calls": "100.0%",
        "Output": row["Output"],
        "p50 ms": "1,500",
        "p95 ms": "max 1,500",
        "Avg steps": "1.5",
        "Avg tokens": "≈225",
        "Avg calls": "0.5",
    }


@pytest.mark.parametrize(("count", "text"), [(19, "max 1,500"), (20, "1,500")])
def test_of_few_conversations_the_95th_percentile_is_the_highest(count: int, text: str) -> None:
    (row,) = table(facts_of({"a": [PASS] * count}))
    assert row["p95 ms"] == text


def test_columns_that_say_nothing_are_left_out() -> None:
    (row,) = table(facts_of({"a": [LOST]}))
    assert row == {"Dimension": "Capability", "Passed": "0/1"}


def test_with_several_agents_each_has_its_own_row() -> None:
    rows = table(facts_of({"a": [PASS]}, agents=("x", "y")))
    assert [row["Dimension"] for row in rows] == ["Capability · x", "Capability · y"]


def test_an_empty_line_follows_the_table_unless_the_run_passed() -> None:
    def last(facts: Facts) -> str:
        return render_parts(dimensions(facts, ReportOptions()), ReportOptions()).splitlines()[-1]

    assert (last(facts_of({"a": [FAIL]})), last(facts_of({"a": [PASS]}))[0]) == ("", "╰")
    assert last(decided(report_of({"a": [PASS]}), author_errors=("x",))) == ""


def test_what_does_not_fit_is_named() -> None:
    facts = facts_of({"a": [PASS]})
    wide = shown(dimensions, facts, width=120)
    full = len(wide[0])
    assert "Avg calls" in table(facts, full)[0]
    narrower = shown(dimensions, facts, width=full - 1)
    assert "Calls" in cells(narrower[1])
    assert all("too narrow" not in line for line in narrower)
    small = shown(dimensions, facts, width=40)
    assert list(table(facts, 40)[0])[:2] == ["Dimension", "Passed"]
    assert all(len(line) <= 40 for line in small)
    told = " ".join(small[small.index(next(line for line in small if "too narrow" in line)) :])
    assert "Avg steps, Avg tokens, Avg calls" in told
    assert list(table(facts, 26)[0]) == ["Dimension", "Passed"]


# By how much it passed


def gate(name: str, value: Any, bound: Any, verdict: Verdict = P, scenario: str = "") -> GateRow:
    return GateRow(name, value, bound, "", "", verdict, scenario)


def margins(*rows: GateRow, facts: Facts | None = None, **changes: Any) -> dict[str, str]:
    facts = facts or facts_of({"a": [PASS]})
    told = Facts(facts.report, replace(facts.decision, gates=rows, **changes))
    lines = [line.partition(":") for line in shown(passing_margins, told)]
    return {label: text.strip() for label, _, text in lines}


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([gate("every sample passes", 1, 1)], "1 rule passed"),
        ([gate("fault_tolerance", 0, 2), gate("fail_on_severity", 0, 1)], "2 rules passed"),
        ([gate("a", "x", 1), gate("b", 1, "below 2"), gate("c", 3, 0)], "3 rules passed"),
        ([gate("a", 3.5, 3.0), gate("b", 3.1, 3.0)], "2 rules passed; closest: b 3.1, bound 3"),
        ([gate("a", 10.0, 9.0), gate("b", 2.0, 1.0)], "2 rules passed; closest: a 10, bound 9"),
        ([gate("a", 2.0, 3.0, scenario="s")], "1 rule passed; closest: a 2, bound 3 (s)"),
        ([gate("a", 3.0, 3.0), gate("b", 3.0, 3.0)], "2 rules passed; closest: a 3, bound 3"),
        ([gate("a", 3.0, 3.1, F), gate("b", 5.0, 3.0)], "1 rule passed; closest: b 5, bound 3"),
        ([gate("a", -0.02, -0.1), gate("b", 1.0, 0.1)], "2 rules passed; closest: a -0.02, bound -0.1"),
    ],
)
def test_the_rule_that_passed_by_the_least(rows: list[GateRow], text: str) -> None:
    assert margins(*rows) == {"gates": text}


def test_without_rules_there_are_no_margins() -> None:
    assert margins() == {}
    assert margins(gate("a", 1.0, 1.0, U)) == {}


@pytest.mark.parametrize(
    "changes", [{"verdict": F}, {"verdict": U}, {"author_errors": ("x",)}, {"is_reported": True}]
)
def test_only_a_run_that_passed_has_margins(changes: dict[str, Any]) -> None:
    assert margins(gate("a", 1.0, 1.0), **changes) == {}


def test_the_mean_of_each_metric_over_all_scenarios() -> None:
    fine, bad = score(BEHAVIOR, label="no failure", ok=True), score(BEHAVIOR, label="x", ok=False)
    facts = facts_of(
        {
            "a": [Played((score("stars", 5.0), score("stars", 5.0)), turns=((fine,), (bad,)))],
            "b": [Played((score("stars", 2.0),), turns=((fine,),))],
            "c": [PASS],
        },
        run={"judged": ("stars", BEHAVIOR, "own")},
    )
    assert margins(facts=facts, verdict=P) == {"scores": "agent_be…failure 2/3 · stars 4.0"}
