"""The failures in recorded conversations, and how frequent they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Severity
from agenteval.core.trajectory import StopReason
from agenteval.verdict.failure_rates import QUOTATIONS, FailureRates, failure_rates
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.verdict_runs import (
    BEHAVIOR,
    BROKEN,
    HELD,
    UNDECIDED,
    Played,
    finding,
    judge_failed,
    report_of,
    score,
    unclear,
)

LOW, MEDIUM, HIGH, CRITICAL = Severity
LEAK = {"detector": "leak", "label": "unsafe state"}
FINE = score(BEHAVIOR, label="no failure", ok=True)
BAD = score(BEHAVIOR, label="x", ok=False)


def recorded(*items: Any, stop: StopReason = StopReason.RECORDED, turn: bool = False) -> Played:
    whole = () if turn else items
    return Played(whole, turns=(items if turn else (),), stop=stop, detail="log.jsonl:3: x")


UNREADABLE = recorded(stop=StopReason.UNREADABLE)


def rates(*played: Played, **more: Any) -> FailureRates:
    report: Report = report_of({f"s{n}": [each] for n, each in enumerate(played)}, **more)
    found = failure_rates(report, replace(decide(report), without_scenarios=True))
    assert found is not None
    return found


def rows(*played: Played, **more: Any) -> list[tuple[str, str, int, int, int]]:
    found = rates(*played, **more)
    return [(row.label, row.found_by, row.conversations, row.of, row.unknown) for row in found.rows]


def test_scenarios_have_no_failure_rates() -> None:
    report = report_of({"a": [recorded(finding())]})
    assert failure_rates(report, replace(decide(report), without_scenarios=False)) is None


JUDGE = f"judge of {BEHAVIOR}"


@pytest.mark.parametrize(
    ("played", "expected"),
    [
        ([recorded()], []),
        ([recorded(HELD)], []),
        ([recorded(BAD, finding(HIGH))], [("false information", JUDGE, 1, 1, 0)]),
        # A conversation that the judge was not called for says nothing.
        ([recorded(BAD, finding(HIGH)), recorded()], [("false information", JUDGE, 1, 1, 0)]),
        ([recorded(BAD, finding(HIGH)), recorded(FINE)], [("false information", JUDGE, 1, 2, 0)]),
        # Whether it applies may not be known.
        (
            [recorded(BAD, finding(HIGH)), recorded(judge_failed(BEHAVIOR))],
            [("false information", JUDGE, 1, 1, 1)],
        ),
        (
            [recorded(BAD, finding(HIGH)), recorded(FINE, judge_failed(BEHAVIOR))],
            [("false information", JUDGE, 1, 1, 1)],
        ),
        (
            [recorded(BAD, finding(HIGH)), recorded(unclear(BEHAVIOR))],
            [("false information", JUDGE, 1, 1, 1)],
        ),
        (
            [recorded(BAD, finding(HIGH)), recorded(FINE, judge_failed("stars"))],
            [("false information", JUDGE, 1, 2, 0)],
        ),
        (
            [recorded(BAD, finding(HIGH)), recorded(FINE, stop=StopReason.INFRASTRUCTURE)],
            [("false information", JUDGE, 1, 1, 1)],
        ),
        # A detector looks at every conversation that can be read.
        ([recorded(finding(HIGH, **LEAK)), recorded()], [("unsafe state", "leak", 1, 2, 0)]),
        ([recorded(finding(HIGH, **LEAK)), UNREADABLE], [("unsafe state", "leak", 1, 1, 0)]),
        (
            [recorded(finding(HIGH, **LEAK)), recorded(judge_failed("leak"))],
            [("unsafe state", "leak", 1, 1, 1)],
        ),
        # Several times in one conversation counts once.
        (
            [recorded(finding(HIGH, turn=0, **LEAK), finding(HIGH, turn=None, **LEAK))],
            [("unsafe state", "leak", 1, 1, 0)],
        ),
        # Checks.
        ([recorded(BROKEN), recorded(HELD)], [("output.contains", "check output.contains", 1, 2, 0)]),
        ([recorded(UNDECIDED)], []),
        ([recorded(Check(name="answer", passed=False))], [("empty answer", "check answer", 1, 1, 0)]),
        ([recorded(stop=StopReason.AGENT_ERROR)], [("agent error", "check no_error", 1, 1, 0)]),
    ],
)
def test_the_rows(played: list[Played], expected: list[Any]) -> None:
    assert rows(*played) == expected


def test_an_open_question_is_no_failure() -> None:
    question = {"detector": "unconfirmed_action", "label": "unsafe action"}
    assert rows(recorded(finding(HIGH, **question))) == []
    assert len(rows(recorded(finding(HIGH, also=("judge: x",), **question)))) == 1


def test_rows_by_the_worst_severity_then_by_rate() -> None:
    def found(label: str, severity: Severity) -> Any:
        return finding(severity, detector="leak", label=label)

    played = [
        recorded(found("rare", HIGH), found("low", LOW)),
        recorded(found("often", HIGH), found("low", LOW)),
        recorded(found("often", HIGH), found("mixed", CRITICAL)),
        recorded(found("mixed", LOW), BROKEN),
        recorded(found("also", HIGH)),
    ]
    assert [label for label, *_ in rows(*played)] == [
        "output.contains",  # a failed check fails its conversation
        "mixed",
        "often",
        "also",
        "rare",
        "low",
    ]


def test_the_severities_of_a_row_and_of_the_log() -> None:
    played = [
        recorded(finding(LOW, turn=0, **LEAK), finding(HIGH, turn=None, **LEAK)),
        recorded(finding(LOW, **LEAK)),
        recorded(finding(LOW, **LEAK)),
        recorded(BROKEN),
        recorded(),
    ]
    found = rates(*played)
    (check, leak) = found.rows
    assert (check.severities, check.severity) == ({}, None)
    assert (dict(leak.severities), leak.severity) == ({HIGH: 1, LOW: 2}, HIGH)
    assert list(leak.severities) == [HIGH, LOW]
    worst_first = rates(recorded(finding(HIGH, turn=0, **LEAK), finding(LOW, turn=None, **LEAK)))
    assert dict(worst_first.rows[0].severities) == dict(worst_first.by_severity) == {HIGH: 1}
    assert dict(found.by_severity) == {LOW: 2, HIGH: 1}
    assert leak.rate == pytest.approx(3 / 5)
    assert 0.2 < leak.interval.low < 0.6 < leak.interval.high < 1
    assert (check.metric, leak.metric) == ("", "")
    (judged,) = rates(recorded(BAD, finding(HIGH))).rows
    assert judged.metric == BEHAVIOR


def test_the_numbers_of_a_log() -> None:
    found = rates(UNREADABLE, recorded(), recorded(UNDECIDED), recorded(judge_failed("leak")))
    assert (found.records, found.conversations, found.undecided, found.unplaced) == (4, 3, 2, 0)
    assert found.unreadable == ("log.jsonl:3",)


def test_conversations_with_unknown_content() -> None:
    report = report_of({"a": [recorded()], "b": [recorded()]})
    first, *_ = report.scenarios
    (sample,) = first.samples
    turns = tuple(
        replace(each, turn=each.turn.model_copy(update={"unplaced": ("x",)})) for each in sample.turns
    )
    changed = replace(first, samples=(replace(sample, turns=turns),))
    made = replace(report, scenarios=(changed, *report.scenarios[1:]))
    found = failure_rates(made, replace(decide(made), without_scenarios=True))
    assert found is not None
    assert found.unplaced == 1


@pytest.mark.parametrize(
    ("number", "quoted"), [(1, 1), (QUOTATIONS, QUOTATIONS), (QUOTATIONS + 2, QUOTATIONS)]
)
def test_the_first_conversations_are_quoted(number: int, quoted: int) -> None:
    played = [
        recorded(finding(HIGH, evidence=f"e{n}", **LEAK), finding(HIGH, turn=None, evidence="later", **LEAK))
        for n in range(number)
    ]
    (row,) = rates(*played).rows
    assert [each.evidence for each in row.quotations] == [f"e{n}" for n in range(quoted)]
    assert [each.key for each in row.quotations] == [
        SampleKey(scenario=f"s{n}", agent="bot") for n in range(quoted)
    ]
    first = row.quotations[0]
    assert (first.where, first.turn, first.explanation) == ("log.jsonl:3", 0, "so it is")


def test_a_failed_check_is_quoted_by_its_reason() -> None:
    (row,) = rates(recorded(BROKEN, BROKEN)).rows
    (quoted,) = row.quotations
    assert (quoted.evidence, quoted.explanation) == ("", "not there")
