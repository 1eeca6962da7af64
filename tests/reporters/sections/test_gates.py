"""The table of gates in a report: order, cells and digits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import GateRow
from agenteval.core.score import Verdict
from agenteval.reporters.sections.gates import format_figures, format_value, gates
from agenteval.reporters.sections.section import LocationCell, Section
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import PASS, report_of

PASSED, FAILED, UNDECIDED = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


def gate(verdict: Verdict = PASSED, name: str = "pass_rate", **more: Any) -> GateRow:
    fields = {"value": 0.8, "bound": 0.9, "basis": "10 samples", "where": "agenteval.yaml:3", **more}
    return GateRow(name=name, verdict=verdict, **fields)


def section(*rows: GateRow, **more: Any) -> Section:
    report = report_of({"a": [PASS]})
    (found,) = gates(Facts(report, replace(decide(report), gates=rows, **more)))
    return found


def test_what_did_not_pass_comes_first() -> None:
    rows = [gate(PASSED, "a"), gate(UNDECIDED, "b"), gate(FAILED, "c"), gate(PASSED, "d"), gate(FAILED, "e")]
    assert [(row[0], row[1]) for row in section(*rows).rows] == [
        (FAILED, "c"),
        (FAILED, "e"),
        (UNDECIDED, "b"),
        (PASSED, "a"),
        (PASSED, "d"),
    ]


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        (gate(), (PASSED, "pass_rate", "0.8", "0.9", "10 samples", LocationCell("agenteval.yaml:3"))),
        (
            gate(scenario="book", agent="bot", value=None, bound="below high"),
            (
                PASSED,
                "pass_rate · book · bot",
                "–",
                "below high",
                "10 samples",
                LocationCell("agenteval.yaml:3"),
            ),
        ),
        (
            gate(scenario="book", value="high", basis="b" * 500),
            (PASSED, "pass_rate · book", "high", "0.9", "b" * 500, LocationCell("agenteval.yaml:3")),
        ),
        (
            gate(agent="bot", basis="two\nlines"),
            (PASSED, "pass_rate · bot", "0.8", "0.9", "two lines", LocationCell("agenteval.yaml:3")),
        ),
    ],
    ids=["of the run", "of a scenario", "the basis is never cut", "on one line"],
)
def test_the_cells_of_a_gate(row: GateRow, cells: tuple[object, ...]) -> None:
    found = section(row)
    assert found.rows == (cells,)
    assert len(found.columns) == len(cells)
    assert (found.noun, found.can_be_short) == ("gate", True)


@pytest.mark.parametrize(
    ("rows", "ungated", "notes"),
    [
        ((), (), ["No gate"]),
        ((gate(),), (), []),
        ((gate(),), ("helpfulness", "cost"), ["helpfulness, cost"]),
        ((), ("helpfulness",), ["No gate", "helpfulness"]),
    ],
)
def test_what_is_not_gated_is_said(
    rows: tuple[GateRow, ...], ungated: tuple[str, ...], notes: list[str]
) -> None:
    told = [str(note) for note in section(*rows, ungated=ungated).notes]
    assert len(told) == len(notes)
    assert all(fact in note for fact, note in zip(notes, told, strict=True))


@pytest.mark.parametrize(
    ("value", "bound", "figures"),
    [
        (3.33333, 3.5, ("3.33", "3.5")),
        (3.4999, 3.5, ("3.4999", "3.5")),
        (0.9, 0.89999, ("0.9", "0.89999")),
        (None, 1.0, ("–", "1")),
        ("high", "below critical", ("high", "below critical")),
        (3.4999, "at least 3.5", ("3.4999", "at least 3.5")),
    ],
)
def test_figures_have_the_digits_that_tell_them_apart(
    value: float | str | None, bound: float | str, figures: tuple[str, str]
) -> None:
    assert format_figures(gate(value=value, bound=bound)) == figures


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (1500.0, "1,500"),
        ("x\ny", "x y"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
    ],
)
def test_a_value_on_its_own(value: float | str | None, text: str) -> None:
    assert format_value(value) == text
