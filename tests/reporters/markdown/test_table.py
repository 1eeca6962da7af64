"""Tables in Markdown: cells are escaped and cut, and the sign of a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agenteval.core.score import Verdict
from agenteval.reporters.markdown.table import (
    CELL,
    FULL_EXTENT,
    MARKS,
    ReportExtent,
    more_line,
    table,
    verdict_sign,
)
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import FAIL, LOST, PASS, Played, report_of


def test_a_table_has_a_head_a_rule_and_its_rows() -> None:
    assert table(("", "**x**"), [("a", "1"), ("b", "")]).splitlines() == [
        "|  | **x** |",
        "| --- | --- |",
        "| a | 1 |",
        "| b |  |",
    ]
    assert table(("x",), []).splitlines() == ["| x |", "| --- |"]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("a|b", r"a\|b"),
        ("a\nb", "a b"),
        ("*x* <b>", r"\*x\* &lt;b&gt;"),
        ("x" * CELL, "x" * CELL),
        ("x" * (CELL + 1), "x" * (CELL - 1) + "…"),
    ],
)
def test_a_cell_is_one_line_of_plain_text(cell: str, shown: str) -> None:
    assert table(("x",), [(cell,)]).splitlines()[2:] == [f"| {shown} |"]


@pytest.mark.parametrize(
    ("count", "text"),
    [(-1, ""), (0, ""), (1, "… and 1 row more."), (1200, "… and 1,200 rows more.")],
)
def test_what_was_left_out_is_counted(count: int, text: str) -> None:
    assert more_line(count, "row") == text


@pytest.mark.parametrize(
    ("played", "is_reported", "sign"),
    [
        (PASS, False, MARKS[Verdict.PASSED]),
        (FAIL, False, MARKS[Verdict.FAILED]),
        (LOST, False, MARKS[Verdict.INCONCLUSIVE]),
        (PASS, True, "📋"),
        (FAIL, True, MARKS[Verdict.FAILED]),
    ],
)
def test_a_log_without_expectations_has_a_neutral_sign(played: Played, is_reported: bool, sign: str) -> None:
    decision = replace(decide(report_of({"a": [played]})), is_reported=is_reported)
    assert verdict_sign(decision) == sign


def test_each_verdict_has_a_sign_of_its_own() -> None:
    assert set(MARKS) == set(Verdict)
    assert len(set(MARKS.values())) == len(MARKS)


def test_passed_rows_are_shown_unless_an_extent_says_otherwise() -> None:
    assert ReportExtent(1, 2, 3).passed
    assert FULL_EXTENT.passed
    assert min(FULL_EXTENT[:3]) >= 100_000
