"""The events of a run in memory: what the grouping of issues is given of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.event import Event, Scored
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Finding
from agenteval.core.severity import Severity
from agenteval.files.journal import EventLog, event_to_json, read_first_event
from tests.support.plans import begun

KEY = SampleKey(scenario="s", agent="a")
FINDING = Finding(metric="m", detector="judge", label="x", severity=Severity.LOW, explanation="e")
FOUND, CHECKED = (
    Scored(key=KEY, turn=None, items=(item,)) for item in (FINDING, Check(name="c", passed=True))
)


@pytest.mark.parametrize(
    ("scored", "is_grouped"),
    [([], False), ([CHECKED], False), ([FOUND], True), ([FOUND, CHECKED], True), ([CHECKED, FOUND], True)],
)
def test_all_events_are_given_if_any_has_a_finding(scored: list[Event], is_grouped: bool) -> None:
    events = [begun(), *scored]
    log = EventLog(events)
    assert [event.type for event in log] == [event.type for event in events]
    given = [event.type for event in log.events_for_grouping()]
    assert given == [event.type for event in (events if is_grouped else events[:1])]
    assert [event.type for event in log.drain()] == [event.type for event in events]
    assert not list(log)


@pytest.mark.parametrize(("end", "is_read"), [("", True), ("\n", True), ("\nno event", True), ("}\n", False)])
def test_the_first_event_is_read_whatever_follows_its_line(tmp_path: Path, end: str, is_read: bool) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(f"{event_to_json(begun())}{end}", "utf-8")
    assert read_first_event(path) == (begun() if is_read else None)
