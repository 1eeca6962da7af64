"""What goes wrong in a log, and how often, in words and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agenteval.core.decision import Decision, GateRow
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Severity, Verdict
from agenteval.reporters.words.failure_rates import (
    COLUMNS,
    format_rate,
    percentage,
    quotation_place,
    quotation_text,
    rate_cells,
    reported_text,
    severity_text,
    unknown_lines,
)
from agenteval.verdict.failure_rates import FailureRate, FailureRates, Quotation
from agenteval.verdict.recorded_logs import READABLE

P, F, U = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
LOW, MEDIUM, HIGH, CRITICAL = Severity


def rate(count: int = 3, of: int = 100, **more: Any) -> FailureRate:
    fields = {"label": "wrong tool", "found_by": "unknown_tool", "severities": {HIGH: count}, "unknown": 0}
    return FailureRate(conversations=count, of=of, metric="", quotations=(), **{**fields, **more})


def rates(*rows: FailureRate, records: int = 100, **more: Any) -> FailureRates:
    fields = {"unreadable": (), "undecided": 0, "unplaced": 0, **more}
    return FailureRates(records=records, rows=rows, **fields)


def quotation(**more: Any) -> Quotation:
    key = SampleKey(scenario="log.jsonl-6", agent="bot")
    fields = {"where": "log.jsonl:6", "turn": 0, "evidence": "Booked!", "explanation": "it was not"}
    return Quotation(key, **{**fields, **more})


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0.0 %"),
        (1, "100.0 %"),
        (0.5, "50.0 %"),
        (0.00001, "0.1 %"),
        (0.0011, "0.1 %"),
        (0.99999, "99.9 %"),
        (0.0346, "3.5 %"),
    ],
)
def test_only_none_is_zero_and_only_all_is_all(share: float, text: str) -> None:
    assert percentage(share) == text


@pytest.mark.parametrize(
    ("severities", "text"),
    [
        ({}, "fails"),
        ({LOW: 4}, "low"),
        ({CRITICAL: 1, MEDIUM: 2000}, "critical 1, medium 2,000"),
    ],
)
def test_the_severity(severities: dict[Severity, int], text: str) -> None:
    assert severity_text(rate(severities=severities)) == text


def test_the_cells_of_a_row() -> None:
    cells = rate_cells(rate(label="a\nb", found_by="x" * 90))
    assert len(cells) == len(COLUMNS)
    assert cells[:2] == ("high", "a b")
    assert cells[2] == "x" * 79 + "…"
    assert cells[3:] == ("3 of 100", "3.0 %", "1.0 % to 8.5 %")


@pytest.mark.parametrize(
    ("unknown", "text"),
    [(0, "1,000 of 2,000"), (1, "1,000 of 2,000, unknown in 1 more"), (1500, "unknown in 1,500 more")],
)
def test_conversations_of_which_it_is_not_known(unknown: int, text: str) -> None:
    assert rate_cells(rate(1000, 2000, unknown=unknown))[3].endswith(text)


def test_a_row_on_one_line() -> None:
    assert format_rate(rate()) == "high: wrong tool (unknown_tool): 3 of 100, 3.0 % (1.0 % to 8.5 %)"


@pytest.mark.parametrize(
    ("more", "place", "text"),
    [
        ({}, "log.jsonl:6, turn 1", '"Booked!": it was not'),
        ({"turn": None}, "log.jsonl:6", '"Booked!": it was not'),
        ({"turn": 4, "where": ""}, "log.jsonl-6, turn 5", '"Booked!": it was not'),
        ({"evidence": " "}, "log.jsonl:6, turn 1", "it was not"),
        ({"explanation": " "}, "log.jsonl:6, turn 1", '"Booked!"'),
        ({"evidence": "", "explanation": ""}, "log.jsonl:6, turn 1", ""),
        ({"evidence": "a\nb"}, "log.jsonl:6, turn 1", '"a b": it was not'),
    ],
)
def test_a_quotation(more: dict[str, Any], place: str, text: str) -> None:
    assert quotation_place(quotation(**more)) == place
    assert quotation_text(quotation(**more)) == text


@pytest.mark.parametrize(
    ("more", "facts"),
    [
        ({}, []),
        ({"unreadable": ("a:1",)}, ["1 of 100 records unreadable"]),
        ({"unreadable": ("a:1",), "records": 1}, ["1 of 1 record unreadable"]),
        ({"undecided": 1}, ["1 conversation not decided"]),
        ({"unplaced": 2}, ["2 conversations not fully seen"]),
        ({"unreadable": ("a",), "undecided": 1, "unplaced": 1}, ["unreadable", "not decided", "not fully"]),
    ],
)
def test_what_could_not_be_evaluated(more: dict[str, Any], facts: list[str]) -> None:
    lines = list(unknown_lines(rates(**more)))
    assert len(lines) == len(facts)
    assert all(fact in line for fact, line in zip(facts, lines, strict=True))


def gate(name: str, verdict: Verdict = F, value: Any = 0.03, bound: Any = 0.01, basis: str = "b") -> GateRow:
    return GateRow(name, value, bound, basis, "", verdict)


def told(gates: Sequence[GateRow], found: FailureRates | None = None) -> str:
    return reported_text(found or rates(), Decision(F, 1, tuple(gates), {}, {}))


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (gate("--max-rate high"), "--max-rate high failed: 3.0 %, at most 1 %"),
        (gate("--max-rate high", P, 0.0, 0.025), "--max-rate high passed: 0.0 %, at most 2.5 %"),
        (gate("--max-rate low", U, None), "--max-rate low was not decided: –, at most 1 %"),
    ],
)
def test_a_max_rate(row: GateRow, text: str) -> None:
    assert told([row]).split("; ")[0] == text


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (gate("pass_rate"), "pass_rate failed"),
        (gate("pass_rate", U), "pass_rate was not decided"),
        (gate(READABLE, F, 0.1, 0.05), "10.0 % of the records unreadable, at most 5 %"),
        (gate(READABLE, F, 0.05, 0.05, "the basis"), "the basis"),
        (gate(READABLE, U, 0.01, 0.05, "the basis"), "the basis"),
        (gate(READABLE, U, "x", 0.05), f"{READABLE} was not decided"),
    ],
)
def test_another_gate(row: GateRow, text: str) -> None:
    assert told([row]).split("; ")[0] == text


def test_max_rates_come_first_equal_ones_once_and_what_passed_is_not_told() -> None:
    gates = [gate("a"), gate("b", U), gate("c", P), gate("a"), gate("--max-rate low", P, 0.0)]
    assert told(gates).split("; ") == [
        "--max-rate low passed: 0.0 %, at most 1 %",
        "a failed (2 times)",
        "b was not decided",
        "100 conversations, nothing found",
    ]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (rates(), "100 conversations, nothing found"),
        (rates(records=2, unreadable=("a:1",)), "1 conversation, nothing found"),
        (
            rates(rate(2, label="empty answer", severities={}), rate(), by_severity={MEDIUM: 1, HIGH: 3}),
            "100 conversations, 2 with empty answer, findings in 4 (3 high, 1 medium)",
        ),
        (rates(by_severity={LOW: 1000}), "100 conversations, findings in 1,000 (1,000 low)"),
    ],
)
def test_what_was_found(found: FailureRates, text: str) -> None:
    assert told([], found) == text
