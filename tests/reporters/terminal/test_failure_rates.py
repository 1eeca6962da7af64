"""The table of what goes wrong in a log: its rows, quotations, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agenteval.core.scenario import SampleKey
from agenteval.core.score import Severity
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.failure_rates import failures_by_rate
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.failure_rates import FailureRate, FailureRates, Quotation
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import PASS, report_of

LOW, MEDIUM, HIGH, CRITICAL = Severity
KEY = SampleKey(scenario="s", agent="bot")


def quotation(where: str = "log.jsonl:6", evidence: str = "Booked!", explanation: str = "") -> Quotation:
    return Quotation(KEY, where, 0, evidence, explanation)


def rate(label: str = "wrong tool", *quotations: Quotation, **more: Any) -> FailureRate:
    fields: Mapping[str, Any] = {
        "found_by": "unknown_tool",
        "conversations": 3,
        "of": 100,
        "unknown": 0,
        "severities": {HIGH: 3},
        **more,
    }
    return FailureRate(label=label, metric="", quotations=quotations, **fields)


def shown(*rows: FailureRate, width: int = 100, color: bool = False, **more: Any) -> list[str]:
    """The lines below the heading."""
    fields = {"records": 100, "unreadable": (), "undecided": 0, "unplaced": 0, **more}
    report = report_of({"a": [PASS]})
    facts = Facts(report, decide(report))
    vars(facts)["rates"] = FailureRates(rows=rows, **fields)
    told = ReportOptions(width=width, color=color)
    _, _, *lines, last = render_parts(failures_by_rate(facts, told), told).splitlines()
    assert last == ""
    return lines


def test_a_run_with_scenarios_has_no_rates() -> None:
    report = report_of({"a": [PASS]})
    assert list(failures_by_rate(Facts(report, decide(report)), ReportOptions())) == []


def test_the_heading_counts_the_conversations_that_could_be_read() -> None:
    report = report_of({"a": [PASS]})
    facts = Facts(report, decide(report))
    vars(facts)["rates"] = FailureRates(100, ("log:1",), 0, 0, ())
    text = render_parts(failures_by_rate(facts, ReportOptions()), ReportOptions())
    assert text.splitlines()[1].endswith(" in 99 conversations")


def test_a_table_with_its_titles_once() -> None:
    head, first, second = shown(rate(), rate("empty answer", severities={}, conversations=10))
    assert head.split("  ")[0] == "severity"
    assert first.split() == [
        "high",
        "wrong",
        "tool",
        "unknown_tool",
        "3",
        "of",
        "100",
        "3.0",
        "%",
        "1.0",
        "%",
        "to",
        "8.5",
        "%",
    ]
    assert second.split()[:3] == ["fails", "empty", "answer"]
    rows = {first: "3 of 100", second: "10 of 100"}
    ends = [line.index(fact) + len(fact) for line, fact in rows.items()]
    assert ends == [head.index("conversations") + len("conversations")] * 2


def test_where_there_is_no_room_each_row_is_a_sentence() -> None:
    wide, *_ = shown(rate(), width=85)
    assert wide.startswith("severity")
    lines = shown(rate(), width=59)
    assert lines[0].startswith("  high: wrong tool (unknown_tool): 3 of 100, 3.0 %")
    assert all(len(line) <= 59 for line in lines)
    tight = shown(rate("x" * 60), width=90)
    assert tight[0].startswith(f"  high: {'x' * 60}")


def test_the_table_is_used_if_it_just_fits() -> None:
    widths = [width for width in range(60, 100) if shown(rate(), width=width)[0].startswith("severity")]
    assert widths == list(range(min(widths), 100))
    head = shown(rate(), width=min(widths))[0]
    assert len(head) <= min(widths)
    assert len(head) + 2 >= min(widths)


@pytest.mark.parametrize(
    ("quoted", "lines"),
    [
        (quotation(), ['    log.jsonl:6, turn 1  "Booked!"']),
        (quotation("", "", "x"), ["    s, turn 1  x"]),
        (quotation("w" * 50, "a", "b"), [f"    {'w' * 50}, turn 1", '        "a": b']),
    ],
)
def test_each_quotation_has_its_place(quoted: Quotation, lines: list[str]) -> None:
    assert shown(rate("wrong tool", quoted))[2:] == lines
    assert shown(rate("wrong tool", quoted, quoted))[2:] == lines * 2


def test_a_long_quotation_is_cut() -> None:
    (line,) = shown(rate("wrong tool", quotation(evidence="x" * 200)))[2:]
    assert (len(line), line[-1]) == (100, "…")
    place, first, second = shown(rate("wrong tool", quotation("w" * 50, evidence="x" * 400)))[2:]
    assert place.strip().endswith(", turn 1")
    assert (first[:9], second[-1]) == ('        "', "…")


@pytest.mark.parametrize(
    ("count", "rest"), [(30, []), (31, ["  … and 1 more"]), (1040, ["  … and 1,010 more"])]
)
def test_thirty_rows_are_shown(count: int, rest: list[str]) -> None:
    _, *lines = shown(*(rate(f"r{n}") for n in range(count)))
    assert [line.split(";")[0] for line in lines[30:]] == rest
    assert lines[29].split()[1] == "r29"


def test_that_nothing_was_found_is_said() -> None:
    (line,) = shown()
    assert "no known kind" in line


def test_what_is_not_known_is_said_at_the_end() -> None:
    lines = shown(rate(), unreadable=("log:1",), undecided=2, unplaced=1)
    assert [line.startswith("  unknown: ") for line in lines] == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("severities", "red"),
    [({CRITICAL: 1}, True), ({HIGH: 1}, True), ({}, True), ({MEDIUM: 1}, False), ({LOW: 1}, False)],
)
def test_what_is_severe_is_red(severities: dict[Severity, int], red: bool) -> None:
    assert any("\x1b[31m" in line for line in shown(rate(severities=severities), color=True)) is red
