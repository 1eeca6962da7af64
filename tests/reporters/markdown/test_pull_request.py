"""The comment on a pull request: the order of the kinds of change, cells, gates and the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import GateRow
from agenteval.core.event import Baseline
from agenteval.core.score import Verdict
from agenteval.reporters.markdown.pull_request import MARKER, MOST, render
from agenteval.reporters.options import ReportOptions
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.verdict_runs import FAIL, LOST, PASS, Played, report_of

Outcomes = Mapping[str, tuple[bool | None, ...]]


def baseline(outcomes: Outcomes, *agents: str) -> Baseline:
    return Baseline(run_id="r0", outcomes={agent: dict(outcomes) for agent in agents or ("bot",)})


def report(told: Mapping[str, Sequence[Played | None]], before: Outcomes | None, **more: Any) -> Report:
    run = {} if before is None else {"baseline": baseline(before, *more.get("agents", ()))}
    return report_of(told, run=run, **more)


def comment(found: Report, **decision: Any) -> list[str]:
    text = render(found, replace(decide(found), **decision), ReportOptions())
    assert text.endswith("\n")
    return text.rstrip("\n").split("\n\n")


# ── the comment ──────────────────────────────────────────────────────────────────────────────────

TOLD: dict[str, list[Played | None]] = {
    "a": [FAIL],
    "b": [PASS],
    "c": [LOST],
    "d": [FAIL],
    "e": [FAIL],
    "f": [PASS],
}
BEFORE: Outcomes = {"a": (False,), "b": (False,), "c": (True,), "d": (True,), "f": (True,)}


def test_kinds_stand_in_one_order_with_their_numbers() -> None:
    parts = comment(report(TOLD, BEFORE))
    assert parts[0] == MARKER
    assert parts[1].endswith(
        "failed — 1 newly failing, 1 failing, and not in the baseline, 1 undecided, 1 still failing, 1 fixed"
    )
    assert parts[1].startswith("### ❌ ")
    kinds = [part for part in parts if part.startswith("**") and part.endswith("(1)")]
    assert [kind.strip("*").split("**")[0] for kind in kinds] == [
        "❌ Newly failing",
        "❌ Failing, and not in the baseline",
        "⚠️ Undecided",
        "❌ Still failing",
        "✅ Fixed",
    ]


def columns(parts: list[str], kind: str) -> list[str]:
    place = next(n for n, part in enumerate(parts) if f" {kind}**" in part)
    return [cell.strip() for cell in parts[place + 1].splitlines()[0].strip("|").split("|")]


@pytest.mark.parametrize(
    ("kind", "sure"),
    [
        ("Newly failing", True),
        ("Fixed", True),
        ("Undecided", False),
        ("Still failing", False),
        ("Failing, and not in the baseline", False),
    ],
)
def test_only_a_change_has_a_confidence(kind: str, sure: bool) -> None:
    found = columns(comment(report(TOLD, BEFORE)), kind)
    assert found == ["scenario", "before", "now", "why"] + ["confidence"] * sure


def test_the_cells_of_a_row_stand_below_their_heads() -> None:
    parts = comment(report({"a": [FAIL], "b": [PASS]}, {"a": (True,), "b": (False,)}))
    rows = [line for part in parts for line in part.splitlines() if line.startswith("| s/")]
    assert rows == [
        "| s/a.yaml::a | 1/1 | 0/1 | not there | may be chance |",
        "| s/b.yaml::b | 0/1 | 1/1 |  | may be chance |",
    ]
    (row,) = [line for line in "\n".join(comment(report({"a": [FAIL]}, None))).splitlines() if "::a" in line]
    assert row == "| s/a.yaml::a | 0/1 | not there |"


def test_data_rows_that_changed_alike_are_counted_one_by_one() -> None:
    data = {name: {"pattern": "rows-${row.n}", "source": "s/x.yaml:1"} for name in "abcd"}
    told: dict[str, list[Played | None]] = {"a": [FAIL], "b": [FAIL], "c": [FAIL], "d": [PASS]}
    before: Outcomes = {"a": (True,), "b": (True,), "c": (False,), "d": (False,)}
    head = comment(report(told, before, scenarios=data))[1]
    assert head.endswith("— 2 newly failing, 1 still failing, 1 fixed")


def test_without_a_baseline_there_is_no_before() -> None:
    parts = comment(report(TOLD, None))
    assert columns(parts, "Failing") == ["scenario", "now", "why"]
    assert columns(parts, "Undecided") == ["scenario", "now", "why"]
    assert parts[-1].startswith("No baseline:")


def test_the_baseline_or_why_there_is_none_comes_last() -> None:
    assert comment(report(TOLD, BEFORE))[-1].startswith("Baseline: r0.")
    missing = report_of({"a": [PASS]}, run={"no_baseline": "none was *kept*"})
    assert r"(none was \*kept\*)" in comment(missing)[-1]


@pytest.mark.parametrize(("count", "more"), [(MOST, None), (MOST + 1, "… and 1 scenario more.")])
def test_a_kind_lists_only_so_many(count: int, more: str | None) -> None:
    parts = comment(report({f"s{n:02}": [FAIL] for n in range(count)}, None))
    place = next(n for n, part in enumerate(parts) if part.startswith("**❌ Failing**"))
    assert parts[place].endswith(f"({count})")
    assert len(parts[place + 1].splitlines()) == 2 + MOST
    assert (parts[place + 2] == more) is bool(more)


def test_the_figures_name_the_end_the_code_and_the_time() -> None:
    figures = comment(report(TOLD, None), exit_code=1)[2].split(" · ")
    assert figures[1:3] == ["exit code 1", "1 s"]
    assert "**not complete**" not in figures


@pytest.mark.parametrize("outcome", ["interrupted", "budget", None])
def test_a_run_that_did_not_end_is_not_complete(outcome: str | None) -> None:
    figures = comment(report({"a": [PASS]}, None, outcome=outcome))[2].split(" · ")
    assert "**not complete**" in figures
    assert ("1 s" in figures) is (outcome is not None)


def test_what_a_passed_run_says() -> None:
    parts = comment(report({"a": [PASS]}, {"a": (True,)}))
    assert parts[1] == "### ✅ agenteval: passed"
    assert len([part for part in parts if part.startswith("|")]) == 0


def test_mistakes_of_the_author_are_listed_and_escaped() -> None:
    parts = comment(report({"a": [PASS]}, None), author_errors=("a.yaml:1: *bad*", "b.yaml:2: x"))
    assert parts[3].splitlines() == [r"- a.yaml:1: \*bad\*", "- b.yaml:2: x"]


def gate(name: str, verdict: Verdict = Verdict.FAILED, **more: Any) -> GateRow:
    fields = {"value": 0.5, "bound": 0.9, "basis": "4 samples", "where": "w", **more}
    return GateRow(name=name, verdict=verdict, **fields)


def test_gates_over_the_run_that_did_not_pass_are_a_table() -> None:
    gates = (
        gate("g1"),
        gate("g2", Verdict.INCONCLUSIVE, value="high", bound="below high"),
        gate("g3", Verdict.PASSED),
        gate("g4", scenario="a", agent="bot"),
    )
    parts = comment(report({"a": [PASS]}, None), gates=gates)
    place = next(n for n, part in enumerate(parts) if part.startswith("**2 gates"))
    assert parts[place + 1].splitlines()[2:] == [
        "| ❌ | g1 | 0.5 | 0.9 | 4 samples |",
        "| ⚠️ | g2 | high | below high | 4 samples |",
    ]
    (one,) = [part for part in comment(report({"a": [PASS]}, None), gates=gates[:1]) if "1 gate " in part]
    assert one.startswith("**")


@pytest.mark.parametrize(
    ("value", "bound", "cells"),
    [
        (0.89999, 0.9, "| 0.89999 | 0.9 |"),
        (0.9, 0.89999, "| 0.9 | 0.89999 |"),
        (2 / 3, 0.7, "| 0.667 | 0.7 |"),
        (None, 0.9, "| – | 0.9 |"),
    ],
)
def test_value_and_bound_have_the_digits_that_tell_them_apart(
    value: float | None, bound: float, cells: str
) -> None:
    parts = comment(report({"a": [PASS]}, None), gates=(gate("g", value=value, bound=bound),))
    assert any(cells in part for part in parts)
