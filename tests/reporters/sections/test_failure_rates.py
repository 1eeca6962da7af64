"""The failures in a log without scenarios: what the section shows of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agenteval.core.score import Severity
from agenteval.core.trajectory import StopReason
from agenteval.reporters.sections.failure_rates import sections
from agenteval.reporters.sections.section import Item, Section, StyledText, Tone
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import BEHAVIOR, Played, finding, report_of, score

BAD = score(BEHAVIOR, label="x", ok=False)
FINE = score(BEHAVIOR, label="no failure", ok=True)


def recorded(*items: Any, line: int = 3, stop: StopReason = StopReason.RECORDED) -> Played:
    return Played(items, turns=((),), stop=stop, detail=f"log.jsonl:{line}: x")


def found(*played: Played, without_scenarios: bool = True) -> list[Section]:
    report = report_of({f"s{n}": [each] for n, each in enumerate(played)})
    return list(sections(Facts(report, replace(decide(report), without_scenarios=without_scenarios))))


def test_a_run_with_scenarios_has_no_section() -> None:
    assert found(recorded(BAD, finding()), without_scenarios=False) == []


def test_rows_and_their_quotations() -> None:
    lie = finding(Severity.HIGH, evidence="Booked!", explanation="it was not", turn=None)
    (section,) = found(recorded(BAD, lie), recorded(FINE, line=4))
    assert section.named_by == 3
    (row,) = section.rows
    assert len(row) == len(section.columns)
    assert row[:5] == ("high", "false information", f"judge of {BEHAVIOR}", "1 of 2", "50.0 %")
    (item,) = section.notes
    assert isinstance(item, Item)
    assert item.head == (StyledText("false information", Tone.STRONG), f" (judge of {BEHAVIOR})")
    assert item.below == ('log.jsonl:3: "Booked!": it was not',)


def test_nothing_found_is_said_with_the_number_of_conversations() -> None:
    (section,) = found(recorded(FINE), recorded(FINE, line=4))
    assert section.rows == ()
    (note,) = section.notes
    assert "2 conversations" in str(note)


def test_what_could_not_be_read_is_said_before_the_quotations() -> None:
    unreadable = recorded(stop=StopReason.UNREADABLE, line=9)
    (section,) = found(recorded(BAD, finding()), unreadable)
    first, second = section.notes
    assert "1 of 2 records" in str(first)
    assert isinstance(second, Item)
    (section,) = found(recorded(), unreadable)
    nothing, unread = section.notes
    assert "1 conversation" in str(nothing)
    assert "1 of 2 records" in str(unread)
