"""The gates of a run on screens of each width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import GateRow
from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.gates import gates
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import PASS, report_of

P, F, U = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


def row(name: str = "pass_rate", verdict: Verdict = F, **more: Any) -> GateRow:
    fields = {"value": 0.5, "bound": 0.9, "basis": "9 epochs", "where": "/r/c.yaml:8", **more}
    return GateRow(name=name, verdict=verdict, **fields)


def shown(*rows: GateRow, width: int = 120, ungated: Sequence[str] = (), color: bool = False) -> list[str]:
    """The lines below the heading."""
    report = report_of({"a": [PASS]})
    decision = replace(decide(report), gates=rows, ungated=tuple(ungated))
    told = ReportOptions(width=width, root="/r", verbose=True, color=color)
    _, *lines = render_parts(gates(Facts(report, decision), told), told).splitlines() or [""]
    return [line for line in lines if line.strip()]


def words(lines: Sequence[str]) -> list[str]:
    return [" ".join(line.split()) for line in lines]


def test_without_gates_and_measurements_there_is_nothing() -> None:
    assert shown() == []


def test_what_was_measured_and_not_gated_is_told() -> None:
    lines = words(shown(ungated=("x", "y")))
    assert len(lines) == 2
    assert lines[1].endswith(": x, y")


def test_on_a_very_wide_screen_each_gate_is_one_row() -> None:
    assert words(shown(row(), width=110)) == [
        "rule value bound based on where verdict",
        "✗ pass_rate 0.5 0.9 9 epochs c.yaml:8 failed",
    ]


@pytest.mark.parametrize("width", [70, 109])
def test_on_a_wide_screen_the_basis_stands_below_the_rule(width: int) -> None:
    assert words(shown(row(), width=width)) == [
        "rule value bound verdict",
        "✗ pass_rate 0.5 0.9 failed",
        "9 epochs; c.yaml:8",
    ]


def test_without_basis_and_place_nothing_stands_below() -> None:
    bare = row(basis="", where="")
    assert words(shown(bare, width=80))[1:] == ["✗ pass_rate 0.5 0.9 failed"]
    assert words(shown(row(where=""), width=80))[2:] == ["9 epochs"]


@pytest.mark.parametrize(
    ("gate", "line"),
    [
        (row(), "✗ pass_rate: failed, value 0.5, bound 0.9 (9 epochs; c.yaml:8)"),
        (row(basis="", where=""), "✗ pass_rate: failed, value 0.5, bound 0.9"),
        (row(where="", verdict=P, value=None), "✓ pass_rate: passed, value –, bound 0.9 (9 epochs)"),
        (row(scenario="s", agent="x", verdict=U, basis="", where=""),
         "? pass_rate · s · x: inconclusive, value 0.5, bound 0.9"),
    ],
)  # fmt: skip
def test_on_a_narrow_screen_each_gate_is_a_sentence(gate: GateRow, line: str) -> None:
    assert " ".join(words(shown(gate, width=69))) == line


def test_what_did_not_pass_comes_first_with_its_own_verdict() -> None:
    rows = (row("a", P), row("b", F), row("c", U), row("d", P))
    for width in (120, 80, 60):
        lines = [line for line in words(shown(*rows, width=width)) if line[0] in "✓✗?"]
        assert ["".join(line.replace(":", "").split()[:2]) for line in lines] == ["✗b", "?c", "✓a", "✓d"]
        found = [
            next(word for word in ("passed", "failed", "inconclusive") if word in line) for line in lines
        ]
        assert found == ["failed", "inconclusive", "passed", "passed"]


def test_figures_are_at_least_five_and_at_most_sixteen_columns_wide() -> None:
    head, line, *_ = shown(row(value="v" * 20, bound=1), width=80)
    assert "v" * 16 in line
    assert "v" * 17 not in line
    assert head.index("verdict") - head.index("bound") == 7
    assert head.index("bound") - head.index("value") == 18


def test_the_verdict_has_its_colour() -> None:
    (line,) = [line for line in shown(row("a", F), color=True) if "pass" not in line and "failed" in line]
    assert "\x1b[31mfailed" in line
